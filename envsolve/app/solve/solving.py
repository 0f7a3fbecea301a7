"""The main use case: turns a request into the text of an environment, or an error with a reason and hints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from envsolve import __version__
from envsolve.app.request.channel_order import in_order, solver_of
from envsolve.app.request.command import command_of, recorded_command, recorded_options
from envsolve.app.request.own_rows import notes_on_own_rows, stack_is_own
from envsolve.app.request.targets import Target, targets_of
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from envsolve.lockfile import Answer, write
from envsolve.matrix.load import Matrix
from envsolve.model.fact import Fact
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.note import Note
from envsolve.model.request import FrameworkRequest, LockedVersions, Request, parse_framework
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.solver import Solver, source_groups

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

LEFT_OUT = Note(
    "logins-left-out", "logins and tokens in URLs are not written: store them in .netrc, .condarc or a keyring"
)


class Solved(NamedTuple):
    """The texts to write, each with its platform, and notes.

    One text may be for all requested platforms; then its platform is the first of these. ``locks`` are the locks that
    the texts were written from, if any, one for each platform; ``answers`` are the stacks.
    """

    texts: tuple[tuple[Platform, str], ...]
    notes: tuple[Note, ...]
    answers: tuple[Answer, ...]
    locks: tuple[Lock, ...] = ()

    @property
    def solutions(self) -> tuple[Solution, ...]:
        """The stacks."""
        return tuple(it.solution for it in self.answers)

    @property
    def because(self) -> tuple[Fact, ...]:
        """The facts behind the answer, each once."""
        return tuple(dict.fromkeys(fact for solution in self.solutions for fact in solution.because))


ExistingVersions = Callable[[Platform], LockedVersions]
"""The versions in an existing answer for a platform, for the policy that prefers them."""


def solve_request(
    request: Request,
    matrix: Matrix,
    environ: Mapping[str, str],
    existing: ExistingVersions | None = None,
    *,
    recorded: Request | None = None,
) -> Solved:
    """The environment for ``request`` in its format, for each of its platforms.

    ``recorded`` is the request to record in the answer if it differs. Raises UsageError for a request that is
    contradictory or cannot be read, UnsolvableError if nothing fits.
    """
    answers, notes = answers_to(request, matrix, environ, solver_of(request, matrix), existing, recorded=recorded)
    return Solved(tuple(write(answers, request.format, notes)), notes, answers)


def answers_to(
    request: Request,
    matrix: Matrix,
    environ: Mapping[str, str],
    solver: Solver,
    existing: ExistingVersions | None = None,
    *,
    recorded: Request | None = None,
) -> tuple[tuple[Answer, ...], tuple[Note, ...]]:
    """The stacks of :func:`solve_request` before they are written, and notes. Raises the same errors."""
    request, hidden = request_without_secrets(request)
    targets, solutions, differing = stacks_of(request, matrix, environ, solver, existing)
    described = partial(_answer, _recorded(request, recorded), matrix, targets)
    answers = []
    beside: list[Note] = []
    for target, solution in zip(targets, solutions, strict=True):
        found = described(target, solution)
        if request.packages.are_named:
            found, more = _with_packages_beside(found, target, request)
            beside += more
        if request.format == "json":
            others = _alternatives(target, solution, solver)
            alternatives = (described(target, it)._replace(command=command_of(it.request)) for it in others)
            found = found._replace(alternatives=tuple(alternatives))
        answers.append(found)
    notes = [*notes_of(targets, solutions), *differing, *beside, *hidden, *matrix.notes]
    return tuple(answers), tuple(dict.fromkeys(notes))


def solve_as_locked(
    request: Request,
    found: Sequence[tuple[Target, Solution, Lock]],
    of_lock: Iterable[Note],
    matrix: Matrix,
    *,
    recorded: Request | None = None,
) -> Solved:
    """The environment with each target's stack from its lock, its versions of dependent frameworks, and notes."""
    request, hidden = request_without_secrets(request)
    targets, solutions = [target for target, *_ in found], [solution for _, solution, _ in found]
    described = partial(_answer, _recorded(request, recorded), matrix, targets)
    answers = []
    beside: list[Note] = []
    for target, solution, lock in found:
        answer, more = _with_packages_beside(described(target, solution), target, request, lock)
        answers.append(answer)
        beside += more
    notes = tuple(dict.fromkeys((*of_lock, *notes_of(targets, solutions), *beside, *hidden, *matrix.notes)))
    return Solved(tuple(write(answers, request.format, notes)), notes, tuple(answers))


def _recorded(request: Request, recorded: Request | None) -> Request:
    return request if recorded is None else request_without_secrets(recorded)[0]


def _answer(recorded: Request, matrix: Matrix, targets: Sequence[Target], target: Target, solution: Solution) -> Answer:
    date, own = matrix_date_of(target.problem, matrix), stack_is_own(matrix, solution)
    command, options = _command_of(recorded, targets), recorded_options(recorded)
    return Answer(solution, target.hosts, command, date, __version__, own, options)


def _with_packages_beside(
    answer: Answer, target: Target, request: Request, lock: Lock | None = None
) -> tuple[Answer, list[Note]]:
    from envsolve.app.solve.unpinned import beside_stack

    more = beside_stack(target, answer.solution, lock)
    return answer._replace(requested=more.requested, variables=more.variables), list(more.notes(request))


def _alternatives(target: Target, solution: Solution, solver: Solver) -> Iterator[Solution]:
    """The stacks for the other kind of output and from other sources, each once."""
    request = target.request
    ways = [request._replace(format="requirements")]
    ways += [request._replace(sources=group) for group in source_groups(request._replace(sources=()))]
    known = {_releases(solution)}
    for it in ways:
        found = solver.solve(it, target.problem)
        if found is not None and _releases(found) not in known:
            known.add(_releases(found))
            yield found


def _releases(solution: Solution) -> tuple[str, ...]:
    return tuple(choice.release.label for choice in solution.choices)


def stacks_of(
    request: Request,
    matrix: Matrix,
    environ: Mapping[str, str],
    solver: Solver,
    existing: ExistingVersions | None = None,
) -> tuple[tuple[Target, ...], tuple[Solution, ...], tuple[Note, ...]]:
    """The targets of a request, their stacks, and notes on differing releases. Raises the errors of solve_request."""
    targets: tuple[Target, ...] = ()
    try:
        targets = tuple(map(_with_packages, targets_of(request, matrix, environ)))
        if existing is not None:
            targets = tuple(
                target._replace(request=target.request._replace(locked=existing(target.problem.platform)))
                for target in targets
            )
        return (targets, *solutions_of(targets, solver))
    except UnsolvableError as error:
        frameworks = (*request.frameworks, *(it for target in targets for it in target.problem.frameworks))
        names = ("cuda", *(it.framework for it in frameworks))
        error.matrix_date = max(str(matrix.document(name).get("updated")) for name in names)
        raise


def _with_packages(target: Target) -> Target:
    """``target`` with the sources of its channels, and with the frameworks among its packages."""
    if not target.request.packages.are_named:
        return target._replace(request=in_order(target.request))
    from envsolve.app.solve.unpinned import with_packages

    return with_packages(target)


def solutions_of(targets: Sequence[Target], solver: Solver) -> tuple[tuple[Solution, ...], tuple[Note, ...]]:
    """The stack of each target, and notes on differing releases. Raises UnsolvableError if one has none."""
    found = [solver.solve(target.request, target.problem) for target in targets]
    for target, solution in zip(targets, found, strict=True):
        if solution is None:
            raise _refusal(target, solver, several=len(targets) > 1)
    solutions = [solution for solution in found if solution is not None]
    if len(targets) == 1:
        return tuple(solutions), ()
    from envsolve.resolve.platforms import agreed, differing

    same = agreed([(target.request, target.problem) for target in targets], solver)
    return tuple(same), tuple(differing(same))


def _refusal(target: Target, solver: Solver, *, several: bool) -> UnsolvableError:
    """Why a target has no stack. The explanation is imported only in that case."""
    from envsolve.app.request.refusal import refusal

    error = refusal(target.request, target.problem, solver)
    if target.request.packages.are_named:
        from envsolve.app.solve.contradictions import bounds_on_stack, without_contradictions

        error.hints = tuple(without_contradictions(error.hints, bounds_on_stack(target)))
    if several:
        error.message = f"{target.problem.platform}: {error.message}"
    return error


def notes_of(targets: Sequence[Target], solutions: Sequence[Solution | None]) -> Iterator[Note]:
    """The notes on each target and its stack, if there is one."""
    request = targets[0].request
    if request.packages.extensions and request.format not in PYTHON_FORMATS:
        option = request.requester.setting("extensions")
        text = (
            f"{option} is ignored: only Python locks have wheels that are on no index, and they go with PyTorch's own"
        )
        yield Note("extensions-ignored", text, command_of(request._replace(format="pylock")))
    for target, solution in zip(targets, solutions, strict=True):
        newer = () if solution is None or target.fell_to_cpu else solution.newer_elsewhere
        of_stack = () if solution is None else solution.notes
        own = () if solution is None else notes_on_own_rows(solution)
        found = (*target.notes, *of_stack, *own, *(it.note for it in newer))
        yield from (it.of(target.problem.platform) for it in found) if len(targets) > 1 else found


_MOST_HOSTS = 8
_SIMILAR = 0.75
"""How alike two names are of which one is a slip: numpy is no slip of cupy (0.67)."""


def _command_of(request: Request, targets: Sequence[Target]) -> str:
    """The command that gives this answer again. It names one host of each kind, as a header has little space."""
    kinds = [machine.hosts[0] for target in targets for machine in target.problem.machines if machine.hosts]
    if request.named_hosts or len(request.hosts) <= _MOST_HOSTS or len(kinds) == len(request.hosts):
        return recorded_command(request)
    left = len(request.hosts) - len(kinds)
    return f"{command_of(request._replace(hosts=tuple(kinds)))}  # and {left} more hosts like these"


def request_without_secrets(request: Request) -> tuple[Request, tuple[Note, ...]]:
    """``request`` without logins in its addresses, and a note if there were any."""
    of_pytorch = request.packages.pytorch_index_url
    bare = request._replace(
        channels=tuple(map(without_secrets, request.channels)),
        index_url=None if request.index_url is None else without_secrets(request.index_url),
        extra_index_urls=tuple(map(without_secrets, request.extra_index_urls)),
    )
    if of_pytorch is not None:
        bare = bare._replace(packages=bare.packages._replace(pytorch_index_url=without_secrets(of_pytorch)))
    return bare, (LEFT_OUT,) if bare != request else ()


def framework_request(text: str, matrix: Matrix) -> FrameworkRequest:
    """A framework as typed, by name or alias. Raises UsageError for an unknown one, with the most similar name."""
    try:
        name, specifier = parse_framework(text)
    except ValueError as error:
        raise UsageError("invalid-framework", str(error)) from error
    normalized = name.lower().replace("_", "-").replace(".", "-")
    known = {name: name for name in matrix.framework_names}
    if normalized not in known:
        known = framework_names(matrix)
    if normalized in known:
        return FrameworkRequest(known[normalized], specifier)
    if normalized in DEPENDENT_FRAMEWORKS:
        on = DEPENDENT_FRAMEWORKS[normalized].on
        raise UsageError(
            "unknown-framework",
            f"the matrix has no builds of {normalized}: it is a package for builds of {on}",
            hints=(Hint("list these", f"envsolve matrix list -f {on}"),),
        )
    import difflib

    close = difflib.get_close_matches(normalized, (*known, *DEPENDENT_FRAMEWORKS), n=1, cutoff=_SIMILAR)
    hints = tuple(Hint(f"did you mean {found}?") for found in close)
    raise UsageError(
        "unknown-framework",
        f"{name!r} is not a framework that envsolve knows",
        (f"known: {', '.join(sorted((*matrix.framework_names, *DEPENDENT_FRAMEWORKS)))}",),
        hints,
    )


def framework_requests(texts: Sequence[str], matrix: Matrix) -> tuple[FrameworkRequest, ...]:
    """The typed frameworks, sorted by name, as their order does not matter. One named twice must meet both ranges."""
    found: dict[str, FrameworkRequest] = {}
    for text in texts:
        request = framework_request(text, matrix)
        known = found.get(request.framework)
        specifier = request.specifier if known is None else known.specifier & request.specifier
        found[request.framework] = FrameworkRequest(request.framework, specifier)
    return tuple(sorted(found.values(), key=lambda it: it.framework))


def framework_names(matrix: Matrix) -> dict[str, str]:
    """The frameworks by each of their names."""
    tables = [matrix.framework(name, Platform.LINUX_64) for name in matrix.framework_names]
    return {name: table.name for table in tables for name in (*table.aliases, table.name)}


def matrix_date_of(problem: Problem, matrix: Matrix) -> str:
    """The date of the newest table that an answer to ``problem`` uses."""
    dates = [matrix.framework(it.framework, problem.platform).updated for it in problem.frameworks]
    return max([matrix.cuda.updated, *dates])
