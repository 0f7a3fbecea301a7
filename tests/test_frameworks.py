"""What data/frameworks says of each framework, and that it is said nowhere else."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from envsolve.frameworks import FRAMEWORKS, frameworks_among
from envsolve.matrix import Matrix
from envsolve.validation import inside

ROOT = Path(__file__).parents[1]
MATRIX = ROOT / "data" / "compat_matrix"
KNOWN = ROOT / "data" / "frameworks"
BESIDE = {"jaxlib"}
"""Packages that the matrix has rows for and that are part of a framework, which is always installed with them."""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_package_of_the_matrix_is_known(name: str) -> None:
    rows = tomllib.loads((MATRIX / f"{name}.toml").read_text(encoding="utf-8"))["release"]
    for package in {row.get("package", name) for row in rows} - BESIDE:
        assert [it.name for it in frameworks_among([package])] == [name], package


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_every_framework_has_its_probe(name: str) -> None:
    assert Path(inside.__file__).with_name(f"{FRAMEWORKS[name].probe}.py").is_file()


def test_names_are_compared_in_any_spelling_and_each_framework_is_told_once() -> None:
    found = frameworks_among(["Tensorflow_GPU", "tensorflow", "Torch", "CuPy-CUDA13x", "numpy"])
    assert [it.name for it in found] == ["pytorch", "tensorflow", "cupy"]


@pytest.mark.parametrize("name", ["torchvision", "jaxlib", "jax-cuda12-plugin", "tensorflow-io", "cupy-xarray", "onnx"])
def test_what_only_belongs_to_a_framework_is_none(name: str) -> None:
    assert frameworks_among([name]) == ()


def test_every_framework_of_the_matrix_is_known_and_no_other(matrix: Matrix) -> None:
    assert set(FRAMEWORKS) == set(matrix.framework_names)


def keys_of(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Each key with the table that it is in; names of packages are no keys."""
    for key, value in table.items():
        if isinstance(value, dict) and key not in ("cpu", "owners"):
            yield from keys_of(value, f"[{key}]")
        elif key != "opened":
            yield prefix, key


@pytest.mark.parametrize("path", sorted(KNOWN.glob("*.toml")), ids=lambda it: it.stem)
def test_the_readme_says_what_each_key_means(path: Path) -> None:
    table, explained = "", set()
    for line in (KNOWN / "README.md").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| `(\[\w+\])` \|", line):
            table = found[1]
        elif line.startswith("| `") and "[[" not in line:
            explained |= {(table, key) for key in re.findall(r"`([\w-]+)`", line.split("|")[1])}
    assert set(keys_of(tomllib.loads(path.read_text(encoding="utf-8")))) <= explained


def names_in(path: Path) -> set[str]:
    """The names of frameworks and of their packages that a module has as strings."""
    names = {
        name
        for it in FRAMEWORKS.values()
        for name in (it.name, *it.wheels, *it.cpu_wheels, *it.rivals, *it.conda_packages)
    }
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return found & names


RULES_OF_ONE = {
    *("app/beside_conda", "app/conda_needs", "app/held_build", "app/lock_indexes"),
    *("app/stack_wheels", "app/lock_result", "conda/name_table"),
    *("diagnose/environment/checks/requirements", "lockfile/conda_specs"),
    *("model/release", "resolve/preference"),
}
"""Modules that name a framework for a rule that holds for it alone. None may be added: say it in data/frameworks."""


def test_no_framework_is_named_outside_its_file() -> None:
    package = ROOT / "envsolve"
    found = {path.relative_to(package).with_suffix("").as_posix() for path in package.rglob("*.py") if names_in(path)}
    found = {it for it in found if not it.startswith(("validation/inside/on_", "diagnose/rules/"))}
    assert found == RULES_OF_ONE
