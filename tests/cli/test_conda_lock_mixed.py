"""Conda packages and wheels in one lock: packages that no channel has come from a package index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.locking import undisturbed
from tests.conda.conftest import channel_server, mirror, mirrored
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

pytestmark = pytest.mark.thorough  # conda packages and wheels are solved together

__all__ = ["channel_server", "mirror", "mirrored"]


class Mixing:
    """Runs envsolve against the recorded channels and an index with packages that no channel has."""

    def __init__(self, envsolve: Envsolve, index: IndexServer, cache: Path) -> None:
        self.envsolve, self.index, self.cache = envsolve, index, cache

    def __call__(self, *words: str) -> Result:
        common = ("--index-url", self.index.index_url, "--cache-dir", str(self.cache))
        return self.envsolve(*words, *common)

    def lock(self, *words: str) -> dict[str, dict[str, Any]]:
        """The packages of a conda-lock.yml by manager and name."""
        done = self(*words, "--format", "conda-lock")
        assert done.code == 0, done.err
        found: dict[str, dict[str, Any]] = {"conda": {}, "pip": {}}
        for package in yaml.safe_load(done.out)["package"]:
            found[package["manager"]][package["name"]] = package
        return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def mixing(envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    variables = {name: value for name in ("XDG_CONFIG_HOME",) if (value := str(mirrored.parents[1]))}
    undisturbed(monkeypatch, tmp_path)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with IndexServer(recorded=False) as index:
        index.add("own-layers", [wheel("own-layers", "1.0", ["numpy>=2", "own-core>=1"])])
        index.add("own-core", [wheel("own-core", "1.0"), wheel("own-core", "2.0", ["typing-extensions"])])
        index.add("careful", [wheel("careful", "1.0", ["numpy<2.3"])])
        index.add("picky", [wheel("picky", "1.0", ["numpy==1.0.99"])])
        yield Mixing(envsolve, index, cache)


_STACK = ("-f", "tensorflow", "--gpu", "8.6")


def test_packages_are_wheels_only_if_no_channel_has_them(mixing: Mixing) -> None:
    found = mixing.lock(*_STACK, "own-layers", "pandas")
    assert set(found["pip"]) == {"own-layers", "own-core"}
    assert {"pandas", "numpy", "typing_extensions", "pip"} <= set(found["conda"])
    layers = found["pip"]["own-layers"]
    assert layers["url"].startswith(mixing.index.url)
    assert set(layers["hash"]) == {"sha256"}
    assert set(layers["dependencies"]) == {"numpy", "own-core"}
    assert mixing.index.count("/simple/numpy/") == 0


def test_conda_solves_again_if_a_wheel_needs_another_version(mixing: Mixing) -> None:
    before = mixing.lock(*_STACK, "own-layers")["conda"]["numpy"]["version"]
    after = mixing.lock(*_STACK, "careful")["conda"]["numpy"]["version"]
    assert before == "2.5.2"
    assert after.startswith("2.2.")


def test_an_unsolvable_conflict_with_conda_names_both_sides(mixing: Mixing) -> None:
    done = mixing(*_STACK, "picky", "--format", "conda-lock")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: packages-conflict\n"), done.err
    assert "picky 1.0 requires numpy==1.0.99, and conda installs numpy" in done.err


def test_a_wheel_for_the_python_of_the_stack_is_preferred_to_an_older_stack(mixing: Mixing) -> None:
    mixing.index.add("pandas", [wheel("pandas", "2.1.9", ["numpy>=1.21"])])
    found = mixing.lock(*_STACK, "--source", "conda-forge", "pandas<2.2")
    assert found["conda"]["tensorflow"]["version"] == "2.19.1"
    assert found["pip"]["pandas"]["version"] == "2.1.9"


def test_without_such_a_wheel_the_stack_uses_a_python_with_a_conda_package(mixing: Mixing) -> None:
    found = mixing.lock(*_STACK, "--source", "conda-forge", "pandas<2.2")
    assert found["conda"]["pandas"]["version"] == "2.1.4"
    assert found["conda"]["tensorflow"]["version"] == "2.16.1"
    assert found["pip"] == {}


def test_companions_of_pytorch_are_never_wheels_beside_the_pytorch_of_conda(mixing: Mixing) -> None:
    mixing.index.add("torchcodec", [wheel("torchcodec", "0.8")])
    done = mixing("-f", "pytorch", "--source", "conda-forge", "--gpu", "8.6", "torchcodec", "--format", "conda-lock")
    assert done.code == 1
    assert done.err.startswith("error: no-companion\n"), done.err
    assert mixing.index.count("/simple/torchcodec/") == 0


def test_the_pip_section_of_a_file_is_always_for_pip(mixing: Mixing, tmp_path: Path) -> None:
    mixing.index.add("tqdm", [wheel("tqdm", "5.0")])
    file = tmp_path / "environment.yml"
    file.write_text("dependencies:\n- python=3.12\n- numpy\n- pip:\n  - tqdm>=4\nvariables:\n  COLOUR: '1'\n")
    done = mixing("-r", str(file), "--gpu", "none", "--exact")
    assert done.code == 0, done.err
    document = yaml.safe_load(done.out)
    (section,) = (it["pip"] for it in document["dependencies"] if isinstance(it, dict))
    assert any(line.startswith("tqdm==5.0") and "--hash=sha256:" in line for line in section)
    assert document["variables"] == {"COLOUR": "1"}
    assert any(line == f"--index-url {mixing.index.index_url.rstrip('/')}" for line in section), section


def test_an_explicit_file_lists_wheels_like_conda_lock(mixing: Mixing) -> None:
    done = mixing(*_STACK, "own-core", "--format", "explicit")
    assert any(line.startswith("# pip own-core @ http://127.0.0.1") for line in done.out.splitlines())


def test_a_stack_of_wheels_uses_a_python_of_the_channel(mixing: Mixing) -> None:
    mixing.index.add("jax", [wheel("jax", "0.12.0.1")])
    found = mixing.lock("-f", "jax", "--source", "pypi", "--gpu", "8.6")
    assert found["conda"]["python"]["version"].startswith("3.14.")
    assert set(found["pip"]) == {"jax"}


def test_a_constraint_applies_to_conda_packages_and_wheels(mixing: Mixing, tmp_path: Path) -> None:
    file = tmp_path / "constraints.txt"
    file.write_text("numpy<2.3\nown-core<2\n")
    found = mixing.lock(*_STACK, "own-layers", "--constraint", str(file))
    assert found["conda"]["numpy"]["version"].startswith("2.2.")
    assert found["pip"]["own-core"]["version"] == "1.0"
