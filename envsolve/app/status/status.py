"""Whether environments and locks on the disk run on a machine: this one, or a described one.

The matrix gives the reasons (envsolve.app.status.lock_verdict).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.audit import read_for, with_read
from envsolve.app.packages.lock_evidence import Origin, on_unread_places, origins_in, unverified
from envsolve.app.request.own_rows import GPU_CODE
from envsolve.app.request.targets import Target, target_of
from envsolve.app.solve.solving import matrix_date_of
from envsolve.app.status.lock_summary import Summary, needs_of
from envsolve.app.status.lock_verdict import against_builds, against_cudnn, against_packages
from envsolve.app.status.locked_stack import Installed, LockedStack, framework_of, is_for_the_cpu, locked_stack
from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORK_OF_WHEEL
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.reading import EMPTY
from envsolve.matrix.load import Matrix
from envsolve.model.lock_format import PROJECT_LOCKS, tool_of
from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem

if TYPE_CHECKING:
    from envsolve import documents

_BY_OPTIONS = "name the target machine with --gpu, --driver or --host"
_IN_PROJECT = "name the target machine in the project, under gpus"
NO_LONGER_INFERRED = "no-longer-inferred"
"""The code of the note on a release that the lock inferred and that is in the matrix now."""
_CONFLICT = re.compile(r"^<{7} .*?^={7}\s*?$.*?^>{7} ", re.MULTILINE | re.DOTALL)
"""How git writes both sides of a merge conflict (https://git-scm.com/docs/git-merge)."""
_USUAL = ("environment.yml", "conda-lock.yml", "pixi.lock", "pylock.toml", "requirements.txt", *PROJECT_LOCKS)
_USUAL_PATTERNS = ("*.conda-lock.yml", "conda-*.lock", "pylock.*.toml")


class Verdict(StrEnum):
    """The verdict on a file for a machine."""

    FITS = "fits"
    """All its frameworks run there."""
    DOES_NOT_RUN = "does-not-run"
    """Some of its frameworks do not run there."""
    CPU_ONLY = "cpu-only"
    """One of its frameworks is a CPU build, and the machine has a GPU."""
    UNKNOWN = "unknown"
    """Its builds are not pinned or not in the matrix, or there is no GPU to check them for."""
    STALE = "stale"
    """The project has other requirements now than those that it was made for."""
    MISSING = "missing"
    """The project names it, but it does not exist."""
    UNREADABLE = "unreadable"
    """It exists, but cannot be read."""
    NO_FRAMEWORK = "no-framework"
    """It has no framework that depends on GPU and driver."""

    @property
    def is_good(self) -> bool:
        """Whether nothing has to be done."""
        return self in (Verdict.FITS, Verdict.NO_FRAMEWORK)


class FileStatus(NamedTuple):
    """The status of a file: the verdict, its builds, why they do not run, and notes.

    ``newer`` are releases that run there too and that the project allows. ``stack`` is the stack of the file, None if
    it has no packages for the platform. ``needs`` is what the lock of another tool needs of a GPU, as such locks do not
    record it; None for other files.
    """

    path: str
    platform: str
    verdict: Verdict
    builds: tuple[str, ...] = ()
    reasons: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    newer: tuple[str, ...] = ()
    stack: LockedStack | None = None
    needs: Summary | None = None

    def as_json(self) -> documents.FileStatus:
        """The status, for JSON."""
        return {
            "path": self.path,
            "platform": self.platform,
            "status": self.verdict.value,
            "builds": list(self.builds),
            "needs": None if self.needs is None else self.needs.of_gpu_as_json(),
            "reasons": [it.text for it in self.reasons],
            "because": [it.as_json() for it in self.reasons],
            "notes": [it.as_json() for it in self.notes],
            "newer": list(self.newer),
        }


def usual_files() -> tuple[str, ...]:
    """The files in this directory that have a usual name or are named like a lock."""
    here = Path()
    named = [name for name in _USUAL if (here / name).is_file()]
    matched = sorted(path.name for pattern in _USUAL_PATTERNS for path in here.glob(pattern))
    return tuple(dict.fromkeys((*named, *matched)))


def files_to_check(names: Sequence[str]) -> Sequence[str]:
    """``names``, or by default the files with usual names in this directory.

    Raises UsageError if there are none, or if one of ``names`` is not a file.
    """
    missing = next((name for name in names if not Path(name).is_file()), None)
    if missing is not None:
        raise UsageError(
            "file-unreadable",
            f"{missing} is not a regular file" if Path(missing).exists() else f"{missing} does not exist",
            hints=(Hint("check the name"),),
        )
    found = names or usual_files()
    if not found:
        raise UsageError(
            "nothing-to-check",
            "no environment file or lock found here",
            hints=(Hint("name one", "envsolve status environment.yml"),),
        )
    return found


def status_of(
    files: Sequence[str], request: Request, matrix: Matrix, environ: Mapping[str, str], *, by_itself: bool = False
) -> list[FileStatus]:
    """The status of each file on the machine of ``request``, which has no frameworks.

    Raises UsageError if the machine cannot be detected or, with ``by_itself``, if a file cannot be read;
    UnsolvableError if a GPU is not identified.
    """
    target = target_of(request, matrix, environ)
    found = []
    for name in files:
        try:
            require_settled(Path(name))
            found.append(file_status(name, target, matrix, environ, _BY_OPTIONS))
        except UsageError as error:
            if by_itself:
                raise
            found.append(unreadable(name, target, error))
    return found


def require_settled(path: Path) -> None:
    """Raise UsageError if the file at ``path`` has an unresolved merge conflict; do nothing if it cannot be read."""
    try:
        text = read_text(path, LONGEST)
    except FileError:
        return
    line = conflict_line(text or "")
    if line is not None:
        fault = FileError(f"unresolved merge conflict in line {line}")
        message = f"cannot read {path}: {fault.reason}"
        raise UsageError("held-unreadable", message, hints=(Hint("resolve it, or lock again"),)) from fault


def conflict_line(text: str) -> int | None:
    """The line on which a merge conflict begins in ``text``; None if there is none."""
    conflict = _CONFLICT.search(text)
    return None if conflict is None else text.count("\n", 0, conflict.start()) + 1


def unreadable(name: str, target: Target, error: UsageError) -> FileStatus:
    """The status of a file that cannot be read because of ``error``."""
    cause = error.__cause__
    reason = error.message
    if isinstance(cause, FileError):
        reason = cause.reason if cause.line is None else f"line {cause.line}: {cause.reason}"
    return _with_reasons(name, target, Verdict.UNREADABLE, (), (reason, *error.cause))


def _with_reasons(
    name: str, target: Target, verdict: Verdict, builds: tuple[str, ...], reasons: Iterable[str]
) -> FileStatus:
    notes = tuple(Note(verdict.value, text) for text in reasons)
    return FileStatus(name, target.problem.platform, verdict, builds, notes)


def file_status(
    name: str, target: Target, matrix: Matrix, environ: Mapping[str, str], way_out: str = _IN_PROJECT
) -> FileStatus:
    """The status of one file on the machines of ``target``. Raises UsageError if it cannot be read.

    ``way_out`` says how to name a machine, for a file that needs a GPU if none was found.
    """
    platform = target.problem.platform
    stack = locked_stack(Path(name), platform, matrix)
    if stack is None:
        is_empty = not (read_text(Path(name), LONGEST) or "").strip()
        why = EMPTY if is_empty else f"it pins nothing for {platform}"
        return _with_reasons(name, target, Verdict.UNKNOWN, (), (why,))
    read = read_for(stack.lock, matrix, environ)
    matrix = with_read(matrix, read, platform)
    found = _with_reasons(name, target, *_of_stack(stack, target, matrix, way_out))
    known = {pin.name for pin, facts in read.items() if not facts.unread}
    notes = (*_age(stack, matrix, target.problem), *_on_evidence(stack, target.problem, matrix, known))
    needs = needs_of(stack, platform, matrix) if tool_of(Path(name)) is not None else None
    return found._replace(notes=notes, stack=stack, needs=needs)


def _of_stack(
    stack: LockedStack, target: Target, matrix: Matrix, way_out: str
) -> tuple[Verdict, tuple[str, ...], tuple[str, ...]]:
    """The verdict on a stack, its builds, and the reasons."""
    if not stack.named and not stack.unpinned:
        return Verdict.NO_FRAMEWORK, (), ()
    builds = tuple(dict.fromkeys(row.label for rows in stack.releases.values() for row in rows))
    unknown = [it for it in stack.named if not stack.releases[str(framework_of(it))]]
    unsettled = [it for it in unknown if not is_for_the_cpu(it, stack.lock.stack)]
    if unsettled:
        pins = (f"{it.name} {it.version} {it.build or ''}".strip() for it in unsettled)
        text = f"the matrix does not have {sentence_list(pins)}"
        return Verdict.UNKNOWN, builds, (text, *_how_to_read(stack, unsettled))
    for_cpu = {str(framework_of(it)): f"{it.name} {it.version} (a CPU build)" for it in unknown}
    dependent = (f"{pin.name} {pin.version}" for pin in stack.pins if pin.name in DEPENDENT_FRAMEWORKS)
    builds = (*builds, *for_cpu.values(), *dependent)
    verdict, reasons = _judged(stack, for_cpu, target, matrix, way_out) if stack.named else (Verdict.UNKNOWN, ())
    if stack.unpinned:
        verdict = Verdict.UNKNOWN if verdict is Verdict.FITS else verdict
        text = f"it does not pin {sentence_list(stack.unpinned)}: lock it to know which build it installs"
        reasons = (*reasons, text)
    return verdict, builds, reasons


def _judged(
    stack: LockedStack, unknown: Mapping[str, str], target: Target, matrix: Matrix, way_out: str
) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on a stack, and the reasons. ``unknown`` are CPU builds of frameworks that the matrix does not have.

    These need neither a driver nor a GPU, so they always run.
    """
    problem = target.problem
    stack = stack._replace(releases={name: rows for name, rows in stack.releases.items() if name not in unknown})
    if problem.cpu:
        if any(all(row.cuda is not None for row in rows) for rows in stack.releases.values()):
            return Verdict.UNKNOWN, (f"it is for a GPU, and {_without_gpu(target, way_out)}",)
        reasons = tuple(against_builds(stack, target.request, problem, matrix)) if stack.releases else ()
        return (Verdict.DOES_NOT_RUN if reasons else Verdict.FITS), reasons
    for_gpu = {name: rows for name, rows in stack.releases.items() if any(row.cuda is not None for row in rows)}
    of_stack = _recorded_frameworks(stack) if for_gpu else frozenset()
    known = {name: [row.label for row in rows] for name, rows in stack.releases.items() if name not in for_gpu}
    labels = {**known, **{name: [label] for name, label in unknown.items()}}
    for_cpu = [label for name, listed in labels.items() if not of_stack or name in of_stack for label in listed]
    on_cpu = (f"{sentence_list(for_cpu)} runs only on the CPU, but there is an NVIDIA GPU",) if for_cpu else ()
    reasons = ()
    if for_gpu:
        on_gpu = stack._replace(releases=for_gpu)
        against = (against_builds(on_gpu, target.request, problem, matrix), against_cudnn(stack, problem, matrix))
        reasons = (*chain(*against), *against_packages(on_gpu, problem, matrix))
    if reasons:
        return Verdict.DOES_NOT_RUN, (*reasons, *on_cpu)
    return (Verdict.CPU_ONLY if on_cpu else Verdict.FITS), on_cpu


def _recorded_frameworks(stack: LockedStack) -> frozenset[str]:
    """The frameworks that were requested from envsolve; others in the file are dependencies of packages."""
    recorded = stack.lock.stack
    return frozenset(() if recorded is None else (it.framework for it in recorded.frameworks))


def _without_gpu(target: Target, way_out: str) -> str:
    if target.fell_to_cpu:
        return f"no GPU was found here: {way_out}"
    return "the request is for the CPU" if target.request.wants_cpu else "the given machine has none"


def _age(stack: LockedStack, matrix: Matrix, problem: Problem) -> Iterator[Note]:
    """A note if the matrix has changed since envsolve wrote the file."""
    date = None if stack.lock.made is None else stack.lock.made.matrix_date
    frameworks = tuple(FrameworkRequest(name, SpecifierSet()) for name in stack.releases)
    today = matrix_date_of(problem._replace(frameworks=frameworks), matrix)
    if date is not None and date < today:
        text = f"it was made with the matrix of {date}, and this one is of {today}: lock again to see what is new"
        yield Note("matrix-is-newer", text).about(recorded=date, matrix_date=today)


def _how_to_read(stack: LockedStack, unknown: Iterable[Installed]) -> Iterator[str]:
    """For builds that the lock knew but the matrix does not: the origin of the facts, and how to read them here."""
    origins = {} if stack.lock.made is None else origins_in(stack.lock.made.evidence)
    for it in unknown:
        kind, _, rest = origins.get(it.name, "").partition(" ")
        if kind in (Origin.INFERRED, Origin.READ_HERE):
            how = f"inferred {rest}".strip() if kind == Origin.INFERRED else "read on that machine"
            reads = f": `envsolve matrix update {it.name}` reads it here" if it.build is None else ""
            yield f"{it.name} was {how} when it was locked{reads}"


def _on_evidence(stack: LockedStack, problem: Problem, matrix: Matrix, known: Collection[str]) -> Iterator[Note]:
    """Notes on facts that could not be read, that are no longer inferred, or that are missing for the GPUs."""
    if problem.cpu:
        return
    evidence = () if stack.lock.made is None else stack.lock.made.evidence
    yield from on_unread_places(evidence)
    for name, origin in origins_in(evidence).items():
        rows = stack.releases.get(FRAMEWORK_OF_WHEEL.get(name, ""), ())
        if origin.startswith(Origin.INFERRED) and any(GPU_CODE not in it.inferred for it in rows):
            text = f"{name} was {origin} when it was locked, and the matrix has it now"
            yield Note(NO_LONGER_INFERRED, f"{text}: lock again").about(name=name)
    names = list(unverified(stack.lock, known, [str(it) for it in problem.gpus], matrix, problem.platform))
    if names:
        text = f"not verified for this GPU: the libraries in {sentence_list(names)} were not read"
        yield Note("not-verified", text).about(count=len(names))
