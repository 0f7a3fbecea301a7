"""CPU builds with a GPU, and distributions that have overwritten one another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.model.finding import Severity
from tests.binary.layouts import real_loader
from tests.diagnose.environment.static_environment import AMPERE, Environment

PADDLE = "paddle/version/__init__.py"


def _tensorflow(it: Environment) -> None:
    it.write("tensorflow/__init__.py")
    it.write("tensorflow/python/platform/build_info.py", "build_info = OrderedDict([('is_cuda_build', False)])\n")


def _tensorflow_cpu(it: Environment) -> None:
    it.write("tensorflow/__init__.py")
    it.install("tensorflow-cpu", "2.15.0")


def _onnxruntime(it: Environment) -> None:
    it.write("onnxruntime/__init__.py")
    it.install("onnxruntime", "1.20.0")


def _paddle(it: Environment) -> None:
    it.write("paddle/__init__.py")
    it.write(PADDLE, "cuda_version     = 'False'\n")


def _jax(it: Environment) -> None:
    it.install("jax", "0.7.0")
    it.install("jaxlib", "0.7.0")


CPU_BUILDS: dict[str, tuple[Callable[[Environment], None], str]] = {
    "PyTorch without CUDA": (lambda it: it.torch(version="2.8.0", cuda=None), "torch/version.py says cuda = None"),
    "PyTorch from the CPU index": (
        lambda it: it.torch(version="2.8.0+cpu", cuda=None),
        "torch/version.py says cuda = None",
    ),
    "TensorFlow without CUDA": (
        _tensorflow,
        "tensorflow/python/platform/build_info.py says is_cuda_build = False",
    ),
    "tensorflow-cpu": (_tensorflow_cpu, "tensorflow-cpu 2.15.0 is installed, and no package with its GPU code"),
    "onnxruntime": (_onnxruntime, "onnxruntime 1.20.0 is installed, and no package with its GPU code"),
    "PaddlePaddle without CUDA": (_paddle, "paddle/version/__init__.py says cuda_version = 'False'"),
    "JAX without a plugin": (_jax, "jax 0.7.0 is installed, and no package with its GPU code"),
}


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    real_loader()
    return Environment(tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize(("install", "evidence"), CPU_BUILDS.values(), ids=CPU_BUILDS)
def test_a_cpu_build_is_found_where_a_gpu_is(
    install: Callable[[Environment], None], evidence: str, environment: Environment
) -> None:
    install(environment)
    (finding,) = environment.examined(AMPERE).findings
    assert (finding.id, finding.severity, finding.evidence) == ("cpu-build", Severity.ERROR, (evidence,))
    assert environment.examined().findings == ()


def test_builds_for_other_accelerators_are_no_cpu_builds(environment: Environment) -> None:
    environment.write("torch/__init__.py")
    environment.write("torch/version.py", "__version__ = '2.8.0+rocm6.4'\ncuda = None\nhip = '6.4'\n")
    environment.write("onnxruntime/__init__.py")
    environment.install("onnxruntime", "1.20.0")
    environment.install("onnxruntime-openvino", "1.20.0")
    assert [it.id for it in environment.examined(AMPERE).findings] == []


@pytest.mark.parametrize("plugin", ["jax-cuda12-plugin", "jax-cuda13-plugin", "jax-rocm7-plugin"])
def test_jax_with_a_plugin_is_no_cpu_build(plugin: str, environment: Environment) -> None:
    _jax(environment)
    environment.install(plugin, "0.7.0")
    assert environment.examined(AMPERE).findings == ()


def test_an_old_jaxlib_with_cuda_inside_is_no_cpu_build(environment: Environment) -> None:
    environment.install("jax", "0.4.16")
    environment.install("jaxlib", "0.4.16+cuda12.cudnn89")
    assert environment.examined(AMPERE).findings == ()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("onnxruntime", "onnxruntime-gpu", "onnxruntime/__init__.py"),
        ("tensorflow", "tensorflow-cpu", "tensorflow/__init__.py"),
        ("cupy-cuda11x", "cupy-cuda12x", "cupy/__init__.py"),
        ("nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia/cudnn/lib/libcudnn.so.9"),
        ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia/nccl/lib/libnccl.so.2"),
    ],
)
def test_two_distributions_that_own_one_file_are_found(
    first: str, second: str, shared: str, environment: Environment
) -> None:
    environment.install(first, "1.0", shared)
    environment.install(second, "2.0", shared, "other.py")
    (finding,) = environment.examined().findings
    assert (finding.id, finding.severity) == ("two-distributions", Severity.ERROR)
    assert finding.title.startswith(f"{first} 1.0 and {second} 2.0 both contain ")
    assert finding.commands == (f"pip uninstall {first} {second}",)
    assert finding.evidence == (f"both own {shared}",)


def test_two_majors_that_write_different_files_are_not_a_fault(environment: Environment) -> None:
    environment.install("nvidia-cublas-cu11", "11.11", "nvidia/cublas/lib/libcublas.so.11", "nvidia/__init__.py")
    environment.install("nvidia-cublas-cu12", "12.9", "nvidia/cublas/lib/libcublas.so.12", "nvidia/__init__.py")
    assert environment.examined().findings == ()


def test_a_replacement_package_owns_nothing(environment: Environment) -> None:
    """tensorflow for Windows, 2.11 to 2.16, has no file: tensorflow-intel has the module."""
    environment.install("tensorflow", "2.15.0")
    environment.install("tensorflow-intel", "2.15.0", "tensorflow/__init__.py")
    assert environment.examined().findings == ()
