"""What the rules on pip, uv, Poetry and conda decide: Python, platform, index, version, or who excludes whom."""

from __future__ import annotations

import pytest
from packaging.version import Version

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts import installing, wheel_pythons
from envsolve.model.host import Platform
from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.package_cases import causes_of, words_of

NOT_FOUND = "ERROR: Could not find a version that satisfies the requirement {} (from versions: {})"
ON_3_12 = "2.2.0, 2.2.1, 2.2.2, 2.3.0, 2.3.1, 2.4.0, 2.4.1"
ON_3_8 = "1.4.0, 1.5.0, 1.6.0, 1.7.0, 1.8.0, 1.13.1, 2.0.0, 2.4.1"
ON_MAC = "1.4.0, 1.5.0, 1.6.0, 1.7.0, 2.0.0, 2.2.0, 2.2.1, 2.2.2"
LINUX = Given(platform=Platform.LINUX_64)


@pytest.mark.parametrize(
    ("requirement", "versions", "python"),
    [
        ("torch==1.13.1", ON_3_12, "3.12"),
        ("torch==2.5.1", ON_3_8, "3.8"),
        ("torch==1.7.1", "2.6.0, 2.7.0", None),
        ("tensorflow==2.16.1", "2.2.0, 2.3.0, 2.13.1", "3.8"),
        ("tensorflow==1.15", "2.12.0, 2.13.0", "3.11"),
        ("torchvision==0.15", "0.1.6, 0.2.0", None),
    ],
)
def test_the_list_of_versions_tells_the_python(requirement: str, versions: str, python: str | None) -> None:
    case = case_of(NOT_FOUND.format(requirement, versions), LINUX)
    assert wheel_pythons.listed_python(case, case.sightings) == python


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
def test_what_pip_was_asked_for(requirement: str, version: str | None) -> None:
    case = case_of(NOT_FOUND.format(requirement, "none"))
    assert installing.asked_version(case, case.sightings) == (version and Version(version))


def test_placeholders_of_old_are_no_versions() -> None:
    case = case_of(NOT_FOUND.format("torch", "0.1.2, 0.1.2.post2, none"))
    assert installing.lists_none(case, case.sightings)


@pytest.mark.parametrize(
    ("requirement", "pythons"), [("torchvision==0.14.1", "3.7 to 3.11"), ("torchvision==9.9", None)]
)
def test_wheels_of_a_companion_are_those_of_its_torch(requirement: str, pythons: str | None) -> None:
    case = case_of(NOT_FOUND.format(requirement, "none"), LINUX)
    assert wheel_pythons.wheel_pythons(case, case.sightings) == pythons


@pytest.mark.parametrize(
    ("text", "given", "causes", "told"),
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
def test_why_pip_finds_no_version(text: str, given: Given | None, causes: list[str], told: str) -> None:
    assert causes_of(text, given) == causes
    assert told in words_of(text, given)


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
def test_packages_that_are_not_for_gpus_are_not_spoken_of(text: str) -> None:
    assert causes_of(text) == []


@pytest.mark.parametrize(
    ("text", "given", "causes", "told"),
    [
        (
            "ERROR: torch-2.1.0-cp38-cp38-linux_x86_64.whl is not a supported wheel on this platform.",
            Given(python="3.11"),
            ["wheel-of-other-python"],
            "CPython 3.8",
        ),
        (
            "ERROR: torch-2.1.0-cp38-cp38-win_amd64.whl is not a supported wheel on this platform.",
            LINUX,
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
            "belongs torchvision 0.20.0",
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
def test_why_an_installer_refuses(text: str, given: Given | None, causes: list[str], told: str) -> None:
    assert causes_of(text, given) == causes
    assert told in words_of(text, given)


NOT_AVAILABLE = "PackagesNotFoundError: The following packages are not available from current channels:\n  - {}\n{}"


@pytest.mark.parametrize(
    ("wanted", "channels", "cause"),
    [
        ("cudatoolkit=12.1", "", "conda-cudatoolkit-ended"),
        ("cudatoolkit=11.7", "", "conda-pytorch-cuda"),
        ("cudatoolkit=11.1", "", "conda-cudatoolkit-missing"),
        ("cudatoolkit=8.0", "", "conda-cudatoolkit-old"),
        ("cudatoolkit=11.3", "https://conda.anaconda.org/pytorch/osx-64", "conda-no-cuda-for-platform"),
        ("cudatoolkit=10.2", "https://conda.anaconda.org/pytorch/win-32", "conda-32-bit"),
        ("pytorch=2.6.0", "https://conda.anaconda.org/pytorch/linux-64", "conda-pytorch-channel-ended"),
        ("cudnn=99", "", "conda-package-missing"),
    ],
)
def test_what_conda_does_not_find(wanted: str, channels: str, cause: str) -> None:
    assert causes_of(NOT_AVAILABLE.format(wanted, channels)) == [cause]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("LibMambaUnsatisfiableError: pytorch-cuda conflicts", "pytorch and cuda"),
        ("Could not solve for environment specs\n  cudf 24.12 needs __glibc", "cudf"),
    ],
)
def test_a_request_that_cannot_be_met_is_told_for_gpu_packages(text: str, told: str) -> None:
    assert causes_of(text) == ["conda-unsatisfiable"]
    assert told in words_of(text)


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
def test_what_a_wheel_pins_and_the_index_has_lost(text: str, platform: Platform, causes: list[str]) -> None:
    assert causes_of(text, Given(platform=platform)) == causes


WANTS = (
    "  - package {} requires pytorch-cuda {}, but none of the providers can be installed\n"
    "Could not solve for environment specs\n"
)
ASKED = "├─ pytorch-cuda =={} ha16c6d3_5 is requested and can be installed;"


@pytest.mark.parametrize(
    ("package", "asked", "told"),
    [
        ("torchaudio-2.0.2-py310_cu117", "12.1", "pytorch-cuda 11.7 and 11.8"),
        ("torchaudio-0.13.1-py310_cu117", "11.8", "PyTorch 1.13"),
        ("torchvision-0.16.0-py310_cu118", "12.4", "PyTorch 2.1"),
    ],
)
def test_a_pytorch_that_was_not_built_for_the_pytorch_cuda(package: str, asked: str, told: str) -> None:
    assert told in words_of(WANTS.format(package, "11.7.*") + ASKED.format(asked))


def test_a_pytorch_cuda_that_fits_is_not_blamed() -> None:
    assert "was not built" not in words_of(
        WANTS.format("pytorch-2.1.0-py310_cuda11.8", "11.8.*") + ASKED.format("12.1")
    )
    assert "was not built" not in words_of(WANTS.format("pytorch-2.1.0-py310_cuda11.8", "11.8.*"))


NEEDED = "  - nothing provides cuda 11.7.* needed by pytorch-cuda-11.7-h67b0de4_0"
MISSING = "Could not solve for environment specs: pytorch\n└─ {} , which does not exist (perhaps a missing channel)."


@pytest.mark.parametrize(
    ("text", "platform", "causes"),
    [
        (NEEDED, Platform.OSX_ARM64, ["conda-no-cuda-for-platform"]),
        (NEEDED, Platform.LINUX_64, ["conda-unsatisfiable"]),
        (MISSING.format("cuda 11.7.*") + "\n" + MISSING.format("cuda 11.8.*"), None, ["conda-package-missing"]),
        (MISSING.format("python_abi 3.13.*"), None, ["conda-unsatisfiable"]),
    ],
)
def test_what_others_need_and_no_channel_has(text: str, platform: Platform | None, causes: list[str]) -> None:
    assert causes_of(text, Given(platform=platform)) == causes


@pytest.mark.parametrize(
    ("asked", "listed", "platform", "told"),
    [
        ("torch==2.3.0", "2.0.0, 2.2.1, 2.2.2", Platform.OSX_64, "2.2.2 is its last release for macOS on Intel"),
        ("torch==2.3.0", "1.11.0, 1.13.1", Platform.OSX_64, "torch==2.2.2"),
        ("torchvision==0.18.0", "0.15.0, 0.17.2", Platform.OSX_64, "no wheel for macOS on Intel (x86_64)"),
    ],
)
def test_a_version_that_exists_on_other_platforms_is_not_called_unpublished(
    asked: str, listed: str, platform: Platform, told: str
) -> None:
    text, given = NOT_FOUND.format(asked, listed), Given(platform=platform)
    assert causes_of(text, given) == ["wheel-of-other-platform"]
    assert told in words_of(text, given)


UNSUPPORTED = "ERROR: {} is not a supported wheel on this platform."


@pytest.mark.parametrize(
    ("file", "python", "causes"),
    [
        ("torch-0.2.0-cp27-cp27m-manylinux1_x86_64.whl", "2.7", ["wheel-of-other-unicode", "wheel-tags-differ"]),
        ("torch-0.2.0-cp27-cp27mu-linux_x86_64.whl", None, ["wheel-tags-differ", "wheel-of-other-unicode"]),
        ("tensorflow_gpu-1.13.1-cp35-cp35m-win_amd64.whl", "3.5.1", ["wheel-for-64-bit", "wheel-tags-differ"]),
        ("torch-2.1.0-cp38-cp38-win_amd64.whl", None, ["wheel-tags-differ", "wheel-for-64-bit"]),
        ("torch-2.1.0-cp38-cp38-manylinux2014_aarch64.whl", "3.8", ["wheel-of-newer-pip", "wheel-tags-differ"]),
        ("torch-0.3.0-cp35-cp35m-macosx_10_6_x86_64.whl", "3.6", ["wheel-of-other-python"]),
    ],
)
def test_how_a_python_differs_from_that_of_a_wheel(file: str, python: str | None, causes: list[str]) -> None:
    assert causes_of(UNSUPPORTED.format(file), Given(python=python)) == causes


def test_a_wheel_of_the_other_unicode_is_named() -> None:
    text = UNSUPPORTED.format("torch-0.2.0-cp27-cp27m-manylinux1_x86_64.whl")
    assert "torch-0.2.0-cp27-cp27mu-manylinux1_x86_64.whl" in words_of(text, Given(python="2.7"))


def test_jax_has_cuda_for_linux_alone() -> None:
    text = NOT_FOUND.format("jaxlib==0.4.9+cuda12.cudnn88", "0.4.13, 0.4.30")
    assert causes_of(text, Given(platform=Platform.WIN_64)) == ["jax-without-cuda-on-windows"]


ON_CU118 = "2.1.0+cu118, 2.2.0+cu118, 2.3.1+cu118"


@pytest.mark.parametrize(
    ("asked", "listed", "cause", "told"),
    [
        ("2.3.1+cu121", ON_CU118, "build-not-on-this-index", "as cu118 only"),
        ("2.3.1+cu124", ON_CU118, "cuda-build-never-published", "as cpu, cu118 and cu121"),
        ("2.3.1+rocm6.0", ON_CU118, "build-not-on-this-index", "pip index versions torch"),
        ("99.0+cu121", "99.0+cu118", "build-not-on-this-index", "99.0 as cu118 only"),
    ],
)
def test_only_the_matrix_says_that_a_build_never_was(asked: str, listed: str, cause: str, told: str) -> None:
    text = NOT_FOUND.format(f"torch=={asked}", listed)
    assert causes_of(text) == [cause]
    assert told in words_of(text)


@pytest.mark.parametrize(
    "requirement", ["torch==2.4.1", "torch==1.13.1", "tensorflow==2.16.1", "onnxruntime", "triton"]
)
@pytest.mark.parametrize("versions", ["none", ON_3_12])
def test_nobody_on_a_mac_is_sent_to_linux(requirement: str, versions: str) -> None:
    text, given = NOT_FOUND.format(requirement, versions), Given(platform=Platform.OSX_ARM64, python="3.14")
    assert "Linux" not in words_of(text, given)


def test_the_end_of_a_tree_of_libmamba_names_the_pytorch_cuda() -> None:
    tree = (
        "mamba install pytorch==2.3.0 pytorch-cuda=12.4 -c pytorch\n"
        "Could not solve for environment specs\n"
        "├─ pytorch 2.3.0 would require\n"
        "│  └─ pytorch-cuda >=11.8,<11.9 , which conflicts with any installable versions previously reported;"
    )
    assert "PyTorch 2.3 was not built for pytorch-cuda 12.4" in words_of(tree)
