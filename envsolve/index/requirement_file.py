"""Requirements as people keep them: ``requirements.in`` and its like, in pip's format.

https://pip.pypa.io/en/stable/reference/requirements-file-format
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.errors import Hint, UsageError
from envsolve.model.request import without_credentials

_COMMENT = re.compile(r"(^|\s)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_HASH = re.compile(r"\s--hash[= ]\S+")
_WITH_VALUE = {
    "-r": "requirement",
    "--requirement": "requirement",
    "-c": "constraint",
    "--constraint": "constraint",
    "-i": "index-url",
    "--index-url": "index-url",
    "--extra-index-url": "extra-index-url",
}
_HARMLESS = ("--prefer-binary", "--only-binary", "--trusted-host", "--require-hashes")
"""What a lock does anyway, or what is about the connection alone."""
_DEEPEST = 20


class Line(NamedTuple):
    """One requirement, and the file it is in, as a person would name it: ``-r requirements.in``."""

    text: str
    origin: str


class Asked(NamedTuple):
    """What files ask for: requirements, constraints, and the indexes they name.

    ``files`` are those that were read; ``is_fixed`` says that nothing but these files decided on it.
    """

    requirements: tuple[Line, ...] = ()
    constraints: tuple[Line, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    is_fixed: bool = True

    def __add__(self, other: Asked) -> Asked:  # type: ignore[override]  # two of them are one, not a longer tuple
        return Asked(
            self.requirements + other.requirements,
            self.constraints + other.constraints,
            other.index_url or self.index_url,
            self.extra_index_urls + other.extra_index_urls,
            self.files + other.files,
            self.is_fixed and other.is_fixed,
        )


def read_requirement_file(name: str, *, constraint: bool = False, environ: Mapping[str, str] | None = None) -> Asked:
    """Everything that a file and the files it includes ask for; ``-`` is standard input.

    Raises UsageError where one cannot be read, includes itself, or holds what a lock cannot have.
    """
    return _read(name, constraint, os.environ if environ is None else environ, ())


def _read(name: str, constraint: bool, environ: Mapping[str, str], within: tuple[str, ...]) -> Asked:
    if name in within or len(within) > _DEEPEST:
        raise UsageError("requirements-circular", f"{' includes '.join((*within, name))}: a file cannot include itself")
    text = _text(name)
    found = Asked(files=(name,), is_fixed=name != "-" and _VARIABLE.search(text) is None)
    for number, line in _lines(text):
        expanded = _VARIABLE.sub(lambda it: environ.get(it[1], it[0]), line)
        found += _of_line(expanded, f"{name}:{number}", name, constraint, environ, (*within, name))
    return found


def _of_line(
    line: str, place: str, name: str, constraint: bool, environ: Mapping[str, str], within: tuple[str, ...]
) -> Asked:
    if not line.startswith("-"):
        text = _HASH.sub("", f" {line}").strip()
        origin = f"{'-c' if constraint else '-r'} {name}"
        return Asked(constraints=(Line(text, origin),)) if constraint else Asked(requirements=(Line(text, origin),))
    option, value = _option(line)
    kind = _WITH_VALUE.get(option)
    if kind is None:
        if option in _HARMLESS:
            return Asked()
        raise _not_supported(line, option, place)
    if not value:
        raise UsageError("requirements-invalid", f"{place}: {option} names nothing")
    if kind == "index-url":
        return Asked(index_url=value)
    if kind == "extra-index-url":
        return Asked(extra_index_urls=(value,))
    if "://" in value:
        message = f"{place}: {option} takes a file here, and {without_credentials(value)} is an address"
        raise UsageError("requirements-invalid", message, hints=(Hint("fetch the file first"),))
    included = value if Path(value).is_absolute() or name == "-" else str(Path(name).parent / value)
    return _read(included, constraint or kind == "constraint", environ, within)


def _option(line: str) -> tuple[str, str]:
    """The option and its value, as ``-rFILE``, ``-r FILE``, ``--requirement FILE`` and ``--requirement=FILE``."""
    if not line.startswith("--") and len(line) > 2 and not line[2].isspace():  # noqa: PLR2004
        return line[:2], line[2:].strip()
    found = re.match(r"(--?[A-Za-z-]+)(?:\s*=\s*|\s+|$)(.*)", line)
    return (found[1], found[2].strip()) if found else (line, "")


def _not_supported(line: str, option: str, place: str) -> UsageError:
    if option in ("-e", "--editable"):
        hint = Hint("lock the requirements of that project instead, and install it afterwards with --no-deps")
        message = f"{place}: {line!r} is a project that is being edited, which no lock can hold"
        return UsageError("editable-not-supported", message, hints=(hint,))
    return UsageError("requirements-invalid", f"{place}: envsolve does not know the option {option}")


def _text(name: str) -> str:
    try:
        if name == "-":
            import sys

            return sys.stdin.read()
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError("requirements-unreadable", f"cannot read {name}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError("requirements-unreadable", f"cannot read {name}: it is not UTF-8") from None


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Logical lines with the number of their first: comments gone, continued lines joined."""
    first, held = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        first = first or number
        if line.rstrip().endswith("\\") and not line.lstrip().startswith("#"):
            held += line.rstrip()[:-1] + " "
            continue
        whole = _COMMENT.sub("", held + line).strip()
        if whole:
            yield first, whole
        first, held = 0, ""
    if held.strip():
        yield first, _COMMENT.sub("", held).strip()
