"""Common parts of ``uv.lock``, ``poetry.lock`` and ``pdm.lock``: TOML with one ``[[package]]`` per version.

Each is the lock of a project for all platforms, so a name may have several versions, each with a marker. They are read
but never written. Reading gives what the tool installs for the project's own dependencies: no extras, no groups, and
not the project itself.
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
    """Return the string at ``key``, "" if there is none. Raises FileError for other types."""
    return _of_kind(table.get(key, ""), str, key)


def texts_in(table: Table, key: str) -> list[str]:
    """Return the strings at ``key``, [] if there are none. Raises FileError for other types."""
    return [_of_kind(it, str, key) for it in _of_kind(table.get(key, []), list, key)]


def table_in(table: Table, key: str) -> Table:
    """Return the table at ``key``, empty if there is none. Raises FileError for other types."""
    return _of_kind(table.get(key, {}), dict, key)


def tables_in(table: Table, key: str) -> list[Table]:
    """Return the tables at ``key``, [] if there are none. Raises FileError for other types."""
    return [_of_kind(it, dict, key) for it in _of_kind(table.get(key, []), list, key)]


def name_in(table: Table) -> str:
    """Return the normalized name of a package. Raises FileError if there is none."""
    name = text_in(table, "name")
    if not is_name(name):
        raise FileError(f"{shown(name)} is not a package name")
    return normalized(name)


def is_before(version: str, *oldest: int) -> bool:
    """Whether the version of a format is older than ``oldest``, or has another major. Raises FileError."""
    try:
        release = Version(version).release
    except ValueError:
        raise FileError(f"{shown(version)} is not a version of its format") from None
    return release < oldest or release[0] != oldest[0]


def file_in(table: Table, url: str = "") -> PackageFile:
    """Return a file of a package. ``url`` is its location if the table has none. Raises FileError."""
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
    """Return ``pin`` of an index with its ``files``, wheels first."""
    ordered = tuple(sorted(files, key=lambda it: not it.is_wheel))
    return pin._replace(files=ordered) if ordered else Open(f"{shown(pin.name)} has no file", pin.name)


def direct(pin: Pin, url: str, subdirectory: str, files: Iterable[PackageFile]) -> Pin | Open:
    """Return ``pin`` as the archive at ``url``. The directory ``subdirectory`` in it is built, "" for its root."""
    file = next(iter(files), None)
    if file is None or not url.startswith(_ADDRESSES):
        return Open(f"{shown(pin.name)} is a file of one machine, which no other one has", pin.name)
    url = without_secrets(url)
    name = unquote(file_name_in(url))
    url += f"#subdirectory={subdirectory}" if subdirectory else ""
    return pin._replace(files=(file._replace(url=url, name=name),), index_url=None)


def repository(pin: Pin, url: str, commit: str, subdirectory: str) -> Pin | Open:
    """Return ``pin`` as a commit of the git repository at ``url``. The directory ``subdirectory`` in it is built.

    ``git@host:path`` is ssh's form of an address.
    """
    if "://" not in url:
        url = f"ssh://{url.replace(':', '/', 1)}"
    return repository_pin(pin, f"git+{url}@{commit}" + (f"#subdirectory={subdirectory}" if subdirectory else ""))


def from_folder(name: str) -> Open:
    """Return an open entry for a package without an archive."""
    return Open(f"{shown(name)} is from a folder of one machine, which no other one has", name)


def with_ways(found: Pin | Open, ways: Ways) -> Pin | Open:
    """Return ``found`` with the marker of ``ways``, if it is a pin with a version."""
    if isinstance(found, Pin):
        try:
            Version(found.version)
        except ValueError:
            return Open(f"{shown(found.name)} has no version", found.name)
        return found._replace(marker=marker_of(ways))
    return found


def lock_of(found: Iterable[Pin | Open], requires_python: str) -> Lock:
    """Return the lock of what was ``found``. Requirements of packages are only kept if they are pins."""
    entries = list(found)
    pins = [it for it in entries if isinstance(it, Pin)]
    names = {pin.name for pin in pins}
    pins = [pin._replace(requires=tuple(sorted(names.intersection(pin.requires)))) for pin in pins]
    left_open = tuple(it for it in entries if isinstance(it, Open))
    return Lock(tuple(sorted_pins(pins)), requires_python=range_of(requires_python) or "", open=left_open)


def range_of(versions: str) -> str | None:
    """Return the range ``versions`` of Python, or None if it is invalid."""
    return versions if is_specifier(versions) else None


def _of_kind(found: object, kind: type[_T], key: str) -> _T:
    if not isinstance(found, kind):
        raise FileError(f"{shown(key)} is invalid: {shown(str(found))}")
    return found
