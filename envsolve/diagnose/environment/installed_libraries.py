"""Facts from the libraries of an installed package whose build the matrix does not know."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from envsolve.binary.package_facts import facts_in
from envsolve.boundary.files import open_regular
from envsolve.diagnose.environment.metadata import Package, Packages
from envsolve.matrix import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.resolve.closure.unknown_builds import is_about_cuda

_BUDGET = 2_000_000_000
"""Limit in bytes for the libraries of one package: a few seconds."""
_CHUNK = 1 << 20


def facts_of_installed(package: Package, packages: Packages, platform: Platform, matrix: Matrix) -> BuildFacts | None:
    """What ``package`` needs beyond its metadata, from the bytes of its libraries.

    None if it does not use CUDA, if that is unknown, and if a file cannot be read.
    """
    requires = set(_required(package))
    if not is_about_cuda(package.name, requires):
        return None
    sizes = {row.path: row.size or 0 for row in packages.record(package) or ()}

    def chunks(name: str) -> Iterator[bytes]:
        with open_regular(package.location / name) as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    try:
        found = facts_in(sizes, chunks, _BUDGET)
    except (OSError, ValueError):  # # missing and damaged files have findings of their own
        return None
    evidence = Evidence(EvidenceKind.WHEEL, f"the libraries of {package.label} in {package.location}", "")
    torch = matrix.torch_for(found.torch, platform)
    return found.build_facts(package.name, package.version, requires, evidence, torch)


def _required(package: Package) -> Iterator[str]:
    """The packages that it requires without extras."""
    for text in package.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None or "extra" not in str(requirement.marker):
            yield normalized(requirement.name)
