"""``envsolve --version``, and with ``-v`` the versions that a bug report should contain."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator

from envsolve import __version__
from envsolve.model.installing_envsolve import CONDA_EXTRA


def version_text(*, verbose: bool) -> str:
    """The version, and the date of the shipped matrix."""
    from envsolve.app.matrix.matrix import matrix_date
    from envsolve.matrix import Matrix

    matrix = Matrix()
    first = f"envsolve, version {__version__}, with the compatibility matrix of {matrix_date(matrix)}"
    if not verbose:
        return f"{first}\n"
    facts = {"matrix": _matrix(str(matrix.directory)), "python": _python(), "platform": _platform()}
    facts |= {"conda extra": _conda_extra(), "uv": _uv()}
    return "".join(f"{line}\n" for line in (first, *(f"{name + ':':<13} {value}" for name, value in facts.items())))


def _matrix(shipped: str) -> str:
    other = os.environ.get("ENVSOLVE_MATRIX")
    return f"{shipped}; ENVSOLVE_MATRIX selects {other}" if other else shipped


def _python() -> str:
    return f"{platform.python_version()} ({platform.python_implementation()}), {sys.executable}"


def _platform() -> str:
    from envsolve.errors import UsageError
    from envsolve.host.machine import this_glibc, this_platform

    try:
        name = this_platform().value
    except UsageError:
        name = "none"
    glibc = this_glibc()
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    return f"{name} ({system}{'' if glibc is None else f', glibc {glibc}'})"


def _conda_extra() -> str:
    """The versions of the packages of the extra, and how to install the missing ones."""
    found = dict(_installed())
    versions = ", ".join(f"{name} {found.get(name, 'missing')}" for name in CONDA_EXTRA)
    if len(found) == len(CONDA_EXTRA):
        return f"installed: {versions}"
    how = f"to install it: pip install {' '.join(CONDA_EXTRA)}"
    return f"incomplete: {versions}; {how}" if found else f"not installed; {how}"


def _installed() -> Iterator[tuple[str, str]]:
    from importlib.metadata import PackageNotFoundError, version

    for name in CONDA_EXTRA:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _uv() -> str:
    from envsolve.boundary.answers import PATIENCE
    from envsolve.boundary.programs import run_program
    from envsolve.create.tools import find_uv

    program = find_uv()
    if program is None:
        return "no supported version"
    words = run_program([program, "--version"], os.environ, PATIENCE).last_line.split()
    return f"{words[1]}, {program}"
