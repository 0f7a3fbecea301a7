"""The verdict on a framework from its probe's ending and answer: pass, fail or skip, with findings.

A framework passes only if every operation that it has gave the right result on the requested device. Its output is read
only if it failed: frameworks print many harmless warnings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct, convert, field

from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import AnyFramework, Framework
from envsolve.model.finding import Finding, Severity
from envsolve.validation.child import Outcome
from envsolve.validation.places import Place, facts_of
from envsolve.validation.report import ProbeReport, Status

Explain = Callable[[AnyFramework, str], Sequence[Finding]]
"""Explains output of a framework: the findings of ``envsolve explain``, the root cause first."""
THROUGH_CUDNN = ("convolution", "convolution-backward")
COMPILED = "run-time-compilation"
NO_CODE = "no kernel image"
"""CUDA's message if a library has no code for the GPU; if matrix products work, that library is cuDNN."""
LINES_OF_TAIL = 5
LONGEST_LINE = 400
TF32_ERRORS = (1e-4, 5e-3)
"""Errors between these are those of TF32, which has ten bits after the first."""


class Raised(Struct, frozen=True):
    """An exception of the framework."""

    kind: str = field(default="", name="type")
    text: str = ""

    def __str__(self) -> str:
        text = self.text.strip()
        return f"{self.kind}: {text}" if text else self.kind


class Operation(Struct, frozen=True):
    """One operation.

    ``ok`` is None if the framework does not have the operation, and ``unsupported`` says why. ``max_error`` is relative
    to the largest number of the reference; None if a number was NaN or the operation did not finish. ``wrong`` of
    ``numbers`` differ by more than ``tolerance``.
    """

    name: str
    ok: bool | None
    on_device: bool
    max_error: float | None
    tolerance: float
    wrong: int = 0
    numbers: int = 0
    raised: Raised | None = field(default=None, name="error")
    unsupported: str | None = None
    learns: bool | None = None
    losses: tuple[str, ...] = ()
    proves: str | None = None


class Burn(Struct, frozen=True):
    """A product of large matrices, repeated."""

    ok: bool
    products: int
    seconds: float
    wrong: int
    raised: Raised | None = field(default=None, name="error")


class Answer(Struct, frozen=True):
    """The facts about a framework. ``stage`` is where the probe ended, if it did not reach the operations."""

    version: str | None = None
    cpu_build: bool = False
    device: str | None = None
    operations: tuple[Operation, ...] = ()
    burn: Burn | None = None
    stage: str | None = None
    raised: Raised | None = field(default=None, name="error")
    unsupported: str | None = None
    remarks: tuple[str, ...] = ()


def answer_of(outcome: Outcome) -> Answer:
    """The result of the probe (inside/operations.py), or its notes if it ended early.

    Raises ValueError if it is invalid.
    """
    noted = {key: value for note in outcome.notes for key, value in note.items()}
    return convert(outcome.result or {**noted, "operations": outcome.all_noted("operation")}, Answer)


class _Found(NamedTuple):
    """A finding in progress: its id, sentences, and lines of evidence, or the finding itself if it is from a text."""

    identifier: str
    seen: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    explained: Finding | None = None


_Read = Callable[..., tuple[_Found, ...]]


def verdict(
    framework: AnyFramework,
    device: Literal["cuda", "cpu"],
    outcome: Outcome,
    explain: Explain,
    nearer: Callable[[Finding], Finding] = lambda finding: finding,
    *,
    gpu_present: bool = False,
    places: Collection[Place] | None = None,
    reinstall: str | None = None,
) -> ProbeReport:
    """The report on ``framework`` on ``device``. ``nearer`` replaces a finding by what on the machine causes it.

    ``gpu_present`` says whether the machine has a GPU, even if it was not used. With ``places`` advice on the driver is
    given for these only, otherwise for all. ``reinstall`` is the command that installs the environment's lock again, if
    it is known.
    """
    facts = facts_of(places) | {
        "name": framework.name,
        "framework": framework.title,
        "preload": framework.preload_call if isinstance(framework, Framework) else None,
        "reinstall": reinstall,
    }
    answer = answer_of(outcome)
    if answer.unsupported is not None:
        return ProbeReport(framework.name, Status.SKIP, outcome.seconds, answer.unsupported)

    def read(*texts: str) -> tuple[_Found, ...]:
        """The error in the output of the framework; of several, the one that caused the others."""
        errors = [it for it in explain(framework, "\n".join(texts)) if it.severity is Severity.ERROR]
        return tuple(_Found(it.id, evidence=it.evidence, explained=it) for it in errors[:1])

    found = list(_found(device, outcome, answer, read))
    warnings = [_Found(remark) for remark in answer.remarks]
    if device == "cpu" and answer.cpu_build and gpu_present:
        warnings.append(_Found("cpu-build", ("This machine has a GPU.",)))
    findings = [
        *map(nearer, _findings(framework, found, facts)),
        *(it._replace(severity=Severity.WARNING) for it in _findings(framework, warnings, facts)),
    ]
    return ProbeReport(
        framework.name,
        Status.FAIL if found else Status.PASS,
        outcome.seconds,
        _failed(answer, findings[0]) if found else _passed(framework, answer),
        tuple(findings),
        {key: value for key, value in (outcome.result or {}).items() if key not in {"error", "remarks"}},
    )


def _found(device: str, outcome: Outcome, answer: Answer, read: _Read) -> Iterator[_Found]:
    if outcome.result is None:
        yield from _ended_early(outcome, answer, read)
    elif answer.raised is not None:
        yield from _not_begun(answer.raised, answer.stage, outcome.tail, read)
    elif device == "cuda" and answer.cpu_build:
        yield _Found("cpu-build", evidence=(f"version {answer.version}",))
    elif not answer.operations:
        yield _Found("probe-failed", ("No operation was run.",))
    else:
        yield from _of_operations(answer.operations, outcome.tail, read)
        if answer.burn is not None:
            yield from _of_burn(answer.burn, read)


def _ended_early(outcome: Outcome, answer: Answer, read: _Read) -> Iterator[_Found]:
    """Findings for a process that hung, died, or failed outside the operations."""
    if outcome.error is not None:
        raised = Raised(str(outcome.error.get("type")), str(outcome.error.get("text")))
        yield from read(str(raised)) or (_Found("probe-failed", evidence=(_line(str(raised)),)),)
        return
    where = f"in {outcome.stage}" if outcome.stage else "before it began"
    passed = [it.name for it in answer.operations if it.ok]
    so_far = (f"By then {', '.join(passed)} had come out right.",) if passed else ()
    if outcome.ending.timeout is not None:
        seen = (f"It was stopped after {outcome.ending.timeout:g} s, {where}.", *so_far)
        yield _Found("probe-timeout", seen, _tail(outcome))
        return
    seen = (f"It ended {where}. {outcome.ending}", *so_far)
    found = read(outcome.tail) or (_Found("probe-crash", evidence=_tail(outcome)),)
    yield from (it._replace(seen=seen) for it in found)


def _not_begun(raised: Raised, stage: str | None, tail: str, read: _Read) -> tuple[_Found, ...]:
    """Findings for a framework that could not be imported, or did not reach the device."""
    evidence = (_line(str(raised)), *_lines(tail))
    if raised.kind == "NoDeviceError":
        return read(tail) or (_Found("no-gpu-for-framework", evidence=evidence),)
    identifier = "import-failed" if stage == "import" else "device-not-reached"
    return read(str(raised), tail) or (_Found(identifier, evidence=evidence),)


def _of_operations(operations: tuple[Operation, ...], tail: str, read: _Read) -> Iterator[_Found]:
    right = {it.name for it in operations if it.ok}
    failed = {it.name for it in operations if it.ok is False}
    for operation in operations:
        if operation.ok is not False:
            continue
        if operation.raised is not None:
            yield from _of_error(operation, operation.raised, right, failed, read(str(operation.raised), tail))
        elif not operation.on_device:
            yield _Found(
                "ran-on-cpu", (f"It was {operation.name}.",), (f"{operation.name} ran elsewhere", *_lines(tail))
            )
        elif operation.learns is False:
            yield _Found("training-does-not-learn", evidence=(f"losses: {', '.join(operation.losses)}",))
        else:
            yield _wrong(operation)


def _of_error(
    operation: Operation, raised: Raised, right: set[str], failed: set[str], known: tuple[_Found, ...]
) -> Iterator[_Found]:
    """Findings for an operation that raised an exception: by its message, or else by which other operations work."""
    evidence = (f"{operation.name}: {_line(str(raised))}",)
    cudnn_alone = operation.name in THROUGH_CUDNN and "matmul" in right
    seen = ("Products of matrices run, convolutions do not.",) if cudnn_alone else ()
    if cudnn_alone and NO_CODE in str(raised):
        yield _Found("cudnn-without-code", seen, evidence)
    elif known:
        yield from (it._replace(seen=seen, evidence=(*evidence, *it.evidence)) for it in known)
    elif cudnn_alone and operation.proves == "cuDNN":
        yield _Found("cudnn-broken", seen, evidence)
    elif operation.name == "matmul" and "element-wise" in right and operation.proves == "cuBLAS":
        yield _Found("cublas-broken", ("Kernels of its own run, products of matrices do not.",), evidence)
    elif operation.name == COMPILED and "element-wise" in right:
        yield _Found("run-time-compiler-broken", evidence=evidence)
    elif operation.name != "training" or failed == {"training"}:
        yield _Found("operation-failed", (f"It is {operation.name}.",), evidence)


def _wrong(operation: Operation) -> _Found:
    evidence = f"{operation.name}: {operation.wrong:,} of {operation.numbers:,} numbers are wrong"
    if operation.max_error is None:
        return _Found("wrong-result", ("Some are no numbers at all.",), (evidence,))
    low, high = TF32_ERRORS
    seen = ("An error of this size is what TF32 makes.",) if low < operation.max_error < high else ()
    off = f"the furthest by {operation.max_error:.1e} of the largest, {operation.tolerance:g} is allowed"
    return _Found("wrong-result", seen, (f"{evidence}, {off}",))


def _of_burn(burn: Burn, read: _Read) -> Iterator[_Found]:
    if burn.raised is not None:
        evidence = (f"burn, after {burn.products:,} products: {_line(str(burn.raised))}",)
        found = read(str(burn.raised)) or (_Found("operation-failed", ("It is the burn.",)),)
        yield from (it._replace(evidence=evidence) for it in found)
    elif not burn.ok:
        text = f"{burn.wrong:,} numbers differed in {burn.products:,} products of {burn.seconds:.0f} s"
        yield _Found("unstable-result", (), (text,))


def _findings(framework: AnyFramework, found: Iterable[_Found], facts: Mapping[str, Any]) -> list[Finding]:
    """One finding for each id, with the sentences and the evidence of all."""
    merged: dict[str, _Found] = {}
    for it in found:
        known = merged.get(it.identifier, _Found(it.identifier))
        merged[it.identifier] = _Found(
            it.identifier,
            tuple(dict.fromkeys((*known.seen, *it.seen))),
            tuple(dict.fromkeys((*known.evidence, *it.evidence))),
            known.explained or it.explained,
        )
    return [
        make_finding(it.identifier, it.evidence, about=framework.name, seen=it.seen, **facts)
        if it.explained is None
        else it.explained._replace(cause=" ".join((it.explained.cause, *it.seen)), evidence=it.evidence)
        for it in merged.values()
    ]


def _passed(framework: AnyFramework, answer: Answer) -> str:
    right = [it for it in answer.operations if it.ok]
    worst = max((it.max_error or 0.0 for it in right), default=0.0)
    text = f"{framework.title} {answer.version}: {', '.join(it.name for it in right)} right on {answer.device}"
    text += f", largest error {worst:.0e}"
    if answer.burn is not None:
        text += f"; {answer.burn.products:,} products the same in {answer.burn.seconds:.0f} s"
    return text


def _failed(answer: Answer, first: Finding) -> str:
    names = [it.name for it in answer.operations if it.ok is False]
    return f"{first.title} ({', '.join(names)})" if names else first.title


def _tail(outcome: Outcome) -> tuple[str, ...]:
    stage = (f"last stage: {outcome.stage}",) if outcome.stage else ()
    return (*stage, *_lines(outcome.tail))


def _lines(tail: str) -> tuple[str, ...]:
    """The last lines of the output."""
    return tuple(_line(line) for line in tail.splitlines() if line.strip())[-LINES_OF_TAIL:]


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_LINE]
