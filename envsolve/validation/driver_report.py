"""What the driver probe reported (inside/driver.py), as values, and each fact of it as a line to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from envsolve.model.versions import CudaVersion
from envsolve.validation.child import Outcome

RESULTS = 65536
"""Numbers that the kernel computes."""


class Failure(NamedTuple):
    """A call that failed: its CUresult, None if the library has no such call, and the driver's name for that."""

    call: str
    code: int | None
    name: str | None
    text: str


class Mismatch(NamedTuple):
    """How the kernel's output differs: how many numbers, and the first of them with what it is and must be."""

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
    """What became of the kernel on one GPU. It is right where nothing else is said."""

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
    """What is known: all of it, or what the probe had noted when it ended early."""

    library: str | None
    cuda: CudaVersion | None
    variables: Mapping[str, str]
    load: tuple[Mapping[str, Any], ...]
    failure: Failure | None
    devices: tuple[Device, ...]


def report_of(outcome: Outcome) -> DriverReport:
    """The report in the result of the probe, or what its notes hold of one."""
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
    """The report in lines: the library, each GPU and what became of the kernel on it, what steers the driver."""
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
    """``failure`` in words; ``name`` is the error's, where the driver does not say it."""
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
    said = {name: value for note in outcome.notes for name, value in note.items()}
    return {**said, "devices": outcome.all_noted("device")}


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
