"""``envsolve add`` and ``remove``: the project and its locks change together, or not at all."""

from __future__ import annotations

import json

import pytest
import tomli

from tests.cli.locked import pins_in
from tests.cli.locking import assert_in_three_parts
from tests.cli.test_lock import Project, project

__all__ = ["project"]

NETWORK = ("--cache-dir", "cache")


@pytest.mark.thorough
def test_a_folder_name_may_contain_spaces(project: Project) -> None:
    folder = project.directory / "my pkg ü"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "my-pkg"\nversion = "1"\n')
    assert project("add", "./my pkg ü", *NETWORK).code == 0
    assert "\n./my pkg ü  # my-pkg\n" in project.read()
    assert project("lock", "--check", *NETWORK).code == 0
    assert project("remove", "./my pkg ü", *NETWORK).code == 0
    assert "my-pkg" not in project.read()


@pytest.mark.thorough
def test_line_ends_are_preserved(project: Project) -> None:
    project("lock", *NETWORK)
    text = project.file.read_text()
    project.file.write_bytes(text.replace("\n", "\r\n").encode())
    for command in ("add", "remove"):
        assert project(command, "typing-extensions", *NETWORK).code == 0
        content = project.file.read_bytes()
        assert content.count(b"\n") == content.count(b"\r\n")
        assert (b"typing-extensions" in content) is (command == "add")


@pytest.mark.thorough
def test_an_added_requirement_is_in_the_project_and_in_all_of_its_locks(project: Project) -> None:
    project("lock")
    before = pins_in(project.read())
    done = project("add", "typing-extensions", *NETWORK)
    assert done.code == 0, done.err
    assert tomli.loads(project.file.read_text())["project"]["dependencies"] == ["numpy", "typing-extensions"]
    assert "note: pyproject.toml: typing-extensions added\n" in done.err
    assert pins_in(project.read()) == before
    assert "#   pyproject.toml" in project.read()
    assert project("lock", "--check").code == 0


@pytest.mark.thorough
def test_a_removed_requirement_stays_locked_if_another_package_needs_it(project: Project) -> None:
    project("add", "typing-extensions", *NETWORK)
    done = project("remove", "typing-extensions", "numpy", *NETWORK)
    assert done.code == 0, done.err
    assert tomli.loads(project.file.read_text())["project"]["dependencies"] == []
    assert "typing-extensions" in pins_in(project.read())
    assert "numpy" not in pins_in(project.read())
    assert project("lock", "--check").code == 0


@pytest.mark.thorough
def test_an_unsolvable_requirement_changes_nothing(project: Project) -> None:
    project("lock")
    before = {name: project.read(name) for name in (*project.files, "pyproject.toml")}
    for word in ("numpy>=99", "no-such-package", "numpy=>2"):
        done = project("add", word, *NETWORK)
        assert done.code in (1, 2), done.err
        assert_in_three_parts(done.err)
        assert {name: project.read(name) for name in (*project.files, "pyproject.toml")} == before


@pytest.mark.thorough
def test_a_diff_is_printed_and_nothing_is_written(project: Project) -> None:
    project("lock")
    before = project.file.read_text()
    done = project("remove", "numpy", "--diff", *NETWORK)
    assert done.code == 0, done.err
    assert "\n  - numpy " in done.out
    assert project.file.read_text() == before
    assert "numpy" in pins_in(project.read())


def test_an_existing_requirement_is_reported(project: Project) -> None:
    project("lock")
    done = project("add", "numpy", *NETWORK)
    assert done.code == 0
    assert "note: pyproject.toml: has numpy already\n" in done.err


def test_without_a_project_add_fails(project: Project) -> None:
    project.file.unlink()
    done = project("add", "numpy")
    assert done.code == 2
    assert done.err.startswith("error: no-project\n")


def test_a_mistake_in_the_project_is_reported_with_its_line(project: Project) -> None:
    project.say('frameworks = ["pytorch"]', 'frameworks = "pytorch"')
    before = project.file.read_text()
    for words in (("add", "six"), ("remove", "numpy")):
        done = project(*words)
        assert done.code == 2
        assert "pyproject.toml:6: tool.envsolve.frameworks: " in done.err
    assert project.file.read_text() == before


@pytest.mark.thorough
def test_the_last_requirement_can_be_removed(project: Project) -> None:
    project.say("project-dependencies = true\n", 'requirements = ["numpy"]\n')
    assert project("lock").code == 0
    done = project("remove", "numpy", *NETWORK)
    assert done.code == 0, done.err
    assert "requirements" not in tomli.loads(project.file.read_text())["tool"]["envsolve"]


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("add", "typing-extensions"), ("remove", "numpy")])
def test_json_equals_that_of_lock_with_and_without_writing(words: tuple[str, ...], project: Project) -> None:
    project("lock")
    before = project.file.read_text()
    shown = project(*words, "--diff", "--json", *NETWORK)
    assert (shown.code, project.file.read_text()) == (0, before), shown.err
    document = json.loads(shown.out)
    assert set(document) == {"schema_version", "files", "notes"}
    assert {it["path"] for it in document["files"]} == set(project.files)
    assert {it["status"] for it in document["files"]} == {"stale"}
    done = project(*words, "--json", *NETWORK)
    assert (done.code, json.loads(done.out)) == (0, document), done.err
    assert project.file.read_text() != before


@pytest.mark.thorough
def test_with_json_an_error_is_json_too(project: Project) -> None:
    project("lock")
    done = project("add", "numpy>=99", "--json", *NETWORK)
    assert (done.code, json.loads(done.out)["error"]["code"]) == (1, "version-not-found")
