"""What packages with kernels are compiled for, read from wheels on a loopback index, as a maintainer runs it."""

from __future__ import annotations

import datetime as dt
import tomllib
from pathlib import Path
from shutil import copy
from typing import Any

from click.testing import CliRunner

from envsolve.matrix import Matrix
from envsolve.matrix.load import find_matrix
from envsolve.model.capability import ComputeCapability
from scripts.refresh_extensions import refresh
from tests.binary.device_library import library_for_torch
from tests.matrix.tiny import tiny_matrix
from tests.scripts.fat_binary import fat_binary
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import BuiltFile, wheel

CUDA_12, CUDA_13 = b"\0libcudart.so.12\0libcublas.so.12\0", b"\0libcudart.so.13\0"
RUNTIME = b"\0CUDA driver version is insufficient for CUDA runtime version\0"
VOLTA = ComputeCapability(7, 0)


def warp(version: str, content: bytes, *requires: str, **more: bytes) -> BuiltFile:
    members = {"warp/bin/warp.so": b"\x7fELF" + content, **more}
    return wheel("warp-lang", version, members, tags="py3-none-manylinux_2_28_x86_64", requires=requires)


def raft(version: str) -> BuiltFile:
    """For a package without a first release in extensions.toml."""
    members = {"libraft/lib64/libraft.so": b"\x7fELF" + fat_binary((80,))}
    return wheel("libraft-cu13", version, members, tags="py3-none-manylinux_2_28_x86_64")


def read(
    index: ServedIndex, directory: Path, *options: str, code: int = 0, package: str = "warp-lang"
) -> dict[str, Any]:
    arguments = [package, "--matrix", str(directory), "--index-url", index.endpoint]
    done = CliRunner().invoke(refresh, [*arguments, "--cache-dir", str(directory / "cache"), *options])
    assert done.exit_code == code, done.output
    path = directory / "extensions" / f"{package}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def test_consecutive_releases_with_the_same_facts_are_one_row(index: ServedIndex, tmp_path: Path) -> None:
    old, new = fat_binary((70, 80), (80,)), fat_binary((75, 80), (90,))
    index.add(warp("1.0", CUDA_12 + old), warp("1.1", CUDA_12 + old), warp("1.2", CUDA_13 + new))
    rows = read(index, tmp_path)["build"]
    assert [row["versions"] for row in rows] == ["==1.2", ">=1.0,<1.2"]
    assert [row["cuda"] for row in rows] == ["==13.*", "==12.*"]
    assert [(row["sass"], row["ptx"]) for row in rows] == [(["7.5", "8.0"], ["9.0"]), (["7.0", "8.0"], ["8.0"])]


def test_a_wheel_that_requires_its_cuda_needs_none_of_the_stack(index: ServedIndex, tmp_path: Path) -> None:
    index.add(warp("1.0", CUDA_12 + fat_binary((70,)), "nvidia-cuda-runtime-cu12"))
    index.add(warp("1.1", CUDA_12 + fat_binary((70,)), "nvidia-cuda-runtime-cu12; sys_platform == 'linux'"))
    index.add(warp("1.2", CUDA_12 + fat_binary((70,)), "nvidia-cuda-runtime-cu12; sys_platform == 'win32'"))
    of_stack, none = read(index, tmp_path)["build"]
    assert none["versions"] == ">=1.0,<1.2"
    assert "cuda" not in none
    assert of_stack["cuda"] == "==12.*"


def test_a_runtime_in_the_wheel_needs_its_driver(index: ServedIndex, tmp_path: Path) -> None:
    index.add(warp("1.0", CUDA_12 + fat_binary((70,)), **{"warp.libs/libcudart-5a.so.12.0": b"\x7fELF"}))
    (row,) = read(index, tmp_path)["build"]
    assert "cuda" not in row
    assert row["linked_cuda"] == "12"


def test_a_linked_runtime_is_a_row(index: ServedIndex, tmp_path: Path) -> None:
    index.add(warp("1.0", RUNTIME + fat_binary((80,), (80,), isa=(9, 0))))
    (row,) = read(index, tmp_path)["build"]
    assert row["linked_cuda"] == "13"


def test_a_release_without_facts_has_no_row(index: ServedIndex, tmp_path: Path) -> None:
    code = fat_binary((80,))
    without = wheel("warp-lang", "1.3", {"warp/__init__.py": ""}, tags="py3-none-manylinux_2_28_x86_64")
    index.add(warp("1.0", code), warp("1.1", b"nothing"), warp("1.2", code), without, warp("1.4", code))
    rows = read(index, tmp_path)["build"]
    assert [row["versions"] for row in rows] == ["==1.4", ">=1.2,<1.3", ">=1.0,<1.1"]


def test_a_single_stray_target_is_ignored(index: ServedIndex, tmp_path: Path) -> None:
    index.add(warp("1.0", fat_binary((52,)) + fat_binary((80,)) * 150))
    (row,) = read(index, tmp_path)["build"]
    assert row["sass"] == ["8.0"]


def test_recent_releases_are_read_once(index: ServedIndex, tmp_path: Path) -> None:
    wheels = [raft(f"1.{minor}") for minor in range(14)]
    index.add(*wheels)
    index.uploaded = {it.name: "2020-01-01T00:00:00Z" for it in wheels[:2]}
    index.uploaded |= {it.name: f"{dt.datetime.now(dt.UTC):%Y-%m-%d}T00:00:00Z" for it in wheels[2:]}
    first = read(index, tmp_path, package="libraft-cu13")
    assert first["build"][0]["versions"] == "<=1.13"
    assert "12 releases, 1.2 to 1.13" in first["evidence"]["v1-2"]["reference"]
    assert "releases before 1.2 were not read" in first["evidence"]["v1-2"]["reference"]
    requests = index.wheel_requests()
    assert read(index, tmp_path, "--offline", package="libraft-cu13") == first
    assert index.wheel_requests() == requests


def test_ten_releases_are_read_whatever_their_age(index: ServedIndex, tmp_path: Path) -> None:
    wheels = [raft(f"1.{minor}") for minor in range(12)]
    index.add(*wheels)
    index.uploaded = {it.name: "2020-01-01T00:00:00Z" for it in wheels}
    evidence = read(index, tmp_path, package="libraft-cu13")["evidence"]
    assert "10 releases, 1.2 to 1.11" in evidence["v1-2"]["reference"]


def test_a_platform_with_different_wheels_has_its_own_rows(index: ServedIndex, tmp_path: Path) -> None:
    def on(platform: str, content: bytes, version: str = "1.0") -> BuiltFile:
        return wheel("warp-lang", version, {"warp/bin/warp.so": content}, tags=f"py3-none-{platform}")

    index.add(on("manylinux_2_28_x86_64", CUDA_13 + fat_binary((80,))), on("win_amd64", b"nothing"))
    index.add(on("manylinux_2_28_aarch64", CUDA_13 + fat_binary((80,))))
    index.add(on("manylinux_2_28_aarch64", CUDA_13 + fat_binary((90,)), "1.1"))
    first, second = read(index, tmp_path)["build"]
    assert first["platforms"] == second["platforms"] == ["linux-64", "linux-aarch64"]
    assert [it["versions"] for it in (first, second)] == ["==1.1", ">=1.0,<1.1"]


def test_a_wheel_with_a_library_per_cuda_supports_all_of_them(index: ServedIndex, tmp_path: Path) -> None:
    def bitsandbytes(version: str) -> BuiltFile:
        members = {
            "bitsandbytes/libbitsandbytes_cuda118.so": b"\0libcudart.so.11.0\0" + fat_binary((50, 80)),
            "bitsandbytes/libbitsandbytes_cuda124.so": CUDA_12 + fat_binary((60, 80)),
            "bitsandbytes/libbitsandbytes_cuda128.so": CUDA_12 + fat_binary((75, 80), (120,)),
        }
        return wheel("bitsandbytes", version, members, tags="py3-none-manylinux_2_24_x86_64")

    index.add(bitsandbytes("0.49.0"), bitsandbytes("0.50.0"))
    directory = tiny_matrix(tmp_path).directory
    rows = read(index, directory, package="bitsandbytes")["build"]
    served = [(row["versions"], row.get("cuda", row.get("with_cuda")), row.get("sass")) for row in rows]
    old, new = ">=0.49.0,<0.50.0", "==0.50.0"
    assert served == [
        (new, ">=11.8,<13", None),
        (new, ">=11.8,<12", ["5.0", "8.0"]),
        (new, ">=12.4,<12.5", ["6.0", "8.0"]),
        (new, ">=12.8,<13", ["7.5", "8.0"]),
        (old, ">=11.8,<12.9", None),
        (old, ">=11.8,<12", ["5.0", "8.0"]),
        (old, ">=12.4,<12.5", ["6.0", "8.0"]),
        (old, ">=12.8,<12.9", ["7.5", "8.0"]),
    ]


def test_partial_support_is_recorded(index: ServedIndex, tmp_path: Path) -> None:
    members = {"xformers/_C.so": CUDA_12 + fat_binary((80,))}
    index.add(wheel("xformers", "0.0.35", members, tags="py39-none-manylinux_2_28_x86_64"))
    found = read(index, tmp_path, package="xformers")
    cuda, code = found["build"]
    assert (cuda["cuda"], cuda["loss"][:24]) == ("==12.*", "without its C++ library ")
    assert "_cpp_lib.py" in found["evidence"][cuda["evidence"][-1]]["reference"]
    assert code["sass"] == ["8.0"]
    assert "loss" not in code


def test_a_fallback_without_its_code_is_recorded(index: ServedIndex, tmp_path: Path) -> None:
    members = {"xgboost/lib/libxgboost.so": RUNTIME + fat_binary((80,), (80,), isa=(9, 0))}
    index.add(wheel("xgboost", "3.4.1", members, tags="py3-none-manylinux_2_28_x86_64"))
    (row,) = read(index, tmp_path, package="xgboost")["build"]
    assert (row["linked_cuda"], row["sass"], row["loss"]) == ("13", ["8.0"], "it computes on the CPU alone")


def test_a_package_without_kernels_has_no_file(index: ServedIndex, tmp_path: Path) -> None:
    index.add(warp("1.0", b"nothing"))
    assert read(index, tmp_path, code=1) == {}


def test_the_matrix_has_the_facts_that_were_read(index: ServedIndex, tmp_path: Path) -> None:
    matrix = tiny_matrix(tmp_path)
    index.add(warp("1.0", CUDA_12 + fat_binary((75, 80))))
    read(index, matrix.directory)
    (facts,) = Matrix(matrix.directory).build_facts("warp-lang")
    assert facts.covers("1.0")
    assert facts.cuda_text == "CUDA 12"
    assert facts.without_code_for([VOLTA], None) == VOLTA
    assert Matrix(matrix.directory).check() == []


def test_the_pytorch_of_a_release_is_a_row_if_its_metadata_does_not_pin_it(index: ServedIndex, tmp_path: Path) -> None:
    copy(find_matrix() / "torch_symbols.toml", tmp_path)
    content = library_for_torch(needs=("_ZN3c104cuda10set_deviceEa",))
    for version, need in (("0.5", "torch==2.7.0"), ("0.6", "torch>=2.5"), ("0.7", "torch (==2.7.1)")):
        members = {"torchrl/_torchrl.so": content}
        index.add(wheel("torchrl", version, members, tags="cp312-cp312-manylinux_2_28_x86_64", requires=(need,)))
    (row,) = read(index, tmp_path, package="torchrl")["build"]
    assert (row["versions"], row["requires"]) == (">=0.6,<0.7", ["torch>=1.8,<2.8"])
