"""``--override`` replaces requirements in metadata of packages, like in uv, and notes list those that are not met."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.model.lock_format import CONDA_FORMATS, PYTHON_FORMATS
from scripts.index_recorder.uv_pins import compile_with_uv, pins_of
from tests.cli.locked import pins_in
from tests.cli.test_lock_gpu import lock, pins
from tests.conftest import Envsolve
from tests.index.packages import wheel
from tests.index.server import IndexServer

TORCH = ("-f", "pytorch", "trainer", "--gpu", "8.6", "--source", "pypi")
CPU = ("--gpu", "none")


@pytest.fixture
def trainers(world: IndexServer) -> IndexServer:
    """A package that pins torch exactly, and one that requires extras of another package with a marker."""
    world.add("trainer", [wheel("trainer", "1.0", ["torch==2.7.1"])])
    world.add("tool", [wheel("tool", "1.0"), wheel("tool", "2.0"), wheel("tool", "3.0", ["six"], extras=["more"])])
    more = ["numpy<2; extra == 'more'"]
    world.add("kit", [wheel("kit", "1.0"), wheel("kit", "2.0", more, extras=["more"])])
    world.add("six", [wheel("six", "1.17.0")])
    return world


def test_an_override_decides_on_the_framework_whatever_packages_require(
    envsolve: Envsolve, trainers: IndexServer
) -> None:
    assert pins(envsolve, trainers, *TORCH)["torch"] == "2.7.1"
    result = lock(envsolve, trainers, *TORCH, "--override", "torch==2.8.*")
    assert pins_in(result.out)["torch"] == "2.8.0", result.err
    assert "note: trainer 1.0 requires torch==2.7.1, replaced by --override: torch 2.8.0\n" in result.err
    assert "`pip install --no-deps -r FILE` or `uv pip sync FILE`" in result.err
    assert "    # because: trainer 1.0 requires torch==2.7.1, replaced by an override\n" in result.out
    assert '--override "torch==2.8.*"' in result.out or "--override 'torch==2.8.*'" in result.out


def test_it_decides_on_a_framework_that_only_comes_as_a_dependency(envsolve: Envsolve, trainers: IndexServer) -> None:
    arguments = ("trainer", "--gpu", "8.6", "--source", "pypi", "--override", "torch==2.8.*")
    assert pins(envsolve, trainers, *arguments)["torch"] == "2.8.0"


@pytest.mark.parametrize("arguments", [("-f", "pytorch==2.7.1"), ("torch==2.7.1",)])
def test_it_replaces_a_requested_version(arguments: tuple[str, ...], envsolve: Envsolve, trainers: IndexServer) -> None:
    override = ("--override", "torch==2.8.*", "--gpu", "8.6", "--source", "pypi")
    assert pins(envsolve, trainers, *arguments, *override)["torch"] == "2.8.0"


def test_an_override_without_effect_is_not_reported(envsolve: Envsolve, trainers: IndexServer) -> None:
    result = lock(envsolve, trainers, *TORCH, "--override", "torch<2.8")
    assert pins_in(result.out)["torch"] == "2.7.1"
    assert "replaced by" not in result.err + result.out


def test_json_has_the_requirement_and_the_locked_version(envsolve: Envsolve, trainers: IndexServer) -> None:
    done = lock(envsolve, trainers, *TORCH, "--override", "torch==2.8.*", "--json")
    notes = {it["code"]: it for it in json.loads(done.out)["notes"]}
    fields = {key: notes["overridden"]["fields"][key] for key in ("by", "name", "required", "version")}
    assert fields == {"by": "trainer 1.0", "name": "torch", "required": "torch==2.7.1", "version": "2.8.0"}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("requires", "requested", "override"),
    [
        (["kit==1.0"], ["app"], "kit>=2"),
        (["kit<1"], ["app"], "kit"),
        (["kit==1.0"], ["app", "kit==1.0"], "kit==2.0"),
        (["kit==1.0"], ["app"], "kit==2.0; sys_platform == 'win32'"),
        (["kit"], ["app", "kit"], "kit; sys_platform == 'win32'"),
        (["kit==1.0; sys_platform == 'win32'"], ["app"], "kit==2.0"),
        (["kit==1.0; extra == 'more'"], ["app"], "kit==2.0"),
        (["kit==1.0; extra == 'more'"], ["app[more]"], "kit==2.0"),
        (["kit==1.0; sys_platform == 'win32' and extra == 'more'"], ["app[more]"], "kit==2.0"),
        (["kit==1.0"], ["app"], "kit[more]==2.0"),
        (["kit @ https://example.org/kit-9-py3-none-any.whl"], ["app"], "kit==1.0"),
        ([], ["app"], "kit==1.0"),
        ([], ["app", "tool; sys_platform == 'win32'"], "tool==2.0"),
    ],
)
def test_it_matches_the_override_of_uv(
    requires: list[str], requested: list[str], override: str, envsolve: Envsolve, trainers: IndexServer, tmp_path: Path
) -> None:
    trainers.add("app", [wheel("app", "1.0", requires, extras=["more"])])
    overrides = tmp_path / "overrides.txt"
    overrides.write_text(f"{override}\n")
    expected = pins_of(compile_with_uv(trainers.index_url, requested, "--override", str(overrides)))
    assert expected is not None
    assert pins(envsolve, trainers, *requested, "--override", override, *CPU) == expected


def test_extras_that_a_package_requires_stay(envsolve: Envsolve, trainers: IndexServer) -> None:
    trainers.add("app", [wheel("app", "1.0", ["kit[more]==1.0"])])
    found = pins(envsolve, trainers, "app", "--override", "kit==2.0", *CPU)
    assert (found["kit"], found["numpy"]) == ("2.0", "1.26.4")


def test_a_dropped_requirement_is_reported_with_its_package(envsolve: Envsolve, trainers: IndexServer) -> None:
    trainers.add("app", [wheel("app", "1.0", ["kit==1.0"])])
    result = lock(envsolve, trainers, "app", "--override", "kit; sys_platform == 'never'", *CPU)
    assert pins_in(result.out) == {"app": "1.0"}
    assert "note: app 1.0 requires kit==1.0, replaced by --override: kit is not installed\n" in result.err
    assert "    # because: app 1.0 requires kit==1.0, replaced by an override\n" in result.out


def test_an_override_that_replaces_nothing_is_reported(envsolve: Envsolve, trainers: IndexServer) -> None:
    result = lock(envsolve, trainers, "kit", "--override", "kti==2.0", "--override", "kit==1.0", *CPU)
    assert pins_in(result.out) == {"kit": "1.0"}
    assert "note: --override kti==2.0 has no effect: nothing requires kti\n" in result.err


def test_a_file_by_its_address_may_stand_in(envsolve: Envsolve, trainers: IndexServer) -> None:
    trainers.add("app", [wheel("app", "1.0", ["kit==1.0"])])
    ours = wheel("kit", "7.0")
    trainers.add("elsewhere", [ours])
    address = f"{trainers.url}/files/elsewhere/{ours.name}"
    result = lock(envsolve, trainers, "app", "--override", f"kit @ {address}#sha256={ours.sha256}", *CPU)
    assert f"\nkit @ {address} " in result.out, result.err
    assert "note: app 1.0 requires kit==1.0, replaced by --override: kit 7.0\n" in result.err


def test_a_constraint_holds_beside_it_and_the_conflict_names_both(
    envsolve: Envsolve, trainers: IndexServer, tmp_path: Path
) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("kit<2\n")
    result = lock(envsolve, trainers, "kit", "--override", "kit==2.0", "--constraint", str(limits), *CPU)
    assert (result.code, result.out) == (1, "")
    assert "limits.txt limits kit to <2" in result.err
    assert "an override limits kit to ==2.0" in result.err


@pytest.mark.thorough
@pytest.mark.parametrize("format_name", CONDA_FORMATS)
def test_a_conda_lock_names_the_formats_that_can(format_name: str, envsolve: Envsolve) -> None:
    done = envsolve("-f", "pytorch", "--override", "numpy<2", "--gpu", "none", "--format", format_name, "--offline")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: requirements-not-supported\n")
    assert ", ".join(PYTHON_FORMATS) in done.err


def test_one_that_cannot_be_read_is_named(envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, "numpy", "--override", "numpy=2", *CPU)
    assert (result.code, result.out) == (2, "")
    assert "an override: 'numpy=2'" in result.err
