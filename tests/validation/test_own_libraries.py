"""The environment's own CUDA libraries, simulated by libraries with exactly the calls that are used."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.validation.child import Children
from envsolve.validation.inventory import Distribution, Inventory
from envsolve.validation.own_libraries import is_for_gpus, library_files, probe_libraries
from envsolve.validation.report import Owner, ProbeReport, Status
from tests.validation.compiled import CUBLAS, CUDART, CUDNN, CUDNN_OPS, ON_LOAD, compiled


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


def environment(prefix: Path, *, is_conda: bool = False) -> Inventory:
    """A virtual environment, or one of conda, with this interpreter."""
    site = prefix / "lib/python3.11/site-packages"
    site.mkdir(parents=True, exist_ok=True)
    return Inventory("3.11.7", Path(sys.executable), prefix, (site,), (), is_conda=is_conda, owns_prefix=True)


def wheels(prefix: Path) -> Path:
    """The directory of NVIDIA's wheels for their libraries."""
    return environment(prefix).search_path[0] / "nvidia"


def probed(inventory: Inventory, children: Children) -> ProbeReport:
    return probe_libraries(inventory, os.environ, children)[0]


@pytest.mark.thorough
def test_libraries_of_wheels_load_and_report_their_versions(children: Children, tmp_path: Path) -> None:
    nvidia = wheels(tmp_path)
    compiled(nvidia / "cuda_runtime/lib/libcudart.so.12", CUDART.format(number=12060))
    compiled(nvidia / "cublas/lib/libcublas.so.12", CUBLAS.format(major=12, minor=6, patch=4))
    compiled(nvidia / "cudnn/lib/libcudnn.so.9", CUDNN.format(number=91002))
    compiled(nvidia / "cudnn/lib/libcudnn_ops.so.9", CUDNN_OPS.format(status=0))
    report, libraries = probe_libraries(environment(tmp_path), os.environ, children)
    assert report.status is Status.PASS
    assert report.detail == "4 load: cudart 12.6, cuBLAS 12.6.4, cuDNN 9.10.2"
    assert {(it.soname, it.version, it.owner) for it in libraries} == {
        ("libcudart.so.12", "12.6", Owner.ENVIRONMENT),
        ("libcublas.so.12", "12.6.4", Owner.ENVIRONMENT),
        ("libcudnn.so.9", "9.10.2", Owner.ENVIRONMENT),
        ("libcudnn_ops.so.9", None, Owner.ENVIRONMENT),
    }


def test_cudnn_8_encodes_its_version_differently(children: Children, tmp_path: Path) -> None:
    compiled(wheels(tmp_path) / "cudnn/lib/libcudnn.so.8", CUDNN.format(number=8907))
    assert probed(environment(tmp_path), children).detail == "1 load: cuDNN 8.9.7"


def test_a_part_of_cudnn_of_another_release_is_found(children: Children, tmp_path: Path) -> None:
    compiled(wheels(tmp_path) / "cudnn/lib/libcudnn_ops.so.9", CUDNN_OPS.format(status=1))
    report = probed(environment(tmp_path), children)
    assert report.status is Status.FAIL
    assert [it.id for it in report.findings] == ["cudnn-parts-differ"]


def test_a_part_of_cudnn_without_a_symbol_is_from_another_release(children: Children, tmp_path: Path) -> None:
    source = "extern int of_a_later_release(void); int (*call)(void) = of_a_later_release;"
    compiled(wheels(tmp_path) / "cudnn/lib/libcudnn_cnn.so.9", source)
    report = probed(environment(tmp_path), children)
    assert [it.id for it in report.findings] == ["cudnn-parts-differ"]
    assert "undefined symbol: of_a_later_release" in report.findings[0].evidence[0]


def test_a_function_missing_from_the_driver_is_a_fault_of_the_driver(children: Children, tmp_path: Path) -> None:
    source = "extern int cuLibraryOfTomorrow(void); int (*call)(void) = cuLibraryOfTomorrow;"
    compiled(wheels(tmp_path) / "cudnn/lib/libcudnn_cnn.so.9", source)
    report = probed(environment(tmp_path), children)
    assert [it.id for it in report.findings] == ["driver-too-old"]
    assert "calls cuLibraryOfTomorrow" in report.findings[0].cause


def test_a_library_that_needs_another_one_names_it(children: Children, tmp_path: Path) -> None:
    needed = compiled(tmp_path / "elsewhere/libz_of_no_package.so.7", "int one = 1;")
    compiled(wheels(tmp_path) / "cudnn/lib/libcudnn_ops.so.9", "extern int one; int *two = &one;", str(needed))
    report = probed(environment(tmp_path), children)
    assert [it.id for it in report.findings] == ["library-does-not-load"]
    assert "libz_of_no_package.so.7" in report.findings[0].cause


def test_a_library_may_need_another_one_of_the_environment(children: Children, tmp_path: Path) -> None:
    nvidia = wheels(tmp_path)
    light = compiled(nvidia / "cublas/lib/libcublasLt.so.12", "int light = 1;")
    compiled(nvidia / "cublas/lib/libcublas.so.12", "extern int light; int *here = &light;", str(light))
    assert probed(environment(tmp_path), children).status is Status.PASS


def test_a_library_that_only_misses_the_driver_is_not_damaged(children: Children, tmp_path: Path) -> None:
    driver = compiled(tmp_path / "driver/libcuda.so.1", "int one = 1;")
    nvidia = wheels(tmp_path)
    compiled(nvidia / "cudnn/lib/libcudnn_ext.so.9", "extern int one; int *two = &one;", str(driver))
    compiled(nvidia / "cuda_runtime/lib/libcudart.so.12", CUDART.format(number=12060))
    report = probed(environment(tmp_path), children)
    assert report.findings == ()
    assert report.detail == "1 load, 1 without a driver cannot: cudart 12.6"


@pytest.mark.parametrize(("left", "finding"), [(0, "library-does-not-load"), (2000, "library-crashes")])
def test_a_truncated_library_is_found_even_if_the_loader_crashes(
    children: Children, tmp_path: Path, left: int, finding: str
) -> None:
    library = compiled(wheels(tmp_path) / "cufft/lib/libcufft.so.11", CUDART.format(number=12060))
    library.write_bytes(library.read_bytes()[:left])
    report = probed(environment(tmp_path), children)
    assert [it.id for it in report.findings] == [finding]
    assert "libcufft.so.11" in report.findings[0].title


def test_a_library_that_ends_the_process_is_named(children: Children, tmp_path: Path) -> None:
    nvidia = wheels(tmp_path)
    compiled(nvidia / "cuda_runtime/lib/libcudart.so.12", CUDART.format(number=12060))
    compiled(nvidia / "cudnn/lib/libcudnn.so.9", ON_LOAD.format(body='fputs("no such chip\\n", stderr); abort();'))
    report = probed(environment(tmp_path), children)
    assert [it.id for it in report.findings] == ["library-crashes"]
    assert report.findings[0].cause == "Loading libcudnn.so.9 ended the process. It died with signal 6 (SIGABRT)."
    assert report.findings[0].evidence == ("no such chip",)


def test_an_environment_without_cuda_is_skipped(children: Children, tmp_path: Path) -> None:
    assert probed(environment(tmp_path), children).status is Status.SKIP


def test_conda_has_its_libraries_in_the_prefix_under_three_names(tmp_path: Path) -> None:
    whole = compiled(tmp_path / "lib/libcudart.so.12.6.77", CUDART.format(number=12060))
    for name in ("libcudart.so.12", "libcudart.so"):
        (tmp_path / "lib" / name).symlink_to(whole.name)
    assert library_files(environment(tmp_path, is_conda=True)) == (tmp_path / "lib/libcudart.so.12",)


def test_the_prefix_of_a_system_python_is_not_the_environment(tmp_path: Path) -> None:
    compiled(tmp_path / "lib/libcudart.so.12", CUDART.format(number=12060))
    assert library_files(environment(tmp_path)._replace(owns_prefix=False)) == ()


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("nvidia-cudnn-cu12", "9.10.2.21", True),
        ("nvidia-cublas", "13.1.0.3", True),
        ("torch", "2.13.0+cu126", True),
        ("onnxruntime-gpu", "1.31.1", True),
        ("cupy-cuda12x", "14.2.0", True),
        ("jax-cuda13-plugin", "0.12.0", True),
        ("torch", "2.13.0+cpu", False),
        ("onnxruntime", "1.31.1", False),
        ("tensorflow", "2.21.0", False),
        ("nvidia-ml-py", "13.615.71", False),
        ("nvidia-pyindex", "1.0.9", False),
        ("flask-gpu", "1.0", False),
        ("anything", "1.0+custom", False),
    ],
)
def test_an_environment_is_for_gpus_because_of_its_packages(
    tmp_path: Path, name: str, version: str, *, expected: bool
) -> None:
    inventory = environment(tmp_path)._replace(distributions=(Distribution(name, version, tmp_path),))
    assert is_for_gpus(inventory) is expected
