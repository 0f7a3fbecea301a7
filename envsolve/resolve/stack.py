"""From the resolver's result to a Solution: choices, libraries, the minimum driver, and the facts behind each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from packaging.version import Version

from envsolve.model.fact import Fact
from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.model.release import CudnnRelease, Release, Toolkit
from envsolve.model.request import Request
from envsolve.model.requester import Requester
from envsolve.model.solution import Choice, CudnnBound, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.catalogue import Catalogue, Libraries
from envsolve.resolve.parts import (
    CUDA,
    CUDNN,
    OWNER,
    PYTHON,
    Candidate,
    DriverFloor,
    Requirement,
    driver_identifier,
    framework_identifier,
)
from envsolve.resolve.preference import is_a_year_old

SHARED_DEPENDENCIES = "shared-dependencies"
"""The code of the note that dependencies of several frameworks' wheels may conflict, which a lock resolves."""


def solution_of(
    request: Request,
    problem: Problem,
    catalogue: Catalogue,
    chosen: Mapping[str, Candidate],
    requirements: Mapping[str, Sequence[Requirement]],
) -> Solution:
    """Return the stack of the chosen candidates, with every requirement that affected it as a fact."""
    releases = [chosen[framework_identifier(requested.framework)].thing for requested in problem.frameworks]
    choices = tuple(_choice(release, problem) for release in releases if isinstance(release, Release))
    python = chosen[PYTHON].thing
    toolkit = chosen[CUDA].thing if CUDA in chosen else None
    cudnn = chosen[CUDNN].thing if CUDNN in chosen else None
    assert isinstance(python, Version)
    assert toolkit is None or isinstance(toolkit, Toolkit)
    assert cudnn is None or isinstance(cudnn, CudnnRelease)
    minimum = _minimum_driver(requirements, problem)
    day = catalogue.day_of(request)
    return Solution(
        request=request,
        problem=problem,
        python=python,
        toolkit=toolkit,
        cudnn=cudnn,
        cudnn_bound=_cudnn_bound(cudnn, catalogue.libraries, problem),
        minimum_driver=minimum[0] if minimum else None,
        choices=choices,
        because=tuple(_because(choices, python, toolkit, cudnn, minimum[1] if minimum else None, requirements, day)),
        notes=tuple(_notes(choices, problem, request.requester)),
        owner=chosen[OWNER].thing if OWNER in chosen else None,  # type: ignore[arg-type]  # its only candidates
    )


def _minimum_driver(
    requirements: Mapping[str, Sequence[Requirement]], problem: Problem
) -> tuple[DriverVersion, Fact] | None:
    """The highest floor and its fact; of several machines, that of the one that requires the least.

    A floor may come from a machine's own GPU, so a higher one would not be true for the others. Windows drivers have
    different numbers, which count if all machines have them. Next to Linux machines, the numbers of WSL2 machines are
    ignored.
    """
    windows = all(machine.windows_driver for machine in problem.machines)
    highest = []
    for number, machine in enumerate(problem.machines):
        requested = requirements.get(driver_identifier(number), ())
        floors = [(it.limit.floor, it) for it in requested if isinstance(it.limit, DriverFloor)]
        if floors and machine.windows_driver is windows:
            highest.append(max(floors, key=lambda floor: floor[0].parts))
    floor, requirement = min(highest, key=lambda floor: floor[0].parts, default=(None, None))
    return None if floor is None or requirement is None else (floor, requirement.because)


def _cudnn_bound(cudnn: CudnnRelease | None, libraries: Libraries, problem: Problem) -> CudnnBound | None:
    if cudnn is None:
        return None
    newer = [
        release
        for release in libraries.cudnn
        if release.cuda_major == cudnn.cuda_major
        and release.version.major == cudnn.version.major
        and release.version > cudnn.version
    ]
    for release in sorted(newer, key=lambda release: release.version):
        serves = partial(libraries.cudnn_serves, release, platform=problem.platform)
        dropped = next((gpu for gpu in problem.gpus if not serves(gpu)), None)
        if dropped is not None:
            minor = f"{release.version.major}.{release.version.minor}"
            same_minor = release.version.release[:2] == cudnn.version.release[:2]
            return CudnnBound(str(release.version) if same_minor else minor, dropped)
    return CudnnBound(str(cudnn.version.major + 1), None)


def _choice(release: Release, problem: Problem) -> Choice:
    served = {gpu: runs_as for gpu in problem.gpus if release.cuda and (runs_as := release.code.runs_as(gpu))}
    return Choice(release=release, runs_as=served)


def _because(
    choices: Sequence[Choice],
    python: Version,
    toolkit: Toolkit | None,
    cudnn: CudnnRelease | None,
    driver: Fact | None,
    requirements: Mapping[str, Sequence[Requirement]],
    date: str,
) -> Iterator[Fact]:
    for choice in choices:
        for gpu, runs_as in choice.runs_as.items():
            text = f"{choice.release.label} has {runs_as}, which runs on compute capability {gpu}"
            yield Fact(text, choice.release.reference)
    for limit in requirements.get(CUDA, ()):
        yield limit.because
    if len(choices) > 1:
        for limit in requirements.get(OWNER, ()):
            yield limit.because
    if driver is not None:
        yield driver
    for limit in requirements.get(CUDNN, ()):
        yield limit.because
    if cudnn is not None and toolkit is not None:
        text = f"cuDNN {cudnn.version} has code for every GPU of the request"
        yield Fact(text, "; ".join(item.reference for item in cudnn.evidence))
    text = f"Python {python} is the newest that {_named(choices)} {'was' if len(choices) == 1 else 'were'} built for"
    text += passed_over(choices, python, date)
    requested = [limit for limit in requirements[PYTHON] if limit.because.source == "the request"]
    yield requested[0].because if requested else Fact(text, choices[0].release.reference)


def passed_over(choices: Sequence[Choice], python: Version, date: str) -> str:
    """The end of a sentence about the Python of a stack that mentions a newer one that is too young, or ""."""
    common = set.intersection(*(set(map(Version, it.release.pythons)) for it in choices))
    young = sorted(it for it in common if it > python and not is_a_year_old(it, date))
    return f"; {' and '.join(map(str, young))} is younger than a year" if young else ""


def _notes(choices: Sequence[Choice], problem: Problem, requester: Requester) -> Iterator[Note]:
    for choice in choices:
        compiled = [gpu for gpu, runs_as in choice.runs_as.items() if runs_as.startswith("compute_")]
        for gpu in compiled:
            text = (
                f"{choice.release.label} serves compute capability {gpu} through PTX: the driver compiles its kernels "
                "at the first start, which takes minutes"
            )
            note = Note("compiled-at-first-start", text)
            yield note.about(framework=choice.release.framework, compute_capability=str(gpu))
    if not problem.cpu and len(choices) > 1 and any(choice.release.source.is_wheel for choice in choices):
        yield Note(
            SHARED_DEPENDENCIES,
            "the wheels agree on CUDA, cuDNN and Python; pip resolves their other shared dependencies, above all NCCL, "
            "and may fail: conda-forge builds do not have this problem",
        )
    if len(problem.machines) > 1 and not any(machine.hosts for machine in problem.machines):
        gpus = sentence_list(machine.gpu_label(gpu) for machine in problem.machines for gpu, _ in machine.gpus)
        text = f"no driver supports {gpus} together: the stack is for machines with one of them each"
        yield Note("machines-apart", text)
    if not problem.cpu and not problem.gpus:
        naming = f"use {requester.name_of('gpus')} to check the kernels for a GPU"
        yield Note("gpu-unknown", f"no GPU is known, so only the driver was checked; {naming}")


def _named(choices: Sequence[Choice]) -> str:
    return sentence_list(f"{choice.release.framework} {choice.release.version}" for choice in choices)
