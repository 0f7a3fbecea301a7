"""``--format explicit``: the packages of one platform as addresses that conda, mamba and pixi install without a solver.

CEP 23 describes the format. Wheels are comments in conda-lock's form: ``conda-lock install`` passes them to pip, and
other tools ignore them. https://conda.org/learn/ceps/cep-0023
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
"""Bytes. A thousand packages take a thirtieth of it."""
MARK = "@EXPLICIT"
NO_ADDRESS = "this is not the URL of a conda package"
_PLATFORM = re.compile(r"#\s*platform:\s*([a-z0-9]+-[a-z0-9]+)\s*\Z")
_HASH = re.compile(r"(?:md5:)?(?P<md5>[0-9a-fA-F]{32})\Z|(?:sha256:)?(?P<sha256>[0-9a-fA-F]{64})\Z")
_PIP = "# pip "


def write(lock: Lock) -> str:
    """Return the content of the file, byte for byte the same for the same lock.

    Raises OutsideError ``no-hash`` for a package without checksum, ``unsound-package`` for invalid names or addresses.
    """
    return _text_of(lock.with_digest(_text_of, read))


def read(text: str) -> Lock:
    """Return the lock in the file. Its platform is that of a comment, else that of its packages, "" without any.

    A line that is not the address of a package is ``open``, and so is a comment with a wheel without an address. Raises
    FileError if the text is not an explicit file.
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
    """The md5, which every tool reads; else the sha256, which conda reads from 24.9 on and mamba from 2.1 on."""
    return package.md5 or f"sha256:{package.sha256}"


def _requirement(pin: Pin) -> str:
    """The file that pip prefers, with a checksum that pip verifies."""
    file = pin.files[0]
    algorithm, digest = strong_hashes(pin, file)[0]
    url, _, fragment = checked_url(file.url).partition("#")
    folder = [f"{part}&" for part in fragment.split("&") if part.startswith("subdirectory=")]
    return f"{pin.name} @ {url}#{''.join(folder)}{algorithm}={digest}"


def _read_package(line: str) -> CondaPackage:
    """The package of a line as in CEP 23, or with ``md5:`` as some tools write it."""
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
    """The package in a comment: ``name @ URL#sha256=...`` as conda-lock writes it, or older ones with ``--hash``.

    A wheel without an address is open, and also a pin if it names a version.
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
