"""A lock becomes a plan: what is installed here, if the lock leaves nothing open and has digests.

Only files with a digest are installed. A file that leaves something open is refused with the command that decides it.
An environment.yml with exact builds has no digests of conda packages; channels have them (``exact_plan``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.create.plan import Kind, Plan
from envsolve.create.refusals import LOCKS, not_exact, other_platform, without_hash
from envsolve.create.wheels import wheel_file
from envsolve.errors import OutsideError, UsageError
from envsolve.lockfile.conda_lock_yml import INSTALLED_BY_DEFAULT
from envsolve.lockfile.lock import Lock, bare_files, requires_python_of, strong_digests
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.reading import format_in, locks_in
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.lock_format import FORMATS, PROJECT_LOCKS, FormatKind
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.reference import AddressKind, kind_of

FILES = {
    "conda-lock": "conda-lock.yml",
    "explicit": "explicit.lock",
    "environment": "environment.yml",
    "pixi.lock": "pixi.lock",
    "pylock": "pylock.toml",
    "requirements": "requirements.txt",
    **{name: name for name in PROJECT_LOCKS},
}
"""The name of the lock in the environment, for each format."""
_WITHOUT_SHA256 = ("explicit", "environment")
"""Formats with an md5 of a conda package, or with no digest at all."""
_REQUESTS = ("environment", "requirements")
"""Formats that ``-r`` reads as well."""
_ADDRESS = re.compile(r"\bhttps?://[^\s\"'<>#,]+")


class _Given(NamedTuple):
    """A lock to install: its file, or the file that it could be in, its format, its text, and the value."""

    path: Path
    format_name: str
    text: str
    lock: Lock


def plan_of(path: Path, platform: Platform, python: SpecifierSet | None = None, text: str | None = None) -> Plan:
    """The plan of the lock at ``path`` on ``platform``; ``python`` limits the interpreter of a venv further.

    With ``text`` the file is not read; this is its content.

    Raises UsageError: ``lock-unreadable`` if it is no lock, ``lock-not-exact`` if it has to be solved first,
    ``lock-without-hashes``, ``lock-for-other-platform``.
    """
    try:
        text = read_text(path, LONGEST) if text is None else text
        if text is None:
            raise FileError("there is no such file")
        format_name = format_in(path, text)
        locks = locks_in(format_name, text, platform)
        lock = next((it for it in locks if it.platform in ("", platform)), None)
        if lock is None:
            raise other_platform(path, platform, [it.platform for it in locks])
        return _plan(_Given(path, format_name, text, lock), platform, python)
    except FileError as error:
        raise UsageError("lock-unreadable", f"cannot read {error.at(path)}: {error.reason}", hints=(LOCKS,)) from None


def _plan(given: _Given, platform: Platform, python: SpecifierSet | None) -> Plan:
    """The plan. Raises like :func:`plan_of`, and FileError for what cannot be installed."""
    path, format_name, text, lock = given
    if format_name not in FILES:
        raise not_exact(path, "it lists packages without URLs")
    _refuse_open(given)
    is_venv = FORMATS[format_name].kind is FormatKind.PYTHON
    conda = tuple(it for it in lock.conda if _is_installed(it))
    pins = tuple(_proven(given, it) for it in lock.pins_for(platform) if _is_installed(it))
    if not is_venv:
        pins = tuple(pin._replace(index_url=None) if pin.files[0].url else pin for pin in pins)
        lock = lock._replace(platform=platform)
    for package in conda:
        _require_proven(given, package)
    lock = lock._replace(pins=pins, conda=conda)
    _refuse_unsound(lock)
    return Plan(
        Kind.VENV if is_venv else Kind.CONDA,
        FILES[format_name],
        without_secrets(text),
        lock,
        _python(lock, python) if is_venv else None,
        tuple((without_secrets(it), it) for it in _ADDRESS.findall(text) if without_secrets(it) != it),
        tuple(_notes(given)),
    )


def _refuse_open(given: _Given) -> None:
    """Raise UsageError ``lock-not-exact`` if something is left open, FileError for an invalid line."""
    path, format_name, _, lock = given
    command = f"envsolve create PREFIX -r {path}" if format_name in _REQUESTS else None
    for it in lock.open:
        if it.of_conda and it.line is not None:
            raise FileError(it.reason, it.line)
        if not it.optional:
            raise not_exact(path, it.reason, "pixi install" if format_name == "pixi.lock" else command)
    if format_name == "requirements" and not any(pin.files for pin in lock.pins):
        raise not_exact(path, "it has no hashes", command)
    if format_name != "environment":
        return
    several = next((it for it in lock.conda if not it.build or set("*^") & set(it.build)), None)
    if several is not None:
        named = "=".join(filter(None, (several.name, several.version, several.build)))
        raise not_exact(path, f"{named} is not an exact build", command)
    bare = next((pin.name for pin in lock.pins if not strong_digests(pin)), None)
    if bare is not None:
        raise not_exact(path, f"{bare} of its pip section has no hash", command)


def _is_installed(package: CondaPackage | Pin) -> bool:
    """Whether conda-lock installs it by default."""
    return not package.categories or INSTALLED_BY_DEFAULT in package.categories


def _proven(given: _Given, pin: Pin) -> Pin:
    """``pin`` with only the digests that prove its content. Raises UsageError ``lock-without-hashes``.

    A commit needs no digest, and a directory is the user's own; its path is relative to the lock.
    """
    if pin.index_url is None and not pin.files[0].is_archive:
        file = pin.files[0]
        if kind_of(file.url) is AddressKind.FOLDER:
            file = file._replace(url=str(given.path.parent.absolute() / file.url))
        return pin._replace(files=(file,))
    digests = strong_digests(pin)
    named = [file for file in pin.files if file.url]
    if not digests or not all(strong_digests(pin._replace(files=(file,))) for file in named):
        hashes = any(file.hashes for file in pin.files)
        label = f"{pin.name} {pin.version}".strip()
        raise without_hash(given.path, f"{label} other than weak ones" if hashes else label)
    return pin if named else pin._replace(files=bare_files(digests))


def _require_proven(given: _Given, package: CondaPackage) -> None:
    """Raise UsageError if a package only has an md5, which can be forged; explicit files have nothing else."""
    if package.sha256 is not None or given.format_name == "environment":
        return
    if given.format_name not in _WITHOUT_SHA256:
        raise without_hash(given.path, f"{package.file_name} other than weak ones")
    if package.md5 is None:
        raise without_hash(given.path, package.file_name)


def _refuse_unsound(lock: Lock) -> None:
    """Raise FileError for what no installer accepts."""
    try:
        for reads_pylock in (True, False):
            wheel_file(lock, reads_pylock=reads_pylock)
    except OutsideError as error:
        raise FileError(error.message) from None


def _python(lock: Lock, requested: SpecifierSet | None) -> SpecifierSet | None:
    try:
        stated = SpecifierSet(lock.requires_python or requires_python_of(lock.python))
    except InvalidSpecifier:
        raise FileError("its recorded Python is not a version") from None
    together = stated & requested if requested is not None else stated
    return together or None


def _notes(given: _Given) -> Iterator[Note]:
    left_out = [name for name in given.lock.categories if name != INSTALLED_BY_DEFAULT]
    if left_out:
        text = f"packages that only {' and '.join(left_out)} requires are left out, as conda-lock does"
        yield Note("not-installed", text)
    if given.format_name in PROJECT_LOCKS:
        text = f"only the main dependencies of {given.path.name} are installed: no extras, no groups, not the project"
        yield Note("not-installed", text)
    code = "environment-file" if given.format_name == "environment" else "not-installed"
    yield from (Note(code, text) for text in given.lock.left_out)
