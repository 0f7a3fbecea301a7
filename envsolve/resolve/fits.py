"""Find the builds that run on given machines, without solving for a stack."""

from __future__ import annotations

from envsolve.model.release import Release, Source
from envsolve.model.request import Request
from envsolve.model.solution import Problem
from envsolve.resolve.catalogue import Catalogue
from envsolve.resolve.parts import framework_identifier
from envsolve.resolve.provider import Provider


def runnable(problem: Problem, catalogue: Catalogue) -> list[Release]:
    """Return the builds of ``problem``'s frameworks that the resolver would consider for its machines.

    For such a build there are a toolkit and a cuDNN that it admits. It has code for every GPU; PTX counts only if the
    driver compiles it. The driver meets every floor and still supports every GPU. Builds with a known failure there are
    left out.
    """
    provider = Provider(Request(problem.frameworks), problem, catalogue, tuple(Source))
    if not provider.roots_hold():
        return []
    return [
        candidate.thing
        for requested in problem.frameworks
        for candidate in provider.running(framework_identifier(requested.framework))
        if isinstance(candidate.thing, Release)
    ]
