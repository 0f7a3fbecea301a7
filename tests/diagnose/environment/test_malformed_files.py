"""Each malformed file of an environment is a separate finding, which names the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.model.finding import Severity
from envsolve.validation.metadata import Packages
from tests.diagnose.environment.on_disk import Patient

DEEP = b"[" * 100_000
NAMED = "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"
METADATA, DIRECT_URL, RECORD = (f"thing-1.0.dist-info/{name}" for name in ("METADATA", "direct_url.json", "RECORD"))


def malformed_in(patient: Patient) -> dict[str, str]:
    """The malformed files by their path below the environment, and the reasons."""
    found = [it for it in patient.report().findings if it.id == "file-malformed"]
    assert {it.severity for it in found} <= {Severity.WARNING}
    return {os.path.relpath(it.evidence[0], patient.root): it.cause.partition(" cannot be used: ")[2] for it in found}


@pytest.fixture
def thing(empty: Patient) -> Patient:
    """A correct environment with one package."""
    empty.install("thing", "1.0", "thing.py", requires=["torch>=2"])
    (empty.root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    assert malformed_in(empty) == {}
    return empty


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        (METADATA, b"Name: ../../../etc/passwd\nVersion: 1.0\n", "its Name is no project name: '../../../etc/passwd'"),
        (METADATA, f"{NAMED}Requires-Dist: \x1b[31mtorch\n".encode(), "its Requires-Dist has control characters"),
        (METADATA, b"Name: thing\nVersion: 1.0\x07\n", "its Version has control characters"),
        (METADATA, NAMED.encode() + b"Author: Jos\xe9\n", "it is not UTF-8"),
        (DIRECT_URL, DEEP, "it is nested too deep"),
        (DIRECT_URL, b"", "it is not JSON"),
        (DIRECT_URL, b"\xff\xff\xff", "it is not UTF-8"),
        (DIRECT_URL, b"[]", "Missing required value in 'url'"),
        (DIRECT_URL, b'{"url": 3, "dir_info": {}}', "Unexpected type int (expected str) in 'url'"),
        (DIRECT_URL, b'{"url": "file:///x"}', "Exactly one of vcs_info, archive_info, dir_info"),
        (DIRECT_URL, b'{"url": "file:///x", "dir_info": []}', "Unexpected type list"),
        (RECORD, b"thing.py\0,,\n", "it has a NUL character"),
        (RECORD, b"th\xffing.py,,\n", "it is not UTF-8"),
        (RECORD, b"x" * 200_000 + b",,\n", "it is no table of files"),
    ],
)
def test_malformed_metadata_of_a_package(thing: Patient, file: str, content: bytes, why: str) -> None:
    (thing.site / file).write_bytes(content)
    ((path, reason),) = malformed_in(thing).items()
    assert path.endswith(file)
    assert reason.startswith(why) or why in reason


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "content", "why"),
    [
        ("pyvenv.cfg", b"home = \xff\n", "it is not UTF-8"),
        ("pyvenv.cfg", b"home = \0\n", "it has a NUL character"),
        ("pyvenv.cfg", b"#" * 70_000, "it is longer than 64 KiB"),
        ("conda-meta/history", b"==> \xff <==\n", "it is not UTF-8"),
        ("conda-meta/thing-1.0-0.json", DEEP, "it is nested too deep"),
        ("conda-meta/thing-1.0-0.json", b"{", "it is not JSON"),
        ("conda-meta/thing-1.0-0.json", b"[]", "it is no object"),
        ("conda-meta/thing-1.0-0.json", b'{"name": 3}', "its name is no text"),
        ("conda-meta/thing-1.0-0.json", b'{"name": "thing", "build": null}', "its build is no text"),
        ("conda-meta/thing-1.0-0.json", b'{"name": "thing", "files": [3]}', "its files is no list of texts"),
    ],
)
def test_malformed_files_of_the_environment(thing: Patient, file: str, content: bytes, why: str) -> None:
    (thing.root / file).parent.mkdir(exist_ok=True)
    (thing.root / file).write_bytes(content)
    ((path, reason),) = malformed_in(thing).items()
    assert path == file
    assert reason.startswith(why)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_irregular_files(thing: Patient, make: Callable[[Path], None]) -> None:
    paths = [thing.root / "pyvenv.cfg", *(thing.site / it for it in (METADATA, DIRECT_URL, RECORD))]
    paths += [thing.root / "conda-meta" / name for name in ("history", "thing-1.0-0.json")]
    (thing.root / "conda-meta").mkdir()
    for path in paths:
        path.unlink(missing_ok=True)
        make(path)
    found = malformed_in(thing)
    assert set(found) == {os.path.relpath(path, thing.root) for path in paths}


def test_without_a_valid_name_the_name_of_the_directory_is_used(thing: Patient) -> None:
    (thing.site / METADATA).write_text("Name: ../../evil\nVersion: 1.0\n")
    (package,) = Packages([thing.site]).every
    assert package.name == "thing"
    assert package.fault is not None


def test_a_description_that_is_not_utf_8_is_ignored(thing: Patient) -> None:
    (thing.site / METADATA).write_bytes(f"{NAMED}\n".encode() + b"Jos\xe9 wrote it\n")
    assert malformed_in(thing) == {}
