"""Which names came and went with releases, read from wheels on a loopback index, as a maintainer runs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tomli
from click.testing import CliRunner

from scripts.refresh_names import names_in, refresh
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import BuiltFile, wheel


def trl(version: str, **sources: str) -> BuiltFile:
    files = {f"trl/{name.replace('__', '/')}.py": text for name, text in sources.items()}
    return wheel("trl", version, {"trl/__init__.py": "", **files}, tags="py3-none-any")


def test_names_that_some_releases_have_are_listed(
    index: ServedIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [it for it in os.environ if it.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.endpoint)
    index.add(
        trl("0.18.0", utils="class Old: ...\ndef stays(): ..."),
        trl("0.19.0", utils="class Older: ...\ndef stays(): ..."),  # not the newest of its minor
        trl("0.19.1", utils="class Old: ...\ndef stays(): ...", fresh="LIMIT = 1"),
        trl("0.20.0", utils="def stays(): ...\nclass New: ...", fresh="LIMIT = 1\nclass More: ..."),
    )
    done = CliRunner().invoke(refresh, ["trl", "--directory", str(tmp_path), "--cache-dir", str(tmp_path / "cache")])
    assert done.exit_code == 0, done.output
    made = tomli.loads((tmp_path / "trl.toml").read_text(encoding="utf-8"))
    assert made["releases"] == ["0.18", "0.19", "0.20"]
    assert made["since"] == {"0.19": ": fresh\n", "0.20": "fresh: More\nutils: New\n"}
    assert made["until"] == {"0.19": "utils: Old\n"}


@pytest.mark.parametrize(
    ("init", "names"),
    [
        ("from .inner import Thing as Other", {"Other", "inner", "inner.Thing"}),
        ("from .inner import *", {"Thing", "inner", "inner.Thing"}),
        (
            "if True:\n    try:\n        X = 1\n    except ImportError:\n        Y = 2",
            {"X", "Y", "inner", "inner.Thing"},
        ),
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
