"""What every format is written from: the solution and what its header says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from envsolve.lockfile.options import Options
from envsolve.model.host import Host
from envsolve.model.solution import Solution

if TYPE_CHECKING:
    from envsolve.lockfile.lock import RequestedSpec


class Answer(NamedTuple):
    """A solution with the hosts it was made for, the command and options that requested it, and the matrix's date.

    ``own_matrix`` says that the matrix is not the one envsolve ships: the same command elsewhere may answer otherwise.
    ``requested`` are specs besides the frameworks, which are not pinned. ``variables`` are set in the environment.
    ``alternatives`` are what other kinds of output and other sources would give.
    """

    solution: Solution
    hosts: tuple[Host, ...]
    command: str
    matrix_date: str
    envsolve_version: str
    own_matrix: bool = False
    options: Options = ()
    requested: tuple[RequestedSpec, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    alternatives: tuple[Answer, ...] = ()
