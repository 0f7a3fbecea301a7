"""The comments of every file for people: who made it, with which command, what it is for, and why a line is there."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.boundary.display import one_line
from envsolve.lockfile.answer import Answer
from envsolve.model.host import Gpu

_COMMENT_COLUMN = 44


def made_by(version: str, command: str, matrix_date: str | None, *, own_matrix: bool = False) -> Iterator[str]:
    """Which envsolve made the file, from the matrix of which day, with which command."""
    matrix = "" if matrix_date is None else f" from the compatibility matrix of {matrix_date}"
    given = " that --matrix gave" if own_matrix else ""
    yield one_line(f"# Made by envsolve {version}{matrix}{given}:")
    yield f"#   {one_line(command)}"


def made_for(answer: Answer) -> Iterator[str]:
    """The platform, the GPUs and the driver that the file is for; for the CPU, the platform alone."""
    solution = answer.solution
    problem = solution.problem
    if problem.cpu:
        yield f"# For: {problem.platform}, CPU only"
        return
    names = sorted({_gpu_named(gpu) for host in answer.hosts for gpu in host.gpus})
    listed = ", ".join(names) if names else "any GPU that the builds below hold code for"
    yield one_line(f"# For: {problem.platform}, {listed}")
    if solution.minimum_driver is not None:
        yield f"# Needs: NVIDIA driver {solution.minimum_driver} or newer"


def commented(line: str, reason: str) -> str:
    """``line`` with ``reason`` beside it, where there is one."""
    return f"{line.ljust(_COMMENT_COLUMN)}  # {one_line(reason)}" if reason else line


def _gpu_named(gpu: Gpu) -> str:
    return f"{gpu.name} ({gpu.compute_capability})" if gpu.name else f"a GPU of {gpu.compute_capability}"
