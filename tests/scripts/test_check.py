"""A random sample is read again: its result, and what is not read from the cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from packaging.version import Version

from envsolve.releases.frameworks.pytorch import PyTorchIndexReader
from envsolve.releases.wheels import WheelFile
from scripts.check_matrix import check
from scripts.matrix_refresh.index import ShuffledShelf
from scripts.refresh_matrix import refresh
from tests.matrix.tiny import tiny_matrix
from tests.scripts.served import ServedIndex
from tests.scripts.tables import component_table
from tests.scripts.wheels import LINUX, torch_library, torch_wheel

EMPTY = 'schema_version = 1\nupdated = "2026-01-05"\nframework = "pytorch"\naliases = ["torch"]\n'


@pytest.fixture
def matrix(index: ServedIndex, tmp_path: Path) -> Path:
    """A matrix that matches the index."""
    for version in ("2.7.0", "2.8.0", "2.9.0"):
        index.add(*(torch_wheel(version, tags=f"{python}-{python}-{LINUX}") for python in ("cp311", "cp312")))
    matrix = tmp_path / "matrix"
    matrix.mkdir()
    tiny_matrix(matrix)
    (matrix / "cuda_components.toml").write_text(component_table(), encoding="utf-8")
    (matrix / "pytorch.toml").write_text(EMPTY, encoding="utf-8")
    cache = str(tmp_path / "cache")
    ran = CliRunner().invoke(
        refresh, ["pytorch", "--matrix", str(matrix), "--index-url", index.endpoint, "--cache-dir", cache]
    )
    assert ran.exit_code == 0
    return matrix


def _check(matrix: Path, index: ServedIndex, *arguments: str) -> tuple[int, str, str]:
    place = ["pytorch", "--matrix", str(matrix), "--index-url", index.endpoint]
    result = CliRunner().invoke(check, [*place, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result.exit_code, result.stdout, result.stderr


def test_a_matrix_that_matches_the_wheels_passes(matrix: Path, index: ServedIndex) -> None:
    requests = index.wheel_requests()
    code, out, _ = _check(matrix, index, "--sample", "3")
    assert (code, out) == (0, "pytorch: 3 rows of 2.7.0, 2.8.0, 2.9.0 read again, all as the matrix says\n")
    assert index.wheel_requests() == 2 * requests


def test_a_different_wheel_fails(matrix: Path, index: ServedIndex) -> None:
    for python in ("cp311", "cp312"):
        index.add(torch_wheel("2.8.0", tags=f"{python}-{python}-{LINUX}", library=torch_library("sm_90")))
    code, out, _ = _check(matrix, index, "--sample", "3")
    assert code == 1
    assert "      sass: 7.5 8.0 9.0 -> 9.0\n" in out


def test_a_seed_determines_the_sample(matrix: Path, index: ServedIndex) -> None:
    first = _check(matrix, index, "--sample", "1", "--seed", "7")
    assert first == _check(matrix, index, "--sample", "1", "--seed", "7")
    assert "seed 7\n" in first[2]


def test_an_unreadable_wheel_is_not_a_difference(matrix: Path, index: ServedIndex) -> None:
    for name in index.files:
        index.failures[name] = "missing"
    code, _, err = _check(matrix, index)
    assert code == 3
    assert "error: torch-2." in err


@pytest.mark.thorough
def test_builds_of_pytorchs_own_index_are_checked_one_by_one(
    matrix: Path, index: ServedIndex, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(PyTorchIndexReader, "endpoints", (index.endpoint,))
    for build in ("cpu", "cu126", "cu128"):
        index.add(torch_wheel(f"2.9.0+{build}", tags="cp312-cp312-linux_x86_64"))
    command = ["pytorch-index", "--matrix", str(matrix)]
    assert CliRunner().invoke(refresh, [*command, "--cache-dir", str(tmp_path / "cache")]).exit_code == 0
    for seed in range(4):
        ran = CliRunner().invoke(check, [*command, "--sample", "1", "--seed", str(seed)])
        assert (ran.exit_code, "all as the matrix says" in ran.stdout) == (0, True), ran.output
    file = matrix / "pytorch.toml"
    text = file.read_text(encoding="utf-8")
    assert 'build = "cu126"' in text
    other = text.replace('platform = "linux-64"\nbuild = "cu126"', 'platform = "win-64"\nbuild = "cu126"')
    file.write_text(other, encoding="utf-8")
    ran = CliRunner().invoke(check, [*command, "--sample", "9"])
    assert ran.exit_code == 1
    assert "  ? 2.9.0 pytorch win-64 cu126 torch\n" in ran.stdout
    assert CliRunner().invoke(check, [*command, "--index-url", index.endpoint]).exit_code == 3


def test_the_order_of_checked_wheels_depends_on_the_seed() -> None:
    pythons = [f"3.{minor}" for minor in range(8, 16)]
    names = {python: f"t-1-cp{python.replace('.', '')}-none-win_amd64.whl" for python in pythons}
    wheels = [WheelFile("t", Version("1"), names[it], "", None, "win-64", (it,), None) for it in pythons]
    orders = [[it.filename for it in ShuffledShelf(wheels, seed).wheels("t", Version("1"))] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(order) == sorted(names.values()) for order in orders)
    assert ShuffledShelf(wheels, 1).platforms("t", Version("1")) == ["win-64"]


def test_another_release_date_fails(matrix: Path, index: ServedIndex) -> None:
    index.uploaded = {f"torch-2.8.0-cp311-cp311-{LINUX}.whl": "2025-08-06T10:00:00Z"}
    code, out, _ = _check(matrix, index, "--sample", "3")
    assert code == 1
    assert out.endswith("  ~ 2.8.0 released: (none) -> 2025-08-06\n")
