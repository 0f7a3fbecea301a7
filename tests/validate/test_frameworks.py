"""Which packages are which framework."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from envsolve.validate import inside
from envsolve.validate.frameworks import FRAMEWORKS, frameworks_among

MATRIX = Path(__file__).parents[2] / "data" / "compat_matrix"
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
