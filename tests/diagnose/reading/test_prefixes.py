"""Prefixes of loggers and services, as in public issues, and lines that only resemble them."""

from __future__ import annotations

import io
import time

import pytest

from envsolve.app.explain.explaining import ExplainRequest, explain
from envsolve.diagnose.reading.prefixes import without_prefixes

ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
BEFORE = [
    "vllm-1  | ",
    "vllm_1  | ",
    "face_1             | ",
    "vllm-openai    | ",
    "[pod/vllm-7d9f8b6c5-x7k2p/vllm] ",
    "vllm-7d9f8b6c5-x7k2p vllm ",
    "vllm-7d9f8b6c5-x7k2p vllm \u203a ",
    "2024-05-01T12:00:00.123456789Z stderr F ",
    "2024-05-01T12:00:00.123456789+02:00 stdout P ",
    '{"log":"',
    "May 01 12:00:00 gpu-host kernel: ",
    "May  1 12:00:00.123456 gpu-host python3[1234]: ",
    "<11>May 01 12:00:00 gpu-host ollama[1234]: ",
    "2024-05-01T12:00:00+0000 gpu-host vllm@1.service[12]: ",
    "[   12.345678] ",
    "[Wed May  1 12:00:00 2024] ",
    "May 01 12:00:00 gpu-host kernel: [   12.345678] ",
    "2024-05-01T12:00:00.1234567Z ",
    "2024-05-01T12:00:00.1234567Z ##[error]",
    "test (3.11) Run the tests 2024-05-01T12:00:00.1234567Z ",
    "2024-05-01T12:00:00.123456Z 01E ",
    "2024-05-01T12:00:00.123456Z 00O+",
    "[2024-05-01T12:00:00.123Z] ",
    "2024-05-01 12:00:00.123456: ",
    "2024-05-01 12:00:00,123 - ",
    "2024/05/01 12:00:00 ",
    "2024-05-01 12:00:00.123 | ERROR    | __main__:main:12 - ",
    "vllm-1  | 2024-05-01 12:00:00 | ",
    "[12:00:00] ",
    "12:00:00.123 ",
    "[05/01/2024-12:00:00] ",
    "::error file=a.py,line=1::",
    "#12 34.56 ",
    "(EngineCore_0 pid=123) ERROR 05-01 12:00:00 [core.py:700] ",
    "ERROR 05-01 12:00:00 multiproc_executor.py:123] ",
    "(APIServer pid=1) ",
    "(VllmWorker rank=0 pid=123) ",
    "(RayWorkerWrapper pid=123, ip=10.0.0.1) ",
    "[rank0]: ",
    "[default1]:",
    "vllm-1  | (EngineCore pid=7) ERROR 05-01 12:00:00 [core.py:70] ",
    "May 01 12:00:00 host docker[1]: vllm-1  | 2024-05-01T12:00:00.123Z [rank0]: ",
    "[pod/vllm-0/vllm] 2024-05-01T12:00:00.123456789Z stderr F (Worker pid=3) ERROR 05-01 12:00:00 [core.py:70] ",
    "2024-05-01T12:00:00.1234567Z #12 34.56 ",
    "  vllm-1  |  [rank0]: ",
]


@pytest.mark.thorough
@pytest.mark.parametrize("prefix", BEFORE)
def test_a_prefix_is_removed(prefix: str) -> None:
    assert without_prefixes(prefix + ERROR) == ERROR


@pytest.mark.thorough
@pytest.mark.parametrize("prefix", BEFORE)
def test_the_indentation_of_the_program_stays(prefix: str) -> None:
    assert without_prefixes(f'{prefix}  File "x.py", line 1') == '  File "x.py", line 1'


@pytest.mark.parametrize("prefix", ["I0501 12:00:00.123456       1 ", "2024-05-01 12:00:00.123456: W "])
def test_the_file_of_the_source_stays(prefix: str) -> None:
    assert without_prefixes(f"{prefix}gpu_device.cc:2344] no").endswith("gpu_device.cc:2344] no")


@pytest.mark.parametrize(
    "line",
    [
        "torch    | 2.1.0",
        "GPU  Name  | Bus-Id | Disp.A",
        "| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03   CUDA Version: 12.2 |",
        "|   0  NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0 Off |                  N/A |",
        "Wed May  1 12:00:00 2024",
        "2.16.2 doesn't see my GPU",
        "535.129 is my driver",
        "[W1114 12:00:00.123456789 CUDAFunctions.cpp:109] Warning: CUDA initialization",
        "[TRT] [E] 6: The engine plan file",
        "│     └─ cuda-nvcc-dev_linux-64 12.4.99.* , which requires",
        "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
        "(pid 1005) NVRM: has the version 595.84",
        "2024-05-01 12:00:00 ",
        "vllm-1  | ",
        "",
        "nvidia-cuda-runtime-utils is missing",
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert without_prefixes(line) == line


@pytest.mark.thorough
@pytest.mark.parametrize("prefix", BEFORE)
def test_no_prefix_is_in_an_answer(prefix: str) -> None:
    lines = [
        "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90.",
    ]
    plain, behind = (
        explain(io.BytesIO("".join(f"{it}{line}\n" for line in lines).encode()), ExplainRequest(), {})
        for it in ("", prefix)
    )
    assert [it.id for it in plain.findings] == ["gpu-too-new-for-build"]
    assert [it.as_json() for it in behind.findings] == [it.as_json() for it in plain.findings]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "part", ["[", "(", "a", " ", "2024-05-01 12:00:00 ", "a-b2c4d6-", "[1.123456]", "(a=b ", "Z ", "x  | "]
)
def test_a_long_line_costs_little(part: str) -> None:
    start = time.process_time()
    without_prefixes(part * (4096 // len(part)))
    assert time.process_time() - start < 0.5
