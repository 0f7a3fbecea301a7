"""``envsolve --version``, and with ``-v`` the facts that a bug report needs."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from envsolve import __version__
from envsolve.host.machine import this_platform
from envsolve.matrix import find_matrix
from tests.cli.test_command_line import HEAVY
from tests.conftest import Envsolve

FIRST = re.compile(rf"envsolve, version {re.escape(__version__)}, with the compatibility matrix of \d{{4}}-\d\d-\d\d")


def facts_of(out: str) -> dict[str, str]:
    """The facts by their names; the first line, which both forms have, is under ``""``."""
    first, *lines = out.splitlines()
    return {"": first} | dict(re.fullmatch(r"([\w ]+): +(.+)", line).groups() for line in lines)  # type: ignore[union-attr, misc]


def test_the_version_is_one_line(envsolve: Envsolve) -> None:
    result = envsolve("--version")
    assert (result.code, result.err) == (0, "")
    assert FIRST.fullmatch(result.out.removesuffix("\n"))


@pytest.mark.thorough
@pytest.mark.parametrize("words", ["--version -v", "-v --version", "--verbose --version", "--version --verbose -v"])
def test_verbose_shows_the_components_of_envsolve(words: str, envsolve: Envsolve) -> None:
    result = envsolve(*words.split())
    facts = facts_of(result.out)
    assert (result.code, result.err) == (0, "")
    assert list(facts) == ["", "matrix", "python", "platform", "conda extra", "uv"]
    assert FIRST.fullmatch(facts[""])
    assert facts["matrix"] == str(find_matrix())
    assert facts["python"].startswith(".".join(map(str, sys.version_info[:3])))
    assert facts["python"].endswith(sys.executable)
    assert facts["platform"].startswith(f"{this_platform()} (")


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ({"py-rattler": "0.28.0", "conda-lock": "4.0.3"}, "installed: py-rattler 0.28.0, conda-lock 4.0.3"),
        ({}, "not installed; to install it: pip install py-rattler conda-lock"),
        (
            {"py-rattler": "0.28.0"},
            "incomplete: py-rattler 0.28.0, conda-lock missing; to install it: pip install py-rattler conda-lock",
        ),
    ],
)
def test_the_conda_extra_is_listed_with_its_versions(
    there: dict[str, str], says: str, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name not in there:
            raise importlib.metadata.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr("importlib.metadata.version", version)
    assert facts_of(envsolve("--version", "-v").out)["conda extra"] == says


@pytest.mark.skipif(sys.platform == "win32", reason="the uv of this test is a shell script")
def test_uv_is_listed_with_its_version_and_path(
    envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\necho 'uv 0.99.1 (abc 2026-11-01)'\n", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert facts_of(envsolve("--version", "-v").out)["uv"] == f"0.99.1, {program}"


def test_a_missing_uv_is_reported(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.create.tools.find_uv", lambda: None)
    assert facts_of(envsolve("--version", "-v").out)["uv"] == "no supported version"


def test_a_custom_matrix_is_reported(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ENVSOLVE_MATRIX", str(tmp_path))
    assert facts_of(envsolve("--version", "-v").out)["matrix"] == (
        f"{find_matrix()}; ENVSOLVE_MATRIX selects {tmp_path}"
    )


def test_verbose_without_version_is_for_solve(envsolve: Envsolve) -> None:
    words = ("-f", "jax", "--gpu", "8.6", "--driver", "580.65.06")
    assert envsolve("-v", *words) == envsolve("solve", "-v", *words)


def test_version_beside_other_arguments_is_refused(envsolve: Envsolve) -> None:
    result = envsolve("--version", "-v", "-f", "jax")
    assert (result.code, result.out) == (2, "")


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "unused"), [("--version", "importlib.metadata"), ("--version -v", "rattler")])
def test_it_imports_only_what_is_needed(words: str, unused: str) -> None:
    script = (
        "import sys\nfrom envsolve.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stderr.split())
    assert loaded.isdisjoint({*HEAVY, unused})
