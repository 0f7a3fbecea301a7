"""What every answer has in common: where a few versions are left of what must be there, what all of them require.

A search meets a conflict between two packages that were asked for again and again, once for each way of meeting what
lies between them. Where all versions of PyTorch that are left want nvJitLink 12.8, no answer has another one, and what
wants a newer one is no candidate: known before anything is picked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING

from envsolve.errors import OutsideError
from envsolve.model.need import Need
from envsolve.resolve.closure.releases import Fit, Releases, descending

if TYPE_CHECKING:
    from envsolve.resolve.closure.provider import Ask, Provider

_FEW = 32
"""Versions that are left of a project, for which it is done."""


def narrow(provider: Provider, asks: Iterable[Ask], to_read: int, end: float) -> bool:
    """Bound what every answer has, as ``asks`` say, to versions whose requirements can be met; whether any is left out.

    What all versions that are left of such a project require is in every answer as well, and bounded with them. A
    project of which more than ``to_read`` versions have metadata that are still to be fetched is left alone. Nothing
    more is looked at after ``end``, a moment of the monotonic clock.
    """
    known = dict.fromkeys((ask.name, ask.extra) for ask in asks)
    is_settled = found = False
    while not is_settled:
        is_settled = True
        for name, extra in tuple(known):
            if monotonic() > end:
                return found
            for identifier, mask in _bounds_of(name, extra, provider, to_read):
                known.setdefault(identifier)
                if provider.bound_root(identifier[0], mask):
                    is_settled, found = False, True
    return found


_Masks = dict[tuple[str, str], int]
"""Versions by project and extra, "" for the project itself."""


def _bounds_of(name: str, extra: str, provider: Provider, to_read: int) -> Iterator[tuple[tuple[str, str], int]]:
    """The versions of a project that can be with ``extra``, and those of projects that all of these require."""
    releases = provider.world.releases(name)
    mask = provider.root_mask(name)
    if releases is None or not mask or mask.bit_count() > _FEW:
        return
    world, fits = provider.world, (releases.fit(position) for position in descending(mask))
    files = [it.best for it in fits if isinstance(it, Fit) and not world.is_at_hand(releases, it.best)]
    if len(files) > to_read:
        return
    world.prepare(releases, files, further=False)
    possible, shared = 0, _Masks()
    for position in descending(mask):
        needs = _needs_of(releases, position, extra, provider)
        if needs is None:
            return
        if all(provider.root_mask(it) & admitted for (it, _), admitted in needs.items()):
            shared = {it: shared[it] | needs[it] for it in shared.keys() & needs} if possible else needs
            possible |= 1 << position
    yield (name, extra), possible
    yield from shared.items()


def _needs_of(releases: Releases, position: int, extra: str, provider: Provider) -> _Masks | None:
    """The versions of projects that a version requires; None where that cannot be known."""
    never: _Masks = {(releases.project.name, ""): 0}
    fit = releases.fit(position)
    if not isinstance(fit, Fit):
        return None if provider.world.wanted.sources else never
    try:
        needs = provider.world.needs(releases, fit.best, extra)
    except OutsideError:
        return None
    return never if needs is None else _masks(needs, provider)


def _masks(needs: Iterable[Need], provider: Provider) -> _Masks:
    found: _Masks = {}
    for need in needs:
        releases = provider.world.releases(need.name)
        if releases is not None and not need.url:
            mask = releases.mask(need.specifier)
            for extra in ("", *need.extras):
                found[need.name, extra] = found.get((need.name, extra), mask) & mask
    return found
