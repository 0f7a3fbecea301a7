"""How far requested packages are behind their newest release, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from math import inf
from operator import and_
from typing import NamedTuple

from envsolve.errors import OutsideError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, OWN_INDEX
from envsolve.model.need import is_limited, specifier_of
from envsolve.model.versions import LibcVersion, parsed_version
from envsolve.resolve.closure.ages import days_of
from envsolve.resolve.closure.provider import Pick, Provider, Requirement
from envsolve.resolve.closure.releases import Fit, Unfit, descending
from envsolve.resolve.closure.settle import Reached
from envsolve.resolve.closure.virtual import VirtualReleases
from envsolve.resolve.closure.world import Limit, Limits

DAYS_OF_A_MONTH = 30.44
_A_YEAR = 12


class Behind(NamedTuple):
    """A project whose newest release was not chosen.

    ``months`` is the time between the two releases, None if the index has no dates. ``limited_by`` says what requires
    the older one, such as ``vllm 0.21.0 requires torch==2.11.0``, the stack and the request first. It is empty if newer
    ones conflict only with everything else taken together.
    """

    name: str
    version: str
    newest: str
    months: float | None
    limited_by: tuple[str, ...]
    floor: Mapping[str, int]
    """The minimum versions for a search for the newest."""
    is_of_stack: bool = False
    """Whether the stack or the GPU excludes newer versions, and not only other packages."""
    admitted: str = ""
    """The newest version that ``limited_by`` and the stack admit, if newer than the chosen one: more excludes it."""


def behind(picks: Mapping[str, Pick], reached: Reached, newest: Mapping[str, str], limits: Limits) -> Iterator[Behind]:
    """Yield the projects of ``newest``, a map to their newest versions, of which an older version was picked.

    A package that is released with a framework, as torchvision with PyTorch, follows it and is no reason for its age.
    """
    for name, version in newest.items():
        pick = picks.get(name)
        if pick is None or not _is_older(pick.version, version):
            continue
        position = pick.releases.position(version)
        of_stack = [it for it in limits(name) if it.because and not _is_within(it, pick, position)]
        others = [
            (requirement, by)
            for requirement, by in sorted(
                (it for requirements in reached.values() for it in requirements), key=lambda it: it[1] not in newest
            )
            if requirement.name == name
            and by not in ("", name)
            and not _is_virtual(picks[by])
            and not _admits(requirement, version)
            if not (name in FRAMEWORK_OF_WHEEL and by in OWN_INDEX)
        ]
        masks = [*(it.admitted(pick.releases) for it in limits(name)), *(it.mask for it, _ in others)]
        reasons = dict.fromkeys(it.because for it in of_stack)
        reasons |= dict.fromkeys(f"{picks[by].label} requires {requirement}" for requirement, by in others)
        floor = {} if position is None else {name: position}
        months, admitted = _months(pick, position), _newest_in(masks, pick) if reasons else ""
        yield Behind(name, pick.version, version, months, tuple(reasons), floor, bool(of_stack), admitted)


def beyond_glibc(
    picks: Mapping[str, Pick], provider: Provider, names: Iterable[str]
) -> Iterator[tuple[str, str, LibcVersion]]:
    """Yield the newest version of each project that needs only a newer C library, and that glibc version."""
    fitting = provider.world.fitting
    for name in names:
        pick = picks.get(name)
        if pick is None or _is_virtual(pick):
            continue
        releases, above = pick.releases, pick.position + 1
        for position in descending(releases.own & provider.root_mask(name) >> above << above):
            if releases.is_prerelease(position) or releases.fit(position) is not Unfit.NEWER_GLIBC:
                continue
            needed = fitting.needed_glibc(releases.project.files(position))
            if needed is not None and _is_older(pick.version, releases.project.versions[position]):
                yield name, releases.project.versions[position], needed
            break


def _is_older(version: str, other: str) -> bool:
    """Whether a version is before another. Two builds of one version are equal."""
    one, another = (parsed_version(it.partition("+")[0]) for it in (version, other))
    return one is not None and another is not None and one < another


def _is_virtual(pick: Pick) -> bool:
    return isinstance(pick.releases, VirtualReleases)


def _newest_in(masks: Sequence[int], pick: Pick) -> str:
    """The newest version in all of ``masks`` if it is newer than the picked one, or else ""."""
    if _is_virtual(pick):
        return ""
    position = pick.releases.newest(reduce(and_, masks, pick.releases.own))
    version = "" if position is None else pick.releases.version(position)
    return version if _is_older(pick.version, version) else ""


def _is_within(limit: Limit, pick: Pick, position: int | None) -> bool:
    return position is None or limit.admitted(pick.releases) >> position & 1 == 1


def _months(pick: Pick, position: int | None) -> float | None:
    if position is None:
        return None
    days = days_of(pick.releases)
    found = (days[position] - days[pick.position]) / DAYS_OF_A_MONTH
    return found if 0 <= found < inf else None  # not finite if a version has no date


class Unlimited(NamedTuple):
    """A package that was released ``months`` before the ``framework`` next to it and sets no upper limit on it.

    ``is_outgrown`` is true if newer versions of the package do set a limit: then admitting every version is known to be
    wrong now.
    """

    name: str
    version: str
    framework: str
    months: float
    is_outgrown: bool


def unlimited(
    picks: Mapping[str, Pick],
    reached: Reached,
    newest: Mapping[str, str],
    packages: Collection[str],
    provider: Provider,
) -> Iterator[Unlimited]:
    """Yield packages of ``newest`` that are over a year older than a package in ``packages`` and do not limit it."""
    found = {
        (by, requirement.name): requirement
        for requirements in reached.values()
        for requirement, by in requirements
        if requirement.name in packages
    }
    pairs = ((name, it) for name in newest for it in packages if name in picks and name not in packages and it in picks)
    for name, framework in pairs:
        requirement, pick, other = found.get((name, framework)), picks[name], picks[framework]
        if _is_virtual(pick) or (requirement is not None and is_limited(requirement.specifier)):
            continue
        day, days = days_of(pick.releases)[pick.position], days_of(other.releases)
        months = (days[other.position] - day) / DAYS_OF_A_MONTH
        if not _A_YEAR < months < inf:
            continue
        is_outgrown = _limits(pick, newest[name], framework, provider)
        if requirement is not None or is_outgrown:
            yield Unlimited(name, pick.version, framework, months, is_outgrown)


def _limits(pick: Pick, version: str, framework: str, provider: Provider) -> bool:
    """Whether ``version`` of the picked project sets an upper limit on the framework, if its metadata is available."""
    position = pick.releases.position(version)
    fit = None if position is None else pick.releases.fit(position)
    if not isinstance(fit, Fit):
        return False
    with suppress(OutsideError):
        needs = provider.world.needs(pick.releases, fit.best, "") or ()
        return any(need.name == framework and is_limited(need.specifier) for need in needs)
    return False


def months_of(pick: Pick) -> float:
    """Return how many months a version is older than the newest release of its project; 0 without dates."""
    days = [it for it in days_of(pick.releases) if it != float("inf")]
    day = days_of(pick.releases)[pick.position]
    return max(0.0, (max(days) - day) / DAYS_OF_A_MONTH) if days and day != float("inf") else 0.0


def _admits(requirement: Requirement, version: str) -> bool:
    try:
        return specifier_of(requirement.specifier).contains(version, prereleases=True)
    except ValueError:
        return True
