"""The reasons for a conflict, and the fewest that are enough."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple, TypeVar

from envsolve.errors import ConflictStep
from envsolve.model.request import FrameworkRequest
from envsolve.resolve.conflict import Constraint
from envsolve.resolve.parts import Requirement

T = TypeVar("T")


class Conflict(NamedTuple):
    """Why there is no stack: a stable code, one sentence, the chain of facts behind it, and what cannot be combined.

    ``minimal`` is a smallest set of constraints without a stack, and ``spelled`` names them in words. ``unknown`` is a
    request for a framework of which no release is known.
    """

    code: str
    message: str
    steps: tuple[ConflictStep, ...]
    minimal: tuple[Constraint, ...] = ()
    spelled: tuple[str, ...] = ()
    unknown: FrameworkRequest | None = None


def step_of(requirement: Requirement) -> ConflictStep:
    """Return the fact behind a requirement as a link of a chain."""
    return ConflictStep(requirement.because.text, requirement.because.source, requirement.because.source)


def fewest(sets: Iterable[frozenset[T]], order: Iterable[T]) -> tuple[T, ...]:
    """Return the fewest items of ``order`` such that each set contains one; if equal, the earlier ones."""
    distinct = set(sets)
    every = [item for item in order if any(item in it for it in distinct)]
    for size in range(1, len(every) + 1):
        for chosen in combinations(every, size):
            if all(not it.isdisjoint(chosen) for it in distinct):
                return chosen
    return tuple(every)
