"""What every answer has in common: if few versions of a required project are left, what all of them require.

A search meets a conflict between two requested packages again and again, once for each way to meet the requirements
between them. If all remaining versions of PyTorch require nvJitLink 12.8, no answer has another one, and a package that
requires a newer one is no candidate. This is known before anything is picked.
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
"""The number of remaining versions of a project up to which this is done."""
_MANY = 128
"""The same for two requested projects, where each version is compared with each."""


def narrow(provider: Provider, requirements: Iterable[Requirement], to_read: int, end: float) -> bool:
    """Exclude versions of required projects whose own requirements cannot be met; return whether any was excluded.

    ``requirements`` are those of every answer. What all remaining versions of such a project require is in every answer
    as well, and narrowed with it. A project is skipped if more than ``to_read`` versions have metadata that is not
    fetched yet. The search ends at ``end``, a time of the monotonic clock.
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
    """For each project, the versions that fit some version of each other project, by what both require.

    Packages that each pin the same others, such as vLLM and SGLang, have few pairs of versions that fit, or none. A
    search would find that out pair by pair, each time through everything between them.
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
    """The requirements of each remaining version of a project, or None if they are unknown or too many."""
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
    """Whether the metadata of the versions in ``mask`` is cached. Up to ``to_read`` missing ones are fetched."""
    world, fits = provider.world, (releases.fit(position) for position in descending(mask))
    files = [it.best for it in fits if isinstance(it, Fit) and not world.is_at_hand(releases, it.best)]
    if len(files) > to_read:
        return False
    world.prepare(releases, files, further=False)
    return True


def _bounds_of(name: str, extra: str, provider: Provider, to_read: int) -> Iterator[tuple[tuple[str, str], int]]:
    """The versions of a project that can have ``extra``, and those of projects that all of these require."""
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
    """The versions of projects that a version requires, or None if they are unknown."""
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
