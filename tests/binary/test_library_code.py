"""Device code in libraries on disk: in the sections where compilers put it, and as values that know GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.binary.library_code import read_device_code
from envsolve.binary.unreadable import Damage, UnreadableLibraryError
from envsolve.model.capability import ComputeCapability
from tests.binary.device_library import device_library
from tests.binary.tiny_dll import tiny_dll
from tests.scripts.fat_binary import fat_binary


@pytest.mark.parametrize("section", [".nv_fatbin", "__nv_relfatbin"])
def test_machine_code_and_ptx_of_a_compiled_library_are_reported(section: str, tmp_path: Path) -> None:
    path = device_library(tmp_path / "libx.so", fat_binary((75, 86), (90,)) * 2, section=section)
    code = read_device_code(path)
    assert [str(it) for it in code.sass] == ["7.5", "8.6"]
    assert [str(it) for it in code.ptx] == ["9.0"]


@pytest.mark.parametrize(
    ("gpu", "runs_as"), [("7.0", None), ("7.5", "sm_75"), ("8.0", None), ("8.9", "sm_86"), ("12.0", "compute_90")]
)
def test_gpu_code_knows_which_gpus_it_supports(gpu: str, runs_as: str | None, tmp_path: Path) -> None:
    path = device_library(tmp_path / "libx.so", fat_binary((75, 86), (90,)))
    assert read_device_code(path).runs_as(ComputeCapability.parse(gpu)) == runs_as


def test_a_stray_fat_binary_is_not_code_of_the_library(tmp_path: Path) -> None:
    path = device_library(tmp_path / "libx.so", fat_binary((80,)) * 150 + fat_binary((52,), (52,)))
    code = read_device_code(path)
    assert ([str(it) for it in code.sass], code.ptx) == (["8.0"], ())


def test_a_fat_binary_elsewhere_in_the_file_is_data(tmp_path: Path) -> None:
    path = device_library(tmp_path / "libx.so", fat_binary((80,)), section=".rodata")
    assert read_device_code(path) == ((), ())


def test_sections_of_a_dll_are_found_by_their_short_names(tmp_path: Path) -> None:
    path = tmp_path / "x.dll"
    path.write_bytes(tiny_dll(sections={".nv_fatb": fat_binary((80, 90)), ".rdata": fat_binary((35,))}))
    assert [str(it) for it in read_device_code(path).sass] == ["8.0", "9.0"]


@pytest.mark.parametrize(
    ("content", "damage"), [(b"", Damage.EMPTY), (b"text", Damage.NO_LIBRARY), (b"\x7fELF\2", Damage.TRUNCATED)]
)
def test_a_file_that_is_no_library_is_reported(content: bytes, damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(content)
    with pytest.raises(UnreadableLibraryError) as refused:
        read_device_code(path)
    assert refused.value.damage is damage
