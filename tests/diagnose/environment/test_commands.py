"""Commands apply to the examined environment, quoted for the shell that they are pasted into."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from envsolve.diagnose.environment.commands import Shell, bound, shell_of
from envsolve.diagnose.environment.examination import examine_environment
from envsolve.diagnose.environment.scene import Scene
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Platform
from tests.diagnose.environment.on_disk import Patient, host, pip
from tests.diagnose.environment.static_environment import AMPERE

BAT, POWERSHELL = {"PROMPT": "$P$G"}, {"PSModulePath": r"C:\x"}


def _scene(patient: Patient, platform: Platform = Platform.LINUX_64, *, matrix: Matrix, **shell: str) -> Scene:
    inventory = patient.inventory(is_conda=(patient.root / "conda-meta").is_dir())
    inventory = inventory._replace(executable=patient.root / "bin/python")
    machine = host(AMPERE)._replace(platform=platform)
    return Scene(inventory, machine, {}, matrix, shell=shell, directory=patient.root)


def _commands(scene: Scene, *commands: str) -> tuple[str, ...]:
    return bound(Finding("x", "x", Severity.INFO, "x", "x", commands), scene).commands


@pytest.fixture
def spaced(tmp_path: Path) -> Patient:
    """An environment in a directory with a space in its name, with its own pip."""
    patient = Patient(tmp_path / "my env")
    patient.install("pip", "26.2")
    return patient


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("pip install 'numpy<2'", "-m pip install 'numpy<2'"),
        ("pip uninstall -y torch", "-m pip uninstall -y torch"),
        ("pip check", "-m pip check"),
        ("python -m ensurepip", "-m ensurepip"),
    ],
)
def test_pip_is_that_of_the_environment(spaced: Patient, matrix: Matrix, command: str, rest: str) -> None:
    assert _commands(_scene(spaced, matrix=matrix), command) == (f"'{spaced.root}/bin/python' {rest}",)


def test_an_environment_without_pip_is_installed_into_by_uv(empty: Patient, matrix: Matrix) -> None:
    python = empty.root / "bin/python"
    scene = _scene(empty, matrix=matrix)
    assert _commands(scene, "pip install 'numpy<2'") == (f"uv pip install --python {python} 'numpy<2'",)
    assert _commands(scene, "pip uninstall -y torch") == (f"uv pip uninstall --python {python} torch",)


def test_conda_gets_the_prefix_once(spaced: Patient, matrix: Matrix) -> None:
    scene = _scene(spaced, matrix=matrix)
    there = f"conda install -p '{spaced.root}'"
    assert _commands(scene, "conda install -c conda-forge libstdcxx") == (f"{there} -c conda-forge libstdcxx",)
    assert _commands(scene, f"{there} python", "conda info") == (f"{there} python", "conda info")


def test_commands_that_need_a_shell_are_unchanged(spaced: Patient, matrix: Matrix) -> None:
    command = 'ldconfig -p | grep libcuda; echo "$LD_LIBRARY_PATH"'
    assert _commands(_scene(spaced, matrix=matrix), command) == (command,)


@pytest.mark.parametrize(
    ("command", "cmd", "powershell"),
    [
        ("pip check", '"{0}" -m pip check', "& '{0}' -m pip check"),
        ("conda install python", 'conda install -p "{1}" python', "conda install -p '{1}' python"),
        ("unset PYTHONHOME", "set PYTHONHOME=", "Remove-Item Env:PYTHONHOME"),
        ("export PYTHONNOUSERSITE=1", 'set "PYTHONNOUSERSITE=1"', "$Env:PYTHONNOUSERSITE = '1'"),
        ("rm -r '/a b' /c", 'rmdir /s "/a b" /c', "Remove-Item -Recurse '/a b', /c"),
        ("jupyter kernelspec remove x", "jupyter kernelspec remove x", "jupyter kernelspec remove x"),
    ],
)
def test_on_windows_commands_are_those_of_the_shell(
    spaced: Patient, matrix: Matrix, command: str, cmd: str, powershell: str
) -> None:
    for shell, expected in ((BAT, cmd), (POWERSHELL, powershell)):
        scene = _scene(spaced, Platform.WIN_64, matrix=matrix, **shell)
        assert _commands(scene, command) == (expected.format(spaced.root / "bin/python", spaced.root),)


def test_a_variable_for_one_command_is_set_before_it_on_windows(spaced: Patient, matrix: Matrix) -> None:
    scene = _scene(spaced, Platform.WIN_64, matrix=matrix, **BAT)
    wanted = "CONDA_OVERRIDE_CUDA=12.8 conda install -p '/a b' pytorch"
    assert _commands(scene, wanted) == ('set "CONDA_OVERRIDE_CUDA=12.8"', 'conda install -p "/a b" pytorch')


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["my env", "it's", "a$b", "`x`", 'say "x"', "plain", "ä ö"])
def test_a_posix_shell_gives_a_program_its_words_back(name: str) -> None:
    words = [sys.executable, "-c", "import sys; print(ascii(sys.argv[1:]))", f"/x/{name}/bin", "numpy<2"]
    done = subprocess.run(["sh", "-c", Shell.POSIX.joined(words)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ascii(words[3:])


def test_the_shell_of_windows_is_recognised_by_its_prompt() -> None:
    assert shell_of({}, windows=False) is Shell.POSIX
    assert shell_of(BAT, windows=True) is Shell.CMD
    assert shell_of(POWERSHELL, windows=True) is Shell.POWERSHELL


@pytest.mark.thorough
def test_findings_of_validate_name_the_environment_too(stack: Patient) -> None:
    """Those of a missing library and of a CPU build are made where the environment's directory is unknown."""
    (stack.site / "nvidia/cublas/lib/libcublas.so.12").unlink()
    found = {it.id: it for it in stack.report().findings}
    assert found["library-missing"].commands == (pip("install", "nvidia-cublas-cu12"),)
    stack.write("torch/version.py", "__version__ = '2.8.0+cpu'\ncuda = None\nhip = None\n")
    found = {it.id: it for it in stack.report().findings}
    assert found["cpu-build"].commands == (stack.planned,)


def test_a_system_s_python_is_named_by_itself(stack: Patient) -> None:
    stack.write("torch/version.py", "__version__ = '2.8.0+cpu'\ncuda = None\nhip = None\n")
    inventory = stack.inventory()._replace(owns_prefix=False)
    report = examine_environment(Scene(inventory, host(AMPERE), {}, Matrix(), directory=stack.root))
    commands = {it.id: it.commands for it in report.findings}
    assert commands["cpu-build"] == (f"envsolve doctor --python {shlex.quote(sys.executable)} --fix-plan",)


def test_a_package_of_conda_is_installed_by_conda(empty: Patient) -> None:
    empty.write("tensorflow/__init__.py")
    build = "build_info = OrderedDict([('cuda_version', '11.2'), ('cudnn_version', '8'), ('is_cuda_build', True)])\n"
    empty.write("tensorflow/python/platform/build_info.py", build)
    empty.install("tensorflow", "2.7.0", "tensorflow/__init__.py")
    empty.install("numpy", "2.1.0", installer="conda")
    empty.conda("numpy", "2.1.0", "py312_0")
    found = {it.id: it for it in empty.report().findings}
    assert found["numpy-mismatch"].commands == (f"conda install -p {empty.root} 'numpy<2'",)
