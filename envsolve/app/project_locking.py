"""All files of a project, locked as one: each near to what it holds already, and none written unless all can be.

What is in a file stays as far as it fits (the stack, then the packages around it), so that a new driver changes nothing
that still runs; what it makes possible is told beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeVar

from envsolve.app.held_locks import FileFor, as_far_as_read
from envsolve.app.network import Network
from envsolve.app.project_requests import PLATFORM, Asked, asked_by, key_of
from envsolve.app.solving import solve_request
from envsolve.app.targets import platforms_of
from envsolve.boundary.files import FileError, link_in, read_text
from envsolve.errors import EnvsolveError, Hint, UnsolvableError, UsageError
from envsolve.lockfile.formats import CONDA_FORMATS, PYTHON_FORMATS, format_for_file, write_conda_lock
from envsolve.lockfile.maker import same_but_for_maker
from envsolve.lockfile.own_file import BY_FORCE, LONGEST, is_own, refuse_to_overwrite
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.note import Note
from envsolve.model.request import Held, Packages, Policy, Request
from envsolve.model.solution import Solution
from envsolve.project import Project
from envsolve.project.reading import refuse_value

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

_Found = TypeVar("_Found")
_FEW = 4
_KEEP = Hint("keep it under another name and ask for it in requirement-files, for example requirements.in")


class ProjectLock(NamedTuple):
    """How a project is to be locked. ``show`` and ``counted`` are told of progress.

    ``upgrade`` lets go of all pins, ``upgraded`` of those of the packages or frameworks named. ``replaces`` says that
    files that envsolve did not write may be overwritten, or that the caller looks after them.
    """

    network: Network = Network()
    upgrade: bool = False
    upgraded: tuple[str, ...] = ()
    show: Callable[[str], None] = lambda _: None
    counted: Callable[[int, str], None] = lambda _, __: None
    replaces: bool = False


class LockedFile(NamedTuple):
    """A file as it is and as it should be; ``before`` is None where it is not there yet.

    ``solution`` is its stack, None where it holds no framework.
    """

    asked: Asked
    path: str
    platform: Platform
    before: str | None
    text: str
    solution: Solution | None
    is_current: bool
    """Whether the file says what it should: who made it, and from the matrix of which day, does not count."""


class LockedProject(NamedTuple):
    """Every file of a project, what to tell beside them."""

    files: tuple[LockedFile, ...]
    notes: tuple[Note, ...]


_Texts = tuple[tuple[tuple[Platform, str], ...], tuple[Solution, ...]]
"""The texts of files, by the platform, and the stacks in them."""


def lock_project(project: Project, how: ProjectLock, matrix: Matrix, environ: Mapping[str, str]) -> LockedProject:
    """What every file of the project should hold; the current directory is that of the project. Nothing is written.

    Raises UsageError, UnsolvableError, OutsideError as the locks of each format do, with the name of the file.
    """
    packages = Packages(upgrade=how.upgrade, upgraded=how.upgraded)
    asked = list(asked_by(project, matrix, environ, packages))
    _refuse_outputs(project, asked, matrix, overwrites=how.replaces)
    with TemporaryDirectory(prefix="envsolve-") as scratch:
        locking = _Locking(how, matrix, environ, Path(scratch))
        for it in asked:
            locking.lock(project, it)
    files = tuple(locking.files)
    notes = tuple(dict.fromkeys((*locking.notes, *_let_go_in_vain(how, files))))
    return LockedProject(files, notes)


def capability_in(matrix: Matrix) -> Callable[[str], str]:
    """What compute capability a GPU has by its product's name, as text; a word that is none stays."""

    def capability(word: str) -> str:
        try:
            return str(matrix.gpus.find(word).capabilities[0])
        except UsageError:
            return word

    return capability


class _Locking:
    """The files of one project while they are locked."""

    def __init__(self, how: ProjectLock, matrix: Matrix, environ: Mapping[str, str], scratch: Path) -> None:
        self._how, self._matrix, self._environ = how, matrix, environ
        self._scratch = scratch
        self._locked: dict[str, FileFor] = {}
        self.files: list[LockedFile] = []
        self.notes: list[Note] = []

    def lock(self, project: Project, asked: Asked) -> None:
        """Take the file of ``asked``, or its files for several platforms, in."""
        request = asked.request
        try:
            if request.format in PYTHON_FORMATS:
                texts, solutions = self._python(asked)
            elif request.format in CONDA_FORMATS:
                texts, solutions = self._conda(asked)
            else:
                texts, solutions = self._stack(asked)
        except EnvsolveError as error:
            raise _named(error, asked) from error
        apart = PLATFORM in asked.output.file
        if len(texts) > 1 and not apart:
            _refuse_one_file(project, asked, [platform for platform, _ in texts])
        by_platform = {it.problem.platform: it for it in solutions}
        for platform, text in texts:
            path = asked.path(platform)
            before, is_current = self._before(Path(path)), self._is_current(path, text)
            self.files.append(LockedFile(asked, path, platform, before, text, by_platform.get(platform), is_current))

    def _is_current(self, path: str, text: str) -> bool:
        before = self._before(Path(path))
        return before is not None and same_but_for_maker(before, text, capability_in(self._matrix))

    def _before(self, path: Path) -> str | None:
        """The lock that is there; none where the file is empty, or is not ours and may be overwritten."""
        text = _read(path)
        if text is None or not text.strip():
            return None
        return None if self._how.replaces and not is_own(text) else text

    def _held(self, held: Callable[[Platform], _Found], nothing: _Found) -> Callable[[Platform], _Found]:
        return as_far_as_read(held, nothing) if self._how.replaces else held

    def _python(self, asked: Asked) -> _Texts:
        from envsolve.app.held_locks import held_by_python_lock
        from envsolve.app.locking import PYTHON_CHOSEN, LockRequest, lock, locked_again

        request, held = asked.request._replace(channels=()), self._held_by_any(asked)
        if (
            asked.part.name in self._locked
        ):  # a project has one answer: what was locked first is kept in its other files
            request = request._replace(packages=request.packages._replace(upgrade=False, upgraded=()))
            held = self._locked[asked.part.name]
        question = LockRequest(
            request,
            self._how.network,
            self._held(held_by_python_lock(held), ((), Held())),
            self._how.counted,
            asked.recorded,
        )
        locked = None
        if not self._how.upgrade and not self._how.upgraded:
            again = locked_again(question, self._unchanged(asked), self._matrix, self._environ)
            if again is not None and all(self._is_current(asked.path(it), text) for it, text in again.texts):
                locked = again
        locked = locked or lock(question, self._matrix, self._environ)
        there = all(Path(asked.path(platform)).exists() for platform, _ in locked.texts)
        self.notes += [it for it in locked.notes if not (there and it.code == PYTHON_CHOSEN)]
        self._locked.setdefault(asked.part.name, self._kept(asked, locked.texts))
        return tuple(locked.texts), locked.solutions

    def _unchanged(self, asked: Asked) -> Callable[[Platform], Lock | None]:
        """The lock in the file of ``asked``; None where it is not to be read, or differs from one of the same part."""
        from envsolve.app.held_locks import python_lock_at

        first = self._locked.get(asked.part.name)

        def found(platform: Platform) -> Lock | None:
            try:
                lock = python_lock_at(Path(asked.path(platform)))
                other = lock if first is None else python_lock_at(Path(first(platform)))
            except UsageError:
                return None
            return lock if lock is not None and other is not None and lock.versions == other.versions else None

        return found

    def _held_by_any(self, asked: Asked) -> FileFor:
        """The file of ``asked``, or where it is not there yet another Python lock of the same part."""
        names = [
            it.file for it in asked.part.outputs if (it.format or format_for_file(PurePath(it.file))) in PYTHON_FORMATS
        ]

        def file_for(platform: Platform) -> str:
            own = asked.path(platform)
            paths = (own, *(name.replace(PLATFORM, platform) for name in names))
            return next((path for path in paths if Path(path).is_file()), own)

        return file_for

    def _kept(self, asked: Asked, texts: Sequence[tuple[Platform, str]]) -> FileFor:
        """Files of this run's own with ``texts``, by the platform."""
        directory = self._scratch / (asked.part.name or "shared")
        for platform, text in texts:
            (directory / platform).mkdir(parents=True, exist_ok=True)
            (directory / platform / Path(asked.output.file).name).write_text(text, encoding="utf-8", newline="\n")
        return lambda platform: str(directory / platform / Path(asked.output.file).name)

    def _conda(self, asked: Asked) -> _Texts:
        from envsolve.app.conda_locking import lock_conda
        from envsolve.app.conda_part import CondaLockRequest, Kept
        from envsolve.app.conda_sessions import conda_session
        from envsolve.app.held_locks import held_by_conda_lock

        request, how = asked.request, self._how
        if not how.upgrade and not how.upgraded:
            again = self._conda_again(asked)
            if again is not None:
                return again
        with conda_session(how.network, request.channels, request.platforms, self._environ) as session:
            question = CondaLockRequest(
                request,
                session,
                how.network,
                self._held(held_by_conda_lock(asked.path, request.packages), Kept()),
                progress=how.show,
                counted=how.counted,
                recorded=asked.recorded,
            )
            locked = lock_conda(question, self._matrix, self._environ)
        self.notes += locked.notes
        apart = PLATFORM in asked.output.file
        files = [(lock,) for lock in locked.locks] if apart else [locked.locks]
        texts = tuple(text for locks in files for text in write_conda_lock(locks, request.format))
        return texts, locked.solutions

    def _conda_again(self, asked: Asked) -> _Texts | None:
        """The files as they are, where what they hold answers the request."""
        from envsolve.app.conda_again import conda_again
        from envsolve.lockfile.conda_locks import read_held

        def there(platform: Platform) -> Lock | None:
            path = Path(asked.path(platform))
            try:
                return None if self._before(path) is None else read_held(path, platform)
            except UsageError:
                return None

        found = conda_again(asked.request, asked.as_recorded, there, self._matrix, self._environ)
        if found is None:
            return None
        self.notes += found.notes
        files = {asked.path(platform): platform for platform in reversed(found.platforms)}
        return tuple((files[path], _read(Path(path)) or "") for path in reversed(files)), found.solutions

    def _stack(self, asked: Asked) -> _Texts:
        from envsolve.lockfile.held import read_held

        request = asked.request
        if request.packages.requirements or request.packages.files:
            raise _holds_frameworks_only(request)

        def held(platform: Platform) -> Held:
            if self._how.upgrade:
                return Held()
            return without(read_held(Path(asked.path(platform)), platform), self._how.upgraded)

        keeps = request.prefer is Policy.NEWEST_FRAMEWORK
        near = request._replace(prefer=Policy.LOCKED) if keeps else request
        kept = self._held(held, Held()) if keeps else None
        try:
            solved = solve_request(near, self._matrix, self._environ, kept, recorded=asked.as_recorded)
        except UnsolvableError:
            if keeps:
                solve_request(request, self._matrix, self._environ)  # refuses too, without asking for what is held
            raise
        self.notes += solved.notes
        return solved.texts, solved.solutions


def without(held: Held, upgraded: tuple[str, ...]) -> Held:
    """What stays of a stack; where one of its frameworks is let go, its Python and CUDA would hold it back."""
    from envsolve.frameworks import FRAMEWORK_OF_CONDA, FRAMEWORK_OF_WHEEL

    gone = {normalized(name) for name in upgraded}

    def framework(name: str) -> str | None:
        return FRAMEWORK_OF_CONDA.get(name) or FRAMEWORK_OF_WHEEL.get(normalized(name))

    def is_gone(name: str) -> bool:
        return normalized(name) in gone or framework(name) in gone

    stays = tuple(it for it in held.packages if not is_gone(it[0]))
    if any(is_gone(it[0]) and framework(it[0]) is not None for it in held.packages):
        return Held(tuple(it for it in stays if framework(it[0]) is not None))
    return held._replace(packages=stays)


def _read(path: Path) -> str | None:
    """The file as it is; None where there is none. Raises UsageError where it cannot be read."""
    try:
        return read_text(path, LONGEST)
    except FileError as error:
        raise UsageError("file-unreadable", f"cannot read {path}: {error.reason}") from None


def _let_go_in_vain(how: ProjectLock, files: Sequence[LockedFile]) -> Iterator[Note]:
    """What -P names and no file holds: most likely a slip."""
    for name in how.upgraded:
        written = re.compile(
            rf"(?<![\w-]){'[-_.]+'.join(map(re.escape, normalized(name).split('-')))}(?![\w-])", re.IGNORECASE
        )
        if not any(written.search(text) for it in files for text in (it.before, it.text) if text is not None):
            yield Note("not-locked", f"-P {name}: no lock of the project holds it")


def _refuse_outputs(project: Project, asked: Sequence[Asked], matrix: Matrix, *, overwrites: bool) -> None:
    """Raise UsageError where a file to be written is reached through a link or, unless ``overwrites``, is not ours."""
    for it in asked:
        for path in dict.fromkeys(map(it.path, platforms_of(it.request, matrix))):
            try:
                refuse_link(project.directory, path)
                if not overwrites:
                    refuse_to_overwrite(Path(path), _KEEP, BY_FORCE)
            except UsageError as error:
                refuse_value(project, key_of(it.part, "outputs"), error)


def refuse_link(directory: Path, name: str) -> None:
    """Raise UsageError ``output-not-writable`` where ``name`` in a project's ``directory`` has a link or is no path.

    A link may lead out of the project, or to a file that something else made.
    """
    try:
        link = link_in(directory, name)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"{name} is not written: {reason}"
        raise UsageError("output-not-writable", message, hints=(Hint("name another file"),)) from None
    if link is not None:
        message = f"{name} is not written: {link} is a link"
        raise UsageError("output-not-writable", message, hints=(Hint("remove the link, or name another file"),))


def _named(error: EnvsolveError, asked: Asked) -> EnvsolveError:
    """``error`` with the file that it is about. What a project names is no word of the command line."""
    part = f" of target {asked.part.name}" if asked.part.name else ""
    error.message = f"{asked.output.file}{part}: {error.message}"
    shown = [hint.command for hint in error.hints if hint.command is not None and not asked.as_recorded.named_hosts]
    if any(command.startswith("envsolve --") for command in shown):
        error.hints = (*error.hints, Hint("what such a command says otherwise is for the keys of the project"))
    if asked.as_recorded.named_hosts and isinstance(error, UnsolvableError):
        error.hints = (
            *(hint._replace(command=None) for hint in error.hints),
            Hint("give a target of its own kind outputs of its own: [tool.envsolve.targets.NAME] outputs = [...]"),
        )
    return error


def _refuse_one_file(project: Project, asked: Asked, platforms: list[Platform]) -> NoReturn:
    message = f"{asked.output.file} is for one platform, and the answer is for {' and '.join(platforms)}"
    hint = Hint(f"name a file for each, with {PLATFORM} in its name")
    refuse_value(project, key_of(asked.part, "outputs"), UsageError("several-platforms", message, hints=(hint,)))


def _holds_frameworks_only(request: Request) -> UsageError:
    given = " ".join((request.packages.requirements or request.packages.files)[:_FEW])
    return UsageError(
        "requirements-not-supported",
        f"the format {request.format!r} holds frameworks only, and {given} is to be locked along with them",
        hints=(Hint('write a lock: outputs = ["pylock.toml"], requirements.txt or conda-lock.yml'),),
    )
