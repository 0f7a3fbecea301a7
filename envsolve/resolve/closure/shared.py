"""What every answer has in common: where a few versions are left of what must be there, what all of them require.

A search meets a conflict between two requested packages again and again, once for each way of meeting what
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
    from envsolve.resolve.closure.provider import Provider, Requirement

_FEW = 32
"""Versions that are left of a project, for which it is done."""
_MANY = 128
"""The same of two projects in the request, of which each version is compared with each."""


def narrow(provider: Provider, requirements: Iterable[Requirement], to_read: int, end: float) -> bool:
    """Exclude versions of projects in every answer, by ``requirements``, that cannot be met; return whether any was.

    What all versions that are left of such a project require is in every answer as well, and bounded with them. A
    project of which more than ``to_read`` versions have metadata that are still to be fetched is left alone. Nothing
    more is looked at after ``end``, a moment of the monotonic clock.
    """
    requirements = tuple(requirements)
    known = dict.fromkeys((requirement.name, requirement.extra) for requirement in requirements)
    named = dict.fromkeys(requirement.name for requirement in requirements)
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
        for name, mask in _that_have_partners(named, provider, to_read) if is_settled else ():
            if provider.bound_root(name, mask):
                is_settled, found = False, True
    return found


_Masks = dict[tuple[str, str], int]
"""Versions by project and extra, "" for the project itself."""


def _that_have_partners(names: Iterable[str], provider: Provider, to_read: int) -> Iterator[tuple[str, int]]:
    """Of each project the versions that go with some version of each other one, by what both require.

    Packages that each pin the same others, as vLLM and SGLang do, have few pairs of versions that agree, or none. A
    search would find that out pair by pair, each time by way of all that lies between.
    """
    tables = [(name, it) for name in names if (it := _table(name, provider, to_read)) is not None]
    for number, (name, table) in enumerate(tables):
        for other, others in tables[number + 1 :]:
            mine = its = 0
            for position, needs in table.items():
                for its_position, its_needs in others.items():
                    if _agree({**needs, (name, ""): 1 << position}, {**its_needs, (other, ""): 1 << its_position}):
                        mine, its = mine | 1 << position, its | 1 << its_position
            yield name, mine
            yield other, its


def _table(name: str, provider: Provider, to_read: int) -> dict[int, _Masks] | None:
    """What each version that is left of a project requires; None if that is not known, or there are many."""
    releases = provider.world.releases(name)
    mask = provider.root_mask(name)
    if releases is None or not mask or mask.bit_count() > _MANY or not _is_read(releases, mask, provider, to_read):
        return None
    found = {position: _needs_of(releases, position, "", provider) for position in descending(mask)}
    known = {position: needs for position, needs in found.items() if needs is not None}
    return known if len(known) == len(found) else None


def _agree(one: _Masks, other: _Masks) -> bool:
    return all(mask & other[it] for it, mask in one.items() if it in other)


def _is_read(releases: Releases, mask: int, provider: Provider, to_read: int) -> bool:
    """Whether the metadata of the versions in ``mask`` are at hand, but for ``to_read``, which are fetched then."""
    world, fits = provider.world, (releases.fit(position) for position in descending(mask))
    files = [it.best for it in fits if isinstance(it, Fit) and not world.is_at_hand(releases, it.best)]
    if len(files) > to_read:
        return False
    world.prepare(releases, files, further=False)
    return True


def _bounds_of(name: str, extra: str, provider: Provider, to_read: int) -> Iterator[tuple[tuple[str, str], int]]:
    """The versions of a project that can be with ``extra``, and those of projects that all of these require."""
    releases = provider.world.releases(name)
    mask = provider.root_mask(name)
    if releases is None or not mask or mask.bit_count() > _FEW or not _is_read(releases, mask, provider, to_read):
        return
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
    """The versions of projects that a version requires; None if that cannot be known."""
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
