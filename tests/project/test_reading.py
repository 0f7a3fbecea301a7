"""A project is read, and every mistake in it is reported with its key and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli

from envsolve.errors import ProjectError, UsageError
from envsolve.model.host import Platform
from envsolve.project import find_project, read_project
from envsolve.project.keys import KEYS, Kind

CASES: list[dict[str, Any]] = tomli.loads((Path(__file__).parent / "mistakes.toml").read_text(encoding="utf-8"))[
    "project"
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"][0].rpartition(": ")[2][:40])
def test_every_mistake_is_reported_with_its_key_and_line(case: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(case["text"], encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_project(file)
    assert raised.value.code == "project-invalid"
    left = list(raised.value.cause)
    for sentence in case["says"]:
        found = [it for it in left if sentence in it]
        assert found, (sentence, left)
        left.remove(found[0])
    assert left == []


WHOLE = """\
[project]
name = "demo"
dependencies = ["pandas>=2"]
[project.optional-dependencies]
train = ["demo[plot]", "tqdm"]
plot = ["matplotlib; python_version >= '3.11'"]
[dependency-groups]
dev = ["pytest", { include-group = "lint" }]
lint = ["ruff"]
[tool.envsolve]
frameworks = ["pytorch>=2.5"]
python = "3.12"
requirements = ["rich"]
project-dependencies = true
extras = ["train"]
dependency-groups = ["dev"]
driver = "580"
outputs = ["pylock.toml", { file = "gpu.lock", format = "explicit" }]
[tool.envsolve.targets.desk]
gpu = "RTX 5090"
[tool.envsolve.targets.cluster]
gpus = ["A100", "V100"]
driver = "535.129.03"
[tool.envsolve.targets.laptop]
gpu = "none"
platform = ["linux-64", "win-64"]
requirements = ["jupyterlab"]
outputs = ["requirements.{platform}.txt"]
"""


def test_a_whole_project_is_read(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(WHOLE, encoding="utf-8")
    shared, laptop = read_project(file).parts
    requirements = ("rich", "pandas>=2", "tqdm", "matplotlib; python_version >= '3.11'", "pytest", "ruff")
    assert shared.settings.requirements == requirements
    assert [(it.name, it.gpus, str(it.driver)) for it in shared.machines] == [
        ("desk", ("RTX 5090",), "None"),
        ("cluster", ("A100", "V100"), "535.129.03"),
    ]
    assert [(it.file, it.format) for it in shared.outputs] == [("pylock.toml", None), ("gpu.lock", "explicit")]
    assert laptop.name == "laptop"
    assert laptop.machines[0].platforms == (Platform.LINUX_64, Platform.WIN_64)
    assert set(laptop.settings.requirements) == {*requirements, "jupyterlab"}
    assert laptop.settings.python == shared.settings.python


def test_envsolve_toml_holds_the_same_keys_without_the_table(tmp_path: Path) -> None:
    (tmp_path / "envsolve.toml").write_text('frameworks = ["jax"]\noutputs = ["a.yml"]\n', encoding="utf-8")
    (part,) = read_project(tmp_path / "envsolve.toml").parts
    assert part.settings.frameworks == ("jax",)
    (tmp_path / "envsolve.toml").write_text('framworks = ["jax"]\n', encoding="utf-8")
    with pytest.raises(UsageError) as raised:
        read_project(tmp_path / "envsolve.toml")
    assert "envsolve.toml:1: framworks: unknown key 'framworks'; did you mean frameworks?" in raised.value.cause


def test_the_nearest_project_counts_and_envsolve_toml_before_pyproject(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_project(inner) is None or tmp_path not in find_project(inner).parents  # type: ignore[union-attr]
    (tmp_path / "pyproject.toml").write_text("[tool.envsolve]\n", encoding="utf-8")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    assert find_project(inner) == tmp_path / "pyproject.toml"
    (tmp_path / "envsolve.toml").write_text("", encoding="utf-8")
    assert find_project(inner) == tmp_path / "envsolve.toml"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a = ", b"[tool]\nenvsolve = 1\n", b"a = " + b"[" * 5000])
def test_an_unreadable_file_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(UsageError) as raised:
        find_project(tmp_path)
    assert raised.value.code in ("file-unreadable", "project-invalid")
    assert "pyproject.toml" in raised.value.message


@pytest.mark.thorough
@pytest.mark.parametrize("key", [it for it in KEYS.values() if it.kind is not Kind.TARGETS], ids=lambda key: key.name)
def test_the_example_of_a_key_is_valid(key: Any, tmp_path: Path) -> None:
    """Of every key except those about standard tables, which the example project has."""
    text = WHOLE.split("[tool.envsolve]", maxsplit=1)[0] + "[tool.envsolve]\n"
    text += "".join(
        line
        for name, line in (("frameworks", 'frameworks = ["jax"]\n'), ("outputs", 'outputs = ["a.yml"]\n'))
        if name != key.name
    )
    (tmp_path / "pyproject.toml").write_text(f"{text}{key.name} = {key.example}\n", encoding="utf-8")
    for name in tomli.loads(f"it = {key.example}")["it"] if key.is_file else ():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    read_project(tmp_path / "pyproject.toml")


def test_every_mistake_is_also_in_json(tmp_path: Path) -> None:
    (tmp_path / "envsolve.toml").write_text('frmework = ["jax"]\noutputs = "a.yml"\n', encoding="utf-8")
    with pytest.raises(ProjectError) as raised:
        read_project(tmp_path / "envsolve.toml")
    mistakes = raised.value.as_json()["mistakes"]
    assert mistakes == list(raised.value.cause)
    assert len(mistakes) == 2


def test_a_path_that_leads_back_into_the_project_is_inside(tmp_path: Path) -> None:
    text = 'frameworks = ["jax"]\noutputs = ["a b/../pylock.x.toml", "./c/pylock.toml"]\n'
    (tmp_path / "envsolve.toml").write_text(text, encoding="utf-8")
    (part,) = read_project(tmp_path / "envsolve.toml").parts
    assert [it.file for it in part.outputs] == ["pylock.x.toml", "./c/pylock.toml"]


def test_envsolve_toml_applies_to_the_standard_tables_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch"]\n', encoding="utf-8")
    text = 'project-dependencies = true\noutputs = ["pylock.toml"]\n'
    (tmp_path / "envsolve.toml").write_text(text, encoding="utf-8")
    (part,) = read_project(tmp_path / "envsolve.toml").parts
    assert part.settings.requirements == ("torch",)


def test_a_mistake_in_the_standard_tables_names_their_file(tmp_path: Path) -> None:
    text = 'project-dependencies = true\ndriver = "new"\noutputs = ["pylock.toml"]\n'
    (tmp_path / "envsolve.toml").write_text(text, encoding="utf-8")
    tables = '[project]\nname = "x"\n\ndependencies = ["numpy >> 2"]\n'
    (tmp_path / "pyproject.toml").write_text(tables, encoding="utf-8")
    with pytest.raises(ProjectError) as raised:
        read_project(tmp_path / "envsolve.toml")
    of_driver, of_numpy = raised.value.cause
    assert of_driver.startswith("envsolve.toml:2: driver: ")
    assert of_numpy.startswith("pyproject.toml:4: project.dependencies: 'numpy >> 2' is not a requirement: Expected")


def test_two_projects_in_one_directory_are_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.envsolve]\nframeworks = ["jax"]\n', encoding="utf-8")
    (tmp_path / "envsolve.toml").write_text('frameworks = ["jax"]\noutputs = ["a.yml"]\n', encoding="utf-8")
    with pytest.raises(ProjectError) as raised:
        read_project(tmp_path / "envsolve.toml")
    assert raised.value.cause == (
        "envsolve.toml: pyproject.toml in the same directory also has [tool.envsolve]: remove one of them",
    )
