"""What every format is written from: the solution and what its header says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from envsolve.lockfile.options import Options
from envsolve.model.host import Host
from envsolve.model.solution import Solution

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Asked


class Answer(NamedTuple):
    """A solution with the hosts it was made for, the command and options that requested it, and the matrix's date.

    ``own_matrix`` says that the matrix is not the one envsolve ships: the same command elsewhere may answer otherwise.
    ``asked`` is what goes with the frameworks and is not pinned, ``variables`` what its files set in an environment.
    ``alternatives`` are what other kinds of output and other sources would give.
    """

    solution: Solution
    hosts: tuple[Host, ...]
    command: str
    matrix_date: str
    envsolve_version: str
    own_matrix: bool = False
    options: Options = ()
    asked: tuple[Asked, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    alternatives: tuple[Answer, ...] = ()
