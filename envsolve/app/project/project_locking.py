"""Locks all files of a project together. Each changes as little as possible; none is written unless all can be.

The contents of a file stay as far as they fit, first the stack, then the packages around it. So a new driver changes
nothing that still runs; a note says what it makes possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from envsolve.app.any_lock.environment_file import environment_file
from envsolve.app.lock.existing_locks import (
    LockFor,
    as_far_as_read,
    locks_in,
    notes_on_upgraded,
    nothing,
    stays,
    versions_in_answer,
    versions_in_python_lock,
)
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.matrix.unknown_releases import knowing_new_releases
from envsolve.app.packages.conda_requirements import excluded_notes
from envsolve.app.project.project_requests import FileRequest, file_requests, key_of
from envsolve.app.request.network import Network
from envsolve.app.request.targets import platforms_of, targets_of
from envsolve.app.status.status import Verdict
from envsolve.boundary.files import FileError, link_in, read_text
from envsolve.errors import EnvsolveError, Hint, UnsolvableError, UsageError
from envsolve.host.machine import this_platform
from envsolve.lockfile.formats import write_conda_lock, write_python_lock
from envsolve.lockfile.own_file import BY_FORCE, LONGEST, is_own, refuse_to_overwrite
from envsolve.lockfile.reading import lock_for, lock_in
from envsolve.lockfile.same_file import same_file
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import (
    CONDA_FORMATS,
    IMAGE_FORMATS,
    PLATFORM,
    PYTHON_FORMATS,
    VENV_FORMATS,
    format_for_file,
)
from envsolve.model.note import Note
from envsolve.model.request import Packages, Policy
from envsolve.model.solution import Solution
from envsolve.project import Project
from envsolve.project.reading import refuse_value

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

_FEW = 4
_NOT_RIGHT = (Verdict.STALE, Verdict.DOES_NOT_RUN, Verdict.MISSING)
_KEEP = Hint("rename it, for example to requirements.in, and list it in requirement-files")


class ProjectLock(NamedTuple):
    """How to lock a project. ``show`` and ``counted`` report progress.

    ``upgrade`` ignores all pins, ``upgraded`` those of the named packages or frameworks. ``replaces`` allows
    overwriting files that envsolve did not write. ``checks`` means that only the state of the files matters, so that
    stale ones are not locked. ``around`` is an environment whose packages the locks leave out.
    """

    network: Network = Network()
    upgrade: bool = False
    upgraded: tuple[str, ...] = ()
    show: Callable[[str], None] = lambda _: None
    counted: Callable[[int, str], None] = lambda _, __: None
    replaces: bool = False
    checks: bool = False
    around: str | None = None


class LockedFile(NamedTuple):
    """A file as it is and as it should be. ``before`` is None if it does not exist yet.

    ``lock`` is the lock that it should contain for its platform, None if that was not determined. ``solution`` is its
    stack, None without frameworks. ``is_current`` means that nothing has to be written: see
    :mod:`envsolve.lockfile.same_file`.
    """

    wanted: FileRequest
    path: str
    platform: Platform
    before: str | None
    text: str
    lock: Lock | None
    solution: Solution | None
    is_current: bool

    @property
    def existing(self) -> Lock | None:
        """The lock in the existing file; None if it has none for its platform, or cannot be read."""
        try:
            return None if self.before is None else lock_in(PurePath(self.path), self.before, self.platform)
        except FileError:
            return None


class LockedProject(NamedTuple):
    """All files of a project, with notes."""

    files: tuple[LockedFile, ...]
    notes: tuple[Note, ...]


_Files = tuple[tuple[tuple[Platform, str], ...], tuple[Solution, ...]]
"""The texts of files, each with the platform in its name, and their stacks."""


def lock_project(project: Project, how: ProjectLock, matrix: Matrix, environ: Mapping[str, str]) -> LockedProject:
    """The new contents of all files of the project. The current directory is that of the project. Writes nothing.

    Raises UsageError, UnsolvableError, OutsideError like the locks of each format, with the name of the file.
    """
    packages = Packages(upgrade=how.upgrade, upgraded=how.upgraded)
    wanted = list(file_requests(project, matrix, environ, packages))
    _refuse_outputs(project, wanted, matrix, overwrites=how.replaces)
    locking = _Locking(how, matrix, environ)
    for it in wanted:
        locking.lock(project, it)
    files = tuple(locking.files)
    excluded = (note for it in wanted for note in excluded_notes(it.request, this_platform()))
    existing = [it.existing for it in files if it.existing is not None] if how.upgraded else []
    upgraded = notes_on_upgraded(how.upgraded, existing, [it.lock for it in files if it.lock is not None])
    notes = tuple(dict.fromkeys((*locking.notes, *excluded, *upgraded)))
    return LockedProject(files, notes)


class _Locking:
    """The files of one project while they are locked."""

    def __init__(self, how: ProjectLock, matrix: Matrix, environ: Mapping[str, str]) -> None:
        self._how, self._matrix, self._environ = how, matrix, environ
        self._locked: dict[str, LockFor] = {}
        self.files: list[LockedFile] = []
        self.notes: list[Note] = []

    def lock(self, project: Project, file: FileRequest) -> None:
        """Lock ``file``, or its files for several platforms, and add them to the result."""
        solve = partial(self._found, file)
        try:
            how = self._how
            found = knowing_new_releases(solve, file.request, self._matrix, how.network, self._environ, how.show)
        except EnvsolveError as error:
            raise _named(error, file) from error
        if found is None:
            return
        files, solutions = found
        apart = PLATFORM in file.output.file
        if len(files) > 1 and not apart:
            _refuse_one_file(project, file, [platform for platform, _ in files])
        stacks = {it.problem.platform: it for it in solutions}
        locks = {platform: lock_for(file.request.format, text, platform) for platform, text in files}
        if file.request.format in PYTHON_FORMATS:
            self._locked.setdefault(file.part.name, locks.get)
        for platform, text in files:
            path = file.path(platform)
            before, is_current = self._before(Path(path)), self._is_current(file, path, text)
            lock, solution = locks[platform], stacks.get(platform)
            self.files.append(LockedFile(file, path, platform, before, text, lock, solution, is_current))

    def _found(self, file: FileRequest, matrix: Matrix) -> _Files | None:
        self._matrix = matrix
        if self._how.around is not None:
            return self._around(file, self._how.around)
        if file.request.format in PYTHON_FORMATS:
            return self._python(file)
        return self._conda(file) if file.request.format in CONDA_FORMATS else self._stack(file)

    def _is_stale(self, file: FileRequest) -> bool:
        """Whether the files themselves show that they are stale. If so, they are added to the result as they are."""
        from envsolve.app.project.project_status import status_in_project

        targets = targets_of(file.request, self._matrix, self._environ) if self._how.checks else ()
        found = [
            (it.problem.platform, status_in_project(file, it, self._matrix, self._environ).verdict) for it in targets
        ]
        if not any(verdict in _NOT_RIGHT for _, verdict in found):
            return False
        for platform, verdict in found:
            path = file.path(platform)
            before, is_current = self._before(Path(path)), verdict not in _NOT_RIGHT
            self.files.append(LockedFile(file, path, platform, before, "", None, None, is_current))
        return True

    def _is_current(self, file: FileRequest, path: str, text: str) -> bool:
        before = self._before(Path(path))
        if before is None:
            return False
        platforms = [it for it in platforms_of(file.request, self._matrix) if file.path(it) == path]
        return same_file(file.request.format, before, text, platforms)

    def _before(self, path: Path) -> str | None:
        """The existing text; None if the file is empty, or is not envsolve's and may be overwritten."""
        text = _read(path)
        if text is None or not text.strip():
            return None
        return None if self._how.replaces and not is_own(text) else text

    def _readable(self, there: LockFor) -> LockFor:
        return as_far_as_read(there) if self._how.replaces else there

    def _question(self, file: FileRequest, there: LockFor) -> LockRequest:
        how, apart = self._how, PLATFORM in file.output.file
        readable = self._readable(there)
        return LockRequest(file.request, how.network, readable, how.show, how.counted, file.recorded, apart)

    def _python(self, file: FileRequest) -> _Files | None:
        from envsolve.app.lock.lock_result import PYTHON_CHOSEN
        from envsolve.app.lock.locking import current_locks, lock

        request, there = file.request._replace(channels=()), self._any_lock(file)
        if file.part.name in self._locked:  # all files of a part have the same packages: those of the first one
            request = request._replace(packages=request.packages._replace(upgrade=False, upgraded=()))
            there = self._locked[file.part.name]
        recorded = None if file.recorded is None else file.recorded._replace(channels=())
        question = self._question(file, there)._replace(request=request, recorded=recorded)
        locked = None
        if not self._how.upgrade and not self._how.upgraded:
            locked = current_locks(question, self._unchanged(file), self._matrix, self._environ)
            if locked is None and self._is_stale(file):
                return None
        locked = locked or lock(question, self._matrix, self._environ)
        exist = all(Path(file.path(platform)).exists() for platform, _ in locked.texts)
        self.notes += [it for it in locked.notes if not (exist and it.code == PYTHON_CHOSEN)]
        return locked.texts, locked.solutions

    def _around(self, file: FileRequest, prefix: str) -> _Files:
        from envsolve.app.environment.around import AddRequest, lock_around

        request = file.request
        if request.format not in VENV_FORMATS:
            message = f"a lock around an environment is for its wheels, and {request.format} is not"
            raise UsageError(
                "contradictory-options", message, hints=(Hint(f"formats for it: {', '.join(VENV_FORMATS)}"),)
            )
        there = self._locked.get(file.part.name) or self._any_lock(file)
        pins, _ = versions_in_python_lock(self._readable(there)(this_platform()))
        versions = {it.name: it.version for it in pins if stays(request.packages, it.name)}
        how = self._how
        question = AddRequest(prefix, request, how.network, self._matrix, how.show, how.counted, versions)
        platform, lock, notes = lock_around(question, file.as_recorded, self._environ)
        self.notes += notes
        return ((platform, write_python_lock(lock, request.format)),), ()

    def _unchanged(self, file: FileRequest) -> LockFor:
        """The lock in ``file``; None if it must not be read, or differs from that of another file of the same part.

        An image has none: its base depends on the names of files, which it does not record.
        """
        own, first = locks_in(file.path), self._locked.get(file.part.name)

        def found(platform: Platform) -> Lock | None:
            if file.request.format in IMAGE_FORMATS:
                return None
            lock = own(platform)
            other = lock if first is None else first(platform)
            return lock if lock is not None and other is not None and lock.versions == other.versions else None

        return as_far_as_read(found)

    def _any_lock(self, file: FileRequest) -> LockFor:
        """The lock in ``file``, or in another file of the same part if it does not exist yet."""
        names = [
            it.file for it in file.part.outputs if (it.format or format_for_file(PurePath(it.file))) in PYTHON_FORMATS
        ]

        def file_for(platform: Platform) -> str:
            own = file.path(platform)
            paths = (own, *(name.replace(PLATFORM, platform) for name in names))
            return next((path for path in paths if Path(path).is_file()), own)

        return locks_in(file_for)

    def _conda(self, file: FileRequest) -> _Files | None:
        from envsolve.app.conda.conda_locking import lock_conda
        from envsolve.app.packages.conda_sessions import conda_session

        request, how = file.request, self._how
        if not how.upgrade and not how.upgraded:
            current = self._current_conda(file)
            if current is not None or self._is_stale(file):
                return current
        with conda_session(how.network, request.channels, request.platforms, self._environ) as session:
            question = self._question(file, locks_in(file.path))
            locked = lock_conda(question, session, self._matrix, self._environ)
        self.notes += locked.notes
        return locked.texts, locked.solutions

    def _current_conda(self, file: FileRequest) -> _Files | None:
        """The files with their existing packages, if these meet the request."""
        from envsolve.app.conda.conda_current import current_conda_locks

        own = locks_in(file.path)

        def found_in(platform: Platform) -> Lock | None:
            return None if self._before(Path(file.path(platform))) is None else own(platform)

        there = as_far_as_read(found_in)
        found = current_conda_locks(file.request, file.as_recorded, there, self._matrix, self._environ)
        if found is None:
            return None
        self.notes += found.notes
        locks: dict[str, dict[Platform, Lock]] = {}
        for platform, lock in found.locks.items():
            locks.setdefault(file.path(platform), {})[platform] = lock
        files = []
        for path, of in locks.items():
            platform, together = next(iter(of)), tuple(of.values())
            text = _read(Path(path)) or ""
            if not found.is_recorded:
                ((_, text),) = write_conda_lock(together, file.request.format)
            files.append((platform, text))
        return tuple(files), found.solutions

    def _stack(self, file: FileRequest) -> _Files:
        request = file.request
        keeps = request.prefer is Policy.NEWEST_FRAMEWORK
        near = request._replace(prefer=Policy.LOCKED) if keeps else request
        kept = versions_in_answer(self._readable(locks_in(file.path)), request.packages) if keeps else None
        question = self._question(file, locks_in(file.path))._replace(recorded=file.as_recorded)
        try:
            solved = environment_file(question._replace(request=near), self._matrix, self._environ, kept)
        except UnsolvableError:
            if keeps:  # refuses too, without the versions of the existing lock
                environment_file(question._replace(there=nothing), self._matrix, self._environ)
            raise
        self.notes += solved.notes
        return solved.texts, solved.solutions


def _read(path: Path) -> str | None:
    """The text of the file; None if it does not exist. Raises UsageError if it cannot be read."""
    try:
        return read_text(path, LONGEST)
    except FileError as error:
        raise UsageError("file-unreadable", f"cannot read {path}: {error.reason}") from None


def _refuse_outputs(project: Project, file: Sequence[FileRequest], matrix: Matrix, *, overwrites: bool) -> None:
    """Raise UsageError if an output is reached through a link, or is not envsolve's and ``overwrites`` is not set."""
    for it in file:
        for path in dict.fromkeys(map(it.path, platforms_of(it.request, matrix))):
            try:
                refuse_link(project.directory, path)
                if not overwrites:
                    refuse_to_overwrite(Path(path), _KEEP, BY_FORCE)
            except UsageError as error:
                refuse_value(project, key_of(it.part, "outputs"), error)


def refuse_link(directory: Path, name: str) -> None:
    """Raise UsageError ``output-not-writable`` if ``name`` contains a link in ``directory`` or is not a path.

    A link may lead out of the project, or to a file that something else made.
    """
    try:
        link = link_in(directory, name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"{name} was not written: {reason}"
        raise UsageError("output-not-writable", message, hints=(Hint("choose another file"),)) from None
    if link is not None:
        message = f"{name} was not written: {link} is a link"
        raise UsageError("output-not-writable", message, hints=(Hint("remove the link, or choose another file"),))


def _named(error: EnvsolveError, file: FileRequest) -> EnvsolveError:
    """``error`` with the name of the file. Words in a project do not come from the command line."""
    part = f" of target {file.part.name}" if file.part.name else ""
    error.message = f"{file.output.file}{part}: {error.message}"
    if file.as_recorded.named_hosts and isinstance(error, UnsolvableError):
        error.hints = (
            *(hint._replace(command=None) for hint in error.hints),
            Hint("give this target its own `outputs`: [tool.envsolve.targets.NAME] outputs = [...]"),
        )
    return error


def _refuse_one_file(project: Project, file: FileRequest, platforms: list[Platform]) -> NoReturn:
    message = f"{file.output.file} is for one platform, but the lock is for {' and '.join(platforms)}"
    hint = Hint(f"put {PLATFORM} into the file name to write one file for each")
    refuse_value(project, key_of(file.part, "outputs"), UsageError("several-platforms", message, hints=(hint,)))
