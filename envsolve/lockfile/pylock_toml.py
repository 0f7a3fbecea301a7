"""``--format pylock``: pylock.toml as in PEP 751 and its specification, for one target.

Keys are in the order of the specification (packaging.python.org/specifications/pylock-toml), with one file per line.
The file is named ``pylock.toml`` or ``pylock.NAME.toml``, without a dot in NAME. Files of other tools can be read as
well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from envsolve.boundary.display import one_line
from envsolve.boundary.files import FileError, toml_document
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.checked_pins import checked_address, checked_file_name, checked_pins, checked_url, strong_hashes
from envsolve.lockfile.facts import TABLE, facts_of, table_in, texts, with_facts
from envsolve.lockfile.header import exported_from_in, lock_header, machines_in
from envsolve.lockfile.lock import (
    Lock,
    Open,
    is_specifier,
    moment,
    repository_pin,
    requires_python_of,
    sorted_pins,
    version_in,
)
from envsolve.lockfile.marker_ways import NOWHERE, marker_of, ways_of
from envsolve.lockfile.text_file import clean, shown
from envsolve.lockfile.toml import string, table_lines, value
from envsolve.model.names import is_name, normalized
from envsolve.model.need import is_marker
from envsolve.model.package import Hashes, PackageFile, Pin
from envsolve.model.reference import EDITABLE, AddressKind, file_name_in, is_path, kind_of, parse_reference

_PINNED_MARKERS = ("implementation_name", "platform_machine", "python_version", "sys_platform")
"""What determines the choice of files. A patch of Python or a newer system changes nothing in it."""
_SUBDIRECTORY = "subdirectory="
_GROUPS = re.compile(r"\b(?:extras|dependency_groups)\b")


def write(lock: Lock) -> str:
    """Return the content of the file, byte for byte the same for the same lock.

    Raises OutsideError ``no-hash`` for a file without a secure hash, ``unsound-package`` for invalid names or
    addresses.
    """
    return _text_of(lock.with_digest(_text_of, read))


def read(text: str) -> Lock:
    """Return the lock in a pylock.toml of any tool. Anything but a package of an index or an address is ``open``.

    Raises FileError if it does not follow the specification.
    """
    document = document_of(text)
    pins: list[Pin] = []
    left_open: list[Open] = []
    groups = frozenset(document.get("default-groups", ()))
    for package in document["packages"]:
        found = _read_package(package, groups)
        if isinstance(found, Pin):
            pins.append(found)
        else:
            left_open.append(found)
    lock = with_facts(
        Lock(tuple(sorted_pins(pins)), open=tuple(left_open)), table_in(document), machines=machines_in(text)
    )
    stated = str(document.get("requires-python", ""))
    return lock._replace(
        exported_from=exported_from_in(text),
        requires_python="" if stated == requires_python_of(lock.python) else stated,
    )


def _text_of(lock: Lock) -> str:
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    yield from lock_header(lock)
    yield 'lock-version = "1.0"'
    markers = _environment(lock)
    if markers:
        yield f"environments = [{string(markers)}]"
    requires_python = lock.requires_python or requires_python_of(lock.python)
    if requires_python:
        yield f"requires-python = {string(requires_python)}"
    yield 'created-by = "envsolve"'
    if not lock.pins:
        yield "packages = []"
    for pin in checked_pins(lock.pins):
        yield ""
        yield "[[packages]]"
        yield from _package(pin)
    facts = facts_of(lock)
    if facts:
        yield ""
        yield TABLE
        yield from table_lines(facts)


def _environment(lock: Lock) -> str:
    """The marker of the one environment that the lock is for, "" if unknown."""
    if lock.interpreter is None:
        return ""
    values = lock.interpreter.marker_values()
    return " and ".join(f"{name} == '{values[name]}'" for name in _PINNED_MARKERS if name in values)


def _package(pin: Pin) -> Iterator[str]:
    yield f"name = {string(pin.name)}"
    direct = pin.index_url is None
    kind = kind_of(pin.files[0].url) if direct else AddressKind.FILE
    if pin.version and (not direct or pin.files[0].is_wheel or kind is AddressKind.REPOSITORY):
        yield f"version = {string(pin.version)}"
    if pin.marker:
        yield f"marker = {string(pin.marker)}"
    if pin.requires_python and is_specifier(pin.requires_python):
        yield f"requires-python = {string(pin.requires_python)}"
    if pin.requires:
        yield f"dependencies = {value([{'name': name} for name in sorted(pin.requires)])}"
    if kind is AddressKind.REPOSITORY:
        yield f"vcs = {_repository(pin.files[0])}"
    elif kind is AddressKind.FOLDER:
        path = checked_address(pin.files[0].url)
        editable = ", editable = true" if path.endswith(EDITABLE) else ""
        yield f"directory = {{ path = {string(path.removesuffix(EDITABLE))}{editable} }}"
    elif pin.index_url is None:
        yield f"archive = {_archive(pin, pin.files[0])}"
    else:
        yield from [f"index = {string(checked_url(pin.index_url))}"] if pin.index_url else ()
        yield from _files(pin)
    yield from _reasons(pin)


def _files(pin: Pin) -> Iterator[str]:
    for file in pin.files:
        if not file.is_wheel:
            yield f"sdist = {_named_file(pin, file)}"
            break  # the format allows one
    wheels = [f"    {_named_file(pin, file)},\n" for file in pin.files if file.is_wheel]
    if wheels:
        yield f"wheels = [\n{''.join(wheels)}]"


def _named_file(pin: Pin, file: PackageFile) -> str:
    return f"{{ name = {string(checked_file_name(file))}, url = {string(checked_url(file.url))}{_proof(pin, file)} }}"


def _archive(pin: Pin, file: PackageFile) -> str:
    """A direct reference. Its fragment may have the subdirectory of the archive to build."""
    url, _, fragment = checked_url(file.url).partition("#")
    folder = next((part for part in fragment.split("&") if part.startswith(_SUBDIRECTORY)), None)
    below = "" if folder is None else f", subdirectory = {string(folder.removeprefix(_SUBDIRECTORY))}"
    return f"{{ url = {string(url)}{_proof(pin, file)}{below} }}"


def _repository(file: PackageFile) -> str:
    found = parse_reference(checked_address(file.url))
    below = f", subdirectory = {string(found.subdirectory)}" if found.subdirectory else ""
    return f'{{ type = "git", url = {string(found.address)}, commit-id = {string(found.revision)}{below} }}'


def _proof(pin: Pin, file: PackageFile) -> str:
    size = "" if file.size is None else f", size = {file.size}"
    uploaded = None if file.upload_time is None else moment(file.upload_time)
    time = "" if uploaded is None else f", upload-time = {uploaded}"
    hashes = ", ".join(f'{algorithm} = "{digest}"' for algorithm, digest in strong_hashes(pin, file))
    return f"{size}{time}, hashes = {{ {hashes} }}"


def _reasons(pin: Pin) -> Iterator[str]:
    if pin.via or pin.because:
        yield ""
        yield "[packages.tool.envsolve]"
        reasons = {"via": sorted({one_line(it) for it in pin.via}), "because": list(map(one_line, pin.because))}
        yield from table_lines({key: texts for key, texts in reasons.items() if texts})


def document_of(text: str) -> dict[str, Any]:
    """Return the tables of a pylock.toml (PEP 751).

    Raises FileError if it is not valid TOML, not a pylock.toml, or not of the form that the specification requires.
    """
    from packaging.pylock import Pylock, PylockValidationError

    document = toml_document(text)
    if "lock-version" not in document:
        raise FileError("it is TOML, but not a pylock.toml")
    try:
        Pylock.from_dict(document)
    except PylockValidationError as error:
        raise FileError(f"it violates the specification of pylock.toml: {clean(str(error))}") from None
    return document


def _read_package(package: Mapping[str, Any], groups: frozenset[str]) -> Pin | Open:
    """A package, with the part of its marker that is left if the dependency groups in ``groups`` are installed."""
    name, marker = str(package["name"]), str(package.get("marker", ""))
    if not is_name(name):
        raise FileError(f"{shown(name)} is not a package name")
    if not is_marker(marker):  # it would be written after a name, where pip options are allowed
        return Open(f"the marker of {shown(name)} is none: {shown(marker)}", normalized(name))
    if _GROUPS.search(marker):
        ways = ways_of(marker, groups)
        if ways == NOWHERE:
            reason = f"{shown(name)} is only for an extra or a group, and requirements files have neither"
            return Open(reason, normalized(name), optional=True)
        marker = marker_of(ways)
    index = package.get("index")
    ours = table_in(package) or {}
    needed = (it.get("name") for it in package.get("dependencies", ()))
    pin = Pin(
        normalized(name),
        str(package.get("version", "")),
        (),
        "" if index is None else without_secrets(str(index)).rstrip("/"),
        via=texts(ours, "via"),
        because=texts(ours, "because"),
        requires=tuple(sorted({normalized(name) for name in needed if isinstance(name, str)})),
        requires_python=package.get("requires-python"),
        marker=marker,
    )
    for key, read_source in _BY_ADDRESS.items():
        if key in package:
            return read_source(pin, package[key])
    sdist = [package["sdist"]] if "sdist" in package else []
    files = tuple(map(_read_file, (*package.get("wheels", ()), *sdist)))
    if not files:
        return Open(f"{shown(name)} has no file", pin.name)
    return pin._replace(files=files) if pin.version else Open(f"{shown(name)} has no version", pin.name)


def _read_archive(pin: Pin, archive: Mapping[str, Any]) -> Pin | Open:
    url = without_secrets(str(archive.get("url", "")))
    if "://" not in url:
        return Open(f"{shown(pin.name)} is a file of one machine, which no other one has", pin.name)
    folder = f"#{_SUBDIRECTORY}{archive['subdirectory']}" if "subdirectory" in archive else ""
    file = _read_file(archive)._replace(name=file_name_in(url), url=url + folder)
    return pin._replace(files=(file,), index_url=None, version=pin.version or version_in(pin.name, url))


def _read_repository(pin: Pin, vcs: Mapping[str, Any]) -> Pin | Open:
    if vcs["type"] != "git" or "url" not in vcs:
        return Open(f"{shown(pin.name)} is from a repository that is not a URL of git", pin.name)
    below = f"#subdirectory={vcs['subdirectory']}" if "subdirectory" in vcs else ""
    return repository_pin(pin, f"git+{vcs['url']}@{vcs['commit-id']}{below}")


def _read_folder(pin: Pin, directory: Mapping[str, Any]) -> Pin | Open:
    path = str(PurePosixPath(directory["path"], directory.get("subdirectory", "")))
    url = (path if is_path(path) else f"./{path}") + (EDITABLE if directory.get("editable") else "")
    return pin._replace(files=(PackageFile(file_name_in(url), url),), index_url=None, version="")


def _read_file(entry: Mapping[str, Any]) -> PackageFile:
    url = str(entry.get("url", ""))
    uploaded = entry.get("upload-time")
    return PackageFile(
        str(entry.get("name") or file_name_in(url) or str(entry.get("path", "")).rpartition("/")[2]),
        without_secrets(url),
        _read_hashes(entry["hashes"]),
        entry.get("size"),
        None if uploaded is None else moment(str(uploaded)),
    )


_BY_ADDRESS = {"archive": _read_archive, "vcs": _read_repository, "directory": _read_folder}


def _read_hashes(table: Mapping[str, Any]) -> Hashes:
    return tuple(sorted((str(algorithm), str(digest)) for algorithm, digest in table.items()))
