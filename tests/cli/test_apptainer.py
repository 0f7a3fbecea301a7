"""A definition file from the command line: its name, what stays of one that is there, and what its script installs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.lockfile.apptainer import requirements_in
from tests.cli.locking import Locking, assert_in_three_parts, locking_in
from tests.cli.worlds import releases
from tests.conda.packages import MINOR
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer
from tests.lockfile.definition_files import definition

TARGET = ("--platform", "linux-64", "--no-cache")
GPU = ("--gpu", "8.6", "--python", "3.11.7", *TARGET)


@pytest.fixture
def locking(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Locking]:
    """An index with alpha and beta, in a directory of its own."""
    with locking_in(envsolve, tmp_path, monkeypatch) as found:
        yield found


def image(locking: Locking, *arguments: str, output: str = "env.def") -> Result:
    """A definition file for the Python that runs the tests."""
    common = ("--gpu", "none", "--python", MINOR, "--index-url", locking.url)
    return locking.envsolve(*(arguments or ("alpha",)), *common, *TARGET, "-o", output)


def pins(path: Path) -> list[str]:
    held = requirements_in(path.read_text()) or ""
    return [line.split(" ")[0] for line in held.splitlines() if "==" in line]


@pytest.mark.parametrize("name", ["env.def", "Singularity", "Singularity.gpu"])
def test_the_name_of_the_file_asks_for_it(name: str, locking: Locking, tmp_path: Path) -> None:
    done = image(locking, output=name)
    assert (done.code, done.out) == (0, ""), done.err
    assert (tmp_path / name).read_text().startswith("# Made by envsolve ")
    assert pins(tmp_path / name) == ["alpha==2.0", "beta==2.0"]


def test_it_is_the_lock_of_a_requirements_file(envsolve: Envsolve, world: IndexServer) -> None:
    words = ("torch", "torchvision", "--driver", "535.183.01", *GPU)
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    lock, made = (envsolve(*words, *indexes, "--format", it) for it in ("requirements", "apptainer"))
    assert (lock.code, made.code) == (0, 0)
    assert lock.out.endswith(f"\n\n{requirements_in(made.out)}")
    header, sections = definition(made.out)
    assert header == {"bootstrap": "docker", "from": "python:3.11-slim-bookworm"}
    assert "envsolve.minimum-driver 525.60.13\n" in sections["labels"]


def test_one_that_is_there_keeps_its_pins_and_is_the_same_after_the_same_command(
    locking: Locking, tmp_path: Path
) -> None:
    assert image(locking).code == 0
    before = (tmp_path / "env.def").read_bytes()
    for name, requires in (("alpha", ["beta"]), ("beta", [])):
        locking.index.add(name, [wheel(name, "3.0", requires)])
    assert image(locking).code == 0
    assert (tmp_path / "env.def").read_bytes() == before
    assert image(locking, "alpha", "-P", "beta").code == 0
    assert pins(tmp_path / "env.def") == ["alpha==2.0", "beta==3.0"]
    assert image(locking, "alpha", "-U").code == 0
    assert pins(tmp_path / "env.def") == ["alpha==3.0", "beta==3.0"]


@pytest.mark.parametrize("platform", ["win-64", "osx-arm64"])
def test_an_image_is_for_linux(platform: str, locking: Locking, tmp_path: Path) -> None:
    done = locking("--platform", platform, "--format", "apptainer", "-o", f"{tmp_path}/{{platform}}.def")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: platform-not-supported\n")
    assert_in_three_parts(done.err)
    assert not list(tmp_path.glob("*.def"))


def test_no_environment_is_made_of_the_format(locking: Locking) -> None:
    done = locking.envsolve("create", "env", "alpha", "--format", "apptainer", "--index-url", locking.url)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: unknown-format\n")


def test_status_says_whether_the_stack_in_it_runs(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    path = tmp_path / "gpu.def"
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    assert envsolve("torch", "--driver", "535.183.01", *GPU, *indexes, "-o", str(path)).code == 0
    for machine, says in ((("8.6", "535.183.01"), "fits"), (("12.0", "580.65.06"), "does-not-run")):
        gpu, driver = machine
        done = envsolve("status", str(path), "--gpu", gpu, "--driver", driver, "--platform", "linux-64", "--json")
        (found,) = json.loads(done.out)["files"]
        assert found["status"] == says, found


def test_a_project_may_name_one_among_its_outputs(locking: Locking, tmp_path: Path) -> None:
    asked = f'requirements = ["alpha"]\ngpus = ["none"]\nplatforms = ["linux-64"]\nindex-url = "{locking.url}"\n'
    outputs = f'python = "{MINOR}"\noutputs = ["requirements.txt", "gpu.def"]\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.envsolve]\n{asked}{outputs}")
    assert locking.envsolve("lock", "--no-cache").code == 0
    assert pins(tmp_path / "gpu.def") == ["alpha==2.0", "beta==2.0"]
    assert locking.envsolve("lock", "--check", "--no-cache").code == 0
    locking.index.add("beta", [wheel("beta", "3.0")])
    assert locking.envsolve("lock", "--check", "-U", "--no-cache").code == 1


@pytest.mark.thorough
class TestItsScript:
    """The whole ``%post`` as the builder runs it; a venv stands for the image."""

    @pytest.fixture
    def path(self, locking: Locking, tmp_path: Path) -> Path:
        locking.index.add("native", releases("native", ["1.0"]))
        assert image(locking, "alpha", "native").code == 0
        return tmp_path / "env.def"

    def installed(self, text: str, directory: Path) -> subprocess.CompletedProcess[str]:
        script = directory / "post.script"
        held = directory / "held.txt"
        script.write_text(definition(text)[1]["post"].replace("/opt/requirements.txt", str(held)))
        venv = directory / "image"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        environ = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(directory), "NO_PROXY": "127.0.0.1"}
        return subprocess.run(
            ["/bin/sh", "-ex", script],
            env=environ | {"PIP_CONFIG_FILE": os.devnull},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def test_installs_what_is_locked(self, path: Path, tmp_path: Path) -> None:
        done = self.installed(path.read_text(), tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Successfully installed alpha-2.0 beta-2.0 native-1.0" in done.stdout

    def test_installs_nothing_with_another_content(self, path: Path, tmp_path: Path) -> None:
        text = path.read_text()
        start = text.index("--hash=sha256:", text.index("\nbeta==")) + len("--hash=sha256:")
        done = self.installed(f"{text[:start]}{'0' * 64}{text[start + 64 :]}", tmp_path)
        assert done.returncode != 0
        assert "DO NOT MATCH THE HASHES" in done.stderr
        assert "Successfully installed" not in done.stdout
