"""The records in conda-meta become packages of a lock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.app.environment.installed_conda import installed_conda

RECORD = {
    "name": "own",
    "version": "1.0",
    "build": "h0_1",
    "build_number": 1,
    "subdir": "linux-64",
    "url": "https://conda.anaconda.org/t/tk-1/conda-forge/linux-64/own-1.0-h0_1.conda",
    "md5": "0" * 32,
    "sha256": "1" * 64,
    "depends": ["python >=3.11"],
    "size": 12,
}


def prefix_with(directory: Path, **more: object) -> Path:
    """A prefix with one package."""
    (directory / "conda-meta").mkdir()
    (directory / "conda-meta/own-1.0-h0_1.json").write_text(json.dumps({**RECORD, **more}))
    (directory / "conda-meta/history").write_text("")
    return directory


def test_a_package_is_read_as_on_the_channel(tmp_path: Path) -> None:
    (package,) = installed_conda(prefix_with(tmp_path)).packages
    assert (package.name, package.version, package.build, package.build_number) == ("own", "1.0", "h0_1", 1)
    assert package.url == "https://conda.anaconda.org/conda-forge/linux-64/own-1.0-h0_1.conda"
    assert package.channel == "https://conda.anaconda.org/conda-forge"
    assert (package.md5, package.sha256, package.depends) == ("0" * 32, "1" * 64, ("python >=3.11",))


@pytest.mark.parametrize(
    ("record", "requested"),
    [
        ({}, ()),
        ({"requested_spec": "None"}, ()),
        ({"requested_spec": "conda-forge::own=1"}, ("conda-forge::own=1",)),
        ({"requested_specs": ["own", "own>=1"], "requested_spec": "own"}, ("own", "own>=1")),
    ],
)
def test_explicitly_requested_packages_are_recognised(
    record: dict[str, object], requested: tuple[str, ...], tmp_path: Path
) -> None:
    assert installed_conda(prefix_with(tmp_path, **record)).requested == requested


def test_an_unreadable_record_counts_as_missing(tmp_path: Path) -> None:
    path = prefix_with(tmp_path) / "conda-meta/broken-1.0-0.json"
    path.write_text("[" * 100_000)
    found = installed_conda(tmp_path)
    assert [it.name for it in found.packages] == ["own"]
    assert [str(it) for it in found.missing] == [f"{path}: it is nested too deep"]


def test_a_directory_that_is_no_prefix_has_no_packages(tmp_path: Path) -> None:
    assert installed_conda(tmp_path) == ((), (), ())
