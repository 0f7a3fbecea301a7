"""The use case of the doctor: look at this machine and an environment, say what breaks GPU stacks and what mends it.

Nothing is written, no framework is imported, and every part has its time: a driver that hangs must not hang the doctor.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.validating import Progress
from envsolve.boundary.secrets import masked
from envsolve.diagnose.environment import EnvironmentReport, FoundEnvironment, examine_environment, find_environment
from envsolve.diagnose.environment.remedies import named
from envsolve.diagnose.environment.shells import shell_of
from envsolve.diagnose.machine import Limits, MachineReport, Surroundings, examine_machine, nearest_the_cause
from envsolve.diagnose.machine.inventory import VARIABLES
from envsolve.diagnose.plain_text import printable
from envsolve.errors import EnvsolveError, Hint, UsageError
from envsolve.frameworks import frameworks_among
from envsolve.host.machine import TIMEOUT_VARIABLE, Machine
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Host
from envsolve.model.note import Note
from envsolve.validation.activation import Activation, activated
from envsolve.validation.child import Children

if TYPE_CHECKING:
    from envsolve.model.request import Request

PROBE_SECONDS = "2"
"""How long each slow source of the detection may take, unless ENVSOLVE_PROBE_TIMEOUT says more."""
INVENTORY_SECONDS = 4.0
"""How long the environment's Python may take to list it; then its files are read instead."""
WALK_SECONDS = 2.0
"""How long directories of the machine are walked."""
_PROJECT = re.compile(r"[a-z][a-z0-9-]*(?=[=<>\[~! ])")
"""The name that a requirement begins with."""


class DoctorRequest(NamedTuple):
    """What is to be looked at; None stands for the active environment."""

    progress: Progress
    prefix: str | None = None
    python: str | None = None
    matrix_directory: Path | None = None


class Looked(NamedTuple):
    """The environment that was looked at: its Python, the command that proves it, and where facts on it come from.

    ``proof`` is None where its Python does not run, and nothing can be proven. ``plan`` is the command that plans it
    anew, ``is_conda`` says whether conda packages are in it. ``variables`` are those that matter, each with who set it.
    """

    python: str
    origin: str
    runs: bool
    proof: str | None
    plan: str
    is_conda: bool
    variables: tuple[tuple[str, str], ...]


class Diagnosed(NamedTuple):
    """What was found, the gravest first, and what was looked at."""

    host: Host
    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    frameworks: tuple[tuple[str, str], ...]
    """The frameworks of the environment, by envsolve's names, with their versions."""
    environment: Looked
    notes: tuple[Note, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is broken: warnings and hints are no errors."""
        return not any(it.severity is Severity.ERROR for it in self.findings)


def diagnose(asked: DoctorRequest, environ: Mapping[str, str]) -> Diagnosed:
    """Examine the machine and the environment that is meant.

    Raises UsageError where the environment that is named is none.
    """
    matrix = Matrix(asked.matrix_directory)
    try:
        asked.progress.show("the machine")
        host = _host(matrix, environ)
        surroundings = Surroundings(Machine(host.platform, environ), host, limits=Limits(seconds=WALK_SECONDS))
        machine = examine_machine(surroundings, matrix)
        asked.progress.show("querying the environment's Python")
        found, environment, activation = _environment(asked, environ, host, matrix)
    finally:
        asked.progress.clear()
    findings = tuple(
        map(
            _without_secrets,
            nearest_the_cause(
                (*machine.findings, *found.findings, *map(printable, activation.findings), *environment.findings)
            ),
        )
    )
    inventory = _inventory(machine, environment)
    looked = _looked(found, environ, activation.environ, inventory, host)
    return Diagnosed(host, findings, inventory, _frameworks(found, environment), looked, activation.notes)


def _host(matrix: Matrix, environ: Mapping[str, str]) -> Host:
    """Ask this machine what it is, thoroughly and not for long."""
    from envsolve.host.detection import detect

    return detect(thorough=True, environ={TIMEOUT_VARIABLE: PROBE_SECONDS, **environ}, pci_table=matrix.gpu_of_pci_id)


def _environment(
    asked: DoctorRequest, environ: Mapping[str, str], host: Host, matrix: Matrix
) -> tuple[FoundEnvironment, EnvironmentReport, Activation]:
    with Children() as children:
        found = find_environment(asked.prefix, asked.python, environ, children, timeout=INVENTORY_SECONDS)
    asked.progress.show(f"activating {found.inventory.prefix}")
    activation = activated(environ, found.inventory)
    asked.progress.show("the environment")
    report = examine_environment(
        found.inventory,
        host,
        activation.environ,
        platform=host.platform,
        matrix=matrix,
        shell=environ,
    )
    return found, report, activation


def _looked(
    found: FoundEnvironment,
    environ: Mapping[str, str],
    active: Mapping[str, str],
    inventory: Mapping[str, object],
    host: Host,
) -> Looked:
    shell = shell_of(environ, windows=host.platform.is_windows)
    place = named(found.inventory)
    proof = shell.joined(["envsolve", "validate", *place]) if found.runs else None
    plan = shell.joined(["envsolve", "doctor", *place, "--fix-plan"])
    told = inventory["variables"]
    variables = dict.fromkeys(told, "the shell") if isinstance(told, dict) else {}
    set_anew = {name: "activating the environment" for name in VARIABLES if active.get(name) != environ.get(name)}
    ordered = (variables | set_anew).items()
    inspected = found.inventory
    return Looked(inspected.python, found.origin, found.runs, proof, plan, inspected.is_conda, tuple(ordered))


def _inventory(machine: MachineReport, environment: EnvironmentReport) -> dict[str, object]:
    """One inventory of both: libraries of the machine and of the environment stand in one list."""
    of_both = [*_rows(machine.inventory.get("libraries")), *_rows(environment.inventory.get("libraries"))]
    told = machine.inventory.get("variables")
    variables = {name: masked(str(value)) for name, value in told.items()} if isinstance(told, dict) else {}
    return {**environment.inventory, **machine.inventory, "libraries": of_both, "variables": variables}


def _without_secrets(finding: Finding) -> Finding:
    """The finding without what variables and files may hold of passwords and tokens: reports are passed on."""
    return finding._replace(cause=masked(finding.cause), evidence=tuple(map(masked, finding.evidence)))


def _rows(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _frameworks(found: FoundEnvironment, report: EnvironmentReport) -> tuple[tuple[str, str], ...]:
    """Those with metadata of Python, and those whose files alone are there, as some packages of conda."""
    installed: dict[str, str] = {}
    for it in found.inventory.distributions:
        for known in frameworks_among([it.name]):
            installed.setdefault(known.name, it.version)
    for row in _rows(report.inventory.get("frameworks")):
        if isinstance(row, dict) and row.get("version"):
            installed.setdefault(str(row["framework"]), str(row["version"]))
    return tuple(installed.items())


def fix_plan(diagnosed: Diagnosed, asked: DoctorRequest, environ: Mapping[str, str]) -> tuple[str, tuple[Note, ...]]:
    """The environment that would mend it, as text, and what to tell beside it.

    For an environment of conda that is an environment.yml, for any other what pip reads. It is for the frameworks that
    are installed, and tried are, in order: 1. their versions with the environment's Python 2. their versions with
    another 3. other versions with its Python 4. whatever runs here. What is for another Python goes into a new
    environment, where nothing is in the way.
    Raises UsageError where no framework is installed, UnsolvableError where nothing runs here.
    """
    from envsolve.app.solving import framework_requests
    from envsolve.model.request import Request, parse_versions

    matrix = Matrix(asked.matrix_directory)
    known = [(name, version) for name, version in diagnosed.frameworks if name in matrix.framework_names]
    if not known:
        raise UsageError(
            "nothing-to-plan",
            "the environment has no framework that envsolve knows, so there is nothing to fix",
            hints=(Hint("request one", "envsolve --framework pytorch --gpu auto"),),
        )
    kept = [f"{name}=={'.'.join(version.partition('+')[0].split('.')[:2])}.*" for name, version in known]
    minor = ".".join(diagnosed.environment.python.split(".")[:2])
    pythons = [parse_versions(minor), None] if minor else [None]
    format_name = "environment" if diagnosed.environment.is_conda else "requirements"
    refusals: list[EnvsolveError] = []
    for wanted in (kept, [name for name, _ in known]):
        for python in pythons:
            try:
                request = Request(framework_requests(wanted, matrix), python, gpus=("auto",), format=format_name)
                text, notes = _planned(request, diagnosed.environment.plan, matrix, environ, anew=python is None)
            except EnvsolveError as error:
                refusals.append(error)
                continue
            changes = _changes(refusals, minor, versions=wanted is not kept, python=python is None and bool(minor))
            in_the_way = _in_the_way(text, diagnosed) if python is not None else ()
            return text, (*(Note("plan", it) for it in (*changes, *in_the_way)), *notes)
    raise refusals[-1]


def _in_the_way(requirements: str, diagnosed: Diagnosed) -> Iterator[str]:
    """What is installed of the modules that ``requirements`` bring under another name, and pip would leave there."""
    if diagnosed.environment.is_conda:
        return
    from envsolve.frameworks import FRAMEWORKS

    asked = {match[0] for line in requirements.splitlines() if (match := _PROJECT.match(line))}
    there = {str(row["name"]) for row in _rows(diagnosed.inventory.get("packages")) if isinstance(row, dict)}
    for rivals in (set(it.rivals) for it in FRAMEWORKS.values()):
        for name in sorted((rivals & there) - asked if rivals & asked else ()):
            yield f"uninstall {name} first: {' and '.join(sorted(rivals & asked))} installs the same module"


def _planned(
    request: Request, command: str, matrix: Matrix, environ: Mapping[str, str], *, anew: bool
) -> tuple[str, tuple[Note, ...]]:
    """The text for a request in its format, and its notes; ``command`` is the one that prints requirements.

    ``anew`` says that they are for another Python than the environment's.
    """
    from envsolve.app.solving import matrix_date_of, notes_of, solve_request, stacks_of

    if request.format == "environment":
        solved = solve_request(request, matrix, environ)
        return solved.texts[0][1], solved.notes
    from envsolve import __version__
    from envsolve.lockfile import Answer
    from envsolve.lockfile.stack_requirements import stack_requirements
    from envsolve.resolve.solver import Solver

    targets, solutions, _ = stacks_of(request, matrix, environ, Solver(matrix))
    (target,), (solution,) = targets, solutions
    date = matrix_date_of(target.problem, matrix)
    answer = Answer(solution, target.hosts, command, date, __version__, own_matrix=not matrix.is_shipped)
    return stack_requirements(answer, anew=anew), tuple(dict.fromkeys(notes_of(targets, solutions)))


def _changes(refusals: Sequence[EnvsolveError], minor: str, *, versions: bool, python: bool) -> Iterator[str]:
    """What of the environment the plan does not keep, a line each, with what the solver said against it.

    The versions were given up for the refusal of them with whatever Python; that with the environment's own comes
    just before it. Python was given up for the last refusal.
    """
    if versions:
        yield f"the installed versions cannot stay: {_reason(refusals[1 if minor else 0])}"
    if python:
        yield f"Python {minor} cannot stay: {_reason(refusals[-1])}"


def _reason(error: EnvsolveError) -> str:
    """A refusal on one line; of a chain of facts its first says most and is shortest."""
    return " ".join((error.cause[0] if error.cause else error.message).split())
