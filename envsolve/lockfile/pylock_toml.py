"""``--format pylock``: pylock.toml as PEP 751 and its specification have it, for one target.

Keys are in the order of the specification (packaging.python.org/specifications/pylock-toml), files one to a line. The
file is named ``pylock.toml`` or ``pylock.NAME.toml``, with no dot in NAME.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.lockfile.python_lock import FACTS_TABLE, PythonLock, facts_of, header_lines
from envsolve.lockfile.sound_pins import sound_file_name, sound_pins, sound_url, strong_hashes
from envsolve.lockfile.toml import string, table_lines, value
from envsolve.model.package import PackageFile, Pin, Target

_PINNED_MARKERS = ("implementation_name", "platform_machine", "python_version", "sys_platform")
"""What the choice of files rests on; a patch of Python or a newer system changes nothing in it."""
_SUBDIRECTORY = "subdirectory="


def pylock_toml(lock: PythonLock) -> str:
    """The content of the file, the same bytes for the same lock.

    Raises OutsideError ``no-hash`` for a file without a strong hash, ``unsound-package`` for what no lock may hold.
    """
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: PythonLock) -> Iterator[str]:
    target = lock.closure.target
    yield from header_lines(lock)
    yield 'lock-version = "1.0"'
    markers = _markers(target)
    if markers:
        yield f"environments = [{string(markers)}]"
    if target.python:
        yield f"requires-python = {string(f'>={target.python},=={_minor(target)}.*')}"
    yield 'created-by = "envsolve"'
    if not lock.closure.pins:
        yield "packages = []"
    for pin in sound_pins(lock.closure.pins):
        yield ""
        yield "[[packages]]"
        yield from _package(pin)
    facts = facts_of(lock)
    if facts:
        yield ""
        yield FACTS_TABLE
        yield from table_lines(facts)


def _minor(target: Target) -> str:
    return ".".join(target.python.split(".")[:2])


def _markers(target: Target) -> str:
    environment = dict(target.environment)
    return " and ".join(f"{name} == '{environment[name]}'" for name in _PINNED_MARKERS if name in environment)


def _package(pin: Pin) -> Iterator[str]:
    yield f"name = {string(pin.name)}"
    direct = pin.index_url is None
    if not direct or pin.files[0].is_wheel:
        yield f"version = {string(pin.version)}"
    if pin.marker:
        yield f"marker = {string(pin.marker)}"
    if pin.requires_python and _is_specifier(pin.requires_python):
        yield f"requires-python = {string(pin.requires_python)}"
    if pin.requires:
        yield f"dependencies = {value([{'name': name} for name in sorted(pin.requires)])}"
    if pin.index_url is None:
        yield f"archive = {_archive(pin, pin.files[0])}"
    else:
        yield f"index = {string(sound_url(pin.index_url))}"
        yield from _files(pin)
    yield from _reasons(pin)


@lru_cache(maxsize=64)
def _is_specifier(versions: str) -> bool:
    """Old packages say things like ``>=2.7.*``, for which a reader of the standard refuses the whole file."""
    try:
        return bool(SpecifierSet(versions))
    except InvalidSpecifier:
        return False


def _files(pin: Pin) -> Iterator[str]:
    for file in pin.files:
        if not file.is_wheel:
            yield f"sdist = {_named_file(pin, file)}"
            break  # the format has room for one
    wheels = [f"    {_named_file(pin, file)},\n" for file in pin.files if file.is_wheel]
    if wheels:
        yield f"wheels = [\n{''.join(wheels)}]"


def _named_file(pin: Pin, file: PackageFile) -> str:
    return f"{{ name = {string(sound_file_name(file))}, url = {string(sound_url(file.url))}{_proof(pin, file)} }}"


def _archive(pin: Pin, file: PackageFile) -> str:
    """A direct reference; its fragment may say which folder of the archive to build."""
    url, _, fragment = sound_url(file.url).partition("#")
    folder = next((part for part in fragment.split("&") if part.startswith(_SUBDIRECTORY)), None)
    below = "" if folder is None else f", subdirectory = {string(folder.removeprefix(_SUBDIRECTORY))}"
    return f"{{ url = {string(url)}{_proof(pin, file)}{below} }}"


def _proof(pin: Pin, file: PackageFile) -> str:
    size = "" if file.size is None else f", size = {file.size}"
    moment = None if file.upload_time is None else _moment(file.upload_time)
    uploaded = "" if moment is None else f", upload-time = {moment}"
    hashes = ", ".join(f'{algorithm} = "{digest}"' for algorithm, digest in strong_hashes(pin, file))
    return f"{size}{uploaded}, hashes = {{ {hashes} }}"


def _moment(text: str) -> str | None:
    """A moment in UTC, as the specification asks for; None for what is none, as nothing depends on it."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return None
        return moment.astimezone(UTC).isoformat()[: -len("+00:00")] + "Z"
    except (ValueError, OverflowError):
        return None


def _reasons(pin: Pin) -> Iterator[str]:
    if pin.via or pin.because:
        yield ""
        yield "[packages.tool.envsolve]"
        texts = {"via": sorted(pin.via), "because": pin.because}
        yield from table_lines({key: [*held] for key, held in texts.items() if held})
