"""The notes beside a Python lock: what is older than it could be and why, and what an installer has to know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.command import way_out
from envsolve.app.lock_result import said
from envsolve.app.lock_stacks import Attempt
from envsolve.app.stack_wheels import Rivals
from envsolve.errors import UnsolvableError
from envsolve.index.metadata import corrected as read_as
from envsolve.model.note import Note
from envsolve.model.request import FrameworkRequest, Request
from envsolve.resolve.closure.behind import Behind
from envsolve.resolve.closure.resolve import Found
from envsolve.resolve.solver import Solver

_MOST_REASONS = 4
_FEW_MONTHS = 6


class Resolved(NamedTuple):
    """A stack with every package around it, and the ``best`` stack, whatever packages fit it.

    ``floors`` are the versions that were chosen of the packages in the request. ``undecided`` are the packages of which
    a newer version was still being tried when the time ran out.
    """

    attempt: Attempt
    best: Attempt
    found: Found
    floors: Mapping[str, str]
    undecided: tuple[str, ...] = ()


RefusalOf = Callable[[Attempt, Mapping[str, str]], "UnsolvableError | None"]
"""Why no packages fit a stack if none may be below its floor; None if some do, or if it cannot be found out."""


class Notes:
    """The notes for ``resolved``. ``rivals`` are the requirements that a package of another name meets."""

    def __init__(
        self, resolved: Resolved, request: Request, solver: Solver, rivals: Rivals, refusal_of: RefusalOf
    ) -> None:
        self._resolved, self._request, self._solver = resolved, request, solver
        self._rivals, self._refusal_of = rivals, refusal_of

    def __iter__(self) -> Iterator[Note]:
        yield from self._held_back()
        yield from self._older_cuda()
        yield from self._newer_needs_glibc()
        yield from self._met_by_rivals()
        yield from self._older_than_framework()
        if self._resolved.undecided:
            names = ", ".join(self._resolved.undecided)
            yield Note("not-decided", f"time ran out before newer versions of {names} were tried")
        for package, line in self._resolved.found.corrected:
            text = f"{package} requires {line!r}, which is invalid and was read as {read_as(line)!r}"
            yield Note("metadata-corrected", f"{text}: pip 24.1 and newer refuse this package, uv installs it")

    def _held_back(self) -> Iterator[Note]:
        """Frameworks that are not the newest, and other packages that are half a year older, with the reason."""
        of_stack = {it.package for it in self._resolved.attempt.releases}
        for it in self._resolved.found.behind:
            months = it.months or 0
            if it.name not in of_stack and months < _FEW_MONTHS:
                continue
            age = f" is {months:.0f} months older than" if months >= _FEW_MONTHS else " is used, not"
            because, command = " and ".join(it.held_by[:_MOST_REASONS]), None
            if not because:
                refused = self._refusal_of_newest(it, is_of_stack=it.name in of_stack)
                because = "newer ones do not fit" if refused is None else said(refused)
                hints = () if refused is None else refused.hints
                command = next((hint.command for hint in hints if hint.command), None)
            note = Note("held-back", f"{it.name} {it.version}{age} {it.newest}: {because}", command)
            yield note.about(name=it.name, version=it.version, newest=it.newest, months=round(months), because=because)

    def _refusal_of_newest(self, it: Behind, *, is_of_stack: bool) -> UnsolvableError | None:
        """Why the newest version does not fit: the search for it, or for the best stack, says so."""
        resolved = self._resolved
        if is_of_stack:
            return self._refusal_of(resolved.best, resolved.floors)
        return self._refusal_of(resolved.attempt, {it.name: it.newest})

    def _older_cuda(self) -> Iterator[Note]:
        """Builds of the newest version for an older CUDA than the newest that runs on the target."""
        newest = {it.framework: it for it in self._resolved.best.releases}
        for it in self._resolved.attempt.releases:
            better = newest.get(it.framework, it)
            if better.version == it.version and better.cuda and it.cuda and better.cuda.major > it.cuda.major:
                refused = self._refusal_of(self._resolved.best, self._resolved.floors)
                because = "" if refused is None else f": {said(refused)}"
                yield Note("older-cuda", f"{it.label} is used, not the build for CUDA {better.cuda}{because}")

    def _newer_needs_glibc(self) -> Iterator[Note]:
        """Newer versions that only a newer C library allows."""
        for name, version, needed in self._resolved.found.beyond_glibc:
            have = self._resolved.attempt.interpreter.glibc
            text = f"{name} {version} needs glibc {needed}, and the target has {have}"
            hint = way_out(text, self._request._replace(glibc=needed), self._request)
            note = Note("newer-needs-glibc", hint.text, hint.command)
            yield note.about(name=name, version=version, glibc=str(needed))

    def _met_by_rivals(self) -> Iterator[Note]:
        """Packages that require another one, in whose place the lock has one that installs the same module."""
        for pin in self._resolved.found.pins:
            if (pin.name, pin.version) in self._rivals:
                rival, own = self._rivals[pin.name, pin.version]
                text = f"{pin.name} {pin.version} requires {rival}, and {own} in this lock installs the same module"
                note = Note("met-by-another-package", f"{text}: install it with pip install --no-deps or uv pip sync")
                yield note.about(name=pin.name, version=pin.version, required=rival, met_by=own)

    def _older_than_framework(self) -> Iterator[Note]:
        """Packages for an older framework that do not limit it, with the framework of that time if it runs here."""
        request, attempt = self._request, self._resolved.attempt
        of = {it.package: it.framework for it in attempt.releases}
        for it in self._resolved.found.unlimited:
            text = (
                f"{it.name} {it.version} is {it.months:.0f} months older than its {it.framework}, and does not limit it"
            )
            older = FrameworkRequest(of[it.framework], SpecifierSet(f"=={it.then}"))
            others = tuple(other for other in request.frameworks if other.framework != older.framework)
            earlier = request._replace(frameworks=tuple(sorted((*others, older), key=lambda it: it.framework)))
            problem = attempt.problem._replace(frameworks=earlier.frameworks, python=request.python)
            note = Note("older-than-framework", text)
            if self._solver.can_solve(earlier, problem):
                hint = way_out(f"{text}: {it.framework} {it.then} was the newest then", earlier, request)
                note = Note(note.code, hint.text, hint.command)
            yield note.about(
                name=it.name, version=it.version, framework=it.framework, months=round(it.months), then=it.then
            )
