"""Rows in addition to those of the files: what counts, what is ignored, and that nothing in them breaks a command."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.matrix import Matrix
from envsolve.matrix.overlay import Overlay, opened
from envsolve.model.host import Platform
from tests.matrix.tiny import tiny_matrix

TOP = """\
schema_version = 1
updated = "2026-11-21"
"""
EVIDENCE = """
[evidence.wheel]
kind = "wheel"
reference = "a wheel"
seen = "2026-11-21"
"""
RELEASE = """
[[release]]
version = "3.0"
source = "pypi"
platform = "linux-64"
build = "cuda12"
package = "thing"
pythons = ["3.10"]
cuda = "12.9"
cuda_requires = "==12.9"
cuda_libraries = "bundled"
sass = ["8.0"]
evidence = ["wheel"]
"""
THING = f'{TOP}framework = "thing"\n{EVIDENCE}{RELEASE}'
KERNELS = f"""{TOP}{EVIDENCE}
[[build]]
package = "kernels"
versions = "==1.0"
cuda = "==12.*"
sass = ["8.0"]
evidence = ["wheel"]
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Matrix:
    """A tiny matrix."""
    directory = tmp_path / "tiny"
    directory.mkdir()
    tiny_matrix(directory)
    return Matrix(directory)


@pytest.fixture
def rows(tmp_path: Path) -> Callable[..., Overlay]:
    """Write the files of an overlay, and open it."""

    def write(**files: str) -> Overlay:
        directory = tmp_path / "overlay"
        for name, text in files.items():
            path = directory / f"{name.replace('__', '/')}.toml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return Overlay(opened(directory))

    return write


def versions(matrix: Matrix) -> list[tuple[str, bool]]:
    return [(str(it.version), it.read_here) for it in matrix.framework("thing", Platform.LINUX_64).releases]


def test_a_row_is_added_to_those_of_the_matrix(tiny: Matrix, rows: Callable[..., Overlay]) -> None:
    more = tiny.with_overlay(rows(thing=THING))
    assert versions(more) == [("3.0", True), ("2.0", False)]
    assert versions(tiny) == [("2.0", False)]
    assert more.notes == ()
    assert more.framework("thing", Platform.WIN_64) == tiny.framework("thing", Platform.WIN_64)


def test_a_shipped_row_for_the_same_build_wins(tiny: Matrix, rows: Callable[..., Overlay]) -> None:
    more = tiny.with_overlay(rows(thing=THING.replace('"3.0"', '"2.0"')))
    assert versions(more) == [("2.0", False)]


def test_facts_of_packages_apply_to_releases_without_a_row(tiny: Matrix, rows: Callable[..., Overlay]) -> None:
    overlay = rows(extensions__kernels=KERNELS)
    (facts,) = tiny.with_overlay(overlay).build_facts("kernels")
    assert facts.read_here
    twice = tiny.with_overlay(overlay).with_overlay(rows(extensions__kernels=KERNELS))
    assert len(twice.build_facts("kernels")) == 1


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("schema_version = 1", "schema_version = 2", "thing.toml: schema_version: is 2"),
        ("schema_version = 1", "schema_version = 0", "thing.toml: schema_version: must be 1, not 0"),
        ('"thing"\n\n', '"other"\n\n', "thing.toml: framework: must be 'thing', as the file is called"),
        (
            'cuda = "12.9"',
            'cuda = "12.7"',
            "thing 3.0 (pypi, cuda12) is for CUDA 12.7, which this envsolve does not know",
        ),
        ("[[release]]", "[[release", "thing.toml: "),
        ("[[release]]", "[release]", "thing.toml: release: must be an array of tables"),
    ],
)
def test_unusable_rows_are_ignored_with_one_note(
    before: str, after: str, why: str, tiny: Matrix, rows: Callable[..., Overlay]
) -> None:
    assert before in THING
    more = tiny.with_overlay(rows(thing=THING.replace(before, after)))
    for platform in (Platform.LINUX_64, None):
        assert more.framework("thing", platform).releases == tiny.framework("thing", platform).releases
    (note,) = more.notes
    assert note.text.startswith("rows of thing that `envsolve matrix update` read are ignored: ")
    assert str(note.fields["because"]).startswith(why)


def test_a_row_for_several_releases_is_not_allowed_in_an_overlay(tiny: Matrix, rows: Callable[..., Overlay]) -> None:
    more = tiny.with_overlay(rows(extensions__kernels=KERNELS.replace("==1.0", ">=1.0")))
    assert more.build_facts("kernels") == ()
    (note,) = more.notes
    assert str(note.fields["because"]).endswith("build[1].versions: must name one release, as ==1.2.3")


def test_irregular_files_are_ignored(tiny: Matrix, tmp_path: Path) -> None:
    directory = tmp_path / "overlay"
    (directory / "thing.toml").mkdir(parents=True)
    os.mkfifo(directory / "other.toml")
    more = tiny.with_overlay(Overlay(opened(directory)))
    assert versions(more) == versions(tiny)
    assert len(more.notes) == 1


@pytest.mark.thorough
def test_damaged_files_are_only_a_note(tiny: Matrix, tmp_path: Path) -> None:
    directory = tmp_path / "overlay"
    (directory / "extensions").mkdir(parents=True)
    chance = random.Random(1)  # noqa: S311 - no secret
    for number in range(200):
        for name, text in (("thing", THING), ("extensions/kernels", KERNELS)):
            content = bytearray(text.encode())
            for _ in range(chance.randrange(1, 4)):
                at = chance.randrange(len(content))
                content[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
            (directory / f"{name}.toml").write_bytes(content)
        more = tiny.with_overlay(Overlay(opened(directory)))
        assert versions(more)[-1] == ("2.0", False), number
        assert len(more.build_facts("kernels")) <= 1


def test_without_an_overlay_nothing_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSOLVE_DATA_DIR", str(tmp_path / "none"))
    assert Matrix().overlays == ()
    (tmp_path / "none" / "matrix").mkdir(parents=True)
    assert len(Matrix().overlays) == 1
    assert Matrix(Matrix().directory).overlays == ()
