"""Notes on answers that depend on rows that envsolve does not ship, as other machines may not have these rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.release import Release
from envsolve.model.solution import Solution

GPU_CODE = "sass"
"""The field of a row with the GPUs that it has code for."""
_WORDS = {"cuda": "CUDA", "cudnn": "cuDNN", "sass": "machine code", "ptx": "PTX"}


def stack_is_own(matrix: Matrix, solution: Solution) -> bool:
    """Whether the matrix is not the shipped one, or a build of the stack is not from it."""
    return not matrix.is_shipped or any(choice.release.read_here for choice in solution.choices)


def pins_are_own(matrix: Matrix, pins: Iterable[Pin], platform: Platform) -> bool:
    """Whether the matrix is not the shipped one, or its facts about one of ``pins`` were read on this machine."""
    if not matrix.is_shipped:
        return True
    return bool(matrix.overlays) and any(_was_read_here(pin, matrix, platform) for pin in pins)


def _was_read_here(pin: Pin, matrix: Matrix, platform: Platform) -> bool:
    from envsolve.frameworks import FRAMEWORK_OF_WHEEL

    if any(it.read_here and it.covers(pin.version) for it in matrix.build_facts(pin.name)):
        return True
    framework = FRAMEWORK_OF_WHEEL.get(pin.name)
    releases = () if framework is None else matrix.framework(framework, platform).releases
    return any(it.read_here and (it.package, str(it.full_version)) == (pin.name, pin.version) for it in releases)


def notes_on_own_rows(solution: Solution) -> Iterator[Note]:
    """The builds of a stack that the shipped matrix does not have, and how to read facts that were only inferred."""
    for choice in solution.choices:
        if choice.release.read_here:
            yield _note(choice.release)


def _note(release: Release) -> Note:
    if GPU_CODE not in release.inferred:
        text = f"{release.label} is not in the shipped matrix: it was read on this machine"
        return Note("read-here", text).about(release=release.label, seen=release.evidence[0].seen)
    *words, last = (text for field, text in _WORDS.items() if field in release.inferred)
    listed = f"{', '.join(words)} and {last}" if words else last
    text = f"{release.label} is not in the matrix yet: its {listed} are inferred ({release.note})"
    if release.source.is_wheel:
        text, command = f"{text}. To read them instead:", f"envsolve matrix update {release.framework}"
    else:
        text, command = f"{text}. To prove them in the environment:", "envsolve validate"
    return Note("inferred", text, command).about(release=release.label, fields=", ".join(release.inferred))
