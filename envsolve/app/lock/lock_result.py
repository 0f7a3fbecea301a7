"""The lock that a search found, with its notes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from envsolve import __version__
from envsolve.app.packages.lock_evidence import Origins, evidence_of
from envsolve.app.packages.lock_frameworks import left_out
from envsolve.app.packages.lock_indexes import Places
from envsolve.app.packages.lock_stacks import Attempt
from envsolve.app.packages.requirements import Requirements, for_target
from envsolve.app.packages.stack_wheels import index_of, notes_of, runs_in_part
from envsolve.app.request.command import command_of, recorded_command, recorded_options
from envsolve.app.request.own_rows import notes_on_own_rows, pins_are_own, stack_is_own
from envsolve.app.request.targets import Target
from envsolve.app.solve.solving import matrix_date_of, request_without_secrets
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_CPU_WHEEL, FRAMEWORKS, OWN_INDEX
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.lock import Lock, Made, wheels_lock
from envsolve.lockfile.options import Options
from envsolve.lockfile.stack import stack_of
from envsolve.matrix.load import Matrix
from envsolve.model.host import COMMON_GLIBC, Platform
from envsolve.model.need import Markers
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.release import PYTORCH_INDEX, CudaLibraries
from envsolve.model.request import Request, versions_text
from envsolve.model.solution import Solution
from envsolve.resolve.stack import SHARED_DEPENDENCIES

PYTHON_CHOSEN = "python-chosen"
"""The code of the note that says which Python was chosen."""
_FEW = 3


class Locked(NamedTuple):
    """A lock for one platform, the answer it was made from, and its notes."""

    platform: Platform
    lock: Lock
    answer: Answer | None
    notes: tuple[Note, ...]

    @property
    def solution(self) -> Solution | None:
        """The stack; None without frameworks."""
        return None if self.answer is None else self.answer.solution


class Result(NamedTuple):
    """Makes the lock for a target. ``recorded`` is the request to record in the lock if it differs from ``request``."""

    request: Request
    recorded: Request | None
    matrix: Matrix
    target: Target
    wanted: Requirements
    where: Places

    def finished(
        self,
        attempt: Attempt,
        pins: tuple[Pin, ...],
        beside: Iterable[Note] = (),
        passed: Sequence[UnsolvableError] = (),
        *,
        read: Origins,
        unread: Options = (),
    ) -> Locked:
        """The lock of ``pins`` around a stack. ``passed`` are the reasons why better builds were skipped.

        ``read`` has the origins of facts about packages that the matrix does not know. ``unread`` lists places that
        could not be read.
        """
        solution, interpreter = attempt.solution, attempt.interpreter
        request = self.request
        bare, _ = request_without_secrets(self.recorded or request)
        now = for_target(self.wanted, Markers(interpreter.marker_values()))
        needs, constraints = now.as_recorded
        answer = matrix_date = None
        if solution is not None:
            matrix_date = matrix_date_of(solution.problem, self.matrix)
            answer = Answer(
                solution,
                self.target.hosts,
                recorded_command(bare),
                matrix_date,
                __version__,
                own_matrix=stack_is_own(self.matrix, solution)
                or pins_are_own(self.matrix, pins, attempt.problem.platform),
            )
        default = self.where.default_shown
        used = {pin.index_url.rstrip("/") for pin in pins if pin.index_url is not None}
        others = tuple(url for url in self._in_order(solution) if url != default and url in used)
        made = Made(
            __version__,
            recorded_command(bare),
            tuple(dict.fromkeys((*map(str, request.frameworks), *needs))),
            matrix_date,
            answer is not None and answer.own_matrix,
            request.packages.exclude_newer,
            request_digest=now.digest,
            options=(*recorded_options(bare), *constraints),
        )
        locked = wheels_lock(pins, interpreter, default, default_is_plain=self.where.is_plain)
        evidence = (*evidence_of(locked, solution, self.matrix, read), *unread)
        stack = None if solution is None else stack_of(solution, self.target.hosts, locked.versions)
        locked = locked._replace(stack=stack, made=made._replace(evidence=evidence), indexes=others)
        absent = left_out(self.wanted, pins, interpreter)
        in_part = () if solution is None else runs_in_part(pins, solution, self.matrix)
        notes = (*beside, *self._notes(attempt), *in_part, *absent, *(note for pin in pins for note in notes_of(pin)))
        if not attempt.problem.cpu and attempt.problem.gpus:
            notes = (*notes, *_for_the_cpu(pins))
        if any(machine.assumed_glibc for machine in attempt.problem.machines):
            notes = (*notes, *self._beyond_common_glibc(attempt.interpreter, pins))
        if not all(file.is_archive for pin in pins for file in pin.files):
            text = "pip cannot install a repository or a folder beside hashes: use envsolve create or uv pip sync"
            notes = (*notes, Note("not-for-pip", text))
        if passed:
            more = f", and {len(passed) - 1} more after it" if len(passed) > 1 else ""
            text = f"a better build was skipped{more}: {inline_text(passed[0])}{_instead(solution)}"
            notes = (Note("build-passed-over", text).about(count=len(passed), because=passed[0].message), *notes)
        return Locked(attempt.problem.platform, locked, answer, notes)

    def _in_order(self, solution: Solution | None) -> list[str]:
        packages = self.target.request.packages
        own = [index_of(choice.release, packages) for choice in (solution.choices if solution else ())]
        urls = (*filter(None, own), *self.where.mapped.values(), *self.where.extra)
        return list(dict.fromkeys(without_secrets(url).rstrip("/") for url in urls))

    def _notes(self, attempt: Attempt) -> tuple[Note, ...]:
        solution = attempt.solution
        if solution is None:
            return tuple(_of_default_builds(attempt))
        notes = [] if self.target.fell_to_cpu and not attempt.problem.cpu else list(self.target.notes)
        if self.request.python is None:
            named = attempt.request.requester.name_of("python")
            text = f"locked for Python {solution.python} (use {named} to choose another version)"
            notes.append(Note(PYTHON_CHOSEN, text).about(python=str(solution.python)))
        notes += self._without_cuda(solution)
        own = (*notes_on_own_rows(solution), *self.matrix.notes)
        return (*notes, *own, *(it for it in solution.notes if it.code != SHARED_DEPENDENCIES))

    def _without_cuda(self, solution: Solution) -> Iterator[Note]:
        """CUDA libraries that the machine must have because wheels neither include nor require them."""
        for choice in solution.choices:
            release = choice.release
            if release.cuda is None or release.cuda_libraries is not CudaLibraries.NONE:
                continue
            cudnn = f" and cuDNN {versions_text(release.cudnn_requires)}" if release.cudnn_requires is not None else ""
            text = (
                f"{release.package} {release.full_version} does not install CUDA: the machine needs "
                f"CUDA {release.cuda}{cudnn} on its library path"
            )
            command = None
            if len(solution.choices) == 1:
                text += ". conda can install them"
                command = command_of(self.request._replace(format="environment"))
            yield Note("cuda-not-included", text, command).about(
                name=release.package, version=str(release.full_version), cuda=str(release.cuda)
            )

    def _beyond_common_glibc(self, interpreter: Interpreter, pins: Iterable[Pin]) -> Iterator[Note]:
        """Packages that need a newer C library than the oldest in common use, if the target's is only assumed."""
        ranks = Ranks(interpreter._replace(glibc=COMMON_GLIBC))
        beyond = [
            f"{pin.name} {pin.version}"
            for pin in pins
            if not any(not file.is_wheel or ranks.of_wheel(file.name) is not None for file in pin.files)
        ]
        if beyond:
            names = ", ".join(beyond[:_FEW]) + (f" and {len(beyond) - _FEW} more" if len(beyond) > _FEW else "")
            text = f"glibc {interpreter.glibc} is assumed, and {names} cannot be installed with {COMMON_GLIBC}"
            named = self.request.requester.name_of("glibc")
            yield Note("glibc-assumed", f"{text} (RHEL 8): set {named} to that of the machine")


def inline_text(error: UnsolvableError, known: Collection[str] = ()) -> str:
    """The most informative part of an error that is not ``known`` yet, for use within a sentence."""
    return next((it for it in error.reasons if it not in known), error.message)


def _for_the_cpu(pins: Iterable[Pin]) -> Iterator[Note]:
    for pin in pins:
        framework = FRAMEWORKS.get(FRAMEWORK_OF_CPU_WHEEL.get(pin.name, ""))
        if framework is not None:
            other = framework.wheels[0]
            text = f"{pin.name} is a CPU build and required by that name: {other} is the one for this GPU"
            yield Note("build-for-cpu", text).about(name=pin.name, for_gpu=other)


def _instead(solution: Solution | None) -> str:
    choices = () if solution is None else solution.choices
    builds = " and ".join(f"{it.release.package} {it.release.full_version}" for it in choices)
    return f"; the lock has {builds}" if builds else ""


def _of_default_builds(attempt: Attempt) -> Iterator[Note]:
    """Notes for a target without a GPU, if the only index has no CPU builds."""
    problem = attempt.problem
    if problem.frameworks:
        yield Note(
            "default-builds",
            "no NVIDIA GPU was found, and the given index has no CPU builds: these are the default builds, "
            "which also run without a GPU and install CUDA libraries",
        )
    if any(it.framework in OWN_INDEX.values() for it in problem.frameworks):
        naming = attempt.request.requester.setting("pytorch-index-url", PYTORCH_INDEX.rstrip("/"))
        yield Note("index-of-cpu-builds", f"PyTorch's CPU builds are on its own index: {naming}")
