"""Clean up after a search: remove packages that nothing needs, and update versions that are older than necessary.

A search drops a version if a later one does not admit it. Projects that the dropped version limited were picked with
that limit, and stay although nothing requires it any more. Here such versions are updated one by one: never with
another set of packages, only to a version that fits all the others as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envsolve.errors import OutsideError
from envsolve.resolve.closure.provider import Pick, Provider, Requirement

Reached = Mapping[str, list[tuple[Requirement, str]]]
"""The requirements on each project, and on each extra of one, with the name of the package that has them."""


def settled(picks: Mapping[str, Pick], provider: Provider) -> tuple[Mapping[str, Pick], Reached]:
    """Return ``picks`` with every version that can be better while all others stay, and the requirements on each.

    Packages that the request no longer needs are left out. Raises OutsideError.
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
    """The requirements of other packages on each project."""
    found: dict[str, list[Requirement]] = {}
    for requirements in reached.values():
        found.setdefault(requirements[0][0].name, []).extend(
            requirement for requirement, by in requirements if by != requirement.name
        )
    return found


def _better(
    name: str, requirements: Sequence[Requirement], picks: Mapping[str, Pick], reached: Reached, provider: Provider
) -> Iterator[Pick]:
    """The versions that are better than the pick and fit all other picks, best first."""
    extras = {requirement.extra for requirement in requirements}
    for pick in provider.in_order(requirements):
        if pick.position == picks[name].position:
            return
        is_fit = _fits(pick, extras, {**picks, name: pick}, reached, provider)
        if is_fit and not provider.world.needs_build(pick.releases, pick.fit.best):  # reads a source distribution
            yield pick


def _fits(pick: Pick, extras: set[str], picks: Mapping[str, Pick], reached: Reached, provider: Provider) -> bool:
    waiting, seen = list(extras), set(extras)
    while waiting:
        try:
            requirements = provider.get_dependencies(provider.with_extra(pick, waiting.pop()))
        except OutsideError:  # an unreadable version is not better
            return False
        for requirement in requirements:
            is_own = requirement.name == pick.name  # only the project itself may request its extras
            if (
                not (is_own or requirement.identifier in reached)
                or not requirement.mask >> picks[requirement.name].position & 1
            ):
                return False
            if is_own and requirement.extra not in seen:
                seen.add(requirement.extra)
                waiting.append(requirement.extra)
    return True
