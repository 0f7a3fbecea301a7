"""Environments that no installer would write: everything is read, nothing raises, and it does not take long."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.diagnose.environment import examination
from envsolve.diagnose.environment.examination import CHECKS
from envsolve.diagnose.environment.from_files import inventory_from_files
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding
from envsolve.validation.metadata import Packages, read_record
from tests.diagnose.environment.on_disk import Patient, names

LIBRARY = "nvidia/cudnn/lib/libcudnn.so.9"


def _folder(patient: Patient, name: str = "torch-2.8.0") -> Path:
    folder = patient.site / f"{name}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _long_metadata(patient: Patient) -> None:
    (_folder(patient) / "METADATA").write_text("Name: torch\nVersion: 2.8.0\n" + "Requires-Dist: x\n" * 700_000)


def _bytes_that_are_no_text(patient: Patient) -> None:
    for name in ("METADATA", "RECORD", "INSTALLER", "direct_url.json"):
        (_folder(patient) / name).write_bytes(bytes(range(256)) * 50)
    (patient.site / os.fsdecode(b"caf\xe9-1.0.dist-info")).mkdir()
    (patient.site / os.fsdecode(b"~\xff\xfe")).mkdir()
    (patient.root / "conda-meta").mkdir()
    (patient.root / "conda-meta/odd.json").write_bytes(b"\xff\xfe{")
    (patient.root / "pyvenv.cfg").write_bytes(b"version = \xff\n")


def _paths_that_leave_the_environment(patient: Patient) -> None:
    paths = (
        "../../../../../../etc/passwd",
        "/etc/passwd",
        "torch/../../../x.so",
        "\0",
        "a/" * 5000 + "x.so",
        "x.so,,,,,",
    )
    (_folder(patient) / "RECORD").write_text("".join(f"{path},sha256=AAAA,1\n" for path in paths) + '"never closed')
    (_folder(patient) / "METADATA").write_text("Name: torch\nVersion: ../../2\n")


def _links_in_circles(patient: Patient) -> None:
    for name in ("nvidia/cudnn/lib", "torch/lib"):
        (patient.site / name).mkdir(parents=True)
    patient.write("torch/__init__.py")
    for path in (LIBRARY, "torch/lib/libtorch_cuda.so", "torch/version.py", "round.pth"):
        (patient.site / path).symlink_to(patient.site / f"{path}.other")
        (patient.site / f"{path}.other").symlink_to(patient.site / path)
    (_folder(patient) / "METADATA").symlink_to("METADATA")
    (_folder(patient) / "RECORD").write_text(f"{LIBRARY},sha256=AAAA,10\ntorch/lib/libtorch_cuda.so,sha256=AAAA,10\n")
    (patient.site / "inside").symlink_to(".")
    (patient.root / "conda-meta").symlink_to("conda-meta")


def _directories_in_the_place_of_files(patient: Patient) -> None:
    for name in ("METADATA", "RECORD", "INSTALLER", "direct_url.json"):
        (_folder(patient) / name).mkdir()
    for path in ("torch/version.py", LIBRARY, "torch/__init__.py", "odd.pth", "torch/lib/libtorch_cuda.so"):
        (patient.site / path).mkdir(parents=True)
    for name in ("pyvenv.cfg", "conda-meta/pytorch-2.7.0-cpu_h1.json", "share/jupyter/kernels/x/kernel.json"):
        (patient.root / name).mkdir(parents=True)


def _files_in_the_place_of_directories(patient: Patient) -> None:
    for name in ("nvidia", "torch", "torch-2.8.0.dist-info", "jax_plugins"):
        (patient.site / name).write_text("a file")
    for name in ("conda-meta", "share", "lib64"):
        (patient.root / name).write_text("a file")


def _pipes(patient: Patient) -> None:
    """Opening one for reading waits until a program writes."""
    for name in ("METADATA", "RECORD", "INSTALLER", "direct_url.json"):
        os.mkfifo(_folder(patient) / name)
    patient.write("torch/__init__.py")
    for path in (LIBRARY, "torch/lib/libtorch_cuda.so", "torch/version.py"):
        (patient.site / path).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(patient.site / path)
    os.mkfifo(patient.site / "odd.pth")
    os.mkfifo(patient.root / "pyvenv.cfg")
    kernel = patient.root / "share/jupyter/kernels/x"
    kernel.mkdir(parents=True)
    os.mkfifo(kernel / "kernel.json")


def _json_that_lies(patient: Patient) -> None:
    (patient.root / "conda-meta").mkdir()
    documents: list[object] = [3, [], {"name": 3}, {"name": "pytorch", "build": None, "files": [3, None], "depends": 3}]
    documents += [{"name": "cuda-version", "version": [], "channel": {}, "files": {"a": 1}}]
    for number, value in enumerate(documents):
        (patient.root / f"conda-meta/{number}.json").write_text(json.dumps(value))
    (patient.root / "conda-meta/deep.json").write_text("[" * 100_000)
    (_folder(patient) / "direct_url.json").write_text('{"dir_info": [true]}')
    (_folder(patient) / "METADATA").write_text("Name: torch\nVersion: 2.8.0\nRequires-Dist: " + "(" * 5000 + "\n")


def _frameworks_that_lie(patient: Patient) -> None:
    patient.write("torch/__init__.py")
    patient.write("torch/version.py", "__version__ = ['2.8.0']\ncuda = 3.14\n" + "x = " + "(" * 500 + "1" + ")" * 500)
    patient.write("tensorflow/__init__.py")
    patient.write("tensorflow/python/platform/build_info.py", "build_info = {'cuda_version': 'twelve', 3: 4}\n")
    patient.write("torchvision/version.py", "__version__ = 3\n")
    patient.install("torch", "not a version!", "torch/__init__.py")
    patient.install("torchvision", "also none", requires=["torch==2.8.0"])
    patient.write(LIBRARY, "\x7fELF" + "A" * 200)


HOSTILE: dict[str, Callable[[Patient], None]] = {
    "long metadata": _long_metadata,
    "bytes that are no text": _bytes_that_are_no_text,
    "paths that leave": _paths_that_leave_the_environment,
    "links in circles": _links_in_circles,
    "directories for files": _directories_in_the_place_of_files,
    "files for directories": _files_in_the_place_of_directories,
    "pipes": _pipes,
    "lying JSON": _json_that_lies,
    "lying frameworks": _frameworks_that_lie,
}


@pytest.mark.thorough
@pytest.mark.parametrize("spoil", HOSTILE.values(), ids=HOSTILE)
def test_nothing_raises_and_everything_can_be_written(empty: Patient, spoil: Callable[[Patient], None]) -> None:
    spoil(empty)
    started = time.perf_counter()
    report = empty.report(variables={"LD_LIBRARY_PATH": "::.:\0", "PYTHONPATH": ":\0:.", "HOME": "\0"})
    inventory_from_files(empty.root)
    assert time.perf_counter() - started < 10
    json.dumps(report.inventory, ensure_ascii=False).encode("utf-8")
    for finding in report.findings:
        json.dumps(finding.as_json(), ensure_ascii=False).encode("utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize("spoil", [it for name, it in HOSTILE.items() if name != "links in circles"])
def test_no_check_has_to_give_up(empty: Patient, spoil: Callable[[Patient], None]) -> None:
    spoil(empty)
    assert [it for it in empty.report().findings if it.id == "check-not-made"] == []


@pytest.mark.thorough
def test_a_failing_check_does_not_affect_the_others(stack: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(scene: Scene) -> list[Finding]:
        raise PermissionError(13, "Permission denied", "somewhere")

    (stack.site / "~orch").mkdir()
    monkeypatch.setattr(examination, "CHECKS", (("the moon", failing), *CHECKS))
    findings = stack.report().findings
    assert names(findings) == [("half-removed-package", "warning"), ("check-not-made", "info")]
    assert findings[1].title == "The moon could not be checked"
    assert "Permission denied: 'somewhere'" in findings[1].cause


def test_if_static_checks_fail_the_others_continue(stack: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("Symlink loop from 'x'")

    (stack.site / "~orch").mkdir()
    monkeypatch.setattr("envsolve.diagnose.environment.examination.examine_libraries", failing)
    found = stack.report().findings
    assert ("half-removed-package", "warning") in names(found)
    assert "The frameworks and the libraries they load could not be checked" in {it.title for it in found}


def test_a_record_gives_only_files_of_its_own_directory(tmp_path: Path) -> None:
    lines = ["a/b.py,sha256=x,3", "../../bin/x,sha256=x,3", "/etc/passwd,,", "a/../../y,,", "a/./c.so,md5=x,many", '"']
    (tmp_path / "RECORD").write_text("\n".join(lines))
    rows = read_record(tmp_path)
    assert rows is not None
    assert [(row.path, row.sha256, row.size) for row in rows] == [("a/b.py", "x", 3), ("a/c.so", None, None)]
    assert read_record(tmp_path / "gone") is None


def test_only_some_of_many_entries_are_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.boundary.reading._MOST", 3)
    for number in range(9):
        (tmp_path / f"p{number}-1.0.dist-info").mkdir()
    assert len(Packages([tmp_path]).every) == 3
