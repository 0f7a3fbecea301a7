"""``pdm.lock``: the lock of PDM 2.20 and newer, which has the groups and the markers of each package.

One that was made without the strategy ``inherit_metadata`` has neither. A package that is required with extras has two
entries, one with ``extras`` and one without.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.boundary.files import FileError, toml_document
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.marker_ways import NOWHERE, ways_of
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
from envsolve.lockfile.text_file import shown
from envsolve.model.need import parse_need
from envsolve.model.package import Pin

_MAIN = "default"
_OLDEST = (4, 5)
_STRATEGY = "inherit_metadata"
_FOLDERS = ("hg", "svn", "bzr", "path")


def read(text: str) -> Lock:
    """Return what ``pdm install --prod`` installs. Anything but a package of an index or an address is ``open``.

    Raises FileError if it is not a lock of PDM, or does not say where its packages are installed.
    """
    document = toml_document(text)
    metadata = table_in(document, "metadata")
    version = text_in(metadata, "lock_version")
    if not version:
        raise FileError("it is TOML, but not a pdm.lock")
    if is_before(version, *_OLDEST) or _STRATEGY not in texts_in(metadata, "strategy"):
        raise FileError(
            f"it does not record where its packages are installed: lock it with PDM 2.20 or newer and -S {_STRATEGY}"
        )
    main = (it for it in tables_in(document, "package") if _MAIN in texts_in(it, "groups") and "extras" not in it)
    found = ((_package(it), ways_of(text_in(it, "marker"))) for it in main)
    targets = [text_in(it, "requires_python") for it in tables_in(metadata, "targets")]
    return lock_of(
        (with_ways(entry, ways) for entry, ways in found if ways != NOWHERE),
        targets[0] if len(targets) == 1 else "",
    )


def _package(package: Table) -> Pin | Open:
    url = text_in(package, "url")
    pin = Pin(
        name_in(package),
        text_in(package, "version"),
        (),
        "",
        requires=tuple(_required(package)),
        requires_python=range_of(text_in(package, "requires_python")),
    )
    if "git" in package:
        git, commit = text_in(package, "git"), text_in(package, "revision")
        return repository(pin, git, commit, text_in(package, "subdirectory"))
    if any(it in package for it in _FOLDERS):
        return from_folder(pin.name)
    files = [file_in(it) for it in tables_in(package, "files")]
    return direct(pin, url, text_in(package, "subdirectory"), files) if url else files_in(pin, files)


def _required(package: Table) -> Iterator[str]:
    for line in texts_in(package, "dependencies"):
        try:
            yield parse_need(line).name
        except ValueError:
            raise FileError(f"{shown(line)} is not a requirement") from None
