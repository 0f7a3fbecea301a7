"""What a library states about its CUDA, read as a stream in pieces of any size."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from envsolve.binary.streamed_library import StreamedLibrary, read_stream, torch_symbols_of
from tests.binary.device_library import device_library, library_for_torch
from tests.scripts.fat_binary import fat_binary

RUNTIME = b"\0CUDA driver version is insufficient for CUDA runtime version\0"


def read(content: bytes, *, piece: int = 50) -> StreamedLibrary:
    return read_stream(content[start : start + piece] for start in range(0, len(content), piece))


@pytest.mark.parametrize(
    ("names", "majors"),
    [
        (b"\0libcudart.so.12\0", {12}),
        (b"\0libcudart.so.11.0\0libcublasLt.so.11\0", {11}),
        (b"\0cudart64_110.dll\0", {11}),
        (b"\0nvrtc64_120_0.dll\0cublas64_12.dll\0", {12}),
        (b"\0libnvrtc.so.13\0libcublas.so.12\0", {12, 13}),
        (b"\0libcudart_static.so.12\0libcufft.so.11\0", set()),
    ],
)
def test_the_cuda_of_the_named_libraries_is_found(names: bytes, majors: set[int]) -> None:
    for piece in (3, 17, 1000):
        assert read(b"\x7fELF" + names + b"more", piece=piece).cuda == majors


@pytest.mark.parametrize("piece", [100, 5000, 1 << 20])
def test_needed_libraries_count_before_libraries_that_are_only_named(tmp_path: Path, piece: int) -> None:
    texts = b"\0libcublas.so.13\0libcudart.so.13\0"
    needed = ("libcudart.so.12", "libz.so.1")
    library = device_library(tmp_path / "a.so", texts, section=".rodata", needed=needed).read_bytes()
    assert read(library, piece=piece).cuda == {12}
    assert read(library[: library.index(texts) + len(texts)], piece=piece).cuda == {12}  # not as far as what is needed
    alone = device_library(tmp_path / "b.so", texts, needed=("libz.so.1",)).read_bytes()
    assert read(alone, piece=piece).cuda == {13}


@pytest.mark.parametrize("damage", [b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100, b"\x7fELF\x01\x01" + bytes(100)])
def test_a_damaged_beginning_yields_nothing(damage: bytes) -> None:
    assert read(damage + b"\0libcudart.so.12\0").cuda == {12}


def test_a_single_target_in_one_of_many_files_is_ignored() -> None:
    code = read(fat_binary((52,)) + fat_binary((80, 90), (90,)) * 150).code
    assert (list(map(str, code.sass)), list(map(str, code.ptx))) == (["8.0", "9.0"], ["9.0"])


@pytest.mark.parametrize(("flag", "target"), [(0x100000, "10.0a"), (0x200000, "10.0f"), (0x1000000, "10.0")])
def test_code_for_one_architecture_or_family_is_recognised(flag: int, target: str) -> None:
    code = read(fat_binary((100,), flags=0x11 | flag)).code
    assert list(map(str, code.sass)) == [target]


@pytest.mark.parametrize(("isa", "major"), [((7, 8), 11), ((8, 8), 12), ((9, 4), 13)])
def test_ptx_shows_which_cuda_is_linked(isa: tuple[int, int], major: int) -> None:
    code = fat_binary((80,), (80,), isa=isa)
    assert read(RUNTIME + code).linked_cuda == major
    assert read(b"\0nvcudart_hybrid64.dll\0" + code).linked_cuda == major
    assert read(code).linked_cuda is None


@pytest.mark.parametrize(
    ("isa", "cuda"),
    [
        ((7, 8), (11, 8)),
        ((8, 5), (12, 5)),
        ((8, 7), (12, 8)),
        ((9, 4), (13, 4)),
        ((6, 5), (10, 2)),
        ((6, 1), (9, 1)),
        ((5, 0), None),
    ],
)
def test_ptx_shows_which_toolkit_compiled_it(isa: tuple[int, int], cuda: tuple[int, int] | None) -> None:
    assert read(fat_binary((80,), (80,), isa=isa)).ptx_cuda == cuda


def test_machine_code_shows_its_toolkit_since_cuda_13() -> None:
    assert read(RUNTIME + fat_binary((80,), form=(1, 8))).linked_cuda == 13
    assert read(RUNTIME + fat_binary((100,), form=(1, 8))).linked_cuda is None  # CUDA 12.9 writes it so, too
    assert read(RUNTIME + fat_binary((80,), form=(1, 7))).linked_cuda is None


@pytest.mark.parametrize(
    ("text", "major"),
    [
        (b"numpy.core._multiarray_umath", 1),
        (b"numpy._core._multiarray_umath numpy.core._multiarray_umath", 2),
        (b"numpy.core.multiarray", None),
    ],
)
def test_the_numpy_it_was_compiled_with_is_found(text: bytes, major: int | None) -> None:
    assert read(text, piece=5).numpy == major


def test_files_without_a_target_are_ignored() -> None:
    """nvcc compiles a file without a target for 5.2; the other files do not run there."""
    default = fat_binary((52,), (52,))
    found = read(default + fat_binary((70, 80)) * 4 + fat_binary((52, 70))).code
    assert (list(map(str, found.sass)), list(map(str, found.ptx))) == (["5.2", "7.0", "8.0"], [])
    assert list(map(str, read(default + fat_binary((70, 80)) * 4).code.sass)) == ["7.0", "8.0"]
    assert list(map(str, read(default * 3).code.sass)) == ["5.2"]


def test_intermediate_code_is_skipped() -> None:
    intermediate = fat_binary((75,)).replace(struct.pack("<H", 2), struct.pack("<H", 8), 1)
    found = read_stream([intermediate * 3 + fat_binary((80,))], enough=1)
    assert list(map(str, found.code.sass)) == ["8.0"]


@pytest.mark.parametrize("piece", [100, 5000, 1 << 20])
def test_symbols_of_pytorch_are_read(piece: int) -> None:
    device, error, tensor = "_ZN3c104cuda9SetDeviceEa", "_ZTIN3c105ErrorE", "_ZNK2at6Tensor3addEv"
    other, library = "_ZN3foo3c10E", "_ZN5torch7LibraryC1Ev"
    content = library_for_torch(needs=(device, error, other), has=(tensor, other + "v"), weak=(library,))
    assert read(content, piece=piece).torch == {device, error}
    assert torch_symbols_of([content]) == {tensor}
    assert read(content[:-10_000], piece=piece).torch == frozenset()  # its last segment says where they are
