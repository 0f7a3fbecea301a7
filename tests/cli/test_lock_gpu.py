"""The influence of a GPU, a driver and PyTorch's index on a lock, with made-up packages with real names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.app.lock.lock_worlds import Chosen, Worlds
from envsolve.app.lock.target_search import TargetSearch
from tests.cli.locked import pins_in
from tests.cli.worlds import LINUX, NVIDIA, releases, torch
from tests.conftest import Envsolve, Result
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer

TARGET = ("--python", "3.11.7", "--platform", "linux-64", "--no-cache", "--format", "requirements")


def lock(envsolve: Envsolve, world: IndexServer, *arguments: str) -> Result:
    where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    return envsolve(*arguments, *TARGET, *where)


def causes(result: Result) -> list[str]:
    return [line.removeprefix("cause: ") for line in result.err.splitlines() if line.startswith("cause: ")]


def pins(envsolve: Envsolve, world: IndexServer, *arguments: str) -> dict[str, str]:
    result = lock(envsolve, world, *arguments)
    assert result.code == 0, result.err
    return pins_in(result.out)


@pytest.mark.thorough
def test_pytorch_for_an_older_gpu_is_from_the_index_of_pytorch_and_the_rest_is_not(
    envsolve: Envsolve, world: IndexServer
) -> None:
    result = lock(envsolve, world, "torch", "torchvision", "--gpu", "6.1", "--driver", "580.65.06")
    found = pins_in(result.out)
    assert (found["torch"], found["torchvision"]) == ("2.14.1+cu126", "0.29.2+cu126")
    assert f"\n--index-url {world.url}/simple\n--extra-index-url {world.url}/whl/cu126\n\n" in result.out
    assert result.out.count(f"\n    # from {world.url}/whl/cu126\n") == 2
    assert world.count("/whl/cu126/numpy/") == world.count("/whl/cu126/nvidia*") == 0
    assert not [name for name in found if name.endswith("-cu13")]


@pytest.mark.parametrize(("requested", "version"), [("pytorch", "2.15.0"), ("pytorch==2.14.1", "2.14.1")])
def test_the_index_of_pytorch_is_only_queried_if_its_build_is_the_best(
    requested: str, version: str, envsolve: Envsolve, world: IndexServer
) -> None:
    """It also has builds of 2.14.1."""
    world.add("torch", [torch("2.14.1")])
    assert pins(envsolve, world, "-f", requested, "--gpu", "8.6", "--driver", "580.65.06")["torch"] == version
    assert [it.path for it in world.requests if it.path.startswith("/whl/")] == []
    older = pins(envsolve, world, "-f", "pytorch==2.14.1", "--gpu", "8.6", "--driver", "535.183.01")
    assert (older["torch"], world.count("/whl/cu126/torch/")) == ("2.14.1+cu126", 1)


@pytest.mark.thorough
def test_a_framework_that_only_comes_as_a_dependency_is_for_the_gpu(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("sentence-transformers", [wheel("sentence-transformers", "5.4.0", ["torch>=2.2"])])
    found = pins(envsolve, world, "sentence-transformers", "--gpu", "8.6", "--driver", "535.183.01")
    assert found["torch"] == "2.14.1+cu126"
    assert pins(envsolve, world, "sentence-transformers", "--gpu", "8.6")["torch"] == "2.15.0"


def test_without_a_gpu_pytorch_is_the_build_for_the_cpu(envsolve: Envsolve, world: IndexServer) -> None:
    found = pins(envsolve, world, "torch", "torchvision", "--gpu", "none")
    assert found["torch"].endswith("+cpu")
    assert found["torchvision"].endswith("+cpu")
    assert not [name for name in found if name.startswith("nvidia-")]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("wanted", "package"),
    [
        (("-f", "tensorflow"), "tensorflow-cpu"),
        (("tensorflow",), "tensorflow"),
        (("tensorflow-hub",), "tensorflow"),
        (("-f", "tensorflow", "tensorflow-hub"), "tensorflow"),
    ],
)
def test_without_a_gpu_tensorflow_goes_by_the_name_that_packages_ask_for(
    wanted: tuple[str, ...], package: str, envsolve: Envsolve, world: IndexServer
) -> None:
    for name in ("tensorflow", "tensorflow-cpu"):
        world.add(name, releases(name, ["2.21.0"], ["numpy"], tags=f"cp311-cp311-{LINUX}"))
    world.add("tensorflow-hub", [wheel("tensorflow-hub", "0.16.1", ["tensorflow"])])
    found = pins(envsolve, world, *wanted, "--gpu", "none")
    assert [name for name in found if name in {"tensorflow", "tensorflow-cpu"}] == [package]


def test_known_conflicts_of_a_framework_limit_the_lock(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("tensorflow", releases("tensorflow", ["2.14.0"], ["numpy>=1.23.5"], tags=f"cp311-cp311-{LINUX}"))
    result = lock(envsolve, world, "tensorflow==2.14.0", "--gpu", "none")
    assert pins_in(result.out)["numpy"] == "1.26.4"
    assert "    # because: tensorflow 2.14.0 breaks without numpy<2\n" in result.out


def test_an_index_without_the_build_for_the_cpu_gives_the_one_for_all(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("tensorflow", releases("tensorflow", ["2.21.0"], ["numpy"], tags=f"cp311-cp311-{LINUX}"))
    assert "tensorflow" in pins(envsolve, world, "-f", "tensorflow", "--gpu", "none")


def onnxruntime_from(world: IndexServer) -> None:
    tags = f"cp311-cp311-{LINUX}"
    world.add("onnxruntime-gpu", releases("onnxruntime-gpu", ["1.18.0"], ["numpy>=1.24.2"], tags=tags))


def test_wheels_that_install_no_cuda_are_locked_and_a_note_says_what_the_machine_must_have(
    envsolve: Envsolve, world: IndexServer
) -> None:
    onnxruntime_from(world)
    result = lock(envsolve, world, "onnxruntime-gpu==1.18.0", "--gpu", "8.6", "--driver", "550.54.15")
    assert pins_in(result.out)["onnxruntime-gpu"] == "1.18.0"
    text, _, command = result.err.partition("conda can install them")
    assert text.endswith("the machine needs CUDA 11.8 and cuDNN >=8,<9 on its library path. ")
    assert command.strip(": \n").startswith("envsolve ")


@pytest.mark.thorough
def test_beside_a_framework_that_brings_cuda_they_are_locked_for_its_major_and_the_lock_runs(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    onnxruntime_from(world)
    tags = f"cp311-cp311-{LINUX}"
    world.index("/whl/cu117/", "pytorch").add("torch", releases("torch", ["2.0.1+cu117"], tags=tags))
    machine = ("--gpu", "8.6", "--driver", "535.54.03")
    result = lock(envsolve, world, "torch", "onnxruntime-gpu==1.18.0", *machine)
    found = pins_in(result.out)
    assert found["torch"] == "2.0.1+cu117"
    assert found["onnxruntime-gpu"] == "1.18.0"
    assert "note: torch 2.0.1+cu117 is used, not 2.14.1: " in result.err
    path = tmp_path / "requirements.txt"
    path.write_text(result.out)
    assert envsolve("status", str(path), *machine, "--platform", "linux-64").code == 0


@pytest.mark.thorough
def test_requirements_that_apply_with_one_framework_are_added_only_with_it(
    envsolve: Envsolve, world: IndexServer
) -> None:
    """TensorFlow Probability imports tf_keras with TensorFlow, and not with JAX."""
    world.add("tensorflow-probability", [wheel("tensorflow-probability", "0.25.0")])
    world.add("tf-keras", [wheel("tf-keras", "2.18.0")])
    for name in ("tensorflow", "tensorflow-cpu"):
        world.add(name, releases(name, ["2.21.0", "2.17.0"], ["numpy"], tags=f"cp311-cp311-{LINUX}"))
    beside_torch = pins(envsolve, world, "torch", "tensorflow-probability", "--gpu", "none")
    assert "tf-keras" not in beside_torch
    beside = pins(envsolve, world, "tensorflow", "tensorflow-probability", "--gpu", "none")
    assert (beside["tensorflow"], beside["tf-keras"]) == ("2.21.0", "2.18.0")
    assert lock(envsolve, world, "tensorflow==2.17.0", "tensorflow-probability", "--gpu", "none").code == 1


@pytest.mark.thorough
def test_transformers_is_of_the_age_of_the_pytorch_that_the_gpu_needs(envsolve: Envsolve, world: IndexServer) -> None:
    """Newer ones install with it and then run without PyTorch; their metadata names it only in an extra."""
    tags = f"cp311-cp311-{LINUX}"
    world.add("transformers", releases("transformers", ["5.24.0", "5.1.0", "5.0.0", "4.57.6"], tags="py3-none-any"))
    world.index("/whl/cu118/", "pytorch").add("torch", releases("torch", ["2.3.1+cu118"], ["numpy"], tags=tags))
    found = pins(envsolve, world, "-f", "pytorch", "transformers", "--gpu", "K80", "--driver", "470.82.01")
    assert (found["torch"], found["transformers"]) == ("2.3.1+cu118", "5.0.0")
    assert set(pins(envsolve, world, "transformers", "--gpu", "none")) == {"transformers"}


def test_bitsandbytes_for_a_kepler_is_one_that_has_code_for_it(envsolve: Envsolve, world: IndexServer) -> None:
    """Releases before 0.39 have it, in their libraries for CUDA before 11.8."""
    tags = f"cp311-cp311-{LINUX}"
    world.add("bitsandbytes", releases("bitsandbytes", ["0.44.1", "0.40.2", "0.38.1"], tags="py3-none-any"))
    world.index("/whl/cu118/", "pytorch").add("torch", releases("torch", ["2.3.1+cu118"], tags=tags))
    world.add("torch", releases("torch", ["2.0.1"], tags=tags))
    found = pins(envsolve, world, "-f", "pytorch", "bitsandbytes", "--gpu", "K80", "--driver", "470.82.01")
    assert (found["torch"], found["bitsandbytes"]) == ("2.0.1", "0.38.1")


@pytest.mark.parametrize("requirement", ["cupy-cuda13x", "jax[cuda13]>=0.9"])
def test_a_requirement_that_names_its_cuda_has_to_be_changed_for_another(
    requirement: str, envsolve: Envsolve, world: IndexServer
) -> None:
    """With --cuda 12.8 it would contradict itself, and --cuda 13 adds nothing."""
    machine = ("--gpu", "8.6", "--driver", "550.54.15", "--source", "pypi")
    refused = lock(envsolve, world, "-f", "pytorch", requirement, *machine)
    assert f"hint: with CUDA 12.8 it fits: change {requirement} (the command line)\nhint: " in refused.err
    assert "hint: install NVIDIA driver 580.65.06 or newer: " in refused.err
    assert "--cuda" not in refused.err


def test_cupy_is_refused_without_a_gpu(envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    world.add("cupy-cuda11x", releases("cupy-cuda11x", ["13.6.0"], tags=f"cp311-cp311-{LINUX}"))
    result = envsolve("-f", "cupy", *TARGET, "--index-url", world.index_url)
    assert (result.code, result.out) == (1, "")
    assert "no CPU build of cupy" in result.err
    assert "cause: no NVIDIA GPU was found: the request is for the CPU\n" in result.err
    assert "hint: to solve for a GPU, name it with --gpu\n" in result.err


def test_a_request_for_the_cpu_is_not_sent_to_a_gpu(envsolve: Envsolve) -> None:
    result = envsolve("-f", "cupy", "--gpu", "none", "--platform", "linux-64")
    assert (result.code, "to solve for a GPU" in result.err) == (1, False)
    result = envsolve("-f", "cupy", "--platform", "osx-arm64")
    assert (result.code, "to solve for a GPU" in result.err) == (1, False)


@pytest.mark.thorough
@pytest.mark.parametrize("driver", [(), ("--driver", "580.65.06")])
def test_a_volta_never_gets_cuda_13(driver: tuple[str, ...], envsolve: Envsolve, world: IndexServer) -> None:
    found = pins(envsolve, world, "torch", "--gpu", "7.0", *driver)
    assert not [name for name in found if name.endswith("-cu13") or name == "nvidia-cublas"]
    assert found["nvidia-cudnn-cu12"] == "9.10.2.21"


def test_three_frameworks_share_one_cuda(envsolve: Envsolve, world: IndexServer) -> None:
    parts = ["nvidia-cublas-cu12<13,>=12.5", "nvidia-cudnn-cu12<10,>=9.3", "nvidia-nccl-cu12<3,>=2.25"]
    extra = [f"{it}; extra == 'and-cuda'" for it in parts]
    flow = wheel("tensorflow", "2.20.0", ["numpy", *extra], tags=f"cp311-cp311-{LINUX}", extras=["and-cuda"])
    world.add("tensorflow", [flow, wheel("tensorflow", "2.21.0", ["numpy", *extra], tags=f"cp311-cp311-{LINUX}")])
    plugin = wheel("jax-cuda12-plugin", "0.10.2", parts, tags=NVIDIA)
    world.add("jax-cuda12-plugin", [plugin])
    world.add("jax", [wheel("jax", "0.10.2", ["jax-cuda12-plugin==0.10.2; extra == 'cuda12'"], extras=["cuda12"])])
    found = pins(envsolve, world, "tensorflow[and-cuda]", "torch", "jax[cuda12]", "--gpu", "8.6")
    assert found["torch"] == "2.14.1+cu126"
    assert {"tensorflow", "jax", "jax-cuda12-plugin", "nvidia-nccl-cu12"} <= found.keys()
    assert not [name for name in found if name.endswith("-cu13") or name == "nvidia-cublas"]


class TestWhatIsForAnotherCuda:
    @pytest.fixture(autouse=True)
    def _packages(self, world: IndexServer) -> None:
        nccl = [wheel("xgboost", version, ["numpy", "nvidia-nccl-cu12"]) for version in ("3.0.0", "3.1.2")]
        world.add("xgboost", [*nccl, wheel("xgboost", "2.0.3", ["numpy"])])

    @pytest.mark.thorough
    def test_never_stands_beside_the_stack(self, envsolve: Envsolve, world: IndexServer) -> None:
        found = pins(envsolve, world, "torch", "xgboost", "--gpu", "8.6")
        assert not {"nvidia-nccl-cu12", "nvidia-nccl-cu13"} <= found.keys()

    def test_takes_a_stack_of_its_cuda(self, envsolve: Envsolve, world: IndexServer) -> None:
        found = pins(envsolve, world, "torch", "xgboost>=3", "--gpu", "8.6")
        assert (found["xgboost"], found["torch"]) == ("3.1.2", "2.14.1+cu126")
        assert not [name for name in found if name.endswith("-cu13") or name == "nvidia-cublas"]

    @pytest.mark.thorough
    def test_may_stand_there_in_a_folder_of_its_own(self, envsolve: Envsolve, world: IndexServer) -> None:
        world.add("compiler", [wheel("compiler", "1.0", ["nvidia-cuda-nvcc-cu12"])])
        world.add("nvidia-cuda-nvcc-cu12", [wheel("nvidia-cuda-nvcc-cu12", "12.9.86")])
        found = pins(envsolve, world, "torch", "compiler", "--gpu", "8.6")
        assert (found["torch"], found["nvidia-cuda-nvcc-cu12"]) == ("2.15.0", "12.9.86")

    @pytest.mark.thorough
    def test_is_reported_where_no_stack_of_its_cuda_is_left(self, envsolve: Envsolve, world: IndexServer) -> None:
        request = ("torch==2.15.0", "xgboost>=3", "--gpu", "8.6")
        result = lock(envsolve, world, *request)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(
            "error: packages-conflict\n  only one package may install the folder nvidia/nccl, for "
        )
        few = [
            "the command line requires xgboost>=3",
            "torch 2.15.0 requires nvidia-nccl-cu13==2.30.7",
            "xgboost 3.1.2 requires nvidia-nccl-cu12",
        ]
        folder = "nvidia-nccl-cu13 2.30.7 requires the folder nvidia/nccl for itself"
        assert causes(result) == few
        every = causes(lock(envsolve, world, *request, "-v"))
        assert (every[:3], folder in every) == (few, True)
        document = json.loads(lock(envsolve, world, *request, "--json").out)
        assert [step["requirement"] for step in document["error"]["conflict"]] == every


def test_the_stricter_of_two_requirements_is_the_cause(envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, "torch>=2.7", "typing-extensions==4.9.0", "--gpu", "8.6")
    assert (result.code, causes(result)[0]) == (1, "the command line requires typing-extensions==4.9.0")


class TestAFrameworkThatIsOnlyARequirement:
    """TensorFlow has no code for compute capability 12.0."""

    OPTIONS = ("-f", "jax", "--gpu", "12.0", "--source", "pypi")
    HINT = "hint: require tensorflow-cpu instead of tensorflow>=2.16 (-r requirements.in) to run it on the CPU\n"

    @pytest.fixture(autouse=True)
    def requirements_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("requirements.in").write_text("tensorflow>=2.16\n")

    def test_may_be_replaced_by_its_build_for_the_cpu(self, envsolve: Envsolve, world: IndexServer) -> None:
        result = lock(envsolve, world, *self.OPTIONS, "-r", "requirements.in")
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("error: gpu-not-supported\n")
        assert self.HINT in result.err

    @pytest.mark.thorough
    def test_is_not_replaced_where_it_is_named(self, envsolve: Envsolve, world: IndexServer) -> None:
        result = lock(envsolve, world, *self.OPTIONS, "-f", "tensorflow", "-r", "requirements.in")
        assert (result.code, "tensorflow-cpu" in result.err) == (1, False)

    def test_is_not_replaced_where_the_others_have_no_stack_either(
        self, envsolve: Envsolve, world: IndexServer
    ) -> None:
        result = lock(envsolve, world, *self.OPTIONS, "-r", "requirements.in", "--driver", "525.60.13")
        assert (result.code, "tensorflow-cpu" in result.err) == (1, False)


def test_a_bound_in_a_file_is_to_be_changed_there(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command with another --framework would be refused because of the line in the file."""
    monkeypatch.chdir(tmp_path)
    Path("requirements.in").write_text("torch==2.15.0\n")
    result = lock(envsolve, world, "-f", "pytorch", "-r", "requirements.in", "--gpu", "6.1", "--source", "pypi")
    assert (result.code, result.out) == (1, "")
    hint = "hint: the newest pytorch that fits is 2.7.1 (pypi, CUDA 12.6): change torch==2.15.0 (-r requirements.in)\n"
    assert hint in result.err
    assert "--framework pytorch==2.7.1" not in result.err


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("gpu", "version"), [("8.6", "0.20.0"), ("7.0", "0.8.5"), ("6.1", None)], ids=["newest", "older", "none"]
)
def test_a_package_without_code_for_the_gpu_is_never_taken(
    gpu: str, version: str | None, envsolve: Envsolve, world: IndexServer
) -> None:
    """vLLM has code from 7.0, and since 0.20 from 7.5."""
    world.add("vllm", [wheel("vllm", it, ["torch"]) for it in ("0.2.7", "0.8.5", "0.20.0")])
    result = lock(envsolve, world, "vllm", "--gpu", gpu, "--driver", "580.65.06")
    assert pins_in(result.out).get("vllm") == version
    message = "cause: no known vllm wheel has code for compute capability 6.1\n"
    assert (result.code, result.err.count(message)) == ((0, 0) if version else (1, 1))


@pytest.mark.thorough
def test_an_old_source_distribution_does_not_replace_wheels_without_code_for_the_gpu(
    envsolve: Envsolve, world: IndexServer
) -> None:
    """flash-attn has code from 8.0 since version 2; 1.0.9 had some for 7.5."""
    days = {"2.8.3": "2026-08-01T00:00:00Z", "1.0.9": "2023-07-17T00:00:00Z"}
    world.add("flash-attn", [sdist("flash-attn", it, ["torch"])._replace(upload_time=day) for it, day in days.items()])
    target = ("--gpu", "7.5", "--driver", "580.65.06")
    refused = lock(envsolve, world, "-f", "pytorch", "flash-attn", *target)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("error: outdated\n")
    assert "cause: flash-attn>=2.7.3 has no code for compute capability 7.5\n" in refused.err
    assert "cause: flash-attn 1.0.9 has only a source distribution\n" in refused.err
    assert (world.count("*1.0.9.tar.gz"), world.count("*2.8.3.tar.gz")) == (1, 0)  # large archives, read for nothing
    assert "hint: use it anyway\n" in refused.err
    for words in (("flash-attn==1.0.9",), ("flash-attn<2",), ("flash-attn", "--allow-builds")):
        done = lock(envsolve, world, "-f", "pytorch", *words, *target)
        assert pins_in(done.out)["flash-attn"] == "1.0.9", done.err
    assert pins_in(lock(envsolve, world, "-f", "pytorch", "flash-attn", "--gpu", "8.6").out)["flash-attn"] == "2.8.3"


def test_missing_code_for_the_gpu_is_the_reason_and_not_a_prerelease(envsolve: Envsolve, world: IndexServer) -> None:
    """libcudf has code from 7.0; the index has a first pre-release without content."""
    world.add("libcudf-cu12", [wheel("libcudf-cu12", it) for it in ("0.0.0a0.dev0", "26.8.0", "26.10.2")])
    world.add("cudf-cu12", [wheel("cudf-cu12", it, [f"libcudf-cu12=={it}"]) for it in ("26.8.0", "26.10.2")])
    result = lock(envsolve, world, "cudf-cu12", "-f", "pytorch", "--gpu", "6.1", "--driver", "580.65.06")
    assert result.code == 1
    assert "cause: no known libcudf-cu12 wheel has code for compute capability 6.1\n" in result.err
    assert "hint: leave out cudf-cu12: no other PyTorch, CUDA or Python changes this\n" in result.err
    assert "pre-release" not in result.err


class TestTwoPackagesOfOneModule:
    @pytest.fixture(autouse=True)
    def _packages(self, world: IndexServer) -> None:
        for name in ("onnxruntime", "onnxruntime-gpu"):
            world.add(name, releases(name, ["1.26.0"], ["numpy"], tags=f"cp311-cp311-{LINUX}"))
        world.add("fastembed", [wheel("fastembed", "0.7", ["onnxruntime>1.20"]), wheel("fastembed", "0.5", ["numpy"])])

    def test_never_stand_side_by_side_but_one_for_the_other(self, envsolve: Envsolve, world: IndexServer) -> None:
        result = lock(envsolve, world, "onnxruntime-gpu", "fastembed", "--gpu", "8.6")
        found = pins_in(result.out)
        assert (found["fastembed"], found["onnxruntime-gpu"]) == ("0.7", "1.26.0")
        assert "onnxruntime" not in found
        message = "fastembed 0.7 requires onnxruntime, and onnxruntime-gpu in this lock installs the same module"
        assert f"note: {message}: install it with pip install --no-deps or uv pip sync\n" in result.err

    def test_an_override_that_leaves_the_other_one_out_has_an_effect(
        self, envsolve: Envsolve, world: IndexServer
    ) -> None:
        override = "onnxruntime>=1.20; platform_machine != 'x86_64'"
        result = lock(envsolve, world, "onnxruntime-gpu", "fastembed", "--gpu", "8.6", "--override", override)
        assert pins_in(result.out)["onnxruntime-gpu"] == "1.26.0"
        assert "has no effect" not in result.err

    def test_keep_to_the_versions_that_are_required(self, envsolve: Envsolve, world: IndexServer) -> None:
        world.add("fastembed", [wheel("fastembed", "0.8", ["onnxruntime>1.30"])])
        assert pins(envsolve, world, "onnxruntime-gpu", "fastembed", "--gpu", "8.6")["fastembed"] == "0.7"

    def test_the_compatible_package_is_named_with_the_requested_versions(
        self, envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("requirements.in").write_text("onnxruntime>=1.20\n")
        result = lock(envsolve, world, "-f", "onnxruntime", "-r", "requirements.in", "--gpu", "8.6")
        assert result.err.startswith("error: packages-conflict\n")
        (hint,) = [line for line in result.err.splitlines() if line.startswith("hint: ")]
        assert hint.startswith(
            "hint: require onnxruntime-gpu>=1.20 instead of onnxruntime>=1.20 (-r requirements.in): "
        )
        Path("requirements.in").write_text("onnxruntime-gpu>=1.20\n")
        found = pins(envsolve, world, "-f", "onnxruntime", "-r", "requirements.in", "--gpu", "8.6")
        assert found["onnxruntime-gpu"] == "1.26.0"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("torch<2.9", "2.8.0"),
        ("torch==2.8.0", "2.8.0"),
        ("torch==2.8.0; python_version < '3.9'", "2.15.0"),
        ("torch==2.8.0; sys_platform == 'darwin'", "2.15.0"),
    ],
)
def test_a_constraint_on_a_framework_decides_on_the_stack(
    constraint: str, expected: str, envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    path = tmp_path / "constraints.txt"
    path.write_text(f"{constraint}\n", encoding="utf-8")
    world.add("lightning", [wheel("lightning", "2.6.0", ["torch>=2.1"])])
    for wanted in ("torch", "lightning"):
        found = pins(envsolve, world, wanted, "--constraint", str(path), "--gpu", "8.6", "--source", "pypi")
        assert found["torch"] == expected


def test_a_framework_for_another_system_is_none_of_this_one(envsolve: Envsolve, world: IndexServer) -> None:
    found = pins(envsolve, world, "torch<2; sys_platform == 'darwin'", "numpy", "--gpu", "8.6")
    assert list(found) == ["numpy"]


BY_PYTHON = ("torch>=2.8; python_version>='3.11'", "torch==2.7.0; python_version<'3.11'", "--gpu", "8.6")


def test_versions_by_the_python_apply_on_that_python(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    assert pins(envsolve, world, *BY_PYTHON, "--source", "pypi")["torch"] == "2.15.0"
    result = envsolve(*BY_PYTHON, *TARGET[2:], "--index-url", world.index_url)
    assert (result.code, pins_in(result.out)["torch"]) == (0, "2.15.0"), result.err
    result = envsolve(*BY_PYTHON, *TARGET[2:], "--index-url", world.index_url, "--python", "3.10")
    assert result.code == 1
    assert "cause: the stack requires torch==2.7.0\n" in result.err
    (tmp_path / "limits.txt").write_text("torch<2; python_version<'3.11'\n", encoding="utf-8")
    result = envsolve(
        *BY_PYTHON[:1],
        "--gpu",
        "8.6",
        *TARGET[2:],
        "--index-url",
        world.index_url,
        "--constraint",
        str(tmp_path / "limits.txt"),
    )
    assert (result.code, pins_in(result.out)["torch"]) == (0, "2.15.0"), result.err


def test_a_framework_by_the_python_wants_a_python_to_be_named(envsolve: Envsolve, world: IndexServer) -> None:
    request = ("torch", "tensorflow==9.*; python_version>='3.11'", "--gpu", "8.6")
    result = envsolve(*request, *TARGET[2:], "--index-url", world.index_url)
    assert (result.code, result.out) == (1, "")
    assert "hint: the framework requirements depend on the Python version: choose one with --python\n" in result.err


def test_a_build_that_the_index_does_not_have_is_named(envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, "-f", "pytorch==2.7.0", "--gpu", "8.6", "--source", "pypi")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: release-not-on-index\n")
    assert " to 2.15.0, and no other index is used for it\n" in result.err


class Named(NamedTuple):
    """A build named by a version, the GPU of the request, and the code and text of the error."""

    requirement: str
    gpu: tuple[str, ...]
    code: str
    says: tuple[str, ...]


NAMED = {
    "CUDA where CPU is asked for": Named(
        "torch==2.7.1+cu126",
        ("--gpu", "none"),
        "gpu-build-without-gpu",
        (
            "==2.7.1+cu126 is a CUDA build, and --gpu none requests a CPU build",
            "hint: name the target GPU",
            "omit +cu126",
        ),
    ),
    "CUDA where no GPU is": Named(
        "torch===2.7.1+cu126", (), "gpu-build-without-gpu", ("is a CUDA build, and no GPU was found or named",)
    ),
    "CPU where a GPU is": Named(
        "torch==2.7.1+cpu",
        ("--gpu", "8.6"),
        "cpu-build-with-gpu",
        (
            "==2.7.1+cpu is a CPU build, and the request is for a GPU",
            "hint: use --gpu none for CPU builds",
            "omit +cpu",
        ),
    ),
    "a version that nobody has": Named(
        "torch==99+cu126", ("--gpu", "8.6"), "no-such-release", ("no GPU build of pytorch==99+cu126 is known",)
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_build_for_another_kind_of_machine_is_reported(
    name: str, envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = NAMED[name]
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    places = ("--extra-index-url", world.index_url, "--source", "pytorch")
    result = envsolve(named.requirement, *named.gpu, *TARGET, *places)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {named.code}\n")
    assert [it for it in named.says if it not in result.err] == []


def test_a_build_for_the_gpu_may_be_named(envsolve: Envsolve, world: IndexServer) -> None:
    assert pins(envsolve, world, "torch==2.14.1+cu126", "--gpu", "8.6")["torch"] == "2.14.1+cu126"


def test_hashes_bind_the_wheel_of_a_framework(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.in"
    requirements.write_text("torch==2.14.1+cu126 --hash=sha256:00\n", encoding="utf-8")
    result = lock(envsolve, world, "-r", str(requirements), "--gpu", "8.6")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(
        "error: hash-mismatch\n  the index has other hashes for torch 2.14.1+cu126 than required"
    )
    assert "--source pypi" in result.err


class TestWhatHasNoWheel:
    def test_is_reported_beside_the_stack_that_needs_it(self, envsolve: Envsolve, world: IndexServer) -> None:
        world.add("jax", [wheel("jax", "0.6.2", ["jaxlib"])])
        world.add("jaxlib", [wheel("jaxlib", "0.6.2", tags="cp311-cp311-win_amd64")])
        result = lock(envsolve, world, "jax==0.6.2", "--gpu", "none")
        assert result.err.startswith(
            "error: no-wheel\n  jaxlib cannot be installed on Python 3.11.7 on linux-64 with jax 0.6.2 (pypi, cpu): "
            "it has no wheel for this Python and platform\n"
        )

    def test_is_reported_where_it_is_the_stack_itself(self, envsolve: Envsolve, world: IndexServer) -> None:
        world.add("jax", [wheel("jax", "0.6.2", requires_python=">=3.12")])
        result = lock(envsolve, world, "jax==0.6.2", "--gpu", "none")
        assert result.err.startswith(
            "error: no-wheel\n  jax 0.6.2 cannot be installed on Python 3.11.7 on linux-64: "
            "it does not support this Python\n"
        )


def test_an_answer_that_took_all_the_time_is_completed(
    envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    best_in = TargetSearch.best_in

    def late(self: TargetSearch, worlds: Worlds) -> Chosen | None:
        found = best_in(self, worlds)
        self.end = 0.0
        return found

    monkeypatch.setattr(TargetSearch, "best_in", late)
    found = pins(envsolve, world, "torch", "torchvision", "--gpu", "6.1", "--driver", "580.65.06")
    assert found["torch"] == "2.14.1+cu126"


def test_a_suggestion_keeps_the_requirements_that_name_a_framework(envsolve: Envsolve, world: IndexServer) -> None:
    refused = lock(envsolve, world, "torch", "--gpu", "V100", "--driver", "610")
    (command,) = re.findall(r"^  (envsolve .*--driver 580 .*)$", refused.err, re.MULTILINE)
    assert "--framework" not in command
    assert command.endswith(" torch")
    again = lock(envsolve, world, "torch>=2.15", "--gpu", "K80")
    assert "fits is 2.3.1 (pytorch, CUDA 11.8): change torch>=2.15 (the command line)\n" in again.err
    assert not re.search("^  envsolve ", again.err, re.MULTILINE)
