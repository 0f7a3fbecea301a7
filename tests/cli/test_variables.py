"""Variables of envsolve that are set and never read."""

from __future__ import annotations

import pytest

from envsolve.cli.main import cli
from envsolve.cli.variables import unknown_variables
from tests.conftest import Envsolve


@pytest.mark.parametrize(
    ("name", "meant"),
    [("ENVSOLVE_MATRX", "did you mean ENVSOLVE_MATRIX?"), ("ENVSOLVE_GPUS", "did you mean ENVSOLVE_GPU?")],
)
def test_a_misspelled_variable_is_noted(
    name: str, meant: str, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/x")
    done = envsolve("-f", "jax", "--gpu", "none")
    assert done.code == 0
    assert done.err.endswith(f"note: the variable {name} is set, but envsolve has no option of that name; {meant}\n")
    assert name not in envsolve("-q", "-f", "jax", "--gpu", "none").err


def test_it_is_also_noted_below_an_error(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSOLVE_DRIVR", "580")
    done = envsolve("-f", "pytroch")
    assert done.code == 2
    assert "did you mean ENVSOLVE_DRIVER?" in done.err


def test_known_variables_are_not_noted() -> None:
    known = (
        "ENVSOLVE_GPU",
        "ENVSOLVE_CHECK",
        "ENVSOLVE_DEBUG",
        "ENVSOLVE_OLD_XLA_FLAGS",
        "ENVSOLVE_TEST_CONDA",
        "ENVSOLVE_URL",
        "HOME",
    )
    assert list(unknown_variables(known, cli)) == []
