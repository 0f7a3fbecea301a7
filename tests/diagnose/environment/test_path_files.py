"""The .pth files beside packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, names


def test_a_directory_that_is_gone_takes_an_editable_package_along(empty: Patient) -> None:
    empty.write("__editable__.mine-1.0.pth", "/nonexistent/source\n")
    finding = empty.only("path-file-broken", Severity.WARNING)
    assert "adds /nonexistent/source to Python's search path, which does not exist" in finding.cause


def test_any_other_directory_that_is_gone_is_mentioned(empty: Patient) -> None:
    empty.write("extra.pth", "# more modules\n/nonexistent/more\n")
    empty.only("path-file-broken", Severity.INFO)


def test_a_line_whose_module_is_gone_fails_at_every_start(empty: Patient) -> None:
    empty.write(
        "__editable__.mine-1.0.pth", "import __editable___mine_1_0_finder; __editable___mine_1_0_finder.install()\n"
    )
    finding = empty.only("path-file-broken", Severity.WARNING)
    assert "there is no module __editable___mine_1_0_finder" in finding.cause
    empty.write("__editable___mine_1_0_finder.py")
    assert names(empty.report().findings) == []


def test_bytes_that_are_no_text_are_reported(empty: Patient) -> None:
    (empty.site / "odd.pth").write_bytes(b"/caf\xe9\n")
    empty.only("path-file-broken", Severity.WARNING)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        "import os; var = 'SETUPTOOLS_USE_DISTUTILS'\n",
        "import sys, types, os;has_mfs = sys.version_info > (3, 5);p = 1\n",
        "\ufeff# of Windows\n",
        "more\n../site-packages/more\n",
        "import more\n",
        "",
    ],
)
def test_working_files_are_not_a_fault(empty: Patient, text: str) -> None:
    (empty.site / "more").mkdir()
    (empty.site / "work.pth").write_text(text, encoding="utf-8")
    assert names(empty.report().findings) == []


def test_a_directory_in_the_place_of_a_file_is_reported(empty: Patient, tmp_path: Path) -> None:
    (empty.site / "folder.pth").mkdir()
    empty.only("path-file-broken", Severity.INFO)
