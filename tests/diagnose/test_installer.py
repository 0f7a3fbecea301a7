"""Commands in an answer are for the installer, the interpreter and the shell in the text."""

from __future__ import annotations

import pytest

from envsolve.diagnose.installer import typed
from envsolve.matrix import Matrix
from tests.diagnose.test_clues import case_of

PORTABLE = r"D:\ComfyUI portable\python_embeded\Lib\site-packages\torch\cuda\__init__.py:235: UserWarning"
REPR = r"Failed to compile. cc_cmd: ['D:\\ComfyUI\\python_embeded\\Lib\\site-packages\\triton\\tcc.exe']"
VENV = r"D:\Video\sd_scripts\venv\lib\site-packages\torch\cuda\__init__.py:235: UserWarning"
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
        ("Cell In[6], line 1", "pip install numpy", ["%pip install numpy"]),
        (PORTABLE, "pip install numpy", [r'"D:\ComfyUI portable\python_embeded\python.exe" -m pip install numpy']),
        (REPR, "python -m xformers.info", [r"D:\ComfyUI\python_embeded\python.exe -m xformers.info"]),
        (REPR, 'python -c "print(1)"', [r'D:\ComfyUI\python_embeded\python.exe -c "print(1)"']),
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


def test_powershell_is_known_by_its_prompt(matrix: Matrix) -> None:
    case = case_of(r"PS D:\ComfyUI> python main.py", matrix)
    assert list(typed("export MAX_JOBS=4", case)) == ["$Env:MAX_JOBS = '4'"]
    assert list(typed("unset CUDA_HOME", case)) == ["Remove-Item Env:CUDA_HOME"]
