"""Which of several stacks that all run is the better one. Smaller keys are tried first.

A build of a framework, in order:

1. the sources the user named, in the user's order
2. the newest release
3. machine code for every GPU before PTX that the driver must compile
4. a CUDA that every driver supports in full before one it only runs under minor-version compatibility
5. the newest CUDA
6. the default wheel of the Python index before a variant of PyTorch's own
7. one for more Pythons, then by name

The toolkit of the environment, in order:

1. one that compiles for every GPU (its libraries hold machine code for them)
2. one that every driver supports in full
3. the one a framework was built with
4. the newest
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from packaging.version import Version

from envsolve.matrix.load import CudaTable
from envsolve.model.capability import CodeTarget, DeviceCode
from envsolve.model.release import Release, Source, Toolkit
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import CudaVersion, DriverVersion

_SOURCES = tuple(Source)


class Preference:
    """Sort keys for one problem; ``ranked`` sources come first in their order."""

    def __init__(self, problem: Problem, cuda: CudaTable, ranked: Sequence[Source]) -> None:
        self._problem = problem
        self._toolkits = {toolkit.version: toolkit for toolkit in cuda.toolkits}
        self._ranked = tuple(ranked)
        self._gpus = {gpu for machine in problem.machines for gpu, _ in machine.gpus}

    def of_release(self, release: Release) -> tuple[object, ...]:
        """The key of a framework build."""
        return (
            self._ranked.index(release.source) if self._ranked else 0,
            _Newest(release.version),
            not all(release.code.machine_code_for(gpu) for gpu in self._gpus),
            release.cuda is not None and not self.supported_in_full(release.cuda),
            _oldest_last(release.cuda),
            _SOURCES.index(release.source),
            -len(release.pythons),
            release.build,
            release.package,
        )

    def of_toolkit(self, toolkit: Toolkit, built: Collection[CudaVersion | None]) -> tuple[object, ...]:
        """The key of a toolkit, given those that the chosen frameworks were built with."""
        code = DeviceCode(tuple(CodeTarget(capability) for capability in toolkit.compiles_for))
        return (
            not all(code.machine_code_for(gpu) for gpu in self._gpus),
            not self.supported_in_full(toolkit.version),
            toolkit.version not in built,
            _oldest_last(toolkit.version),
        )

    def supported_in_full(self, cuda: CudaVersion) -> bool:
        """Whether every machine's driver supports ``cuda`` in full; an unknown driver counts as one that does."""
        toolkit = self._toolkits.get(cuda)
        return all(
            machine.driver is None or (toolkit is not None and _in_full(toolkit, machine, machine.driver))
            for machine in self._problem.machines
        )


def _in_full(toolkit: Toolkit, machine: Machine, driver: DriverVersion) -> bool:
    full = toolkit.full(windows=machine.windows_driver)
    return full is not None and driver.meets(full)


class _Newest:
    """Turns the order of versions round."""

    __slots__ = ("_version",)

    def __init__(self, version: Version) -> None:
        self._version = version

    def __lt__(self, other: _Newest) -> bool:
        return other._version < self._version

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Newest) and other._version == self._version

    __hash__ = None  # type: ignore[assignment]


def _oldest_last(cuda: CudaVersion | None) -> tuple[int, int]:
    return (0, 0) if cuda is None else (-cuda.major, -cuda.minor)
