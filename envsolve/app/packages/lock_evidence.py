"""What is known about the CUDA code in a lock, and its sources. A lock records it; status compares it with today."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum

from envsolve.app.request.own_rows import GPU_CODE
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.options import Options
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.release import Release
from envsolve.model.solution import Solution
from envsolve.resolve.closure.unknown_builds import is_unknown

UNREAD_PLACES = "places_unread"
"""The key of ``evidence`` for places of data/sources that could not be read: ``flash-attn Astral GPU indexes``."""
Origins = Mapping[str, str]
"""The :class:`Origin` of the facts, by package. For inferred facts with the release: ``inferred as in 1.0``."""


class Origin(StrEnum):
    """The origin of facts about a package: the keys of ``evidence`` in a lock, in that order."""

    MATRIX = "matrix"
    """Rows that envsolve ships, or those of --matrix."""
    READ_HERE = "read_here"
    """Rows from ``envsolve matrix update`` on the machine that made the lock."""
    WHEEL = "wheel"
    """The wheel itself, read for the lock."""
    INFERRED = "inferred"
    """Another release, which is assumed to be alike."""
    UNREAD = "unread"
    """Unknown or incomplete: the package involves CUDA and was not read."""

    @property
    def is_of_capabilities(self) -> bool:
        """Whether the code was seen to support the GPUs of the lock."""
        return self not in (Origin.INFERRED, Origin.UNREAD)


def evidence_of(lock: Lock, solution: Solution | None, matrix: Matrix, read: Origins) -> Options:
    """The names of the packages in ``lock`` with CUDA code, by the origin of the facts about them; none for the CPU.

    ``read`` has the origins for packages that ``matrix`` does not know.
    """
    if solution is None or solution.toolkit is None:
        return ()
    releases = {it.release.package: it.release for it in solution.choices}
    origins = {name: _of_release(releases[name]) for name in lock.versions if name in releases}
    for pin in lock.pins:
        origin = _of_pin(pin, solution, matrix) or read.get(pin.name)
        if origin is not None and pin.name not in releases:
            origins[pin.name] = origin
    found: dict[Origin, set[str]] = {}
    for name, origin in origins.items():
        kind, _, rest = origin.partition(" ")
        found.setdefault(Origin(kind), set()).add(f"{name} {rest}" if rest else name)
    return tuple((kind.value, tuple(sorted(found[kind]))) for kind in Origin if kind in found)


def on_unread_places(evidence: Options) -> Iterator[Note]:
    """Notes on places that could not be read for a lock with this ``evidence``, and how to try again."""
    for entry in dict(evidence).get(UNREAD_PLACES, ()):
        name, _, titles = entry.partition(" ")
        text = f"{titles} could not be read when this was locked: wheels of {name} there were not considered"
        yield Note("extension-source-unread", f"{text} (-P {name} tries again)").about(name=name, sources=titles)


def origins_in(evidence: Options) -> dict[str, str]:
    """The origin of the facts about each package, from the ``evidence`` of a lock."""
    known = tuple(Origin)
    entries = ((kind, it.partition(" ")) for kind, listed in evidence if kind in known for it in listed)
    return {name: f"{kind} {rest}".rstrip() for kind, (name, _, rest) in entries}


def unverified(
    lock: Lock, known: Collection[str], capabilities: Collection[str], matrix: Matrix, platform: Platform
) -> Iterator[str]:
    """The packages of ``lock`` whose code is not known to run on GPUs of ``capabilities``, by name.

    ``known`` are those that were read on this machine.
    """
    if lock.made is None or lock.stack is None:
        return
    is_for_these = set(capabilities) <= set(lock.stack.capabilities)
    origins = origins_in(lock.made.evidence)
    for pin in lock.pins:
        kind = origins.get(pin.name, "").partition(" ")[0]
        if not kind or pin.name in known or (is_for_these and Origin(kind).is_of_capabilities):
            continue
        if is_unknown(pin.name, pin.version, matrix.build_facts(pin.name, platform)):
            yield pin.name


def _of_release(release: Release) -> str:
    if GPU_CODE in release.inferred and release.read_here:
        return f"{Origin.INFERRED} {release.note}".rstrip()
    return Origin.READ_HERE if release.read_here else Origin.MATRIX


def _of_pin(pin: Pin, solution: Solution, matrix: Matrix) -> str | None:
    rows = matrix.build_rows(pin.name, solution.problem.platform)
    known = [it for it in rows if it.covers(pin.version) and it.are_about_cuda]
    if not known:
        return None
    return Origin.READ_HERE if any(it.read_here for it in known) else Origin.MATRIX
