"""Requirements are added to a project file and removed: the rest of the file is unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from envsolve.errors import UsageError
from envsolve.project.editing import with_requirements, without_requirements

PYPROJECT, OWN = Path("pyproject.toml"), Path("envsolve.toml")
TEXT = """\
# of the project
[project]
name = "demo"
dependencies = [
    "numpy>=2",  # for arrays
    "torch",
]

[tool.envsolve]   # what is locked
frameworks = ["pytorch>=2.5"]
requirements = [
    "pandas",  # tables
    "Rich_Click>=1",
    "git+https://example.org/unnamed.git@v1",
]

[tool.envsolve.targets.laptop]
gpus = ["none"]
requirements = ["pandas>=2", "tqdm"]

[tool.other]
keep = true
"""
ALL = TEXT.replace("# what is locked\n", "# what is locked\nproject-dependencies = true\n")


def own(text: str) -> dict[str, object]:
    return tomli.loads(text)["tool"]["envsolve"]  # type: ignore[no-any-return]


def test_a_requirement_is_appended_and_other_lines_stay() -> None:
    text = with_requirements(PYPROJECT, TEXT, ["polars>=1"])
    assert own(text)["requirements"] == [*own(TEXT)["requirements"], "polars>=1"]  # type: ignore[misc]
    lines = text.splitlines()
    assert [it for it in TEXT.splitlines() if it not in lines] == []


@pytest.mark.parametrize(
    ("requirement", "frameworks"),
    [("jax", ["pytorch>=2.5", "jax"]), ("torch==2.9.*", ["torch==2.9.*"]), ("tf>=2.20", ["pytorch>=2.5", "tf>=2.20"])],
)
def test_a_framework_is_added_to_the_frameworks_under_any_name(requirement: str, frameworks: list[str]) -> None:
    assert own(with_requirements(PYPROJECT, TEXT, [requirement]))["frameworks"] == frameworks


def test_an_existing_name_gets_the_new_versions_wherever_it_is() -> None:
    text = with_requirements(PYPROJECT, TEXT, ["pandas<3"])
    assert own(text)["requirements"][0] == "pandas<3"  # type: ignore[index]
    assert own(text)["targets"]["laptop"]["requirements"] == ["pandas<3", "tqdm"]  # type: ignore[index]
    assert '"pandas<3",  # tables' in text


def test_own_dependencies_of_a_project_are_edited_in_place() -> None:
    text = with_requirements(PYPROJECT, ALL, ["scipy", "pytorch==2.9.*", "jax>=0.10", "onnxruntime"])
    dependencies = tomli.loads(text)["project"]["dependencies"]
    assert dependencies == ["numpy>=2", "torch==2.9.*", "scipy", "jax>=0.10", "onnxruntime"]
    assert own(text)["frameworks"] == ["pytorch==2.9.*"]


def test_a_table_without_the_key_gets_it() -> None:
    assert own(with_requirements(PYPROJECT, "[tool.envsolve]\n", ["numpy"])) == {"requirements": ["numpy"]}
    text = with_requirements(OWN, 'framework = ["jax"]\n', ["pytorch", "numpy"])
    assert tomli.loads(text) == {"framework": ["jax", "pytorch"], "requirements": ["numpy"]}


def test_line_ends_are_preserved() -> None:
    text = with_requirements(PYPROJECT, TEXT.replace("\n", "\r\n"), ["polars"])
    assert text.count("\n") == text.count("\r\n")


def test_every_entry_of_a_name_is_removed() -> None:
    text = without_requirements(PYPROJECT, TEXT, ["Pandas", "rich.click"])
    assert own(text)["requirements"] == ["git+https://example.org/unnamed.git@v1"]
    assert own(text)["targets"]["laptop"]["requirements"] == ["tqdm"]  # type: ignore[index]
    assert "# what is locked" in text


def test_a_url_without_a_name_is_removed_as_written() -> None:
    text = without_requirements(PYPROJECT, TEXT, ["git+https://example.org/unnamed.git@v1"])
    assert own(text)["requirements"] == ["pandas", "Rich_Click>=1"]


def test_a_framework_is_removed_by_any_of_its_names() -> None:
    assert "frameworks" not in own(without_requirements(PYPROJECT, TEXT, ["torch"]))
    assert tomli.loads(without_requirements(PYPROJECT, ALL, ["pytorch"]))["project"]["dependencies"] == ["numpy>=2"]


@pytest.mark.parametrize("name", ["numpy", "keep"])
def test_a_package_that_is_not_required_cannot_be_removed(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        without_requirements(PYPROJECT, TEXT, [name])
    assert caught.value.code == "not-required"
    assert "tool.envsolve.requirements" in caught.value.message


@pytest.mark.parametrize("text", ["numpy=>2", "", "-r x", "a b"])
def test_an_invalid_requirement_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_requirements(PYPROJECT, TEXT, [text])
    assert caught.value.code == "requirement-invalid"


def test_an_empty_list_is_removed() -> None:
    text = without_requirements(PYPROJECT, TEXT, ["pandas", "tqdm"])
    assert "requirements" not in own(text)["targets"]["laptop"]  # type: ignore[index]
