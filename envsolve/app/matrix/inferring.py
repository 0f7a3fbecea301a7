"""A release that the matrix does not have yet: its small files are read, and other facts are inferred from its lane.

For a package on a conda channel, the record replaces the small files. A lane is one build of a framework in all
releases: ``cu130`` of PyTorch's wheels for one platform. The newest known release of the lane shows which GPUs the next
one is most likely compiled for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.matrix.channel_releases import releases_on_channels
from envsolve.app.matrix.new_releases import NewReleases, Row, breaches, framework_document, inferred_row
from envsolve.app.packages.lock_indexes import Connection, places, settings_of
from envsolve.app.packages.requirements import read_requirements
from envsolve.app.request.network import Network
from envsolve.app.request.targets import platforms_of
from envsolve.conda.process import is_installed
from envsolve.errors import Hint, OutsideError
from envsolve.matrix.load import Matrix
from envsolve.matrix.overlay import Overlay
from envsolve.model.lock_format import CONDA_FORMATS
from envsolve.model.release import Source
from envsolve.model.request import Request
from envsolve.releases.reader import ReadEvidence, ReadRow
from envsolve.resolve.solver import source_groups

Completed = tuple[Row, tuple[ReadEvidence, ...]]
"""A row with inferred fields, and its evidence."""


def inferred(
    framework: str,
    versions: SpecifierSet,
    request: Request,
    matrix: Matrix,
    network: Network,
    environ: Mapping[str, str],
) -> tuple[Matrix | None, tuple[str, ...], tuple[Hint, ...]]:
    """``matrix`` with the newest release of ``framework`` in ``versions``; or None, the reasons, and hints."""
    sources = {source for group in source_groups(request) for source in group}
    platforms = platforms_of(request, matrix)
    rows: list[Completed] = []
    days: dict[str, str] = {}
    why: list[str] = []
    if any(it.is_wheel for it in sources):
        found, days = _on_indexes(framework, versions, request, matrix, network, environ, platforms, why)
        rows += _usable(framework, found, matrix, days, why)
    hints = (Hint("read its wheels", f"envsolve matrix update {framework}"),) if why else ()
    if Source.CONDA_FORGE in sources and (not rows or _is_of_conda(request)) and is_installed():
        try:
            found = releases_on_channels(framework, versions, request, platforms, matrix, network, environ)
            rows += _usable(framework, found, matrix, days, why)
        except OutsideError as error:
            why.append(f"whether a channel has {framework}{versions} is not known: {error.message}")
    if not rows:
        return None, tuple(dict.fromkeys(why)), hints
    return matrix.with_overlay(Overlay.of({framework: _document(framework, rows, matrix, days)})), (), ()


def _is_of_conda(request: Request) -> bool:
    """Whether channels come first, and py-rattler is needed in any case."""
    return request.format in CONDA_FORMATS or request.packages.exact


def _on_indexes(
    framework: str,
    versions: SpecifierSet,
    request: Request,
    matrix: Matrix,
    network: Network,
    environ: Mapping[str, str],
    platforms: Collection[str],
    why: list[str],
) -> tuple[list[ReadRow], dict[str, str]]:
    """The newest release on the indexes, from the small files of its wheels, and the dates of its versions."""
    settings, wanted = settings_of(environ), read_requirements(request.packages)
    where = places(request, wanted, settings)
    connection = Connection(network, settings, environ, builds=False)
    rows: list[ReadRow] = []
    days: dict[str, str] = {}
    try:
        new = NewReleases(matrix, connection, where, pytorch_index=request.packages.pytorch_index_url)
        for reader in new.readers_of(framework):
            try:
                published = new.published(reader)
            except OutsideError as error:
                why.append(f"whether an index has {framework}{versions} is not known: {error.message}")
                continue
            newest = _newest(published.versions, versions)
            found = new.read(published, newest, platforms)
            days |= found.days
            why += found.failures
            rows += found.rows
    finally:
        connection.close()
    return rows, days


def _newest(published: frozenset[Version], versions: SpecifierSet) -> list[Version]:
    """The newest version in ``versions``, in all its builds."""
    with_build = "+" in str(versions)
    found = [it for it in published if versions.contains(it if with_build else Version(it.public))]
    newest = max((Version(it.public) for it in found), default=None)
    return [it for it in found if Version(it.public) == newest]


def _usable(
    framework: str, read: Iterable[ReadRow], matrix: Matrix, days: Mapping[str, str], why: list[str]
) -> Iterator[Completed]:
    """The completed rows that obey the laws of the matrix. The reasons for leaving out others are added to ``why``."""
    rows: list[Completed] = []
    for it in read:
        row = inferred_row(framework, it, matrix)
        if isinstance(row, str):
            why.append(f"{_label(framework, it.values)}: {row}")
        else:
            rows.append((row, it.evidence))
    are_lawful = rows and not breaches({framework: _document(framework, rows, matrix, days)}, matrix)
    for completed in rows:
        against = [] if are_lawful else breaches({framework: _document(framework, [completed], matrix, days)}, matrix)
        if against:
            why.append(f"{_label(framework, completed[0])}: {against[0]}")
        else:
            yield completed


def _label(framework: str, row: Mapping[str, object]) -> str:
    return f"{framework} {row['version']} ({row['source']}, {row['build']})"


def _document(
    framework: str,
    rows: list[Completed],
    matrix: Matrix,
    days: Mapping[str, str],
) -> dict[str, object]:
    evidence = [it for _, of_row in rows for it in of_row]
    return framework_document(framework, matrix, [row for row, _ in rows], evidence, days)
