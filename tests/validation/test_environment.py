"""Which environment is examined, and what its interpreter reports about it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.errors import OutsideError, UsageError
from envsolve.validation.child import Children
from envsolve.validation.environment import interpreter, take_inventory


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


def prefix(directory: Path) -> Path:
    """A directory that looks like an environment."""
    program = directory / "bin/python"
    program.parent.mkdir(parents=True)
    program.symlink_to(sys.executable)
    return directory


def test_the_active_environment_is_the_default(tmp_path: Path) -> None:
    environ = {"VIRTUAL_ENV": str(prefix(tmp_path / "venv")), "PATH": os.defpath}
    assert interpreter(None, None, environ) == tmp_path / "venv/bin/python"


@pytest.mark.parametrize("first", ["venv", "conda"])
def test_the_first_active_environment_on_path_counts(tmp_path: Path, first: str) -> None:
    places = {"VIRTUAL_ENV": prefix(tmp_path / "venv"), "CONDA_PREFIX": prefix(tmp_path / "conda")}
    path = [place / "bin" for place in sorted(places.values(), key=lambda it: it.name != first)]
    environ = {**{name: str(place) for name, place in places.items()}, "PATH": os.pathsep.join(map(str, path))}
    assert interpreter(None, None, environ) == tmp_path / first / "bin/python"


def test_without_one_the_python_on_path_is_used(tmp_path: Path) -> None:
    (prefix(tmp_path) / "bin/python").rename(tmp_path / "bin/python3")
    assert interpreter(None, None, {"PATH": str(tmp_path / "bin")}) == tmp_path / "bin/python3"


def test_an_environment_is_named_by_its_directory_or_interpreter(tmp_path: Path) -> None:
    program = prefix(tmp_path) / "bin/python"
    assert interpreter(str(tmp_path), None, {}) == program
    assert interpreter(None, str(program), {}) == program
    assert interpreter(None, str(tmp_path), {}) == program


@pytest.mark.parametrize(("of_prefix", "python"), [("", None), ("nowhere", None), (None, "no-such-python")])
def test_a_missing_environment_is_one_error(tmp_path: Path, of_prefix: str | None, python: str | None) -> None:
    with pytest.raises(UsageError, match="python-not-found"):
        interpreter(None if of_prefix is None else str(tmp_path / of_prefix), python, {})


def test_a_virtual_environment_owns_its_prefix_and_lists_its_packages(children: Children, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (site,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    for folder, name, version in (
        ("Some_Thing-1.2.dist-info/METADATA", "Some.Thing", "1.2"),
        ("old-0.1-py3.11.egg-info/PKG-INFO", "old", "0.1"),
    ):
        (site / folder).parent.mkdir()
        (site / folder).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nText: none\n")
    (site / "bare-3.0.dist-info").mkdir()
    inventory = take_inventory(tmp_path / "venv/bin/python", os.environ, children)
    assert inventory.prefix == tmp_path / "venv"
    assert inventory.owns_prefix
    assert {it.name: it.version for it in inventory.distributions if it.location == site} == {
        "some-thing": "1.2",
        "old": "0.1",
        "bare": "3.0",
    }


def test_the_first_distribution_of_a_name_on_the_path_counts(children: Children, tmp_path: Path) -> None:
    for place, version in (("first", "2.0"), ("second", "1.0")):
        (tmp_path / place / f"thing-{version}.dist-info").mkdir(parents=True)
    path = os.pathsep.join(str(tmp_path / place) for place in ("first", "second"))
    inventory = take_inventory(Path(sys.executable), {**os.environ, "PYTHONPATH": path}, children)
    found = inventory.distribution("thing")
    assert found is not None
    assert (found.version, found.location) == ("2.0", tmp_path / "first")


def test_a_program_that_is_not_python_is_one_error(children: Children, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'not today' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(OutsideError, match="does not run as a Python interpreter") as raised:
        take_inventory(program, os.environ, children)
    assert raised.value.cause == ("not today",)


WHOLE = {
    "python": "3.11.7",
    "prefix": "/env",
    "base_prefix": "/usr",
    "executable": "/env/bin/python",
    "search_path": ["/env/lib"],
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"python": 3},
        {"python": "3"},
        {"python": "three"},
        {"prefix": "relative"},
        {"prefix": "/\0"},
        {"prefix": "/\ud800"},
        {"executable": None},
        {"search_path": "/env/lib"},
        {"search_path": [3]},
    ],
)
def test_a_nonsensical_answer_is_one_error(children: Children, tmp_path: Path, wrong: dict[str, object]) -> None:
    (tmp_path / "answer").write_text(json.dumps({"result": {**WHOLE, **wrong}}) + "\n")
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nfor file; do :; done; cat {tmp_path}/answer > "$file"\n')
    program.chmod(0o755)
    with pytest.raises(OutsideError, match="gave an answer that makes no sense") as raised:
        take_inventory(program, os.environ, children)
    assert str(program) in raised.value.message
    (tmp_path / "answer").write_text(json.dumps({"result": WHOLE}) + "\n")
    assert take_inventory(program, os.environ, children).prefix == Path("/env")
