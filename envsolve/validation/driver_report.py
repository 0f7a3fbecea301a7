"""The report of the driver probe (inside/driver.py) as values, and each of its facts as a line of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from envsolve.model.versions import CudaVersion
from envsolve.validation.child import Outcome

RESULTS = 65536
"""The number of results that the kernel computes."""


class Failure(NamedTuple):
    """A call that failed: its CUresult, None if the library has no such call, and the driver's name for it."""

    call: str
    code: int | None
    name: str | None
    text: str


class Mismatch(NamedTuple):
    """How the kernel's output differs: the number of wrong results, and the first one with the expected value."""

    wrong: int
    untouched: bool
    place: int
    expected: float
    found: str
    bits: str

    def __str__(self) -> str:
        return (
            f"{self.wrong:,} of {RESULTS:,} results wrong, the first at {self.place}: {self.found} ({self.bits}) "
            f"instead of {self.expected}"
        )


class Burn(NamedTuple):
    """How often the kernel was repeated, and how often it was wrong."""

    seconds: float
    rounds: int
    wrong_rounds: int


class Kernel(NamedTuple):
    """The result of the kernel on one GPU. Fields that are not set mean that all was right."""

    seconds: float
    failure: Failure | None
    mismatch: Mismatch | None
    burn: Burn | None
    jit_log: str

    @property
    def ok(self) -> bool:
        """Whether every result was right, and no call failed."""
        return self.failure is None and self.mismatch is None


class Device(NamedTuple):
    """One GPU as the driver lists it. ``memory`` is in bytes; ``kernel`` is None if it was only listed."""

    number: int
    name: str | None
    uuid: str | None
    capability: str | None
    memory: int | None
    kernel: Kernel | None

    def __str__(self) -> str:
        return f"GPU {self.number}" + (f" ({self.name}, {self.capability})" if self.capability else "")


class DriverReport(NamedTuple):
    """The facts of the probe: all of them, or those that it noted before it ended early."""

    library: str | None
    cuda: CudaVersion | None
    variables: Mapping[str, str]
    load: tuple[Mapping[str, Any], ...]
    failure: Failure | None
    devices: tuple[Device, ...]


def report_of(outcome: Outcome) -> DriverReport:
    """The report in the result of the probe, or in its notes if it ended early."""
    facts: Mapping[str, Any] = outcome.result if outcome.result is not None else _noted(outcome)
    version = facts.get("version")
    return DriverReport(
        library=facts.get("library"),
        cuda=CudaVersion.from_driver_api(version) if version is not None else None,
        variables=facts.get("variables") or {},
        load=tuple(facts.get("load") or ()),
        failure=_failure(facts.get("error")),
        devices=tuple(_device(device) for device in facts.get("devices") or ()),
    )


def evidence_of(report: DriverReport) -> Iterator[str]:
    """The report as lines: the library, each GPU with the result of the kernel, and variables of the driver."""
    if report.library is not None:
        yield f"libcuda: {report.library}" + (f" (CUDA {report.cuda})" if report.cuda is not None else "")
    for attempt in report.load:
        yield f"{attempt['name']}: {attempt['text']}" if attempt["name"] not in attempt["text"] else attempt["text"]
    for device in report.devices:
        yield f"{device}: {_kernel_text(device.kernel)}"
        if device.kernel is not None and device.kernel.jit_log:
            yield from device.kernel.jit_log.splitlines()
    yield from (f"{name}={value}" for name, value in report.variables.items())


def failed_call(failure: Failure, name: str | None) -> str:
    """``failure`` as a sentence; ``name`` is that of the error if the driver does not name it."""
    if failure.code is None:
        return f"{failure.call} is missing: {failure.text}"
    return f"{failure.call} failed with CUDA error {failure.code} ({failure.name or name or 'without a name'})"


def _kernel_text(kernel: Kernel | None) -> str:
    if kernel is None:
        return "no kernel was run on it"
    burn = f", {kernel.burn.wrong_rounds:,} of {kernel.burn.rounds:,} rounds wrong" if kernel.burn is not None else ""
    if kernel.failure is not None:
        return failed_call(kernel.failure, None) + burn
    return (f"all {RESULTS:,} results right" if kernel.mismatch is None else str(kernel.mismatch)) + burn


def _noted(outcome: Outcome) -> Mapping[str, Any]:
    noted = {name: value for note in outcome.notes for name, value in note.items()}
    return {**noted, "devices": outcome.all_noted("device")}


def _failure(facts: Mapping[str, Any] | None) -> Failure | None:
    return Failure(facts["stage"], facts["code"], facts["error"], facts["text"]) if facts else None


def _device(facts: Mapping[str, Any]) -> Device:
    kernel = facts["kernel"]
    return Device(
        facts["index"],
        facts["name"],
        facts["uuid"],
        facts["capability"],
        facts["memory"],
        _kernel(kernel) if kernel is not None else None,
    )


def _kernel(facts: Mapping[str, Any]) -> Kernel:
    burn = facts.get("burn")
    return Kernel(
        seconds=facts["seconds"],
        failure=_failure(facts) if "code" in facts else None,
        mismatch=_mismatch(facts) if "mismatches" in facts else None,
        burn=Burn(burn["seconds"], burn["rounds"], burn["wrong_rounds"]) if burn else None,
        jit_log=facts.get("jit_log", ""),
    )


def _mismatch(facts: Mapping[str, Any]) -> Mismatch:
    first = facts["first"]
    return Mismatch(
        facts["mismatches"], facts["untouched"], first["index"], first["expected"], first["found"], first["bits"]
    )
