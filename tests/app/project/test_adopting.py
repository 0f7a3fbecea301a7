"""The requirements in files of other tools become keys of a project; notes say what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli
from packaging.specifiers import SpecifierSet

from envsolve.app.project.adopting import adopted, names_framework
from envsolve.app.project.adopting_poetry import poetry_specifier
from envsolve.app.project.adopting_uv import left_of_pyproject
from envsolve.errors import UsageError
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.host import Platform
from envsolve.model.request import in_usual_order
from envsolve.project import Settings

DATA: dict[str, list[dict[str, Any]]] = tomli.loads(
    (Path(__file__).parent / "adopted.toml").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    return Matrix(find_matrix())


@pytest.mark.parametrize("case", DATA["file"], ids=lambda case: case["name"])
def test_settings_of_a_file_are_adopted_or_reported(case: dict[str, Any], matrix: Matrix, tmp_path: Path) -> None:
    for name in case.get("also", ()):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / case["name"]).write_text(case["text"], encoding="utf-8")
    found = adopted(tmp_path, Platform.LINUX_64, matrix)
    assert found.values == case["values"]
    assert list(found.notes) == case.get("notes", [])


@pytest.mark.parametrize("case", DATA["pyproject"], ids=lambda case: case["notes"][0][:20])
def test_tables_beside_the_dependencies_are_reported(case: dict[str, Any]) -> None:
    assert list(left_of_pyproject(tomli.loads(case["text"]))) == case["notes"]


def test_invalid_toml_is_one_clear_error(matrix: Matrix, tmp_path: Path) -> None:
    (tmp_path / "pixi.toml").write_text("[workspace\n", encoding="utf-8")
    with pytest.raises(UsageError, match="it is not TOML"):
        adopted(tmp_path, Platform.LINUX_64, matrix)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^1.2", ">=1.2,<2"),
        ("^1", ">=1,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0.0", ">=0.0,<0.1"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1.2", ">=1.2,<1.3"),
        ("~1", ">=1,<2"),
        ("*", ""),
        ("1.*", "==1.*"),
        ("1.2.*", "==1.2.*"),
        (">= 1.2, < 1.5", ">=1.2,<1.5"),
        (">=1.2 <1.5", ">=1.2,<1.5"),
        ("^1.2,!=1.3", ">=1.2,!=1.3,<2"),
        ("1.2.3", "==1.2.3"),
        ("==1.2.3", "==1.2.3"),
        ("~=1.2.3", "~=1.2.3"),
    ],
)
def test_version_ranges_of_poetry_are_expanded(typed: str, meant: str) -> None:
    """The examples of python-poetry.org/docs/dependency-specification, and PEP 440's own operators."""
    found = poetry_specifier(typed)
    assert found is not None
    assert in_usual_order(found) == meant


@pytest.mark.parametrize("typed", ["^1 || ^2", "^", "latest", "^x"])
def test_versions_without_an_equivalent_are_dropped(typed: str) -> None:
    assert poetry_specifier(typed) is None


@pytest.mark.parametrize(
    "text", [">=3.11,<3.13", "==12.*", ">1,!=1.5,<=2", ">=1,!=1.1,!=1.2", "===odd", "~=1.4,!=1.4.2", ""]
)
def test_clauses_are_in_the_conventional_order(text: str) -> None:
    assert in_usual_order(SpecifierSet(text)) == text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "text", "is_named"),
    [
        ("requirements.in", "torch>=2\n", True),
        ("requirements.in", "onnxruntime-gpu\nflask\n", True),
        ("requirements.in", "flask\n", False),
        ("environment.yml", "dependencies:\n  - pytorch-gpu\n", True),
        ("environment.yml", "dependencies:\n  - pip:\n    - jax\n", True),
        ("environment.yml", "dependencies:\n  - flask\n", False),
    ],
)
def test_a_framework_in_requirement_files_is_found(name: str, text: str, is_named: bool, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    settings = Settings(requirement_files=(str(tmp_path / name),))
    assert names_framework(settings, Platform.LINUX_64) is is_named
