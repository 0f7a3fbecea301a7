"""Decisions of the rules on conda for missing packages, and for packages that exclude each other."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.model.host import Platform
from tests.diagnose.facts.package_cases import causes_of, words_of

WINDOWS, LINUX, ARM = (Given(platform=it) for it in (Platform.WIN_64, Platform.LINUX_64, Platform.LINUX_AARCH64))
MACOS = Given(platform=Platform.OSX_ARM64)


def missing(*packages: str) -> str:
    return "\n".join(("ResolvePackageNotFound:", *(f"  - {it}" for it in packages)))


@pytest.mark.parametrize(
    ("packages", "given", "expected"),
    [
        (
            ("libffi=3.3", "ld_impl_linux-64=2.35.1", "libgcc-ng=9.3.0"),
            WINDOWS,
            "on Linux on x86_64, and this conda is for Windows",
        ),
        (("libgcc-ng=9.3.0=h5101ec6_17",), MACOS, "on Linux on x86_64, and this conda is for macOS on Apple silicon"),
        (("ld_impl_linux-64=2.35.1", "python=3.8"), ARM, "on Linux on x86_64, and this conda is for Linux on ARM"),
        (
            ("vs2015_runtime=14.27", "vc=14.2", "wincertstore=0.2"),
            LINUX,
            "on Windows, and this conda is for Linux",
        ),
        (("clang_osx-64=11", "python.app=1.3"), LINUX, "on macOS on Intel (x86_64), and this conda is for Linux"),
        (("pyobjc-core=7.3",), WINDOWS, "on macOS on Intel (x86_64), and this conda is for Windows"),
    ],
)
def test_a_file_of_another_system(packages: tuple[str, ...], given: Given, expected: str) -> None:
    assert causes_of(missing(*packages), given) == ["conda-file-of-other-system"]
    assert expected in words_of(missing(*packages), given)


def test_a_file_of_this_system_pins_builds_that_are_gone() -> None:
    assert causes_of(missing("libgcc-ng=9.3.0", "ld_impl_linux-64=2.35.1"), LINUX) == ["conda-exact-builds"]


def test_both_are_possible_where_the_system_is_unknown() -> None:
    found = causes_of(missing("libgcc-ng=9.3.0"))
    assert found == ["conda-file-of-other-system", "conda-exact-builds"]


def test_packages_in_a_list_that_conda_found_are_not_a_symptom() -> None:
    assert causes_of("# packages in environment\n- libgcc-ng=9.3.0\n- ld_impl_linux-64=2.35.1") == []


@pytest.mark.parametrize(
    ("package", "causes"),
    [
        ("numba==0.35.0=np111py35_0", ["conda-free-channel"]),
        ("mkl-service=1.1.2=py27_3", ["conda-free-channel"]),
        ("scipy=1.5.0=py38h06a4308_0", []),
        ("torchvision=0.2.1=py36_1", ["conda-package-missing"]),
    ],
)
def test_builds_without_a_hash_lay_in_the_channel_free(package: str, causes: list[str]) -> None:
    assert causes_of(missing(package), LINUX) == causes


@pytest.mark.parametrize(
    ("packages", "given", "causes"),
    [
        (("pytorch=1.11.0", "cudatoolkit=11.3"), ARM, ["conda-missing-on-arm"]),
        (("cudatoolkit=12.1",), ARM, ["conda-cudatoolkit-ended"]),
        (("cudatoolkit-dev=11.3.1",), WINDOWS, ["conda-not-on-windows"]),
        (("cudatoolkit-dev=11.3.1",), LINUX, ["conda-package-missing"]),
        (("cudf=0.8",), WINDOWS, ["conda-not-on-windows"]),
        (("cudatoolkit-dev=11.3.1",), MACOS, ["conda-no-cuda-for-platform"]),
        (
            ("libgcc-ng=9.3.0", "cudatoolkit=11.3", "pytorch=2.6.0"),
            WINDOWS,
            ["conda-file-of-other-system"],
        ),
    ],
)
def test_packages_that_a_platform_does_not_have(packages: tuple[str, ...], given: Given, causes: list[str]) -> None:
    assert causes_of(missing(*packages), given) == causes


def test_a_package_without_a_version_is_described_in_whole_sentences() -> None:
    words = words_of(missing("cudatoolkit-dev"), WINDOWS)
    assert "There is no cudatoolkit-dev for Windows" in words
    assert "CUDA Toolkit for Windows" in words


def test_any_package_counts_if_the_project_is_for_gpus() -> None:
    text = missing("opencv-python=4.5")
    assert causes_of(text, LINUX) == []
    assert "do not have opencv-python" in words_of(f"pip: torch==1.9.0\n{text}", LINUX)


TREE = """Could not solve for environment specs
The following packages are incompatible
├─ {} is installable and it requires
│     └─ cuda-version >={},<{} , which requires
└─ cudatoolkit is not installable because it conflicts with any installable versions previously reported"""


@pytest.mark.parametrize(
    ("requested", "least", "below", "causes"),
    [
        ("cuda-nvcc", "12.0", "12.1.0a0", ["conda-toolkit-beside-cuda-12"]),
        ("libcublas-dev", "13.0", "13.1.0a0", ["conda-toolkit-beside-cuda-12"]),
        ("cuda-nvcc", "11.8", "11.9.0a0", ["conda-unsatisfiable"]),
    ],
)
def test_cudatoolkit_beside_parts_of_cuda_12(requested: str, least: str, below: str, causes: list[str]) -> None:
    assert causes_of(TREE.format(requested, least, below)) == causes


REFUSED = """Could not solve for environment specs
The following packages are incompatible
├─ pytorch {}  is requested and can be installed;
└─ torchvision 0.10.0**  is not installable because there are no viable options
   └─ torchvision 0.10.0 would require
      └─ pytorch {} , which conflicts with any installable versions previously reported."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("requested", "needed", "decides"),
    [
        ("1.10**", "1.9.0", True),
        ("1.10.*", ">=1.9,<1.10", True),
        ("==1.10.1", "1.9.0", True),
        ("~=1.10.0", "1.9.0", True),
        ("1.10**", "1.10.2", False),
        ("1.10**", ">=1.9", False),
        ("==1.10.1", "==1.10.*", False),
        (">=1.10", ">=1.9,<1.10", True),
        ("1.10**", "[1.9.0|1.9.1]", False),
        ("1.10**", "1.9.0|1.9.1", True),
    ],
)
def test_a_requirement_that_excludes_the_request_decides(requested: str, needed: str, decides: bool) -> None:
    words = words_of(REFUSED.format(requested, needed))
    assert ("torchvision 0.10.0 needs pytorch" in words) == decides
    assert causes_of(REFUSED.format(requested, needed)) == [
        "conda-needs-another-version" if decides else "conda-unsatisfiable"
    ]


def test_installable_packages_in_a_tree_decide_nothing() -> None:
    text = REFUSED.replace(
        "├─ pytorch {}  is", "├─ python 3.8 would require\n│  └─ pytorch 1.8.0 , which conflicts\n├─ pytorch {}  is"
    )
    assert "needs pytorch 1.9.0" in words_of(text.format("1.10**", "1.9.0"))
