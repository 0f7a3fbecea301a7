"""``envsolve status`` in a project: which requirements changed since its locks were made, without an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conda.conftest import channel_server, mirror, mirrored
from tests.conftest import Envsolve
from tests.index.server import IndexServer

pytestmark = pytest.mark.thorough

__all__ = ["channel_server", "mirror", "mirrored"]

_PROJECT = """\
frameworks = ["pytorch"]
python = "3.11.7"
platforms = ["linux-64"]
index-url = "{url}/simple/"
pytorch-index-url = "{url}/whl"
gpus = ["8.6"]
driver = "535.183.01"
requirement-files = ["requirements.in"]
outputs = ["requirements.txt", "locks/pylock.toml"]
"""


class Project:
    """A locked project in the current directory."""

    def __init__(self, directory: Path, envsolve: Envsolve, text: str, requirements: tuple[str, str]) -> None:
        self.directory, self.envsolve = directory, envsolve
        self.write("envsolve.toml", text)
        self.write(*requirements)
        self.lock()

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, encoding="utf-8")

    def say(self, name: str, old: str, new: str) -> None:
        text = (self.directory / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def lock(self) -> None:
        done = self.envsolve("lock", "--cache-dir", "cache")
        assert done.code == 0, done.err

    @property
    def files(self) -> list[Any]:
        done = self.envsolve("status", "--json")
        files = json.loads(done.out)["files"]
        assert done.code == (0 if all(it["status"] == "fits" for it in files) else 1)
        return list(files)

    @property
    def reasons(self) -> list[str]:
        """Those of both files, which are the same; none if both fit."""
        first, *others = self.files
        assert all((it["status"], it["reasons"]) == (first["status"], first["reasons"]) for it in others)
        assert first["status"] == ("stale" if first["reasons"] else "fits")
        return list(first["reasons"])


@pytest.fixture
def project(tmp_path: Path, envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, envsolve, _PROJECT.format(url=world.url), ("requirements.in", "numpy>=1\n"))


@pytest.mark.parametrize(
    ("requirements", "reasons"),
    [
        ("numpy>=1\n", []),
        ("# only a comment is new\nNumPy >= 1\n", []),
        ("numpy>=1\nrich\n", ["requirements.in: rich is new and not in the lock file"]),
        ("numpy>=99\n", ["requirements.in: numpy>=99 instead of numpy>=1, but the lock file has numpy 2.4.6"]),
        ("numpy>=1.5\n", ["requirements.in: numpy>=1.5 instead of numpy>=1"]),
        ("numpy>=1\ntyping-extensions\n", ["requirements.in: typing-extensions is new"]),
        ("", ["numpy>=1 was removed"]),
        ("numpy>=1\n-r more.in\n", ["more.in: rich is new and not in the lock file"]),
        ("numpy>=1\n-c less.txt\n", ["less.txt: constraint numpy<2 is new, but the lock file has numpy 2.4.6"]),
        ("numpy>=1\n-c more.txt\n", ["more.txt: constraint numpy<3 is new"]),
        ("numpy>=1\nrich; python_version < '3'\n", []),
        ("numpy>=1; python_version >= '3'\n", []),
        ("numpy>=1; python_version < '3'\n", ["numpy>=1 was removed"]),
    ],
)
def test_current_requirement_files_are_compared(requirements: str, reasons: list[str], project: Project) -> None:
    project.write("more.in", "rich\n")
    project.write("less.txt", "numpy<2\n")
    project.write("more.txt", "numpy<3\n")
    project.write("requirements.in", requirements)
    assert project.reasons == reasons


def test_a_newer_release_is_named_where_the_framework_is_only_a_requirement(project: Project) -> None:
    newer = "pytorch 2.15.0 (pypi, cu132) also runs there: envsolve lock -P pytorch"
    project.say("envsolve.toml", '"535.183.01"', '"580.65.06"')
    assert [it["newer"] for it in project.files] == [[newer], [newer]]
    project.say("envsolve.toml", 'frameworks = ["pytorch"]\n', "")
    project.write("requirements.in", "numpy>=1\ntorch\n")
    assert [it["newer"] for it in project.files] == [[newer], [newer]]
    project.write("requirements.in", "numpy>=1\ntorch<2.15\n")
    assert [it["newer"] for it in project.files] == [[], []]
    project.write("requirements.in", "numpy>=1\ntorch\nvllm\n")
    project.say("envsolve.toml", 'gpus = ["8.6"]\ndriver = "580.65.06"\n', 'gpus = ["none"]\n')
    assert [it["newer"] for it in project.files] == [[], []]


def test_a_file_for_machines_elsewhere_has_a_hint_about_the_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    note = "note: `envsolve status` without a file uses the machines of the project\n"
    done = project.envsolve("status", "locks/pylock.toml", "--platform", "linux-64")
    assert ("no GPU was found here" in done.out, note in done.err) == (True, False)
    monkeypatch.chdir(project.directory / "locks")
    done = project.envsolve("status", "pylock.toml")
    assert (done.code, note in done.err) == (1, True), done.out
    project.write("other.txt", (project.directory / "requirements.txt").read_text())
    assert note not in project.envsolve("status", "../other.txt").err


def test_differing_keys_are_reported_and_not_two_commands(project: Project) -> None:
    project.say("envsolve.toml", 'python = "3.11.7"', 'python = "3.12"')
    project.say("envsolve.toml", '["pytorch"]', '["pytorch", "jax"]\nrequirements = ["polars"]')
    project.write("requirements.in", "numpy>=1\nrich\n")
    assert project.files[0]["reasons"] == [
        "jax is new and not in the lock file",
        "polars is new and not in the lock file",
        "requirements.in: rich is new and not in the lock file",
        "python 3.12 instead of 3.11.7, and the lock file is for Python 3.11.7",
    ]


def test_an_option_that_once_replaced_a_key_is_reported(project: Project) -> None:
    project.say("envsolve.toml", 'python = "3.11.7"\n', "")
    assert project.envsolve("lock", "--cache-dir", "cache", "--python", "3.11.7").code == 0
    assert project.reasons == ["locked with --python 3.11.7, which the project does not have"]


def test_a_gpu_lock_in_a_cpu_project_is_stale(project: Project) -> None:
    project.say("envsolve.toml", 'gpus = ["8.6"]\ndriver = "535.183.01"\n', 'gpus = "none"\n')
    assert project.reasons == [
        "it is for a GPU, and the request is for the CPU",
        "the CPU instead of compute capability 8.6",
    ]


def test_a_cpu_lock_fits_there_and_names_its_purpose_elsewhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    project.say("envsolve.toml", 'gpus = ["8.6"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    for name in ("requirements.txt", "locks/pylock.toml"):
        (project.directory / name).unlink()
    project.lock()
    assert project.reasons == []
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    first = project.files[0]
    assert first["status"] == "cpu-only"
    assert first["reasons"][-1] == "compute capability 8.6 instead of the CPU"


def test_a_file_with_merge_conflicts_does_not_stop_the_others(project: Project) -> None:
    text = (project.directory / "requirements.txt").read_text(encoding="utf-8")
    project.write("requirements.txt", f"<<<<<<< HEAD\n{text}=======\n{text}>>>>>>> other\n")
    conflict, other = project.files
    assert (conflict["status"], conflict["reasons"]) == ("unreadable", ["unresolved merge conflict in line 1"])
    assert other["status"] == "fits"
    assert (
        "requirements.txt (linux-64): cannot be read\n  because: unresolved merge conflict in line 1"
        in project.envsolve("status").out
    )


def test_a_current_environment_yml_is_compared(
    tmp_path: Path, mirrored: Path, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = Project(
        tmp_path,
        envsolve,
        'frameworks = ["tensorflow"]\ngpus = ["8.6"]\ndriver = "580.65.06"\nplatforms = ["linux-64"]\n'
        'requirement-files = ["dev.yml"]\noutputs = ["conda-lock.yml", "conda-linux-64.lock"]\n',
        ("dev.yml", "dependencies: [numpy]\n"),
    )
    assert project.reasons == []
    project.write("dev.yml", "dependencies: [numpy >=1, 'python >=3.9', __glibc]\n")
    assert project.reasons == ["numpy >=1 instead of numpy", "python >=3.9 is new", "__glibc is new"]
    project.write("dev.yml", "dependencies: [numpy =1.2, polars, pip: [pandas]]\n")
    wrong, *missing, of_pip = project.reasons
    assert wrong.startswith("numpy 1.2.* instead of numpy, but the lock file has numpy ")
    assert "polars is new and not in the lock file" in missing
    assert of_pip == "the pip section of dev.yml: pandas is new and not in the lock file"


def test_a_project_elsewhere_is_named(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = json.loads(project.envsolve("status", "--json").out)
    monkeypatch.chdir(tmp_path.parent)
    assert json.loads(project.envsolve("status", "--json", "--project", str(project.directory)).out) == there
    assert project.envsolve("status", "--project", "nowhere").err.startswith("error: no-project\n")
    done = project.envsolve("status", "--project", str(project.directory), "--gpu", "8.6")
    assert done.err.startswith("error: contradictory-options\n  --project ")
    monkeypatch.setenv("ENVSOLVE_PROJECT", str(tmp_path.parent))  # what is typed counts more
    monkeypatch.chdir(project.directory)
    assert project.envsolve("status", "requirements.txt", "--gpu", "8.6", "--driver", "580").code == 0
