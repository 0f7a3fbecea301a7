"""Jobs for continuous integration: valid YAML of the right shape, with the commands quoted literally."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.project.ci_snippet import FILES, System, ci_commands, ci_snippet
from tests.laws import examples

SYSTEMS: tuple[System, ...] = ("github", "gitlab")
HOSTILE = [
    "echo: a",
    "echo a # b",
    "- echo",
    "yes",
    "{echo, a}",
    "[a]",
    "*a",
    "&a b",
    "!tag",
    "'a'",
    '"a" "b"',
    "a \\",
    "%a",
    "@a",
    "`a`",
    "echo ${{ secrets.X }}",
    "echo 'é\u2028\t'",
    "|",
    "1.0",
    "a: |\n  b",
    "./a ",
    "{python}",
]


def commands_in(system: System, text: str) -> list[str]:
    """The commands that the job runs."""
    document: Any = yaml.safe_load(text)
    if system == "github":
        return [step["run"] for step in document["jobs"]["locks"]["steps"] if "run" in step]
    found: list[str] = document["envsolve"]["script"]
    return found


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_job_checks_the_locks_and_installs_each_by_its_digests(system: System) -> None:
    text = ci_snippet(system, ci_commands(["pylock.toml", "locks/requirements.txt"]))
    assert commands_in(system, text) == [
        "python -m pip install envsolve@$ENVSOLVE_URL uv",
        "envsolve lock --check",
        "envsolve create /tmp/locked --force --no-validate --lock pylock.toml",
        "envsolve create /tmp/locked --force --no-validate --lock locks/requirements.txt",
    ]


def test_conda_packages_need_the_extra() -> None:
    for lock in ("conda-lock.yml", "gpu.conda-lock.yaml", "conda-linux-64.lock", "pixi.lock"):
        assert 'python -m pip install "envsolve[conda]@$ENVSOLVE_URL" uv' in ci_commands(["pylock.toml", lock])
    assert "conda" not in "".join(ci_commands(["pylock.toml"]))


def test_a_file_name_with_spaces_is_quoted() -> None:
    *_, last = ci_commands(["my locks/py'lock.toml"])
    assert shlex.split(last)[-1] == "my locks/py'lock.toml"


def test_without_a_lock_to_install_it_only_checks() -> None:
    assert ci_commands([]) == ("python -m pip install envsolve@$ENVSOLVE_URL uv", "envsolve lock --check")


@pytest.mark.thorough
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("command", HOSTILE)
def test_a_command_is_quoted_literally(system: System, command: str) -> None:
    assert commands_in(system, ci_snippet(system, [command, "echo"])) == [command, "echo"]


@pytest.mark.thorough
@settings(max_examples=examples(100))
@given(st.sampled_from(SYSTEMS), st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3))
def test_arbitrary_commands_are_quoted(system: System, commands: list[str]) -> None:
    assert commands_in(system, ci_snippet(system, commands)) == commands


def test_actions_are_named_by_their_major_version_and_get_no_rights() -> None:
    text = ci_snippet("github", ci_commands([]))
    document = yaml.safe_load(text)
    used = [step["uses"] for step in document["jobs"]["locks"]["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", it) for it in used), used
    assert document["permissions"] == {"contents": "read"}
    assert document["jobs"]["locks"]["steps"][0]["with"] == {"persist-credentials": False}


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_file_ends_with_a_newline_and_names_no_host(system: System) -> None:
    text = ci_snippet(system, ci_commands(["pylock.toml"]))
    assert text.endswith("--lock pylock.toml\n")
    assert "://" not in text
    assert FILES[system].suffix == ".yml"
    assert max(map(len, text.splitlines())) <= 120
