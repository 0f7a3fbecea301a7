"""What is said of a project's words: who asks for them, and which key changes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.locked import pins_in
from tests.cli.test_lock import Project, project
from tests.cli.worlds import CP311, torch, vision
from tests.conftest import Envsolve
from tests.index.server import IndexServer

__all__ = ["project"]


def test_a_lock_says_that_the_project_asks(project: Project) -> None:
    project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "typing-extensions"]')
    assert project("lock").code == 0
    assert "    # via\n    #   pyproject.toml\n    #   torch\n" in project.read()
    assert 'via = ["pyproject.toml"]' in project.read("locks/pylock.toml")
    assert "the command line" not in project.read() + project.read("locks/pylock.toml")


def test_what_is_typed_beside_a_project_is_the_command_lines(project: Project) -> None:
    assert project("lock", "typing-extensions").code == 0
    assert "    # via\n    #   the command line\n    #   torch\n" in project.read()
    assert "    # via pyproject.toml\n" in project.read()


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


def test_locks_that_told_of_a_command_line_are_right_as_they_are(project: Project) -> None:
    project("lock")
    for name in project.files:
        path = project.directory / name
        path.write_text(path.read_text().replace("pyproject.toml", "the command line"))
    assert project("lock", "--check").code == 0


def test_a_conflict_names_the_file_that_asks(project: Project) -> None:
    project.say('dependencies = ["numpy"]', 'dependencies = ["numpy<2", "numpy>=2"]')
    done = project("lock")
    assert done.code == 1
    assert "\ncause: pyproject.toml requires numpy<2\n" in done.err


def test_a_driver_that_is_typed_is_that_of_the_option(project: Project) -> None:
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


@pytest.mark.parametrize("name", WAYS)
def test_a_way_out_is_a_key_of_the_project(name: str, project: Project) -> None:
    (old, new), way = WAYS[name]
    project.say(old, new)
    done = project("lock")
    assert done.code in (1, 2)
    hints = done.err.partition("hint:")[2]
    assert way in hints, done.err
    assert "--" not in done.err.replace("cause: you typed: envsolve lock --cache-dir", "")


def lack_vision(world: IndexServer) -> None:
    """Have the mirror without torchvision, and the default index with the one for its own torch."""
    world.fault("/whl/cu126/torchvision/", status=404)
    world.add("torchvision", [vision("0.29.1", "2.14.1"), vision("0.23.0", "2.8.0")])


class TestAMirrorOfPyTorch:
    """Its folders are those of PyTorch's index, some of which it may lack."""

    def test_that_lacks_the_folder_of_the_best_build_leads_to_the_next(
        self, project: Project, world: IndexServer
    ) -> None:
        world.fault("/whl/cu126/*", status=404)
        done = project("lock")
        assert done.code == 0, done.err
        assert pins_in(project.read())["torch"] == "2.8.0"
        assert "note: torch 2.8.0 is used, not 2.14.1: http" in done.err
        assert "/whl/cu126 does not have torch, and " in done.err
        assert done.err.count("not 2.14.1") == 1
        assert "would run here" not in done.err

    def test_that_lacks_one_release_leads_to_the_next_of_the_same_folder(
        self, project: Project, world: IndexServer
    ) -> None:
        world.index("/part/cu126/", "pytorch").add("torch", [torch("2.14.0+cu126")])
        project.say("/whl", "/part")
        done = project("lock")
        assert done.code == 0, done.err
        assert pins_in(project.read())["torch"] == "2.14.0+cu126"

    def test_that_lacks_all_that_is_requested_is_reported_with_the_key_that_names_another(
        self, project: Project, world: IndexServer
    ) -> None:
        world.fault("/whl/cu126/*", status=404)
        project.say('["pytorch"]', '["pytorch==2.14.1"]')
        done = project("lock")
        assert (done.code, done.err.splitlines()[0]) == (1, "error: release-not-on-index")
        assert "/whl/cu126 does not have torch, and " in done.err
        assert "that has this build with pytorch-index-url in pyproject.toml\n" in done.err

    def test_that_lacks_a_companion_leads_to_a_stack_that_has_it(self, project: Project, world: IndexServer) -> None:
        lack_vision(world)
        project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "torchvision"]')
        done = project("lock")
        assert done.code == 0, done.err
        found = pins_in(project.read())
        assert (found["torch"], found["torchvision"]) == ("2.8.0", "0.23.0")
        assert "note: a better build was skipped: http" in done.err
        assert "/whl/cu126 does not have torchvision; the lock has torch 2.8.0\n" in done.err

    def test_that_lacks_a_companion_is_reported_where_no_other_stack_is_requested(
        self, project: Project, world: IndexServer
    ) -> None:
        lack_vision(world)
        project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "torchvision"]')
        project.say('["pytorch"]', '["pytorch==2.14.1"]')
        done = project("lock")
        assert (done.code, done.err.splitlines()[0]) == (1, "error: release-not-on-index")
        assert "/whl/cu126 does not have torchvision\n" in done.err
        assert "that has torchvision for cu126 with pytorch-index-url in pyproject.toml\n" in done.err

    @pytest.mark.parametrize("more", [{"tags": "py3-none-any"}, {"of": "+cu126"}])
    def test_that_lacks_a_companion_leaves_it_to_an_index_whose_build_goes_with_any_or_with_this(
        self, more: dict[str, str], project: Project, world: IndexServer
    ) -> None:
        world.fault("/whl/cu126/torchvision/", status=404)
        of = more.get("of", "")
        world.add("torchvision", [vision(f"0.29.1{of}", "2.14.1", more.get("tags", CP311))])
        project.say('dependencies = ["numpy"]', 'dependencies = ["numpy", "torchvision"]')
        assert project("lock").code == 0
        found = pins_in(project.read())
        assert (found["torch"], found["torchvision"]) == ("2.14.1+cu126", f"0.29.1{of}")

    def test_that_alone_has_torch_and_lacks_a_folder_leads_to_the_next(
        self, project: Project, world: IndexServer
    ) -> None:
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

    @pytest.mark.parametrize("wrong", [{"status": 500}, {"status": 403}, {"cut": True}])
    def test_that_fails_is_an_error_and_no_other_build(
        self, wrong: dict[str, int], project: Project, world: IndexServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        world.fault("/whl/cu126/*", **wrong)  # type: ignore[arg-type]
        done = project("lock")
        assert done.code == 3, done.err
        assert project.files == set()
        if wrong != {"status": 403}:
            assert "with pytorch-index-url in pyproject.toml\n" in done.err

    def test_that_no_one_answers_for_is_an_error(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_is_not_looked_at_is_reported_with_its_variable(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.file.write_text(
        "\n".join(it for it in project.file.read_text().splitlines() if not it.startswith("index-url"))
    )
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_INDEX_URL", project.index_url)
    done = project("lock")
    assert "note: find-links in PIP_FIND_LINKS is ignored\n" in done.err


def test_a_change_that_is_wanted_is_not_told_as_a_fault(project: Project, world: IndexServer) -> None:
    project("lock")
    project.say("535.183.01", "580.65.06")
    assert "locks/pylock.toml: would be written, " in project("lock", "-U", "--diff").err
    assert "locks/pylock.toml: out of date, " in project("lock", "-U", "--check").err


def test_the_facts_behind_each_file_are_reported_on_request(project: Project) -> None:
    quiet, told = project("lock"), project("lock", "-v")
    fact = "note: requirements.txt, locks/pylock.toml: CUDA 12.6 needs NVIDIA driver"
    assert fact not in quiet.err
    assert fact in told.err
    assert fact in project("lock", "-v").err


class TestInit:
    """Its words are typed, and no file holds them until all of it is there."""

    def test_offers_its_own_options(self, tmp_path: Path, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        done = envsolve("init", "-f", "pytorch>=2.15", "--gpu", "8.6", "--driver", "535.183.01")
        assert (done.code, list(tmp_path.iterdir())) == (1, [])
        assert "(from --driver)" in done.err
        assert "then fits: --driver 580.65.06\n" in done.err
        assert "pyproject.toml" not in done.err

    def test_offers_to_lock_later_where_no_index_answers(
        self, tmp_path: Path, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        asked = ("-f", "pytorch", "--gpu", "8.6", "--python", "3.11", "--index-url", "http://127.0.0.1:9/simple")
        done = envsolve("init", *asked)
        assert (done.code, list(tmp_path.iterdir())) == (3, [])
        assert "with --index-url\n" in done.err
        assert done.err.endswith("hint: or write only the project, and lock later: --no-lock\n")
        assert envsolve("init", *asked, "--no-lock").code == 0


def test_why_not_on_a_machine_without_a_gpu_is_told_to_be_of_the_cpu(
    envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    done = envsolve("-f", "pytorch", "--why-not", "pytorch==2.7")
    assert "note: CONDA_OVERRIDE_CUDA is empty, which means no CUDA: this is a CPU environment\n" in done.err


def test_a_gpu_whose_machines_are_of_another_platform_is_reported_with_the_key_that_names_it(project: Project) -> None:
    project.say('gpus = ["RTX 3090"]\ndriver = "535.183.01"', 'gpus = ["12.1"]')
    assert 'linux-64: use platforms = "linux-aarch64" in pyproject.toml to make one for it\n' in project("lock").err
