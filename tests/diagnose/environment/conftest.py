"""The environments that tests change: an empty one, and one with a correct stack."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.matrix import Matrix
from tests.binary.layouts import real_loader
from tests.diagnose.environment.on_disk import Patient


@pytest.fixture(scope="session")
def sound_stack(tmp_path_factory: pytest.TempPathFactory) -> Patient:
    """PyTorch with CUDA, made once; tests take copies."""
    real_loader()
    patient = Patient(tmp_path_factory.mktemp("sound") / "environment")
    patient.stack()
    return patient


@pytest.fixture
def empty(tmp_path: Path) -> Patient:
    """An environment without packages."""
    real_loader()
    return Patient(tmp_path / "environment")


@pytest.fixture
def stack(sound_stack: Patient, tmp_path: Path) -> Patient:
    """A correct stack that a test may damage."""
    return sound_stack.copied(tmp_path / "environment")


@pytest.fixture(autouse=True)
def _matrix_is_read_once(matrix: Matrix, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped matrix, parsed once for all tests of this directory."""
    monkeypatch.setattr("tests.diagnose.environment.on_disk.Matrix", lambda: matrix)


@pytest.fixture(autouse=True)
def _no_kernels_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of Jupyter on the machine of the tests."""
    monkeypatch.setattr("envsolve.diagnose.environment.checks.kernels.SYSTEM", ())
