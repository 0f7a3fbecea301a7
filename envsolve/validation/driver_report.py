"""The report of the driver probe (inside/driver.py, which describes it) as values, and as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, convert, field

from envsolve.model.versions import CudaVersion
from envsolve.validation.child import Outcome

RESULTS = 65536
"""The number of results that the kernel computes."""


class Failure(Struct, frozen=True):
    """A call that failed: its CUresult, None if the library has no such call, and the driver's name for it."""

    call: str = field(name="stage")
    code: int | None
    name: str | None = field(name="error")
    text: str

    def described(self, name: str | None = None) -> str:
        """The failure as a sentence; ``name`` is that of the error if the driver does not name it."""
        if self.code is None:
            return f"{self.call} is missing: {self.text}"
        return f"{self.call} failed with CUDA error {self.code} ({self.name or name or 'without a name'})"


class First(Struct, frozen=True):
    """The first wrong result with its bits, and the expected one."""

    index: int
    expected: float
    found: str
    bits: str


class Burn(Struct, frozen=True):
    """How often the kernel was repeated, and how often it was wrong."""

    rounds: int
    wrong_rounds: int


class Kernel(Struct, frozen=True):
    """The result of the kernel on one GPU. Fields that are not set mean that all was right."""

    mismatches: int = 0
    untouched: bool = False
    first: First | None = None
    burn: Burn | None = None
    jit_log: str = ""
    stage: str = ""
    code: int | None = None
    error: str | None = None
    text: str | None = None

    @property
    def failure(self) -> Failure | None:
        """The call that failed."""
        return None if self.text is None else Failure(self.stage, self.code, self.error, self.text)

    @property
    def difference(self) -> str | None:
        """How the output differs from the right one."""
        if self.first is None:
            return None
        it = self.first
        return (
            f"{self.mismatches:,} of {RESULTS:,} results wrong, the first at {it.index}: {it.found} ({it.bits}) "
            f"instead of {it.expected}"
        )

    @property
    def ok(self) -> bool:
        """Whether every result was right, and no call failed."""
        return self.failure is None and self.first is None

    def __str__(self) -> str:
        burn = "" if self.burn is None else f", {self.burn.wrong_rounds:,} of {self.burn.rounds:,} rounds wrong"
        if self.failure is not None:
            return self.failure.described() + burn
        return (self.difference or f"all {RESULTS:,} results right") + burn


class Device(Struct, frozen=True):
    """One GPU as the driver lists it. ``memory`` is in bytes; ``kernel`` is None if it was only listed."""

    number: int = field(name="index")
    name: str | None
    capability: str | None
    memory: int | None
    kernel: Kernel | None

    def __str__(self) -> str:
        return f"GPU {self.number}" + (f" ({self.name}, {self.capability})" if self.capability else "")


class Load(Struct, frozen=True):
    """What the loader said about a name of the library; ``windows`` is the error number there."""

    name: str
    text: str
    windows: int | None


class DriverReport(Struct, frozen=True):
    """The facts of the probe: all of them, or those that it noted before it ended early."""

    library: str | None = None
    version: int | None = None
    variables: Mapping[str, str] = {}
    load: tuple[Load, ...] = ()
    failure: Failure | None = field(default=None, name="error")
    devices: tuple[Device, ...] = ()

    @property
    def cuda(self) -> CudaVersion | None:
        """The CUDA that the driver supports."""
        return None if self.version is None else CudaVersion.from_driver_api(self.version)


def report_of(outcome: Outcome) -> DriverReport:
    """The report in the result of the probe, or in its notes if it ended early. Raises ValueError if it is invalid."""
    noted = {name: value for note in outcome.notes for name, value in note.items()}
    return convert(outcome.result or {**noted, "devices": outcome.all_noted("device")}, DriverReport)


def evidence_of(report: DriverReport) -> Iterator[str]:
    """The report as lines: the library, each GPU with the result of the kernel, and variables of the driver."""
    if report.library is not None:
        yield f"libcuda: {report.library}" + (f" (CUDA {report.cuda})" if report.cuda is not None else "")
    for attempt in report.load:
        yield attempt.text if attempt.name in attempt.text else f"{attempt.name}: {attempt.text}"
    for device in report.devices:
        yield f"{device}: {'no kernel was run on it' if device.kernel is None else device.kernel}"
        if device.kernel is not None:
            yield from device.kernel.jit_log.splitlines()
    yield from (f"{name}={value}" for name, value in report.variables.items())
