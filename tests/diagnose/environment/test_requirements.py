"""Versions that packages require of one another and do not get."""

from __future__ import annotations

import pytest

from envsolve.diagnose.environment.wanted import wanted_of
from envsolve.model.finding import Severity
from envsolve.model.host import Platform
from envsolve.validation.metadata import Packages
from tests.diagnose.environment.on_disk import Patient, names, pip


def _jax(patient: Patient, *, jax: str, jaxlib: str, plugin: str, pjrt: str) -> None:
    for module in ("jax", "jaxlib", "jax_plugins/xla_cuda12"):
        patient.write(f"{module}/__init__.py")
    minimum = f"jaxlib<={jax},>={jax.rpartition('.')[0]}.0"
    extra = f'jax-cuda12-plugin[with-cuda]<={jax},>={jax}; extra == "cuda12"'
    patient.install("jax", jax, "jax/__init__.py", requires=[minimum, extra])
    patient.install("jaxlib", jaxlib, "jaxlib/__init__.py")
    patient.install("jax-cuda12-plugin", plugin, requires=[f"jax-cuda12-pjrt=={plugin}"])
    patient.install("jax-cuda12-pjrt", pjrt, "jax_plugins/xla_cuda12/__init__.py")


@pytest.mark.thorough
def test_a_pin_that_differs_is_a_warning(stack: Patient) -> None:
    stack.uninstall("nvidia-cublas-cu12")
    libraries = [f"nvidia/cublas/lib/{it.name}" for it in (stack.site / "nvidia/cublas/lib").iterdir()]
    stack.install("nvidia-cublas-cu12", "12.9.1.4", *libraries)
    finding = stack.only("requirement-not-met", Severity.WARNING)
    assert finding.about == "torch"
    assert finding.cause == "torch 2.8.0 requires nvidia-cublas-cu12==12.8.4.1, and 12.9.1.4 is installed."
    assert finding.commands == (stack.planned, pip("check", "").rstrip())


@pytest.mark.thorough
def test_a_missing_requirement_is_a_warning(stack: Patient) -> None:
    metadata = stack.folder("torch", "2.8.0") / "METADATA"
    metadata.write_text(metadata.read_text().replace("\n\n", "\nRequires-Dist: triton==3.4.0\n\n", 1))
    finding = stack.only("requirement-not-met", Severity.WARNING)
    assert finding.evidence == ("torch 2.8.0: triton==3.4.0; installed: none",)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "requirement",
    [
        "nothing-of-this-system; sys_platform == 'win32'",
        "nothing-of-this-python; python_version < '3'",
        "nothing-that-was-asked-for; extra == 'test'",
        "nvidia-nccl-cu12==1; extra == 'and-cuda'",
        'nvidia-cudnn-cu12 (>=9.1,<10) ; platform_system == "Linux"',
        "not a requirement at all ~~",
        "odd; nonsense == '3'",
        "nvidia-cudnn-cu12 @ https://example.invalid/x.whl",
    ],
)
def test_requirements_that_do_not_apply_are_not_missed(stack: Patient, requirement: str) -> None:
    metadata = stack.folder("torch", "2.8.0") / "METADATA"
    metadata.write_text(metadata.read_text().replace("\n\n", f"\nRequires-Dist: {requirement}\n\n", 1))
    assert names(stack.report().findings) == []


def test_extras_required_by_another_package_apply(empty: Patient) -> None:
    empty.install("torch", "2.15.0", requires=["cuda-toolkit[cublas]==13.2.0"])
    cublas = 'nvidia-cublas==13.4.*; extra == "cublas"'
    empty.install("cuda-toolkit", "13.2.0", requires=[cublas, 'nvidia-cufft==1; extra == "cufft"'])
    empty.install("nvidia-cublas", "13.1.0.3")
    finding = empty.only("requirement-not-met", Severity.WARNING)
    assert finding.evidence == ("cuda-toolkit 13.2.0: nvidia-cublas==13.4.*; installed: 13.1.0.3",)


def test_an_extra_that_may_not_have_been_requested_is_only_mentioned(empty: Patient) -> None:
    requires = ['nvidia-cudnn-cu12<10,>=9.3; extra == "and-cuda"', 'nvidia-nccl-cu12>=2; extra == "and-cuda"']
    empty.install("tensorflow", "2.21.0", requires=requires)
    empty.install("nvidia-cudnn-cu12", "9.1.0.70")
    assert names(empty.report().findings) == []
    empty.install("nvidia-nccl-cu12", "2.27.3")
    empty.only("requirement-not-met", Severity.INFO)


@pytest.mark.parametrize(("installed", "broken"), [("2.7.1", True), ("2.8.0+cu126", False), ("2.8.1", None)])
def test_torchvision_is_for_one_minor_release_of_pytorch(empty: Patient, installed: str, broken: bool | None) -> None:
    empty.install("torch", installed)
    empty.install("torchvision", "0.23.0", requires=["torch==2.8.0"])
    if broken is False:
        assert names(empty.report().findings) == []
    elif broken is None:
        empty.only("requirement-not-met", Severity.WARNING)
    else:
        finding = empty.only("companion-mismatch", Severity.ERROR)
        assert finding.title == "torchvision 0.23.0 is not for torch 2.7.1"


def test_in_conda_too(empty: Patient) -> None:
    empty.conda("python", "3.12.4", "h1")
    empty.install("torch", "2.7.1", installer="conda", requires=["networkx"])
    empty.install("torchvision", "0.23.0", requires=["torch==2.8.0", "numpy<1"], installer="conda")
    empty.install("numpy", "2.1.0", installer="conda")
    empty.only("companion-mismatch", Severity.ERROR)


@pytest.mark.parametrize(
    ("torch", "vision", "message"),
    [
        ("2.8.0+cu128", "0.23.0+cpu", "torchvision is a build for the CPU and PyTorch 2.8.0+cu128 one for CUDA 12"),
        ("2.8.0+cpu", "0.23.0+cu128", "torchvision is a build for CUDA 12 and PyTorch 2.8.0+cpu one for the CPU"),
        ("2.8.0+cu128", "0.23.0+cu118", "torchvision is a build for CUDA 11 and PyTorch 2.8.0+cu128 one for CUDA 12"),
        ("2.8.0+cu128", "0.23.0+rocm6.4", "torchvision is a build for ROCm and PyTorch"),
        ("2.8.0+cu128", "0.23.0+cu126", ""),
        ("2.8.0+cu128", "0.23.0", ""),
    ],
)
def test_companions_are_built_for_one_cuda(empty: Patient, torch: str, vision: str, message: str) -> None:
    empty.write("torch/__init__.py")
    cuda = "'12.8'" if "+cu" in torch else None
    empty.write("torch/version.py", f"__version__ = {torch!r}\ncuda = {cuda}\nhip = None\n")
    empty.install("torch", torch, "torch/__init__.py")
    empty.write("torchvision/version.py", f"__version__ = {vision!r}\n")
    empty.install("torchvision", vision.partition("+")[0], "torchvision/version.py")
    found = [it for it in empty.report().findings if it.id == "companion-mismatch"]
    assert [it.severity for it in found] == ([Severity.ERROR] if message else [])
    assert not message or found[0].cause.startswith(message)


def test_jax_and_its_parts_in_one_version_are_sound(empty: Patient) -> None:
    _jax(empty, jax="0.10.2", jaxlib="0.10.2", plugin="0.10.2", pjrt="0.10.2")
    assert names(empty.report().findings) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("versions", "title"),
    [
        (("0.10.2", "0.9.1", "0.9.1", "0.9.1"), "jax 0.10.2 is not for jaxlib 0.9.1"),
        (("0.10.2", "0.10.2", "0.9.1", "0.9.1"), "jax-cuda12-plugin 0.9.1 is not for jaxlib 0.10.2"),
        (("0.10.2", "0.10.2", "0.10.2", "0.9.1"), "jax-cuda12-plugin 0.10.2 is not for jax-cuda12-pjrt 0.9.1"),
    ],
)
def test_jax_and_its_parts_in_several_versions_are_an_error(
    empty: Patient, versions: tuple[str, str, str, str], title: str
) -> None:
    jax, jaxlib, plugin, pjrt = versions
    _jax(empty, jax=jax, jaxlib=jaxlib, plugin=plugin, pjrt=pjrt)
    assert empty.only("companion-mismatch", Severity.ERROR).title == title


@pytest.mark.thorough
def test_known_problems_of_a_build_are_reported_beyond_its_metadata(empty: Patient) -> None:
    """TensorFlow 2.7 requires numpy>=1.14.5 and breaks with numpy 2."""
    empty.write("tensorflow/__init__.py")
    build = "build_info = OrderedDict([('cuda_version', '11.2'), ('cudnn_version', '8'), ('is_cuda_build', True)])\n"
    empty.write("tensorflow/python/platform/build_info.py", build)
    empty.install("tensorflow", "2.7.0", "tensorflow/__init__.py", requires=["numpy>=1.14.5"])
    empty.install("numpy", "2.1.0")
    finding = empty.only("numpy-mismatch", Severity.ERROR)
    assert finding.commands == (pip("install", "'numpy<2'"),)
    assert finding.sources
    empty.uninstall("numpy")
    empty.install("numpy", "1.26.4")
    assert names(empty.report().findings) == []


@pytest.mark.thorough
def test_packages_outside_of_the_gpu_stack_are_left_to_pip_check(empty: Patient) -> None:
    empty.install("requests", "2.0", requires=["urllib3<2", "idna"])
    empty.install("urllib3", "2.2.0")
    assert names(empty.report().findings) == []


@pytest.mark.thorough
def test_a_replacement_package_satisfies_a_requirement(empty: Patient) -> None:
    empty.install("tf-keras", "2.20.0", requires=["tensorflow<2.21,>=2.20"])
    empty.install("tf-nightly", "2.20.0")
    assert names(empty.report().findings) == []


def test_markers_are_read_for_the_environment_and_not_for_this_process(empty: Patient) -> None:
    requires = [
        "of-37; python_version == '3.7'",
        "of-windows; platform_system == 'Windows'",
        "of-arm; platform_machine == 'aarch64'",
    ]
    empty.install("torch", "1.13.1", requires=requires)
    packages = Packages([empty.site])
    for python, platform, name in (
        ("3.7.16", Platform.LINUX_64, "of-37"),
        ("3.9.1", Platform.WIN_64, "of-windows"),
        ("3.9.1", Platform.LINUX_AARCH64, "of-arm"),
    ):
        assert [it.need.name for it in wanted_of(packages, python, platform)] == [name]
