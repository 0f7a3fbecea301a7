"""``envsolve init``: a project begins with what is asked for or with what is there, and nothing there is lost."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import tomli

from tests.cli.locked import pins_in
from tests.conftest import Envsolve, Result
from tests.index.server import IndexServer

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
ASKED = ("-f", "pytorch", "--gpu", "RTX 3090", "--driver", "535.183.01", "--python", "3.11.7", "--platform", "linux-64")


class Init:
    """``envsolve init`` in a directory of its own, with the loopback index."""

    def __init__(self, directory: Path, envsolve: Envsolve, world: IndexServer) -> None:
        self.directory, self._envsolve = directory, envsolve
        self._where = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")

    def __call__(self, *arguments: str) -> Result:
        return self._envsolve("init", *arguments, *self._where, "--cache-dir", "cache")

    def write(self, name: str, text: str) -> None:
        (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (self.directory / name).write_text(text, encoding="utf-8")

    def read(self, name: str) -> str:
        return (self.directory / name).read_text(encoding="utf-8")

    @property
    def table(self) -> dict[str, Any]:
        found = tomli.loads(self.read("pyproject.toml"))["tool"]["envsolve"]
        return {key: value for key, value in found.items() if not key.endswith("index-url")}

    @property
    def files(self) -> set[str]:
        found = (it.relative_to(self.directory) for it in self.directory.rglob("*") if it.is_file())
        return {it.as_posix() for it in found if it.parts[0] != "cache"}


@pytest.fixture
def init(tmp_path: Path, envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch) -> Init:
    monkeypatch.chdir(tmp_path)
    return Init(tmp_path, envsolve, world)


def test_a_project_begins_with_its_lock(init: Init, envsolve: Envsolve) -> None:
    done = init(*ASKED, "numpy", "-o", "requirements.txt")
    assert (done.code, done.out) == (0, ""), done.err
    assert init.table == {
        "frameworks": ["pytorch"],
        "python": "3.11.7",
        "requirements": ["numpy"],
        "gpus": ["RTX 3090"],
        "driver": "535.183.01",
        "platforms": ["linux-64"],
        "outputs": ["requirements.txt"],
    }
    assert pins_in(init.read("requirements.txt"))["torch"] == "2.14.1+cu126"
    assert envsolve("lock", "--check", "--cache-dir", "cache").code == 0
    assert envsolve("status").code == 0


def test_what_else_is_in_the_file_stays(init: Init) -> None:
    before = '# ours\n[project]\nname = "x"  # a name\ndependencies = ["numpy"]\n\n[tool.ruff]\nline-length = 99\n'
    init.write("pyproject.toml", before)
    assert init(*ASKED).code == 0
    assert init.read("pyproject.toml").startswith(before)
    assert init.table["project-dependencies"] is True
    assert "numpy" in init.read("pylock.toml")


def test_a_file_that_is_there_is_never_overwritten_without_force(init: Init) -> None:
    init.write("requirements.txt", "somebody's\n")
    done = init(*ASKED, "-o", "requirements.txt", "-o", "pylock.toml", "--no-lock")
    assert done.code == 0
    assert init.files == {"pyproject.toml", "requirements.txt"}
    again = init(*ASKED)
    assert (again.code, again.err.splitlines()[0]) == (2, "error: project-exists")
    assert init(*ASKED, "-o", "requirements.txt", "-o", "pylock.toml", "--force").code == 0
    assert pins_in(init.read("requirements.txt"))


def test_a_lock_that_is_there_is_left_as_it_is(init: Init) -> None:
    init.write("requirements.txt", "somebody's\n")
    done = init(*ASKED, "-o", "requirements.txt", "-o", "pylock.toml")
    assert done.code == 0
    assert init.read("requirements.txt") == "somebody's\n"
    assert "left as they are: requirements.txt" in done.err
    assert "torch" in init.read("pylock.toml")


def test_a_dry_run_shows_what_would_be_written(init: Init) -> None:
    init.write("pyproject.toml", '[project]\nname = "x"\n')
    done = init(*ASKED, "--dry-run")
    assert done.code == 0
    assert init.files == {"pyproject.toml"}
    assert init.read("pyproject.toml") == '[project]\nname = "x"\n'
    assert '+[tool.envsolve]\n+frameworks = ["pytorch"]\n' in done.out
    assert "+++ pylock.toml\n" in done.out


def test_nothing_is_written_where_nothing_fits(init: Init) -> None:
    done = init("-f", "pytorch>=99", "--gpu", "8.6")
    assert done.code == 1
    assert init.files == set()


PIXI = """\
[workspace]
channels = ["conda-forge"]
platforms = ["linux-64", "emscripten"]
[dependencies]
python = "3.12.*"
pytorch-gpu = ">=2.4,<3"
cuda-version = "12.6.*"
numpy = "*"
[pypi-dependencies]
rich = { version = ">=13" }
mine = { path = "." }
"""


@pytest.mark.parametrize(
    ("name", "text", "table"),
    [
        (
            "environment.yml",
            "dependencies:\n  - python=3.12\n  - pytorch>=2.4\n  - pandas\n",
            {"requirement-files": ["environment.yml"], "outputs": ["conda-lock.yml"]},
        ),
        (
            "requirements.in",
            "torch>=2.4\nnumpy\n",
            {"requirement-files": ["requirements.in"], "outputs": ["pylock.toml"]},
        ),
        ("requirements.txt", "torch\n", {"requirement-files": ["requirements.txt"], "outputs": ["pylock.toml"]}),
        (
            "pixi.toml",
            PIXI,
            {
                "frameworks": ["pytorch<3,>=2.4"],
                "python": "==3.12.*",
                "cuda": "==12.6.*",
                "requirements": ["numpy", "rich>=13"],
                "platforms": ["linux-64"],
                "channels": ["conda-forge"],
                "outputs": ["conda-lock.yml"],
            },
        ),
    ],
)
def test_what_is_there_is_adopted(name: str, text: str, table: dict[str, Any], init: Init) -> None:
    init.write(name, text)
    done = init("--no-lock")
    assert done.code == 0, done.err
    assert init.table == {"gpus": "auto", **table}
    assert init.read(name) == text
    assert f"taken from {name}" in done.err


@pytest.mark.parametrize(
    ("snapshot", "name", "frameworks"),
    [
        ("tensorflow-rtx-3090.yml", "environment.yml", ["tensorflow"]),
        ("tensorflow.conda-lock.yml", "conda-lock.yml", ["tensorflow"]),
        ("python-lock-rtx-3090.requirements.txt", "requirements.txt", ["pytorch"]),
    ],
)
def test_of_an_answer_of_envsolve_the_question_is_adopted(
    snapshot: str, name: str, frameworks: list[str], init: Init
) -> None:
    shutil.copy(SNAPSHOTS / snapshot, init.directory / name)
    assert init("--no-lock").code == 0
    assert init.table["frameworks"] == frameworks
    assert init.table["outputs"] == [name]


def test_dependencies_in_pyproject_are_a_beginning(init: Init) -> None:
    init.write("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch"]\n')
    assert init("--no-lock").code == 0
    assert init.table == {"project-dependencies": True, "gpus": "auto", "outputs": ["pylock.toml"]}


def test_without_anything_to_begin_with_it_asks(init: Init) -> None:
    done = init()
    assert done.code == 2
    assert done.err.startswith("error: no-framework\n")
    assert init.files == set()


def test_envsolve_toml_is_written_where_it_is(init: Init) -> None:
    init.write("envsolve.toml", "")
    assert init(*ASKED, "--no-lock").code == 0
    assert init.files == {"envsolve.toml"}
    assert init.read("envsolve.toml").startswith('frameworks = ["pytorch"]\n')


@pytest.mark.parametrize(
    ("system", "name"), [("github", ".github/workflows/envsolve.yml"), ("gitlab", ".gitlab/envsolve.yml")]
)
def test_a_job_that_checks_the_locks_is_written_too(system: str, name: str, init: Init) -> None:
    assert init(*ASKED, "--no-lock", "--ci", system).code == 0
    assert "envsolve lock --check" in init.read(name)
    init.write(name, "ours\n")
    assert init(*ASKED, "--no-lock", "--ci", system).code == 2
    assert init.read(name) == "ours\n"


def test_what_cannot_be_read_is_one_error_and_loses_nothing(init: Init) -> None:
    init.write("pyproject.toml", "[project\n")
    done = init(*ASKED)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: file-unreadable")
    assert init.read("pyproject.toml") == "[project\n"
