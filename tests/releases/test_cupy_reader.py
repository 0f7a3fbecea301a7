"""CuPy's wheels: which CUDA they are for, what compiled them, and which packages provide the libraries."""

from __future__ import annotations

import json

import pytest

from envsolve.releases.errors import ReleaseError
from envsolve.releases.frameworks.cupy import CupyReader
from envsolve.releases.reader import ReadRow
from tests.scripts.fake_wheel import cuda_releases, rows_of, wheel_file
from tests.scripts.fat_binary import fat_binary

CTK = 'Requires-Dist: cuda-toolkit[cublas,nvrtc]==12.*; extra == "ctk"\n'


def metadata(cuda: str, requires: str = "") -> bytes:
    text = f"Name: cupy\n{requires}\nThis is a CuPy wheel (precompiled binary) package for CUDA {cuda}.\n"
    return text.encode()


def members(cuda: str, code: bytes, *, requires: str = "", cudnn: str | None = None) -> dict[str, bytes]:
    preloads = {"cuda": cuda} | ({} if cudnn is None else {"cudnn": {"version": cudnn}})
    return {
        "cupy-1.dist-info/METADATA": metadata(cuda, requires),
        "cupy/.data/_wheel.json": json.dumps(preloads).encode(),
        "cupy/random/_generator_api.cpython-312-x86_64-linux-gnu.so": b"\0GLIBC_2.14\0" + code,
    }


def row(project: str, contents: dict[str, bytes], platform: str = "linux-64") -> ReadRow:
    (found,) = rows_of(CupyReader(cuda_releases()), {wheel_file(project, "14.2.0", platform): contents})
    return found


def test_ptx_gives_the_toolkit_that_the_name_leaves_open() -> None:
    code = fat_binary((50, 90, 100, 120), (100,), isa=(8, 8))
    values = row("cupy-cuda12x", members("12.x", code, requires=CTK)).values
    assert (values["build"], values["package"]) == ("cuda12", "cupy-cuda12x")
    assert (values["cuda"], values["cuda_requires"]) == ("12.9", ">=12.0,<13")
    assert (values["sass"], values["ptx"]) == (["5.0", "9.0", "10.0", "12.0"], ["10.0"])
    assert (values["cuda_libraries"], values["extras"]) == ("dependencies", ["ctk"])


def test_before_the_extra_no_package_brings_cuda() -> None:
    values = row("cupy-cuda11x", members("11.2 - 11.8", fat_binary((35,), (90,), isa=(7, 8)), cudnn="8.8.1")).values
    assert (values["cuda"], values["cuda_requires"]) == ("11.8", ">=11.2,<12")
    assert (values["cuda_libraries"], values["cudnn"], values["glibc"]) == ("none", "8.8.1", "2.17")
    assert "extras" not in values
    assert "cudnn_requires" not in values


def test_the_range_of_older_descriptions_is_read_too() -> None:
    assert row("cupy-cuda11x", members("11.2 ~ 11.x", fat_binary((35,), (86,), isa=(7, 7)))).values[
        "cuda_requires"
    ] == (">=11.2,<12")


def test_a_wheel_for_one_toolkit_needs_no_ptx() -> None:
    values = row("cupy-cuda102", members("10.2", fat_binary((53, 62, 72))), "linux-aarch64").values
    assert (values["cuda"], values["cuda_requires"], values["ptx"]) == ("10.2", "==10.2", None)


def test_a_wheel_for_a_whole_major_without_ptx_is_refused() -> None:
    with pytest.raises(ReleaseError, match="for which CUDA"):
        row("cupy-cuda12x", members("12.x", fat_binary((80,))))
