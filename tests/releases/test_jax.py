"""Rows of JAX, from wheels built like those of its packages."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from envsolve.matrix import Matrix, find_matrix
from envsolve.releases.frameworks.jax import JaxReader
from envsolve.releases.requirements import CudaReleases
from tests.scripts.conftest import RowsOf
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import (
    AARCH64,
    LINUX,
    MACHINE_CODE,
    WINDOWS,
    code,
    fat_binary,
    jax_plugin_wheel,
    jax_wheels,
    wheel,
)


@pytest.fixture
def reader(cuda_releases: CudaReleases) -> JaxReader:
    return JaxReader(cuda_releases, Matrix(find_matrix()))


def test_a_gpu_install_is_three_wheels_of_one_build(index: ServedIndex, rows_of: RowsOf, reader: JaxReader) -> None:
    index.add(*jax_wheels())
    cpu, gpu = rows_of(reader, "0.7.0")
    assert (cpu.values["build"], cpu.values["extras"]) == ("cpu", None)
    assert gpu.values == {
        "version": "0.7.0",
        "source": "pypi",
        "platform": "linux-64",
        "build": "cuda12",
        "package": "jax",
        "pythons": ["3.12"],
        "glibc": "2.28",
        "extras": ["cuda12"],
        "cuda_libraries": "dependencies",
        "cuda": "12.9",
        "cudnn": "9.8.0",
        "sass": ["7.0", "9.0"],
        "ptx": ["12.0"],
        "cuda_requires": ">=12.4,<13",
        "cudnn_package": "nvidia-cudnn-cu12",
        "cudnn_requires": ">=9.8,<10",
    }
    assert [evidence.name for evidence in gpu.evidence] == ["jax-0-7-0", "jax-cuda12-plugin-0-7-0-linux-64"]


def test_a_new_cudnn_is_accepted_once_the_matrix_has_it(
    index: ServedIndex, rows_of: RowsOf, cuda_releases: CudaReleases, tmp_path: Path
) -> None:
    for path in find_matrix().glob("cu*.toml"):
        shutil.copy(path, tmp_path)
    cudnn = tmp_path / "cudnn.toml"
    text = cudnn.read_text(encoding="utf-8")
    cudnn.write_text(text.replace('version = "9.8.0.', 'version = "9.8.9.'), encoding="utf-8")
    index.add(*jax_wheels())
    _, before = rows_of(JaxReader(cuda_releases, Matrix(tmp_path)), "0.7.0")
    assert "cudnn" not in before.values
    cudnn.write_text(text, encoding="utf-8")
    _, after = rows_of(JaxReader(cuda_releases, Matrix(tmp_path)), "0.7.0")
    assert after.values["cudnn"] == "9.8.0"


def test_an_arm_plugin_is_read_by_its_own_instructions(index: ServedIndex, rows_of: RowsOf, reader: JaxReader) -> None:
    index.add(*jax_wheels(tags=f"cp312-cp312-{AARCH64}"))
    _, gpu = rows_of(reader, "0.7.0")
    assert (gpu.values["platform"], gpu.values["cuda"], gpu.values["cudnn"]) == ("linux-aarch64", "12.9", "9.8.0")


def test_without_its_runtime_a_plugin_is_not_an_installation(
    index: ServedIndex, rows_of: RowsOf, reader: JaxReader
) -> None:
    jax, jaxlib, plugin, _ = jax_wheels()
    index.add(jax, jaxlib, plugin)
    (cpu,) = rows_of(reader, "0.7.0")
    assert cpu.values["build"] == "cpu"


def test_pythons_are_those_of_every_part(index: ServedIndex, rows_of: RowsOf, reader: JaxReader) -> None:
    index.add(*jax_wheels(), wheel("jaxlib", "0.7.0", {}, tags=f"cp313-cp313-{LINUX}"))
    cpu, gpu = rows_of(reader, "0.7.0")
    assert (cpu.values["pythons"], gpu.values["pythons"]) == (["3.12", "3.13"], ["3.12"])


def test_jaxlib_for_another_system_gives_a_cpu_row(index: ServedIndex, rows_of: RowsOf, reader: JaxReader) -> None:
    index.add(*jax_wheels(), wheel("jaxlib", "0.7.0", {}, tags=f"cp312-cp312-{WINDOWS}"))
    assert {row.values["platform"] for row in rows_of(reader, "0.7.0") if row.values["build"] == "cpu"} == {
        "linux-64",
        "win-64",
    }


@pytest.mark.parametrize("numbers", [(), (12080, 12090, 90800)])
def test_ambiguous_versions_are_not_stated(
    numbers: tuple[int, ...], index: ServedIndex, rows_of: RowsOf, reader: JaxReader
) -> None:
    jax, jaxlib, _, runtime = jax_wheels()
    index.add(jax, jaxlib, runtime, jax_plugin_wheel(numbers=numbers))
    _, gpu = rows_of(reader, "0.7.0")
    assert "cuda" not in gpu.values


def test_different_kernels_make_the_plugin_unreadable(index: ServedIndex, rows_of: RowsOf, reader: JaxReader) -> None:
    jax, jaxlib, _, runtime = jax_wheels()
    kernels = {"_linalg.so": fat_binary(code(MACHINE_CODE, 70)), "_prng.so": fat_binary(code(MACHINE_CODE, 80))}
    index.add(jax, jaxlib, runtime, jax_plugin_wheel(kernels=kernels))
    _, gpu = rows_of(reader, "0.7.0")
    assert "sass" not in gpu.values


def test_a_jax_without_its_jaxlib_has_no_rows(index: ServedIndex, rows_of: RowsOf, reader: JaxReader) -> None:
    index.add(jax_wheels()[0])
    assert rows_of(reader, "0.7.0") == []
