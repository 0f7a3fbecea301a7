"""The same small worlds resolved by uv: whether there is a solution must be the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.index.packages import wheel
from tests.index.server import IndexServer
from tests.resolve.closure.drawn import EXTRA, Drawn, resolved, worlds

uv = pytest.importorskip("uv")
SEEDS = range(30)
FAST = 10


@pytest.mark.thorough
@pytest.mark.parametrize("number", [it if it < FAST else pytest.param(it, marks=pytest.mark.thorough) for it in SEEDS])
def test_uv_agrees_whether_there_is_a_solution(number: int, server: IndexServer, tmp_path: Path) -> None:
    world = drawn(number)
    shelf = server.index(f"/uv-{number}/simple/")
    for name, versions in world.projects.items():
        shelf.add(name, [wheel(name, version, needs, extras=[EXTRA]) for version, needs in versions.items()])
    assert (resolved(world) is not None) is uv_solves(world, shelf.index_url, tmp_path)


def drawn(number: int) -> Drawn:
    """The world of a seed: the last of a few, because the first ones are nearly empty."""
    found: list[Drawn] = []

    @seed(number)
    @settings(max_examples=4, phases=[Phase.generate], database=None, suppress_health_check=list(HealthCheck))
    @given(worlds())
    def remember(world: Drawn) -> None:
        found.append(world)

    remember()
    return found[-1]


def uv_solves(world: Drawn, index_url: str, folder: Path) -> bool:
    """Whether ``uv pip compile`` finds a solution."""
    requested = folder / "requirements.in"
    requested.write_text("\n".join([*world.requested, ""]), encoding="utf-8")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    words = ["pip", "compile", "--quiet", "--no-config", "--no-cache", "--default-index", index_url]
    words += ["--python", sys.executable, str(requested)]
    done = subprocess.run(
        [uv.find_uv_bin(), *words], env=clean, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or "No solution found" in done.stderr, done.stderr
    return done.returncode == 0
