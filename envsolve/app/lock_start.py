"""The first step of a Python lock: what is asked for, and pages that are needed for sure on their way.

Neither the solver nor the matrix is loaded for it, so that a server answers while they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.app.asked_packages import Given, given
from envsolve.app.lock_indexes import Lines, Places, places, settings_of
from envsolve.app.network import Network
from envsolve.model.request import Request


class Start(NamedTuple):
    """What a request asks of which indexes, and the connection to them.

    Who has one closes its ``lines``.
    """

    wanted: Given
    where: Places
    lines: Lines


def start(request: Request, network: Network, environ: Mapping[str, str]) -> Start:
    """Read what the packages of ``request`` ask for, and ask for their pages; its frameworks do not count yet.

    Raises UsageError where a file or a setting cannot be read.
    """
    wanted = given(request.packages)
    settings = settings_of(environ)
    where = places(request, wanted, settings)
    builds, constraints = request.packages.allow_builds, wanted.build_constraints
    lines = Lines(network, settings, environ, builds=builds, build_constraints=constraints)
    lines.have_pages(list(dict.fromkeys(need.name for need, _ in wanted.needs if not need.url)), where)
    return Start(wanted, where, lines)
