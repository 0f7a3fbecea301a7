"""What is known around a library that does not load: which CUDA is wanted and which is there, what wants and brings it.

The fields of this module are what the explanations of libraries speak of.
"""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.facts.library_names import Owner, Span, owner_of, stem_of
from envsolve.diagnose.facts.programs import advice_of, program_of, title_of
from envsolve.diagnose.facts.seen_libraries import library, toolkits, versions_built_for
from envsolve.model.versions import CudaVersion

_ONE_CUDA_A_VERSION = ("tensorflow", "onnxruntime")
"""Frameworks each version of which is built for one CUDA only: the library names the versions."""


def common_fields(
    case: Case, sightings: tuple[Sighting, ...], span: Span | None, *, stem: str = "cu"
) -> dict[str, str]:
    """Fields on what is wanted and what is known of the machine, for the explanation that comes first.

    ``stem`` begins the names of the libraries that it is about, where no line names one.
    """
    names = [library(it) for it in sightings if library(it)]
    found = {**program_fields(case, sightings), **_places(case, names, stem), **_machine(case, span)}
    if names:
        found["library"], found["stem"] = names[0], stem_of(names[0])
        found["all"] = ", ".join(dict.fromkeys(names))
    if span is not None:
        found["soname"] = f"the name of this library in {span}" + (
            "" if span.first == span.last else ": one soname for all of them"
        )
        if span.shortly is not None:
            found["wanted"] = span.shortly
        if span.first != span.last and names:
            found["one_name"] = names[0]
    found |= _built(case, program_of(case, sightings), span)
    packages = packages_for(case, names, span)
    if packages:
        found["packages"] = packages
    elif _in_conda(case) and span is not None and span.first == span.last:
        found["advice"] = ""
        found["conda_pin"] = (
            f"cudatoolkit={span.last}" if span.last.major < _WITH_PARTS else f"cuda-version={span.last}"
        )
    return found


def _in_conda(case: Case) -> bool:
    """Whether the libraries come from conda."""
    return case.told("conda") is not None or "cudatoolkit" in case.packages


_WITH_PARTS = 12
"""The first CUDA that conda has in parts, with cuda-version in place of cudatoolkit."""


def program_fields(case: Case, sightings: tuple[Sighting, ...]) -> dict[str, str]:
    """What wants the library; where that is not the framework of the case, its version says nothing here."""
    program = program_of(case, sightings)
    found: dict[str, str] = {}
    title, advice = title_of(program), advice_of(program)
    if title is not None:
        found["program"] = found["framework"] = title
    if program in TITLES:
        found["name"] = program
    if advice is not None:
        found["advice"] = advice
    found |= _built_by_name(case)
    if program != case.framework:
        found |= {"version": "", "built_cuda": ""}
        version = case.version_of(program)
        if version:
            found["version"] = version
    return found


def _built_by_name(case: Case) -> dict[str, str]:
    """The CUDA that a package has in its name: mxnet-cu92 is for 9.2, cuml-cu12 for all of 12."""
    for it in case.of("program-named"):
        package, digits = it.get("built"), it.get("digits")
        if package is not None and digits is not None:
            whole = int(digits) in range(10, 20)
            cuda = digits if whole else f"{digits[:-1]}.{digits[-1]}"
            return {"build_of": f"{package} is the build for CUDA {cuda}: it needs the libraries of CUDA {cuda}."}
    return {}


def packages_for(case: Case, names: Sequence[str], span: Span | None) -> str | None:
    """The packages that bring the libraries, for the CUDA major that is wanted: of pip, and of conda-forge."""
    major = None if span is None or span.first.major != span.last.major else str(span.last.major)
    if major is None and case.built_cuda is not None:
        major = str(case.built_cuda.major)
    known = case.knowledge.libraries
    pip = dict.fromkeys(it for name in names for it in known.packages(name, conda=False, cuda_major=major))
    conda = dict.fromkeys(it for name in names for it in known.packages(name, conda=True, cuda_major=major))
    if span is not None and span.last < _FIRST_OF_CONDA_FORGE:
        conda = {}
    parts = []
    if pip:
        parts.append("pip: " + " ".join(_pinned(it, major) for it in pip))
    if conda:
        parts.append(f"conda-forge: {' '.join(_conda(it, span, case) for it in conda)}")
    return "; ".join(parts) or None


_FIRST_OF_CONDA_FORGE = CudaVersion(10, 1)
"""conda-forge has no cudatoolkit before: github.com/conda-forge/cudatoolkit-feedstock."""


def _pinned(package: str, major: str | None) -> str:
    """NVIDIA's packages have their CUDA in the name up to 12; from 13 on the version counts."""
    by_version = major is not None and int(major) >= _WITHOUT_SUFFIX and not package.endswith(f"-cu{major}")
    return f"'{package}=={major}.*'" if by_version and package in _OF_THE_TOOLKIT else package


_WITHOUT_SUFFIX = 13
_OF_THE_TOOLKIT = frozenset({"nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-cupti", "nvidia-nvjitlink"})
"""Packages of CUDA 13 that count as the toolkit does; cuBLAS and others have versions of their own."""


def _conda(package: str, span: Span | None, case: Case) -> str:
    if package != "cudatoolkit":
        return package if span is None else f"{package} cuda-version={span.last.major}"
    cuda = case.built_cuda if span is not None and case.built_cuda in span else None if span is None else span.last
    return package if cuda is None else f"cudatoolkit={cuda}"


def _built(case: Case, program: str | None, span: Span | None) -> dict[str, str]:
    """What the program's builds are for, as far as the matrix has them."""
    found: dict[str, str] = {}
    if program is not None and program in _ONE_CUDA_A_VERSION and span is not None:
        versions = versions_built_for(case, program, lambda cuda: cuda in span)
        if versions is not None:
            found["built_versions"] = f"{title_of(program)} {versions}"
        there = [it for it in toolkits(case) if it not in span]
        fitting = versions_built_for(case, program, lambda cuda: any(_same_names(cuda, it) for it in there))
        if fitting is not None:
            found["fitting_versions"] = f"{title_of(program)} {fitting}"
    if program != case.framework:
        return found
    releases = case.releases()
    cudnns = {str(it.cudnn) for it in releases if it.cudnn is not None}
    if len(cudnns) == 1:
        found["built_cudnn"] = cudnns.pop()
    if span is not None and case.built_cuda is not None and case.built_cuda not in span:
        found |= {"built_cuda": "", "official_cuda": str(case.built_cuda)}
    return found


def _same_names(one: CudaVersion, other: CudaVersion) -> bool:
    """Whether two toolkits have the same file names: from 11.1 on those of one major, before of one minor."""
    return one == other or (one.major == other.major and min(one, other) >= CudaVersion(11, 1))


def _machine(case: Case, span: Span | None) -> dict[str, str]:
    """Sentences on the machine that belong to missing libraries."""
    found: dict[str, str] = {}
    newest = span.last if span is not None else case.built_cuda
    first = case.knowledge.cuda_for(case.capability) if case.capability is not None else None
    if newest is not None and first is not None and newest < first[0]:
        found["gpu_needs"] = (
            f"The GPU has compute capability {case.capability}, for which CUDA {first[0]} is the first: a build for "
            f"CUDA {newest} could not use it anyway, so take one for CUDA {first[0]} or newer."
        )
        found["gpu_cuda"] = str(first[0])
    if case.told("driver_cuda") is not None:
        found["smi"] = str(case.driver_cuda)
    if case.container:
        found["container"] = "container"
    if any(owner_of(library(it)) is Owner.DRIVER for it in case.of("library-missing")):
        found["no_driver"] = "libcuda.so.1"
    searched = case.told("ld_library_path")
    if searched is not None and "/" in searched:
        found["searched"] = searched
    elif not case.windows and any(
        "dso_loader" in it.line and "dlerror" in it.line for it in case.of("library-missing")
    ):
        found["unset"] = "LD_LIBRARY_PATH"
    if case.windows or case.platform is None:
        found["windows"] = "On Windows"
    if not case.windows:
        found["linux"], found["clear"] = "On Linux", "unset LD_LIBRARY_PATH"
    there = toolkits(case)
    found["toolkit"] = str(there[0]) if there else ""
    return found


def _places(case: Case, names: Sequence[str], stem: str) -> dict[str, str]:
    """The command that looks for a library by the beginning of its name."""
    stem = stem_of(names[0]) if names else stem
    if case.windows or any(name.lower().endswith(".dll") for name in names):
        return {"find": f"where /R C:\\ {stem}*.dll"}
    return {"find": f"find / -name 'lib{stem}*' 2>/dev/null"}
