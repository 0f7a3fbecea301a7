"""What a search leaves behind: packages that nothing needs, and versions that are older than they need be.

While it goes, the search takes a version back when a later one does not admit it. What the first had bounded was
picked with that bound and stays, though nothing asks for it any more. Here such versions are put right, one after the
other: never by another set of packages, only by a version that goes with all the others as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envsolve.errors import OutsideError
from envsolve.resolve.closure.provider import Ask, Pick, Provider

Reached = Mapping[str, list[tuple[Ask, str]]]
"""What asks for each project, and for each extra of one, with the name of the package that asks."""


def settled(picks: Mapping[str, Pick], provider: Provider) -> tuple[Mapping[str, Pick], Reached]:
    """``picks``, by name, with whatever can be a better version while all others stay, and what asks for each.

    What the request does not lead to any more is left out. Raises OutsideError.
    """
    while True:
        reached = _reached(picks, provider)
        picks = {ask.name: picks[ask.name] for asks in reached.values() for ask, _ in asks}
        asks = _asks_by_name(reached)
        better = next(
            (it for name in sorted(picks) for it in _better(name, asks[name], picks, reached, provider)), None
        )
        if better is None:
            return picks, reached
        picks[better.name] = better


def _reached(picks: Mapping[str, Pick], provider: Provider) -> Reached:
    found: dict[str, list[tuple[Ask, str]]] = {}
    waiting = [(ask, "") for ask in provider.roots]
    while waiting:
        ask, by = waiting.pop()
        if ask.identifier not in found:
            pick = provider.with_extra(picks[ask.name], ask.extra)
            waiting += ((it, ask.name) for it in provider.get_dependencies(pick))
        found.setdefault(ask.identifier, []).append((ask, by))
    return found


def _asks_by_name(reached: Reached) -> Mapping[str, list[Ask]]:
    """What others ask of each project."""
    found: dict[str, list[Ask]] = {}
    for asks in reached.values():
        found.setdefault(asks[0][0].name, []).extend(ask for ask, by in asks if by != ask.name)
    return found


def _better(
    name: str, asks: Sequence[Ask], picks: Mapping[str, Pick], reached: Reached, provider: Provider
) -> Iterator[Pick]:
    """The versions before the one that is picked, best first, that go with all other picks."""
    extras = {ask.extra for ask in asks}
    for pick in provider.in_order(asks):
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
            asks = provider.get_dependencies(provider.with_extra(pick, waiting.pop()))
        except OutsideError:  # what cannot be read is not better
            return False
        for ask in asks:
            is_own = ask.name == pick.name  # its extras may be requested by itself alone
            if not (is_own or ask.identifier in reached) or not ask.mask >> picks[ask.name].position & 1:
                return False
            if is_own and ask.extra not in seen:
                seen.add(ask.extra)
                waiting.append(ask.extra)
    return True
