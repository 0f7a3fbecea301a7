"""``uv-settings``: what `envsolve lock` writes for uv, and what uv then locks and installs, from the same indexes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from packaging.markers import Marker
from uv import find_uv_bin

from envsolve.lockfile.lock import strong_digests
from envsolve.lockfile.reading import lock_at
from envsolve.model.host import Platform
from tests.cli.worlds import releases
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

HEAD = """# what this is
[project]
name = "demo"  # its name
version = "0"
requires-python = ">=3.11"
dependencies = ["torchvision", "torch", "numpy"]

[tool.uv]
package = false  # nothing to build
"""
ON_ALL = 'project-dependencies = true\npython = "3.11"\nglibc = "2.35"\nplatforms = ["linux-64"]\nuv-settings = true\n'
GPU = 'gpus = ["8.6"]\ndriver = "570.26"\n'
ONE = f'{GPU}outputs = ["pylock.toml"]\n'
TWO = (
    f'[tool.envsolve.targets.gpu]\n{GPU}outputs = ["pylock.gpu.toml"]\n'
    '[tool.envsolve.targets.cpu]\ngpus = ["none"]\noutputs = ["pylock.cpu.toml"]\n'
)


class Project:
    """A uv project in the current directory."""

    def __init__(self, envsolve: Envsolve, world: IndexServer) -> None:
        self.envsolve, self.world, self.file = envsolve, world, Path("pyproject.toml")

    def write(self, machines: str, head: str = HEAD) -> None:
        where = f'index-url = "{self.world.index_url}"\npytorch-index-url = "{self.world.url}/whl/"\n'
        self.file.write_text(f"{head}[tool.envsolve]\n{ON_ALL}{where}{machines}", "utf-8")

    def lock(self, *words: str) -> Result:
        return self.envsolve("lock", *words, "--cache-dir", "cache")

    def uv(self, *words: str) -> str:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
        done = subprocess.run(
            [find_uv_bin(), *words, "--cache-dir", "uv-cache", "--no-progress", "--color", "never"],
            env={**inherited, "UV_PYTHON_DOWNLOADS": "never"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def installed_by_uv(self, *extras: str) -> dict[str, str]:
        """What uv would install, by name."""
        extra = [word for it in extras for word in ("--extra", it)]
        lines = self.uv("sync", "--dry-run", "--python", "3.11", *extra).splitlines()
        return dict(it.removeprefix(" + ").split("==") for it in lines if it.startswith(" + "))


@pytest.fixture
def project(envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.chdir(tmp_path)
    return Project(envsolve, world)


def digests(name: str) -> dict[str, set[str]]:
    """The digests of each package that a lock installs on Linux with Python 3.11, by name and version."""
    lock = lock_at(Path(name), Platform.LINUX_64)
    assert lock is not None
    machine = {"sys_platform": "linux", "platform_machine": "x86_64", "python_full_version": "3.11.7"}
    pins = (it for it in lock.pins if not it.marker or Marker(it.marker).evaluate(machine))
    return {f"{it.name}=={it.version}": set(strong_digests(it)) for it in pins}


def versions(name: str) -> dict[str, str]:
    return dict(it.split("==") for it in digests(name))


@pytest.mark.thorough
def test_uv_locks_the_versions_and_digests_of_the_lock(project: Project) -> None:
    project.write(ONE)
    before = project.file.read_text()
    done = project.lock()
    assert done.code == 0, done.err
    assert "note: pyproject.toml: written\n" in done.err
    assert "\n  uv lock && uv sync --python 3.11\n" in done.err
    assert set(before.splitlines()) <= set(project.file.read_text().splitlines())
    project.uv("lock")
    locked = digests("pylock.toml")
    by_uv = digests("uv.lock")
    assert {"torch==2.14.1+cu126", "numpy==2.4.6"} <= locked.keys() <= by_uv.keys()
    assert all(found <= by_uv[name] for name, found in locked.items())
    assert project.installed_by_uv() == versions("pylock.toml")


@pytest.mark.thorough
def test_two_targets_are_conflicting_extras(project: Project) -> None:
    project.write(TWO)
    assert project.lock().code == 0
    project.uv("lock")
    for extra in ("gpu", "cpu"):
        assert project.installed_by_uv(extra) == versions(f"pylock.{extra}.toml")
    assert versions("pylock.cpu.toml")["torch"] == "2.13.0+cpu"
    with pytest.raises(AssertionError, match="incompatible with the declared conflicts"):
        project.installed_by_uv("gpu", "cpu")


@pytest.mark.thorough
def test_a_framework_required_only_by_a_package_has_its_index(project: Project) -> None:
    project.world.add("accelerate", [wheel("accelerate", "1.0", ["torch>=2"])])
    project.write(ONE, HEAD.replace('"torchvision", "torch"', '"accelerate"'))
    assert project.lock().code == 0
    project.uv("lock")
    assert project.installed_by_uv() == versions("pylock.toml")
    assert versions("pylock.toml")["torch"] == "2.14.1+cu126"


@pytest.mark.thorough
def test_the_second_lock_changes_nothing_and_status_agrees(project: Project) -> None:
    project.write(TWO)
    assert project.lock().code == 0
    text = project.file.read_text()
    done = project.lock()
    assert "note: pylock.gpu.toml, pylock.cpu.toml, pyproject.toml: up to date\n" in done.err
    assert (project.file.read_text(), project.lock("--check").code) == (text, 0)
    assert project.envsolve("status").out.endswith("pyproject.toml (linux-64): fits\n")
    project.file.write_text(text.replace("2.14.1+cu126", "2.14.0+cu126"))
    found = json.loads(project.envsolve("status", "--json").out)["files"][-1]
    assert (found["path"], found["status"]) == ("pyproject.toml", "stale")
    done = project.lock("--check")
    assert (done.code, "pyproject.toml: out of date" in done.err) == (1, True)
    assert project.lock().code == 0
    assert project.file.read_text() == text


@pytest.mark.thorough
def test_written_settings_do_not_limit_the_next_lock(project: Project) -> None:
    """uv's settings count as those of envsolve, but not its own: else a new driver would change nothing."""
    project.write(TWO)
    assert project.lock().code == 0
    project.file.write_text(project.file.read_text().replace("570.26", "580.65.06"))
    done = project.lock("-U")
    assert done.code == 0, done.err
    assert versions("pylock.gpu.toml")["torch"] == "2.15.0"
    text = project.file.read_text()
    assert "cu126" not in text
    project.uv("lock")
    assert project.installed_by_uv("gpu") == versions("pylock.gpu.toml")


@pytest.mark.thorough
def test_a_locked_extra_is_read_without_the_lines_of_envsolve(project: Project) -> None:
    project.world.add("six", releases("six", ["1.0"]))
    head = HEAD.replace("[tool.uv]", '[project.optional-dependencies]\ngpu = ["six"]\n[tool.uv]')
    project.write(f'extras = ["gpu"]\n{TWO}', head)
    assert project.lock().code == 0
    project.world.add("six", releases("six", ["1.0", "1.1"]))
    assert project.lock("-P", "six", "--refresh").code == 0
    assert versions("pylock.gpu.toml")["six"] == "1.1"


@pytest.mark.thorough
def test_add_writes_the_requirement_and_the_version(project: Project) -> None:
    project.world.add("six", releases("six", ["1.0"]))
    project.write(ONE)
    assert project.lock().code == 0
    done = project.envsolve("add", "six", "--cache-dir", "cache")
    assert done.code == 0, done.err
    text = project.file.read_text()
    assert 'dependencies = ["torchvision", "torch", "numpy", "six"]' in text
    assert '    "six==1.0 ; ' in text
    project.uv("lock")
    assert project.installed_by_uv() == versions("pylock.toml")


@pytest.mark.thorough
def test_written_settings_are_removed_with_the_key(project: Project) -> None:
    project.write(TWO)
    before = project.file.read_text()
    assert project.lock().code == 0
    project.file.write_text(project.file.read_text().replace("uv-settings = true\n", ""))
    assert project.envsolve("status").code == 1
    done = project.lock()
    assert (done.code, "note: pyproject.toml: written\n" in done.err) == (0, True)
    assert "the next `uv lock` no longer follows the locks\n  uv lock\n" in done.err
    assert project.file.read_text().rstrip() == before.replace("uv-settings = true\n", "").rstrip()
    assert "pyproject.toml" not in project.lock().err


@pytest.mark.thorough
def test_a_ci_system_reports_the_file(project: Project) -> None:
    project.write(ONE)
    assert project.lock().code == 0
    project.file.write_text(project.file.read_text().replace("2.14.1+cu126", "2.14.0+cu126"))
    for command in (("lock", "--check", "--cache-dir", "cache"), ("status",)):
        done = project.envsolve(*command, "--output-format", "github")
        assert (done.code, done.out.count("::error file=pyproject.toml")) == (1, 1), done.out


def test_without_a_pyproject_toml_there_is_nothing_to_write(project: Project) -> None:
    project.write(f'frameworks = ["pytorch"]\n{ONE}', "")
    text = project.file.read_text().replace("[tool.envsolve]\n", "").replace("project-dependencies = true\n", "")
    Path("envsolve.toml").write_text(text)
    project.file.unlink()
    done = project.lock()
    assert (done.code, "cannot read pyproject.toml: there is no such file" in done.err) == (2, True)


@pytest.mark.thorough
def test_a_refusal_writes_nothing(project: Project) -> None:
    source = '[tool.uv.sources]\ntorch = { git = "https://git.example/torch" }\n'
    project.write(ONE, HEAD.replace("[tool.uv]\npackage = false  # nothing to build\n", source))
    text = project.file.read_text()
    done = project.lock()
    assert (done.code, done.err.startswith("error: uv-settings-refused\n")) == (2, True)
    assert (project.file.read_text(), Path("pylock.toml").exists()) == (text, False)


def test_conda_locks_have_nothing_for_uv(project: Project) -> None:
    project.write(f'{GPU}outputs = ["environment.yml"]\n')
    done = project.lock()
    assert (done.code, "uv-settings: there is no Python lock" in done.err) == (2, True)


def test_a_byte_order_mark_and_line_ends_are_preserved(project: Project) -> None:
    project.write(ONE)
    project.file.write_bytes(b"\xef\xbb\xbf" + project.file.read_bytes().replace(b"\n", b"\r\n"))
    assert project.lock().code == 0
    content = project.file.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf# what this is\r\n")
    assert content.count(b"\n") == content.count(b"\r\n")
    assert project.lock("--check").code == 0
