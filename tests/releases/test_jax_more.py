"""Rows of JAX if its wheels do not agree exactly."""

from __future__ import annotations

import io
import zipfile

import pytest

from envsolve.matrix import Matrix, find_matrix
from envsolve.releases.frameworks.jax import JaxReader
from envsolve.releases.requirements import CudaReleases
from tests.scripts.conftest import RowsOf
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import LINUX, BuiltFile, jax_plugin_wheel, jax_wheels, wheel

pytestmark = pytest.mark.thorough


@pytest.fixture
def reader(cuda_releases: CudaReleases) -> JaxReader:
    return JaxReader(cuda_releases, Matrix(find_matrix()))


def _reworded(file: BuiltFile, old: str, new: str) -> BuiltFile:
    """``file`` with other words in its METADATA."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file.content)) as before, zipfile.ZipFile(written, "w") as after:
        for entry in before.infolist():
            content = before.read(entry)
            if entry.filename.endswith("/METADATA"):
                assert old.encode() in content
                content = content.replace(old.encode(), new.encode())
            after.writestr(entry, content)
    return BuiltFile(file.name, written.getvalue())


@pytest.mark.parametrize("needy", ["jaxlib", "plugin", "pjrt"])
def test_a_gpu_install_needs_the_newest_c_library_of_its_three_wheels(
    needy: str, index: ServedIndex, rows_of: RowsOf, reader: JaxReader
) -> None:
    tags = {name: f"manylinux_2_{31 if name == needy else 9}_x86_64" for name in ("jaxlib", "plugin", "pjrt")}
    index.add(
        jax_wheels()[0],
        wheel("jaxlib", "0.7.0", {}, tags=f"cp312-cp312-{tags['jaxlib']}"),
        jax_plugin_wheel(tags=f"cp312-cp312-{tags['plugin']}"),
        wheel("jax-cuda12-pjrt", "0.7.0", {}, tags=f"py3-none-{tags['pjrt']}"),
    )
    cpu, gpu = rows_of(reader, "0.7.0")
    assert cpu.values["glibc"] == ("2.31" if needy == "jaxlib" else "2.9")
    assert gpu.values["glibc"] == "2.31"


@pytest.mark.parametrize(
    ("admits", "pythons"),
    [
        (">=3.12", ["3.12", "3.13"]),
        (">=3.12.1", ["3.12", "3.13"]),
        (">=3.12,!=3.12.0", ["3.12", "3.13"]),
        (">=3.13", ["3.13"]),
        ("<3.13", ["3.12"]),
    ],
)
def test_a_python_minor_counts_where_its_latest_patches_are_admitted(
    admits: str, pythons: list[str], index: ServedIndex, rows_of: RowsOf, reader: JaxReader
) -> None:
    jax, *others = jax_wheels()
    index.add(_reworded(jax, "Name: jax\n", f"Name: jax\nRequires-Python: {admits}\n"), *others)
    newer = f"cp313-cp313-{LINUX}"
    index.add(wheel("jaxlib", "0.7.0", {}, tags=newer), jax_plugin_wheel(tags=newer))
    cpu, gpu = rows_of(reader, "0.7.0")
    assert (cpu.values["pythons"], gpu.values["pythons"]) == (pythons, pythons)


@pytest.mark.parametrize("extra", ["with-cuda", "with-cuda12", "with_cuda12"])
def test_the_extra_of_the_plugin_brings_the_libraries_also_under_its_old_name(
    extra: str, index: ServedIndex, rows_of: RowsOf, reader: JaxReader
) -> None:
    jax, jaxlib, plugin, runtime = jax_wheels()
    index.add(jax, jaxlib, _reworded(plugin, "'with-cuda'", f"'{extra}'"), runtime)
    _, gpu = rows_of(reader, "0.7.0")
    assert gpu.values["cuda_requires"] == ">=12.4,<13"
    assert (gpu.values["cudnn_package"], gpu.values["cudnn_requires"]) == ("nvidia-cudnn-cu12", ">=9.8,<10")
