"""Requirement files such as ``requirements.in``, in pip's format.

https://pip.pypa.io/en/stable/reference/requirements-file-format
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, decoded, read_argument, read_bytes
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.index.project_name import FILES as PROJECT_FILES
from envsolve.model.names import is_name
from envsolve.model.package import Hashes
from envsolve.model.reference import editable, is_path
from envsolve.model.requester import COMMAND_LINE
from envsolve.model.requirement_line import (
    ALGORITHMS,
    hashes_of,
    logical_lines,
    parse_hash,
    without_comment,
    without_hashes,
)

PIP_SECTION = "the pip section of "
"""The start of the origin of a requirement that pip must install, whatever channels have."""
_FILE_OF = re.compile(rf"\A(?:-[rc] |{PIP_SECTION})")
"""The words before the file name in the origin of a requirement."""
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
_WITH_VALUE = {
    "-r": "requirement",
    "--requirement": "requirement",
    "-c": "constraint",
    "--constraint": "constraint",
    "-i": "index-url",
    "--index-url": "index-url",
    "--extra-index-url": "extra-index-url",
}
_EDITABLE = ("-e", "--editable")
_HARMLESS = ("--prefer-binary", "--only-binary", "--trusted-host", "--require-hashes", "--use-feature")
"""Options that a lock implies anyway, and options about the connection."""
_PAGES = ("-f", "--find-links")
"""Pages of links and folders of files, which are not read."""
_DEEPEST = 20
_MOST_MISTAKES = 10
"""More of them mean that the file is of another kind."""
_LONGEST = 16 * 1024 * 1024
"""The size limit of a file in bytes; a lock with all hashes of a thousand packages has 5 MB."""


class Line(NamedTuple):
    """One requirement, and its file as a person would name it: ``-r requirements.in``.

    ``hashes`` are the allowed digests of its file (``--hash=sha256:0a...``), none if all are allowed.
    """

    text: str
    origin: str
    hashes: Hashes = ()


class FileRequirements(NamedTuple):
    """The content of files: requirements, constraints and indexes. ``mistakes`` has the errors in other lines.

    ``ignored`` are the places of ``--find-links``, such as ``requirements.txt:3``.
    """

    requirements: tuple[Line, ...] = ()
    constraints: tuple[Line, ...] = ()
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    mistakes: tuple[UsageError, ...] = ()
    ignored: tuple[str, ...] = ()

    def __add__(self, other: FileRequirements) -> FileRequirements:  # type: ignore[override]  # two of them are one, not a longer tuple
        return FileRequirements(
            self.requirements + other.requirements,
            self.constraints + other.constraints,
            other.index_url or self.index_url,
            self.extra_index_urls + other.extra_index_urls,
            self.mistakes + other.mistakes,
            self.ignored + other.ignored,
        )


def read_requirement_file(name: str, *, constraint: bool = False) -> FileRequirements:
    """The content of a file and of the files it includes, each line once; ``-`` is standard input.

    The mistakes include files that cannot be read or include themselves, and lines that a lock does not support.
    Raises UsageError if ``name`` itself cannot be read.
    """
    reading = _Reading()
    reading.read(name, (), constraint=constraint)
    return reading.content


def read_pip_section(entries: Iterable[tuple[str, int]], path: Path) -> FileRequirements:
    """Return the requirements in ``pip:`` of the environment.yml at ``path``, each with its line.

    conda and mamba write the entries to a requirements file in the directory of the environment.yml and pass it to pip,
    so file names in them are relative to that directory. Logins are left out. Mistakes are as in
    :func:`read_requirement_file`.
    """
    reading = _Reading()
    for entry, number in entries:
        reading.read_entry(without_comment(entry), path, number)
    return reading.content


def refuse_all(mistakes: Sequence[UsageError]) -> None:
    """Raise the one mistake, or UsageError with the first ones of them."""
    if len(mistakes) == 1:
        raise mistakes[0]
    if mistakes:
        messages = tuple(dict.fromkeys(it.message for it in mistakes))
        more = (f"and {len(messages) - _MOST_MISTAKES} more",) if len(messages) > _MOST_MISTAKES else ()
        raise UsageError(
            "requirements-invalid",
            f"{len(mistakes)} requirements cannot be read",
            (*messages[:_MOST_MISTAKES], *more),
            tuple(dict.fromkeys(hint for it in mistakes for hint in it.hints)),
            refused=tuple(one for it in mistakes for one in it.refused),
        )


def place_of(origin: str, *words: str) -> str:
    """The place of a requirement from ``origin``: its file and the first line with one of ``words``.

    "" if it is from the command line.
    """
    if origin == COMMAND_LINE:
        return ""
    name = _FILE_OF.sub("", origin)
    try:
        lines = (read_bytes(name, _LONGEST) or b"").decode("utf-8", "replace").splitlines()
    except FileError:
        return name
    for word in filter(None, words):
        spelled = re.sub(r"[-_.]+", "[-_.]+", word) if is_name(word) else re.escape(word)
        has_it = re.compile(rf"(?<![\w./-]){spelled}(?![\w.-])", re.IGNORECASE)
        for number, line in enumerate(lines, 1):
            if has_it.search(line.partition("#")[0] if is_name(word) else line):
                return f"{name}:{number}"
    return name


class _Reading:
    """The content so far of a file and of those it includes."""

    def __init__(self) -> None:
        self._read: set[tuple[str, bool]] = set()
        self.requirements: dict[Line, None] = {}
        self.constraints: dict[Line, None] = {}
        self.index_url: str | None = None
        self.extra_index_urls: list[str] = []
        self.mistakes: list[UsageError] = []
        self.ignored: list[str] = []

    @property
    def content(self) -> FileRequirements:
        """The content as one value."""
        return FileRequirements(
            tuple(self.requirements),
            tuple(self.constraints),
            self.index_url,
            tuple(dict.fromkeys(self.extra_index_urls)),
            tuple(self.mistakes),
            tuple(self.ignored),
        )

    def read(self, name: str, within: tuple[str, ...], *, constraint: bool) -> None:
        """Read one more file, included by those in ``within``. Raises UsageError."""
        real = _real(name)
        if len(within) > _DEEPEST or real in map(_real, within):
            circle = " includes ".join((*within, name))
            raise UsageError("requirements-circular", f"{circle}: a file cannot include itself")
        if (real, constraint) in self._read:
            return
        self._read.add((real, constraint))
        if Path(name).name in PROJECT_FILES:
            folder = _below(Path(name).parent, ".")
            hint = Hint(f"request the project by its folder: {folder}, or '{folder}[EXTRA]' with an extra")
            raise UsageError("requirements-unreadable", f"{name} is not a list of requirements", hints=(hint,))
        text = _text(name, typed=not within)
        origin = f"{'-c' if constraint else '-r'} {name}"
        content = self.constraints if constraint else self.requirements
        for number, line, _ in logical_lines(text):
            if not line:
                continue
            expanded, place = self._expanded(line), f"{name}:{number}"
            try:
                if _option(expanded)[0] in _EDITABLE:
                    self.requirements[Line(editable(_option(expanded)[1]), f"-r {name}")] = None
                elif expanded.startswith("-"):
                    self._option(expanded, place, name, (*within, name), constraint=constraint)
                else:
                    content[_requirement(expanded, origin, place)] = None
            except UsageError as mistake:
                self.mistakes.append(mistake)

    def read_entry(self, entry: str, path: Path, number: int) -> None:
        """Read one entry of the pip section in the environment.yml at ``path``."""
        expanded = without_secrets(self._expanded(entry))
        place, origin = f"{path}:{number}", f"{PIP_SECTION}{path.name}"
        option, value = _option(expanded)
        try:
            if option in _EDITABLE:
                self.requirements[Line(editable(_below(path.parent, value)), origin)] = None
            elif expanded.startswith("-"):
                self._option(expanded, place, str(path), (str(path),), constraint=False)
            elif expanded:
                self.requirements[_requirement(expanded, origin, place)] = None
        except UsageError as mistake:
            self.mistakes.append(mistake)

    def _expanded(self, line: str) -> str:
        return _VARIABLE.sub(lambda it: os.environ.get(it[1], it[0]), line)

    def _option(self, line: str, place: str, name: str, within: tuple[str, ...], *, constraint: bool) -> None:
        option, value = _option(line)
        kind = _WITH_VALUE.get(option)
        if option in _PAGES:
            self.ignored.append(place)
            return
        if kind is None:
            if option in _HARMLESS:
                return
            raise UsageError("requirements-invalid", f"{place}: envsolve does not know the option {option}")
        if not value:
            raise UsageError("requirements-invalid", f"{place}: {option} names nothing")
        if kind.endswith("index-url") and any(map(str.isspace, value)):
            raise UsageError("requirements-invalid", f"{place}: more than one option: write each on a line of its own")
        if kind == "index-url":
            self.index_url = value
        elif kind == "extra-index-url":
            self.extra_index_urls.append(value)
        elif "://" in value:
            message = f"{place}: {option} takes a file, and {without_secrets(value)} is a URL"
            raise UsageError("requirements-invalid", message, hints=(Hint("fetch the file first"),))
        else:
            included = value if Path(value).is_absolute() or name == "-" else str(Path(name).parent / value)
            self.read(included, within, constraint=constraint or kind == "constraint")


def _below(folder: Path, value: str) -> str:
    """A path in ``folder`` as seen from where the command runs; an address stays."""
    if "://" in value or not value:
        return value
    path = str(folder / value)
    return path if is_path(path) else f"./{path}"


def _real(name: str) -> str:
    """The real path of a file. A name without a file fails later, when it is read."""
    try:
        return name if name == "-" else os.path.realpath(name)
    except ValueError:
        return name


def _requirement(line: str, origin: str, place: str) -> Line:
    try:
        hashes = tuple(map(parse_hash, hashes_of(line)))
    except ValueError as error:
        hint = Hint(f"the algorithms are {', '.join(ALGORITHMS)}")
        raise UsageError("requirements-invalid", f"{place}: {error}", hints=(hint,)) from None
    return Line(without_hashes(line), origin, tuple(dict.fromkeys(hashes)))


def _option(line: str) -> tuple[str, str]:
    """The option and its value in ``-rFILE``, ``-r FILE``, ``--requirement FILE`` or ``--requirement=FILE``."""
    if not line.startswith("--") and len(line) > 2 and not line[2].isspace():  # noqa: PLR2004
        return line[:2], line[2:].strip()
    found = re.match(r"(--?[A-Za-z-]+)(?:\s*=\s*|\s+|$)(.*)", line)
    return (found[1], found[2].strip()) if found else (line, "")


def _text(name: str, *, typed: bool) -> str:
    """The text of a file. It may be a pipe if the user ``typed`` it, but not if another file includes it."""
    try:
        content = read_argument(name, _LONGEST) if typed else read_bytes(name, _LONGEST)
        if content is None:
            raise FileError("there is no such file")
    except FileError as error:
        raise _unreadable(name, error, "check the name and the permissions of the file") from None
    try:
        return decoded(content)
    except FileError as error:
        raise _unreadable(name, error, "save it as UTF-8 text, with one requirement on each line") from None


def _unreadable(name: str, error: FileError, hint: str) -> UsageError:
    return UsageError("requirements-unreadable", f"cannot read {name}: {error.reason}", hints=(Hint(hint),))
