"""The check of locked wheels draws the same requests for a seed, and finds what does not run, on small wheels."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from benchmarks.locked_wheels import DRIVER, GPUS, LIBRARY, NO_CODE, OPENS, PACKAGES, PARTLY, Draw, Fault, Judge, draws
from benchmarks.wheel_witness import Store
from tests.binary.device_library import device_library
from tests.scripts.fat_binary import fat_binary

GTX_1080_TI, RTX_4090, RTX_5090, B300 = "GTX 1080 Ti", "RTX 4090", "RTX 5090", "NVIDIA B300"
OLD, NEW = "550.54.15", "580.95.05"
CUBLAS = b"\0libcublas.so.12\0"
RUNTIME = b"CUDA driver version is insufficient for CUDA runtime version"


class Wheels:
    """A lock of made-up wheels, with what the judge finds in it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._store = Store(directory, 0, None)
        self._lock = directory / "pylock.toml"
        self._lock.touch()

    def add(self, name: str, libraries: dict[str, Path | None], version: str = "1.0") -> None:
        digest = f"{name}-{version}"
        with zipfile.ZipFile(self._directory / f"{digest}.whl", "w") as wheel:
            for path, library in libraries.items():
                wheel.writestr(path, b"" if library is None else library.read_bytes())
        file = f'{{name = "{name}-linux.whl", url = "none", size = 1, hashes = {{sha256 = "{digest}"}}}}'
        with self._lock.open("a", encoding="utf-8") as lock:
            lock.write(f'[[packages]]\nname = "{name}"\nversion = "{version}"\nwheels = [{file}]\n')

    def faults(self, gpu: str, driver: str | None = NEW, output: str = "") -> list[Fault]:
        return list(Judge(self._store).faults(Draw(0, (), (), (gpu,), driver), self._lock, output))

    def kinds(self, gpu: str, driver: str | None = NEW, output: str = "") -> list[str]:
        return [it.kind for it in self.faults(gpu, driver, output)]


@pytest.fixture
def wheels(tmp_path: Path) -> Wheels:
    return Wheels(tmp_path)


def library(tmp_path: Path, content: bytes, *needed: str, text: bytes = b"") -> Path:
    path = device_library(tmp_path / "made" / "libx.so", content, needed=needed)
    path.write_bytes(path.read_bytes() + text)
    return path


def test_a_seed_always_draws_the_same_requests() -> None:
    drawn = list(draws(3, 50))
    assert drawn == list(draws(3, 50)) != list(draws(4, 50))
    assert {part.partition("==")[0] for it in drawn for part in it.packages} <= set(PACKAGES)
    assert all((12, 0) not in (GPUS[gpu] for gpu in it.gpus) or it.driver in (None, "570.195.03", NEW) for it in drawn)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("content", "gpu", "driver", "found"),
    [
        (fat_binary((75, 80), (80,)), RTX_4090, NEW, []),
        (fat_binary((75, 80), (80,)), GTX_1080_TI, NEW, [NO_CODE]),
        (fat_binary((75,), (80,), isa=(8, 4)), RTX_5090, OLD, []),
        (fat_binary((75,), (80,), isa=(8, 5)), RTX_5090, OLD, [NO_CODE]),
        (fat_binary((75,), (80,), isa=(8, 5)), RTX_5090, None, []),
        (fat_binary((100,)), B300, NEW, []),
        (fat_binary((100,), flags=0x100011), B300, NEW, [NO_CODE]),
        (fat_binary((80,)) + fat_binary((90,)) * 2, RTX_4090, NEW, [PARTLY]),
    ],
)
def test_code_for_a_gpu_is_machine_code_or_ptx_that_its_driver_compiles(
    content: bytes, gpu: str, driver: str | None, found: list[str], wheels: Wheels, tmp_path: Path
) -> None:
    wheels.add("kernels", {"kernels/_C.so": library(tmp_path, content)})
    assert wheels.kinds(gpu, driver) == found


def test_a_cuda_library_must_be_in_some_wheel_of_the_lock(wheels: Wheels, tmp_path: Path) -> None:
    wheels.add("kernels", {"kernels/_C.so": library(tmp_path, b"", "libcudart.so.12", "libcuda.so.1")})
    (fault,) = wheels.faults(RTX_4090)
    assert (fault.kind, fault.why) == (LIBRARY, "kernels/_C.so needs libcudart.so.12")
    wheels.add("nvidia-cuda-runtime-cu12", {"nvidia/cuda_runtime/lib/libcudart.so.12": None})
    assert not wheels.faults(RTX_4090)


def test_one_of_a_library_s_forms_is_enough(wheels: Wheels, tmp_path: Path) -> None:
    forms = {f"dgl/lib_cuda{it}.so": library(tmp_path, b"", f"libcudart.so.{it}") for it in (12, 13)}
    wheels.add("dgl", dict(forms))
    assert wheels.kinds(RTX_4090) == [LIBRARY]
    wheels.add("nvidia-cuda-runtime", {"nvidia/cu13/lib/libcudart.so.13": None})
    assert not wheels.faults(RTX_4090)


def test_libraries_that_are_opened_need_one_of_their_supported_majors(wheels: Wheels, tmp_path: Path) -> None:
    wheels.add("ctranslate2", {"libctranslate2.so": library(tmp_path, b"", text=CUBLAS)})
    wheels.add("nvidia-cublas", {"nvidia/cu13/lib/libcublas.so.13": None})
    (fault,) = wheels.faults(RTX_4090)
    assert (fault.kind, fault.why) == (OPENS, "libcublas.so.12; the lock has libcublas.so.13")
    assert not wheels.faults(RTX_4090, output="note: ctranslate2 1.0 does not install CUDA: the machine needs CUDA 12")


def test_a_linked_runtime_needs_a_driver_for_its_cuda(wheels: Wheels, tmp_path: Path) -> None:
    wheels.add("warp-lang", {"warp.so": library(tmp_path, fat_binary((89,), form=(1, 8)), text=RUNTIME)})
    assert (wheels.kinds(RTX_4090, OLD), wheels.kinds(RTX_4090, NEW)) == ([DRIVER], [])


def test_facts_are_cached_by_digest(wheels: Wheels, tmp_path: Path) -> None:
    wheels.add("kernels", {"kernels/_C.so": library(tmp_path, fat_binary((80,)))})
    first = wheels.faults(GTX_1080_TI)
    (tmp_path / "kernels-1.0.whl").unlink()
    assert [it.kind for it in first] == [NO_CODE]
    assert wheels.faults(GTX_1080_TI) == first
    stored = json.loads((tmp_path / "facts" / "kernels-1.0.json").read_text("utf-8"))
    assert stored[0] == ["_C.so"]


def test_incompatibilities_are_reported(wheels: Wheels, tmp_path: Path) -> None:
    file = {"name": "large.whl", "url": "none", "size": 10, "hashes": {"sha256": "other"}}
    store = Store(tmp_path, 5, None)
    assert store.read(file) is None
    assert store.left_out == {"large.whl": 10}
