"""``envsolve lock`` and ``status`` in a project: all files or none, with as few changes as the machines allow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.versions import LibcVersion
from tests.cli.locked import pins_in
from tests.cli.worlds import releases
from tests.conftest import Envsolve, Result
from tests.index.server import IndexServer
from tests.lockfile.formats import EXAMPLES

PROJECT = """\
[project]
name = "demo"
dependencies = ["numpy"]

[tool.envsolve]
frameworks = ["pytorch"]
python = "3.11.7"
project-dependencies = true
platforms = ["linux-64"]
index-url = "{url}/simple/"
pytorch-index-url = "{url}/whl"
gpus = ["RTX 3090"]
driver = "535.183.01"
outputs = ["requirements.txt", "locks/pylock.toml"]
"""


class Project:
    """A project in its own directory, and the commands in it."""

    def __init__(self, directory: Path, envsolve: Envsolve, world: IndexServer) -> None:
        self.directory, self._envsolve = directory, envsolve
        self.index_url = world.index_url
        self.file = directory / "pyproject.toml"
        self.file.write_text(PROJECT.format(url=world.url), encoding="utf-8")

    def __call__(self, *arguments: str) -> Result:
        return self._envsolve(*arguments, *(("--cache-dir", "cache") if arguments[0] == "lock" else ()))

    def say(self, old: str, new: str) -> None:
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new), encoding="utf-8")

    def read(self, name: str = "requirements.txt") -> str:
        return (self.directory / name).read_text(encoding="utf-8")

    @property
    def files(self) -> set[str]:
        found = (it.relative_to(self.directory) for it in self.directory.rglob("*") if it.is_file())
        return {it.as_posix() for it in found if it.parts[0] != "cache"} - {"pyproject.toml"}

    def data(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json").out)


@pytest.fixture
def project(tmp_path: Path, envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, envsolve, world)


@pytest.mark.thorough
def test_a_project_is_locked_into_all_of_its_files(project: Project) -> None:
    done = project("lock")
    assert (done.code, done.out) == (0, ""), done.err
    assert project.files == {"requirements.txt", "locks/pylock.toml"}
    pins = pins_in(project.read())
    assert pins["torch"] == "2.14.1+cu126"
    assert "numpy" in pins
    assert "requirements.txt, locks/pylock.toml: written" in done.err


@pytest.mark.thorough
def test_locking_again_changes_nothing(project: Project) -> None:
    project("lock")
    before = {name: (project.directory / name).stat().st_mtime_ns for name in project.files}
    done = project("lock")
    assert (done.code, done.out) == (0, "")
    assert "requirements.txt, locks/pylock.toml: up to date" in done.err
    assert {name: (project.directory / name).stat().st_mtime_ns for name in project.files} == before
    assert project("lock", "--check").code == 0


@pytest.mark.thorough
def test_another_python_is_listed_among_the_changes(project: Project) -> None:
    project("lock")
    project.say('python = "3.11.7"', 'python = "3.11.9"')
    assert "  ~ python 3.11.7 -> 3.11.9\n" in project("lock", "--diff").out
    for file in project.data("lock", "--diff")["files"]:
        assert {"name": "python", "before": "3.11.7", "after": "3.11.9"} in file["changes"]
    done = project("lock")
    assert "requirements.txt, locks/pylock.toml: written, Python 3.11.7 -> 3.11.9, same packages\n" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize("recorded", ["", 'platform = "mars"', "platform = 3"])
def test_a_lock_without_its_platform_is_stale_and_rewritten(recorded: str, project: Project) -> None:
    project("lock")
    right = {name: project.read(name) for name in project.files}
    for name, text in right.items():
        assert text.count('platform = "linux-64"') == 1
        (project.directory / name).write_text(text.replace('platform = "linux-64"', recorded), encoding="utf-8")
    found = project.data("status")["files"]
    assert [it["status"] for it in found] == ["stale", "stale"]
    assert "it does not record linux-64 as its platform" in found[0]["reasons"]
    checked = project("lock", "--check")
    assert (checked.code, "it does not record linux-64 as its platform" in checked.err) == (1, True)
    assert project("lock").code == 0
    assert {name: project.read(name) for name in project.files} == right


@pytest.mark.thorough
def test_newer_releases_are_only_used_with_an_upgrade(project: Project, world: IndexServer) -> None:
    project("lock")
    world.add("numpy", releases("numpy", ["2.5.0"]))
    assert "up to date" in project("lock", "--refresh").err
    done = project("lock", "--refresh", "-P", "numpy", "--diff")
    assert done.out.splitlines()[:2] == [
        "requirements.txt, locks/pylock.toml (linux-64): changed",
        "  ~ numpy 2.4.6 -> 2.5.0",
    ]
    assert pins_in(project.read())["numpy"] == "2.4.6"
    assert project("lock", "--refresh", "-U").code == 0
    assert pins_in(project.read())["numpy"] == pins_in_pylock(project)["numpy"] == "2.5.0"


def pins_in_pylock(project: Project) -> dict[str, str]:
    import tomli

    return {it["name"]: it["version"] for it in tomli.loads(project.read("locks/pylock.toml"))["packages"]}


@pytest.mark.thorough
def test_json_has_the_notes_with_their_codes(project: Project) -> None:
    first, again = project.data("lock", "-P", "scipy")["notes"], project.data("lock")["notes"]
    (unknown,) = (it for it in first if it["code"] == "not-locked")
    assert "scipy" in unknown["text"]
    assert unknown["fields"] == {"name": "scipy"}
    assert [it["code"] for it in again] == ["newer-needs-driver"]
    assert again[0]["fields"] == {"framework": "pytorch", "version": "2.15.0", "driver": "580.65.06"}


@pytest.mark.thorough
def test_a_newer_driver_changes_nothing_and_is_mentioned(project: Project) -> None:
    project("lock")
    before = project.read()
    project.say("535.183.01", "580.65.06")
    done = project("lock")
    assert project.read() == before
    assert "up to date" in done.err
    possible = "driver 580.65.06 allows CUDA 13.2: pytorch 2.15.0 with CUDA 13.2 would run here"
    assert possible in done.err, done.err
    assert "run `envsolve lock -U` to upgrade" in done.err
    (stack,) = {it["possible"]["stack"] for it in project.data("lock")["files"]}
    assert stack.startswith("pytorch 2.15.0 with CUDA 13")
    assert project("lock", "-U").code == 0
    assert pins_in(project.read())["torch"] == "2.15.0"


@pytest.mark.thorough
def test_an_older_driver_changes_only_what_must_change_and_gives_the_reason(project: Project) -> None:
    project.say("535.183.01", "580.65.06")
    project("lock")
    assert pins_in(project.read())["torch"] == "2.15.0"
    numpy = pins_in(project.read())["numpy"]
    project.say("580.65.06", "535.183.01")
    assert project("lock", "--check").code == 1
    first = project.data("lock", "--diff")["files"][0]
    assert (first["path"], first["status"]) == ("requirements.txt", "stale")
    assert {"name": "torch", "before": "2.15.0", "after": "2.14.1+cu126"} in first["changes"]
    assert "numpy" not in {it["name"] for it in first["changes"]}
    assert "CUDA 13.2 needs NVIDIA driver 580.65.06" in " ".join(first["reasons"])
    assert project("lock").code == 0
    assert pins_in(project.read())["numpy"] == numpy


@pytest.mark.thorough
def test_check_and_diff_write_nothing(project: Project) -> None:
    done = project("lock", "--check")
    assert done.code == 1
    assert "requirements.txt, locks/pylock.toml: missing" in done.err
    assert project("lock", "--diff").code == 0
    assert project.files == set()


def test_nothing_is_written_if_one_file_cannot_be(project: Project) -> None:
    project.say('"locks/pylock.toml"]', '"environment.yml"]\nconstraint-files = ["limits"]')
    project.file.with_name("limits").write_text("numpy<3\n")
    done = project("lock")
    assert done.code == 2
    assert "error: requirements-not-supported\n  environment.yml: " in done.err
    assert project.files == {"limits"}


@pytest.mark.thorough
def test_targets_share_a_lock_or_have_their_own(project: Project) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', "")
    project.say('"locks/pylock.toml"]', '"locks/pylock.toml"]\n[tool.envsolve.targets.desk]\ngpu = "RTX 3090"')
    project.file.write_text(
        project.file.read_text()
        + '[tool.envsolve.targets.cluster]\ngpu = "V100"\ndriver = "535.183.01"\n'
        + '[tool.envsolve.targets.laptop]\ngpu = "none"\noutputs = ["cpu.txt"]\n'
    )
    done = project("lock")
    assert done.code == 0, done.err
    pins = pins_in(project.read())
    assert pins["torch"] == "2.14.1+cu126"
    assert pins_in(project.read("cpu.txt"))["torch"].endswith("+cpu")
    assert "envsolve lock  # " in project.read().splitlines()[1]
    assert "desk: RTX 3090, linux-64; cluster: V100, driver 535.183.01" in project.read().splitlines()[1]
    assert project("lock", "--check").code == 0


def test_targets_without_a_common_stack_are_reported(project: Project) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', "")
    project.say("frameworks = [", 'cuda = "12.*"\nframeworks = [')
    project.file.write_text(
        project.file.read_text()
        + '[tool.envsolve.targets.old]\ngpu = "K80"\ndriver = "470.256.02"\n'
        + '[tool.envsolve.targets.new]\ngpu = "RTX 5090"\n'
    )
    done = project("lock")
    assert done.code == 1
    assert "requirements.txt: " in done.err
    assert "[tool.envsolve.targets.NAME] outputs" in done.err
    assert "--host" not in done.err


@pytest.mark.thorough
def test_status_reports_the_state_of_the_files(project: Project, world: IndexServer) -> None:
    assert [it["status"] for it in project.data("status")["files"]] == ["missing", "missing"]
    project("lock")
    assert {it["status"] for it in project.data("status")["files"]} == {"fits"}
    project.say("535.183.01", "535.309.01")
    assert {it["status"] for it in project.data("status")["files"]} == {"fits"}, "a patch of the driver changes nothing"
    project.say("535.309.01", "580.65.06")
    fits = project.data("status")["files"]
    assert {it["status"] for it in fits} == {"fits"}
    assert "pytorch 2.15.0" in fits[0]["newer"][0]
    project.say('["pytorch"]', '["pytorch>=2"]')
    assert {it["status"] for it in project.data("status")["files"]} == {"stale"}
    project.say("RTX 3090", "RTX 5090")
    (gone,) = {it["status"] for it in project.data("status")["files"]}
    assert gone == "does-not-run"
    assert project("status").code == 1


@pytest.mark.thorough
def test_a_project_in_a_parent_directory_is_found(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = project.directory / "src" / "demo"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert project("lock").code == 0
    assert {"requirements.txt", "locks/pylock.toml"} <= project.files
    assert project("status").code == 0
    monkeypatch.chdir("/")
    assert project("lock", "--check", "--project", str(project.directory)).code == 0


def test_without_a_project_the_error_suggests_init(
    tmp_path: Path, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = envsolve("lock")
    assert done.code == 2
    assert done.err.startswith("error: no-project\n")
    assert "envsolve init --framework pytorch" in done.err


@pytest.mark.parametrize("directory", [".", "src/package"])
def test_a_misspelled_table_is_reported(
    directory: str, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.envsolv]\nframeworks = ["pytorch"]\n', encoding="utf-8")
    (tmp_path / directory).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / directory)
    done = envsolve("lock")
    assert done.err.startswith("error: no-project\n")
    assert f"hint: did you mean [tool.envsolve]? {file} has [tool.envsolv]\n" in done.err


def test_invalid_toml_is_reported_with_a_hint(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.envsolve]\nframeworks = ["pytorch"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    done = envsolve("lock")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: file-unreadable")
    assert done.err.endswith("hint: fix the file at that place\n")
    (tmp_path / "pyproject.toml").write_bytes(b"# \xff\n")
    assert envsolve("lock").err.endswith("hint: save the file as UTF-8\n")


def test_mistakes_in_the_project_are_reported_with_their_line(project: Project) -> None:
    project.say('frameworks = ["pytorch"]', 'frameworks = ["pytroch"]')
    done = project("lock")
    assert done.code == 2
    assert "pyproject.toml:6: frameworks: 'pytroch' is not a framework that envsolve knows" in done.err
    assert "did you mean pytorch" in done.err
    project.say('"requirements.txt"', '"requirements.lck"')
    project.say("pytroch", "pytorch")
    assert "pyproject.toml:14: outputs: cannot infer the format of requirements.lck" in project("lock").err


@pytest.mark.thorough
@pytest.mark.parametrize("outputs", ['"requirements.txt"', '"locks/pylock.toml"'])
def test_without_a_gpu_the_lock_names_its_machine(
    outputs: str, project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    """As in CI: the result of `auto` on the machine that locked must not become a lock for the CPU."""
    project.say('["requirements.txt", "locks/pylock.toml"]', f"[{outputs}]")
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    assert project("lock").code == 0
    before = project.read(outputs.strip('"'))
    assert '"8.6"' in before
    monkeypatch.delenv("UV_CUDA_DRIVER_VERSION")
    monkeypatch.delenv("CONDA_OVERRIDE_CUDA_ARCH")
    done = project("lock", "--check")
    assert done.code == 0, done.err
    assert "no NVIDIA GPU was found: the lock is still for the recorded machine (8.6, driver 525.60.13)" in done.err
    assert project("lock").code == 0
    assert project.read(outputs.strip('"')) == before
    assert project.data("status")["files"][0]["status"] == "fits"


@pytest.mark.thorough
def test_options_override_the_project_for_one_run(project: Project) -> None:
    project("lock")
    before = project.read()
    done = project("lock", "--gpu", "RTX 5090", "--check")
    assert done.code == 1
    assert "has no code for compute capability 12.0" in done.err
    assert project("lock", "--driver", "535.309.01", "--check").code == 0
    done = project("lock", "typing-extensions<4.10", "--diff")
    assert done.code == 1, "no torch goes with it"
    assert "requirements.txt: " in done.err
    first = project.data("lock", "--gpu", "none", "--diff")["files"][0]
    assert {"name": "torch", "before": "2.14.1+cu126", "after": "2.13.0+cpu"} in first["changes"]
    assert project.read() == before


def test_a_typed_machine_does_not_replace_named_ones(project: Project) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', "")
    project.file.write_text(project.file.read_text() + '[tool.envsolve.targets.desk]\ngpu = "RTX 3090"\n')
    done = project("lock", "--gpu", "V100")
    assert done.code == 2
    assert "--gpu names a machine, but the project has its own: desk" in done.err


@pytest.mark.thorough
def test_another_supported_gpu_makes_a_lock_stale_and_changes_no_package(
    project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    project("lock")
    pins = pins_in(project.read())
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.0")
    stale = project.data("status")["files"][0]
    assert stale["status"] == "stale"
    assert stale["reasons"] == ["compute capability 8.0 instead of 8.6"]
    assert project("lock", "--check").code == 1
    project("lock")
    assert pins_in(project.read()) == pins
    assert project("status").code == 0


@pytest.mark.thorough
def test_all_files_of_a_project_have_the_same_versions(project: Project, world: IndexServer) -> None:
    project.say('["requirements.txt", "locks/pylock.toml"]', '["locks/pylock.toml"]')
    project("lock")
    world.add("numpy", releases("numpy", ["2.5.0"]))
    project.say('["locks/pylock.toml"]', '["requirements.txt", "locks/pylock.toml"]')
    assert project("lock", "--refresh").code == 0
    assert pins_in(project.read())["numpy"] == pins_in_pylock(project)["numpy"] == "2.4.6"
    path = project.directory / "requirements.txt"
    path.write_text(path.read_text().replace("numpy==2.4.6", "numpy==1.26.4"))
    assert project("lock", "--check").code == 1
    assert project("lock", "--refresh", "-P", "numpy").code == 0
    assert pins_in(project.read())["numpy"] == pins_in_pylock(project)["numpy"] == "2.5.0"


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["requirements.txt", "pylock.toml"])
def test_an_empty_file_is_not_a_lock(name: str, project: Project) -> None:
    project.say('["requirements.txt", "locks/pylock.toml"]', f'["{name}"]')
    (project.directory / name).write_text("\n")
    done = project("lock")
    assert done.code == 0, done.err
    assert "Made by envsolve" in (project.directory / name).read_text()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("output", "name"),
    [
        *((it, it) for it in (EXAMPLES[name].file for name in (*PYTHON_FORMATS, "environment", "pixi"))),
        ("{platform}.txt", "linux-64.txt"),
    ],
)
def test_foreign_files_are_only_overwritten_with_force(output: str, name: str, project: Project) -> None:
    project.say('["requirements.txt", "locks/pylock.toml"]', f'["{output}"]')
    project.say("project-dependencies = true\n", "")
    path = project.directory / name
    path.write_text("torch\n")
    done = project("lock")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: not-a-lock")
    assert f"outputs: {name} was not overwritten: envsolve did not write it" in done.err
    assert path.read_text() == "torch\n"
    done = project("lock", "--force")
    assert done.code == 0, done.err
    assert "torch" in path.read_text()
    assert "Made by envsolve" in path.read_text()
    assert project("lock", "--check").code == 0


def test_an_input_cannot_be_an_output(project: Project) -> None:
    (project.directory / "requirements.txt").write_text("rich --hash=sha256:00\n")
    project.say("outputs = [", 'requirement-files = ["./requirements.txt"]\noutputs = [')
    done = project("lock")
    assert done.code == 2
    assert "requirements.txt is a requirements file, and the lock would overwrite it" in done.err


def test_a_python_lock_has_no_place_for_a_conda_file(project: Project) -> None:
    (project.directory / "environment.yml").write_text("dependencies: [numpy]\n")
    project.say("outputs = [", 'requirement-files = ["environment.yml"]\noutputs = [')
    for words in (("lock",), ("lock", "--check"), ("status",)):
        done = project(*words)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error: contradictory-options\n  pyproject.toml:")
        assert "environment.yml is a conda file, but the Python lock requirements.txt uses package indexes" in done.err


@pytest.mark.thorough
@pytest.mark.parametrize("variable", ["UV_CUDA_DRIVER_VERSION", "CONDA_OVERRIDE_CUDA"])
def test_a_driver_without_a_gpu_keeps_the_gpus_of_the_lock(
    variable: str, project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    """As in CI, where conda's variable is set so that builds for a GPU can be solved."""
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    monkeypatch.setenv(variable, "535.183.01" if variable.startswith("UV") else "12.2")
    project("lock")
    monkeypatch.delenv("CONDA_OVERRIDE_CUDA_ARCH")
    assert project("lock", "--check").code == 0
    monkeypatch.delenv(variable)
    assert project("lock", "--check").code == 0


@pytest.mark.thorough
def test_a_lock_for_any_gpu_is_not_for_the_cpu(
    project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    project("lock")
    before = project.read()
    assert "nvidia-" in before
    monkeypatch.delenv("UV_CUDA_DRIVER_VERSION")
    assert project("lock").code == 0
    assert project.read() == before


@pytest.mark.thorough
def test_another_product_of_the_same_capability_changes_nothing(project: Project) -> None:
    project("lock")
    project.say("RTX 3090", "RTX 3080")
    assert project("lock", "--check").code == 0
    assert {it["status"] for it in project.data("status")["files"]} == {"fits"}
    project.say("RTX 3080", "RTX 4090")
    assert project("lock", "--check").code == 1


@pytest.mark.thorough
def test_another_c_library_of_the_machine_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    monkeypatch.setattr("envsolve.host.detection.this_glibc", lambda: LibcVersion(2, 31))
    project("lock")
    assert 'glibc = "2.31"' in project.read()
    monkeypatch.setattr("envsolve.host.detection.this_glibc", lambda: LibcVersion(2, 39))
    assert project("lock", "--check").code == 0
    monkeypatch.setattr("envsolve.host.detection.this_glibc", lambda: LibcVersion(2, 28))
    assert project("lock", "--check").code == 1


@pytest.mark.thorough
def test_the_project_limits_the_python(project: Project) -> None:
    project.say('python = "3.11.7"\n', "")
    project.say('name = "demo"\n', 'name = "demo"\nrequires-python = ">=3.11,<3.12"\n')
    project("lock")
    assert "# Resolved for: Python 3.11." in project.read()
    project.say('frameworks = ["pytorch"]', 'frameworks = ["pytorch"]\npython = "3.14"')
    done = project("lock")
    assert done.code == 2
    assert "requires-python" in done.err


@pytest.mark.thorough
def test_an_edited_digest_is_reported(project: Project) -> None:
    project("lock")
    path = project.directory / "requirements.txt"
    text = path.read_text()
    digest = text.partition("--hash=sha256:")[2][:64]
    path.write_text(text.replace(digest, "0" * 64))
    done = project("lock", "--check", "--diff")
    assert done.code == 1
    assert "requirements.txt: out of date, 1 package changed" in done.err
    assert "(other files)\n" in done.out
    project("lock")
    assert path.read_text() == text


@pytest.mark.thorough
def test_a_user_comment_is_preserved(project: Project) -> None:
    project("lock")
    for name in project.files:
        path = project.directory / name
        path.write_text(f"# mine\n{path.read_text()}# mine too\n")
    before = {name: project.read(name) for name in project.files}
    assert project("lock", "--check").code == 0
    assert "up to date" in project("lock").err
    assert {name: project.read(name) for name in project.files} == before


STACKS = ("environment.yml", "pixi.toml", "answer.json")
A_STACK = """\
[tool.envsolve]
frameworks = ["pytorch"]
sources = ["conda-forge"]
platforms = ["linux-64"]
gpus = ["RTX 3090"]
driver = "580.65.06"
outputs = ["environment.yml", "pixi.toml", "answer.json"]
"""


@pytest.mark.thorough
def test_every_format_of_a_stack_is_read_back(project: Project) -> None:
    project.file.write_text(A_STACK)
    assert project("lock").code == 0
    assert {it["path"]: it["status"] for it in project.data("status")["files"]} == dict.fromkeys(STACKS, "fits")
    project.say("580.65.06", "580.95.05")
    project.say("RTX 3090", "RTX 3080")
    assert project("lock", "--check").code == 0
    project.say("580.95.05", "535.183.01")
    assert {it["path"]: it["status"] for it in project.data("status")["files"]} == dict.fromkeys(STACKS, "does-not-run")
    project.say("535.183.01", "580.65.06")
    project.say('frameworks = ["pytorch"]', 'frameworks = ["pytorch<2.10"]')
    changed = {it["path"]: {of["name"] for of in it["changes"]} for it in project.data("lock", "--diff")["files"]}
    assert {name for name, names in changed.items() if "pytorch" in names} == set(STACKS)
    assert {it["path"]: it["status"] for it in project.data("status")["files"]} == dict.fromkeys(STACKS, "stale")


OFF = ("--offline", "--no-cache")
"""Nothing is there to ask: what answers is the lock."""


@pytest.mark.thorough
def test_a_matching_lock_queries_no_index(project: Project) -> None:
    project("lock")
    done = project("lock", "--check", *OFF)
    assert done.code == 0, done.err
    assert done.err.endswith("note: requirements.txt, locks/pylock.toml: up to date\n")
    assert project("lock", *OFF).code == 0
    project.say('driver = "535.183.01"', 'driver = "550.54.14"')
    assert project("lock", "--check", *OFF).code == 0


@pytest.mark.thorough
def test_files_that_differ_are_not_both_trusted(project: Project) -> None:
    project("lock")
    older = project.read("locks/pylock.toml")
    project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "six"]')
    project("lock")
    (project.directory / "locks/pylock.toml").write_text(older)
    assert project("lock", "--check").code == 1


@pytest.mark.thorough
def test_an_upgrade_of_a_package_in_no_lock_is_reported(project: Project) -> None:
    project("lock")
    assert "-P nmpy: not in any lock\n" in project("lock", "-P", "nmpy").err
    assert "-P" not in project("lock", "-P", "Typing_Extensions").err


def test_a_machine_without_a_gpu_shares_no_lock_with_others(project: Project) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', "")
    project.file.write_text(
        project.file.read_text()
        + '[tool.envsolve.targets.desk]\ngpu = "RTX 3090"\ndriver = "535.183.01"\n'
        + '[tool.envsolve.targets.laptop]\ngpu = "none"\n'
    )
    done = project("lock")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: hosts-differ")
    assert "targets.laptop: laptop has no NVIDIA GPU, but others that share its files have one" in done.err
    assert done.err.count("hint:") == 1


def test_suggestions_use_the_keys_of_the_project(project: Project) -> None:
    project.say('["pytorch"]', '["pytorch>=2.15"]')
    done = project("lock")
    assert done.code == 1
    assert "envsolve --" not in done.err
    assert "\nhint: install NVIDIA driver 580.65.06 or newer" in done.err
    assert 'then fits: driver = "580.65.06" in pyproject.toml\n' in done.err
    assert "(from driver in pyproject.toml)" in done.err


@pytest.mark.thorough
def test_a_driver_option_keeps_the_gpus_of_the_lock(
    project: Project, monkeypatch: pytest.MonkeyPatch, fake_driver: Any
) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', 'gpus = "auto"\n')
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "535.183.01")
    project("lock")
    monkeypatch.delenv("CONDA_OVERRIDE_CUDA_ARCH")
    monkeypatch.delenv("UV_CUDA_DRIVER_VERSION")
    before = project.read()
    assert project("lock", "--driver", "580.65.06").code == 0
    assert project.read() == before
    done = project("status")
    assert done.code == 0
    assert "the lock is still for the recorded machine" in done.err


@pytest.mark.thorough
def test_a_cpu_package_on_a_machine_with_a_gpu_is_reported(project: Project, world: IndexServer) -> None:
    world.add("onnxruntime", releases("onnxruntime", ["1.27.0"], tags="cp311-cp311-manylinux_2_28_x86_64"))
    done = project("lock", "onnxruntime")
    assert done.code == 0, done.err
    assert "onnxruntime is a CPU build and required by that name: onnxruntime-gpu" in done.err


@pytest.mark.thorough
def test_a_target_has_its_own_host_files(project: Project) -> None:
    hosts = Path(__file__).parents[1] / "hosts"
    for name in ("rtx-3090-535.183.01.json", "rtx-4090-550.163.01.json", "no-gpu.json"):
        (project.directory / name).write_bytes((hosts / name).read_bytes())
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"\n', "")
    target = "[tool.envsolve.targets.{}]\n{}\n"
    shared = project.file.read_text()
    two = 'hosts = ["rtx-3090-535.183.01.json", "rtx-4090-550.163.01.json"]'
    project.file.write_text(shared + target.format("lab", two) + target.format("lab2", 'gpu = "A100"'))
    assert project("lock").code == 0
    assert "lab: rtx-3090-535.183.01.json: rtx-3090-535.183.01.json, rtx-4090" in project.read().splitlines()[1]
    project.file.write_text(
        shared + target.format("lab", 'gpu = "A100"') + target.format("lab2", 'hosts = ["no-gpu.json"]')
    )
    done = project("lock")
    assert done.code == 2
    assert "targets.lab2: lab2 has no NVIDIA GPU" in done.err


def test_a_suggested_version_is_the_newest_that_fits_despite_an_existing_file(project: Project) -> None:
    project.say('["requirements.txt", "locks/pylock.toml"]', '["environment.yml"]')
    project.say("project-dependencies = true\n", "")
    project.say('["pytorch"]', '["pytorch<2.8"]')
    done = project("lock")
    assert done.code == 0, done.err
    project.say('"pytorch<2.8"', '"pytorch>=99"')
    beside = project("lock")
    (project.directory / "environment.yml").unlink()
    assert (beside.code, beside.err) == (1, project("lock").err)
    assert "hint: the newest pytorch that fits is " in beside.err


@pytest.mark.thorough
def test_the_upgrade_suggestion_matches_the_command_line(project: Project) -> None:
    project("lock")
    tried = project("lock", "--driver", "580.65.06", "--diff")
    assert tried.err.rstrip().endswith("; add -U to upgrade"), tried.err
    assert "to upgrade" not in project("lock", "--driver", "580.65.06", "--diff", "-U").err
    project.say('"535.183.01"', '"580.65.06"')
    assert project("lock").err.rstrip().endswith("; run `envsolve lock -U` to upgrade")


@pytest.mark.thorough
def test_a_ci_system_shows_a_stale_lock_at_the_changed_line(project: Project) -> None:
    (name,) = (name for name in ("envsolve.toml", "pyproject.toml") if (project.directory / name).exists())
    outputs = next(n for n, it in enumerate(project.read(name).splitlines(), 1) if it.startswith("outputs"))
    done = project("lock", "--check", "--output-format", "github")
    missing = (
        f"::error file={name},line={outputs},title=envsolve lock%3A lock-new::requirements.txt (linux-64) is missing"
    )
    assert (done.code, done.out.splitlines()[0].startswith(missing)) == (1, True), done.out
    assert project("status", "--output-format", "github").out.count(f"file={name},line={outputs}") == 2
    project("lock")
    assert project("lock", "--check", "--output-format", "github").out == ""
    project.say("535.183.01", "470.82")
    stale = project("status", "--output-format", "github").out
    torch = next(n for n, it in enumerate(project.read().splitlines(), 1) if it.startswith("torch=="))
    assert f"::error file=requirements.txt,line={torch},title=envsolve status%3A does-not-run::" in stale
    assert "%0Afix: Run `envsolve lock`." in stale
    assert project("lock", "--output-format", "junit").out.count("<failure") == 0  # it was written
