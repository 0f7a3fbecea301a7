"""Every answer of the solver for one set of frameworks, with what is different for each machine left open.

The texts are those that the command line prints. ``@gpu@``, ``@driver@`` and ``@command@`` stand in them for the words
of the request; a command has ``@gpu@`` in quotes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from urllib.parse import urlencode

from packaging.specifiers import SpecifierSet

from envsolve.app.solve.solving import answers_to
from envsolve.errors import EnvsolveError, Hint
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.formats import write
from envsolve.lockfile.header import commented, lock_header
from envsolve.lockfile.requirements_txt import index_options
from envsolve.lockfile.stack import lock_of
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from envsolve.site.machines import DRIVER, GpuKind, driver_steps

GPU, COMMAND = "@gpu@", "@command@"


class PatientSolver(Solver):
    """Solves each problem once: what refuses a machine asks for the same ways out at every driver.

    The driver of a request decides nothing beside that of its problem.
    """

    def __init__(self, matrix: Matrix) -> None:
        super().__init__(matrix)
        self._solved: dict[tuple[Request, Problem], Solution | None] = {}

    def forget(self) -> None:
        """Drop what was solved, which other frameworks do not ask again."""
        self._solved.clear()

    def solve(self, request: Request, problem: Problem) -> Solution | None:
        """As Solver does."""
        key = request._replace(driver=None), problem
        if key not in self._solved:
            self._solved[key] = super().solve(request, problem)
        found = self._solved[key]
        return None if found is None else found._replace(request=request)


class Way(NamedTuple):
    """A way out: what it does, the command, and the state of the selector that it means ("" where it has none)."""

    text: str
    command: str
    state: str


class Stack(NamedTuple):
    """An answer: each release as version and label, the files by format, the notes, and each reason with its source."""

    releases: tuple[tuple[str, str], ...]
    files: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    because: tuple[tuple[str, str], ...]


class Refusal(NamedTuple):
    """Why there is no answer: the code, what happened, the smallest conflict with its sources, and the ways out."""

    code: str
    message: str
    because: tuple[tuple[str, str], ...]
    ways: tuple[Way, ...]
    releases: tuple[()] = ()


Outcome = Stack | Refusal


def request_for(
    frameworks: Sequence[str], platform: Platform, gpu: str, driver: DriverVersion | None, format_name: str
) -> Request:
    """The request that the command line makes of these words."""
    return Request(
        tuple(FrameworkRequest(name, SpecifierSet()) for name in frameworks),
        gpus=(gpu,),
        driver=driver,
        platforms=(platform,),
        format=format_name,
    )


class Asking(NamedTuple):
    """A matrix with its solver, and what is asked of them: frameworks for one platform and one kind of files."""

    matrix: Matrix
    solver: Solver
    frameworks: tuple[str, ...]
    platform: Platform
    formats: tuple[str, ...]
    """The formats of one stack: that in which the solver is asked is the first."""

    def outcome(self, kind: GpuKind, driver: DriverVersion | None) -> Outcome:
        """What the solver answers for one kind of machine."""

        def open_(text: str) -> str:
            return text.replace(kind.example, GPU)

        request = request_for(self.frameworks, self.platform, kind.example, driver, self.formats[0])
        try:
            (answer,), notes = answers_to(request, self.matrix, {}, self.solver)
        except EnvsolveError as error:
            return refusal_of(error, kind.example)
        return Stack(
            releases=tuple((str(it.release.version), it.release.label) for it in answer.solution.choices),
            files=tuple((it, open_(_file(answer._replace(command=COMMAND), it))) for it in self.formats),
            notes=tuple(open_(it.text) for it in notes),
            because=tuple((open_(it.text), it.source) for it in answer.solution.because),
        )


def by_driver(asking: Asking, kind: GpuKind, steps: Sequence[tuple[int, ...]]) -> list[tuple[int, Outcome]]:
    """The outcome for each driver, as the number of ``steps`` that have it in a row, the oldest driver first.

    Only the steps of this kind are solved: the solver prefers a CUDA that the driver supports in full, so that two
    drivers may have one answer and one between them another.
    """
    own = set(driver_steps(kind, asking.matrix, asking.platform))
    found: list[Outcome] = []
    for step in steps:
        found.append(asking.outcome(kind, DriverVersion(step, DRIVER)) if step in own else found[-1])
    return [(len(list(same)), outcome) for outcome, same in groupby(found)]


def _file(answer: Answer, format_name: str) -> str:
    if format_name != "requirements":
        ((_, text),) = write([answer], format_name)
        return text
    lock = lock_of(answer)
    pins = (commented(it.spec, it.reason) for it in lock.asked if it.by_pip)
    return "\n".join((*lock_header(lock), *lock.remarks, *index_options(lock), *pins)) + "\n"


def refusal_of(error: EnvsolveError, gpu: str = "") -> Refusal:
    """An error as the site has it, with the name of its ``gpu`` left open if there is one."""

    def open_(text: str) -> str:
        return text.replace(gpu, GPU) if gpu else text

    def way(hint: Hint) -> Way:
        command = hint.command or ""
        command = command.replace(shlex.quote(gpu), f"'{GPU}'") if gpu else command
        return Way(open_(hint.text), command, _state_of(command))

    steps = tuple((it.requirement, it.source) for it in error.conflict) or tuple((it, "") for it in error.cause)
    because = tuple((open_(text), source) for text, source in steps)
    return Refusal(error.code, open_(error.message), because, tuple(map(way, error.hints)))


_KEYS = {"--framework": "framework", "--driver": "driver", "--gpu": "gpu", "--platform": "platform"}
"""The options that the selector has, with the keys of its address."""


def _state_of(command: str) -> str:
    """The address of the selector for a command; "" for one that has other options, or versions of a framework."""
    words = shlex.split(command)[1:]
    pairs = [(option, value) for option, value in zip(words[::2], words[1::2], strict=False) if option != "--format"]
    if not pairs or any(option not in _KEYS or value in ("auto", "none") or "=" in value for option, value in pairs):
        return ""
    return urlencode([(_KEYS[option], value) for option, value in pairs], safe="@")
