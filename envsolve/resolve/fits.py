"""Which builds would run on given machines: the solver's own judgement of each, without making a stack of them."""

from __future__ import annotations

from envsolve.model.release import Release, Source
from envsolve.model.request import Request
from envsolve.model.solution import Problem
from envsolve.resolve.catalogue import Catalogue
from envsolve.resolve.parts import framework_identifier
from envsolve.resolve.provider import Provider


def runnable(problem: Problem, catalogue: Catalogue) -> list[Release]:
    """The builds of ``problem``'s frameworks that the resolver is offered for its machines.

    That takes a toolkit and a cuDNN the build admits, code for every GPU (PTX only under a driver that compiles it), a
    driver at every floor and within the life of every GPU; builds that are known to fail there are left out.
    """
    provider = Provider(Request(problem.frameworks), problem, catalogue, tuple(Source))
    if not provider.roots_hold():
        return []
    return [
        candidate.thing
        for asked in problem.frameworks
        for candidate in provider.running(framework_identifier(asked.framework))
        if isinstance(candidate.thing, Release)
    ]
