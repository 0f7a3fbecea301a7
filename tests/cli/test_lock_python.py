"""Markers that require a framework only on some Pythons: which Python a lock is for, and what is left out of it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.locked import pins_in
from tests.cli.worlds import LINUX
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

TARGET = ("--gpu", "none", "--platform", "linux-64", "--no-cache", "--format", "requirements")
PYTHONS = ("--python", ">=3.10,<3.16")
NEWEST = "3.14.0"
"""3.15 is younger than a year on the day of the matrix."""


@pytest.fixture(autouse=True)
def _packages(world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add("jax", [wheel("jax", version) for version in ("0.6.2", "0.10.2", "0.12.0.1")])
    flow = [wheel("tensorflow", "2.21.0", tags=f"cp3{minor}-cp3{minor}-{LINUX}") for minor in range(10, 14)]
    world.add("tensorflow", flow)
    monkeypatch.chdir(tmp_path)


def lock(envsolve: Envsolve, world: IndexServer, *arguments: str) -> Result:
    pythons = () if "--python" in arguments else PYTHONS
    return envsolve(*arguments, *pythons, *TARGET, "--index-url", world.index_url)


class Case(NamedTuple):
    """The request, the Python and the frameworks of the lock, and what a note says is left out."""

    arguments: tuple[str, ...]
    python: str
    frameworks: set[str]
    left_out: str = ""


CASES = {
    "no marker": Case(("jax",), NEWEST, {"jax"}),
    "older Pythons alone": Case(("jax; python_version<'3.14'",), "3.13.0", {"jax"}),
    "one Python alone": Case(("jax; python_version=='3.12'",), "3.12.0", {"jax"}),
    "all but one": Case(("jax; python_version!='3.15'",), "3.14.0", {"jax"}),
    "a full version": Case(("jax; python_full_version<'3.14.0'",), "3.13.0", {"jax"}),
    "a requested range of Pythons": Case(("jax; python_version<'3.14'", "--python", ">=3.12"), "3.13.0", {"jax"}),
    "another Python is named": Case(
        ("jax; python_version<'3.14'", "--python", "3.14"),
        "3.14.0",
        set(),
        'note: jax is left out: its marker is python_version < "3.14", and the lock is for Python 3.14\n',
    ),
    "no requested Python": Case(
        ("jax; python_version<'3.14'", "--python", ">=3.14,<3.15"), "3.14.0", set(), "note: jax is left out: "
    ),
    "a Python that two frameworks have": Case(
        ("jax; python_version<'3.14'", "tensorflow; python_version>='3.11'"), "3.13.0", {"jax", "tensorflow"}
    ),
    "no Python that two frameworks have": Case(
        ("tensorflow; python_version<'3.11'", "jax; python_version>='3.12'"),
        NEWEST,
        {"jax"},
        'note: tensorflow is left out: its marker is python_version < "3.11"',
    ),
    "whatever the Python, and older ones": Case(("jax", "jax>=0.10; python_version<'3.14'"), NEWEST, {"jax"}),
    "the framework itself is requested": Case(("-f", "jax", "jax; python_version<'3.14'"), NEWEST, {"jax"}),
    "another system": Case(("jax; sys_platform=='darwin'", "--python", "3.13"), "3.13.0", set()),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_the_python_is_one_for_which_the_frameworks_are_requested(
    name: str, envsolve: Envsolve, world: IndexServer
) -> None:
    case = CASES[name]
    result = lock(envsolve, world, *case.arguments)
    assert result.code == 0, result.err
    assert f'\n# python = "{case.python}"\n' in result.out
    assert pins_in(result.out).keys() & {"jax", "tensorflow"} == case.frameworks
    if case.left_out:
        assert case.left_out in result.err
    else:
        assert "is left out" not in result.err


def test_a_framework_that_is_left_out_still_comes_as_a_dependency(envsolve: Envsolve, world: IndexServer) -> None:
    world.add("flax", [wheel("flax", "1.0", ["jax"])])
    result = lock(envsolve, world, "jax<0.7; python_version<'3.14'", "flax", "--python", "3.14")
    assert pins_in(result.out)["jax"] == "0.12.0.1"
    assert "is left out" not in result.err


@pytest.mark.thorough
def test_a_lock_lists_each_requirement_once(envsolve: Envsolve, world: IndexServer) -> None:
    Path("requirements.in").write_text("jax>=0.6\n" * 20_000, encoding="utf-8")
    Path("more.in").write_text("jax>=0.6\n", encoding="utf-8")
    result = lock(envsolve, world, "-r", "requirements.in", "-r", "more.in")
    assert '\n# request = ["jax>=0.6"]\n' in result.out
    assert result.out.count("    #   -r requirements.in\n") == result.out.count("    #   -r more.in\n") == 1
