"""What every format is written from: the solution, and the facts for the header."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from envsolve.lockfile.options import Options
from envsolve.model.host import Host
from envsolve.model.solution import Solution

if TYPE_CHECKING:
    from envsolve.lockfile.lock import RequestedSpec


class Answer(NamedTuple):
    """A solution with its hosts, the command and options that requested it, and the date of the matrix.

    ``own_matrix`` is true if the matrix is not the one that envsolve ships: the same command elsewhere may give another
    answer. ``requested`` are specs besides the frameworks, which are not pinned. ``variables`` are set in the
    environment. ``alternatives`` are the answers for other kinds of output and other sources.
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
