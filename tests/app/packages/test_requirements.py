"""The requirements of a request, however many lines it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.app.packages.requirements import for_target, read_requirements
from envsolve.errors import Hint, UsageError
from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.need import Markers
from envsolve.model.request import Packages

MARKERS = Markers(Interpreter((3, 12, 0), Platform.LINUX_64).marker_values())


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return name


@pytest.mark.thorough
def test_a_requirement_is_listed_once_per_file() -> None:
    lines = [f"p{number % 50} >= 2" for number in range(20_000)]
    requirements = read_requirements(Packages(files=(written("one.in", *lines), written("two.in", "P0>=2"))))
    assert len(requirements.needs) == 51
    assert [origin for need, origin in requirements.needs if need.name == "p0"] == ["-r one.in", "-r two.in"]


@pytest.mark.thorough
def test_only_a_few_of_many_places_are_listed() -> None:
    files = [written(f"{number}.in", "app", f"part>{number}") for number in range(100)]
    requirements = read_requirements(Packages(files=(written("all.in", *(f"-r {file}" for file in files)),)))
    assert len([need for need, _ in requirements.needs if need.name == "app"]) == 8
    assert len([need for need, _ in requirements.needs if need.name == "part"]) == 100


def test_another_extra_or_marker_makes_another_requirement() -> None:
    lines = ("app", "app[x]", "app; python_version<'3.9'", "app>=1", "app")
    assert len(read_requirements(Packages(files=(written("one.in", *lines),))).needs) == 4


def test_hashes_on_several_lines_are_combined() -> None:
    lines = (
        "app==1.0 --hash=sha256:0A --hash=sha256:0b",
        "App==1.0 --hash=sha256:0b",
        "part==1 --hash=sha512:0c ; python_version<'3.9'",
    )
    requirements = read_requirements(Packages(files=(written("one.in", *lines, *lines),)))
    assert len(requirements.needs) == 2
    assert for_target(requirements, MARKERS).hashes == {"app": frozenset({("sha256", "0b")})}


def test_a_range_without_versions_is_refused_with_its_line_but_not_in_a_constraint() -> None:
    with pytest.raises(UsageError, match=r"one.in:2: 'app>2,<1' contradicts itself") as caught:
        read_requirements(Packages(files=(written("one.in", "part", "app>2,<1"),)))
    assert caught.value.hints == (Hint("change its limits, as in 'app>=1,<2'"),)
    banned = read_requirements(Packages(requirements=("part",), constraints=(written("limits.in", "app<0"),)))
    assert [str(need) for need, _ in banned.constraints] == ["app<0"]
