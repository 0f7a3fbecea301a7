"""What ``uv.lock``, ``poetry.lock`` and ``pdm.lock`` have in common: TOML with one ``[[package]]`` for each version.

Each is the lock of a project for all platforms at once, so that a name may come in several versions, each with the
marker of where it is installed. They are read and never written. What is read is what the tool installs of the
project's own dependencies: neither extras nor groups, and not the project itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

from packaging.version import Version

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.lock import Lock, Open, is_specifier, moment, repository_pin, sorted_pins
from envsolve.lockfile.marker_ways import Ways, marker_of
from envsolve.lockfile.text_file import shown
from envsolve.model.names import is_name, normalized
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import file_name_in

Table = Mapping[str, Any]
_T = TypeVar("_T")
_ADDRESSES = ("http://", "https://")


def text_in(table: Table, key: str) -> str:
    """The text at ``key``, "" if there is none. Raises FileError for anything else."""
    return _of_kind(table.get(key, ""), str, key)


def texts_in(table: Table, key: str) -> list[str]:
    """The texts at ``key``, [] where there are none. Raises FileError for anything else."""
    return [_of_kind(it, str, key) for it in _of_kind(table.get(key, []), list, key)]


def table_in(table: Table, key: str) -> Table:
    """The table at ``key``, an empty one where there is none. Raises FileError for anything else."""
    return _of_kind(table.get(key, {}), dict, key)


def tables_in(table: Table, key: str) -> list[Table]:
    """The tables at ``key``, [] where there are none. Raises FileError for anything else."""
    return [_of_kind(it, dict, key) for it in _of_kind(table.get(key, []), list, key)]


def name_in(table: Table) -> str:
    """The normalized name of a package. Raises FileError if there is none."""
    name = text_in(table, "name")
    if not is_name(name):
        raise FileError(f"{shown(name)} is not a package name")
    return normalized(name)


def is_before(version: str, *oldest: int) -> bool:
    """Whether the version of a format is older than ``oldest``, or of another major one. Raises FileError."""
    try:
        release = Version(version).release
    except ValueError:
        raise FileError(f"{shown(version)} is not a version of its format") from None
    return release < oldest or release[0] != oldest[0]


def file_in(table: Table, url: str = "") -> PackageFile:
    """A file of a package; ``url`` is where it is if the table does not say. Raises FileError."""
    url = without_secrets(text_in(table, "url") or url)
    name = text_in(table, "file") or text_in(table, "filename") or unquote(file_name_in(url))
    algorithm, _, digest = text_in(table, "hash").partition(":")
    size, uploaded = table.get("size"), table.get("upload-time")
    return PackageFile(
        name.rpartition("/")[2],
        url,
        ((algorithm, digest),) if digest else (),
        size if type(size) is int else None,
        None if uploaded is None else moment(str(uploaded)),
    )


def files_in(pin: Pin, files: Iterable[PackageFile]) -> Pin | Open:
    """``pin`` of an index with its ``files``, wheels first."""
    ordered = tuple(sorted(files, key=lambda it: not it.is_wheel))
    return pin._replace(files=ordered) if ordered else Open(f"{shown(pin.name)} has no file", pin.name)


def direct(pin: Pin, url: str, subdirectory: str, files: Iterable[PackageFile]) -> Pin | Open:
    """``pin`` as the archive at ``url``, of which the folder ``subdirectory`` is built, "" for all of it."""
    file = next(iter(files), None)
    if file is None or not url.startswith(_ADDRESSES):
        return Open(f"{shown(pin.name)} is a file of one machine, which no other one has", pin.name)
    url = without_secrets(url)
    name = unquote(file_name_in(url))
    url += f"#subdirectory={subdirectory}" if subdirectory else ""
    return pin._replace(files=(file._replace(url=url, name=name),), index_url=None)


def repository(pin: Pin, url: str, commit: str, subdirectory: str) -> Pin | Open:
    """``pin`` as a commit of the git repository at ``url``, of which the folder ``subdirectory`` is built.

    ``git@host:path`` is how ssh writes an address.
    """
    if "://" not in url:
        url = f"ssh://{url.replace(':', '/', 1)}"
    return repository_pin(pin, f"git+{url}@{commit}" + (f"#subdirectory={subdirectory}" if subdirectory else ""))


def from_folder(name: str) -> Open:
    """A package of which no archive is known."""
    return Open(f"{shown(name)} is from a folder of one machine, which no other one has", name)


def with_ways(found: Pin | Open, ways: Ways) -> Pin | Open:
    """``found``, where it is a pin with a version, with the marker of ``ways``."""
    if isinstance(found, Pin):
        try:
            Version(found.version)
        except ValueError:
            return Open(f"{shown(found.name)} has no version", found.name)
        return found._replace(marker=marker_of(ways))
    return found


def lock_of(found: Iterable[Pin | Open], requires_python: str) -> Lock:
    """The lock of what was ``found``; of what packages require, its pins alone are named."""
    entries = list(found)
    pins = [it for it in entries if isinstance(it, Pin)]
    names = {pin.name for pin in pins}
    pins = [pin._replace(requires=tuple(sorted(names.intersection(pin.requires)))) for pin in pins]
    left_open = tuple(it for it in entries if isinstance(it, Open))
    return Lock(tuple(sorted_pins(pins)), requires_python=range_of(requires_python) or "", open=left_open)


def range_of(versions: str) -> str | None:
    """``versions`` of Python, None if they are no range."""
    return versions if is_specifier(versions) else None


def _of_kind(found: object, kind: type[_T], key: str) -> _T:
    if not isinstance(found, kind):
        raise FileError(f"{shown(key)} is invalid: {shown(str(found))}")
    return found
