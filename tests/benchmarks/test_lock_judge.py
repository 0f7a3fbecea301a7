"""The judge of real projects finds the faults of a lock, and none in a correct lock."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.lock_judge import Judge, Machine, Project, Uv
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from tests.cli.worlds import CP311, releases
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer

uv = pytest.importorskip("uv")
CASES = tomllib.loads((Path(__file__).parent / "locks.toml").read_text("utf-8"))["case"]
PAIRS = [
    {"when": {"left": "<2", "right": ">=2"}, "why": "left is not right"},
    {"when": {"onnxruntime-gpu": ">=1"}, "unless": ["nvidia-cudnn-cu12"], "why": "nothing brings CUDA"},
]
NEW = Machine("RTX 4090", "580.95.05")
OLD_DRIVER = Machine("RTX 3090", "550.54.15")
TODAY = datetime(2026, 11, 1, tzinfo=UTC)
EARLY, LATE = "2024-01-01T00:00:00Z", "2026-10-01T00:00:00Z"


@pytest.fixture
def server() -> Iterator[IndexServer]:
    """An index without projects."""
    with IndexServer(recorded=False) as served:
        yield served


def judge_of(projects: Path, matrix: Matrix, server: IndexServer | None = None) -> Judge:
    """A judge whose uv queries only ``server``."""
    (projects / "wrong_together.json").write_text(json.dumps(PAIRS))
    address = "http://127.0.0.1:1/simple/" if server is None else server.index_url
    return Judge(
        projects,
        matrix,
        Uv(Path(uv.find_uv_bin()), Path(sys.executable), projects, 60, ("--index-url", address)),
        projects,
        TODAY,
    )


def project(directory: Path, *lines: str, framework: str = "pytorch") -> Project:
    file = directory / "demo.in"
    file.write_text("\n".join((f"# {framework}, made up", *lines, "")))
    return Project.read(file)


def lock(directory: Path, *pins: str) -> Path:
    file = directory / "lock.txt"
    file.write_text("\n".join((*pins, "")))
    return file


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["says"])
def test_known_faults_are_found(case: dict[str, Any], tmp_path: Path, matrix: Matrix) -> None:
    gpu, driver, platform = case["machine"]
    machine = Machine(gpu, driver, Platform(platform))
    locked = lock(tmp_path, *case["lock"])
    draw = project(tmp_path, framework=case["framework"])
    found = judge_of(tmp_path, matrix).known_faults(draw, machine, locked, case.get("said", ""))
    assert (case["fault"] in "; ".join(found)) if case["fault"] else not found


def test_a_project_names_its_framework_and_its_packages_on_a_platform(tmp_path: Path) -> None:
    read = project(tmp_path, "Left>=2 # why", "", "right; sys_platform == 'win32'", "-e .", framework="jax")
    assert (read.name, read.framework) == ("demo", "jax")
    assert list(read.named("3.12", Platform.LINUX_64)) == ["left"]
    assert list(read.named("3.12", Platform.WIN_64)) == ["left", "right"]


@pytest.mark.thorough
def test_contradicting_and_missing_pins_are_faults(tmp_path: Path, matrix: Matrix, server: IndexServer) -> None:
    server.add("torch", [wheel("torch", "2.15.0", ["left<2"])])
    server.add("left", releases("left", ["1.5", "2.0"]))
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch")
    assert judge.faults(draw, NEW, lock(tmp_path, "torch==2.15.0", "left==1.5")) == []
    (contradiction,) = judge.faults(draw, NEW, lock(tmp_path, "torch==2.15.0", "left==2.0"))
    assert contradiction.startswith("uv: ")
    assert judge.faults(draw, NEW, lock(tmp_path, "torch==2.15.0")) == ["not in the lock: left"]
    met = "note: torch 2.15.0 requires left, and left-gpu in this lock installs the same module: install it with ..."
    assert judge.faults(draw, NEW, lock(tmp_path, "torch==2.15.0"), met) == []


@pytest.mark.thorough
def test_packages_built_for_the_framework_are_left_out(tmp_path: Path, matrix: Matrix, server: IndexServer) -> None:
    server.add("torch", releases("torch", ["2.15.0"]))
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "kernels")
    locked = lock(tmp_path, "torch==2.15.0", "kernels==1.0")  # uv finds no metadata of kernels
    afterwards = "the build of kernels 1.0 imports torch: install torch first, then this lock with --no-build-isolation"
    assert judge.faults(draw, NEW, locked, afterwards) == []
    assert judge.faults(draw, NEW, locked)[0].startswith("uv: ")


@pytest.mark.thorough
def test_a_pin_with_a_wheel_only_for_another_python_is_a_fault(
    tmp_path: Path, matrix: Matrix, server: IndexServer
) -> None:
    server.add("torch", releases("torch", ["2.15.0"]))
    server.add("left", [sdist("left", "1.5"), wheel("left", "1.5", tags=CP311)])
    server.add("right", [sdist("right", "1.0")])
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "left", "right")
    found = judge.faults(draw, NEW, lock(tmp_path, "torch==2.15.0", "left==1.5", "right==1.0"))
    assert found == ["left 1.5 has a wheel for Python 3.11 and none for 3.12"]


@pytest.mark.thorough
def test_an_outdated_pin_is_stale_if_a_working_lock_has_a_newer_one(
    tmp_path: Path, matrix: Matrix, server: IndexServer
) -> None:
    server.add("torch", releases("torch", ["2.10.0", "2.15.0"], upload_time=EARLY))
    left = [wheel("left", version, upload_time=EARLY) for version in ("1.0", "2.0")]
    server.add("left", [*left, wheel("left", "3.0", upload_time=LATE)])
    server.add(
        "right", [wheel("right", "1.0", upload_time=EARLY), wheel("right", "2.0", ["torch>=2.15"], upload_time=EARLY)]
    )
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "left", "right")
    locked = lock(tmp_path, "torch==2.10.0", "left==1.0", "right==1.0")
    assert list(judge.stale(draw, OLD_DRIVER, locked)) == ["left 1.0, 2.0 was possible on Python 3.13"]
    locked = lock(tmp_path, "torch==2.10.0", "left==2.0", "right==1.0")
    assert list(judge.stale(draw, OLD_DRIVER, locked)) == []
    assert "right 1.0, 2.0 was possible on Python 3.13" in judge.stale(draw, NEW, locked)


@pytest.mark.thorough
def test_a_newer_version_at_the_cost_of_another_is_not_stale(
    tmp_path: Path, matrix: Matrix, server: IndexServer
) -> None:
    server.add("torch", releases("torch", ["2.15.0"], upload_time=EARLY))
    server.add("right", releases("right", ["1.0", "2.0"], upload_time=EARLY))
    left = [wheel("left", version, needs, upload_time=EARLY) for version, needs in (("1.0", []), ("2.0", ["right<2"]))]
    server.add("left", left)
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "left", "right")
    assert list(judge.stale(draw, NEW, lock(tmp_path, "torch==2.15.0", "left==1.0", "right==2.0"))) == []


@pytest.mark.thorough
def test_a_newer_version_that_the_project_excludes_is_not_stale(
    tmp_path: Path, matrix: Matrix, server: IndexServer
) -> None:
    server.add("torch", releases("torch", ["2.15.0"], upload_time=EARLY))
    server.add("right", [wheel("right", "1.0", ["left<2"], upload_time=EARLY)])
    server.add("left", releases("left", ["1.0", "2.0"], upload_time=EARLY))
    judge = judge_of(tmp_path, matrix, server)
    draw = project(tmp_path, "torch", "left", "right; python_version < '3.13'")
    assert list(judge.stale(draw, NEW, lock(tmp_path, "torch==2.15.0", "left==1.0", "right==1.0"))) == []


@pytest.mark.thorough
def test_a_lock_that_only_works_with_numpy_1_counts(tmp_path: Path, matrix: Matrix, server: IndexServer) -> None:
    for name, versions in {"torch": ["2.2.2"], "left": ["1.0", "2.0"], "numpy": ["1.26.4", "2.0.0"]}.items():
        server.add(name, releases(name, versions, upload_time=EARLY))
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "left", "numpy")
    locked = lock(tmp_path, "torch==2.2.2", "left==1.0", "numpy==1.26.4")
    assert list(judge.stale(draw, NEW, locked)) == ["left 1.0, 2.0 was possible on Python 3.13"]


@pytest.mark.thorough
def test_a_found_lock_is_judged_for_its_own_python(tmp_path: Path, matrix: Matrix, server: IndexServer) -> None:
    server.add("torch", releases("torch", ["2.15.0"], upload_time=EARLY))
    new = [sdist("left", "2.0", upload_time=EARLY), wheel("left", "2.0", tags=CP311, upload_time=EARLY)]
    server.add("left", [wheel("left", "1.0", upload_time=EARLY), *new])
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "left")
    locked = lock(tmp_path, "torch==2.15.0", "left==1.0")
    assert list(judge.stale(draw, NEW, locked)) == ["left 1.0, 2.0 was possible on Python 3.11"]


@pytest.mark.thorough
def test_pins_of_the_project_are_never_stale(tmp_path: Path, matrix: Matrix, server: IndexServer) -> None:
    server.add("torch", releases("torch", ["2.15.0"], upload_time=EARLY))
    server.add("left", releases("left", ["1.0", "2.0"], upload_time=EARLY))
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch", "left==1.0")
    assert list(judge.stale(draw, NEW, lock(tmp_path, "torch==2.15.0", "left==1.0"))) == []


def test_user_reports_decide_whether_a_refusal_is_right(tmp_path: Path, matrix: Matrix) -> None:
    rows = [
        {"project": "demo", "target": "T1", "tool": "envsolve", "verdict": "REFUSED-RIGHT", "why": ""},
        {"project": "demo", "target": "T2", "tool": "uv", "verdict": "REFUSED-WRONG", "why": "Python 3.11"},
    ]
    (tmp_path / "judged.jsonl").write_text("".join(f"{json.dumps(it)}\n" for it in rows))
    judge, draw = judge_of(tmp_path, matrix), project(tmp_path, "torch")
    assert judge.exists(draw, "T1", NEW) == ""
    assert judge.exists(draw, "T2", OLD_DRIVER) == "Python 3.11"


@pytest.mark.thorough
def test_without_reports_uv_decides_whether_a_lock_exists(tmp_path: Path, matrix: Matrix, server: IndexServer) -> None:
    server.add("torch", releases("torch", ["2.10.0", "2.15.0"]))
    judge, draw = judge_of(tmp_path, matrix, server), project(tmp_path, "torch")
    assert judge.exists(draw, "T2", OLD_DRIVER) == "uv on Python 3.13"
    assert judge.exists(draw, "T5", Machine("RTX 4070", "566.36", Platform.WIN_64)) == ""
    impossible = project(tmp_path, "torch", "not-there")
    assert judge_of(tmp_path, matrix, server).exists(impossible, "T2", OLD_DRIVER) == ""
