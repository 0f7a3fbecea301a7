"""Explicit files: the addresses of conda packages, one to a line below ``@EXPLICIT``, as conda and mamba write them.

CEP 23 has the format; the packages of pip, as comments, are conda-lock's own. https://conda.org/learn/ceps/cep-0023
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import UsageError
from envsolve.lockfile.conda_file import MARK
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.pip_package import PipPackage, pip_package
from envsolve.lockfile.requirements_txt import pin_of
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin

LONGEST = 4 * 1024 * 1024
"""Bytes; a thousand packages take a thirtieth of it."""
_PLATFORM = re.compile(r"#\s*platform:\s*([a-z0-9]+-[a-z0-9]+)\s*\Z")
_HASH = re.compile(r"(?:md5:)?(?P<md5>[0-9a-fA-F]{32})\Z|(?:sha256:)?(?P<sha256>[0-9a-fA-F]{64})\Z")
_PIP = "# pip "
_DIRECT = re.compile(r"(\S+)(?:\s+--hash[= ]sha256:([0-9a-f]{64}))?\Z")


class ExplicitFile(NamedTuple):
    """What an explicit file holds, in its order.

    ``platform`` is what its comments say, else what its packages are for; None where all of them are for any.
    ``unread`` are the numbers of lines that are no address of a package. ``wheels`` are the packages of pip that have
    an address, ``unplaced`` the numbers of the comments with the others, and ``pins`` what of these names a version.
    """

    packages: tuple[CondaPackage, ...]
    platform: str | None = None
    unread: tuple[int, ...] = ()
    wheels: tuple[PipPackage, ...] = ()
    unplaced: tuple[int, ...] = ()
    pins: tuple[Pin, ...] = ()


def read_explicit(path: Path) -> ExplicitFile:
    """What the explicit file at ``path`` holds.

    Raises UsageError ``held-unreadable`` where there is none, or no line ``@EXPLICIT`` in it.
    """
    try:
        text = read_text(path, LONGEST)
        if text is None:
            raise FileError("there is no such file")
        return explicit_of(text)
    except FileError as error:
        raise UsageError("held-unreadable", f"cannot read {error.at(path)}: {error.reason}") from None


def explicit_of(text: str) -> ExplicitFile:
    """What ``text`` holds. Raises FileError where it is no explicit file."""
    if len(text) > LONGEST:
        raise FileError(f"it is longer than {LONGEST // 1024} KiB")
    lines = [line.strip() for line in text.splitlines()]
    if MARK not in lines:
        raise FileError(f"it has no line {MARK}")
    packages: list[CondaPackage] = []
    unread: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#") or line == MARK:
            continue
        try:
            packages.append(_package(line))
        except FileError:
            unread.append(number)
    comments = {number: line for number, line in enumerate(lines, start=1) if line.startswith(_PIP)}
    wheels = {number: wheel for number, line in comments.items() if (wheel := _wheel(line)) is not None}
    unplaced = tuple(number for number in comments if number not in wheels)
    pins = (pin_of(" ".join(comments[number].removeprefix(_PIP).split())) for number in unplaced)
    return ExplicitFile(
        tuple(packages),
        _platform(lines, packages),
        tuple(unread),
        tuple(wheels.values()),
        unplaced,
        tuple(pin._replace(marker="") for pin in pins if pin is not None),
    )


def _package(line: str) -> CondaPackage:
    """A line as CEP 23 has it, or with ``md5:`` as some write it."""
    url, _, digest = line.partition("#")
    found = _HASH.match(digest)
    if digest and found is None:
        raise FileError("what stands behind the address is no digest")
    digests = {} if found is None else found.groupdict()
    return package_of(CondaPackage("", "", "", "", url, md5=digests.get("md5"), sha256=digests.get("sha256")))


def _platform(lines: list[str], packages: list[CondaPackage]) -> str | None:
    stated = next(filter(None, map(_PLATFORM.match, lines)), None)
    if stated is not None:
        return stated[1]
    subdirs = {package.subdir for package in packages} - {"noarch", ""}
    return subdirs.pop() if len(subdirs) == 1 else None


def _wheel(line: str) -> PipPackage | None:
    """The package in such a comment; None where it has no address.

    conda-lock writes ``# pip name @ URL#sha256=...``; older ones have the hash as pip does.
    """
    name, _, rest = line.removeprefix(_PIP).partition(" @ ")
    address = _DIRECT.match(rest.strip())
    try:
        return None if address is None else pip_package(PipPackage(name.strip(), "", address[1], address[2]))
    except FileError:
        return None
