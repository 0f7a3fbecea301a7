"""The comments for users in every file: who made it, the command, what it is for, and the reason for each line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from envsolve.boundary.display import one_line
from envsolve.lockfile.header_lines import COMMAND, EXPORTED, FOR, GPU, MADE_BY, MADE_BY_OWN_MATRIX, NEEDS, RESOLVED_FOR
from envsolve.model.host import Gpu, Host
from envsolve.model.solution import Solution

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

_COMMENT_COLUMN = 44
_HEADER_LINES = 60
_LONGEST_LINE = 4096


def made_by(version: str, command: str, matrix_date: str | None, *, own_matrix: bool) -> Iterator[str]:
    """Yield which envsolve made the file, with which matrix and which command."""
    yield (MADE_BY_OWN_MATRIX if own_matrix else MADE_BY).written(version=version, date=matrix_date)
    yield COMMAND.written(command=command)


def machines_of(solution: Solution, hosts: Iterable[Host]) -> str:
    """Return a description of the machines that a stack is for."""
    if solution.problem.cpu:
        return "CPU only"
    names = sorted({_gpu_named(gpu) for host in hosts for gpu in host.gpus})
    return one_line(", ".join(names)) if names else "any GPU that the builds below have code for"


def lock_header(lock: Lock) -> Iterator[str]:
    """Yield the comments at the top of a Python lock."""
    made = lock.made
    if made is not None:
        yield from made_by(made.envsolve_version, made.command, made.matrix_date, own_matrix=made.own_matrix)
    yield from exported_from_line(lock)
    if made is not None:
        yield from made_for_lines(lock)
        assumed = None if lock.glibc is None else f"glibc {lock.glibc}"
        yield RESOLVED_FOR.written(python=lock.python, assumed=assumed)


def exported_from_line(lock: Lock) -> Iterator[str]:
    """Yield the file that a lock was exported from, if any.

    The version of envsolve is left out, because a newer one writes the same.
    """
    if lock.exported_from is not None:
        yield EXPORTED.written(name=lock.exported_from)


def made_for_lines(lock: Lock) -> Iterator[str]:
    """Yield the platform, the machines and the driver that a lock is for; no driver for the CPU."""
    stack = lock.stack
    yield FOR.written(platform=lock.platform, machines="" if stack is None else stack.machines)
    if stack is not None and stack.minimum_driver is not None:
        yield NEEDS.written(floor=stack.minimum_driver)


def machines_in(text: str) -> str:
    """Return the description of the machines in the comments at the top of a file."""
    return FOR.first_in(comments_on_top(text)).get("machines", "")


def exported_from_in(text: str) -> str | None:
    """Return the file that another was exported from, according to the comments at its top, or None."""
    return EXPORTED.first_in(comments_on_top(text)).get("name")


def comments_on_top(text: str) -> Iterator[str]:
    """Yield the lines of the comments at the start of a file."""
    for line in text.split("\n", _HEADER_LINES)[:_HEADER_LINES]:
        if line.startswith("#"):
            yield line[:_LONGEST_LINE].rstrip("\r")
        else:
            return


def commented(line: str, reason: str) -> str:
    """Return ``line`` with ``reason`` as a comment, if there is one."""
    return f"{line.ljust(_COMMENT_COLUMN)}  # {one_line(reason)}" if reason else line


def _gpu_named(gpu: Gpu) -> str:
    return GPU.written(name=gpu.name, capability=str(gpu.compute_capability))
