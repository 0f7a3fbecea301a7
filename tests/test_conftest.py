"""Which tests pytest runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
THOROUGH = "tests/resolve/closure/test_cases.py"


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "runs"), [([THOROUGH], True), (["-o", f"testpaths={THOROUGH}"], False)])
def test_only_a_path_includes_the_thorough_tests(words: list[str], *, runs: bool) -> None:
    line = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *words]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == (pytest.ExitCode.OK if runs else pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout
