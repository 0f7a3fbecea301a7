"""``--format conda-lock``: conda-lock.yml, version 1 (CEP 37), with the packages of all platforms in one file.

conda-lock, mamba, micromamba and rattler read it. Fields are in conda-lock's own order, packages sorted by manager,
name and platform, and there is no time in it: the same lock gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote

from envsolve import __version__
from envsolve.boundary.display import one_line
from envsolve.errors import Hint, OutsideError
from envsolve.lockfile.conda_dependencies import Node, categories, dependencies
from envsolve.lockfile.conda_header import header_lines, name_of, variable_remarks
from envsolve.lockfile.conda_lock_facts import content_hash, custom_metadata
from envsolve.lockfile.lock import MAIN, Lock
from envsolve.lockfile.sound_packages import sound_packages, without_hash
from envsolve.lockfile.sound_pins import sound_pins, sound_url, strong_hashes
from envsolve.lockfile.yaml import scalar
from envsolve.model.conda import CondaPackage
from envsolve.model.package import Pin

_NO_SOURCE = "the command line"
"""What stands for the sources where no file was read: mamba refuses a file without any."""
_INSTALLED_UNASKED = "dev"
"""The category that conda-lock installs beside main unless it is told not to."""

_Entry = tuple[str, str, str, str]
"""Manager, name and platform, by which entries are sorted, and the text without category."""


def write(locks: Sequence[Lock]) -> str:
    """The content of the file with ``locks``, one for each platform, the same bytes for the same locks.

    Raises OutsideError ``no-hash`` for a conda package without md5 or a wheel without sha256, which no reader takes,
    and ``unsound-package`` for what no lock may hold.
    """
    return "\n".join(_lines([lock.with_digest("conda-lock") for lock in locks])) + "\n"


def _lines(locks: Sequence[Lock]) -> Iterator[str]:
    groups = {lock.platform: categories(lock) for lock in locks}
    yield from header_lines(locks)
    yield from _how_to_install(locks, {name for found in groups.values() for held in found.values() for name in held})
    yield "version: 1"
    yield from _metadata(locks)
    entries = sorted(entry for lock in locks for entry in _entries(lock))
    yield "package:" if entries else "package: []"
    for manager, name, platform, text in entries:
        for category in groups[platform][Node(manager, name)]:
            optional = "false" if category == MAIN else "true"
            yield f"{text}\n  category: {scalar(category)}\n  optional: {optional}"


def _how_to_install(locks: Sequence[Lock], names: set[str]) -> Iterator[str]:
    environment, others = name_of(locks), sorted(names - {MAIN})
    extras = "".join(f" --extras {quote(name)}" for name in others if name != _INSTALLED_UNASKED)
    named = "".join(f" --category {quote(name)}" for name in [MAIN, *others]) if others else ""
    yield "# To install it, with one of these (mamba and micromamba know it by a name that ends in -lock.yml):"
    yield f"#   {one_line(f'conda-lock install --name {environment}{extras} conda-lock.yml')}"
    yield f"#   {one_line(f'micromamba create --name {environment}{named} --file conda-lock.yml')}"
    if not others and not any(lock.pins for lock in locks):
        yield one_line(
            f"#   conda create --name {environment} --file conda-lock.yml  # from 26.5 on, by this very name"
        )
    yield from variable_remarks(locks[0], environment)


def _metadata(locks: Sequence[Lock]) -> Iterator[str]:
    yield "metadata:"
    yield "  content_hash:"
    for lock in locks:
        yield f"    {lock.platform}: {scalar(content_hash(lock))}"
    yield "  channels:"
    for channel in locks[0].channels:
        yield f"  - url: {scalar(channel)}"
        yield "    used_env_vars: []"
    yield "  platforms:"
    for lock in locks:
        yield f"  - {lock.platform}"
    yield "  sources:"
    for source in locks[0].sources or (_NO_SOURCE,):
        yield f"  - {scalar(source)}"
    yield "  custom_metadata:"
    version = __version__ if locks[0].made is None else locks[0].made.envsolve_version
    yield f"    created_by: {scalar(f'envsolve {version}')}"  # conda itself refuses a file without it
    for key, text in custom_metadata(locks):
        yield f"    {scalar(key)}: {scalar(text)}"


def _entries(lock: Lock) -> Iterator[_Entry]:
    platform = lock.platform
    for package in sound_packages(lock.conda):
        yield "conda", package.name, platform, _conda_entry(package, platform)
    for pin in sound_pins(lock.pins):
        yield "pip", pin.name, platform, _pip_entry(pin, platform)


def _conda_entry(package: CondaPackage, platform: str) -> str:
    if package.md5 is None:
        raise without_hash(package, "md5")
    sha256 = "" if package.sha256 is None else f"\n    sha256: {scalar(package.sha256)}"
    return (
        f"- name: {scalar(package.name)}\n"
        f"  version: {scalar(package.version)}\n"
        "  manager: conda\n"
        f"  platform: {platform}\n"
        f"  dependencies:{_mapping(dependencies(package))}\n"
        f"  url: {scalar(package.url)}\n"
        "  hash:\n"
        f"    md5: {scalar(package.md5)}{sha256}\n"
        f"  build: {scalar(package.build)}"
    )


def _pip_entry(pin: Pin, platform: str) -> str:
    """A wheel, or the source where there is none: the format has room for one file, so it is what pip takes first."""
    file = pin.files[0]
    sha256 = dict(strong_hashes(pin, file)).get("sha256")
    url, _, fragment = sound_url(file.url).partition("#")
    if sha256 is None or "subdirectory=" in fragment:
        raise _not_to_be_said(pin, "a folder of an archive" if sha256 else "a checksum other than sha256")
    return (
        f"- name: {scalar(pin.name)}\n"
        f"  version: {scalar(pin.version)}\n"
        "  manager: pip\n"
        f"  platform: {platform}\n"
        f"  dependencies:{_mapping(dict.fromkeys(sorted(pin.requires), ''))}\n"
        f"  url: {scalar(url)}\n"
        "  hash:\n"
        f"    sha256: {scalar(sha256)}"
    )


def _mapping(held: Mapping[str, str]) -> str:
    return "".join(f"\n    {scalar(key)}: {scalar(text)}" for key, text in held.items()) or " {}"


def _not_to_be_said(pin: Pin, what: str) -> OutsideError:
    message = f"{pin.name} {pin.version} has {what}, for which conda-lock.yml has no words"
    hint = Hint(f"leave {pin.name} out, or write another format")
    return OutsideError("no-hash" if "checksum" in what else "unsound-package", message, hints=(hint,))
