"""Messages about a project: who requires something, and which key changes it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.locked import pins_in
from tests.cli.test_lock import Project, project
from tests.cli.worlds import CP311, torch, vision
from tests.conftest import Envsolve
from tests.index.server import IndexServer

__all__ = ["project"]


@pytest.mark.thorough
def test_a_lock_names_the_project_as_its_requester(project: Project) -> None:
    project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "typing-extensions"]')
    assert project("lock").code == 0
    assert "    # via\n    #   pyproject.toml\n    #   torch\n" in project.read()
    assert 'via = ["pyproject.toml"]' in project.read("locks/pylock.toml")
    assert "the command line" not in project.read() + project.read("locks/pylock.toml")


@pytest.mark.thorough
def test_options_beside_a_project_are_attributed_to_the_command_line(project: Project) -> None:
    assert project("lock", "typing-extensions").code == 0
    assert "    # via\n    #   the command line\n    #   torch\n" in project.read()
    assert "    # via pyproject.toml\n" in project.read()


@pytest.mark.thorough
def test_an_envsolve_toml_and_the_tables_beside_it_are_distinguished(project: Project) -> None:
    head, _, table = project.file.read_text().partition("[tool.envsolve]\n")
    project.file.write_text(head)
    own = project.directory / "envsolve.toml"
    own.write_text(f'requirements = ["typing-extensions"]\n{table}')
    assert project("lock").code == 0
    assert "    # via\n    #   envsolve.toml\n    #   torch\n" in project.read()
    assert "    # via pyproject.toml\n" in project.read()
    own.write_text(own.read_text().replace('["pytorch"]', '["pytorch>=2.15"]'))
    assert "(from driver in envsolve.toml)" in project("lock").err


@pytest.mark.thorough
def test_older_locks_that_recorded_a_command_line_are_up_to_date(project: Project) -> None:
    project("lock")
    for name in project.files:
        path = project.directory / name
        path.write_text(path.read_text().replace("pyproject.toml", "the command line"))
    assert project("lock", "--check").code == 0


def test_a_conflict_names_the_file_with_the_requirement(project: Project) -> None:
    project.say('dependencies = ["numpy"]', 'dependencies = ["numpy<2", "numpy>=2"]')
    done = project("lock")
    assert done.code == 1
    assert "\ncause: pyproject.toml requires numpy<2\n" in done.err


def test_a_driver_option_is_attributed_to_the_option(project: Project) -> None:
    project.say('["pytorch"]', '["pytorch>=2.15"]')
    project.say("535.183.01", "580.65.06")
    done = project("lock", "--driver", "550.54.15", "--diff")
    assert done.code == 1
    assert "(from --driver)" in done.err
    assert "then fits: --driver 580.65.06\n" in done.err


WAYS = {
    "python": (('python = "3.11.7"', 'python = "3.19"'), 'with Python 3.14 it fits: python = "3.14" in pyproject.toml'),
    "cuda": (('python = "3.11.7"', 'cuda = "13"'), 'it fits: cuda = "12.6" in pyproject.toml'),
    "source": (
        ('python = "3.11.7"', 'sources = ["jax-releases"]'),
        'allow its source: sources = ["pytorch"] in pyproject.toml',
    ),
    "framework": (
        ('["pytorch"]', '["pytorch>=2.15"]'),
        'frameworks = ["pytorch==2.14.1"] in pyproject.toml',
    ),
    "driver": (('["pytorch"]', '["pytorch>=2.15"]'), 'then fits: driver = "580.65.06" in pyproject.toml'),
    "gpu": (
        ('gpus = ["RTX 3090"]\ndriver = "535.183.01"', 'gpus = ["K80", "RTX 5090"]'),
        'gpus = "NVIDIA GeForce RTX 5090" in pyproject.toml',
    ),
    "a GPU of an unknown name": (('"RTX 3090"', '"RTX 3091"'), 'e.g. gpus = "8.6" in pyproject.toml'),
    "a GPU of no kind": (('"RTX 3090"', '"4.2"'), "gpus in pyproject.toml accepts one of these\n"),
    "a day before all builds": (
        ('["pytorch"]', '["pytorch"]\nexclude-newer = "2020-01-01"'),
        'fits with a later date: exclude-newer = "2022-10-29T00:00:00Z" in pyproject.toml',
    ),
    "a day before all uploads": (
        ('frameworks = ["pytorch"]', 'exclude-newer = "2020-01-01"'),
        "set a later date with exclude-newer in pyproject.toml",
    ),
    "a package that nobody knows": (('["numpy"]', '["nmpy"]'), "with extra-index-urls in pyproject.toml"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", WAYS)
def test_a_suggestion_is_a_key_of_the_project(name: str, project: Project) -> None:
    (old, new), way = WAYS[name]
    project.say(old, new)
    done = project("lock")
    assert done.code in (1, 2)
    hints = done.err.partition("hint:")[2]
    assert way in hints, done.err
    assert "--" not in done.err.replace("cause: you typed: envsolve lock --cache-dir", "")


def lack_vision(world: IndexServer) -> None:
    """Put a mirror without torchvision first, and the one for its own torch on the default index."""
    world.fault("/whl/cu126/torchvision/", status=404)
    world.add("torchvision", [vision("0.29.1", "2.14.1"), vision("0.23.0", "2.8.0")])


class TestAMirrorOfPyTorch:
    """Its folders are those of PyTorch's index, some of which may be missing."""

    @pytest.mark.thorough
    def test_without_the_folder_of_the_best_build_the_next_is_used(self, project: Project, world: IndexServer) -> None:
        world.fault("/whl/cu126/*", status=404)
        done = project("lock")
        assert done.code == 0, done.err
        assert pins_in(project.read())["torch"] == "2.8.0"
        assert "note: torch 2.8.0 is used, not 2.14.1: http" in done.err
        assert "/whl/cu126 does not have torch, and " in done.err
        assert done.err.count("not 2.14.1") == 1
        assert "would run here" not in done.err

    @pytest.mark.thorough
    def test_without_one_release_the_next_of_the_same_folder_is_used(
        self, project: Project, world: IndexServer
    ) -> None:
        world.index("/part/cu126/", "pytorch").add("torch", [torch("2.14.0+cu126")])
        project.say("/whl", "/part")
        done = project("lock")
        assert done.code == 0, done.err
        assert pins_in(project.read())["torch"] == "2.14.0+cu126"

    def test_without_all_requested_releases_the_key_for_another_index_is_named(
        self, project: Project, world: IndexServer
    ) -> None:
        world.fault("/whl/cu126/*", status=404)
        project.say('["pytorch"]', '["pytorch==2.14.1"]')
        done = project("lock")
        assert (done.code, done.err.splitlines()[0]) == (1, "error: release-not-on-index")
        assert "/whl/cu126 does not have torch, and " in done.err
        assert "that has this build with pytorch-index-url in pyproject.toml\n" in done.err

    @pytest.mark.thorough
    def test_without_a_companion_another_stack_is_used(self, project: Project, world: IndexServer) -> None:
        lack_vision(world)
        project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "torchvision"]')
        done = project("lock")
        assert done.code == 0, done.err
        found = pins_in(project.read())
        assert (found["torch"], found["torchvision"]) == ("2.8.0", "0.23.0")
        assert "note: a better build was skipped: http" in done.err
        assert "/whl/cu126 does not have torchvision; the lock has torch 2.8.0\n" in done.err

    def test_without_a_companion_an_exact_stack_is_refused(self, project: Project, world: IndexServer) -> None:
        lack_vision(world)
        project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "torchvision"]')
        project.say('["pytorch"]', '["pytorch==2.14.1"]')
        done = project("lock")
        assert (done.code, done.err.splitlines()[0]) == (1, "error: release-not-on-index")
        assert "/whl/cu126 does not have torchvision\n" in done.err
        assert "that has torchvision for cu126 with pytorch-index-url in pyproject.toml\n" in done.err

    @pytest.mark.thorough
    @pytest.mark.parametrize("more", [{"tags": "py3-none-any"}, {"of": "+cu126"}])
    def test_without_a_companion_another_index_may_provide_it(
        self, more: dict[str, str], project: Project, world: IndexServer
    ) -> None:
        world.fault("/whl/cu126/torchvision/", status=404)
        of = more.get("of", "")
        world.add("torchvision", [vision(f"0.29.1{of}", "2.14.1", more.get("tags", CP311))])
        project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "torchvision"]')
        assert project("lock").code == 0
        found = pins_in(project.read())
        assert (found["torch"], found["torchvision"]) == ("2.14.1+cu126", f"0.29.1{of}")

    @pytest.mark.thorough
    def test_with_torch_alone_and_without_a_folder_the_next_is_used(self, project: Project, world: IndexServer) -> None:
        world.withdraw("torch")
        project.say("535.183.01", "580.65.06")
        done = project("lock")
        assert done.code == 0, done.err
        assert pins_in(project.read())["torch"] == "2.14.1+cu126"
        assert "is used, not 2.15.0: no index other than PyTorch's has torch\n" in done.err
        assert "knows torch" not in done.err
        project.say('["pytorch"]', '["pytorch==2.14.1+cu130"]')
        done = project("lock", "-U")
        assert (done.code, done.err.splitlines()[0]) == (1, "error: release-not-on-index")
        assert "/whl/cu130 does not have torch, and no other index has it\n" in done.err

    @pytest.mark.thorough
    @pytest.mark.parametrize("wrong", [{"status": 500}, {"status": 403}, {"cut": True}])
    def test_that_fails_is_an_error_and_not_another_build(
        self, wrong: dict[str, int], project: Project, world: IndexServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        world.fault("/whl/cu126/*", **wrong)  # type: ignore[arg-type]
        done = project("lock")
        assert done.code == 3, done.err
        assert project.files == set()
        if wrong != {"status": 403}:
            assert "with pytorch-index-url in pyproject.toml\n" in done.err

    def test_that_is_unreachable_is_an_error(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        text = project.file.read_text()
        index = text.partition('pytorch-index-url = "')[2].partition('"')[0]
        project.say(f'pytorch-index-url = "{index}"', 'pytorch-index-url = "http://127.0.0.1:9/whl"')
        done = project("lock")
        assert (done.code, done.err.splitlines()[0]) == (3, "error: index-unreachable")
        assert "hint: use another PyTorch index, such as a mirror, with pytorch-index-url in pyproject.toml\n" in (
            done.err
        )
        assert "with index-url" not in done.err


@pytest.mark.thorough
def test_ignored_settings_are_reported_with_their_variable(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.file.write_text(
        "\n".join(it for it in project.file.read_text().splitlines() if not it.startswith("index-url"))
    )
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_INDEX_URL", project.index_url)
    done = project("lock")
    assert "note: find-links in PIP_FIND_LINKS is ignored\n" in done.err


@pytest.mark.thorough
def test_a_requested_change_is_not_reported_as_an_error(project: Project, world: IndexServer) -> None:
    project("lock")
    project.say("535.183.01", "580.65.06")
    assert "locks/pylock.toml: would be written, " in project("lock", "-U", "--diff").err
    assert "locks/pylock.toml: out of date, " in project("lock", "-U", "--check").err


@pytest.mark.thorough
def test_facts_behind_each_file_are_shown_on_request(project: Project) -> None:
    quiet, verbose = project("lock"), project("lock", "-v")
    fact = "note: requirements.txt, locks/pylock.toml: CUDA 12.6 needs NVIDIA driver"
    assert fact not in quiet.err
    assert fact in verbose.err
    assert fact in project("lock", "-v").err


class TestInit:
    """Its parts are typed, and no file has them until they are complete."""

    def test_offers_its_own_options(self, tmp_path: Path, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        done = envsolve("init", "-f", "pytorch>=2.15", "--gpu", "8.6", "--driver", "535.183.01")
        assert (done.code, list(tmp_path.iterdir())) == (1, [])
        assert "(from --driver)" in done.err
        assert "then fits: --driver 580.65.06\n" in done.err
        assert "pyproject.toml" not in done.err

    def test_suggests_a_later_lock_if_no_index_answers(
        self, tmp_path: Path, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        arguments = ("-f", "pytorch", "--gpu", "8.6", "--python", "3.11", "--index-url", "http://127.0.0.1:9/simple")
        done = envsolve("init", *arguments)
        assert (done.code, list(tmp_path.iterdir())) == (3, [])
        assert "with --index-url\n" in done.err
        assert done.err.endswith("hint: or write only the project, and lock later: --no-lock\n")
        assert envsolve("init", *arguments, "--no-lock").code == 0


def test_why_not_on_a_machine_without_a_gpu_notes_that_it_is_about_the_cpu(
    envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    done = envsolve("-f", "pytorch", "--why-not", "pytorch==2.7")
    assert "note: CONDA_OVERRIDE_CUDA is empty, which means no CUDA: this is a CPU environment\n" in done.err


def test_a_gpu_on_another_platform_is_reported_with_the_key_that_names_it(project: Project) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"', 'gpus = ["12.1"]')
    assert 'linux-64: use platforms = "linux-aarch64" in pyproject.toml to make one for it\n' in project("lock").err
