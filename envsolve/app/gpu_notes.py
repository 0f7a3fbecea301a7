"""What to know of the CUDA code in a Python lock that its wheels were not judged for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.request import Request
from envsolve.model.solution import Solution
from envsolve.resolve.closure.unknown_builds import goes_with_cuda


def gpu_notes(
    pins: Sequence[Pin], solution: Solution | None, request: Request, platform: Platform, matrix: Matrix
) -> Iterator[Note]:
    """Notes on ``pins``; ``solution`` is their stack, None without a framework."""
    if solution is None:
        yield from _not_judged(pins, request, platform, matrix)
    else:
        yield from _sources(pins, solution, matrix)


def _not_judged(pins: Sequence[Pin], request: Request, platform: Platform, matrix: Matrix) -> Iterator[Note]:
    """What has CUDA code, where a GPU or a driver was named and no framework says which CUDA the lock is for."""
    is_named = request.driver is not None or bool(request.hosts) or set(request.gpus) - {"auto", "none"}
    names = [
        it.name
        for it in (pins if is_named else ())
        if goes_with_cuda(it.name, it.requires) or any(of.need_cuda for of in matrix.build_facts(it.name, platform))
    ]
    if names:
        text = f"{', '.join(names)}: not checked for the GPU and the driver, as the lock has no framework"
        yield Note("not-verified", f"{text}; with -f the framework that they run beside is locked too")


def _sources(pins: Sequence[Pin], solution: Solution, matrix: Matrix) -> Iterator[Note]:
    """What is locked as source because wheels of other releases do not suit the GPU or the rest of the lock."""
    problem, cuda = solution.problem, None if solution.toolkit is None else solution.toolkit.version
    versions = {it.name: it.version for it in pins}
    for pin in pins:
        if cuda is None or not pin.files or pin.files[0].is_wheel or not pin.files[0].is_archive:
            continue
        others = [it for it in matrix.build_facts(pin.name, problem.platform) if not it.loss]
        reasons = [
            reason
            for it in others
            if not it.covers(pin.version)
            for gpu in (it.without_code_for(problem.gpus, cuda),)
            for reason in ([f"has no code for compute capability {gpu}"] if gpu is not None else it.unmet(versions))
        ]
        if reasons:
            text = f"{pin.name} {pin.version} is a source distribution: a wheel of another release {reasons[0]}"
            yield Note("source-for-gpu", text).about(name=pin.name)
