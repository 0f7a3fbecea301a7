"""The doctor: examines this machine and an environment, and reports what breaks GPU stacks and how to fix it.

Nothing is written and no framework is imported. Each part has a timeout, so that a hanging driver does not make the
doctor hang.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.app.environment.lock_of_environment import differs_from_lock
from envsolve.app.environment.validating import Progress
from envsolve.app.status.results import Diagnosis
from envsolve.boundary.secrets import masked
from envsolve.diagnose.environment.commands import shell_of
from envsolve.diagnose.environment.examination import examine_environment
from envsolve.diagnose.environment.found import FoundEnvironment, find_environment
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.machine import Limits, Survey, examine_machine, nearest_the_cause
from envsolve.diagnose.machine.examination import VARIABLES
from envsolve.diagnose.report import Report, printable
from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import frameworks_among
from envsolve.host.machine import TIMEOUT_VARIABLE, Machine, this_platform
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding
from envsolve.model.host import Host
from envsolve.model.lock_format import PROJECT_LOCKS
from envsolve.model.note import Note
from envsolve.model.request import NamedHost, Request
from envsolve.model.versions import DriverVersion
from envsolve.validation.activation import activated
from envsolve.validation.child import Children

PROBE_SECONDS = 2.0
"""The timeout in seconds of each slow source of detection after the GPUs are started, as ENVSOLVE_PROBE_TIMEOUT."""
INVENTORY_SECONDS = 4.0
"""The timeout in seconds for the environment's Python to list its packages; after that its files are read instead."""
WALK_SECONDS = 2.0
"""The time limit in seconds for searching directories of the machine."""


_HERE = "this machine"


class DoctorRequest(NamedTuple):
    """What to examine; None stands for the active environment."""

    progress: Progress
    prefix: str | None = None
    python: str | None = None
    matrix_directory: Path | None = None


class Looked(NamedTuple):
    """The examined environment: its Python, the command that validates it, and the sources of facts about it.

    ``proof`` is None if its Python does not run, so that nothing can be validated. ``plan`` is the command that plans a
    fixed environment; ``is_conda`` says whether it has conda packages. ``variables`` are the relevant ones, each with
    its source.
    """

    python: str
    origin: str
    runs: bool
    proof: str | None
    plan: str
    is_conda: bool
    variables: tuple[tuple[str, str], ...]


class Diagnosed(NamedTuple):
    """The findings, the worst first, and what was examined."""

    host: Host
    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    frameworks: tuple[tuple[str, str], ...]
    """The frameworks of the environment, by envsolve's names, with their versions."""
    environment: Looked
    scene: Scene
    notes: tuple[Note, ...] = ()
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The checks in words, each with the ids of its findings."""

    def by_check(self) -> list[tuple[str, tuple[Finding, ...]]]:
        """The checks with their findings, each finding once. The last entry has findings that belong to no check."""
        left = list(self.findings)
        found = []
        for name, ids in self.checks:
            found.append((name, tuple(it for it in left if it.id in ids)))
            left = [it for it in left if it.id not in ids]
        return [*found, ("other observations", tuple(left))]

    @property
    def result(self) -> Diagnosis:
        """The findings without details on how they were found."""
        return Diagnosis(self.host, self.findings, self.inventory, self.frameworks, self.notes)

    @property
    def ok(self) -> bool:
        """Whether nothing is broken; warnings and hints are not errors."""
        return self.result.ok


def diagnose(request: DoctorRequest, environ: Mapping[str, str]) -> Diagnosed:
    """Examine the machine and an environment.

    Raises UsageError if the given environment does not exist.
    """
    from envsolve.host.detection import detect

    matrix = Matrix(request.matrix_directory)
    try:
        request.progress.show("the machine")
        here = Machine(this_platform(), environ)
        patience = {TIMEOUT_VARIABLE: str(PROBE_SECONDS + here.seconds_to_start), **environ}
        host = detect(thorough=True, environ=patience, pci_table=matrix.gpu_of_pci_id)
        machine = examine_machine(Survey(here, host, matrix, limits=Limits(seconds=WALK_SECONDS)))
        request.progress.show("querying the environment's Python")
        with Children() as children:
            found = find_environment(request.prefix, request.python, environ, children, timeout=INVENTORY_SECONDS)
        request.progress.show(f"activating {found.inventory.prefix}")
        activation = activated(environ, found.inventory)
        request.progress.show("the environment")
        scene = Scene(found.inventory, host, activation.environ, matrix, shell=environ)
        environment = examine_environment(scene)
    finally:
        request.progress.clear()
    of_locks = () if request.prefix or request.python else tuple(map(printable, _locks_here(host, matrix, environ)))
    of_environment = (*found.findings, *map(printable, activation.findings), *environment.findings)
    in_order = nearest_the_cause((*machine.findings, *of_environment, *of_locks))
    findings = tuple(it.with_texts(masked) for it in in_order)  # users share reports
    inventory = _inventory(machine, environment)
    notes = (*activation.notes, *differs_from_lock(found.inventory.prefix, runs=found.runs))
    looked = _looked(found, environ, activation.environ, inventory, host)
    parts = (("machine", machine.checks), ("environment", environment.checks))
    checks = (
        *((f"{part}: {name}", ids) for part, of_part in parts for name, ids in of_part),
        ("directory: the locks of uv, Poetry and PDM", tuple(it.id for it in of_locks)),
    )
    frameworks = _frameworks(found, environment)
    return Diagnosed(host, findings, inventory, frameworks, looked, scene, notes, checks)


def _locks_here(host: Host, matrix: Matrix, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about locks of other tools in this directory that do not run on this machine.

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


def _looked(
    found: FoundEnvironment,
    environ: Mapping[str, str],
    active: Mapping[str, str],
    inventory: Mapping[str, object],
    host: Host,
) -> Looked:
    shell = shell_of(environ, windows=host.platform.is_windows)
    place = found.inventory.option
    proof = shell.joined(["envsolve", "validate", *place]) if found.runs else None
    plan = shell.joined(["envsolve", "doctor", *place, "--fix-plan"])
    values = inventory["variables"]
    variables = dict.fromkeys(values, "the shell") if isinstance(values, dict) else {}
    set_again = {name: "activating the environment" for name in VARIABLES if active.get(name) != environ.get(name)}
    ordered = (variables | set_again).items()
    inspected = found.inventory
    return Looked(inspected.python, found.origin, found.runs, proof, plan, inspected.is_conda, tuple(ordered))


def _inventory(machine: Report, environment: Report) -> dict[str, object]:
    """One inventory of both, with the libraries of the machine and of the environment in one list."""
    of_both = [*_rows(machine.inventory.get("libraries")), *_rows(environment.inventory.get("libraries"))]
    values = machine.inventory.get("variables")
    variables = {name: masked(str(value)) for name, value in values.items()} if isinstance(values, dict) else {}
    return {**environment.inventory, **machine.inventory, "libraries": of_both, "variables": variables}


def _rows(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else []


def _frameworks(found: FoundEnvironment, report: Report) -> tuple[tuple[str, str], ...]:
    """Frameworks with Python metadata, and those found only by their files, as some conda packages."""
    installed: dict[str, str] = {}
    for it in found.inventory.distributions:
        for known in frameworks_among([it.name]):
            installed.setdefault(known.name, it.version)
    for row in _rows(report.inventory.get("frameworks")):
        if isinstance(row, dict) and row.get("version"):
            installed.setdefault(str(row["framework"]), str(row["version"]))
    return tuple(installed.items())
