"""A Dockerfile from the command line: its name, what stays of an existing one, and what its shell lines install."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from envsolve.lockfile.dockerfile import requirements_in
from tests.cli.images import DOCKERFILE, GPU, run_in_venv, with_another_hash
from tests.cli.locking import Locking
from tests.cli.worlds import releases
from tests.conftest import Envsolve
from tests.index.packages import wheel
from tests.index.server import IndexServer

_IN_THE_IMAGE = "/opt/requirements.txt"
image, pins = DOCKERFILE, DOCKERFILE.pins


@pytest.mark.parametrize("name", ["Dockerfile", "gpu.Dockerfile", "Containerfile", "Dockerfile.gpu"])
def test_the_file_name_selects_the_format(name: str, locking: Locking, tmp_path: Path) -> None:
    done = image(locking, output=name)
    assert (done.code, done.out) == (0, ""), done.err
    assert (tmp_path / name).read_text().startswith("# syntax=docker/dockerfile:1\n# Made by envsolve ")
    assert pins(tmp_path / name) == ["alpha==2.0", "beta==2.0"]


@pytest.mark.thorough
def test_it_has_the_lock_of_a_requirements_file(envsolve: Envsolve, world: IndexServer) -> None:
    words = ("torch", "torchvision", "--driver", "535.183.01", *GPU)
    indexes = ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")
    lock, made = (envsolve(*words, *indexes, "--format", it) for it in ("requirements", "dockerfile"))
    assert (lock.code, made.code) == (0, 0)
    assert lock.out.endswith(f"\n\n{requirements_in(made.out)}")
    assert "FROM python:3.11-slim-bookworm\n" in made.out
    assert '\nLABEL envsolve.minimum-driver="525.60.13" envsolve.cuda="12.6"\n' in made.out


class TestOneThatIsThere:
    """``alpha`` and ``beta`` were locked at 2.0, and 3.0 was released since."""

    @pytest.fixture
    def path(self, locking: Locking, tmp_path: Path) -> Path:
        assert image(locking).code == 0
        for name, requires in (("alpha", ["beta"]), ("beta", [])):
            locking.index.add(name, [wheel(name, "3.0", requires)])
        return tmp_path / "Dockerfile"

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("options", "found"),
        [
            ((), ["alpha==2.0", "beta==2.0"]),
            (("-P", "beta"), ["alpha==2.0", "beta==3.0"]),
            (("-U",), ["alpha==3.0", "beta==3.0"]),
        ],
    )
    def test_keeps_its_pins_except_for_upgrades(
        self, options: tuple[str, ...], found: list[str], path: Path, locking: Locking
    ) -> None:
        done = image(locking, "alpha", *options)
        assert done.code == 0, done.err
        assert pins(path) == found

    def test_the_command_is_repeatable(self, path: Path, locking: Locking) -> None:
        before = path.read_bytes()
        assert image(locking).code == 0
        assert path.read_bytes() == before


@pytest.mark.parametrize("options", [(), ("-U",)])
def test_a_dockerfile_that_envsolve_did_not_write_is_not_overwritten(
    options: tuple[str, ...], locking: Locking, tmp_path: Path
) -> None:
    mine = "FROM python:3.12-slim\nRUN pip install alpha==1.0\n"
    (tmp_path / "Dockerfile").write_text(mine)
    done = image(locking, "alpha", *options)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: not-a-lock\n")
    assert (tmp_path / "Dockerfile").read_text() == mine
    assert image(locking, "alpha", "--force", *options).code == 0
    assert pins(tmp_path / "Dockerfile") == ["alpha==2.0", "beta==2.0"]


@pytest.mark.thorough
class TestItsShellLines:
    """The here-document as BuildKit copies it, and the last RUN as its shell runs it; a venv replaces the image."""

    @pytest.fixture
    def path(self, locking: Locking, tmp_path: Path) -> Path:
        locking.index.add("native", releases("native", ["1.0"]))
        assert image(locking, "alpha", "native").code == 0
        return tmp_path / "Dockerfile"

    def installed(self, text: str, directory: Path) -> subprocess.CompletedProcess[str]:
        judge = pytest.importorskip("dockerfile", reason="BuildKit's parser is a wheel for some platforms only")
        read = judge.parse_string(text)
        (script,) = [heredoc.content for it in read for heredoc in it.heredocs]
        file = directory / "requirements.txt"
        file.write_text(script)
        run = [it for it in read if it.cmd == "RUN"][-1]
        assert all(flag.startswith("--mount=") for flag in run.flags)
        (words,) = run.value
        return run_in_venv(["/bin/sh", "-c", words.replace(_IN_THE_IMAGE, str(file))], directory)

    def test_install_the_locked_packages(self, path: Path, tmp_path: Path) -> None:
        done = self.installed(path.read_text(), tmp_path)
        assert done.returncode == 0, done.stderr
        assert "Successfully installed alpha-2.0 beta-2.0 native-1.0" in done.stdout

    def test_do_not_install_altered_content(self, path: Path, tmp_path: Path) -> None:
        text = path.read_text()
        done = self.installed(with_another_hash(text), tmp_path)
        assert done.returncode != 0
        assert "DO NOT MATCH THE HASHES" in done.stderr
        assert "Successfully installed" not in done.stdout
