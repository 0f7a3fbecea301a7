"""Running the operations of a framework: failures are recorded, the others still run, and nothing wrong passes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envsolve.validation.inside import operations, reference
from envsolve.validation.inside.channel import Channel
from envsolve.validation.inside.framework import Framework, NoDeviceError, Outcome, UnsupportedError
from envsolve.validation.inside.reference import Array, Lesson

ALL = ["element-wise", "matmul", "convolution", "convolution-backward", "training"]


class Sound(Framework):
    """A correct framework: the reference itself."""

    version = "1.0"

    def __init__(self, device: str) -> None:
        super().__init__({"matmul": "cuBLAS"})

    def open(self, device: str, index: int) -> str:
        return f"{device}:{index}"

    def element_wise(self, left: Array, right: Array) -> Outcome:
        return Outcome(reference.element_wise(left, right), on_device=True)

    def matmul(self, left: Array, right: Array) -> Outcome:
        return Outcome(reference.matmul(left, right), on_device=True)

    def convolution(self, images: Array, filters: Array) -> Outcome:
        return Outcome(reference.convolution(images, filters), on_device=True)

    def convolution_backward(self, images: Array, filters: Array, upstream: Array) -> Outcome:
        return Outcome(reference.convolution_backward(images, filters, upstream), on_device=True)

    def training(self, lesson: Lesson) -> Outcome:
        return Outcome(reference.training(lesson), on_device=True)

    def run_time_compilation(self, values: Array) -> Outcome:
        return Outcome(reference.powers_of_two(values), on_device=True)

    def products(self, left: Array, right: Array) -> Callable[[], int]:
        return lambda: 0


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(load: Callable[[str], Framework], device: str = "cpu", burn: float = 0) -> dict[str, Any]:
        job: dict[str, object] = {"device": device, "index": 2, "burn": burn}
        channel = Channel(str(tmp_path / "lines"))
        result = operations.run(job, channel, load)
        channel._file.close()
        written: dict[str, Any] = json.loads(json.dumps(result, allow_nan=False))
        return written

    return run


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")


@pytest.mark.thorough
def test_a_correct_framework_passes_everything(run: Run) -> None:
    result = run(Sound)
    assert [it["name"] for it in result["operations"]] == ALL
    assert all(it["ok"] for it in result["operations"])
    assert (result["device"], result["version"], result["cpu_build"]) == ("cpu:2", "1.0", False)
    assert result["operations"][1]["proves"] is None
    assert "error" not in result


@pytest.mark.thorough
def test_kernels_are_compiled_at_run_time_on_a_gpu_only(run: Run) -> None:
    assert [it["name"] for it in run(Sound, "cuda")["operations"]] == [*ALL, "run-time-compilation"]


@pytest.mark.thorough
def test_a_long_error_keeps_both_ends(run: Run) -> None:
    """The source of a kernel stands before or after the reason."""

    class Refused(Sound):
        def matmul(self, left: Array, right: Array) -> Outcome:
            raise RuntimeError(f"first {'code ' * 5000} last")

    text = run(Refused)["operations"][1]["error"]["text"]
    assert (text[:6], text[-5:], len(text) < 4100) == ("first ", " last", True)


@pytest.mark.thorough
def test_on_a_gpu_the_library_of_an_operation_is_reported(run: Run) -> None:
    assert [it["proves"] for it in run(Sound, "cuda")["operations"]][:3] == [None, "cuBLAS", None]


@pytest.mark.thorough
def test_every_outcome_is_written_before_the_next_operation_starts(run: Run, tmp_path: Path) -> None:
    run(Sound)
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    order = [line.get("stage") or line["note"].get("operation", {"name": "about"})["name"] for line in lines]
    assert order == ["import", "about", "init", *(name for it in ALL for name in (it, it))]


def test_an_import_error_is_a_result(run: Run) -> None:
    def load(device: str) -> Framework:
        try:
            raise OSError("libcublas.so.11: cannot open shared object file")
        except OSError:
            raise UnboundLocalError("local variable 'path' referenced before assignment") from None

    result = run(load)
    assert (result["stage"], result["operations"]) == ("import", [])
    assert result["error"]["type"] == "UnboundLocalError"
    assert result["error"]["text"].endswith("\nOSError: libcublas.so.11: cannot open shared object file")


def test_an_unavailable_device_ends_it(run: Run) -> None:
    class Blind(Sound):
        def open(self, device: str, index: int) -> str:
            raise NoDeviceError("it lists 0 GPUs")

    result = run(Blind, "cuda")
    assert (result["stage"], result["operations"]) == ("init", [])
    assert result["error"] == {"type": "NoDeviceError", "text": "it lists 0 GPUs"}


@pytest.mark.thorough
def test_a_cpu_build_is_not_tested_on_a_gpu(run: Run) -> None:
    class OnlyCpu(Sound):
        cpu_build = True

        def open(self, device: str, index: int) -> str:
            assert device == "cpu"
            return "CPU"

    assert run(OnlyCpu, "cuda")["operations"] == []
    assert all(it["ok"] for it in run(OnlyCpu, "cpu")["operations"])


def test_unsupported_operations_are_not_failures(run: Run) -> None:
    class Products(Sound):
        element_wise, convolution = Framework.element_wise, Framework.convolution
        convolution_backward, training = Framework.convolution_backward, Framework.training

    result = run(Products)
    done = {it["name"]: it for it in result["operations"]}
    assert {name: it.get("unsupported") for name, it in done.items()} == {
        "element-wise": "it has no element-wise operations",
        "matmul": None,
        "convolution": "it has no convolution",
        "convolution-backward": "it computes no gradients",
        "training": "it does not train",
    }
    assert [(it["ok"], it["error"]) for it in done.values() if "unsupported" in it] == [(None, None)] * 4
    assert result["first_kernel_seconds"] >= done["matmul"]["seconds"]


def test_a_framework_without_such_a_device_is_reported(run: Run) -> None:
    def load(device: str) -> Framework:
        raise UnsupportedError("it runs on GPUs only")

    result = run(load)
    assert result["unsupported"] == "it runs on GPUs only"
    assert "error" not in result


@pytest.mark.thorough
def test_after_a_failed_operation_the_others_run(run: Run) -> None:
    class Broken(Sound):
        def convolution(self, images: Array, filters: Array) -> Outcome:
            raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_INITIALIZED")

    done = run(Broken)["operations"]
    assert [it["ok"] for it in done] == [True, True, False, True, True]
    assert done[2]["error"] == {"type": "RuntimeError", "text": "cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"}


@pytest.mark.thorough
def test_a_correct_result_on_the_wrong_device_is_not_ok(run: Run) -> None:
    class Elsewhere(Sound):
        def matmul(self, left: Array, right: Array) -> Outcome:
            return super().matmul(left, right)._replace(on_device=False)

    product = run(Elsewhere)["operations"][1]
    assert (product["ok"], product["on_device"], product["wrong"]) == (False, False, 0)


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "max_error"), [(1e3, pytest.approx(85, rel=0.2)), (float("nan"), None)])
def test_one_wrong_number_is_not_ok(run: Run, number: float, max_error: object) -> None:
    class Off(Sound):
        def matmul(self, left: Array, right: Array) -> Outcome:
            numbers = reference.matmul(left, right)
            numbers[77] = number
            return Outcome(numbers, on_device=True)

    product = run(Off)["operations"][1]
    assert (product["ok"], product["wrong"], product["numbers"]) == (False, 1, 4096)
    assert product["max_error"] == max_error


@pytest.mark.thorough
def test_an_empty_result_is_not_ok(run: Run) -> None:
    class Nothing(Sound):
        def training(self, lesson: Lesson) -> Outcome:
            return Outcome([], on_device=True)

    last = run(Nothing)["operations"][-1]
    assert (last["ok"], last["learns"]) == (False, False)


@pytest.mark.thorough
def test_losses_that_do_not_decrease_are_reported(run: Run) -> None:
    class Stubborn(Sound):
        def training(self, lesson: Lesson) -> Outcome:
            return Outcome([51.8, 51.8, 60.0, 1e30], on_device=True)

    last = run(Stubborn)["operations"][-1]
    assert (last["ok"], last["learns"], last["losses"][-1]) == (False, False, "1e+30")


@pytest.mark.thorough
@pytest.mark.parametrize(("differs", "ok"), [(0, True), (1, False)])
def test_burn_repeats_one_product_and_counts_differences(
    run: Run, monkeypatch: pytest.MonkeyPatch, differs: int, ok: bool
) -> None:
    class Repeated(Sound):
        def matmul(self, left: Array, right: Array) -> Outcome:
            time.sleep(0.01 if left.shape == right.shape else 0)
            return super().matmul(left, right)

        def products(self, left: Array, right: Array) -> Callable[[], int]:
            assert left.shape == right.shape == (128, 128)
            assert left.numbers != right.numbers
            return lambda: differs

    monkeypatch.setitem(operations.BURN_SIZE, "cpu", 128)
    burn = run(Repeated, burn=0.001)["burn"]
    assert burn["ok"] is ok
    assert burn["products"] > 0
    assert burn["wrong"] == burn["products"] * differs


def test_burn_with_a_wrong_first_product_is_not_ok(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Off(Sound):
        def matmul(self, left: Array, right: Array) -> Outcome:
            done = super().matmul(left, right)
            return done if left.shape != right.shape else done._replace(numbers=[it + 1 for it in done.numbers])

    monkeypatch.setitem(operations.BURN_SIZE, "cpu", 128)
    burn = run(Off, burn=0.001)["burn"]
    assert (burn["ok"], burn["wrong"]) == (False, operations.SAMPLES)


@pytest.mark.thorough
def test_reduced_precision_is_disabled_before_the_import(run: Run) -> None:
    import os

    def load(device: str) -> Framework:
        assert os.environ["NVIDIA_TF32_OVERRIDE"] == "0"
        return Sound(device)

    assert "error" not in run(load)
