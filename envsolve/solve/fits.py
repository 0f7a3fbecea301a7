"""Which builds would run on given machines: the solver's own judgement of each, without making a stack of them."""

from __future__ import annotations

from collections.abc import Sequence

from envsolve.model.release import Release, Source
from envsolve.model.solution import Problem
from envsolve.solve.parts import Candidate, Requirement, framework_identifier, gpu_identifier
from envsolve.solve.provider import Provider, Tables


def runnable(problem: Problem, tables: Tables) -> list[Release]:
    """The builds of ``problem``'s frameworks that the resolver is offered for its machines.

    That takes a toolkit and a cuDNN the build admits, code for every GPU (PTX only under a driver that compiles it), a
    driver at every floor and within the life of every GPU; builds that are known to fail there are left out.
    """
    provider = Provider(problem, tables, tuple(Source), ranked=False)
    gpus = [
        candidate
        for number, machine in enumerate(problem.machines)
        for gpu, _ in machine.gpus
        for candidate in provider.matches(gpu_identifier(number, gpu), [])
    ]
    lives = [requirement for gpu in gpus for requirement in provider.get_dependencies(gpu)]
    return [
        candidate.thing
        for asked in problem.frameworks
        for candidate in _offered(provider, framework_identifier(asked.framework))
        if isinstance(candidate.thing, Release) and _machines_meet(provider, candidate, lives)
    ]


def _offered(provider: Provider, identifier: str) -> list[Candidate]:
    roots = [root for root in provider.roots if root.identifier == identifier]
    return provider.find_matches(identifier, {identifier: iter(roots)}, {identifier: iter(())})


def _machines_meet(provider: Provider, candidate: Candidate, lives: Sequence[Requirement]) -> bool:
    """Whether the machines meet what the build and the ``lives`` of their GPUs require together, of one driver too.

    What no GPU requires anything of is not asked again: alone a build is offered only where the machines meet it.
    """
    required = [*lives, *provider.get_dependencies(candidate)]
    return all(
        provider.matches(identifier, [it for it in required if it.identifier == identifier])
        for identifier in {requirement.identifier for requirement in lives}
    )
