"""A release that the matrix does not know yet: its small files are read, and the rest is inferred from its lane.

A lane is one build of a framework, release after release: ``cu130`` of PyTorch's wheels for one platform. Its newest
known release shows what the GPU code of the next one is most likely compiled for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.asked_packages import given
from envsolve.app.lock_indexes import Lines, places, settings_of
from envsolve.app.network import Network
from envsolve.app.new_releases import NewReleases, Row, breaches, framework_document, inferred_row
from envsolve.app.targets import platforms_of
from envsolve.errors import OutsideError
from envsolve.matrix.load import Matrix
from envsolve.matrix.overlay import Overlay
from envsolve.model.request import Request
from envsolve.releases.reader import ReadEvidence, ReadRow


def inferred(
    framework: str,
    versions: SpecifierSet,
    request: Request,
    matrix: Matrix,
    network: Network,
    environ: Mapping[str, str],
) -> tuple[Matrix | None, tuple[str, ...]]:
    """``matrix`` with the newest release of ``framework`` in ``versions``; None, and why, where that is not to be."""
    settings, wanted = settings_of(environ), given(request.packages)
    where = places(request, wanted, settings)
    lines = Lines(network, settings, environ, builds=False)
    rows: list[tuple[Row, tuple[ReadEvidence, ...]]] = []
    days: dict[str, str] = {}
    why: list[str] = []
    try:
        new = NewReleases(matrix, lines, where, pytorch_index=request.packages.pytorch_index_url)
        for reader in new.readers_of(framework):
            try:
                published = new.published(reader)
            except OutsideError as error:
                why.append(f"whether an index has {framework}{versions} is not known: {error.message}")
                continue
            newest = _newest(published.versions, versions)
            found = new.read(published, newest, {it.value for it in platforms_of(request, matrix)})
            days |= found.days
            why += found.failures
            rows += _usable(framework, found.rows, matrix, days, why)
    finally:
        lines.close()
    if not rows:
        return None, tuple(dict.fromkeys(why))
    return matrix.with_overlay(Overlay.of({framework: _document(framework, rows, matrix, days)})), ()


def _newest(published: frozenset[Version], versions: SpecifierSet) -> list[Version]:
    """The newest version in ``versions``, in all its builds."""
    with_build = "+" in str(versions)
    found = [it for it in published if versions.contains(it if with_build else Version(it.public))]
    newest = max((Version(it.public) for it in found), default=None)
    return [it for it in found if Version(it.public) == newest]


def _usable(
    framework: str, read: tuple[ReadRow, ...], matrix: Matrix, days: Mapping[str, str], why: list[str]
) -> Iterator[tuple[Row, tuple[ReadEvidence, ...]]]:
    """The rows that keep the laws of the matrix, completed; of the others ``why`` gets the reason."""
    for it in read:
        row = inferred_row(framework, it, matrix)
        label = f"{framework} {it.values['version']} ({it.values['source']}, {it.values['build']})"
        if isinstance(row, str):
            why.append(f"{label}: {row}")
            continue
        against = breaches({framework: _document(framework, [(row, it.evidence)], matrix, days)}, matrix)
        if against:
            why.append(f"{label}: {against[0]}")
        else:
            yield row, it.evidence


def _document(
    framework: str,
    rows: list[tuple[Row, tuple[ReadEvidence, ...]]],
    matrix: Matrix,
    days: Mapping[str, str],
) -> dict[str, object]:
    evidence = [it for _, of_row in rows for it in of_row]
    return framework_document(framework, matrix, [row for row, _ in rows], evidence, days)
