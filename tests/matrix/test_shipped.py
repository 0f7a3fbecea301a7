"""The shipped matrix: valid, with evidence, and correct where facts are known independently."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement

from envsolve.frameworks import FRAMEWORKS
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion


def releases(matrix: Matrix, framework: str) -> tuple[Release, ...]:
    return matrix.framework(framework, None).releases


@pytest.mark.thorough
def test_it_has_no_mistake(matrix: Matrix) -> None:
    assert matrix.check() == []


@pytest.mark.parametrize(
    ("framework", "oldest", "newest"),
    [
        ("tensorflow", "1.13", "2.21"),
        ("pytorch", "1.0", "2.15"),
        ("jax", "0.3", "0.12"),
        ("cupy", "10.0", "14.2"),
        ("onnxruntime", "1.10", "1.32"),
    ],
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
def test_every_gpu_build_has_a_known_toolkit(matrix: Matrix, framework: str) -> None:
    known = {toolkit.version for toolkit in matrix.cuda.toolkits}
    assert {release.cuda for release in releases(matrix, framework)} - {None} <= known


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_build_has_code_that_its_compiler_cannot_make(matrix: Matrix, framework: str) -> None:
    compiles_for = {toolkit.version: set(toolkit.compiles_for) for toolkit in matrix.cuda.toolkits}
    for release in releases(matrix, framework):
        if release.cuda is not None:
            targets = {target.capability for target in (*release.code.sass, *release.code.ptx)}
            assert targets <= compiles_for[release.cuda], release.label


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_no_two_rows_are_for_the_same_build(matrix: Matrix, framework: str) -> None:
    """A build string of ``*`` leaves the choice to the toolkit beside it."""
    seen = [
        (release.version, release.source, release.platform, _build_name(release), release.package, python)
        for release in releases(matrix, framework)
        for python in release.pythons
    ]
    assert len(seen) == len(set(seen))


def _build_name(release: Release) -> str:
    return release.build if release.build_string == "*" else release.build_string


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
def test_driver_floors_and_full_support_are_those_of_nvidia(
    matrix: Matrix, version: str, floor: str, full: str
) -> None:
    toolkit = next(entry for entry in matrix.cuda.toolkits if entry.version == CudaVersion.parse(version))
    assert str(toolkit.floor(windows=False)) == floor
    assert str(toolkit.full(windows=False)) == full


@pytest.mark.parametrize(
    ("capability", "first", "last"),
    [("8.6", 455, None), ("8.9", 520, None), ("12.0", 570, None), ("6.1", None, 580), ("3.7", None, 470)],
)
def test_a_gpu_is_supported_from_one_driver_branch_to_another(
    matrix: Matrix, capability: str, first: int | None, last: int | None
) -> None:
    life = next(it for it in matrix.cuda.architectures if it.capability == ComputeCapability.parse(capability))
    assert (life.first_branch if first else None, life.last_branch) == (first, last)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("version", "major", "gpu", "platform", "serves"),
    [
        ("9.10.2.21", 12, "6.1", Platform.LINUX_64, True),
        ("9.11.0.98", 12, "6.1", Platform.LINUX_64, False),
        ("9.11.0.98", 12, "7.0", Platform.LINUX_64, False),
        ("9.11.0.98", 12, "7.5", Platform.LINUX_64, True),
        ("8.7.0.84", 11, "3.7", Platform.LINUX_64, True),
        ("8.8.0.121", 11, "3.7", Platform.LINUX_64, False),
        ("9.27.0.42", 12, "8.9", Platform.LINUX_64, True),
        ("8.9.7.29", 12, "8.9", Platform.LINUX_64, True),
        ("8.9.7.29", 12, "9.0", Platform.WIN_64, True),
        ("9.28.0.42", 12, "12.1", Platform.WIN_64, True),
        ("9.12.0.46", 13, "11.0", Platform.LINUX_AARCH64, True),
        ("9.12.0.46", 12, "11.0", Platform.LINUX_AARCH64, False),
        ("9.12.0.46", 13, "11.0", Platform.LINUX_64, False),
        ("9.20.0.48", 12, "8.7", Platform.LINUX_AARCH64, False),
        ("9.21.0.82", 12, "8.7", Platform.LINUX_AARCH64, True),
        ("9.25.1.1", 13, "8.7", Platform.LINUX_AARCH64, True),
        ("9.26.0.51", 13, "8.7", Platform.LINUX_AARCH64, False),
        ("9.25.1.1", 13, "9.0", Platform.LINUX_AARCH64, True),
    ],
)
def test_cudnn_supports_the_gpus_in_its_code(
    matrix: Matrix, version: str, major: int, gpu: str, platform: Platform, serves: bool
) -> None:
    release = next(it for it in matrix.cudnn if str(it.version) == version and it.cuda_major == major)
    assert release.serves(ComputeCapability.parse(gpu), platform) is serves


@pytest.mark.parametrize(
    ("gpu", "major", "last"),
    [("3.5", 11, "8.7.0.84"), ("5.2", 12, "9.10.2.21"), ("6.1", 12, "9.10.2.21"), ("7.0", 12, "9.10.2.21")],
)
def test_the_last_cudnn_with_code_for_an_old_gpu(matrix: Matrix, gpu: str, major: int, last: str) -> None:
    wanted = ComputeCapability.parse(gpu)
    serving = [it for it in matrix.cudnn if it.cuda_major == major and it.serves(wanted, Platform.LINUX_64)]
    assert str(max(it.version for it in serving)) == last


def test_every_cudnn_on_the_index_was_read(matrix: Matrix) -> None:
    assert [str(it.version) for it in matrix.cudnn if it.on_pypi and it.code is None] == []


def test_cudnn_names_only_toolkits_that_are_known(matrix: Matrix) -> None:
    known = {toolkit.version for toolkit in matrix.cuda.toolkits}
    assert {cuda for release in matrix.cudnn for cuda in release.cuda} <= known


def test_no_toolkit_needs_a_newer_driver_than_its_first_release(matrix: Matrix) -> None:
    """Update releases need newer drivers; the row of a minor has the driver of its first general release."""
    for toolkit in matrix.cuda.toolkits:
        drivers = [it.linux_full for it in matrix.components.releases if it.cuda == toolkit.version and it.linux_full]
        if toolkit.linux_full is not None and toolkit.version != CudaVersion(11, 0):  # 11.0.1 was a candidate
            assert min(drivers) == toolkit.linux_full, toolkit.version


@pytest.mark.parametrize(
    ("requirement", "oldest", "newest"),
    [
        ("nvidia-cublas-cu12>=12.5.3.2", "12.5", "12.9"),
        ("nvidia-cublas-cu12==12.6.4.1", "12.6", "12.6"),
        ("nvidia-cuda-runtime-cu11==11.7.99", "11.7", "11.7"),
        ("nvidia-cublas==13.6.2.16", "13.3", "13.3"),
        ("nvidia-nvjitlink-cu12>=12.8.61", "12.8", "12.9"),
        ("nvidia-cufft>=12.5", "13.5", "13.5"),
    ],
)
def test_a_component_implies_its_toolkits(matrix: Matrix, requirement: str, oldest: str, newest: str) -> None:
    parsed = Requirement(requirement)
    found = matrix.components.toolkits_with(parsed.name, parsed.specifier)
    assert (str(found[-1]), str(found[0])) == (oldest, newest)


def test_no_text_has_a_path_or_index_of_the_machine_that_wrote_it(matrix: Matrix) -> None:
    for path in matrix.directory.glob("*.toml"):
        assert not re.search(r"/(work|tmp|home|root)/|pythonhosted", path.read_text(encoding="utf-8"))


PLATFORM_TAGS = {"linux-64": "x86_64", "linux-aarch64": "aarch64", "win-64": "win_amd64", "osx-arm64": "macosx"}
WHEEL_FILE = re.compile(
    r"(?P<name>[\w.]+)-(?P<version>[\w.]+)(?:\+(?P<build>\w+))?(?:-\d\w*)?-\w+-\w+-(?P<tag>[\w.]+)\.whl in whl/"
)


def test_a_recorded_wheel_matches_its_row(matrix: Matrix) -> None:
    cited = 0
    for release in matrix.framework("pytorch", None).releases:
        for file in (found for item in release.evidence if (found := WHEEL_FILE.match(item.reference))):
            cited += 1
            assert file["version"] == str(release.version), release.label
            assert file["build"] in (release.build, None), release.label
            assert PLATFORM_TAGS[release.platform] in file["tag"], f"{release.label} {release.platform}"
    assert cited
