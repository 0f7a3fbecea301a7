"""What a lock needs from a machine and what it installs, as far as its packages and the matrix say.

This works for locks of all tools. Unknown values come with a reason; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.packages.audit import read_for, with_read
from envsolve.app.status.download_size import download_size
from envsolve.app.status.lock_verdict import Alone, against_cudnn, facts_in, have_code
from envsolve.app.status.locked_stack import LockedStack, framework_of, is_for_the_cpu
from envsolve.lockfile.lock import Lock, Stack
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import Request
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import CudaVersion, DriverVersion

if TYPE_CHECKING:
    from envsolve import documents

OF_GPU = ("driver_floor", "compute_capabilities", "cuda", "cudnn")
"""The fields for what a lock needs of GPU and driver."""
_RUNTIME = "nvidia-cuda-runtime"
"""The wheel whose version is that of CUDA. For CUDA 12 and older, its name ends with the major version."""


class Build(NamedTuple):
    """A framework in a lock: its name in envsolve, its version, and its build; "" if the matrix does not have it."""

    framework: str
    version: str
    build: str

    def __str__(self) -> str:
        return f"{self.version} ({self.build})" if self.build else self.version


class Summary(NamedTuple):
    """What a lock needs and installs on one platform.

    ``driver_floor`` is the oldest NVIDIA driver that works for some GPU; ``compute_capabilities`` are those that the
    lock supports. ``python`` is a minor version, or the range in another tool's lock. ``download_size`` is in bytes.
    Without CUDA there are no capabilities, and ``cuda``, ``cudnn`` and ``driver_floor`` are None. An unknown field is
    None, too; ``unknown`` has the reason under its name.
    """

    frameworks: tuple[Build, ...] = ()
    driver_floor: str | None = None
    compute_capabilities: tuple[str, ...] | None = ()
    cuda: str | None = None
    cudnn: str | None = None
    python: str | None = None
    download_size: int | None = None
    unknown: Mapping[str, str] = {}

    @property
    def cuda_major(self) -> str | None:
        """The major version of CUDA."""
        return None if self.cuda is None else self.cuda.partition(".")[0]

    def of_gpu_as_json(self) -> documents.NeedsOfGpu:
        """The needs of GPU and driver, for JSON."""
        found = self.as_json()
        return {
            "driver_floor": found["driver_floor"],
            "compute_capabilities": found["compute_capabilities"],
            "cuda": found["cuda"],
            "cudnn": found["cudnn"],
        }

    def as_json(self) -> documents.Summary:
        """The summary, for JSON."""
        capabilities = self.compute_capabilities
        return {
            "frameworks": [
                {"framework": it.framework, "version": it.version, "build": it.build} for it in self.frameworks
            ],
            "driver_floor": self.driver_floor,
            "compute_capabilities": None if capabilities is None else list(capabilities),
            "cuda": self.cuda,
            "cudnn": self.cudnn,
            "python": self.python,
            "download_size": self.download_size,
            "unknown": dict(self.unknown),
        }


def summary_of(
    stack: LockedStack, platform: Platform, matrix: Matrix, environ: Mapping[str, str], python: str
) -> Summary:
    """What the lock of ``stack`` needs and installs on ``platform``.

    ``python`` is the minor version whose files count for the download size if the lock supports several.
    """
    matrix = with_read(matrix, read_for(stack.lock, matrix, environ), platform)
    known = Summary(tuple(_builds(stack)), python=stack.python or stack.lock.requires_python or None)
    unknown = {} if known.python else {"python": "the file does not record it"}
    size = download_size(stack.lock, platform, python)
    if size is None:
        unknown["download_size"] = "the file does not record the size of every package"
    known = known._replace(download_size=size)
    of_gpu, more = _of_gpu(stack, platform, matrix, known)
    return of_gpu._replace(unknown=unknown | more)


def needs_of(stack: LockedStack, platform: Platform, matrix: Matrix) -> Summary:
    """The part of the summary of ``stack`` on ``platform`` about GPU and driver.

    ``matrix`` must include the facts read from its wheels.
    """
    found, unknown = _of_gpu(stack, platform, matrix, Summary())
    return found._replace(unknown=unknown)


def with_recorded_floors(summaries: tuple[Summary, Summary], locks: Iterable[Lock | None]) -> tuple[Summary, Summary]:
    """The summaries with the driver floors that envsolve recorded for the GPUs of the lock, if both locks have them.

    Some GPUs need a newer driver than CUDA does.
    """
    stacks = [None if lock is None else _recorded(lock) for lock in locks]
    floors = [None if stack is None else stack.minimum_driver for stack in stacks]
    if None in floors:
        return summaries
    known = [{name: it.unknown[name] for name in it.unknown if name != "driver_floor"} for it in summaries]
    before, after = (
        it._replace(driver_floor=floor, unknown=unknown)
        for it, floor, unknown in zip(summaries, floors, known, strict=True)
    )
    return before, after


def _recorded(lock: Lock) -> Stack | None:
    """The stack that envsolve recorded in a lock; None if its packages were changed since."""
    is_same = lock.made is not None and lock.made.packages_digest == lock.packages_digest
    return lock.stack if is_same else None


def _builds(stack: LockedStack) -> Iterator[Build]:
    for it in stack.named:
        rows = stack.releases[str(framework_of(it))]
        names = " or ".join(dict.fromkeys(row.build for row in rows))
        build = ", ".join((*dict.fromkeys(row.source.value for row in rows), names))
        if not rows:
            build = "CPU build" if is_for_the_cpu(it, stack.lock.stack) else ""
        yield Build(str(framework_of(it)), it.version.partition("+")[0], build)


def _of_gpu(stack: LockedStack, platform: Platform, matrix: Matrix, known: Summary) -> tuple[Summary, dict[str, str]]:
    """What the lock needs of driver and GPU, and why some values are unknown."""
    builds = {name: rows for name, rows in stack.releases.items() if any(row.cuda is not None for row in rows)}
    cuda, floor = _cuda_of_packages(stack), None
    reason = "; ".join(_gaps(stack))
    if not builds and not reason and cuda is None:
        return known, {}
    problem = Problem((), platform, (Machine(None, (), None, windows_driver=platform.is_windows),), False, None, None)
    if builds and not reason:
        alone = Alone(stack._replace(releases=builds), Request(frameworks=()), matrix)
        solution = alone.solution(problem)
        if solution is not None and solution.toolkit is not None:
            cuda, floor = solution.toolkit.version, solution.minimum_driver
            known = known._replace(compute_capabilities=tuple(_capabilities(alone, stack, problem, matrix)))
        else:
            reason = "; ".join(alone.reasons(problem))
    elif not builds and not reason:
        reason = "no framework in the file uses a GPU"
    floors = [floor, *_floors(stack, cuda if floor is None else None, platform, matrix)]
    floor = max(filter(None, floors), key=lambda it: it.parts, default=None)
    known = known._replace(cuda=cuda and str(cuda), driver_floor=floor and str(floor))
    known = known._replace(cudnn=_cudnn(stack), compute_capabilities=None if reason else known.compute_capabilities)
    unknown = {name: reason for name in OF_GPU if reason and getattr(known, name) is None}
    uses_cudnn = any(row.cudnn or row.cudnn_requires for rows in builds.values() for row in rows)
    if known.cudnn is None and not reason and uses_cudnn:
        unknown["cudnn"] = "the file does not pin it"
    return known, unknown


def _gaps(stack: LockedStack) -> Iterator[str]:
    """Why it is unknown which builds of frameworks the lock installs."""
    named = [it for it in stack.named if not stack.releases[str(framework_of(it))]]
    missing = [f"{it.name} {it.version}" for it in named if not is_for_the_cpu(it, stack.lock.stack)]
    if missing:
        yield f"the matrix does not have {' and '.join(missing)}"
    if stack.unpinned:
        yield f"the file does not pin {' and '.join(stack.unpinned)}"
    for name, rows in stack.releases.items():
        if len({(row.cuda, row.code) for row in rows}) > 1:
            yield f"the file does not say which build of {name} it installs"


def _cuda_of_packages(stack: LockedStack) -> CudaVersion | None:
    """The CUDA version of the packages next to the frameworks: of conda's packages or the wheel with the runtime.

    If there are none, the version that envsolve recorded, unless packages were changed since.
    """
    names = (_RUNTIME, *(f"{_RUNTIME}-cu{major}" for major in (11, 12)))
    found = stack.cuda or next((pin.version for pin in stack.pins if pin.name in names), None)
    recorded = _recorded(stack.lock)
    if found is None and recorded is not None:
        found = recorded.cuda
    try:
        return None if found is None else CudaVersion.parse(found)
    except ValueError:
        return None


def _floors(
    stack: LockedStack, cuda: CudaVersion | None, platform: Platform, matrix: Matrix
) -> Iterator[DriverVersion]:
    """The driver floors of ``cuda`` and of the CUDA runtimes that are linked into packages."""
    majors = {it.linked_cuda for _, it in facts_in(stack, platform, matrix) if it.linked_cuda is not None}
    wanted = {cuda, *(CudaVersion(major, 0) for major in majors)}
    yield from (it.floor(windows=platform.is_windows) for it in matrix.cuda.toolkits if it.version in wanted)


def _cudnn(stack: LockedStack) -> str | None:
    if stack.cudnn is not None:
        return str(stack.cudnn)
    inside = {row.cudnn for rows in stack.releases.values() for row in rows if row.brings_cudnn and row.cudnn}
    return str(max(inside)) if len(inside) == 1 else None


def _capabilities(alone: Alone, stack: LockedStack, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """The compute capabilities of server and desktop GPUs that all packages of the lock have code for."""
    for life in sorted(matrix.cuda.architectures, key=lambda it: it.capability):
        machine = problem.machines[0]._replace(gpus=((life.capability, ""),))
        there = problem._replace(machines=(machine,))
        if life.is_jetson or any(against_cudnn(stack, there, matrix)) or not have_code(stack, there, matrix):
            continue
        if alone.solution(there) is not None:
            yield str(life.capability)
