"""The matrix that is shipped: sound, evidenced, and true where facts are known from elsewhere."""

from __future__ import annotations

import re

import pytest

from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion

FRAMEWORKS = ("jax", "pytorch", "tensorflow")


def releases(matrix: Matrix, framework: str) -> tuple[Release, ...]:
    return matrix.framework(framework, None).releases


def test_it_holds_no_mistake(matrix: Matrix) -> None:
    assert matrix.check() == []


def test_it_covers_the_frameworks(matrix: Matrix) -> None:
    assert set(matrix.framework_names) >= set(FRAMEWORKS)


@pytest.mark.parametrize(
    ("framework", "oldest", "newest"),
    [("tensorflow", "2.4", "2.21"), ("pytorch", "1.13", "2.15"), ("jax", "0.4.20", "0.12")],
)
def test_it_covers_the_versions(matrix: Matrix, framework: str, oldest: str, newest: str) -> None:
    versions = sorted(release.version for release in releases(matrix, framework))
    assert str(versions[0]).startswith(oldest)
    assert str(versions[-1]).startswith(newest)
    assert {Source.CONDA_FORGE, Source.PYPI} <= {release.source for release in releases(matrix, framework)}
    assert {Platform.LINUX_64, Platform.WIN_64} <= {release.platform for release in releases(matrix, framework)}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_row_has_evidence(matrix: Matrix, framework: str) -> None:
    assert all(release.evidence for release in releases(matrix, framework))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_gpu_build_names_a_toolkit_that_is_known(matrix: Matrix, framework: str) -> None:
    known = {toolkit.version for toolkit in matrix.cuda.toolkits}
    assert {release.cuda for release in releases(matrix, framework)} - {None} <= known


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_build_holds_code_that_its_compiler_cannot_make(matrix: Matrix, framework: str) -> None:
    compiles_for = {toolkit.version: set(toolkit.compiles_for) for toolkit in matrix.cuda.toolkits}
    for release in releases(matrix, framework):
        if release.cuda is not None:
            held = {target.capability for target in (*release.code.sass, *release.code.ptx)}
            assert held <= compiles_for[release.cuda], release.label


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_two_rows_stand_for_the_same_build(matrix: Matrix, framework: str) -> None:
    seen = [
        (release.version, release.source, release.platform, release.build_string, release.cuda_libraries, python)
        for release in releases(matrix, framework)
        for python in release.pythons
    ]
    assert len(seen) == len(set(seen))


def test_tensorflow_is_dated_by_its_wheels_and_not_by_file_names(matrix: Matrix) -> None:
    """``cudart64_110.dll`` and ``libcudart.so.11.0`` are the names of all CUDA 11.x, so they say nothing here."""
    built = {
        str(release.version)[:4].rstrip("."): str(release.cuda)
        for release in releases(matrix, "tensorflow")
        if release.source is Source.PYPI and release.cuda is not None
    }
    assert {key: built[key] for key in ("2.4", "2.5", "2.10", "2.11", "2.12", "2.14")} == {
        "2.4": "11.0",
        "2.5": "11.2",
        "2.10": "11.2",
        "2.11": "11.2",
        "2.12": "11.8",
        "2.14": "11.8",
    }


@pytest.mark.parametrize(
    ("version", "floor", "full"),
    [("13.0", "580.65.06", "580.65.06"), ("12.4", "525.60.13", "550.54.14"), ("11.8", "450.80.02", "520.61.05")],
)
def test_driver_floors_and_full_support_are_nvidias(matrix: Matrix, version: str, floor: str, full: str) -> None:
    toolkit = next(entry for entry in matrix.cuda.toolkits if entry.version == CudaVersion.parse(version))
    assert str(toolkit.floor(windows=False)) == floor
    assert str(toolkit.full(windows=False)) == full


@pytest.mark.parametrize(
    ("capability", "first", "last"),
    [("8.6", 455, None), ("8.9", 520, None), ("12.0", 570, None), ("6.1", None, 580), ("3.7", None, 470)],
)
def test_a_gpu_lives_from_one_driver_branch_to_another(
    matrix: Matrix, capability: str, first: int | None, last: int | None
) -> None:
    life = next(it for it in matrix.cuda.architectures if it.capability == ComputeCapability.parse(capability))
    assert (life.first_branch if first else None, life.last_branch) == (first, last)


@pytest.mark.parametrize(
    ("version", "major", "gpu", "serves"),
    [
        ("9.10.2.21", 12, "6.1", True),
        ("9.11.0.98", 12, "6.1", False),
        ("9.11.0.98", 12, "7.0", False),
        ("9.11.0.98", 12, "7.5", True),
        ("8.7.0.84", 11, "3.7", True),
        ("8.8.0.121", 11, "3.7", False),
        ("9.27.0.42", 12, "8.9", True),
        ("8.9.7.29", 12, "8.9", True),
    ],
)
def test_cudnn_serves_the_gpus_it_holds_code_for(
    matrix: Matrix, version: str, major: int, gpu: str, serves: bool
) -> None:
    release = next(it for it in matrix.cudnn if str(it.version) == version and it.cuda_major == major)
    assert release.serves(ComputeCapability.parse(gpu)) is serves


def test_no_text_names_a_path_or_an_index_of_the_machine_it_was_made_on(matrix: Matrix) -> None:
    for path in matrix.directory.glob("*.toml"):
        assert not re.search(r"/(work|tmp|home|root)/|pythonhosted", path.read_text(encoding="utf-8"))


PLATFORM_TAGS = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "win_amd64", "osx-arm64": "macosx"}
WHEEL_FILE = re.compile(
    r"(?P<name>[\w.]+)-(?P<version>[\w.]+)(?:\+(?P<build>\w+))?(?:-\d\w*)?-\w+-\w+-(?P<tag>[\w.]+)\.whl in whl/"
)


def test_a_recorded_wheel_of_the_index_is_the_one_its_row_is_about(matrix: Matrix) -> None:
    cited = 0
    for release in matrix.framework("pytorch", None).releases:
        for file in (found for item in release.evidence if (found := WHEEL_FILE.match(item.reference))):
            cited += 1
            assert file["version"] == str(release.version), release.label
            assert file["build"] in (release.build, None), release.label
            assert PLATFORM_TAGS[release.platform] in file["tag"], f"{release.label} {release.platform}"
    assert cited
