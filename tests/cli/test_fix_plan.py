"""``envsolve doctor --fix-plan``, applied to environments of small wheels until the doctor finds nothing."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.create.tools import find_uv
from envsolve.matrix import Matrix
from envsolve.model.release import PYTORCH_INDEX
from tests.cli.test_doctor import answered, doctor
from tests.cli.test_end_to_end import GTX_1080_TI, RTX_3090
from tests.diagnose.environment.static_environment import Environment
from tests.fake_driver.builder import Device, FakeDriver
from tests.index.packages import IndexFile, wheel
from tests.index.server import IndexServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake driver is for Linux")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def torch(version: str, cuda: str | None) -> IndexFile:
    """PyTorch with files that show what it is built for."""
    local = f"+cu{cuda.replace('.', '')}" if cuda else "+cpu"
    version_py = f"__version__ = '{version.partition('+')[0]}{local}'\ncuda: Optional[str] = {cuda!r}\nhip = None\n"
    return wheel("torch", version, members={"torch/__init__.py": b"", "torch/version.py": version_py.encode()})


def torchvision(version: str, of: str, build: str) -> IndexFile:
    """The torchvision for one PyTorch."""
    members = {"torchvision/__init__.py": b"", "torchvision/version.py": f"__version__ = '{build}'\n".encode()}
    return wheel("torchvision", version, [f"torch=={of}"], members=members)


def numpy(version: str) -> IndexFile:
    """NumPy, of which only the version matters."""
    return wheel("numpy", version, members={"numpy/__init__.py": b""})


def onnxruntime(name: str, version: str, cuda: str) -> IndexFile:
    """ONNX Runtime, whose two packages install one module."""
    build_info = f"cuda_version = '{cuda}'\n".encode()
    members = {"onnxruntime/__init__.py": b"", "onnxruntime/capi/build_and_package_info.py": build_info}
    return wheel(name, version, members=members)


def jax(version: str) -> dict[str, IndexFile]:
    """The packages of one JAX for CUDA 12: jax refuses a jaxlib of another version, and jaxlib such a plugin."""
    pjrt = f"jax-cuda12-pjrt=={version}"
    extra = f"jax-cuda12-plugin[with-cuda]=={version}; extra == 'cuda12'"
    return {
        "jax": wheel("jax", version, [f"jaxlib=={version}", extra], extras=["cuda12"]),
        "jaxlib": wheel("jaxlib", version, members={"jaxlib/__init__.py": b""}),
        "jax-cuda12-plugin": wheel("jax-cuda12-plugin", version, [pjrt], extras=["with-cuda"]),
        "jax-cuda12-pjrt": wheel("jax-cuda12-pjrt", version),
    }


def tensorflow(directory: Path) -> dict[str, IndexFile]:
    """TensorFlow, whose extra installs CUDA's libraries, one package here."""
    made = Environment(directory)
    made.tensorflow()
    of_tensorflow = _files(made.site)
    made.nvidia()
    for name in ("libcufft.so.11", "libcusparse.so.12"):
        made.library(f"nvidia/cuda_runtime/lib/{name}")
    made.library("tensorflow/libcusolver.so.11")
    of_nvidia = {name: content for name, content in _files(made.site).items() if name not in of_tensorflow}
    requires = ["nvidia-everything-cu12==1.0; extra == 'and-cuda'"]
    return {
        "tensorflow": wheel("tensorflow", "2.18.0", requires, extras=["and-cuda"], members=of_tensorflow),
        "nvidia-everything-cu12": wheel("nvidia-everything-cu12", "1.0", members=of_nvidia),
    }


def _files(site: Path) -> dict[str, bytes]:
    return {str(it.relative_to(site)): it.read_bytes() for it in site.rglob("*") if it.is_file()}


def fill(index: IndexServer, directory: Path) -> None:
    """The files on PyPI and PyTorch's own indexes."""
    index.add("torch", [torch("2.2.2", "12.1"), torch("2.6.0", "12.4"), torch("2.8.0", "12.8")])
    index.add(
        "torchvision",
        [torchvision("0.20.1", "2.5.1", "0.20.1+cu124"), torchvision("0.21.0", "2.6.0", "0.21.0+cu124")],
    )
    index.add("torchcodec", [wheel("torchcodec", it) for it in ("0.2.1", "0.12.0")])
    index.add("numpy", [numpy("1.26.4"), numpy("2.2.0")])
    index.add("fastkern", [wheel("fastkern", "1.0", members={"fastkern/__init__.py": b"", MODULE: b""})])
    index.add("onnxruntime", [onnxruntime("onnxruntime", "1.20.2", "")])
    index.add("onnxruntime-gpu", [onnxruntime("onnxruntime-gpu", "1.20.2", "12.6")])
    for name, file in (it for version in ("0.4.37", "0.4.38") for it in jax(version).items()):
        index.add(name, [file])
    for name, file in tensorflow(directory).items():
        index.add(name, [file])
    cudnn = [str(it.version) for it in Matrix().cudnn if it.cuda_major == 12]
    index.add("nvidia-cudnn-cu12", [wheel("nvidia-cudnn-cu12", it) for it in cudnn])
    parts = ["cublas", "cudart", "cufft", "cupti", "curand", "cusolver", "cusparse", "nvrtc"]
    index.add("cuda-toolkit", [wheel("cuda-toolkit", f"12.{it}.0", extras=parts) for it in range(10)])
    index.add("nvidia-nvjitlink-cu12", [wheel("nvidia-nvjitlink-cu12", f"12.{it}.0") for it in range(10)])
    of_cpu = index.index("/whl/cpu/")
    of_cpu.add("torch", [torch("2.2.2+cpu", None), torch("2.6.0+cpu", None)])
    of_cpu.add("torchvision", [torchvision("0.21.0+cpu", "2.6.0", "0.21.0+cpu")])
    index.index("/whl/cu999/").add("torch", [torch("2.6.0+cu999", "99.9")])
    index.index("/whl/cu124/").add("torch", [torch("2.6.0+cu124", "12.4")])
    of_126 = index.index("/whl/cu126/")
    of_126.add("torch", [torch("2.2.2+cu126", "12.6"), torch("2.6.0+cu126", "12.6"), torch("2.8.0+cu126", "12.6")])
    of_126.add(
        "torchvision",
        [torchvision(f"{it}+cu126", of, f"{it}+cu126") for it, of in (("0.21.0", "2.6.0"), ("0.23.0", "2.8.0"))],
    )


def lose_a_file(site: Path) -> None:
    """A file of PyTorch is gone."""
    (site / "torch/__init__.py").unlink()


def break_a_link(site: Path) -> None:
    """A library is a link into a cache that was cleared, as uv makes them with UV_LINK_MODE=symlink."""
    library = site / "nvidia/cuda_runtime/lib/libcufft.so.11"
    library.unlink()
    library.symlink_to("/nowhere/libcufft.so.11")


def lose_the_record(site: Path) -> None:
    """pip cannot uninstall PyTorch."""
    next(site.glob("torch-*.dist-info/RECORD")).unlink()


def leave_remains(site: Path) -> None:
    """pip was interrupted when it replaced PyTorch."""
    (site / "~orch").mkdir()


def record_twice(site: Path) -> None:
    """PyTorch is recorded in another version, too."""
    (record,) = site.glob("torch-*.dist-info")
    other = shutil.copytree(record, site / "torch-2.8.0.dist-info")
    for name in ("METADATA", "RECORD"):
        text = (other / name).read_text(encoding="utf-8").replace(record.name, other.name)
        (other / name).write_text(text.replace("Version: 2.6.0", "Version: 2.8.0"), encoding="utf-8")


def rename_modules(site: Path) -> None:
    """The compiled module of fastkern is for Python 3.5, which compiled no package of today."""
    module = site / MODULE
    module.rename(module.with_name(module.name.replace(TAG, "cpython-35")))
    record = next(site.glob("fastkern-*.dist-info/RECORD"))
    record.write_text(record.read_text(encoding="utf-8").replace(TAG, "cpython-35"), encoding="utf-8")


TAG = f"cpython-{PYTHON.replace('.', '')}"
MODULE = f"fastkern/_C.{TAG}-x86_64-linux-gnu.so"


class Case(NamedTuple):
    """The packages on a machine, the findings about it, a line of the plan, and what was broken afterwards."""

    installed: Sequence[str]
    devices: Sequence[Device]
    found: set[str]
    line: str
    breaks: Callable[[Path], None] | None = None


CASES = {
    "a build for the CPU": Case(["torch==2.6.0+cpu"], [RTX_3090], {"cpu-build"}, "torch==2.6.0+cu126 "),
    "a build for the CPU and its companion": Case(
        ["torch==2.6.0+cpu", "torchvision==0.21.0+cpu"], [RTX_3090], {"cpu-build"}, "torchvision==0.21.0+cu126 "
    ),
    "a companion of another version": Case(
        ["torch==2.6.0", "torchvision==0.20.1"], [RTX_3090], {"companion-mismatch"}, "torchvision "
    ),
    "a companion for another PyTorch by its build, not its metadata": Case(
        ["torch==2.6.0", "torchcodec==0.12.0"], [RTX_3090], {"requirement-not-met"}, "torchcodec==0.2.* "
    ),
    "a companion for another CUDA": Case(
        ["torch==2.6.0", "torchvision==0.21.0+cpu"], [RTX_3090], {"companion-mismatch"}, "torchvision==0.21.0 "
    ),
    "a companion on a machine without a GPU": Case(
        ["torch==2.6.0", "torchvision==0.20.1"], [], {"companion-mismatch"}, "torch==2.6.0 "
    ),
    "no code for the GPU": Case(["torch==2.8.0"], [GTX_1080_TI], {"no-code-for-gpu"}, "torch==2.8.0+cu126 "),
    "a build for NumPy 1": Case(
        ["torch==2.2.2+cpu", "numpy==2.2.0"], [RTX_3090], {"cpu-build", "numpy-mismatch"}, "numpy<2 "
    ),
    "parts of JAX in two versions": Case(
        ["jax==0.4.38", "jaxlib==0.4.38", "jax-cuda12-plugin==0.4.37", "jax-cuda12-pjrt==0.4.37"],
        [RTX_3090],
        {"companion-mismatch"},
        "jax[cuda12]==0.4.38 ",
    ),
    "TensorFlow without CUDA's libraries": Case(
        ["tensorflow==2.18.0"], [RTX_3090], {"library-missing"}, "tensorflow[and-cuda]==2.18.0 "
    ),
    "two packages with one module": Case(
        ["onnxruntime-gpu==1.20.2", "onnxruntime==1.20.2"],
        [RTX_3090],
        {"two-distributions"},
        "onnxruntime-gpu==1.20.2",
    ),
    "a file that is gone": Case(
        ["torch==2.6.0+cu126"], [RTX_3090], {"package-files-missing"}, "torch==2.6.0+cu126 ", lose_a_file
    ),
    "a link that leads nowhere": Case(
        ["tensorflow==2.18.0", "nvidia-everything-cu12==1.0"],
        [RTX_3090],
        {"library-damaged"},
        "nvidia-everything-cu12 ",
        break_a_link,
    ),
    "a package without its record": Case(
        ["torch==2.6.0+cu126"], [RTX_3090], set(), "torch==2.6.0+cu126 ", lose_the_record
    ),
    "remains of an installation": Case(["torch==2.6.0+cu126"], [RTX_3090], set(), "torch==2.6.0+cu126 ", leave_remains),
    "a package that is recorded twice": Case(
        ["torch==2.6.0+cu126"], [RTX_3090], set(), "torch==2.6.0+cu126 ", record_twice
    ),
    "a module for another Python": Case(
        ["torch==2.6.0+cu126", "fastkern==1.0"],
        [RTX_3090],
        {"extension-of-other-python"},
        "fastkern==1.0 ",
        rename_modules,
    ),
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexServer]:
    """The indexes, on this machine."""
    with IndexServer(recorded=False) as server:
        fill(server, tmp_path_factory.mktemp("wheels"))
        yield server


class Scratch:
    """A virtual environment, and uv or pip, which install into it from ``index`` only."""

    def __init__(self, directory: Path, index: IndexServer) -> None:
        self.prefix = directory / "env"
        self.index = index
        self._file = directory / "plan.txt"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.prefix)], check=True)

    def install(self, *requirements: str) -> None:
        for it in requirements:
            index = f"{self.index.url}/whl/{it.rpartition('+')[2]}/" if "+" in it else self.index.index_url
            self._run(["uv", "pip", "install", "--python", self.python, "--no-deps", it], index)

    @property
    def python(self) -> str:
        return str(self.prefix / "bin/python")

    @property
    def site(self) -> Path:
        return self.prefix / f"lib/python{PYTHON}/site-packages"

    def apply(self, plan: str) -> None:
        """Run the commands of the plan's header on it, with PyTorch's own index in this process."""
        self._file.write_text(plan.replace(PYTORCH_INDEX, f"{self.index.url}/whl/"))
        lines = plan.splitlines()
        first = lines.index("# To apply it:") + 1
        commands = [it.removeprefix("#   ") for it in lines[first:] if it.startswith("#   ")]
        assert commands
        for command in commands:
            self._run(shlex.split(command.replace("THIS_FILE", str(self._file))), self.index.index_url)

    def _run(self, command: Sequence[str], index: str) -> None:
        uv = find_uv()
        if uv is None:
            pytest.skip("uv is not installed")
        environ = {"PATH": os.defpath, "HOME": str(self.prefix), "UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index}
        environ |= {"UV_NO_CONFIG": "1", "UV_LINK_MODE": "copy", "PIP_CONFIG_FILE": os.devnull}
        words = [uv if it == "uv" else it for it in command]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_an_applied_plan_leaves_no_findings(
    name: str, fake_driver: FakeDriver, index: IndexServer, tmp_path: Path
) -> None:
    case = CASES[name]
    scratch = Scratch(tmp_path, index)
    scratch.install(*case.installed)
    if case.breaks is not None:
        case.breaks(scratch.site)
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=case.devices)
    if not case.devices:
        environ = fake_driver.environ(parts=(), devices=[])
    before = answered(doctor(environ, "--prefix", str(scratch.prefix), "--json"))
    assert {it["id"] for it in before["findings"] if it["severity"] == "error"} == case.found
    plan = doctor(environ, "--prefix", str(scratch.prefix), "--fix-plan")
    assert plan.returncode == 0, plan.stderr
    assert f"\n{case.line}" in plan.stdout
    scratch.apply(plan.stdout)
    after = answered(doctor(environ, "--prefix", str(scratch.prefix), "--json"))
    assert [(it["id"], it["evidence"]) for it in after["findings"] if it["severity"] != "info"] == []


@pytest.mark.thorough
def test_pip_applies_it_if_the_environment_has_pip(fake_driver: FakeDriver, index: IndexServer, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, index)
    subprocess.run([scratch.python, "-m", "ensurepip"], check=True, capture_output=True)
    scratch.install("torch==2.6.0+cpu", "torchvision==0.21.0")
    environ = fake_driver.environ(driver="580.95.05", cuda="13.0", devices=[RTX_3090])
    scratch.apply(doctor(environ, "--prefix", str(scratch.prefix), "--fix-plan").stdout)
    after = answered(doctor(environ, "--prefix", str(scratch.prefix), "--json"))
    assert [it["id"] for it in after["findings"] if it["severity"] == "error"] == []


@pytest.mark.thorough
def test_an_unknown_build_is_not_planned_without_a_gpu(
    fake_driver: FakeDriver, index: IndexServer, tmp_path: Path
) -> None:
    scratch = Scratch(tmp_path, index)
    scratch.install("torch==2.6.0+cu999")
    done = doctor(fake_driver.environ(parts=(), devices=[]), "--prefix", str(scratch.prefix), "--fix-plan")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no-gpu-to-plan-for\n")


@pytest.mark.thorough
def test_a_plan_for_the_installed_gpus_names_them(fake_driver: FakeDriver, index: IndexServer, tmp_path: Path) -> None:
    scratch = Scratch(tmp_path, index)
    scratch.install("torch==2.6.0")
    done = doctor(fake_driver.environ(parts=(), devices=[]), "--prefix", str(scratch.prefix), "--fix-plan")
    assert (
        "note: no GPU was detected: planned for the GPUs that the installed builds support, 5.0 to 9.0" in done.stderr
    )
