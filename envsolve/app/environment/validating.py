"""Validate this machine and an environment: collect the probes for both and run them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from envsolve.app.environment.imports import import_probes
from envsolve.app.environment.lock_of_environment import differs_from_lock, lock_command
from envsolve.app.status.results import Validation
from envsolve.create.claims import is_claimed
from envsolve.create.prefix import claimed
from envsolve.create.record import State, read_record, write_record
from envsolve.diagnose.environment.commands import bound
from envsolve.diagnose.environment.malformed_files import malformed_files
from envsolve.diagnose.environment.scene import Scene
from envsolve.errors import EnvsolveError, Hint, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORKS, AnyFramework, Framework, frameworks_among
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding
from envsolve.model.host import Gpu, GpuStatus, Host
from envsolve.model.names import normalized
from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.validation.activation import activated
from envsolve.validation.child import Children
from envsolve.validation.environment import interpreter, take_inventory
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import Packages
from envsolve.validation.own_libraries import is_for_gpus
from envsolve.validation.places import places_of
from envsolve.validation.report import ProbeReport, StaticReport, concluded
from envsolve.validation.validator import Device, Plan, validate

_ROOT = Path("/")
ENVIRONMENT = "environment"
"""The probe that reports errors of the environment's activation or files."""
_LOST_FILES = "package-files-missing"
PACKAGES = "packages"
"""The probe that reports packages outside of the frameworks without code for a GPU, or for another CUDA."""


class Progress(Protocol):
    """Shows the progress."""

    def show(self, text: str) -> None:
        """Show what is being done."""

    def clear(self) -> None:
        """Remove the text."""


class ValidateRequest(NamedTuple):
    """The request for a validation; None and () stand for what is detected.

    ``device`` is ``auto`` for the GPU if the machine or the environment involves one, ``here`` if both do. ``gpus`` are
    indices of GPUs that programs see; ``timeout`` and ``burn`` are in seconds.
    """

    progress: Progress
    prefix: str | None = None
    python: str | None = None
    frameworks: tuple[str, ...] = ()
    device: Literal["auto", "here", "cuda", "cpu"] = "auto"
    gpus: tuple[int, ...] | Literal["all"] | None = None
    burn: float = 0.0
    timeout: float | None = None
    matrix_directory: Path | None = None


def validation_of(request: ValidateRequest, environ: Mapping[str, str]) -> Validation:
    """Validate an environment. If envsolve created it, record whether the validation passed.

    A subset of the frameworks, or another device than `sync` would test, is not enough to record. Raises UsageError if
    the environment cannot be read or a named framework is not in it; OutsideError if its interpreter does not run.
    """
    from envsolve.host.detection import detect

    wanted = list({it.name: it for name in request.frameworks for it in _known(name)}.values())
    python = interpreter(request.prefix, request.python, environ)
    matrix = Matrix(request.matrix_directory)
    try:
        with Children() as children:
            request.progress.show(f"querying {python}")
            inventory = take_inventory(python, environ, children)
            frameworks, left_out = _present(wanted, inventory)
            # variables of other tools that describe the machine only count for solving
            host = detect(thorough=False, environ=environ, pci_table=matrix.gpu_of_pci_id)
            device = _device(request, host, inventory)
            request.progress.show(f"activating {inventory.prefix}")
            started = time.perf_counter()
            activation = activated(environ, inventory)
            scene = Scene(inventory, host, activation.environ, matrix)
            findings = (*activation.findings, *malformed_files(inventory, scene.packages, scene.conda))
            seconds = round(time.perf_counter() - started, 4)
            report = validate(_plan(request, scene, frameworks, device), children, request.progress.show)
            if not wanted:
                request.progress.show("importing what was requested")
                explain = partial(_explained, scene, None)
                imports = import_probes(inventory, activation.environ, children, explain, has_gpu=scene.has_gpu)
                report = report._replace(probes=(*report.probes, *imports))
            if device == "cuda":
                request.progress.show("packages")
                report = report._replace(probes=(*report.probes, *_of_packages(scene)))
            request.progress.show("comparing with the lock")
            differs = differs_from_lock(inventory.prefix)
    finally:
        request.progress.clear()
    notes = (*activation.notes, *differs, *left_out, *_notes(device, host, frameworks, inventory))
    if findings:
        report = report._replace(probes=(concluded(ENVIRONMENT, seconds, findings[0].title, findings), *report.probes))
    is_usual = device == _device(request._replace(device="here"), host, inventory)
    if is_usual and not (wanted and report.is_unbroken):
        _record(inventory.prefix, passed=report.is_unbroken)
    return Validation(report._replace(notes=notes), device, host)


def _record(prefix: Path, *, passed: bool) -> None:
    """Record whether the validation passed in an environment that this user's envsolve created.

    One that is in use or cannot be written stays unchanged.
    """
    with suppress(EnvsolveError):
        record = read_record(prefix)
        if record is None or not record.names(prefix) or not is_claimed(place := Path(record.prefix)):
            return
        with claimed(place):
            record = read_record(place)
            if record is not None and record.state is State.FINISHED and record.passed is not passed:
                write_record(place, record._replace(passed=passed))


def _of_packages(scene: Scene) -> Iterator[ProbeReport]:
    """The errors of builds of packages outside of the frameworks, which no probe runs, from their files."""
    from envsolve.diagnose.environment.checks.packages import packages_for_other_cuda, packages_without_code

    started = time.perf_counter()
    findings = tuple(bound(it, scene) for it in (*packages_without_code(scene), *packages_for_other_cuda(scene)))
    if findings:
        yield concluded(PACKAGES, round(time.perf_counter() - started, 4), findings[0].title, findings)


def _plan(request: ValidateRequest, scene: Scene, frameworks: Sequence[AnyFramework], device: Device) -> Plan:
    from envsolve.host.loader import cuda_candidates
    from envsolve.host.machine import Machine

    host = scene.host
    return Plan(
        inventory=scene.inventory,
        environ=scene.environ,
        device=device,
        frameworks=tuple(it for it in frameworks if isinstance(it, Framework) or (device == "cuda" and it.kernel)),
        gpus=request.gpus,
        burn=request.burn,
        timeout=request.timeout,
        driver_libraries=cuda_candidates(Machine(host.platform, scene.environ)),
        capabilities=host.capabilities,
        gpu_count=max(1, sum(gpu.count for gpu in host.gpus)) if scene.has_gpu else 0,
        places=places_of(_ROOT, windows=host.platform.is_windows),
        examine=partial(_examined, scene, device, frameworks),
        explain=partial(_explained, scene),
        nearer=_nearer(scene),
        reinstall=lock_command(scene.inventory.prefix),
    )


def _nearer(scene: Scene) -> Callable[[Finding], Finding]:
    """Replaces a finding by the one of ``envsolve doctor`` that explains it, about the machine or a package's files.

    The host was detected quickly; what explains a failure may need every source.
    """

    @cache
    def of_machine() -> tuple[Finding, ...]:
        from envsolve.diagnose.machine import Survey, examine_machine
        from envsolve.host.detection import detect
        from envsolve.host.machine import Machine
        from envsolve.host.probe import Source

        host, environ, matrix = scene.host, scene.environ, scene.matrix
        has_all = any(it.source == Source.LIBCUDA for it in host.readings)
        thorough = host if has_all else detect(environ=environ, pci_table=matrix.gpu_of_pci_id)
        return examine_machine(Survey(Machine(host.platform, environ), thorough, matrix)).findings

    @cache
    def of_files() -> tuple[Finding, ...]:
        from envsolve.diagnose.environment.checks.package_files import missing_files

        return tuple(bound(it, scene) for it in missing_files(scene))

    def nearer(finding: Finding) -> Finding:
        from envsolve.diagnose.machine.nearest import explains, nearer_than

        possible = nearer_than(finding.id)
        causes = of_files() if _LOST_FILES in possible else ()
        causes = (*causes, *(of_machine() if possible - {_LOST_FILES} else ()))
        cause = next((it for it in causes if explains(it, finding)), None)
        if cause is None:
            return finding
        evidence = tuple(dict.fromkeys((*cause.evidence, *finding.evidence)))
        return cause._replace(severity=finding.severity, evidence=evidence, about=cause.about or "machine")

    return nearer


def _examined(
    scene: Scene, device: Device, frameworks: Sequence[AnyFramework], capabilities: tuple[ComputeCapability, ...]
) -> StaticReport:
    """What the files of the frameworks show for GPUs with these capabilities; without any if there is no GPU."""
    host, inventory = scene.host, scene.inventory
    known = {gpu.compute_capability: gpu for gpu in host.gpus}
    here = host._replace(
        gpus=tuple(known.get(it) or Gpu(None, it) for it in capabilities),
        status=host.status if device == "cuda" else GpuStatus.NO_HARDWARE,
    )
    names = [it.name for it in frameworks if isinstance(it, Framework)]
    for_gpu = device == "cuda" or is_for_gpus(inventory)
    examined = Scene(inventory, here, scene.environ, scene.matrix, frameworks=names, for_gpu=for_gpu).static
    return examined._replace(findings=tuple(bound(it, scene) for it in examined.findings))


def _explained(scene: Scene, framework: AnyFramework | None, text: str) -> tuple[Finding, ...]:
    """The findings for a text that ``framework``, or any package if None, printed in this environment.

    A dependent framework may also print texts of any other package.
    """
    from envsolve.app.explain.explaining import findings_in
    from envsolve.diagnose.case import Given

    host, inventory = scene.host, scene.inventory
    own = isinstance(framework, Framework)
    others = [other for other in FRAMEWORKS.values() if own and other is not framework]
    given = Given(
        host=host,
        capabilities=host.capabilities,
        driver=host.driver,
        platform=host.platform,
        python=inventory.python,
        packages={
            it.name: it.version
            for it in inventory.distributions
            if not any(of.is_installed_as(it.name) for of in others)
        },
        prefix=str(inventory.prefix),
    )
    return findings_in(text, given, scene.matrix)


def _device(request: ValidateRequest, host: Host, inventory: Inventory) -> Device:
    """Where operations run; see :class:`ValidateRequest`. Naming GPUs implies the GPU."""
    if request.device in ("cpu", "cuda"):
        return request.device
    if request.device == "here":
        return "cuda" if host.status is not GpuStatus.NO_HARDWARE and is_for_gpus(inventory) else "cpu"
    if request.gpus is not None:
        return "cuda"
    return "cpu" if host.status is GpuStatus.NO_HARDWARE and not is_for_gpus(inventory) else "cuda"


def _known(name: str) -> tuple[AnyFramework, ...]:
    """The framework of this name; a dependent one comes after its base."""
    dependent = DEPENDENT_FRAMEWORKS.get(name.casefold())
    if dependent is not None:
        return FRAMEWORKS[dependent.on], dependent
    found = FRAMEWORKS.get(name.casefold()) or next(iter(frameworks_among([name])), None)
    if found is None:
        import difflib

        known = (*FRAMEWORKS, *DEPENDENT_FRAMEWORKS)
        alone = re.split(r"[^\w-]", name.strip(), maxsplit=1)[0].casefold()
        close = [alone] if alone in known else difflib.get_close_matches(alone, known, n=1)
        raise UsageError(
            "unknown-framework",
            f"{name!r} is not the name of a framework that can be validated",
            (f"known, without versions: {', '.join(known)}",),
            (
                *(Hint(f"did you mean {it}?", f"envsolve validate -f {it}") for it in close),
                Hint("omit -f to validate every installed framework", "envsolve validate"),
            ),
        )
    return (found,)


def _present(wanted: Sequence[AnyFramework], inventory: Inventory) -> tuple[tuple[AnyFramework, ...], tuple[Note, ...]]:
    """The installed frameworks, or the ``wanted`` ones, and notes on those that are left out.

    A build for CPUs that only came as a dependency, by its own name, is not tested unless it is wanted. Raises
    UsageError if a wanted one is missing.
    """
    names = {normalized(it.name) for it in inventory.distributions}
    dependent = tuple(it for it in DEPENDENT_FRAMEWORKS.values() if it.name in names)
    installed: tuple[AnyFramework, ...] = (*frameworks_among(names), *dependent)
    missing = [framework.title for framework in wanted if framework not in installed]
    if missing:
        raise UsageError(
            "framework-not-installed",
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed in {inventory.prefix}",
            (f"installed: {', '.join(it.name for it in installed) or 'no framework that envsolve knows'}",),
            (Hint("choose the environment that has it", "envsolve validate --python PREFIX/bin/python"),),
        )
    if wanted:
        return tuple(wanted), ()
    packages = Packages(inventory.search_path)
    of_frameworks = {it.name: packages.cpu_dependency(it) for it in installed if isinstance(it, Framework)}
    for_cpus = {name: dependency for name, dependency in of_frameworks.items() if dependency is not None}
    if len(for_cpus) == len(installed):
        return installed, ()
    notes = (
        Note(
            "cpu-dependency",
            f"{package} is a CPU build that {sentence_list(requirers)} requires: it was not tested; "
            f"`envsolve validate -f {name}` tests it",
        )
        for name, (package, requirers) in for_cpus.items()
    )
    return tuple(it for it in installed if it.name not in for_cpus), tuple(notes)


def _notes(device: Device, host: Host, frameworks: Sequence[AnyFramework], inventory: Inventory) -> tuple[Note, ...]:
    gpu_here, for_gpus = host.status is not GpuStatus.NO_HARDWARE, is_for_gpus(inventory)
    notes = []
    if not frameworks:
        text = f"{inventory.prefix} has no framework that envsolve knows: no operation was run"
        notes.append(Note("no-framework", text))
    if device == "cuda" and not gpu_here:
        whose = "the environment needs one" if for_gpus else "one was requested"
        text = f"this machine has no NVIDIA GPU, but {whose}: use --device cpu to test on the CPU"
        notes.append(Note("no-gpu", text))
    if device == "cpu" and gpu_here:
        text = "this machine has an NVIDIA GPU, which was not tested: use --device cuda"
        notes.append(Note("gpu-not-proven", text))
    if device == "cpu" and for_gpus and not gpu_here:
        text = "the environment is for NVIDIA GPUs: run `envsolve validate` on a machine with one to test it"
        notes.append(Note("gpu-not-proven", text))
    return tuple(notes)
