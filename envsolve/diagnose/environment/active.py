"""The environment that the shell's variables name, and variables that name none any more.

A directory that was removed leaves its variables behind in every open shell, in sessions of tmux, in editors and in
start-up files. Python does not read them; uv, Poetry and conda do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.reading import closed_directory, fault_of, is_directory, is_missing, names_of, real
from envsolve.diagnose.environment.from_files import is_environment, program_of

ACTIVE = ("VIRTUAL_ENV", "CONDA_PREFIX")
"""The variables that activation sets to the directory of an environment."""
_BESIDE = {
    "VIRTUAL_ENV": ("VIRTUAL_ENV_PROMPT",),
    "CONDA_PREFIX": ("CONDA_DEFAULT_ENV", "CONDA_PROMPT_MODIFIER", "CONDA_SHLVL"),
}
"""What activation sets in addition to each of them (``venv``'s activate; ``conda/activate.py``)."""
_PYTHON = re.compile(r"python-\d")


class Stale(NamedTuple):
    """A variable that names no environment: its value, the problem with it, and what else activation has set."""

    variable: str
    path: str
    fault: str
    beside: tuple[str, ...]


def stale_in(environ: Mapping[str, str], examined: Path | None = None) -> Iterator[Stale]:
    """The activation variables whose directory is gone, not accessible, or contains no Python and no environment.

    An environment that only lacks its Python is included only if another one is ``examined``: otherwise it is reported
    as broken.
    """
    for variable in ACTIVE:
        path = environ.get(variable)
        fault = _fault(Path(path).absolute(), examined) if path else None
        if path and fault is not None:
            yield Stale(variable, path, fault, tuple(it for it in _BESIDE[variable] if environ.get(it)))


def is_conda_without_python(directory: Path) -> bool:
    """Whether conda made it without ever installing a Python: an environment of compilers or libraries."""
    names = names_of(directory / "conda-meta")
    return "history" in names and not any(_PYTHON.match(name) for name in names)


def _fault(directory: Path, examined: Path | None) -> str | None:
    if not is_directory(directory):
        if is_missing(directory):
            return "is not there"
        closed = closed_directory(directory)
        return "is not a directory" if closed is None else f"cannot be looked at: {closed}"
    is_judged = examined is None or real(examined) == real(directory) or is_conda_without_python(directory)
    if is_judged and is_environment(directory):
        return None
    fault = fault_of(program_of(directory))
    return None if fault is None else f"holds no Python that runs: {program_of(directory)} {fault}"
