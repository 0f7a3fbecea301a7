"""The order of a validation: which probes run, on which GPUs, and which wait for others.

1. The driver's kernel, then the static checks for the GPUs that it ran on; the environment's libraries meanwhile.
2. The frameworks, several at once if there is enough memory. If the driver's own kernel shows that no GPU can be used,
they would only report the same, and are skipped.
3. The libraries that they had loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal, NamedTuple

from envsolve.boundary.answers import not_usable
from envsolve.frameworks import AnyFramework
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity, worst_first
from envsolve.validation.child import Children, Outcome
from envsolve.validation.concurrency import at_once
from envsolve.validation.driver_verdict import Device as Gpu
from envsolve.validation.driver_verdict import detail_of, finding_of, report_of
from envsolve.validation.framework_verdict import Explain, verdict
from envsolve.validation.inventory import Inventory
from envsolve.validation.loaded_audit import audit, loaded_libraries
from envsolve.validation.own_libraries import probe_libraries
from envsolve.validation.places import Place
from envsolve.validation.report import Library, Owner, ProbeReport, Report, StaticReport, Status, concluded

Device = Literal["cuda", "cpu"]
DRIVER = "driver"
TIMEOUT = 120.0
"""Time limit in seconds for import, device and operations of a framework, on a slow disk and machine."""
TIMEOUT_WITH_JIT = 600.0
"""Time limit in seconds if a build has only PTX for the GPU: the driver compiles everything at the first load."""
DRIVER_TIMEOUT = 30.0
"""Time limit in seconds for the driver and its kernel: without persistence mode it first initializes every GPU."""
DRIVER_TIMEOUT_PER_GPU = 5.0
"""Seconds for each further GPU that the kernel runs on."""
_COMPILED_FIRST = "ptx-only"
"""The finding of the static checks that a framework's kernels are compiled at the first use."""
_ONLY_FOR_GPUS = ("library-missing", "cudnn-parts-differ")
"""Errors of the static checks that do not matter on the CPU."""
_DECIDED_BY_FRAMEWORKS = ("cudnn-parts-differ",)
"""Errors of the static checks that only predict what the frameworks' own operations show."""
_LOADING = ("cuModuleLoadDataEx", "cuModuleGetFunction")
"""Calls that fail if the driver's compiler fails; code that needs no compiling may still run."""


class Plan(NamedTuple):
    """What to test.

    ``environ`` are the variables of the environment's programs. ``frameworks`` are installed; dependent ones have a
    kernel, and are left out on the CPU. ``gpus`` are indices among the GPUs that programs see, None for the first.
    ``timeout`` (of a framework; None for the default) and ``burn`` are in seconds. ``driver_libraries`` are the names
    to load libcuda by, ``capabilities`` those of this machine's GPUs and ``gpu_count`` how many it has, working or not.
    ``examine`` makes the static checks for GPUs of some capabilities, ``explain`` reads the output of a framework, and
    ``nearer`` replaces a finding by what on the machine causes it, if that is known.
    ``reinstall`` is the command that installs the environment's lock again, if it is known.
    """

    inventory: Inventory
    environ: Mapping[str, str]
    device: Device
    frameworks: tuple[AnyFramework, ...]
    gpus: tuple[int, ...] | Literal["all"] | None
    burn: float
    timeout: float | None
    driver_libraries: tuple[str, ...]
    capabilities: tuple[ComputeCapability, ...]
    gpu_count: int
    places: Collection[Place]
    examine: Callable[[tuple[ComputeCapability, ...]], StaticReport]
    explain: Explain
    nearer: Callable[[Finding], Finding]
    reinstall: str | None = None


class _Run(NamedTuple):
    """One framework on one GPU (None for the CPU, or for the first GPU if none is named), and its report."""

    framework: AnyFramework
    gpu: int | None
    outcome: Outcome


class _Driver(NamedTuple):
    """The result of the driver's probe: the GPUs that frameworks can use, and those that were chosen."""

    report: ProbeReport
    reached: tuple[Gpu, ...] = ()
    chosen: tuple[Gpu, ...] = ()


def validate(plan: Plan, children: Children, show: Callable[[str], None]) -> Report:
    """Run the probes, in the order at the top of this module. ``show`` gets the progress as text."""
    show("driver, libraries and files")
    with waiting_threads(1, children) as threads:
        loading = threads.submit(probe_libraries, plan.inventory, plan.environ, children)
        driver = _driver(plan, children)
        started = time.perf_counter()
        static = _examined(plan, driver)
        files = _files(static, round(time.perf_counter() - started, 4), plan)
        with _believed(plan, "libraries"):
            libraries, own = loading.result()
    libraries = libraries._replace(findings=worst_first(map(plan.nearer, libraries.findings)))
    show(", ".join(framework.title for framework in plan.frameworks))
    runs = _runs(plan, children, driver.reached, patient=any(it.id == _COMPILED_FIRST for it in static.findings))
    frameworks = [*(_judged(run, plan) for run in runs), *_not_tried(plan, driver)]
    loaded, found = _loaded(plan, runs, own)
    return Report(
        plan.inventory.executable,
        (driver.report, libraries, files, *frameworks, loaded),
        found or own,
        tuple(probe.name for probe in frameworks) or (DRIVER,),
    )


@contextmanager
def waiting_threads(count: int, children: Children) -> Iterator[ThreadPoolExecutor]:
    """Threads that wait for probes.

    An interrupt of this thread ends the probes, so that no thread continues to wait.
    """
    with ThreadPoolExecutor(count) as threads:
        try:
            yield threads
        except BaseException:
            children.end()
            raise


@contextmanager
def _believed(plan: Plan, probe: str) -> Iterator[None]:
    """Read the answer of a probe. Raises OutsideError if it is invalid: the environment's code can write to it, too."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = f"gave an answer to the probe {probe} that makes no sense"
        raise not_usable(plan.inventory.executable, why, (f"{type(error).__name__}: {error}",)) from error


def visible(environ: Mapping[str, str], index: int) -> dict[str, str]:
    """``environ`` with a single visible GPU: of those in CUDA_VISIBLE_DEVICES, or else of all."""
    listed = environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return {**numbered(environ), "CUDA_VISIBLE_DEVICES": str(index)}
    entries = [entry.strip() for entry in listed.split(",")]
    return {**environ, "CUDA_VISIBLE_DEVICES": entries[index] if index < len(entries) else "-1"}


def numbered(environ: Mapping[str, str]) -> Mapping[str, str]:
    """``environ`` with GPUs numbered by their place on the bus, like in nvidia-smi.

    CUDA's default is to begin with the fastest (CUDA_DEVICE_ORDER in the CUDA programming guide). CUDA_VISIBLE_DEVICES
    was written for that order, so with it nothing changes.
    """
    return environ if "CUDA_VISIBLE_DEVICES" in environ else {**environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def _driver(plan: Plan, children: Children) -> _Driver:
    """Run the driver's kernel."""
    if plan.device == "cpu":
        return _Driver(ProbeReport(DRIVER, Status.SKIP, 0.0, "operations run on the CPU"))
    job = {
        "libraries": list(plan.driver_libraries),
        "gpus": list(plan.gpus) if isinstance(plan.gpus, tuple) else plan.gpus,
        "burn": plan.burn,
    }
    environ = plan.environ if plan.gpus is None else numbered(plan.environ)
    count = len(plan.gpus) if isinstance(plan.gpus, tuple) else 1 if plan.gpus is None else plan.gpu_count
    timeout = DRIVER_TIMEOUT + count * (DRIVER_TIMEOUT_PER_GPU + plan.burn)
    outcome = children.run(plan.inventory.executable, "driver", job, environ, timeout)
    with _believed(plan, DRIVER):
        finding = finding_of(outcome, plan.places)
        chosen = tuple(it for it in report_of(outcome).devices if it.kernel is not None)
        reached = tuple(it for it in chosen if _can_be_tried(it))
        detail = detail_of(outcome) if finding is None else ""
    measured = dict(outcome.result or {})
    if finding is None:
        report = ProbeReport(DRIVER, Status.PASS, outcome.seconds, detail, (), measured)
    else:
        found = plan.nearer(finding) if plan.gpu_count else _without_hardware(finding)
        report = ProbeReport(DRIVER, Status.FAIL, outcome.seconds, found.title, (found,), measured)
    return _Driver(report, reached, chosen)


def _without_hardware(finding: Finding) -> Finding:
    """The driver probe's finding on a machine without any sign of an NVIDIA GPU: most likely the wrong machine."""
    return finding._replace(
        title=f"no NVIDIA GPU is here: {finding.title[0].lower()}{finding.title[1:]}",
        fix="Validate on the machine that has the GPU, or prove the environment on the CPU with --device cpu. "
        f"Where this one has a GPU: {finding.fix[0].lower()}{finding.fix[1:]}",
    )


def _examined(plan: Plan, driver: _Driver) -> StaticReport:
    """The static checks, for the tested GPUs, or for those of the machine if the driver does not report them."""
    chosen = tuple(ComputeCapability.parse(it.capability) for it in driver.chosen if it.capability is not None)
    return plan.examine((tuple(dict.fromkeys(chosen)) or plan.capabilities) if plan.device == "cuda" else ())


def _can_be_tried(gpu: Gpu) -> bool:
    """Whether a framework may run although the driver's kernel did not: it may have code that needs no compiling."""
    assert gpu.kernel is not None
    return gpu.kernel.ok or (gpu.kernel.failure is not None and gpu.kernel.failure.call in _LOADING)


def _runs(plan: Plan, children: Children, gpus: Sequence[Gpu], *, patient: bool) -> list[_Run]:
    """Every framework on every GPU: several at once on one GPU, one GPU after the other."""
    timeout = plan.timeout or (TIMEOUT_WITH_JIT if patient else TIMEOUT)

    def run(framework: AnyFramework, gpu: Gpu | None) -> _Run:
        job = {"device": plan.device, "index": 0, "burn": plan.burn}
        chosen = gpu.number if gpu is not None and plan.gpus is not None else None
        environ = plan.environ if chosen is None else visible(plan.environ, chosen)
        python = plan.inventory.executable
        return _Run(framework, chosen, children.run(python, framework.probe, job, environ, timeout + plan.burn))

    found = []
    for gpu in [None] if plan.device == "cpu" else gpus:
        count = at_once(len(plan.frameworks), gpu.memory if gpu is not None else None)
        with waiting_threads(count, children) as threads:
            found += list(threads.map(run, plan.frameworks, [gpu] * len(plan.frameworks)))
    return found


def _judged(run: _Run, plan: Plan) -> ProbeReport:
    present = bool(plan.capabilities)
    with _believed(plan, run.framework.name):
        report = verdict(
            run.framework,
            plan.device,
            run.outcome,
            plan.explain,
            plan.nearer,
            gpu_present=present,
            places=plan.places,
            reinstall=plan.reinstall,
        )
    return report if run.gpu is None else report._replace(name=f"{report.name} on GPU {run.gpu}")


def _not_tried(plan: Plan, driver: _Driver) -> Iterator[ProbeReport]:
    """The probes that are skipped because there is no GPU that the driver's own kernel runs on."""
    if plan.device == "cpu":
        return
    why = f"not tried: {driver.report.findings[0].id}" if driver.report.findings else "not tried: no GPU"
    left_out = [gpu for gpu in driver.chosen if gpu not in driver.reached]
    for framework in plan.frameworks:
        if plan.gpus is not None and driver.chosen:
            for gpu in left_out:
                yield ProbeReport(f"{framework.name} on GPU {gpu.number}", Status.SKIP, 0.0, why)
        elif not driver.reached:
            yield ProbeReport(framework.name, Status.SKIP, 0.0, why)


def _files(static: StaticReport, seconds: float, plan: Plan) -> ProbeReport:
    """The static checks as a probe like the others, without errors that another probe or the device decides."""
    libraries = [library for library in static.libraries if library.owner is not Owner.DRIVER]
    lesser = _DECIDED_BY_FRAMEWORKS if plan.device == "cuda" else _ONLY_FOR_GPUS
    findings = tuple(
        it._replace(severity=Severity.WARNING) if it.id in lesser and it.severity is Severity.ERROR else it
        for it in static.findings
    )
    if not libraries and not findings:
        return ProbeReport("files", Status.SKIP, seconds, "no CUDA library that a framework here would load")
    detail = f"{_counted(len(libraries))} that the frameworks would load"
    if static.shadowed:
        names = {it.soname for it in static.shadowed}
        detail += f"; of {len(names)} there are copies elsewhere"
    measured = {"shadowed": [it._asdict() for it in static.shadowed]} if static.shadowed else {}
    return concluded("files", seconds, detail, findings)._replace(measured=measured)


def _loaded(plan: Plan, runs: Sequence[_Run], own: Sequence[Library]) -> tuple[ProbeReport, tuple[Library, ...]]:
    """The libraries that the frameworks loaded, each in a process of its own."""
    with _believed(plan, "loaded"):
        by_run = [loaded_libraries(run.outcome.noted("loaded") or (), plan.inventory) for run in runs]
    libraries = tuple(dict.fromkeys(library for found in by_run for library in found))
    if not libraries:
        return ProbeReport("loaded", Status.SKIP, 0.0, "no framework loaded a CUDA library"), ()
    findings = audit(by_run, own, plan.environ.get("LD_PRELOAD", ""))
    owners = [library.owner for library in libraries]
    counts = ", ".join(f"{owners.count(owner)} of the {owner.value}" for owner in Owner if owner in owners)
    return concluded("loaded", 0.0, f"{_counted(len(libraries))}: {counts}", findings), libraries


def _counted(count: int) -> str:
    return "1 CUDA library" if count == 1 else f"{count} CUDA libraries"
