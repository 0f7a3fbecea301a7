"""The verdict on the CUDA driver: no finding or one, depending on what the driver probe reported and how it ended.

inside/driver.py describes the report. A GPU passes only if the kernel ran on it and every result is right. The worst
problem comes first: a probe that did not finish, a library that does not load, a call that failed before a GPU was
there, no GPU, and the first GPU that failed; the others are evidence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct, convert, field

from envsolve.findings.catalogue import make_finding, shipped
from envsolve.host.evidence import HIDES_EVERYTHING
from envsolve.model.finding import Finding
from envsolve.model.versions import CudaVersion
from envsolve.validation.child import Outcome
from envsolve.validation.places import Place, facts_of

RESULTS = 65536
"""The number of results that the kernel computes."""
NO_DEVICE = 100
MODULE_NOT_FOUND = 126
"""ERROR_MOD_NOT_FOUND of Windows."""
LINES_OF_TAIL = 5
_IN_A_HANG = {
    "cuInit": "It hangs in cuInit: the kernel module does not answer, or a GPU fell off the bus.",
    "cuModuleLoadDataEx": "It hangs in cuModuleLoadDataEx, while it compiles the kernel.",
    "cuCtxSynchronize": "The kernel was started and does not end.",
    "burn": "It hangs while the kernel is repeated.",
}


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


class _Trouble(NamedTuple):
    """A problem, and the sentences on where and how it was seen."""

    identifier: str
    seen: str
    evidence: tuple[str, ...] = ()


def finding_of(outcome: Outcome, places: Collection[Place] | None = None) -> Finding | None:
    """The finding on the driver; None if it passes.

    With ``places`` it only has the advice for these, otherwise all advice.
    """
    report = report_of(outcome)
    trouble = _ended_early(outcome) if outcome.result is None else _reported(report)
    if trouble is None:
        return None
    evidence = (*trouble.evidence, *evidence_of(report), *_tail(outcome))
    return make_finding(trouble.identifier, evidence, seen=(trouble.seen,), **facts_of(places))


def detail_of(outcome: Outcome) -> str:
    """One line on what was tested, if the driver passes."""
    report = report_of(outcome)
    proved = [device for device in report.devices if device.kernel is not None and device.kernel.ok]
    cuda = f", CUDA {report.cuda}" if report.cuda is not None else ""
    return f"{RESULTS:,} results right on {', '.join(map(str, proved))}{cuda}"


def _ended_early(outcome: Outcome) -> _Trouble:
    ending = outcome.ending
    if outcome.error is not None:
        trace = outcome.error.get("trace")
        evidence = (
            f"{outcome.error.get('type')}: {outcome.error.get('text')}",
            *(trace if isinstance(trace, list) else ()),
        )
        return _Trouble("probe-failed", _place_of(outcome.stage, "It failed"), evidence)
    if ending.timeout is not None:
        call = (outcome.stage or "").partition("@")[0]
        seen = (
            f"{_IN_A_HANG.get(call) or _place_of(outcome.stage, 'It hangs')} It was stopped after {ending.timeout:g} s."
        )
        return _Trouble("driver-hang", seen, _stage(outcome))
    if ending.crash is not None:
        return _Trouble("driver-crash", f"{_place_of(outcome.stage, 'It ended')} {ending.crash}", _stage(outcome))
    return _Trouble(
        "probe-without-result", _place_of(outcome.stage, f"It ended with exit code {ending.exit_code}"), _stage(outcome)
    )


def _reported(report: DriverReport) -> _Trouble | None:
    if report.load:
        missing = all(map(_is_missing, report.load))
        identifier = "driver-library-missing" if missing else "driver-library-unusable"
        return _Trouble(identifier, f"The loader says: {report.load[0].text}.")
    if report.failure is not None:
        return _failed_call(report.failure, report, "")
    if not report.devices:
        return _no_device(report, "The driver counts no GPU.")
    failed = next((it for it in report.devices if it.kernel is not None and not it.kernel.ok), None)
    if failed is not None:
        return _failed_device(failed, report)
    if all(device.kernel is None for device in report.devices):
        return _Trouble("probe-without-result", "No GPU was chosen for it.")
    return None


def _is_missing(load: Load) -> bool:
    """Whether the loader found no file.

    If a file was found but a dependency is missing, that is named first instead.
    """
    if load.windows is not None:
        return load.windows == MODULE_NOT_FOUND
    missing = re.search(r"no such file|not found", load.text, re.IGNORECASE)
    return load.name in load.text.partition(": ")[0] and missing is not None


def _failed_device(device: Device, report: DriverReport) -> _Trouble:
    assert device.kernel is not None
    if device.kernel.failure is not None:
        return _failed_call(device.kernel.failure, report, f" on {device}")
    if device.kernel.untouched:
        return _Trouble("kernel-did-not-run", f"The output was untouched on {device}.")
    return _Trouble("wrong-results", f"On {device}: {device.kernel.difference}.")


def _failed_call(failure: Failure, report: DriverReport, where: str) -> _Trouble:
    if failure.code is None:
        return _Trouble("driver-library-unusable", f"{failure.described()}.")
    error = shipped().of_number(failure.code)
    text = f"{failure.described(None if error.number is None else error.error)}{where}"
    return _no_device(report, f"{text}.") if failure.code == NO_DEVICE else _Trouble(error.id, f"{text}.", (text,))


def _no_device(report: DriverReport, seen: str) -> _Trouble:
    """No GPU, and whether CUDA_VISIBLE_DEVICES is the reason: a value that begins with 0 is not, if there is a GPU."""
    value = report.variables.get("CUDA_VISIBLE_DEVICES")
    if value is None or value.strip().split(",")[0] == "0":
        return _Trouble("no-device", seen, (seen,))
    sure = value.strip() in HIDES_EVERYTHING
    what = "hides every GPU" if sure else "names no GPU that is there, or there is none"
    return _Trouble("gpus-hidden", f"CUDA_VISIBLE_DEVICES={value!r} {what}.", (seen,))


def _place_of(stage: str | None, what: str) -> str:
    """``what`` happened, and during what: the call and its GPU, as the probe announced them."""
    if stage is None:
        return f"{what} before it began."
    call, _, device = stage.partition("@")
    return f"{what} in {call}" + (f" on GPU {device}." if device else ".")


def _stage(outcome: Outcome) -> tuple[str, ...]:
    return (f"last stage: {outcome.stage}",) if outcome.stage else ()


def _tail(outcome: Outcome) -> list[str]:
    """The last lines of the process's output, where a driver may report something."""
    return [line for line in outcome.tail.splitlines() if line.strip()][-LINES_OF_TAIL:]
