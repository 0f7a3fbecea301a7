"""What of a lock would be built, which runs the code of packages: refused here, whatever an installer would do with it.

``--only-binary :all:`` of pip says nothing about packages with an address, and a line of the file itself takes it back.
Installers differ in what they take for a line or a comment, and pip in the encoding that a comment may name, so they
are given the lines that were judged here and not the file (:func:`~envsolve.model.requirement_line.contents_of`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement

from envsolve.boundary.files import toml_document
from envsolve.create.plan import WheelFile
from envsolve.create.refusals import not_exact
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.text_file import shown
from envsolve.model.requirement_line import contents_of

_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
"""What pip and uv put the value of a variable in the place of, in a requirements file."""
_PLACES = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--trusted-host")
_HARMLESS = (*_PLACES, "--require-hashes", "--prefer-binary", "--hash")
"""Options that say where packages are and how they are proved. pip takes others by their first letters too."""
_OPTIONS = re.compile(r"\s+-")
_SCHEMES = ("", "http", "https", "file")
_BUILT = ("archive", "directory", "vcs")


def refuse_builds(path: Path, file: WheelFile) -> None:
    """Raise UsageError ``build-refused`` where the lock at ``path`` has ``file`` build a package, or may have it.

    Raises UsageError ``lock-not-exact`` for a requirement that is no single version.
    """
    if file.name == "pylock.toml":
        found = next((name for it in toml_document(file.text).get("packages", ()) for name in _built(it)), None)
        if found is not None:
            raise _refused(path, f"{found} has no wheel in it")
        return
    for line in contents_of(file.text):
        _refuse_line(path, line)


def refuse_variables(path: Path, file: WheelFile) -> None:
    """Raise UsageError ``lock-not-exact`` where ``file`` has values of the machine's variables sent to an address.

    They may be secrets, and what a lock names must not depend on the machine. A pylock.toml has no variables (PEP 751).
    """
    if file.name == "pylock.toml":
        return
    found = next((it for line in contents_of(file.text) if (it := _VARIABLE.search(line)) is not None), None)
    if found is None:
        return
    hints = (
        Hint("write what is meant in its place; name and password of an index belong into netrc or a keyring"),
        Hint("or take the index out of the lock, and give it with --index-url"),
    )
    cause = ("its value would be sent to an address that the lock names, whatever it is on this machine",)
    raise UsageError("lock-not-exact", f"{path} names the variable {found[1]}", cause, hints)


def _built(package: Mapping[str, Any]) -> Iterator[str]:
    """The name of a package of a pylock.toml that has no wheel; an archive may be one (PEP 751)."""
    archive = package.get("archive")
    address = str(archive.get("url") or archive.get("path") or "") if isinstance(archive, dict) else ""
    others = [it for it in _BUILT if it in package]
    if (others and not (others == ["archive"] and _is_wheel(address))) or (
        "sdist" in package and not package.get("wheels")
    ):
        yield str(package.get("name", "a package"))


def _refuse_line(path: Path, line: str) -> None:
    options = [word.partition("=")[0] for word in _words(line) if word.startswith("-")]
    strange = next((it for it in options if it not in _HARMLESS), None)
    if strange is not None:
        raise _refused(path, f"its option {strange} may have packages built")
    if line.startswith("-"):
        return
    address = _address(line)
    if address is not None and not _is_wheel(address):
        raise _refused(path, f"{shown(address)} is no wheel")
    if address is None and not _is_pinned(line):
        raise not_exact(path, f"{shown(_requirement(line))} is no single version")


def _requirement(line: str) -> str:
    """The requirement on a line, without the options behind it."""
    return _OPTIONS.split(line, maxsplit=1)[0].strip()


def _address(line: str) -> str | None:
    """The address or the path that a line names a package by; None for one that names a version.

    pip takes what is no requirement for a file, if there is one.
    """
    text = _requirement(line)
    try:
        return Requirement(text).url
    except InvalidRequirement:
        return text


def _is_pinned(line: str) -> bool:
    clauses = [*Requirement(_requirement(line)).specifier]
    return len(clauses) == 1 and clauses[0].operator == "==" and not clauses[0].version.endswith(".*")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, posix=False)
    except ValueError:
        return line.split()


def _is_wheel(address: str) -> bool:
    parts = urlsplit(address)
    windows = len(parts.scheme) == 1
    return (parts.scheme in _SCHEMES or windows) and unquote(parts.path).endswith(".whl")


def _refused(path: Path, why: str) -> UsageError:
    hints = (
        Hint("make the lock anew with wheels alone"),
        Hint("or let packages be built, which runs their code: --allow-builds"),
    )
    return UsageError("build-refused", f"{path} may have packages built: {why}", hints=hints)
