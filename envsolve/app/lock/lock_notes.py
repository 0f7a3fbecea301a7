"""The notes on a Python lock: what is older than it could be and why, and what an installer needs to know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.lock.lock_refusal import index_hint
from envsolve.app.lock.lock_result import inline_text
from envsolve.app.packages.lock_stacks import Attempt
from envsolve.app.packages.stack_wheels import Rivals
from envsolve.app.request.command import way_out
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.index.metadata import corrected as read_as
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.need import Need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.prose import sentence_list
from envsolve.model.request import Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.closure.behind import Behind
from envsolve.resolve.closure.resolve import Found
from envsolve.resolve.closure.unknown_builds import is_about_cuda

if TYPE_CHECKING:
    from envsolve.app.lock.target_search import TargetSearch

_FEW_MONTHS = 6
_FEW = 3


class Resolved(NamedTuple):
    """A stack with all packages around it, and the ``best`` stack regardless of packages.

    ``floors`` are the chosen versions of the packages in the request. ``undecided`` are packages for which newer
    versions were still being tried when the time ran out.
    """

    attempt: Attempt
    best: Attempt
    found: Found
    floors: Mapping[str, str]
    undecided: tuple[str, ...] = ()


class Notes:
    """The notes for ``resolved``, which ``search`` found."""

    def __init__(self, resolved: Resolved, search: TargetSearch) -> None:
        self._resolved, self._search, self._request = resolved, search, search.lock_request.request
        self._wanted = search.wanted_on(resolved.attempt)

    def __iter__(self) -> Iterator[Note]:
        yield from self._held_back()
        yield from self._older_cuda()
        yield from self._newer_needs_glibc()
        yield from self._met_by_rivals()
        yield from self._older_than_framework()
        if self._resolved.undecided:
            names = ", ".join(self._resolved.undecided)
            yield Note("not-decided", f"time ran out before newer versions of {names} were tried")
        yield from notes_of_metadata(self._resolved.found, self._request)
        yield from self._overridden()

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The packages. ``because`` includes the unmet requirements that overrides replaced."""
        reasons: dict[str, list[str]] = {}
        for who, need, version in self._replaced:
            text = f"{who} requires {without_secrets(str(need))}, replaced by an override"
            reasons.setdefault(need.name if version else who.partition(" ")[0], []).append(text)
        pins = self._resolved.found.pins
        return tuple(pin._replace(because=(*pin.because, *reasons.get(pin.name, ()))) for pin in pins)

    def _held_back(self) -> Iterator[Note]:
        """Frameworks that are not the newest and packages half a year older than their newest, with reasons."""
        of_stack = {it.package for it in self._resolved.attempt.releases}
        for it in self._resolved.found.behind:
            months = it.months or 0
            if it.name not in of_stack and months < _FEW_MONTHS:
                continue
            age = f" is {months:.0f} months older than" if months >= _FEW_MONTHS else " is used, not"
            limit, command, every = next(iter(it.limited_by), ""), None, it.limited_by
            refused = None if limit and not it.admitted else self._refusal_of_newer(it, is_of_stack=it.name in of_stack)
            limit += self._needed_driver(it) if limit else ""
            because = limit or "newer ones do not fit"
            if refused is not None:
                because, every = inline_text(refused, every), (*every, refused.message, *refused.cause)
                if limit:  # a command would only change the second reason
                    because = f"{limit}, and {it.admitted} does not fit: {because}"
                else:
                    command = next((hint.command for hint in refused.hints if hint.command), None)
            elif not limit and self._search.versions.get(it.name) == it.version:
                because = f"the existing lock keeps it; -P {it.name} takes a newer one"
            text = f"{it.name} {it.version}{age} {it.newest}: {because}"
            note = Note("held-back", text, command)
            yield note.about(
                name=it.name,
                version=it.version,
                newest=it.newest,
                months=round(months),
                because="; ".join(every) or because,
            )

    def _needed_driver(self, it: Behind) -> str:
        """The driver that runs the CUDA of the newest version, in words; "" if that is not what it lacks."""
        solution, search = self._resolved.attempt.solution, self._search
        if solution is None or solution.toolkit is None:
            return ""
        known = search.matrix.build_facts(it.name, solution.problem.platform)
        facts = [of for of in known if of.covers(it.newest)]
        if all(of.go_with(solution.toolkit.version) for of in facts):
            return ""
        for driver, cuda in search.newer_drivers(self._resolved.best.problem):
            if all(of.go_with(cuda) for of in facts):
                return f" (CUDA {cuda.major} needs NVIDIA driver {driver} or newer)"
        return ""

    def _refusal_of_newer(self, it: Behind, *, is_of_stack: bool) -> UnsolvableError | None:
        """Why the newest version that its limits admit does not fit, found by a search for it or for its stack."""
        resolved = self._resolved
        if not is_of_stack:
            return self._search.refusal_of(resolved.attempt, {it.name: it.admitted or it.newest})
        stack = self._search.best_stack(_with(resolved.best.problem, it)) if it.admitted else resolved.best
        return None if stack is None else self._search.refusal_of(stack, resolved.floors)

    def _older_cuda(self) -> Iterator[Note]:
        """Builds of the newest version for a CUDA that is older than the newest that runs on the target."""
        newest = {it.framework: it for it in self._resolved.best.releases}
        for it in self._resolved.attempt.releases:
            better = newest.get(it.framework, it)
            if better.version == it.version and better.cuda and it.cuda and better.cuda.major > it.cuda.major:
                refused = self._search.refusal_of(self._resolved.best, self._resolved.floors)
                because = "" if refused is None else f": {inline_text(refused)}"
                yield Note("older-cuda", f"{it.label} is used, not the build for CUDA {better.cuda}{because}")

    def _newer_needs_glibc(self) -> Iterator[Note]:
        """Newer versions that need a newer C library."""
        for name, version, needed in self._resolved.found.beyond_glibc:
            have = self._resolved.attempt.interpreter.glibc
            text = f"{name} {version} needs glibc {needed}, and the target has {have}"
            hint = way_out(text, self._request._replace(glibc=needed), self._request)
            note = Note("newer-needs-glibc", hint.text, hint.command)
            yield note.about(name=name, version=version, glibc=str(needed))

    def _met_by_rivals(self) -> Iterator[Note]:
        """Packages that require one package while the lock has another that installs the same module."""
        for (name, version), (rival, own) in self._rivals.items():
            text = f"{name} {version} requires {rival}, and {own} in this lock installs the same module"
            note = Note("met-by-another-package", f"{text}: install it with pip install --no-deps or uv pip sync")
            yield note.about(name=name, version=version, required=rival, met_by=own)

    @cached_property
    def _rivals(self) -> Rivals:
        """The rivals that packages in the lock require: their names and versions with what they require and have."""
        labels = [(pin.name, pin.version) for pin in self._resolved.found.pins]
        return {it: self._search.rivals[it] for it in labels if it in self._search.rivals}

    def _older_than_framework(self) -> Iterator[Note]:
        """Packages that were released long before their framework and do not limit its version, the oldest first."""
        found = self._resolved.found
        versions = {pin.name: pin.version for pin in found.pins}
        for framework in dict.fromkeys(it.framework for it in found.unlimited):
            old = sorted((it for it in found.unlimited if it.framework == framework), key=lambda it: -it.months)
            named = [f"{it.name} {it.version}" for it in old]
            more = [f"{len(old) - _FEW} more"] if len(old) > _FEW else []
            are, do, them = ("are", "do", "them") if len(old) > 1 else ("is", "does", "it")
            label = f"{framework} {versions[framework]}" if framework in versions else framework
            text = f"{sentence_list([*named[:_FEW], *more])} {are} over a year older than {label} and {do} not limit it"
            note = Note("older-than-framework", f"{text}: test {them} with this version")
            yield note.about(framework=framework, packages=", ".join(named), months=round(old[0].months))

    def _overridden(self) -> Iterator[Note]:
        """Overrides without effect, unmet requirements that overrides replaced, and how to install such a lock."""
        requester, found = self._request.requester, self._resolved.found
        used = {need.name for need, _ in self._wanted.replaced} | {need.name for _, need in found.replaced}
        used |= {pin.name for pin in found.pins} | {rival for rival, _ in self._rivals.values()}
        for unused in (it for it in self._wanted.overrides if it.name not in used):
            option = requester.setting("overrides", without_secrets(str(unused)))
            note = Note("override-unused", f"{option} has no effect: nothing requires {unused.name}")
            yield note.about(name=unused.name)
        for who, need, version in self._replaced:
            required = without_secrets(str(need))
            installed = f"{need.name} {version}" if version else f"{need.name} is not installed"
            text = f"{who} requires {required}, replaced by {requester.name_of('overrides')}: {installed}"
            yield Note("overridden", text).about(by=who, name=need.name, required=required, version=version)
        if self._replaced and self._request.format == "requirements":
            text = "pip refuses requirements that overrides replace: install with"
            yield Note("install-without-deps", f"{text} `pip install --no-deps -r FILE` or `uv pip sync FILE`")

    @cached_property
    def _replaced(self) -> list[tuple[str, Need, str | None]]:
        """The requirements that overrides replaced and that the lock does not meet, each with its origin.

        The last value is the version in the lock, None if it has none.
        """
        found = self._resolved.found
        versions = {pin.name: pin.version for pin in found.pins}
        requested = ((origin, need) for need, origin in self._wanted.replaced)
        every = ((who, need, versions.get(need.name)) for who, need in (*requested, *found.replaced))
        return list(dict.fromkeys(it for it in every if not _is_met(*it[1:])))


def _with(problem: Problem, behind: Behind) -> Problem:
    """``problem`` with the admitted version of a framework."""
    name, version = FRAMEWORK_OF_WHEEL[behind.name], SpecifierSet(f"=={behind.admitted}")
    of = (it._replace(specifier=version) if it.framework == name else it for it in problem.frameworks)
    return problem._replace(frameworks=tuple(of))


def _is_met(need: Need, version: str | None) -> bool:
    """Whether ``version`` meets the requirement. None means that the project is not in the lock."""
    return version is not None and not need.url and SpecifierSet(need.specifier).contains(version, prereleases=True)


def notes_of_metadata(found: Found, request: Request) -> Iterator[Note]:
    """What an installer needs to know about the metadata of packages and about their builds."""
    for package, metadata in found.read:
        for line in metadata.corrected:
            text = f"{package} requires {line!r}, which is invalid and was read as {read_as(line)!r}"
            yield Note("metadata-corrected", f"{text}: pip 24.1 and newer refuse this package, uv installs it")
        if metadata.leads_to:
            text = f"{package} has only a source distribution that leads to the index {metadata.leads_to}"
            hint = index_hint(metadata.leads_to, request)
            note = Note("leads-to-index", f"{text}: {hint.text}", hint.command)
            yield note.about(package=package, index=metadata.leads_to)
        if metadata.built_with:
            text = f"{package} failed to build, and was built with {metadata.built_with}"
            yield Note("built-with", text).about(package=package, built_with=metadata.built_with)
        if metadata.build_imports:
            names = " and ".join(metadata.build_imports)
            text = f"the build of {package} imports {names}, which its own build environment does not have"
            way = f"install {names}, setuptools and wheel first, then this lock with --no-build-isolation (pip, uv)"
            yield Note("build-imports-framework", f"{text}: {way}").about(package=package, imports=names)


def gpu_notes(
    pins: Sequence[Pin], solution: Solution | None, request: Request, platform: Platform, matrix: Matrix
) -> Iterator[Note]:
    """What to know about CUDA code in ``pins`` that was not checked. ``solution`` is their stack, if any."""
    if solution is None:
        yield from _not_judged(pins, request, platform, matrix)
    else:
        yield from _sources(pins, solution, matrix)


def _not_judged(pins: Sequence[Pin], request: Request, platform: Platform, matrix: Matrix) -> Iterator[Note]:
    """Packages with CUDA code if a GPU or driver was named but no framework decides the CUDA version of the lock."""
    is_named = request.driver is not None or bool(request.hosts) or set(request.gpus) - {"auto", "none"}
    names = [
        it.name
        for it in (pins if is_named else ())
        if is_about_cuda(it.name, it.requires) or any(of.need_cuda for of in matrix.build_facts(it.name, platform))
    ]
    if names:
        text = f"{', '.join(names)}: not checked for the GPU and the driver, as the lock has no framework"
        yield Note("not-verified", f"{text}; with -f the framework that they run beside is locked too")


def _sources(pins: Sequence[Pin], solution: Solution, matrix: Matrix) -> Iterator[Note]:
    """Packages locked as source because wheels of newer releases do not suit the GPU or the rest of the lock."""
    problem, cuda = solution.problem, None if solution.toolkit is None else solution.toolkit.version
    versions = {it.name: it.version for it in pins}
    for pin in pins:
        if cuda is None or not pin.files or pin.files[0].is_wheel or not pin.files[0].is_archive:
            continue
        others = [it for it in matrix.build_facts(pin.name, problem.platform) if not it.loss]
        newer = SpecifierSet(f">{pin.version}")
        reasons = [
            f"{it.versions} {reason}"
            for it in others
            if not it.covers(pin.version) and not (it.versions & newer).is_unsatisfiable()
            for gpu in (it.without_code_for(problem.gpus, cuda),)
            for reason in ([f"has no code for compute capability {gpu}"] if gpu is not None else it.unmet(versions))
        ]
        if reasons:
            text = f"{pin.name} {pin.version} is a source distribution: a wheel of {pin.name}{reasons[0]}"
            yield Note("source-for-gpu", text).about(name=pin.name)
