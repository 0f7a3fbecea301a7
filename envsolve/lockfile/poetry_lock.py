"""``poetry.lock``: the lock of Poetry 2.1 and newer, which has the groups and the markers of each package.

Older locks have neither, and need the ``pyproject.toml`` for it.
"""

from __future__ import annotations

from envsolve.boundary.files import FileError, toml_document
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.marker_ways import NOWHERE, Ways, ways_of
from envsolve.lockfile.project_lock import (
    Table,
    direct,
    file_in,
    files_in,
    from_folder,
    is_before,
    lock_of,
    name_in,
    range_of,
    repository,
    table_in,
    tables_in,
    text_in,
    texts_in,
    with_ways,
)
from envsolve.model.names import normalized
from envsolve.model.package import Pin

_MAIN = "main"
_OLDEST = (2, 1)


def read(text: str) -> Lock:
    """Return what ``poetry install --only main`` installs.

    Anything but a package of an index or an address is ``open``.

    Raises FileError if it is not a lock of Poetry 2.1 or newer.
    """
    document = toml_document(text)
    metadata = table_in(document, "metadata")
    version = text_in(metadata, "lock-version")
    if not version:
        raise FileError("it is TOML, but not a poetry.lock")
    if is_before(version, *_OLDEST):
        raise FileError("it does not record which packages the project itself needs: lock it with Poetry 2.1 or newer")
    found = ((package, _ways(package)) for package in tables_in(document, "package"))
    return lock_of(
        (with_ways(_package(package), ways) for package, ways in found if ways != NOWHERE),
        text_in(metadata, "python-versions"),
    )


def _ways(package: Table) -> Ways:
    """Where a package is installed: one marker for all groups, or one for each group."""
    if _MAIN not in texts_in(package, "groups"):
        return NOWHERE
    marker = package.get("markers", "")
    return ways_of(text_in(marker, _MAIN) if isinstance(marker, dict) else text_in(package, "markers"))


def _package(package: Table) -> Pin | Open:
    source = table_in(package, "source")
    kind, url = text_in(source, "type"), text_in(source, "url")
    pin = Pin(
        name_in(package),
        text_in(package, "version"),
        (),
        without_secrets(url).rstrip("/") if kind == "legacy" else "",
        requires=tuple(map(normalized, table_in(package, "dependencies"))),
        requires_python=range_of(text_in(package, "python-versions")),
    )
    files = [file_in(it) for it in tables_in(package, "files")]
    if kind in ("", "legacy"):
        return files_in(pin, files)
    if kind in ("url", "file"):
        return direct(pin, url if kind == "url" else "", text_in(source, "subdirectory"), files)
    if kind == "git":
        return repository(pin, url, text_in(source, "resolved_reference"), text_in(source, "subdirectory"))
    return from_folder(pin.name)
