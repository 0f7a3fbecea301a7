"""Explain why no versions of some packages fit: who requires what, and how that package came into the request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import reduce
from itertools import islice
from operator import and_, or_
from typing import NamedTuple

from envsolve.errors import OutsideError
from envsolve.model.need import Need
from envsolve.model.prose import sentence_list
from envsolve.model.versions import LibcVersion
from envsolve.resolve.closure.bounds import THE_STACK
from envsolve.resolve.closure.provider import Pick, Provider, Requirement
from envsolve.resolve.closure.releases import Fit, Fitting, Releases, Unfit, descending
from envsolve.resolve.closure.resolve import SHORT, Conflict, TimeUpError, TooLongError, resolved
from envsolve.resolve.closure.virtual import VirtualReleases
from envsolve.resolve.closure.world import Limit

_FEW = 3
_LONGEST_PATH = 6
_LOOKED_AT = 30
_PYTHONS = range(8, 20)
"""The minor versions of Python 3 that packages may have files for."""


class _Kind(Enum):
    """What a sentence is about."""

    REQUEST = auto()
    """A requirement of the user."""
    PACKAGE = auto()
    """A requirement of another package."""
    FILES = auto()
    """Why versions cannot be installed: Python, platform, C library, hashes."""
    STACK = auto()
    """A requirement of the stack for the GPU."""
    GPU = auto()
    """A limit set by the GPU."""
    CONSTRAINT = auto()
    """A limit set by a constraint file."""
    LIMIT = auto()
    """A limit set by the stack."""
    PATH = auto()
    """How a package came into the request."""
    KNOWN = auto()
    """What the error's message already says."""


_Sentence = tuple[_Kind, str]


def explain(conflict: Conflict, known: Sequence[str] = ()) -> list[str]:
    """Return every reason for ``conflict``, each once.

    The first three are the most important: a requirement of the user, a requirement of another package, and the fact
    behind it. If one of these is missing, another reason takes its place. ``known`` are facts from elsewhere.
    """
    texts: dict[_Kind, list[str]] = {kind: [] for kind in _Kind}
    for kind, text in dict.fromkeys(_sentences(conflict)):
        texts[kind].append(text)
    kinds = (_Kind.GPU, _Kind.CONSTRAINT, _Kind.FILES, _Kind.LIMIT, _Kind.STACK)
    facts = [*known, *(text for kind in kinds for text in texts[kind])]
    request, package = texts[_Kind.REQUEST], texts[_Kind.PACKAGE]
    first = (*request[:1], *package[:1], *facts[:1])
    rest = (*package[1:], *facts[1:], *request[1:], *texts[_Kind.PATH], *texts[_Kind.KNOWN])
    return list(dict.fromkeys((*first, *rest)))


def between_packages(conflict: Conflict) -> list[str]:
    """Return the first conflicting requirements of packages."""
    return [text for kind, text in dict.fromkeys(_sentences(conflict)) if kind is _Kind.PACKAGE][:_FEW]


def newest_conflict(conflict: Conflict) -> list[str]:
    """Return the first conflicting requirements of packages, and why the versions they require cannot be installed."""
    kinds = (_Kind.PACKAGE, _Kind.FILES)
    return [text for kind, text in dict.fromkeys(_sentences(conflict)) if kind in kinds][:_FEW]


def newest_excluded(conflict: Conflict) -> Iterator[str]:
    """Why the stack excludes the newest required version of each contested project that it leaves no version of."""
    provider = conflict.provider
    for name in contested(conflict):
        releases = _releases(name, conflict)
        required = 0 if releases is None else _required(name, conflict) & releases.mask("")
        if releases is None or required & provider.allowed(releases):
            continue
        position = releases.newest(required)
        if position is not None:
            limits = (it for it in provider.world.limits(name) if it.because)
            yield from (it.because for it in limits if not it.admitted(releases) >> position & 1)


def _sentences(conflict: Conflict) -> Iterator[_Sentence]:
    provider = conflict.provider
    groups: dict[tuple[str, str], list[tuple[Requirement, Pick | None]]] = {}
    for requirement, parent in conflict.causes:
        groups.setdefault((parent.name if parent else "", requirement.name), []).append((requirement, parent))
    limits_some = any(_is_limit(requirement, provider) for requirement, _ in conflict.causes)
    for (_, name), group in sorted(groups.items(), key=_strictness):
        limiting = [it for it in group if _is_limit(it[0], provider)] if limits_some else group
        for of_kind, those in ((None, limiting), (_Kind.PATH, [it for it in group if it not in limiting])):
            for kind, text in _requirements(those, provider) if those else ():
                yield of_kind or kind, text + _installed(name, provider)
    for parent in {parent.identifier: parent for _, parent in conflict.causes if parent is not None}.values():
        yield from _path(parent, provider)
    for name in contested(conflict):
        yield from _limits(name, conflict)
        yield from ((_Kind.FILES, text) for text in _unfit(name, conflict))


def _is_limit(requirement: Requirement, provider: Provider) -> bool:
    """Whether a requirement excludes something. One that admits all versions only shows how a package came."""
    releases = requirement.releases
    return releases is None or requirement.name in provider.world.present or bool(releases.mask("") & ~requirement.mask)


def _strictness(of_project: tuple[tuple[str, str], list[tuple[Requirement, Pick | None]]]) -> tuple[int, bool, int]:
    """How many versions the user's requirements leave, whether any, and how many those of packages leave.

    Few are better reasons, and none the best one.
    """
    requirements = [
        requirement for requirement, parent in of_project[1] if parent is None and requirement.origin != THE_STACK
    ]
    leave_some = all(requirement.mask for requirement, _ in of_project[1])
    of_user = min((requirement.mask.bit_count() for requirement in requirements), default=0)
    return of_user, leave_some, min(requirement.mask.bit_count() for requirement, _ in of_project[1])


def fitting_versions(conflict: Conflict, end: float) -> Iterator[tuple[str, str]]:
    """Yield packages that the user limits and that have an answer without these limits, each with its version there.

    ``end`` is a time of the monotonic clock, at which the last search ends.
    """
    provider = conflict.provider
    involved = {
        name for requirement, parent in conflict.causes for name in (requirement.name, *_above(parent, provider))
    }
    own = (it for it in provider.roots if it.name in involved and it.origin != THE_STACK and it.specifier)
    for name in dict.fromkeys(it.name for it in own):
        roots = [
            (Need(it.name, (it.extra,) if it.extra else (), "" if is_free else it.specifier, ""), it.origin)
            for it in provider.roots
            for is_free in (it.name == name and it.origin != THE_STACK,)
        ]
        with suppress(Conflict, TooLongError, TimeUpError, OutsideError):
            yield name, resolved(Provider(provider.world, roots, {}), end, most_rounds=SHORT)[name].version


def missing(conflict: Conflict) -> list[Requirement]:
    """Return the requirements that no version of a known project meets, whatever else is required."""
    return [
        requirement
        for requirement, parent in conflict.causes
        if requirement.releases is not None
        and requirement.name not in conflict.provider.world.present
        and not requirement.mask
        and (parent is None or parent.name != requirement.name)
    ]


def contested(conflict: Conflict) -> list[str]:
    """Return the projects of which no version was left."""
    return list(dict.fromkeys(requirement.name for requirement, _ in conflict.causes))


def _requirements(group: list[tuple[Requirement, Pick | None]], provider: Provider) -> Iterator[_Sentence]:
    """What versions of another project, or the request, require of one project."""
    found = list(dict.fromkeys(parent.version for _, parent in group if parent is not None))
    if len(found) > _FEW:
        requirement, parent = group[0]
        assert parent is not None
        wanted = f"{versions(requirement)}{_because(requirement, parent, provider)}"
        kind = _Kind.KNOWN if isinstance(requirement.releases, VirtualReleases) else _Kind.PACKAGE
        yield kind, f"{parent.name} {found[-1]} to {found[0]} require other versions, such as {wanted}"
        return
    parents: dict[tuple[str, str], list[str]] = {}
    for requirement, parent in group:
        parents.setdefault((versions(requirement), requirement.origin), []).append(
            "" if parent is None else parent.version
        )
    for (wanted, origin), of in parents.items():
        parent = group[0][1]
        if parent is None:
            yield _Kind.STACK if origin == THE_STACK else _Kind.REQUEST, f"{origin} requires {wanted}"
        else:
            is_folder = isinstance(group[0][0].releases, VirtualReleases)
            kind = _Kind.KNOWN if is_folder else _Kind.PACKAGE
            because = _because(group[0][0], parent, provider)
            who = f"{parent.name} {' and '.join(dict.fromkeys(of))}".rstrip()
            yield kind, f"{who} requires {wanted}{because}"


def _because(requirement: Requirement, parent: Pick, provider: Provider) -> str:
    """Why a package has a requirement that is not in its metadata; "" if it is in there."""
    needs = provider.world.needs(parent.releases, parent.fit.best, parent.extra) or ()
    found = (it.because for it in needs if (it.name, it.specifier) == (requirement.name, requirement.specifier))
    return next((f", as {it}" for it in found if it), "")


def versions(requirement: Requirement) -> str:
    """Return the requirement as text. A stack requires one exact build, which is written as a version."""
    if isinstance(requirement.releases, VirtualReleases):
        return f"{requirement.name} for itself"
    specifier = requirement.specifier.replace("===", "==") if requirement.origin == THE_STACK else requirement.specifier
    return f"{requirement.identifier}{specifier}"


def _above(pick: Pick | None, provider: Provider) -> Iterator[str]:
    """The project of ``pick``, and those through which it came into the request."""
    for _ in range(_LONGEST_PATH):
        if pick is None:
            return
        yield pick.name
        _, pick = provider.first_parent.get(pick.identifier, (None, None))


def _path(pick: Pick, provider: Provider) -> Iterator[_Sentence]:
    """How ``pick`` came into the request, from the pick outwards."""
    for _ in range(_LONGEST_PATH):
        first = provider.first_parent.get(pick.identifier)
        if first is None:
            return
        requirement, parent = first
        if parent is None:
            yield (
                _Kind.KNOWN if requirement.origin == THE_STACK else _Kind.REQUEST,
                f"{requirement.origin} requires {versions(requirement)}",
            )
            return
        if parent.name != pick.name:
            yield _Kind.PATH, f"{parent.label} requires {versions(requirement)}"
        pick = parent


def _required(name: str, conflict: Conflict) -> int:
    """The versions that requirements admit, all together if possible: versions of one package may differ in them."""
    masks = [requirement.mask or -1 for requirement, _ in conflict.causes if requirement.name == name]
    return reduce(and_, masks, -1) or reduce(or_, masks)


def _limits(name: str, conflict: Conflict) -> Iterator[_Sentence]:
    """The limits on contested projects that exclude a required version."""
    world, releases = conflict.provider.world, _releases(name, conflict)
    for limit in world.limits(name):
        if releases is None or _required(name, conflict) & releases.mask("") & ~limit.admitted(releases):
            kind = _Kind.GPU if limit.is_of_gpu else _Kind.CONSTRAINT if limit.origin else _Kind.LIMIT
            yield kind, _bound(name, limit) + _installed(name, conflict.provider)


class WithoutCode(NamedTuple):
    """A project of which every required version is excluded because it does not run on the GPU.

    ``required`` is the project that the user requires and that leads to it. ``others_run`` is true if another final
    version may run there.
    """

    name: str
    required: str
    others_run: bool


def without_gpu_code(conflict: Conflict) -> Iterator[WithoutCode]:
    """Yield the projects without a required version that runs on the GPU."""
    for name in contested(conflict):
        releases = _releases(name, conflict)
        limits = [it for it in conflict.provider.world.limits(name) if it.is_of_gpu]
        if releases is None or not limits:
            continue
        running = reduce(and_, (it.admitted(releases) for it in limits), releases.mask(""))
        if not running & _required(name, conflict):
            parent = next(parent for requirement, parent in conflict.causes if requirement.name == name)
            finals = (releases.fit(it) for it in releases.newest_first(running) if not releases.is_prerelease(it))
            others_run = any(isinstance(it, Fit) and not it.is_yanked for it in finals)
            yield WithoutCode(name, (name, *_above(parent, conflict.provider))[-1], others_run)


def _bound(name: str, limit: Limit) -> str:
    if limit.origin:
        return f"{limit.origin} limits {name} to {limit.specifier}"
    return limit.because if name in limit.because else f"{name} is limited: {limit.because}"


def _installed(name: str, provider: Provider) -> str:
    present = provider.world.present.get(name)
    return "" if present is None else f", and {present.sentence}"


def _unfit(name: str, conflict: Conflict) -> Iterator[str]:
    """Why versions in the range cannot be installed, if that leaves none."""
    releases = _releases(name, conflict)
    if releases is None:
        urls = conflict.provider.world.indexes.urls_for(name)
        yield f"{sentence_list(urls)} {'does' if len(urls) == 1 else 'do'} not have {name}"
        return
    for unfit, version in reasons_of(name, conflict).items():
        needed = _needed_glibc(version, releases, conflict) if unfit is Unfit.NEWER_GLIBC else None
        if needed is not None:
            glibc = conflict.provider.world.wanted.interpreter.glibc
            yield f"{name} {version} needs glibc {needed}, and the target has {glibc}"
            continue
        yield f"{f'{name} {version}'.rstrip()}: {unfit}"
        if unfit is Unfit.OTHER_HASHES and name not in conflict.provider.world.present:
            yield from _hashes(version, releases, conflict)
    if name not in conflict.provider.world.virtual and any(it.name == name for it in missing(conflict)):
        yield _on_index(releases, conflict)


def glibc_needed_in(conflict: Conflict) -> LibcVersion | None:
    """Return the C library that the newest versions of contested projects need, or None if that is not the reason."""
    found = []
    for name in contested(conflict):
        releases, version = _releases(name, conflict), reasons_of(name, conflict).get(Unfit.NEWER_GLIBC)
        if releases is not None and version is not None:
            found.append(_needed_glibc(version, releases, conflict))
    return max(filter(None, found), default=None)


def _needed_glibc(version: str, releases: Releases, conflict: Conflict) -> LibcVersion | None:
    position = releases.position(version)
    if position is None:
        return None
    return conflict.provider.world.fitting.needed_glibc(releases.project.files(position))


def _hashes(version: str, releases: Releases, conflict: Conflict) -> Iterator[str]:
    """The index's hashes of a version, for the first few files."""
    where = conflict.provider.world.indexes.index_url(releases.project) or "the address"
    position = releases.position(version)
    for file in () if position is None else releases.project.files(position)[:_FEW]:
        digests = " and ".join(f"{algorithm}:{digest}" for algorithm, digest in file[2]) or "no hash"
        yield f"{where} has {file[0]} with {digests}"


def _on_index(releases: Releases, conflict: Conflict) -> str:
    """What the index has, if no version is in range. Only the first index that has a project is used for it."""
    there = releases.project.versions
    where = conflict.provider.world.indexes.index_url(releases.project) or "the file"
    if not there:
        return f"{where} has no version of {releases.project.name}"
    listed = " to ".join(dict.fromkeys((there[0], there[-1])))
    return f"{where} has {releases.project.name} {listed}, and no other index is used for it"


def reasons_of(name: str, conflict: Conflict) -> dict[Unfit, str]:
    """Return why no version that every requirement admits can be installed, each reason with its newest version.

    The result is empty if a version can be installed, or if no version is admitted.
    """
    releases = _releases(name, conflict)
    if releases is None:
        return {}
    mask = conflict.provider.root_mask(name)
    requirements = [requirement for requirement, _ in conflict.causes if requirement.name == name]
    for requirement in requirements:
        if requirement.mask & mask:
            mask &= requirement.mask
    pins = conflict.provider.is_pinned(name, requirements)
    reasons: dict[Unfit, str] = {}
    for position in islice(descending(mask), _LOOKED_AT):
        with suppress(OutsideError):
            unfit = conflict.provider.unfit(releases, position, requirements, pins=pins)
            if unfit is None:
                return {}
            reasons.setdefault(unfit, releases.version(position))
    if reasons.keys() == {Unfit.PRERELEASE} and any(_limits(name, conflict)):
        return {}  # the final versions are excluded, and the limit is the reason
    return reasons


def other_python_for(unfit: Mapping[str, Mapping[Unfit, str]], conflict: Conflict) -> str | None:
    """Return the nearest Python with a wheel of each package in ``unfit``, in its newest version; None if none has."""
    wanted, found = conflict.provider.world.wanted, list(_PYTHONS)
    for name, reasons in unfit.items():
        releases, version = _releases(name, conflict), next(iter(reasons.values()))
        position = None if releases is None else releases.position(version)
        files = () if releases is None or position is None else tuple(releases.project.files(position))
        on = (wanted._replace(interpreter=wanted.interpreter._replace(python=(3, minor, 0))) for minor in found)
        fits = [isinstance(Fitting(it).of(name, files), Fit) for it in on]
        found = [minor for minor, is_fit in zip(found, fits, strict=True) if is_fit]
    own = wanted.interpreter.python[1]
    return f"3.{min(found, key=lambda minor: abs(minor - own))}" if found else None


def _releases(name: str, conflict: Conflict) -> Releases | None:
    return next((requirement.releases for requirement, _ in conflict.causes if requirement.name == name), None)
