"""A lock of conda packages before it is text: for each platform the packages of channels and, beside them, wheels."""

from __future__ import annotations

from typing import NamedTuple

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.recorded import RecordedLock, RecordedPart
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.package import Pin

MAIN = "main"
"""The category of what an environment needs in any case (conda-lock's word)."""


class Asked(NamedTuple):
    """One thing that was asked for: a match spec of conda or, with ``by_pip``, a requirement as PEP 508 has it.

    ``reason`` is a sentence for people. ``category`` is what it is for: ``main``, or ``dev`` and the like.
    ``of_stack`` says that the stack asks for it, and nobody by name.
    """

    spec: str
    reason: str = ""
    category: str = MAIN
    by_pip: bool = False
    of_stack: bool = False


class PlatformLock(NamedTuple):
    """The packages for one platform, sorted by name: those of conda channels, and those that pip installs beside them.

    ``virtual_packages`` are what was assumed of the machine, ``asked`` is what the packages follow from. ``answer`` is
    the stack that shaped it, None where no framework was asked for. ``python`` is the full version, "" without Python.
    ``recorded`` is what a file said that the packages were read from, which stands for all that.
    """

    platform: Platform
    conda: tuple[CondaPackage, ...]
    pip: tuple[Pin, ...]
    asked: tuple[Asked, ...]
    virtual_packages: tuple[VirtualPackage, ...]
    answer: Answer | None
    python: str
    recorded: RecordedPart | None = None


class CondaLock(NamedTuple):
    """The lock for all its platforms, with what a file tells about it.

    ``channels`` are as the user or the stack names them, without credentials, the first being asked first. ``sources``
    are the files that were read, relative to where the command ran. ``variables`` are set in the environment.
    ``default_index`` is where a wheel comes from that says nothing else, and ``default_is_plain`` says that pip looks
    there without being told. ``recorded`` is what a file said that the lock was read from: its facts are written as
    they are, and ``envsolve_version`` is then that of who writes.
    """

    parts: tuple[PlatformLock, ...]
    channels: tuple[str, ...]
    command: str
    envsolve_version: str
    matrix_date: str | None
    sources: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    own_matrix: bool = False
    exclude_newer: str | None = None
    default_index: str | None = None
    default_is_plain: bool = True
    recorded: RecordedLock | None = None
