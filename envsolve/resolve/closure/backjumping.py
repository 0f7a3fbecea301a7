"""A resolvelib search that finds every answer and no wrong ones, where resolvelib 1.2 fails in rare cases.

Backjumping: after a conflict, resolvelib goes back to a pick whose requirements are part of the conflict it began with.
It ignores what excluded the other versions of a project on the way back, and why its earlier versions failed. So it
skips picks of which another version would have helped. Here every project remembers why its versions failed, and what
limits it counts as well (conflict-directed backjumping, Prosser 1993).

Picks: a pick that does not meet a later requirement loses its own requirements. If the later requirement disappears
again, resolvelib treats the pick as made, but without its requirements. Here it has to be picked again.
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
"""The root, the state before the last pick, and the state after it."""


class BackjumpingResolution(Resolution[Requirement, Pick, str]):
    """The search that the module describes.

    It also remembers whether a pick meets its requirements, which resolvelib checks in every round.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._optimistic_backjumping_ratio = 0.0
        self._blamed: dict[str, set[str]] = {}
        """The projects because of which versions of a project failed."""
        self._verdicts: dict[str, tuple[Criterion[Requirement, Pick], Pick, bool]] = {}

    def _backjump(self, causes: list[Cause]) -> bool:
        """Go back to the last pick that is part of a conflict, and exclude its version. Return False if there is none.

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
        """The last pick of a blamed project. It is undone together with everything after it."""
        while self._states:
            broken = self._states.pop()
            if not broken.mapping or not self._states:
                break
            name, candidate = broken.mapping.popitem()
            if name in blamed:
                return name, candidate, broken
        raise ResolutionImpossible(list(causes))

    def _behind(self, names: Iterable[str], state: State[Requirement, Pick, str]) -> set[str]:
        """The projects that exclude other versions of ``names``, by a limit or because versions failed with them."""
        found: set[str] = set()
        for name in names:
            found |= self._blamed.get(name, set())
            found.update(self._parents(name, state))
        return found

    def _parents(self, name: str, state: State[Requirement, Pick, str]) -> Iterator[str]:
        """The picks that require a project. For a project with an extra, also those that require it without."""
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
