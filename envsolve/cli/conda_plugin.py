"""A health check for ``conda doctor``: the findings of ``envsolve doctor`` for the environment that conda checks.

conda loads it through the entry point ``conda`` (conda's developer guide, "Health Checks"). This is the only module
that imports conda, and only conda imports it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
from conda.plugins import hookimpl
from conda.plugins.types import CondaHealthCheck

NAME = "gpu-stack"
SUMMARY = "Check GPU, driver, CUDA libraries and frameworks with envsolve"
"""Shown by `conda doctor --list`, in versions of conda that have summaries."""
_GOOD, _BAD = "✅", "❌"
"""The marks of conda's own checks (conda.base.constants)."""


class _Silent:
    """Shows no progress: conda prints its own."""

    def show(self, text: str) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""


def check(prefix: str, verbose: bool) -> None:
    """Print what is wrong with the GPU stack of ``prefix`` on this machine; with ``verbose`` all details."""
    from envsolve.app.environment.doctoring import DoctorRequest, diagnose
    from envsolve.boundary.display import escaped, one_line
    from envsolve.cli.finding_text import finding_lines
    from envsolve.errors import EnvsolveError

    try:
        diagnosed = diagnose(DoctorRequest(_Silent(), prefix=prefix), os.environ)
    except EnvsolveError as error:
        click.echo(f"{_BAD} {NAME}: {one_line(error.message)}\n")
        return
    if diagnosed.ok:
        click.echo(f"{_GOOD} {NAME}: nothing is broken\n")
    else:
        click.echo(f"{_BAD} {NAME}:\n")
    for finding in diagnosed.findings:
        click.echo(escaped("\n".join((*finding_lines(finding, full=verbose), ""))))


@hookimpl  # type: ignore[untyped-decorator]  # conda ships no types
def conda_health_checks() -> Iterator[CondaHealthCheck]:
    """Register the check with conda."""
    found = CondaHealthCheck(name=NAME, action=check)
    if hasattr(found, "summary"):
        found.summary = SUMMARY
    yield found
