"""Code that runs in environments of users: valid Python 3.7, and it only needs the standard library."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from envsolve.validation import inside

INSIDE = Path(inside.__file__).parent
FILES = sorted(INSIDE.rglob("*.py"))
TREES = {str(file.relative_to(INSIDE)): file.read_text(encoding="utf-8") for file in FILES}


@pytest.mark.parametrize("name", TREES)
def test_it_is_valid_python_3_7(name: str) -> None:
    ast.parse(TREES[name], name, feature_version=(3, 7))


@pytest.mark.thorough
@pytest.mark.parametrize("name", TREES)
def test_it_imports_nothing_from_envsolve(name: str) -> None:
    imported = [node for node in ast.walk(ast.parse(TREES[name])) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [alias.name for node in imported if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in imported if isinstance(node, ast.ImportFrom) and not node.level]
    assert not [it for it in names if it.partition(".")[0] == "envsolve"]


@pytest.mark.parametrize("name", ["driver.py", "driver_calls.py", "vector_add.py", "run.py", "channel.py"])
def test_the_driver_probe_only_imports_the_standard_library(name: str) -> None:
    for node in ast.walk(ast.parse(TREES[name])):
        if isinstance(node, ast.Import):
            assert {alias.name.partition(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom) and not node.level:
            assert node.module is not None
            assert node.module.partition(".")[0] in sys.stdlib_module_names
