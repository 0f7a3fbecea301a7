"""``--format explicit``: the packages of one platform as addresses that conda, mamba and pixi install without a solver.

CEP 23 describes the format. Wheels stand in comments as conda-lock writes them: ``conda-lock install`` hands them to
pip, other tools pass over them. https://conda.org/learn/ceps/cep-0023
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envsolve.boundary.files import FileError
from envsolve.lockfile.checked_packages import checked_packages
from envsolve.lockfile.checked_pins import checked_pins, checked_url, strong_hashes
from envsolve.lockfile.conda_dependencies import installing_order
from envsolve.lockfile.conda_header import comments_of, facts_on_top, header_lines, name_of, variable_remarks
from envsolve.lockfile.conda_locks import assembled, channels_of, with_wheels
from envsolve.lockfile.facts import commented, facts_of
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.package_address import package_of
from envsolve.lockfile.pip_package import pin_at
from envsolve.lockfile.requirements_txt import pin_of
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin
from envsolve.model.requirement_line import hashes_of, without_hashes

LONGEST = 4 * 1024 * 1024
"""Bytes; a thousand packages take a thirtieth of it."""
MARK = "@EXPLICIT"
NO_ADDRESS = "this is not the URL of a conda package"
_PLATFORM = re.compile(r"#\s*platform:\s*([a-z0-9]+-[a-z0-9]+)\s*\Z")
_HASH = re.compile(r"(?:md5:)?(?P<md5>[0-9a-fA-F]{32})\Z|(?:sha256:)?(?P<sha256>[0-9a-fA-F]{64})\Z")
_PIP = "# pip "


def write(lock: Lock) -> str:
    """The content of the file, the same bytes for the same lock.

    Raises OutsideError ``no-hash`` for a package without checksum, ``unsound-package`` for what no lock may hold.
    """
    return _text_of(lock.with_digest(_text_of, read))


def read(text: str) -> Lock:
    """The lock in the file. Its platform is the one that a comment says, else that of its packages, "" without any.

    A line that is no address of a package is ``open``, and so is a comment with a wheel that has none. Raises FileError
    where the text is no explicit file.
    """
    if len(text) > LONGEST:
        raise FileError(f"it is longer than {LONGEST // 1024} KiB")
    lines = [line.strip() for line in text.splitlines()]
    if MARK not in lines:
        raise FileError(f"it has no line {MARK}")
    packages: list[CondaPackage] = []
    wheels: list[Pin | Open] = []
    for number, line in enumerate(lines, start=1):
        try:
            if line.startswith(_PIP):
                wheels += _read_wheel(line.removeprefix(_PIP), number)
            elif line and not line.startswith("#") and line != MARK:
                packages.append(_read_package(line))
        except FileError as error:
            wheels.append(Open(error.reason, line=number, of_conda=True))
    platform = _platform(lines, packages)
    lock = with_wheels(Lock(()), wheels)
    lock = assembled(lock, platform, packages, facts_on_top(text, platform), comments_of(text))
    return lock._replace(channels=channels_of(lock.conda, lock.made))


def _text_of(lock: Lock) -> str:
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    yield from header_lines((lock,))
    yield from _how_to_install(lock)
    yield from variable_remarks(lock, name_of((lock,)))
    yield f"# platform: {lock.platform}"
    yield from commented(facts_of(lock))
    yield MARK
    for package in installing_order(checked_packages(lock.conda)):
        yield f"{package.url}#{_checksum(package)}"
    for pin in checked_pins(lock.pins):
        yield f"# pip {_requirement(pin)}"


def _how_to_install(lock: Lock) -> Iterator[str]:
    name = name_of((lock,))
    if lock.pins:
        yield "# To install it, with the wheels in its comments:"
        yield f"#   conda-lock install --name {name} FILE"
    else:
        yield "# To install it:"
        yield f"#   conda create --name {name} --file FILE"


def _checksum(package: CondaPackage) -> str:
    """The md5, which every tool reads; sha256 where there is none, for conda from 24.9 on and mamba from 2.1 on."""
    return package.md5 or f"sha256:{package.sha256}"


def _requirement(pin: Pin) -> str:
    """The file that pip takes first, with a checksum that pip proves it by."""
    file = pin.files[0]
    algorithm, digest = strong_hashes(pin, file)[0]
    url, _, fragment = checked_url(file.url).partition("#")
    folder = [f"{part}&" for part in fragment.split("&") if part.startswith("subdirectory=")]
    return f"{pin.name} @ {url}#{''.join(folder)}{algorithm}={digest}"


def _read_package(line: str) -> CondaPackage:
    """A line as CEP 23 has it, or with ``md5:`` as some write it."""
    url, _, digest = line.partition("#")
    found = _HASH.match(digest)
    if digest and found is None:
        raise FileError(NO_ADDRESS)
    digests = {} if found is None else found.groupdict()
    try:
        return package_of(CondaPackage("", "", "", "", url, md5=digests.get("md5"), sha256=digests.get("sha256")))
    except FileError:
        raise FileError(NO_ADDRESS) from None


def _read_wheel(requirement: str, number: int) -> Iterator[Pin | Open]:
    """The package in a comment: ``name @ URL#sha256=...`` as conda-lock writes it, older ones with pip's ``--hash``.

    One without an address is open, and a pin where it names a version.
    """
    name, _, url = without_hashes(requirement).partition(" @ ")
    digests = hashes_of(requirement)
    try:
        if url and not any(map(str.isspace, url.strip())):
            yield pin_at(name.strip(), "", url.strip(), next(iter(digests), ""))
            return
    except FileError:
        pass
    yield Open("a wheel in its comments has no URL", line=number)
    pin = pin_of(" ".join(requirement.split()))
    if pin is not None:
        yield pin._replace(marker="")


def _platform(lines: Sequence[str], packages: Sequence[CondaPackage]) -> str:
    stated = next(filter(None, map(_PLATFORM.match, lines)), None)
    if stated is not None:
        return stated[1]
    subdirs = {package.subdir for package in packages} - {"noarch", ""}
    return subdirs.pop() if len(subdirs) == 1 else ""
