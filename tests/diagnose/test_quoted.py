"""Lines of source code that quote a message, and lines of a program that prints it."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Case, Given, Sighting
from tests.diagnose.facts.code_cases import KNOWLEDGE, case_of

RAISES = 'raise AssertionError("Torch not compiled with CUDA enabled")'
FRAME = 'File "/env/lib/python3.12/site-packages/torch/cuda/__init__.py", line 403, in _lazy_init'


def counts(line: str) -> bool:
    """Whether the line, as the only text, is recognised as its error."""
    return bool(Case((Sighting("cpu-build", {}, line, 1),), {}, Given(), KNOWLEDGE).sightings)


@pytest.mark.parametrize(
    "line",
    [
        RAISES,
        f"torch/cuda/__init__.py:403:            {RAISES}",
        r'C:\env\torch\cuda\__init__.py:404:                "Torch not compiled with CUDA enabled"',
        "dso_loader.cc:59:    LOG(WARNING) << \"Could not load dynamic library 'libcudart.so.11.0'\"",
        'LOG(ERROR) << "Could not load dynamic library"',
        'throw std::invalid_argument("This CTranslate2 package was not compiled with CUDA support");',
        '  warnings.warn("Failed to load custom C++ ops. Running on CPU mode Only!")',
        'logger.error("CUDA error: no kernel image is available")',
        'if device == "cuda": raise ValueError("not compiled with CUDA support")',
        'assert torch.cuda.is_available(), "Torch not compiled with CUDA enabled"',
        'return errors::Internal("cudaGetDevice() failed. Status: no kernel image")',
        'TORCH_CHECK(false, "Not compiled with GPU support");',
        "    12     " + RAISES,
    ],
)
def test_source_code_is_no_error(line: str) -> None:
    assert not counts(line)


@pytest.mark.parametrize(
    "line",
    [
        "AssertionError: Torch not compiled with CUDA enabled",
        "E       AssertionError: Torch not compiled with CUDA enabled",
        "RuntimeError('CUDA error: no kernel image is available for execution on the device')",
        "2024-01-01: W tensorflow/stream_executor/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'",
        "main.py:166: UserWarning: /opt did not contain ['libcudart.so', 'libcudart.so.11.0'] as expected!",
        "[09:06:37] /workspace/src/context.cc:203: XGBoost is not compiled with CUDA support.",
        'host_config.h:139:2: error: #error -- unsupported GNU version! "gcc" versions later than 10',
        "print(torch.cuda.is_available()) False",
        ">       " + RAISES,
        "---> 12     " + RAISES,
    ],
)
def test_output_of_a_program(line: str) -> None:
    assert counts(line)


def test_a_line_right_under_its_frame_was_raised() -> None:
    assert case_of(f"{FRAME}\n    {RAISES}").saw("cpu-build")
    assert not case_of(f"    {RAISES}\n{FRAME}").saw("cpu-build")


def test_the_message_of_a_traceback_counts_and_not_the_raising_line() -> None:
    case = case_of(f"{FRAME}\n    {RAISES}\nAssertionError: Torch not compiled with CUDA enabled")
    assert [it.line for it in case.of("cpu-build")] == ["AssertionError: Torch not compiled with CUDA enabled"]
