"""A search that misses no answer and gives none that is wrong, where resolvelib 1.2 does either in rare cases.

Where to go back to from a conflict: resolvelib goes back to a pick whose requirements are named in the conflict that it
began with. It looks neither at what left no other version of a project on the way back nor at what earlier versions of
it failed for, and so skips picks of which another version would have helped. Here every project remembers what its
versions failed for, and what bounds it counts as well (conflict-directed backjumping, Prosser 1993).

What is picked: a pick that does not meet a later requirement loses its own requirements, and where the later one goes
again, resolvelib takes it for picked without them. Here it has to be picked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from resolvelib import ResolutionImpossible
from resolvelib.resolvers import Criterion, RequirementInformation, Resolution
from resolvelib.structs import State

from envsolve.resolve.closure.provider import Pick, Requirement

Cause = RequirementInformation[Requirement, Pick]


_STATES_TO_GO_BACK = 3
"""The root, what stood before the last pick, and what stands after it."""


class BackjumpingResolution(Resolution[Requirement, Pick, str]):
    """As the module says; it also remembers whether a pin meets its requirements, which is asked in every round."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._optimistic_backjumping_ratio = 0.0
        self._blamed: dict[str, set[str]] = {}
        """What the versions of a project failed for."""
        self._verdicts: dict[str, tuple[Criterion[Requirement, Pick], Pick, bool]] = {}

    def _backjump(self, causes: list[Cause]) -> bool:
        """Go back to the last pick that has a part in a conflict, and leave its version out; False if there is none.

        Raises ResolutionImpossible.
        """
        failed = {it.parent.identifier for it in causes if it.parent} - self.state.mapping.keys()
        blamed = {it.parent.identifier for it in causes if it.parent}
        blamed |= self._behind(failed, self.state)
        for cause in causes:
            blamed |= self._blamed.get(cause.requirement.identifier, set())
        while len(self._states) >= _STATES_TO_GO_BACK:
            del self._states[-1]
            name, candidate, broken = self._last_of(blamed, causes)
            left_out = [(it, list(criterion.incompatibilities)) for it, criterion in broken.criteria.items()]
            left_out.append((name, [candidate]))
            if name not in self.state.mapping:
                blamed.discard(name)
            self._blamed.setdefault(name, set()).update(blamed)
            self._push_new_state()
            if self._patch_criteria(left_out):
                return True
            blamed |= self._behind((it for it, versions in left_out if versions), self.state)
        return False

    def _last_of(self, blamed: set[str], causes: Sequence[Cause]) -> tuple[str, Pick, State[Requirement, Pick, str]]:
        """The last pick of something that is blamed, which is taken back with all that came after it."""
        while self._states:
            broken = self._states.pop()
            if not broken.mapping or not self._states:
                break
            name, candidate = broken.mapping.popitem()
            if name in blamed:
                return name, candidate, broken
        raise ResolutionImpossible(list(causes))

    def _behind(self, names: Iterable[str], state: State[Requirement, Pick, str]) -> set[str]:
        """What leaves no other version of ``names``: who bounds them, and what their versions failed for before."""
        found: set[str] = set()
        for name in names:
            found |= self._blamed.get(name, set())
            found.update(self._parents(name, state))
        return found

    def _parents(self, name: str, state: State[Requirement, Pick, str]) -> Iterator[str]:
        """The picks that ask for a project, and for one with an extra those that ask for it without."""
        for identifier in {name, name.partition("[")[0]} & state.criteria.keys():
            for _, parent in state.criteria[identifier].information:
                if parent is not None:
                    yield parent.identifier

    def _remove_information_from_criteria(
        self, criteria: dict[str, Criterion[Requirement, Pick]], parents: Collection[str]
    ) -> None:
        super()._remove_information_from_criteria(criteria, parents)
        for name in parents:
            self.state.mapping.pop(name, None)

    def _is_current_pin_satisfying(self, name: str, criterion: Criterion[Requirement, Pick]) -> bool:
        pin = self._states[-1].mapping.get(name)
        if pin is None:
            return False
        known = self._verdicts.get(name)
        if known is not None and known[0] is criterion and known[1] is pin:
            return known[2]
        verdict = super()._is_current_pin_satisfying(name, criterion)
        self._verdicts[name] = (criterion, pin, verdict)
        return verdict
