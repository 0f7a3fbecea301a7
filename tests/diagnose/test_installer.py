"""Commands in an answer are for the installer, the interpreter and the shell in the text."""

from __future__ import annotations

import pytest

from envsolve.diagnose.installer import PACKAGED, RESTART, for_installer, typed
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding, Severity
from tests.diagnose.test_clues import case_of

PORTABLE = r"D:\ComfyUI portable\python_embeded\Lib\site-packages\torch\cuda\__init__.py:235: UserWarning"
REPR = r"Failed to compile. cc_cmd: ['D:\\ComfyUI\\python_embeded\\Lib\\site-packages\\triton\\tcc.exe']"
VENV = r"D:\Video\sd_scripts\venv\lib\site-packages\torch\cuda\__init__.py:235: UserWarning"
NAMED = "I updated my ComfyUI_windows_portable, and now it fails"
STARTED = r"** Python executable: C:\Users\u\ComfyUI\.venv\Scripts\python.exe"
UV = "$ uv pip install flash-attn"
PROJECT = "> uv sync --extra gpu"
WHISPER = "/home/u/.local/share/uv/tools/whisper"
TOOL = f"{WHISPER}/lib/python3.12/site-packages/torch/__init__.py"
INDEX = "https://download.pytorch.org/whl/cu128"


@pytest.mark.parametrize(
    ("text", "command", "expected"),
    [
        ("python train.py", "pip install 'numpy<2'", ["pip install 'numpy<2'"]),
        (UV, "pip install 'numpy<2'", ["uv pip install 'numpy<2'"]),
        (UV, "pip uninstall -y torch torchvision", ["uv pip uninstall torch torchvision"]),
        (UV, "nvcc --version", ["nvcc --version"]),
        (
            TOOL,
            "pip install numpy",
            [f"uv pip install --python {WHISPER} numpy"],
        ),
        (PROJECT, "pip install -U 'jax[cuda12]'", ["uv add 'jax[cuda12]'"]),
        (PROJECT, f"pip install torch==2.8.0 --index-url {INDEX}", [f"uv add torch==2.8.0 --index pytorch={INDEX}"]),
        (PROJECT, "pip install --no-build-isolation flash-attn", ["uv pip install --no-build-isolation flash-attn"]),
        ("  This is likely not a Poetry issue.", "pip install numpy", ["poetry run pip install numpy"]),
        ("pixi install failed", "conda install -c conda-forge 'cudnn>=9.12'", ["pixi add 'cudnn>=9.12'"]),
        ("pixi install failed", "pip install -U jax", ["pixi add --pypi jax"]),
        ("pixi install failed", "conda create -n env -c conda-forge pytorch-gpu", ["pixi add pytorch-gpu"]),
        (
            "pixi install failed",
            "CONDA_OVERRIDE_CUDA=12.4 conda install ...",
            ["CONDA_OVERRIDE_CUDA=12.4 pixi install"],
        ),
        ("pixi install failed", "python -m bitsandbytes", ["pixi run python -m bitsandbytes"]),
        (UV, "python -m pip show torch", ["uv pip show torch"]),
        (UV, "python -m bitsandbytes", ["python -m bitsandbytes"]),
        (PROJECT, "python -m pip show torch", ["uv pip show torch"]),
        (PROJECT, 'python -c "print(1)"', ['uv run python -c "print(1)"']),
        (TOOL, 'python -c "print(1)"', [f'{WHISPER}/bin/python -c "print(1)"']),
        ("not a Poetry issue", "python -m pip --version", ["poetry run python -m pip --version"]),
        ("Cell In[6], line 1", "python -m pip check", ["%pip check"]),
        ("Cell In[6], line 1", 'python -c "print(1)"', ['!python -c "print(1)"']),
        ("Cell In[6], line 1", "pip install numpy", ["%pip install numpy"]),
        (PORTABLE, "pip install numpy", [r'"D:\ComfyUI portable\python_embeded\python.exe" -m pip install numpy']),
        (REPR, "python -m xformers.info", [r"D:\ComfyUI\python_embeded\python.exe -m xformers.info"]),
        (REPR, 'python -c "print(1)"', [r'D:\ComfyUI\python_embeded\python.exe -c "print(1)"']),
        (NAMED, "pip install numpy", [r"ComfyUI_windows_portable\python_embeded\python.exe -m pip install numpy"]),
        (STARTED, "pip install numpy", [r"C:\Users\u\ComfyUI\.venv\Scripts\python.exe -m pip install numpy"]),
        ("I use uv.", "pip install numpy", ["uv pip install numpy"]),
        (VENV, "pip install numpy", [r"D:\Video\sd_scripts\venv\Scripts\python.exe -m pip install numpy"]),
        (r"C:\stable-diffusion-webui> webui.bat", "pip list", [r"venv\Scripts\python.exe -m pip list"]),
    ],
)
def test_commands_are_for_the_installer(matrix: Matrix, text: str, command: str, expected: list[str]) -> None:
    assert list(typed(command, case_of(text, matrix))) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("pip install 'jax[cuda12]' 'numpy<2'", ['pip install "jax[cuda12]" "numpy<2"']),
        ("unset TRITON_PTXAS_PATH", ["set TRITON_PTXAS_PATH="]),
        ("export MAX_JOBS=4", ['set "MAX_JOBS=4"']),
        ("FORCE_CUDA=1 pip install 'mmcv<2'", ['set "FORCE_CUDA=1"', 'pip install "mmcv<2"']),
        ("python -c \"import os; os.environ['CUDA_PATH']\"", ["python -c \"import os; os.environ['CUDA_PATH']\""]),
        ("set CUDA_HOME=C:\\CUDA\\v12.8", ["set CUDA_HOME=C:\\CUDA\\v12.8"]),
        ("echo $CUDA_HOME", ["echo $CUDA_HOME"]),
    ],
)
def test_commands_are_for_the_shell_of_windows(matrix: Matrix, command: str, expected: list[str]) -> None:
    assert list(typed(command, case_of("OS: Windows 11", matrix))) == expected


def test_a_notebook_is_restarted_after_an_installation(matrix: Matrix) -> None:
    found = Finding("x", "x", Severity.ERROR, cause="x", fix="Install it.", commands=("pip install numpy",))
    notebook = case_of("Cell In[6], line 1", matrix)
    assert for_installer(found, notebook).fix == f"Install it. {RESTART}"
    assert for_installer(found._replace(commands=("pip list",)), notebook).fix == "Install it."
    assert for_installer(found._replace(fix="Restart it."), notebook).fix == "Restart it."
    assert for_installer(found, case_of("python train.py", matrix)).fix == "Install it."


def test_pip_does_not_change_a_packaged_program(matrix: Matrix) -> None:
    commands = ("pip install torch", "envsolve --framework pytorch", "nvidia-smi")
    found = Finding("x", "x", Severity.ERROR, cause="x", fix="Install it.", commands=commands)
    packaged = for_installer(found, case_of("[18112] Failed to execute script deepmosaic", matrix))
    assert packaged.fix == f"Install it. {PACKAGED}"
    assert packaged.commands == ("nvidia-smi",)
    assert for_installer(found._replace(commands=("nvidia-smi",)), case_of("_MEI12345", matrix)).fix == "Install it."


def test_powershell_is_known_by_its_prompt(matrix: Matrix) -> None:
    case = case_of(r"PS D:\ComfyUI> python main.py", matrix)
    assert list(typed("export MAX_JOBS=4", case)) == ["$Env:MAX_JOBS = '4'"]
    assert list(typed("unset CUDA_HOME", case)) == ["Remove-Item Env:CUDA_HOME"]
