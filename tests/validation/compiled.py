"""Small shared libraries, compiled by the tests: they replace CUDA's, with exactly the calls that are used."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CUDART = "int cudaRuntimeGetVersion(int *version) {{ *version = {number}; return 0; }}"
CUBLAS = """
int cublasGetProperty(int part, int *value)
{{
    static int version[] = {{ {major}, {minor}, {patch} }};
    *value = version[part];
    return 0;
}}
"""
CUDNN = """
#include <stddef.h>
size_t cudnnGetVersion(void) {{ return {number}; }}
"""
CUDNN_OPS = "int cudnnOpsVersionCheck(void) {{ return {status}; }}"
ON_LOAD = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void) {{ {body} }}
"""


def compiled(path: Path, source: str, *options: str) -> Path:
    """The shared library ``path`` from C ``source``; its soname is its file name. Skips the test without gcc."""
    compiler = shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("shared libraries for the tests need gcc on Linux")
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{path.name}", "-o", str(path), "-x", "c", "-"]
    subprocess.run([*command, "-x", "none", *options], input=source, text=True, check=True)
    return path
