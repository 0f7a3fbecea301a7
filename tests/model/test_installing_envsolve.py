"""envsolve is on no package index, where a stranger can take its name: no file here installs it by name."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import tomli
from packaging.requirements import InvalidRequirement, Requirement

from envsolve.model.installing_envsolve import CONDA_EXTRA, REQUIREMENT, REQUIREMENT_WITH_CONDA

ROOT = Path(__file__).parents[2]
_INSTALLS = re.compile(r"(?:(?:pip3?|pipx|uv tool|conda) (?:install|run)|uvx|uv add)\b([^\n`;&|]*)")
_BY_NAME = re.compile(r"(?<![\w./@-])envsolve(?:\[\w+\])?(?![\w./@\[-])")


def by_name(text: str) -> list[str]:
    """The commands in ``text`` that fetch envsolve from an index, as ``uvx envsolve`` does."""
    found = (it for it in _INSTALLS.finditer(text) if _BY_NAME.search(it[1]))
    return [it[0] for it in found if not re.search(r"--(?:from|spec)\b", it[1])]


@pytest.mark.parametrize(
    "command",
    [
        "pip install envsolve",
        "python -m pip install -q 'envsolve[conda]' uv",
        "uvx envsolve lock",
        "pipx run envsolve",
        "uv tool run --python 3.11 envsolve validate",
    ],
)
def test_an_installation_by_name_is_recognised(command: str) -> None:
    assert by_name(f"run: {command}\n")


@pytest.mark.parametrize(
    "command",
    ["pip install . && envsolve lock", "pip install envsolve@$ENVSOLVE_URL uv", "uvx --from dist/a.whl envsolve lock"],
)
def test_an_installation_from_elsewhere_is_not_by_name(command: str) -> None:
    assert not by_name(f"run: {command}\n")


@pytest.mark.thorough
def test_no_file_of_the_repository_installs_it_by_name() -> None:
    folders = ("envsolve", "data", "docs", "man", "scripts", "benchmarks", ".github", "tests/snapshots")
    paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*"))]
    files = [path for path in paths if path.is_file() and "__pycache__" not in path.parts]
    texts = {path: path.read_bytes().decode(errors="replace") for path in files}
    assert len(texts) > 500
    assert {path.name: found for path, text in texts.items() if (found := by_name(text))} == {}


@pytest.mark.skipif(os.name == "nt", reason="the words are for a POSIX shell")
@pytest.mark.parametrize("word", [REQUIREMENT, REQUIREMENT_WITH_CONDA])
@pytest.mark.parametrize("url", ["https://example.org/me/envsolve/archive/1a2b3c.zip", ""])
def test_the_requirement_is_a_url_or_refused(word: str, url: str) -> None:
    command = ["/bin/sh", "-c", f"printf %s {word}"]
    done = subprocess.run(command, env={"ENVSOLVE_URL": url}, capture_output=True, text=True, check=True, timeout=60)
    if url:
        assert Requirement(done.stdout).url == url
    else:
        with pytest.raises(InvalidRequirement):
            Requirement(done.stdout)


def test_hints_name_the_packages_of_the_extra() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert sorted(Requirement(it).name for it in project["optional-dependencies"]["conda"]) == sorted(CONDA_EXTRA)
