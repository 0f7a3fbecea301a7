"""The sources that remain with an order of channels: only the first channel that has a name provides it.

This is strict priority, the default of pixi and an option of conda:
https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-channels.html

So PyTorch's channel before conda-forge means PyTorch's own builds.
"""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.lockfile.conda_specs import channel_name
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.release import Source
from envsolve.model.request import Request
from envsolve.resolve.solver import Solver

WHEELS = (Source.PYPI, Source.PYTORCH)
_BEHIND_THE_PYTORCH_CHANNEL = (Source.PYTORCH_CHANNEL, Source.CONDA_FORGE, *WHEELS)


def sources_of(channels: Sequence[str]) -> tuple[Source, ...]:
    """The sources of builds in the order of ``channels``; () if these do not decide."""
    known = (Source.PYTORCH_CHANNEL.channel, Source.CONDA_FORGE.channel)
    first = next((name for name in map(channel_name, channels) if name in known), None)
    return _BEHIND_THE_PYTORCH_CHANNEL if first == Source.PYTORCH_CHANNEL.channel else ()


def in_order(request: Request) -> Request:
    """``request`` with the sources of its channels, unless it names sources itself."""
    return request._replace(sources=request.sources or sources_of(request.channels))


def solver_of(request: Request, matrix: Matrix) -> Solver:
    """A solver without builds that another channel hides. Has all builds if ``request`` names its sources."""
    behind = not request.sources and bool(sources_of(request.channels))
    return Solver(matrix, _without_what_is_behind if behind else None)


def _without_what_is_behind(table: FrameworkTable) -> FrameworkTable:
    if all(it.source is not Source.PYTORCH_CHANNEL for it in table.releases):
        return table
    return table._replace(releases=tuple(it for it in table.releases if it.source is not Source.CONDA_FORGE))
