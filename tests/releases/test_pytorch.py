"""Rows of PyTorch, from wheels built like torch's."""

from __future__ import annotations

import pytest

from envsolve.releases.frameworks.pytorch import PyTorchIndexReader, PyTorchReader
from envsolve.releases.requirements import CudaReleases
from tests.scripts.conftest import RowsOf
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import (
    AARCH64,
    LINUX,
    MAC_ARM,
    MACHINE_CODE,
    PTX,
    WINDOWS,
    code,
    fat_binary,
    noise,
    openmp_library,
    torch_library,
    torch_wheel,
    wheel,
)

MEGABYTE = 1 << 20


@pytest.fixture
def reader(cuda_releases: CudaReleases) -> PyTorchReader:
    return PyTorchReader(cuda_releases)


def test_a_cuda_build_is_read_from_its_wheel(index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader) -> None:
    index.add(torch_wheel(), torch_wheel(tags=f"cp311-cp311-{LINUX}"))
    (row,) = rows_of(reader, "2.9.0")
    assert row.values == {
        "version": "2.9.0",
        "source": "pypi",
        "platform": "linux-64",
        "build": "cu128",
        "package": "torch",
        "pythons": ["3.11", "3.12"],
        "glibc": "2.28",
        "cuda": "12.8",
        "sass": ["7.5", "8.0", "9.0"],
        "ptx": ["9.0"],
        "cuda_libraries": "dependencies",
        "cuda_requires": "==12.8",
        "cudnn": "9.10.2.21",
        "cudnn_requires": "==9.10.2.21",
        "cudnn_package": "nvidia-cudnn-cu12",
    }
    (evidence,) = row.evidence
    assert evidence.name == "torch-2-9-0-linux-64"
    assert evidence.reference == (
        f"torch-2.9.0-cp312-cp312-{LINUX}.whl: METADATA, torch/version.py, torch/lib/libtorch_python.so"
    )
    assert len(evidence.sha256 or "") == 64


def test_every_platform_has_a_row_of_its_own(index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader) -> None:
    index.add(
        torch_wheel(),
        torch_wheel(tags=f"cp312-cp312-{AARCH64}", cuda=None),
        torch_wheel(tags=f"cp312-none-{MAC_ARM}", cuda=None),
        torch_wheel(tags=f"cp312-cp312-{WINDOWS}", cuda=None),
    )
    rows = rows_of(reader, "2.9.0")
    assert [(row.values["platform"], row.values["build"], row.values["glibc"]) for row in rows] == [
        ("linux-64", "cu128", "2.28"),
        ("linux-aarch64", "cpu", "2.28"),
        ("osx-arm64", "cpu", None),
        ("win-64", "cpu", None),
    ]
    assert all("cuda" not in row.values and "sass" not in row.values for row in rows[1:])


def test_libraries_required_only_on_linux_are_inside_the_wheel_for_windows(
    index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader
) -> None:
    index.add(torch_wheel(tags=f"cp312-cp312-{WINDOWS}"))
    (row,) = rows_of(reader, "2.9.0")
    assert (row.values["cuda_libraries"], row.values["cuda_requires"]) == ("bundled", "==12.8")
    assert row.values["sass"] == ["7.5", "8.0", "9.0"]
    assert "cudnn" not in row.values


def test_the_metapackage_gives_the_toolkit(index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader) -> None:
    requires = ("cuda-toolkit[cublas]==13.0.2", "nvidia-cudnn-cu13==9.15.1.9")
    index.add(torch_wheel(cuda="13.0", requires=requires))
    (row,) = rows_of(reader, "2.9.0")
    assert (row.values["cuda_requires"], row.values["cudnn_package"]) == ("==13.0", "nvidia-cudnn-cu13")


def test_an_unknown_toolkit_is_the_one_it_was_compiled_with(
    index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader
) -> None:
    index.add(torch_wheel(cuda="14.0", requires=("cuda-toolkit==14.0.0", "nvidia-cudnn-cu14==10.0.0.1")))
    assert rows_of(reader, "2.9.0")[0].values["cuda_requires"] == "==14.0"


@pytest.mark.thorough
def test_only_the_beginning_of_a_large_library_is_read(
    index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader
) -> None:
    index.add(torch_wheel(library=torch_library(before=MEGABYTE, after=24 * MEGABYTE)))
    assert rows_of(reader, "2.9.0")[0].values["ptx"] == ["9.0"]
    assert sum(index.sent.values()) < 12 * MEGABYTE


def test_if_the_tag_is_too_low_the_symbols_give_the_c_library(
    index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader
) -> None:
    index.add(torch_wheel(tags="cp39-cp39-manylinux1_x86_64", openmp=openmp_library("2.16")))
    assert rows_of(reader, "2.9.0")[0].values["glibc"] == "2.16"


def test_before_the_list_of_architectures_the_fat_binaries_of_a_small_library_are_read(
    index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader
) -> None:
    device_code = fat_binary(code(MACHINE_CODE, 37), code(MACHINE_CODE, 70), code(PTX, 70))
    members: dict[str, str | bytes] = {
        "torch/version.py": "__version__ = '1.3.1'\ndebug = False\ncuda = '10.1.243'\n",
        "torch/lib/libtorch_python.so": noise(3000),
        "torch/lib/libcaffe2_detectron_ops_gpu.so": noise(3000, 1) + device_code + noise(100, 2),
    }
    index.add(wheel("torch", "1.3.1", members, tags="cp37-cp37m-manylinux1_x86_64"))
    (row,) = rows_of(reader, "1.3.1")
    assert (row.values["build"], row.values["cuda"]) == ("cu101", "10.1")
    assert (row.values["sass"], row.values["ptx"]) == (["3.7", "7.0"], ["7.0"])
    assert row.evidence[0].reference.endswith("torch/lib/libcaffe2_detectron_ops_gpu.so")


def test_facts_that_were_not_found_are_left_out(index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader) -> None:
    index.add(torch_wheel(library=noise(3000)))
    (row,) = rows_of(reader, "2.9.0")
    assert "sass" not in row.values
    assert "ptx" not in row.values


def test_a_rebuilt_wheel_is_the_one_that_is_read(index: ServedIndex, rows_of: RowsOf, reader: PyTorchReader) -> None:
    index.add(torch_wheel(library=torch_library("sm_80")), torch_wheel(library=torch_library("sm_90"), build="1"))
    (row,) = rows_of(reader, "2.9.0")
    assert row.values["sass"] == ["9.0"]
    assert row.evidence[0].reference.startswith("torch-2.9.0-1-cp312")


def test_a_wheel_of_pytorchs_own_index_is_of_the_build_that_its_version_names(
    index: ServedIndex, rows_of: RowsOf, cuda_releases: CudaReleases
) -> None:
    index.add(torch_wheel("2.9.0+cu128", tags="cp312-cp312-linux_x86_64"), torch_wheel("1.8.0"))
    own = PyTorchIndexReader(cuda_releases)
    (row,) = rows_of(own, "2.9.0+cu128")
    assert row.key == ("2.9.0", "pytorch", "linux-64", "cu128", "torch")
    assert row.values["glibc"] == "2.17", "the tag promises nothing, the symbols ask for this"
    assert row.evidence[0].name == "torch-2-9-0-cu128-linux-64"
    assert rows_of(own, "1.8.0") == []
