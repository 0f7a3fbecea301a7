"""What every format is written from: the solution and what its header tells."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.lockfile.options import Options
from envsolve.model.host import Host
from envsolve.model.solution import Solution


class Answer(NamedTuple):
    """A solution with the hosts it was made for, the command and options that asked for it, and the matrix's date.

    ``own_matrix`` says that the matrix is not the one envsolve ships: the same command elsewhere may answer otherwise.
    """

    solution: Solution
    hosts: tuple[Host, ...]
    command: str
    matrix_date: str
    envsolve_version: str
    own_matrix: bool = False
    options: Options = ()
