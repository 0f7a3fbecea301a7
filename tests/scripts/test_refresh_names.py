"""Which names a package has, by its sources, and the file of those that were added and removed."""

from __future__ import annotations

import pytest
import tomli

from scripts.refresh_names import names_in, toml_of


def test_names_that_some_releases_have_are_listed() -> None:
    made = tomli.loads(
        toml_of(
            "trl",
            {
                "0.18": {"utils", "utils.stays", "utils.Old"},
                "0.19": {"utils", "utils.stays", "utils.Old", "fresh", "fresh.LIMIT"},
                "0.20": {"utils", "utils.stays", "utils.New", "fresh", "fresh.LIMIT", "fresh.More"},
            },
        )
    )
    assert made["releases"] == ["0.18", "0.19", "0.20"]
    assert made["since"] == {"0.19": ": fresh\n", "0.20": "fresh: More\nutils: New\n"}
    assert made["until"] == {"0.19": "utils: Old\n"}


@pytest.mark.parametrize("name", ["_inner.Thing", "utils._helper", "models.llama.LlamaModel"])
def test_names_that_nothing_else_imports_are_left_out(name: str) -> None:
    made = tomli.loads(toml_of("p", {"1.0": {"a"}, "1.1": {"a", name}}))
    assert made["since"] == {}


@pytest.mark.parametrize(
    ("init", "names"),
    [
        ("from .inner import Thing as Other", {"Other", "inner", "inner.Thing"}),
        ("from .inner import *", {"Thing", "inner", "inner.Thing"}),
        ("try:\n    X = 1\nexcept ImportError:\n    Y = 2", {"X", "Y", "inner", "inner.Thing"}),
        ("_import_structure = {'inner': ['Lazy']}", {"Lazy", "inner", "inner.Thing"}),
        ("import os\nfrom json import dumps", {"inner", "inner.Thing"}),
        ("this is no Python", {"inner", "inner.Thing"}),
        ("def f():\n    class Hidden: ...\n", {"f", "inner", "inner.Thing"}),
    ],
)
def test_names_of_a_package(init: str, names: set[str]) -> None:
    sources = {"p/__init__.py": init, "p/inner.py": "class Thing: ...\nlowercase = 1", "p/tests/test_it.py": "A = 1"}
    assert names_in(sources) == names


def test_torch_has_names_from_its_stubs() -> None:
    sources = {"torch/__init__.py": "", "torch/_C/__init__.pyi": "uint1: dtype\ndef matmul(): ..."}
    assert names_in(sources) >= {"uint1", "matmul"}
