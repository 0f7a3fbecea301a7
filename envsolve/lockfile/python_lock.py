"""A Python lock before it is text, and the facts it records so that a later command can tell what changed.

The facts are one table for every format: pylock.toml has it as ``[tool.envsolve]``, a requirements file as the same
TOML in the comments of its header. :func:`envsolve.lockfile.held_pins.read_recorded` reads both back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.boundary.display import one_line
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.header import made_by, made_for
from envsolve.lockfile.recorded import RecordedLock
from envsolve.lockfile.toml import Value
from envsolve.model.package import Closure, Target
from envsolve.model.solution import Choice, Solution

SCHEMA_VERSION = 1
FACTS_TABLE = "[tool.envsolve]"
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d\d)?|cuda-version|cudatoolkit|pytorch-cuda")
"""The CUDA runtime, whose version begins with that of the toolkit it is of, as no other part's does throughout; of
conda packages those that say the version for all parts."""
_CUDNN = re.compile(r"nvidia-cudnn-cu\d\d|cudnn|libcudnn")
_GLIBC_TAG = re.compile(r"manylinux_(\d+)_(\d+)_")


class PythonLock(NamedTuple):
    """A closure with what its file tells about it.

    ``answer`` is the stack that shaped it, None where no framework was asked for; ``matrix_date`` is then None too.
    ``request`` are the requirements as asked for, ``exclude_newer`` the moment after which uploads do not count.
    ``default_is_plain`` says that an installer looks at the default index without being told. ``recorded`` is what a
    file said that the pins were read from: it stands for all else, and is written as it is.
    """

    closure: Closure
    answer: Answer | None
    command: str
    envsolve_version: str
    matrix_date: str | None
    request: tuple[str, ...]
    exclude_newer: str | None = None
    notes: tuple[str, ...] = ()
    default_is_plain: bool = True
    recorded: RecordedLock | None = None

    @property
    def own_matrix(self) -> bool:
        """Whether the matrix is not the one envsolve ships."""
        return self.answer is not None and self.answer.own_matrix


def header_lines(lock: PythonLock) -> Iterator[str]:
    """The comments for people that stand on top of every Python lock."""
    if lock.recorded is not None:
        yield from lock.recorded.made
        return
    target = lock.closure.target
    command = lock.command
    yield from made_by(lock.envsolve_version, command, lock.matrix_date, own_matrix=lock.own_matrix)
    if lock.answer is None:
        yield one_line(f"# For: {target.platform}")
    else:
        yield from made_for(lock.answer)
    glibc = glibc_of(target)
    yield one_line(f"# Resolved for: Python {target.python}{'' if glibc is None else f', glibc {glibc}'}")


def facts_of(lock: PythonLock) -> dict[str, Value]:
    """What the lock records: the request, what shaped it, and who made it. What is not known is left out.

    Of the hosts it holds the lowest driver and the set of compute capabilities, not the exact driver: a lock stays
    the same where a machine changes in ways that do not matter to it.
    """
    if lock.recorded is not None:
        return dict(lock.recorded.facts)
    facts: dict[str, Value | None] = {
        "schema_version": SCHEMA_VERSION,
        "envsolve_version": lock.envsolve_version,
        "command": lock.command,
        "request": list(lock.request),
        "matrix_date": lock.matrix_date,
        "own_matrix": lock.own_matrix or None,
        "exclude_newer": lock.exclude_newer,
        "platform": lock.closure.target.platform,
        "python": lock.closure.target.python,
        "glibc": glibc_of(lock.closure.target),
        **({} if lock.answer is None else stack_facts(lock.answer.solution, _versions(lock.closure))),
        "notes": list(lock.notes) or None,
    }
    return {key: fact for key, fact in facts.items() if fact is not None}


def glibc_of(target: Target) -> str | None:
    """The newest glibc that the target's wheel tags admit, which is the one it has (PEP 600); None without glibc."""
    found = next(filter(None, map(_GLIBC_TAG.search, target.tags)), None)
    return None if found is None else f"{found[1]}.{found[2]}"


def stack_facts(solution: Solution, versions: Mapping[str, str]) -> dict[str, Value | None]:
    """The stack as it was locked; ``versions`` are those of the packages that are installed, by name.

    Of the cuDNNs that go with a stack it tells the one among them, where it is a package.
    """
    pinned = next((version for name, version in versions.items() if _CUDNN.fullmatch(name)), None)
    runtime = next((version for name, version in versions.items() if _RUNTIME.fullmatch(name)), None)
    cudnn = None if solution.cudnn is None else str(solution.cudnn.version)
    return {
        "minimum_driver": None if solution.minimum_driver is None else str(solution.minimum_driver),
        "compute_capabilities": [str(gpu) for gpu in solution.problem.gpus],
        "cuda": _cuda_of(runtime) or (None if solution.toolkit is None else str(solution.toolkit.version)),
        "cudnn": pinned or cudnn,
        "frameworks": [_framework(choice) for choice in solution.choices],
    }


def _versions(closure: Closure) -> dict[str, str]:
    return {pin.name: pin.version for pin in closure.pins}


def _cuda_of(runtime: str | None) -> str | None:
    return None if runtime is None else ".".join(runtime.split(".")[:2])


def _framework(choice: Choice) -> dict[str, Value]:
    release = choice.release
    return {
        "framework": release.framework,
        "version": str(release.version),
        "package": release.package,
        "source": release.source.value,
        "build": release.build,
    }
