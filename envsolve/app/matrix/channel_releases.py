"""Releases on conda channels that the matrix does not have, as rows made from their records.

A record names Python, CUDA, cuDNN and the C library. It does not say which GPUs the libraries are compiled for; only
the installed package could show that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.matrix.new_releases import Row, rows_in
from envsolve.app.packages.conda_sessions import conda_session
from envsolve.app.request.network import Network
from envsolve.conda.session import Listed
from envsolve.conda.specs import specifier_of
from envsolve.lockfile.conda_specs import with_conda_forge
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import Request
from envsolve.model.versions import parsed_version
from envsolve.releases.reader import KEY, ReadEvidence, ReadRow, Value

_LANE = re.compile(r"(cpu|cuda(\d\d)(\d))(?![0-9])")
"""The start of conda-forge's build strings: ``cuda130_mkl_py312_h01234ab_300``."""
_PYTHON = re.compile(r"python_abi (\d\.\d+)\.\*")
_OF_ALPHAS = re.compile(r"(\.0)*a0\Z")
"""The end of conda-forge's upper bounds, which excludes pre-releases: ``<10.0a0``."""
_CUDNN = ("cudnn", "libcudnn")


def releases_on_channels(
    framework: str,
    versions: SpecifierSet,
    request: Request,
    platforms: Iterable[Platform],
    matrix: Matrix,
    network: Network,
    environ: Mapping[str, str],
) -> list[ReadRow]:
    """The newest release in ``versions`` for each platform, in all its builds. Raises OutsideError."""
    channels = with_conda_forge(request.channels)
    rows: list[ReadRow] = []
    with conda_session(network, request.channels, tuple(platforms), environ) as session:
        for platform in platforms:
            lane = _newest_row(framework, platform, matrix)
            if lane is not None:
                package = str(lane["package"])
                listed = session.packages(channels, platform, (package,)).get(package, ())
                rows += _rows(lane, _newest(listed, versions))
    return rows


def _newest_row(framework: str, platform: Platform, matrix: Matrix) -> Row | None:
    """The newest row of conda-forge, with the names of the package and its companions."""
    own = (it for it in rows_in(matrix, framework) if it["source"] == Source.CONDA_FORGE and it["platform"] == platform)
    return max(own, key=lambda it: Version(str(it["version"])), default=None)


def _newest(listed: Iterable[Listed], versions: SpecifierSet) -> Sequence[Listed]:
    known = [(version, it) for it in listed if (version := parsed_version(it.version)) is not None]
    newest = max((version for version, _ in known if versions.contains(version)), default=None)
    return [it for version, it in known if version == newest]


def _rows(lane: Row, records: Sequence[Listed]) -> Iterator[ReadRow]:
    """A row for each build of one release, from the records for its Pythons."""
    by_build: dict[str, list[Listed]] = {}
    for it in records:
        found = _LANE.match(it.build)
        if found is not None:
            by_build.setdefault(found[1], []).append(it)
    for build, same in by_build.items():
        version = same[0].version
        name = f"{lane['package']}-{version}-{build}-{lane['platform']}".replace(".", "-")
        evidence = ReadEvidence(name, f"channel records of {lane['package']} {version} {build}*", None, "recipe")
        values: dict[str, Value] = {**{key: str(lane[key]) for key in KEY}, "version": version, "build": build}
        yield ReadRow({**values, **_facts(lane, build, same)}, {}, (evidence,))


def _facts(lane: Row, build: str, records: Sequence[Listed]) -> dict[str, Value]:
    """The facts in all records of one build."""
    pythons = {found[1] for it in records for spec in it.depends if (found := _PYTHON.match(spec))}
    needs = {name: versions for spec in records[0].depends for name, _, versions in (spec.partition(" "),)}
    facts: dict[str, Value] = {"pythons": sorted(pythons, key=Version)}
    glibc = re.match(r">=(\d+\.\d+)", needs.get("__glibc", ""))
    if glibc is not None:
        facts["glibc"] = glibc[1]
    companions = lane.get("companions")
    if isinstance(companions, dict):
        facts["companions"] = {
            name: str(versions).replace(str(lane["version"]), records[0].version)
            for name, versions in companions.items()
        }
    cuda = _LANE.match(build)
    if cuda is None or cuda[2] is None:
        return facts
    facts["cuda"] = f"{cuda[2]}.{cuda[3]}"
    if needs.get("cuda-version"):
        facts["cuda_requires"] = _bounds(needs["cuda-version"])
    for name in _CUDNN:
        if needs.get(name):
            facts |= {"cudnn_package": name, "cudnn_requires": _bounds(needs[name])}
    return facts


def _bounds(versions: str) -> str:
    """``>=9.10.2.21,<10.0a0`` in the matrix's form: ``>=9.10.2.21,<10``."""
    bounds = ",".join(_OF_ALPHAS.sub("", it) for it in versions.partition(" ")[0].split(","))
    found = specifier_of(bounds)
    return bounds if found is None else ",".join(sorted(map(str, found), reverse=True))
