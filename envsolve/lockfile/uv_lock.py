"""``uv.lock``: the lock of a project of uv. The markers of a package are those of the dependencies that lead to it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import parse_qs

from envsolve.boundary.files import FileError, toml_document
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.marker_ways import ANYWHERE, NOWHERE, Ways, both, either, implies, ways_of
from envsolve.lockfile.project_lock import (
    Table,
    direct,
    file_in,
    files_in,
    from_folder,
    lock_of,
    name_in,
    repository,
    table_in,
    tables_in,
    text_in,
    texts_in,
    with_ways,
)
from envsolve.lockfile.text_file import shown
from envsolve.model.names import normalized
from envsolve.model.package import Pin

_LOCAL = ("editable", "virtual")
_HERE = "."
_MOST_STEPS = 100_000
"""Comparisons of ways. A lock of 400 packages takes about 2000."""


class _Node(NamedTuple):
    """A package by its position in the file, with one of its extras, "" for its requirements without any."""

    place: int
    extra: str = ""


class _Edge(NamedTuple):
    """What a package or an extra requires, and where."""

    required: _Node
    ways: Ways


def read(text: str) -> Lock:
    """Return what ``uv sync --no-dev`` installs. Anything but a package of an index or an address is ``open``.

    Raises FileError if it is not a lock of uv.
    """
    document = toml_document(text)
    if document.get("version") != 1 or "requires-python" not in document:
        raise FileError("it is not a uv.lock of version 1")
    packages = tables_in(document, "package")
    own = _own(packages, texts_in(table_in(document, "manifest"), "members"))
    supported = [ways_of(it) for it in texts_in(document, "supported-markers")]
    anywhere = NOWHERE if supported else ANYWHERE
    for ways in supported:
        anywhere = either(anywhere, ways)
    where = _reached(packages, own, anywhere)
    return lock_of(
        (with_ways(_package(packages[it]), where[it]) for it in sorted(where) if it not in own),
        text_in(document, "requires-python"),
    )


def _own(packages: list[Table], members: list[str]) -> frozenset[int]:
    """The positions of the project, or of all members of a workspace that has no project itself. Raises FileError."""
    names = {normalized(it) for it in members}
    local = [
        (place, [text_in(source, kind) for kind in _LOCAL])
        for place, source in enumerate(table_in(package, "source") for package in packages)
        if any(kind in source for kind in _LOCAL)
    ]
    own = frozenset(place for place, folders in local if _HERE in folders)
    own = own or frozenset(place for place, _ in local if name_in(packages[place]) in names)
    if not own:
        raise FileError("it does not record which package is the project (like the lock of a script)")
    return own


def _reached(packages: list[Table], own: frozenset[int], anywhere: Ways) -> dict[int, Ways]:
    """The positions of the installed packages, and where: in any of the ways that lead there from ``own``."""
    edges = _edges(packages)
    where: dict[_Node, Ways] = {_Node(place): anywhere for place in own}
    waiting = deque(where)
    steps = 0
    while waiting:
        node = waiting.popleft()
        for edge in edges.get(node, ()):
            ways, known = both(where[node], edge.ways), where.get(edge.required, NOWHERE)
            steps += max(1, len(ways) * len(known))
            if steps > _MOST_STEPS:
                raise FileError("its dependencies have too many cycles")
            if not implies(ways, known):
                where[edge.required] = either(known, ways)
                waiting.append(edge.required)
    return {node.place: ways for node, ways in where.items() if not node.extra and ways != NOWHERE}


def _edges(packages: list[Table]) -> dict[_Node, list[_Edge]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, package in enumerate(packages):
        places[name_in(package)].append(place)
    edges: dict[_Node, list[_Edge]] = {}
    for place, package in enumerate(packages):
        extras = table_in(package, "optional-dependencies")
        needed = {"": tables_in(package, "dependencies"), **{it: tables_in(extras, it) for it in extras}}
        for extra, required in needed.items():
            edges[_Node(place, extra)] = [edge for it in required for edge in _edges_to(it, packages, places)]
    return edges


def _edges_to(required: Table, packages: list[Table], places: dict[str, list[int]]) -> Iterator[_Edge]:
    """The edges to a package and its extras. The entry has version and source if the name is ambiguous."""
    name, ways = name_in(required), ways_of(text_in(required, "marker"))
    named = {key: required[key] for key in ("version", "source") if key in required}
    found = [it for it in places[name] if all(packages[it].get(key) == value for key, value in named.items())]
    if len(found) != 1:
        raise FileError(f"it requires {shown(name)}, of which it has {'several' if found else 'none that fits'}")
    for extra in ("", *texts_in(required, "extra")):
        yield _Edge(_Node(found[0], extra), ways)


def _package(package: Table) -> Pin | Open:
    source = table_in(package, "source")
    index, url, git = (text_in(source, key) for key in ("registry", "url", "git"))
    pin = Pin(
        name_in(package),
        text_in(package, "version"),
        (),
        without_secrets(index).rstrip("/"),
        requires=tuple(name_in(it) for it in tables_in(package, "dependencies")),
    )
    sdist = [table_in(package, "sdist")] if "sdist" in package else []
    files = [file_in(it, url) for it in (*tables_in(package, "wheels"), *sdist)]
    if url:
        return direct(pin, url, text_in(source, "subdirectory"), files)
    if git:
        address, _, commit = git.partition("#")
        address, _, query = address.partition("?")
        return repository(pin, address, commit, "".join(parse_qs(query).get("subdirectory", [])))
    if "://" not in index:
        return from_folder(pin.name)
    return files_in(pin, files)
