"""CUDA's libraries as conda has them, each a package of its own: of which CUDA one is that a list of packages shows."""

from __future__ import annotations

from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.diagnose.case import Case
from envsolve.diagnose.facts.library_names import Span
from envsolve.diagnose.rules.named import known
from envsolve.model.versions import CudaVersion, parsed_version

_LABELS_SINCE = CudaVersion(11, 4)
"""From this CUDA on the channel nvidia has a label for each release: anaconda.org/nvidia."""


class _Part(NamedTuple):
    """A package of a CUDA library that a list of conda shows."""

    name: str
    version: str
    channel: str


def part_fields(case: Case, file: str, package: str, span: Span | None) -> dict[str, str]:
    """Fields on the conda package of the library ``file`` where it is of another CUDA than the framework.

    ``package`` is the one of pip, ``span`` the toolkits that the wanted file name is of.
    """
    part = next((it for it in _parts(case) if it.name == file.lower()), None)
    cuda = None if part is None else _cuda_of(case, package, part.version)
    wanted = _wanted(case)
    if part is None or cuda is None or cuda == wanted or (wanted is None and (span is None or cuda in span)):
        return {}
    return known(
        part=f"{part.name} {part.version}",
        part_name=part.name,
        part_channel=part.channel,
        part_cuda=str(cuda),
        part_wanted=str(span) if wanted is None else f"CUDA {wanted}",
        part_label=_label(case, wanted),
    )


def _parts(case: Case) -> tuple[_Part, ...]:
    lines = (it.split() for it in case.every("component"))
    return tuple(_Part(it[0].lower(), it[1], it[-1].partition("/")[0]) for it in lines)


def _cuda_of(case: Case, package: str, version: str) -> CudaVersion | None:
    """The toolkit that a version of a library belongs to; pip and conda count them alike."""
    if parsed_version(version) is None:
        return None
    names = (package, f"{package}-cu{version.partition('.')[0]}", f"{package}-cu11", f"{package}-cu12")
    exact = SpecifierSet(f"=={version}")
    found = {it for name in names for it in case.knowledge.matrix.components.toolkits_with(name, exact)}
    return found.pop() if len(found) == 1 else None


def _wanted(case: Case) -> CudaVersion | None:
    """The CUDA that the framework was built with: told by conda's metapackage, or its own."""
    told = ".".join(case.packages.get("pytorch-cuda", "").split(".")[:2])
    try:
        return CudaVersion.parse(told)
    except ValueError:
        return case.built_cuda


def _label(case: Case, wanted: CudaVersion | None) -> str | None:
    if wanted is None or wanted < _LABELS_SINCE:
        return None
    releases = [it.version for it in case.knowledge.matrix.components.releases if it.cuda == wanted]
    return str(max(releases)) if releases else None
