"""Every answer of the solver for one set of frameworks, with placeholders for what differs between machines.

The texts are those of the command line. ``@gpu@``, ``@driver@`` and ``@command@`` are placeholders for the words of the
request; in a command ``@gpu@`` is quoted.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import cache
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
from envsolve.model.host import ASSUMED_GLIBC, Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.release import Source, Toolkit
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.provider import Known, Provider
from envsolve.resolve.solver import Solver
from envsolve.site.machines import DRIVER, GpuKind, driver_steps

GPU, COMMAND = "@gpu@", "@command@"
CPU = "none"
"""The command line's word for no GPU."""


class PatientSolver(Solver):
    """Solves each problem once: refusing several frameworks needs the answers to fewer of them again.

    Neither the name of a GPU nor the GPUs and the driver of a request matter besides those of its problem, so its
    solutions have ``@gpu@`` as the name.
    """

    def __init__(self, matrix: Matrix) -> None:
        super().__init__(matrix)
        self._solved: dict[tuple[Request, Problem], Solution | None] = {}
        self._solvable: dict[tuple[Request, Problem], bool] = {}
        self._known: dict[tuple[object, ...], Known] = {}

    def forget(self) -> None:
        """Forget the solutions, which other GPUs do not need."""
        self._solved.clear()
        self._solvable.clear()
        self._known.clear()

    def solve(self, request: Request, problem: Problem) -> Solution | None:
        """Like Solver.solve."""
        key = _without_names(request, problem)
        if key not in self._solved:
            self._solved[key] = super().solve(*key)
        found = self._solved[key]
        return None if found is None else found._replace(request=request, problem=problem)

    def can_solve(self, request: Request, problem: Problem) -> bool:
        """Like Solver.can_solve."""
        key = _without_names(request, problem)
        if key not in self._solvable:
            self._solvable[key] = super().can_solve(*key)
        return self._solvable[key]

    def provider(
        self, group: Sequence[Source], request: Request, problem: Problem, toolkit: Toolkit | None = None
    ) -> Provider:
        """Like Solver.provider, with what is already known about builds on these machines."""
        several = len(problem.frameworks) > 1 and request.format in PYTHON_FORMATS
        requested, posed = _without_names(request, problem)
        key = (tuple(group), requested._replace(frameworks=()), posed._replace(frameworks=()), toolkit, several)
        known = self._known.setdefault(key, Known())
        return Provider(request, problem, self.catalogue(problem), group, toolkit, known)


def _without_names(request: Request, problem: Problem) -> tuple[Request, Problem]:
    machines = tuple(it._replace(gpus=tuple((gpu, name and GPU) for gpu, name in it.gpus)) for it in problem.machines)
    return request._replace(driver=None, gpus=()), problem._replace(machines=machines)


class Way(NamedTuple):
    """A fix: what it does, the command, and the state of the selector for it ("" if there is none)."""

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
    """Why there is no answer: the code, the message, the smallest conflict with its sources, and the fixes."""

    code: str
    message: str
    because: tuple[tuple[str, str], ...]
    ways: tuple[Way, ...]
    releases: tuple[()] = ()


Outcome = Stack | Refusal


def request_for(
    frameworks: Sequence[str], platform: Platform, gpu: str, driver: DriverVersion | None, format_name: str
) -> Request:
    """The request that the command line makes from these words.

    Without a GPU the command line uses the C library of its own machine, so the request names one.
    """
    return Request(
        tuple(FrameworkRequest(name, SpecifierSet()) for name in frameworks),
        gpus=(gpu,),
        driver=driver,
        glibc=ASSUMED_GLIBC if gpu == CPU and platform.is_linux else None,
        platforms=(platform,),
        format=format_name,
    )


class Query(NamedTuple):
    """A matrix with its solver, and a query for them: frameworks for one platform and one kind of files."""

    matrix: Matrix
    solver: Solver
    frameworks: tuple[str, ...]
    platform: Platform
    formats: tuple[str, ...]
    """The formats of one stack; the first one is used for the request."""

    def outcome(self, kind: GpuKind | None, driver: DriverVersion | None) -> Outcome:
        """The solver's outcome for one kind of machine; None is one without a GPU."""
        name = kind.example if kind is not None and kind.products else ""

        def open_(text: str) -> str:
            return text.replace(name, GPU) if name else text

        requested = CPU if kind is None else kind.example
        request = request_for(self.frameworks, self.platform, requested, driver, self.formats[0])
        try:
            (answer,), notes = answers_to(request, self.matrix, {}, self.solver)
        except EnvsolveError as error:
            return refusal_of(error, name)
        return Stack(
            releases=tuple((str(it.release.version), it.release.label) for it in answer.solution.choices),
            files=tuple((it, open_(_file(answer._replace(command=COMMAND), it))) for it in self.formats),
            notes=tuple(open_(it.text) for it in notes),
            because=tuple((open_(it.text), it.source) for it in answer.solution.because),
        )


def by_driver(query: Query, kind: GpuKind, steps: Sequence[tuple[int, ...]]) -> list[tuple[int, Outcome]]:
    """The outcome for each driver, as the number of consecutive ``steps`` with it, the oldest driver first.

    Only the steps of this kind are solved: the solver prefers a CUDA that the driver supports in full, so two drivers
    may have the same answer and one between them another.
    """
    own = set(driver_steps(kind, query.matrix, query.platform))
    found: list[Outcome] = []
    for step in steps:
        found.append(query.outcome(kind, DriverVersion(step, DRIVER)) if step in own else found[-1])
    return [(len(list(same)), outcome) for outcome, same in groupby(found)]


def _file(answer: Answer, format_name: str) -> str:
    if format_name != "requirements":
        ((_, text),) = write([answer], format_name)
        return text
    lock = lock_of(answer)
    pins = (commented(it.spec, it.reason) for it in lock.requested if it.by_pip)
    return "\n".join((*lock_header(lock), *lock.remarks, *index_options(lock), *pins)) + "\n"


def refusal_of(error: EnvsolveError, gpu: str = "") -> Refusal:
    """An error in the form of the site, with a placeholder for the name of its ``gpu`` if there is one."""

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
"""The options in the selector, with the keys of its address."""


@cache
def _state_of(command: str) -> str:
    """The address of the selector for a command; "" for one that has other options, or versions of a framework."""
    words = shlex.split(command)[1:]
    pairs = [(option, value) for option, value in zip(words[::2], words[1::2], strict=False) if option != "--format"]
    if not pairs or any(option not in _KEYS or value == "auto" or "=" in value for option, value in pairs):
        return ""
    return urlencode([(_KEYS[option], value) for option, value in pairs], safe="@")
