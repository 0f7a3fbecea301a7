"""A definition file from the command line: its name, what stays of an existing one, and what its script installs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envsolve.lockfile.apptainer import requirements_in
from tests.cli.images import APPTAINER, GPU, run_in_venv, with_another_hash
from tests.cli.locking import Locking
from tests.cli.worlds import releases
from tests.conftest import Envsolve
from tests.index.packages import wheel
from tests.index.server import IndexServer
from tests.lockfile.definition_files import definition

image, pins = APPTAINER, APPTAINER.pins


@pytest.mark.parametrize("name", ["env.def", "Singularity", "Singularity.gpu"])
def test_the_file_name_selects_the_format(name: str, locking: Locking, tmp_path: Path) -> None:
    done = image(locking, output=name)
    assert (done.code, done.out) == (0, ""), done.err
    assert (tmp_path / name).read_text().startswith("# Made by envsolve ")
    assert pins(tmp_path / name) == ["alpha==2.0", "beta==2.0"]


@pytest.mark.thorough
def test_it_has_the_lock_of_a_requirements_file(envsolve: Envsolve, world: IndexServer) -> None:
    words = ("torch", "torchvision", "--driver", "535.183.01", *GPU)
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    lock, made = (envsolve(*words, *indexes, "--format", it) for it in ("requirements", "apptainer"))
    assert (lock.code, made.code) == (0, 0)
    assert lock.out.endswith(f"\n\n{requirements_in(made.out)}")
    header, sections = definition(made.out)
    assert header == {"bootstrap": "docker", "from": "python:3.11-slim-bookworm"}
    assert "envsolve.minimum-driver 525.60.13\n" in sections["labels"]


def test_an_existing_file_keeps_its_pins_and_the_command_is_repeatable(locking: Locking, tmp_path: Path) -> None:
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


@pytest.mark.thorough
class TestItsScript:
    """The whole ``%post`` as the builder runs it; a venv replaces the image."""

    @pytest.fixture
    def path(self, locking: Locking, tmp_path: Path) -> Path:
        locking.index.add("native", releases("native", ["1.0"]))
        assert image(locking, "alpha", "native").code == 0
        return tmp_path / "env.def"

    def installed(self, text: str, directory: Path) -> subprocess.CompletedProcess[str]:
        script = directory / "post.script"
        requirements = directory / "held.txt"
        script.write_text(definition(text)[1]["post"].replace("/opt/requirements.txt", str(requirements)))
        return run_in_venv(["/bin/sh", "-ex", str(script)], directory)

    def test_installs_the_locked_packages(self, path: Path, tmp_path: Path) -> None:
        done = self.installed(path.read_text(), tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Successfully installed alpha-2.0 beta-2.0 native-1.0" in done.stdout

    def test_does_not_install_altered_content(self, path: Path, tmp_path: Path) -> None:
        text = path.read_text()
        done = self.installed(with_another_hash(text), tmp_path)
        assert done.returncode != 0
        assert "DO NOT MATCH THE HASHES" in done.stderr
        assert "Successfully installed" not in done.stdout
