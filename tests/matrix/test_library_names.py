from __future__ import annotations

import pytest

from envsolve.matrix import Matrix
from envsolve.matrix.library_names import LibraryNames


@pytest.fixture(scope="module")
def names(matrix: Matrix) -> LibraryNames:
    return LibraryNames(matrix.document("libraries"))


@pytest.mark.parametrize(
    ("file_name", "conda", "major", "packages"),
    [
        ("libcufft.so.11", False, None, ("nvidia-cufft-cu12",)),
        ("libcufft.so.11", True, None, ("libcufft",)),
        ("libcublas.so.13", False, "13", ("nvidia-cublas",)),
        ("libcudnn.so.9", False, "13", ("nvidia-cudnn-cu13",)),
        ("libnccl.so.2", False, None, ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13")),
        ("CUDART64_12.DLL", False, None, ("nvidia-cuda-runtime-cu12",)),
        ("libgomp.so.1", False, None, ()),
    ],
)
def test_a_file_name_gives_its_packages(
    names: LibraryNames, file_name: str, conda: bool, major: str | None, packages: tuple[str, ...]
) -> None:
    assert names.packages(file_name, conda=conda, cuda_major=major) == packages


@pytest.mark.parametrize(
    ("name", "cuda", "file_name"),
    [
        ("cusolver", "12.5", "libcusolver.so.11"),
        ("cusolver", "13", "libcusolver.so.12"),
        ("cudart", "11.2", "libcudart.so.11.0"),
        ("cudart", "1", None),
        ("no-such-library", "12", None),
    ],
)
def test_a_toolkit_has_a_name_for_each_of_its_libraries(
    names: LibraryNames, name: str, cuda: str, file_name: str | None
) -> None:
    assert names.file(name, cuda) == file_name


@pytest.mark.parametrize(
    ("file_name", "majors"),
    [("libcublas.so.12", {"12"}), ("libcusparse.so.12", {"12", "13"}), ("libcudnn.so.9", set()), ("x.so", set())],
)
def test_one_name_may_stand_for_several_majors(names: LibraryNames, file_name: str, majors: set[str]) -> None:
    assert names.cuda_majors(file_name) == majors
