"""Remains of interrupted installations."""

from __future__ import annotations

import os
import shutil

import pytest

from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, names


@pytest.mark.thorough
def test_a_folder_that_pip_renamed_is_named_by_its_package(stack: Patient) -> None:
    (stack.site / "~orch").mkdir()
    (stack.site / "~orch-2.7.0.dist-info").mkdir()
    finding = stack.only("half-removed-package", Severity.WARNING)
    assert finding.title == "An interrupted installation left remains of torch"
    assert finding.commands == (f"rm -r '{stack.site}/~orch' '{stack.site}/~orch-2.7.0.dist-info'",)


def test_other_remains_are_mentioned(empty: Patient) -> None:
    (empty.site / "~equests").mkdir()
    empty.only("half-removed-package", Severity.INFO)


def test_two_versions_of_one_package_are_reported(stack: Patient) -> None:
    shutil.copytree(stack.folder("torch", "2.8.0"), stack.folder("torch", "2.7.1"))
    metadata = stack.folder("torch", "2.7.1") / "METADATA"
    metadata.write_text(metadata.read_text().replace("2.8.0", "2.7.1"))
    finding = stack.only("two-versions-recorded", Severity.WARNING)
    assert finding.title == "torch is recorded in the versions 2.7.1 and 2.8.0"


@pytest.mark.parametrize("lost", ["RECORD", "METADATA"])
def test_incomplete_metadata_is_reported(empty: Patient, lost: str) -> None:
    empty.install("torchvision", "0.23.0")
    (empty.folder("torchvision", "0.23.0") / lost).unlink()
    finding = empty.only("half-removed-package", Severity.WARNING)
    assert f"has no {lost}" in finding.cause


def test_an_empty_folder_is_half_a_package(empty: Patient) -> None:
    empty.folder("torchvision", "0.23.0").mkdir()
    finding = empty.only("half-removed-package", Severity.WARNING)
    assert "has no RECORD and METADATA" in finding.cause


@pytest.mark.thorough
@pytest.mark.parametrize("installer", ["debian", None, "conda"])
def test_other_installers_write_no_record(empty: Patient, installer: str | None) -> None:
    empty.install("torchvision", "0.23.0", installer=installer)
    (empty.folder("torchvision", "0.23.0") / "RECORD").unlink()
    assert names(empty.report().findings) == []


def test_a_directory_that_cannot_be_listed_is_reported(empty: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refused(path: os.PathLike[str] | str | int) -> object:
        if path in (empty.site, str(empty.site)):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    finding = empty.only("directory-not-readable", Severity.INFO)
    assert finding.evidence == (f"{empty.site}: Permission denied",)
