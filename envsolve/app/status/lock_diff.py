"""The differences between two locks: first what they mean for machines, then the packages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePath
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version as PackageVersion

from envsolve.app.request.hosts import this_platform
from envsolve.app.status.lock_summary import Build, Summary, summary_of, with_recorded_floors
from envsolve.app.status.locked_stack import LockedStack, stack_in
from envsolve.app.status.package_changes import Change, package_changes
from envsolve.app.status.revisions import Version
from envsolve.app.status.status import conflict_line
from envsolve.boundary.files import FileError
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.package_line import package_line
from envsolve.lockfile.reading import format_in, lock_in, platforms_in
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion

_MINOR = re.compile(r"\d+\.\d+")


class Kind(StrEnum):
    """The kinds of differences; the names that ``--fail-on`` accepts."""

    DRIVER_FLOOR = "driver-floor"
    """A newer driver is needed, or one at all."""
    CAPABILITY = "capability"
    """It no longer runs on some GPUs."""
    CUDA_MAJOR = "cuda-major"
    """Another major version of CUDA, or no CUDA any more."""
    FRAMEWORK_MAJOR = "framework-major"
    """A framework has another major version, or was removed."""
    PYTHON = "python"
    """Another minor version of Python, or another range."""


class Breaking(NamedTuple):
    """A difference that may break a machine or a program. ``package`` is the package in the new lock that causes it.

    ``is_known`` is False if the files do not say whether there is such a difference.
    """

    kind: Kind
    text: str
    fix: str = ""
    package: str | None = None
    is_known: bool = True


class LockDiff(NamedTuple):
    """The differences between two locks on one platform."""

    old: Version
    new: Version
    platform: Platform
    before: Summary
    after: Summary
    changes: tuple[Change, ...]
    breaking: tuple[Breaking, ...]
    lines: Mapping[str, int] = {}
    """The lines in the new file of the packages that ``breaking`` names."""

    @property
    def capabilities_lost(self) -> tuple[str, ...]:
        """The compute capabilities that only the old lock supports."""
        return _without(self.before.compute_capabilities, self.after.compute_capabilities)

    @property
    def capabilities_gained(self) -> tuple[str, ...]:
        """The compute capabilities that only the new lock supports."""
        return _without(self.after.compute_capabilities, self.before.compute_capabilities)


class _Read(NamedTuple):
    """One of the two files, and its stack on a platform."""

    version: Version
    text: str
    format_name: str
    lock: Lock | None = None
    stack: LockedStack | None = None

    def on(self, platform: Platform, matrix: Matrix) -> _Read:
        name = PurePath(self.version.path)
        try:
            lock = lock_in(name, self.text, platform)
        except FileError as error:
            raise _unreadable(self.version, error) from error
        stack = None if lock is None else stack_in(lock, name, self.text, platform, matrix)
        return self._replace(lock=lock, stack=stack)


def diff_locks(
    old: Version, new: Version, platforms: Sequence[Platform], matrix: Matrix, environ: Mapping[str, str]
) -> list[LockDiff]:
    """The differences between two locks on each of ``platforms``, by default those of the files or this one.

    Raises UsageError if a file does not exist or cannot be read; ``different-platforms`` if the files have no platform
    in common.
    """
    files = [_read(old, environ), _read(new, environ)]
    return [_diff(files, platform, matrix, environ) for platform in platforms or _platforms(files)]


def _read(version: Version, environ: Mapping[str, str]) -> _Read:
    text = version.text(environ)
    if text is None:
        where = "does not exist" if version.revision is None else f"is not in {version.revision or 'the index'}"
        hint = "paths in a revision begin at the top of the repository; ./ stands for the current directory"
        hints = (Hint("check the name" if version.revision is None else hint),)
        raise UsageError("no-such-version", f"{version.path} {where}", hints=hints)
    try:
        line = conflict_line(text)
        if line is not None:
            raise FileError("unresolved merge conflict", line)
        return _Read(version, text, format_in(PurePath(version.path), text))
    except FileError as error:
        raise _unreadable(version, error) from error


def _unreadable(version: Version, error: FileError) -> UsageError:
    message = f"cannot read {error.at(str(version))}: {error.reason}"
    return UsageError("held-unreadable", message, hints=(Hint("compare locks or environment files"),))


def _platforms(files: Iterable[_Read]) -> tuple[Platform, ...]:
    named = []
    for it in files:
        try:
            named.append(platforms_in(it.format_name, it.text))
        except FileError as error:
            raise _unreadable(it.version, error) from error
    old, new = named
    if old and new and not set(old) & set(new):
        raise UsageError(
            "different-platforms",
            f"the files are for different platforms: {' and '.join(old)}, {' and '.join(new)}",
            hints=(Hint("choose the platform to compare on: --platform linux-64"),),
        )
    return tuple(dict.fromkeys((*old, *new))) or (this_platform(),)


def _diff(files: Sequence[_Read], platform: Platform, matrix: Matrix, environ: Mapping[str, str]) -> LockDiff:
    old, new = (it.on(platform, matrix) for it in files)
    python = _common_python(it.stack for it in (old, new) if it.stack is not None)
    before, after = (
        Summary() if it.stack is None else summary_of(it.stack, platform, matrix, environ, python) for it in (old, new)
    )
    before, after = with_recorded_floors((before, after), (old.lock, new.lock))
    same_format = old.format_name == new.format_name
    changes = package_changes(old.lock or Lock(()), new.lock or Lock(()), platform, same_format=same_format)
    found = LockDiff(old.version, new.version, platform, before, after, changes, ())
    breaking = tuple(_breaking(found, old.stack, new.stack))
    named = ((it.package, package_line(new.text, it.package)) for it in breaking if it.package is not None)
    return found._replace(breaking=breaking, lines={name: line for name, line in named if line is not None})


def _common_python(stacks: Iterable[LockedStack]) -> str:
    """The newest Python that both locks and their frameworks support, as far as they say; "" if they do not."""
    common: set[str] | None = None
    for stack in stacks:
        rows = (row for rows in stack.releases.values() for row in rows)
        admitted = SpecifierSet(stack.lock.requires_python)
        own = (
            {stack.python}
            if stack.python
            else {it for row in rows for it in row.pythons if admitted.contains(f"{it}.99")}
        )
        common = own if common is None else common & own
    return max(common or (), key=PackageVersion, default="")


def _breaking(diff: LockDiff, old: LockedStack | None, new: LockedStack | None) -> Iterator[Breaking]:
    before, after = diff.before, diff.after
    package = next((it.name for it in new.named), None) if new is not None else None
    if after.driver_floor is not None and _is_raised(before, after):
        fix = f"Install NVIDIA driver {after.driver_floor} or newer first, or keep the old lock."
        text = f"the driver floor rises from {before.driver_floor or 'none'} to {after.driver_floor}"
        yield Breaking(Kind.DRIVER_FLOOR, text, fix, package)
    if diff.capabilities_lost:
        gpus = (
            f"GPUs of compute capability {', '.join(diff.capabilities_lost)}" if after.compute_capabilities else "GPUs"
        )
        yield Breaking(Kind.CAPABILITY, f"no longer runs on {gpus}", "Keep the old lock on such machines.", package)
    if before.cuda is not None and before.cuda_major != after.cuda_major and "cuda" not in after.unknown:
        text = f"CUDA {before.cuda} becomes {f'CUDA {after.cuda}' if after.cuda else 'a CPU build'}"
        yield Breaking(Kind.CUDA_MAJOR, text, "Rebuild extensions that are compiled against CUDA.", package)
    for name, was, now in frameworks_changed(diff):
        if was is not None and (now is None or _major(was) != _major(now)):
            text = f"{name} {was.version} {'is removed' if now is None else f'becomes {now.version}'}"
            yield Breaking(Kind.FRAMEWORK_MAJOR, text, "", None if now is None else package)
    if before.python and after.python and before.python != after.python:
        yield Breaking(Kind.PYTHON, f"Python {before.python} becomes {after.python}", "", "python")
    if _stack_of(old) != _stack_of(new):
        yield from _not_known(diff, package)


def _not_known(diff: LockDiff, package: str | None) -> Iterator[Breaking]:
    """Possible differences that cannot be checked because one of the files lacks the information."""
    fields = {
        "driver_floor": (Kind.DRIVER_FLOOR, "driver floor is"),
        "compute_capabilities": (Kind.CAPABILITY, "compute capabilities are"),
        "cuda": (Kind.CUDA_MAJOR, "CUDA version is"),
    }
    for field, (kind, words) in fields.items():
        for version, summary in ((diff.old, diff.before), (diff.new, diff.after)):
            if field in summary.unknown:
                text = f"{version}: the {words} unknown: {summary.unknown[field]}"
                yield Breaking(kind, text, "", package, is_known=False)


def frameworks_changed(diff: LockDiff) -> Iterator[tuple[str, Build | None, Build | None]]:
    """The frameworks whose version or build differs, each with the old and the new build."""
    old = {it.framework: it for it in diff.before.frameworks}
    new = {it.framework: it for it in diff.after.frameworks}
    for name in dict.fromkeys((*new, *old)):
        if old.get(name) != new.get(name):
            yield name, old.get(name), new.get(name)


def _is_raised(before: Summary, after: Summary) -> bool:
    if before.driver_floor is None or after.driver_floor is None:
        return after.driver_floor is not None and "driver_floor" not in before.unknown
    return DriverVersion.parse(after.driver_floor).parts > DriverVersion.parse(before.driver_floor).parts


def _stack_of(stack: LockedStack | None) -> object:
    """The packages that decide what a lock needs of GPU and driver."""
    if stack is None:
        return None
    beside = {(it.name, it.version) for it in stack.pins if it.name.startswith(("nvidia-", "cuda-"))}
    return stack.named, stack.unpinned, stack.cuda, stack.cudnn, beside


def _major(build: Build) -> str:
    return build.version.partition(".")[0]


def _without(these: Sequence[str] | None, those: Sequence[str] | None) -> tuple[str, ...]:
    """The values in ``these`` that are not in ``those``; none if one of them is unknown."""
    return () if these is None or those is None else tuple(it for it in these if it not in those)
