"""The verdict on a framework: from how its probe ended, and what it answered, to pass, fail or skip with findings.

A framework passes only where every operation that it has came out right, and on the device that was asked for. What it
printed is read only where it failed: frameworks warn of a lot that does no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from envsolve.findings.catalogue import shipped
from envsolve.frameworks import Framework
from envsolve.model.finding import Finding, Severity
from envsolve.validation.child import Ending, Outcome
from envsolve.validation.framework_answer import Answer, Burn, Operation, Raised, answer_of
from envsolve.validation.places import Place, facts_of
from envsolve.validation.report import ProbeReport, Status
from envsolve.validation.symptoms import WEAK, Sighting, sightings

THROUGH_CUDNN = ("convolution", "convolution-backward")
LINES_OF_TAIL = 5
LONGEST_LINE = 400
TF32_ERRORS = (1e-4, 5e-3)
"""Between these is the error of TF32, whose numbers have ten bits after the first."""


class _Found(NamedTuple):
    """A finding in the making: its id, sentences on this case, and lines of evidence."""

    identifier: str
    told: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def verdict(
    framework: Framework,
    device: Literal["cuda", "cpu"],
    outcome: Outcome,
    *,
    gpu_present: bool = False,
    places: Collection[Place] | None = None,
) -> ProbeReport:
    """What there is to say of ``framework`` on ``device``; ``gpu_present``: whether the machine has a GPU beside it.

    With ``places`` advice on the driver is given for these only, otherwise for all.
    """
    answer = answer_of(outcome)
    if answer.unsupported is not None:
        return ProbeReport(framework.name, Status.SKIP, outcome.seconds, answer.unsupported)
    found = list(_found(device, outcome, answer))
    warnings = [_Found(remark) for remark in answer.remarks]
    if device == "cpu" and answer.cpu_build and gpu_present:
        warnings.append(_Found("cpu-build", ("This machine has a GPU.",)))
    findings = [
        *_findings(framework, found, places),
        *(it._replace(severity=Severity.WARNING) for it in _findings(framework, warnings, places)),
    ]
    return ProbeReport(
        framework.name,
        Status.FAIL if found else Status.PASS,
        outcome.seconds,
        _failed(answer, findings[0]) if found else _passed(framework, answer),
        tuple(findings),
        _measured(outcome),
    )


def _found(device: str, outcome: Outcome, answer: Answer) -> Iterator[_Found]:
    if outcome.result is None:
        yield from _ended_early(outcome, answer)
    elif answer.raised is not None:
        yield from _not_begun(answer.raised, answer.stage, outcome.tail)
    elif device == "cuda" and answer.cpu_build:
        yield _Found("cpu-build", evidence=(f"version {answer.version}",))
    elif not answer.operations:
        yield _Found("probe-failed", ("No operation was run.",))
    else:
        yield from _of_operations(answer.operations, outcome.tail)
        if answer.burn is not None:
            yield from _of_burn(answer.burn)


def _ended_early(outcome: Outcome, answer: Answer) -> Iterator[_Found]:
    """A process that hung, died, or failed where nobody expected it."""
    if outcome.error is not None:
        raised = Raised(str(outcome.error.get("type")), str(outcome.error.get("text")))
        yield from _strong(sightings(f"{raised}")) or (_Found("probe-failed", evidence=(_line(str(raised)),)),)
        return
    where = f"in {outcome.stage}" if outcome.stage else "before it began"
    passed = [it.name for it in answer.operations if it.ok]
    so_far = (f"By then {', '.join(passed)} had come out right.",) if passed else ()
    if outcome.ending.timeout is not None:
        told = (f"It was stopped after {outcome.ending.timeout:g} s, {where}.", *so_far)
        yield _Found("probe-timeout", told, _tail(outcome))
        return
    told = (f"It ended {where}. {_how(outcome.ending)}", *so_far)
    seen = _strong(sightings(outcome.tail))
    yield from (it._replace(told=(*it.told, *told)) for it in seen)
    if not seen:
        yield _Found("probe-crash", told, _tail(outcome))


def _how(ending: Ending) -> str:
    """In words how a process ended."""
    return ending.crash or f"Its exit code was {ending.exit_code}."


def _not_begun(raised: Raised, stage: str | None, tail: str) -> Iterator[_Found]:
    """The framework could not be imported, or did not reach the device."""
    seen = _seen(raised, tail)
    if seen:
        yield from seen
    else:
        identifier = "import-failed" if stage == "import" else "device-not-reached"
        yield _Found(identifier, evidence=(_line(str(raised)), *_lines(tail)))


def _of_operations(operations: tuple[Operation, ...], tail: str) -> Iterator[_Found]:
    right = {it.name for it in operations if it.ok}
    failed = {it.name for it in operations if it.ok is False}
    for operation in operations:
        if operation.ok is not False:
            continue
        if operation.raised is not None:
            yield from _of_error(operation, operation.raised, right, failed, tail)
        elif not operation.on_device:
            yield _Found(
                "ran-on-cpu", (f"It was {operation.name}.",), (f"{operation.name} ran elsewhere", *_lines(tail))
            )
        elif operation.learns is False:
            yield _Found("training-does-not-learn", evidence=(f"losses: {', '.join(operation.losses)}",))
        else:
            yield _wrong(operation)


def _of_error(operation: Operation, raised: Raised, right: set[str], failed: set[str], tail: str) -> Iterator[_Found]:
    """An operation that raised: by what it says, else by what works beside it."""
    evidence = (f"{operation.name}: {_line(str(raised))}",)
    seen = _seen(raised, tail)
    if seen:
        for it in seen:
            told = it.told
            if it.identifier == "no-code-for-gpu" and operation.name in THROUGH_CUDNN and "matmul" in right:
                told = (*told, "Products of matrices run: it is cuDNN that has no code for the GPU.")
            yield it._replace(told=told, evidence=(*evidence, *it.evidence))
    elif operation.name in THROUGH_CUDNN and "matmul" in right and operation.proves == "cuDNN":
        yield _Found("cudnn-broken", (f"Products of matrices run, {operation.name} does not.",), evidence)
    elif operation.name == "matmul" and "element-wise" in right and operation.proves == "cuBLAS":
        yield _Found("cublas-broken", ("Kernels of its own run, products of matrices do not.",), evidence)
    elif operation.name != "training" or failed == {"training"}:
        yield _Found("operation-failed", (f"It is {operation.name}.",), evidence)


def _seen(raised: Raised, tail: str) -> tuple[_Found, ...]:
    """What an exception tells of; where that can be many things, what was printed tells more."""
    told = sightings(str(raised))
    strong = _strong(told) or _strong(sightings(tail))
    return strong or tuple(map(_of_sighting, told))


def _strong(seen: Iterable[Sighting]) -> tuple[_Found, ...]:
    return tuple(_of_sighting(it) for it in seen if it.finding not in WEAK)


def _of_sighting(sighting: Sighting) -> _Found:
    return _Found(sighting.finding, (sighting.told,) if sighting.told else (), (_line(sighting.line),))


def _wrong(operation: Operation) -> _Found:
    said = f"{operation.name}: {operation.wrong:,} of {operation.numbers:,} numbers are wrong"
    if operation.max_error is None:
        return _Found("wrong-result", ("Some are no numbers at all.",), (said,))
    low, high = TF32_ERRORS
    told = ("An error of this size is what TF32 makes.",) if low < operation.max_error < high else ()
    off = f"the furthest by {operation.max_error:.1e} of the largest, {operation.tolerance:g} is allowed"
    return _Found("wrong-result", told, (f"{said}, {off}",))


def _of_burn(burn: Burn) -> Iterator[_Found]:
    if burn.raised is not None:
        evidence = (f"burn, after {burn.products:,} products: {_line(str(burn.raised))}",)
        seen = _seen(burn.raised, "") or (_Found("operation-failed", ("It is the burn.",)),)
        yield from (it._replace(evidence=evidence) for it in seen)
    elif not burn.ok:
        said = f"{burn.wrong:,} numbers differed in {burn.products:,} products of {burn.seconds:.0f} s"
        yield _Found("unstable-result", (), (said,))


def _findings(framework: Framework, found: Iterable[_Found], places: Collection[Place] | None) -> list[Finding]:
    """One finding for each id, with the sentences and the evidence of all."""
    merged: dict[str, _Found] = {}
    for it in found:
        known = merged.get(it.identifier, _Found(it.identifier))
        merged[it.identifier] = _Found(
            it.identifier,
            tuple(dict.fromkeys((*known.told, *it.told))),
            tuple(dict.fromkeys((*known.evidence, *it.evidence))),
        )
    facts = facts_of(places, name=framework.name, framework=framework.title, preload=framework.preload_call)
    return [
        shipped().entry(it.identifier).as_finding(facts, it.told, it.evidence, about=framework.name)
        for it in merged.values()
    ]


def _passed(framework: Framework, answer: Answer) -> str:
    right = [it for it in answer.operations if it.ok]
    worst = max((it.max_error or 0.0 for it in right), default=0.0)
    told = f"{framework.title} {answer.version}: {', '.join(it.name for it in right)} right on {answer.device}"
    told += f", largest error {worst:.0e}"
    if answer.burn is not None:
        told += f"; {answer.burn.products:,} products the same in {answer.burn.seconds:.0f} s"
    return told


def _failed(answer: Answer, first: Finding) -> str:
    names = [it.name for it in answer.operations if it.ok is False]
    return f"{first.title} ({', '.join(names)})" if names else first.title


def _measured(outcome: Outcome) -> dict[str, object]:
    return {key: value for key, value in (outcome.result or {}).items() if key not in {"framework", "error", "remarks"}}


def _tail(outcome: Outcome) -> tuple[str, ...]:
    stage = (f"last stage: {outcome.stage}",) if outcome.stage else ()
    return (*stage, *_lines(outcome.tail))


def _lines(tail: str) -> tuple[str, ...]:
    """The last lines of what was printed."""
    return tuple(_line(line) for line in tail.splitlines() if line.strip())[-LINES_OF_TAIL:]


def _line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_LINE]
