"""The use case of the doctor: look at this machine and an environment, say what breaks GPU stacks and what fixes it.

Nothing is written, no framework is imported, and every part has its time: a driver that hangs must not hang the doctor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.app.environment.lock_of_environment import differs_from_lock
from envsolve.app.environment.validating import Progress
from envsolve.app.status.results import Diagnosis
from envsolve.boundary.secrets import masked
from envsolve.diagnose.environment import EnvironmentReport, FoundEnvironment, examine_environment, find_environment
from envsolve.diagnose.environment.remedies import named
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.shells import shell_of
from envsolve.diagnose.machine import Limits, MachineReport, Surroundings, examine_machine, nearest_the_cause
from envsolve.diagnose.machine.inventory import VARIABLES
from envsolve.diagnose.plain_text import printable
from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import frameworks_among
from envsolve.host.machine import TIMEOUT_VARIABLE, Machine
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding
from envsolve.model.host import Host
from envsolve.model.lock_format import PROJECT_LOCKS
from envsolve.model.note import Note
from envsolve.model.request import NamedHost, Request
from envsolve.model.versions import DriverVersion
from envsolve.validation.activation import Activation, activated
from envsolve.validation.child import Children

PROBE_SECONDS = "2"
"""How long each slow source of the detection may take, unless ENVSOLVE_PROBE_TIMEOUT says more."""
INVENTORY_SECONDS = 4.0
"""How long the environment's Python may take to list it; then its files are read instead."""
WALK_SECONDS = 2.0
"""How long directories of the machine are walked."""


_HERE = "this machine"


class DoctorRequest(NamedTuple):
    """What is to be looked at; None stands for the active environment."""

    progress: Progress
    prefix: str | None = None
    python: str | None = None
    matrix_directory: Path | None = None


class Looked(NamedTuple):
    """The environment that was looked at: its Python, the command that proves it, and where facts on it come from.

    ``proof`` is None if its Python does not run, and nothing can be proven. ``plan`` is the command that plans a
    fixed one, ``is_conda`` says whether conda packages are in it. ``variables`` are those that matter,
    each with who set it.
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
    scene: Scene
    notes: tuple[Note, ...] = ()
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What was checked, in words, each with the ids of what it found."""

    def by_check(self) -> list[tuple[str, tuple[Finding, ...]]]:
        """What was checked, with its findings, each finding once; the last is whatever no check found by itself."""
        left = list(self.findings)
        found = []
        for name, ids in self.checks:
            found.append((name, tuple(it for it in left if it.id in ids)))
            left = [it for it in left if it.id not in ids]
        return [*found, ("other observations", tuple(left))]

    @property
    def result(self) -> Diagnosis:
        """What is found, without how."""
        return Diagnosis(self.host, self.findings, self.inventory, self.frameworks, self.notes)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken: warnings and hints are no errors."""
        return self.result.ok


def diagnose(asked: DoctorRequest, environ: Mapping[str, str]) -> Diagnosed:
    """Examine the machine and the environment that is meant.

    Raises UsageError if the environment that is named is none.
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
    of_locks = () if asked.prefix or asked.python else tuple(map(printable, _locks_here(host, matrix, environ)))
    of_environment = (*found.findings, *map(printable, activation.findings), *environment.findings)
    in_order = nearest_the_cause((*machine.findings, *of_environment, *of_locks))
    findings = tuple(map(_without_secrets, in_order))
    inventory = _inventory(machine, environment)
    notes = (*activation.notes, *differs_from_lock(found.inventory.prefix, runs=found.runs))
    looked = _looked(found, environ, activation.environ, inventory, host)
    parts = (("machine", machine.checks), ("environment", environment.checks))
    checks = (
        *((f"{part}: {name}", ids) for part, of_part in parts for name, ids in of_part),
        ("directory: the locks of uv, Poetry and PDM", tuple(it.id for it in of_locks)),
    )
    frameworks = _frameworks(found, environment)
    return Diagnosed(host, findings, inventory, frameworks, looked, environment.scene, notes, checks)


def _locks_here(host: Host, matrix: Matrix, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The findings about locks of other tools in this directory that do not run on this machine.

    These locks do not record what they need. ``envsolve status`` reports the same, and what is unknown.
    """
    from envsolve.app.status.status import Verdict, status_of

    files = [it for it in PROJECT_LOCKS if Path(it).is_file()]
    if not files or not host.gpus:
        return
    here = NamedHost(_HERE, host, _HERE)
    request = Request(frameworks=(), hosts=(_HERE,), named_hosts=(here,), platforms=(host.platform,))
    for it in status_of(files, request, matrix, environ):
        if it.verdict not in (Verdict.DOES_NOT_RUN, Verdict.CPU_ONLY):
            continue
        floor = None if it.needs is None or it.verdict is Verdict.CPU_ONLY else it.needs.driver_floor
        needs = floor if floor and host.driver and DriverVersion.parse(floor).parts > host.driver.parts else None
        reasons = tuple(reason.text for reason in it.reasons)
        yield make_finding(
            "lock-does-not-run-here",
            reasons,
            file=it.path,
            floor=needs,
            cpu_only=it.verdict is Verdict.CPU_ONLY,
            reasons="; ".join(reasons),
        )


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
    values = inventory["variables"]
    variables = dict.fromkeys(values, "the shell") if isinstance(values, dict) else {}
    set_again = {name: "activating the environment" for name in VARIABLES if active.get(name) != environ.get(name)}
    ordered = (variables | set_again).items()
    inspected = found.inventory
    return Looked(inspected.python, found.origin, found.runs, proof, plan, inspected.is_conda, tuple(ordered))


def _inventory(machine: MachineReport, environment: EnvironmentReport) -> dict[str, object]:
    """One inventory of both: libraries of the machine and of the environment stand in one list."""
    of_both = [*_rows(machine.inventory.get("libraries")), *_rows(environment.inventory.get("libraries"))]
    values = machine.inventory.get("variables")
    variables = {name: masked(str(value)) for name, value in values.items()} if isinstance(values, dict) else {}
    return {**environment.inventory, **machine.inventory, "libraries": of_both, "variables": variables}


def _without_secrets(finding: Finding) -> Finding:
    """The finding without what variables and files may hold of passwords and tokens: reports are passed on."""
    return finding.with_texts(masked)


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
