"""``--format explicit``: the packages of one platform as addresses that conda, mamba and pixi install without a solver.

CEP 23 tells the format. Wheels stand in comments as conda-lock writes them: ``conda-lock install`` hands them to pip,
other tools pass over them.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.lockfile.conda_dependencies import installing_order
from envsolve.lockfile.conda_header import header_lines, name_of, variable_remarks
from envsolve.lockfile.facts import commented, facts_of
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.sound_packages import sound_packages
from envsolve.lockfile.sound_pins import sound_pins, sound_url, strong_hashes
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin


def write(lock: Lock) -> str:
    """The content of the file, the same bytes for the same lock.

    Raises OutsideError ``no-hash`` for a package without checksum, ``unsound-package`` for what no lock may hold.
    """
    return "\n".join(_lines(lock.with_digest("explicit"))) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    yield from header_lines((lock,))
    yield from _how_to_install(lock)
    yield from variable_remarks(lock, name_of((lock,)))
    yield f"# platform: {lock.platform}"
    yield from commented(facts_of(lock))
    yield "@EXPLICIT"
    for package in installing_order(sound_packages(lock.conda)):
        yield f"{package.url}#{_checksum(package)}"
    for pin in sound_pins(lock.pins):
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
    url, _, fragment = sound_url(file.url).partition("#")
    folder = [f"{part}&" for part in fragment.split("&") if part.startswith("subdirectory=")]
    return f"{pin.name} @ {url}#{''.join(folder)}{algorithm}={digest}"
