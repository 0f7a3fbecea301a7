"""Of several builds with one version, a file installs the one that its other packages need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli

from envsolve.app.status.locked_stack import locked_stack
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.host import Platform

_CASES = tomli.loads((Path(__file__).parent / "status_builds.toml").read_text(encoding="utf-8"))


@pytest.mark.thorough
@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, (case,) in _CASES.items()])
def test_a_file_installs_the_builds_selected_by_its_other_entries(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / case["name"]
    file.write_text(case["text"], encoding="utf-8")
    stack = locked_stack(file, Platform.LINUX_64, Matrix(find_matrix()))
    assert stack is not None
    (rows,) = stack.releases.values()
    labels = [(row.build, f"{row.build} {row.cuda_libraries}") for row in rows]
    assert len(labels) == len(case["builds"]), labels
    assert all(build in names for build, names in zip(case["builds"], labels, strict=True)), labels
