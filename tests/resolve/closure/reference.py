"""What a solution is, and whether there is one, computed again with only packaging and by trying everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from packaging.requirements import Requirement

from tests.resolve.closure.drawn import Drawn, Pins

_Need = tuple[str, str]
"""A project and an extra of it, "" for the project itself."""

requirement = cache(Requirement)


def solutions(world: Drawn) -> Iterator[Pins]:
    """Every set of pins that meets all requirements without unneeded packages."""
    yield from _completed(world, {}, [requirement(line) for line in world.requested], frozenset())


def _completed(world: Drawn, pins: Pins, open_: Sequence[Requirement], done: frozenset[_Need]) -> Iterator[Pins]:
    if not open_:
        yield pins
        return
    need, *rest = open_
    for version in [pins[need.name]] if need.name in pins else world.projects[need.name]:
        if not need.specifier.contains(version):
            continue
        new = {(need.name, extra) for extra in ("", *need.extras)} - done
        further = [it for name, extra in new for it in needs(world, name, version, extra)]
        yield from _completed(world, {**pins, need.name: version}, [*rest, *further], done | new)


def needs(world: Drawn, name: str, version: str, extra: str) -> list[Requirement]:
    """What a version requires by itself, or additionally with the extra."""
    found = map(requirement, world.projects[name][version])
    return [it for it in found if (it.marker is not None) is bool(extra)]


def reached(world: Drawn, pins: Pins) -> dict[_Need, list[Requirement]]:
    """Everything that the request requires, with its dependents. Raises KeyError if a pin is missing."""
    found: dict[_Need, list[Requirement]] = {}
    waiting = [requirement(line) for line in world.requested]
    while waiting:
        need = waiting.pop()
        for extra in ("", *need.extras):
            if (need.name, extra) not in found:
                waiting += needs(world, need.name, pins[need.name], extra)
            found.setdefault((need.name, extra), []).append(need)
    return found


def is_met(world: Drawn, pins: Pins) -> bool:
    """Whether ``pins`` are a solution; unneeded ones are allowed here."""
    try:
        requirements = reached(world, pins)
    except KeyError:
        return False
    return all(need.specifier.contains(pins[name]) for (name, _), its in requirements.items() for need in its)
