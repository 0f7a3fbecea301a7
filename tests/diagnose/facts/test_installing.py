"""Decisions of the rules on pip, uv, Poetry and conda: Python, platform, index, version, or conflicting packages."""

from __future__ import annotations

import pytest
from packaging.version import Version

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts import installing
from envsolve.model.host import Platform
from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.package_cases import causes_of, words_of

NOT_FOUND = "ERROR: Could not find a version that satisfies the requirement {} (from versions: {})"
ON_3_12 = "2.2.0, 2.2.1, 2.2.2, 2.3.0, 2.3.1, 2.4.0, 2.4.1"
ON_3_8 = "1.4.0, 1.5.0, 1.6.0, 1.7.0, 1.8.0, 1.13.1, 2.0.0, 2.4.1"
ON_MAC = "1.4.0, 1.5.0, 1.6.0, 1.7.0, 2.0.0, 2.2.0, 2.2.1, 2.2.2"


@pytest.mark.parametrize(
    ("requirement", "version"),
    [
        ("torch==2.4.1+cu121", "2.4.1+cu121"),
        ("torch==2.4.*", "2.4"),
        ("torch~=2.4.1", "2.4"),
        ("torch>=2.0", None),
        ("torch", None),
    ],
)
def test_the_version_requested_of_pip(requirement: str, version: str | None) -> None:
    case = case_of(NOT_FOUND.format(requirement, "none"))
    assert installing.pip_request(case, case.sightings).version == (version and Version(version))


def test_placeholders_of_old_are_no_versions() -> None:
    case = case_of(NOT_FOUND.format("torch", "0.1.2, 0.1.2.post2, none"))
    assert installing.pip_request(case, case.sightings).listed == ()


@pytest.mark.parametrize(
    ("text", "given", "causes", "expected"),
    [
        (NOT_FOUND.format("torch==1.13.1", ON_3_12), None, ["no-wheel-for-python"], "of Python 3.12"),
        (
            NOT_FOUND.format("torch==1.13.1", ON_3_12),
            Given(python="3.12"),
            ["no-wheel-for-python"],
            "This is Python 3.12",
        ),
        (NOT_FOUND.format("torch==2.5.1", ON_MAC), None, ["wheel-of-other-platform"], "macOS on Intel"),
        (NOT_FOUND.format("torch==2.4.1", "none"), None, ["no-wheel-for-this-system"], "64-bit Python 3."),
        (
            NOT_FOUND.format("torch==2.4.1", "none") + "\n--index-url https://download.pytorch.org/whl/cu131",
            None,
            ["cuda-build-never-published"],
            "never built for cu131",
        ),
        (
            NOT_FOUND.format("torch==2.4.1", "none") + "\n--index-url https://download.pytorch.org/whl/cu121",
            None,
            ["no-wheel-for-this-system", "no-cuda-on-macos"],
            "wheel of torch",
        ),
        (
            NOT_FOUND.format("torch==2.4.1+cu121", ON_3_12),
            None,
            ["cuda-wheel-needs-index", "no-wheel-for-python"],
            "whl/cu121",
        ),
        (NOT_FOUND.format("torch==2.0.1+cu121", ON_3_8), None, ["cuda-build-never-published"], "whl/cu118"),
        (
            NOT_FOUND.format("torch==2.2.9", "2.2.0, 2.2.1, 2.2.2, 2.3.0"),
            None,
            ["version-not-published"],
            "pip install torch==2.2.2",
        ),
        (
            NOT_FOUND.format("jaxlib==0.4.13+cuda12.cudnn89", "0.4.13"),
            None,
            ["jax-wheel-needs-page"],
            "0.4.13+cuda12.cudnn89",
        ),
        (NOT_FOUND.format("tensorrt_libs==8.6.1", "none"), None, ["tensorrt-libs-elsewhere"], "tensorrt-libs"),
        (
            NOT_FOUND.format("flask==99", "1.0") + "\nLooking in indexes: https://download.pytorch.org/whl/cu121",
            None,
            ["not-on-this-index"],
            "Install flask",
        ),
    ],
)
def test_why_pip_finds_no_version(text: str, given: Given | None, causes: list[str], expected: str) -> None:
    assert causes_of(text, given) == causes
    assert expected in words_of(text, given)


@pytest.mark.parametrize(
    "text",
    [
        NOT_FOUND.format("flask==99", "1.0"),
        "ERROR: No matching distribution found for my-company-tools",
        "ERROR: Package 'black' requires a different Python: 3.6.9 not in '>=3.8'",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\nrequests==2.31 from file",
        "ERROR: Cannot install flask and werkzeug because these package versions have conflicting dependencies.",
        "flask 2.0 requires werkzeug>=2, but you have werkzeug 1.0 which is incompatible.",
        "PackagesNotFoundError: The following packages are not available from current channels:\n  - my-tool",
        "Because there is no version of flask==99 and you require flask==99, your requirements are unsatisfiable.",
        "ERROR: my_tool-1.0-cp39-cp39-win_amd64.whl is not a supported wheel on this platform.",
        "UnsatisfiableError: The following specifications were found to be in conflict: flask",
    ],
)
def test_packages_that_are_not_for_gpus_are_not_mentioned(text: str) -> None:
    assert causes_of(text) == []


@pytest.mark.parametrize(
    ("text", "given", "causes", "expected"),
    [
        (
            "ERROR: torch-2.1.0-cp38-cp38-linux_x86_64.whl is not a supported wheel on this platform.",
            Given(python="3.11"),
            ["wheel-of-other-python"],
            "CPython 3.8",
        ),
        (
            "ERROR: torch-2.1.0-cp38-cp38-win_amd64.whl is not a supported wheel on this platform.",
            Given(platform=Platform.LINUX_64),
            ["wheel-of-other-platform"],
            "Windows on x86_64",
        ),
        (
            "ERROR: torch-2.1.0-cp38-cp38-linux_x86_64.whl is not a supported wheel on this platform.",
            None,
            ["wheel-tags-differ"],
            "Linux on x86_64",
        ),
        (
            "ERROR: torch-2.1.0.whl is not a supported wheel on this platform.",
            None,
            ["wheel-tags-differ"],
            "not among those that this pip accepts",
        ),
        (
            "Because torch==2.0.1 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require it",
            None,
            ["wheel-of-other-python"],
            "Python 3.8 to 3.11",
        ),
        (
            "Because nvidia-nccl-cu12==2.20.5 has no wheels with a matching platform tag (e.g., `macosx_14_0_arm64`)",
            None,
            ["wheel-of-other-platform"],
            "no CUDA for macOS",
        ),
        (
            "  Unable to find installation candidates for nvidia-cublas-cu11 (11.10.3.66)",
            None,
            ["nvidia-wheels-elsewhere"],
            "nvidia-cublas-cu11",
        ),
        (
            "Because there is no version of torch==2.7.0+cu126 and your project depends on torch==2.7.0+cu126,",
            None,
            ["cuda-wheel-needs-index"],
            "whl/cu126",
        ),
        (
            "Because there is no version of torch==2.2.9 and you require torch==2.2.9",
            None,
            ["version-not-published"],
            "2.2.9",
        ),
        (
            "ERROR: Package 'vllm' requires a different Python: 3.12.9 not in '<=3.12,>=3.9'",
            None,
            ["requires-other-python"],
            "this is 3.12.9",
        ),
        (
            "torchvision 0.19.1 requires torch==2.4.1, but you have torch 2.5.0 which is incompatible.",
            None,
            ["installed-conflict"],
            "torchvision 0.19.1 requires torch==2.4.1",
        ),
        (
            "Using cached torch-0.1.2.post2.tar.gz (128 kB)",
            Given(python="3.13"),
            ["no-wheel-for-this-system"],
            "This is Python 3.13",
        ),
        ('The "tensorflow-gpu" package has been removed!', None, ["tensorflow-gpu-removed"], ""),
        (
            'Exception: You tried to install "pytorch". The package named for PyTorch is "torch"',
            None,
            ["placeholder-package"],
            "",
        ),
    ],
)
def test_why_an_installer_refuses(text: str, given: Given | None, causes: list[str], expected: str) -> None:
    assert causes_of(text, given) == causes
    assert expected in words_of(text, given)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LibMambaUnsatisfiableError: pytorch-cuda conflicts", "pytorch and cuda"),
        ("Could not solve for environment specs\n  cudf 24.12 needs __glibc", "cudf"),
    ],
)
def test_an_unsatisfiable_request_is_reported_for_gpu_packages(text: str, expected: str) -> None:
    assert causes_of(text) == ["conda-unsatisfiable"]
    assert expected in words_of(text)


FROM_TORCH = NOT_FOUND.format('nvidia-cudnn-cu12==9.1.0.70; platform_system == "Linux" (from torch)', "none")
ON_CU124 = "Looking in indexes: https://download.pytorch.org/whl/cu124\n"


@pytest.mark.parametrize(
    ("text", "platform", "causes"),
    [
        (ON_CU124 + FROM_TORCH, Platform.LINUX_64, ["index-lacks-pinned-package"]),
        (ON_CU124 + FROM_TORCH, Platform.LINUX_AARCH64, ["no-wheel-for-this-system"]),
        (FROM_TORCH, Platform.LINUX_64, ["no-wheel-for-this-system"]),
    ],
)
def test_pins_of_a_wheel_that_the_index_no_longer_has(text: str, platform: Platform, causes: list[str]) -> None:
    assert causes_of(text, Given(platform=platform)) == causes


def test_jax_has_cuda_for_linux_alone() -> None:
    text = NOT_FOUND.format("jaxlib==0.4.9+cuda12.cudnn88", "0.4.13, 0.4.30")
    assert causes_of(text, Given(platform=Platform.WIN_64)) == ["jax-without-cuda-on-windows"]


ON_CU118 = "2.1.0+cu118, 2.2.0+cu118, 2.3.1+cu118"


@pytest.mark.parametrize(
    ("requested", "listed", "cause", "expected"),
    [
        ("2.3.1+cu121", ON_CU118, "build-not-on-this-index", "has a cu121 build of 2.3.1"),
        ("2.3.1+cu124", ON_CU118, "cuda-build-never-published", "as cpu, cu118 and cu121"),
        ("2.3.1+rocm6.0", ON_CU118, "build-not-on-this-index", "pip index versions torch"),
        ("99.0+cu121", "99.0+cu118", "build-not-on-this-index", "no such build of 99.0"),
    ],
)
def test_only_the_matrix_says_that_a_build_never_was(requested: str, listed: str, cause: str, expected: str) -> None:
    text = NOT_FOUND.format(f"torch=={requested}", listed)
    assert causes_of(text) == [cause]
    assert expected in words_of(text)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "requirement", ["torch==2.4.1", "torch==1.13.1", "tensorflow==2.16.1", "onnxruntime", "triton"]
)
@pytest.mark.parametrize("versions", ["none", ON_3_12])
def test_a_mac_user_is_never_sent_to_linux(requirement: str, versions: str) -> None:
    text, given = NOT_FOUND.format(requirement, versions), Given(platform=Platform.OSX_ARM64, python="3.14")
    assert "Linux" not in words_of(text, given)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("requested", "listed", "platform", "expected"),
    [
        ("torch==2.3.0", "2.0.0, 2.2.1, 2.2.2", Platform.OSX_64, "2.2.2 is its last release for macOS on Intel"),
        ("torch==2.3.0", "1.11.0, 1.13.1", Platform.OSX_64, "torch==2.2.2"),
        ("torchvision==0.18.0", "0.15.0, 0.17.2", Platform.OSX_64, "no wheel for macOS on Intel (x86_64)"),
    ],
)
def test_a_version_that_exists_on_other_platforms_is_not_called_unpublished(
    requested: str, listed: str, platform: Platform, expected: str
) -> None:
    text, given = NOT_FOUND.format(requested, listed), Given(platform=platform)
    assert causes_of(text, given) == ["wheel-of-other-platform"]
    assert expected in words_of(text, given)
