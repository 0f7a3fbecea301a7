"""What a search leaves behind: packages that nothing needs, and versions that are older than they need be.

While it goes, the search takes a version back when a later one does not admit it. What the first had bounded was
picked with that bound and stays, though nothing asks for it any more. Here such versions are put right, one after the
other: never by another set of packages, only by a version that goes with all the others as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envsolve.errors import OutsideError
from envsolve.resolve.closure.provider import Pick, Provider, Requirement

Reached = Mapping[str, list[tuple[Requirement, str]]]
"""What asks for each project, and for each extra of one, with the name of the package that asks."""


def settled(picks: Mapping[str, Pick], provider: Provider) -> tuple[Mapping[str, Pick], Reached]:
    """``picks``, by name, with whatever can be a better version while all others stay, and what asks for each.

    What the request does not lead to any more is left out. Raises OutsideError.
    """
    while True:
        reached = _reached(picks, provider)
        picks = {
            requirement.name: picks[requirement.name]
            for requirements in reached.values()
            for requirement, _ in requirements
        }
        requirements = _requirements_by_name(reached)
        better = next(
            (it for name in sorted(picks) for it in _better(name, requirements[name], picks, reached, provider)), None
        )
        if better is None:
            return picks, reached
        picks[better.name] = better


def _reached(picks: Mapping[str, Pick], provider: Provider) -> Reached:
    found: dict[str, list[tuple[Requirement, str]]] = {}
    waiting = [(requirement, "") for requirement in provider.roots]
    while waiting:
        requirement, by = waiting.pop()
        if requirement.identifier not in found:
            pick = provider.with_extra(picks[requirement.name], requirement.extra)
            waiting += ((it, requirement.name) for it in provider.get_dependencies(pick))
        found.setdefault(requirement.identifier, []).append((requirement, by))
    return found


def _requirements_by_name(reached: Reached) -> Mapping[str, list[Requirement]]:
    """What others ask of each project."""
    found: dict[str, list[Requirement]] = {}
    for requirements in reached.values():
        found.setdefault(requirements[0][0].name, []).extend(
            requirement for requirement, by in requirements if by != requirement.name
        )
    return found


def _better(
    name: str, requirements: Sequence[Requirement], picks: Mapping[str, Pick], reached: Reached, provider: Provider
) -> Iterator[Pick]:
    """The versions before the one that is picked, best first, that go with all other picks."""
    extras = {requirement.extra for requirement in requirements}
    for pick in provider.in_order(requirements):
        if pick.position == picks[name].position:
            return
        if not provider.world.needs_build(pick.releases, pick.fit.best) and _goes_with(
            pick, extras, {**picks, name: pick}, reached, provider
        ):
            yield pick


def _goes_with(pick: Pick, extras: set[str], picks: Mapping[str, Pick], reached: Reached, provider: Provider) -> bool:
    waiting, seen = list(extras), set(extras)
    while waiting:
        try:
            requirements = provider.get_dependencies(provider.with_extra(pick, waiting.pop()))
        except OutsideError:  # what cannot be read is not better
            return False
        for requirement in requirements:
            is_own = requirement.name == pick.name  # its extras may be requested by itself alone
            if (
                not (is_own or requirement.identifier in reached)
                or not requirement.mask >> picks[requirement.name].position & 1
            ):
                return False
            if is_own and requirement.extra not in seen:
                seen.add(requirement.extra)
                waiting.append(requirement.extra)
    return True
