"""Run the operations of one framework on one device, compare each with its reference, and report every result.

A failure does not end the run: a broken cuDNN should show as a convolution that fails beside a matrix product that does
not. Results are noted at once, in case the next operation ends the process.
"""

from __future__ import annotations

import os
import time
from typing import Callable, Dict, List, NamedTuple, Sequence

from . import reference
from .channel import Channel, shortened
from .framework import Framework, Outcome, UnsupportedError
from .reference import Array, Lesson, Numbers, numbers

TRAINING_TOLERANCE = 1e-3
"""Errors of the training steps add up."""
BURN_SIZE = {"cuda": 2048, "cpu": 256}
"""Rows of the matrices for repeated products."""
SAMPLES = 64
"""How many numbers of such a product are compared with the reference."""
TILE = 10007
"""The period of the numbers in large matrices; a prime, so that no two rows are equal."""

Result = Dict[str, object]


class Operation(NamedTuple):
    """One operation: the method of Framework, its inputs, the expected result; ``gpu_only`` is left out on the CPU."""

    name: str
    method: str
    inputs: Callable[[], tuple]  # type: ignore[type-arg]
    wanted: Callable[..., Sequence[float]]
    tolerance: float = reference.TOLERANCE
    gpu_only: bool = False


def convolution_inputs() -> tuple[Array, Array]:
    """Two images of eight channels and sixteen filters of three by three: cuDNN usually gets more than one channel."""
    return numbers((2, 8, 12, 12), 5), numbers((16, 8, 3, 3), 6)


def lesson() -> Lesson:
    """A training that lowers the loss a lot in three steps, without a ReLU that is near enough to zero to flip."""
    return Lesson(
        images=numbers((8, 1, 8, 8), 8),
        targets=numbers((8, 1), 9),
        filters=numbers((4, 1, 3, 3), 10),
        weights=numbers((256, 1), 11),
        rate=0.01,
        steps=3,
    )


OPERATIONS = (
    Operation(
        "element-wise",
        "element_wise",
        lambda: (numbers((20011,), 1), numbers((20011,), 2)),  # a prime: the last block is not full
        reference.element_wise,
    ),
    Operation("matmul", "matmul", lambda: (numbers((64, 128), 3), numbers((128, 64), 4)), reference.matmul),
    Operation("convolution", "convolution", convolution_inputs, reference.convolution),
    Operation(
        "convolution-backward",
        "convolution_backward",
        lambda: (*convolution_inputs(), numbers((2, 16, 12, 12), 7)),
        reference.convolution_backward,
    ),
    Operation("training", "training", lambda: (lesson(),), reference.training, TRAINING_TOLERANCE),
    Operation(
        "run-time-compilation",
        "run_time_compilation",
        lambda: (numbers((4099,), 14),),
        reference.powers_of_two,
        gpu_only=True,
    ),
)


def probe_of(load: Callable[[str], Framework]) -> Callable[[Result, Channel], Result]:
    """The probe of a framework; ``load`` imports it for a device."""
    return lambda job, channel: run(job, channel, load)


def run(job: Result, channel: Channel, load: Callable[[str], Framework]) -> Result:
    """All results for a framework; ``load`` imports it for a device.

    job: ``device`` (``cuda`` or ``cpu``), ``index`` of the GPU, ``burn`` (seconds).
    """
    started = time.perf_counter()
    device, index, burn = str(job["device"]), int(str(job.get("index", 0))), float(str(job.get("burn", 0)))
    result: Result = {"asked": device, "operations": []}
    os.environ["NVIDIA_TF32_OVERRIDE"] = "0"  # no TF32 in cuBLAS and cuDNN, whatever the framework requests
    framework = attempt(result, channel, "import", lambda: load(device))
    result["import_seconds"] = since(started)
    if not isinstance(framework, Framework):
        return result
    about = {"version": framework.version, "built_cuda": framework.built_cuda, "cpu_build": framework.cpu_build}
    result.update(about)
    channel.note(**about)
    if device == "cuda" and framework.cpu_build:
        return result
    opened = time.perf_counter()
    result["device"] = attempt(result, channel, "init", lambda: framework.open(device, index))
    init_seconds = since(opened)
    result["init_seconds"] = init_seconds
    if "error" in result or "unsupported" in result:
        return result
    outcomes = operate(framework, framework.operations or OPERATIONS, device, channel)
    result["operations"] = outcomes
    first = next((it for it in outcomes if it["ok"] is not None), outcomes[0])
    result["first_kernel_seconds"] = round(init_seconds + float(str(first["seconds"])), 4)
    result["remarks"] = framework.remarks
    if burn > 0 and not framework.operations:
        result["burn"] = burnt(framework, device, burn, channel)
    result["seconds"] = since(started)
    return result


def attempt(result: Result, channel: Channel, stage: str, work: Callable[[], object]) -> object:
    """The return value of ``work``; an exception is stored in ``result``."""
    channel.stage(stage)
    try:
        return work()
    except UnsupportedError as reason:
        result.update(stage=stage, unsupported=str(reason))
    except Exception as error:
        result.update(stage=stage, error=described(error))
    return None


def operate(framework: Framework, operations: Sequence[Operation], device: str, channel: Channel) -> List[Result]:
    """Run every operation, from the simplest on: later ones depend on what the first ones test."""
    outcomes: List[Result] = []
    for operation in operations:
        if operation.gpu_only and device == "cpu":
            continue
        channel.stage(operation.name)
        proves = framework.proves.get(operation.name) if device == "cuda" else None
        outcome = dict(tried(operation, framework), proves=proves)
        channel.note(operation=outcome)
        outcomes.append(outcome)
    return outcomes


def tried(operation: Operation, framework: Framework) -> Result:
    """The report on one operation."""
    report: Result = {
        "name": operation.name,
        "ok": False,
        "max_error": None,
        "tolerance": operation.tolerance,
        "on_device": False,
        "error": None,
    }
    inputs = operation.inputs()
    wanted = operation.wanted(*inputs)
    started = time.perf_counter()
    try:
        outcome: Outcome = getattr(framework, operation.method)(*inputs)
    except UnsupportedError as reason:
        report.update(ok=None, unsupported=str(reason), seconds=since(started))
    except Exception as error:
        report.update(error=described(error), seconds=since(started))
    else:
        report["seconds"] = since(started)
        report.update(judged(operation, outcome, wanted))
    return report


def judged(operation: Operation, outcome: Outcome, wanted: Sequence[float]) -> Result:
    """The report on an operation that finished."""
    difference = reference.compare(outcome.numbers, wanted, operation.tolerance)
    report: Result = {
        "ok": difference.ok and outcome.on_device,
        "on_device": outcome.on_device,
        "max_error": difference.max_error,
        "wrong": difference.wrong,
        "numbers": difference.total,
    }
    if operation.name == "training":
        report["losses"] = [repr(loss) for loss in outcome.numbers]  # text: JSON has no NaN
        report["learns"] = bool(outcome.numbers) and outcome.numbers[-1] < outcome.numbers[0]
        report["ok"] = report["ok"] and report["learns"]
    return report


def burnt(framework: Framework, device: str, seconds: float, channel: Channel) -> Result:
    """Multiply large matrices repeatedly: each product must equal the first one, and that one must be right.

    The time starts after the first product, which starts libraries and, on a busy machine, may take longer than all
    others.
    """
    channel.stage("burn")
    size = BURN_SIZE[device]
    tile = numbers((TILE,), 12).numbers
    left = Array((size, size), (tile * (size * size // TILE + 1))[: size * size])
    right = Array((size, size), left.numbers[::-1])
    report: Result = {"size": size, "products": 0, "wrong": 0, "error": None, "ok": False}
    started = time.perf_counter()
    try:
        first = framework.matmul(left, right).numbers
        difference = sampled(first, left, right)
        report.update(max_error=difference.max_error, wrong=difference.wrong)
        again = framework.products(left, right)
        products = wrong = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            wrong += again()
            products += 1
        report.update(products=products, wrong=difference.wrong + wrong)
        report["ok"] = difference.ok and wrong == 0
    except Exception as error:
        report["error"] = described(error)
    report["seconds"] = since(started)
    channel.note(burn=report)
    return report


def sampled(result: Numbers, left: Array, right: Array) -> reference.Difference:
    """Some numbers of a large product, spread over all of it, compared with the reference."""
    size = left.shape[1]
    places = [it * (len(result) // SAMPLES) + it for it in range(SAMPLES)]
    wanted = [
        reference.dot(
            left.numbers[place // size * size : (place // size + 1) * size], right.numbers[place % size :: size]
        )
        for place in places
    ]
    return reference.compare([result[place] for place in places], wanted)


def described(error: BaseException) -> Result:
    """An exception as data, with its cause, which often has the real reason."""
    text = str(error)
    cause = error.__cause__ or error.__context__
    if cause is not None and str(cause) and str(cause) not in text:
        text = "{}\n{}: {}".format(text, type(cause).__name__, cause)
    return {"type": type(error).__name__, "text": shortened(text)}


def since(started: float) -> float:
    """Seconds since then."""
    return round(time.perf_counter() - started, 4)
