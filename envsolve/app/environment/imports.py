"""Whether requested packages can be imported: every module of every requirement, each in its own process.

Frameworks are left out, as they have their own probes. If a module fails on a machine without a GPU because it needs
one, nothing is known about it.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from envsolve.app.environment.lock_of_environment import sync_command
from envsolve.boundary.files import FileError
from envsolve.boundary.reading import is_file
from envsolve.create.record import LOCKS, read_record
from envsolve.diagnose.environment.altered import digest_of
from envsolve.errors import UsageError
from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import frameworks_among
from envsolve.host.machine import this_platform
from envsolve.lockfile.reading import lock_in
from envsolve.model.finding import Finding, Severity
from envsolve.model.names import normalized
from envsolve.model.need import parse_need
from envsolve.validation.child import Children, Outcome
from envsolve.validation.concurrency import at_once
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import Package, Packages, Row
from envsolve.validation.report import IMPORT, IMPORTS, ProbeReport, Status
from envsolve.validation.validator import waiting_threads

EDITED = "module-edited"
"""The finding about a package with an edited file that fails."""
TIMEOUT = 120.0
"""The timeout in seconds for one module, sufficient for slow disks and machines."""
_BESIDE = frozenset(
    {"tests", "test", "testing", "docs", "doc", "examples", "example", "benchmarks", "scripts", "tools"}
)
"""Folders that some wheels include next to their modules by mistake."""
_SOURCE = (".py", ".so", ".pyd")
_TOOLS = ("pip", "setuptools", "wheel")
_WANTS_A_GPU = re.compile(
    r"libcuda\.so|nvcuda\.dll|libnvidia-ml\.so|no CUDA-capable device|Found no NVIDIA driver|No CUDA GPUs are available"
    r"|CUDA driver version is insufficient|no NVIDIA GPU|cuInit|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice"
    r"|cudaErrorInsufficientDriver|GPU is required|requires? (?:a|an) (?:CUDA|NVIDIA)? ?GPU|CUDA is not available",
    re.IGNORECASE,
)
"""Error texts of packages that look for a GPU when imported."""
_LONGEST_LINE = 400


class _Import(NamedTuple):
    """A module of a package, and the outcome of its import."""

    package: str
    module: str
    outcome: Outcome


def import_probes(
    inventory: Inventory,
    environ: Mapping[str, str],
    children: Children,
    explain: Callable[[str], Iterable[Finding]],
    *,
    has_gpu: bool,
) -> Iterator[ProbeReport]:
    """One probe with all modules that can be imported, and one for each package that fails or was not tried.

    ``explain`` returns the findings for an error text.
    """
    packages = Packages(inventory.search_path)
    named = _named(inventory, packages)
    modules = [(it.name, module) for it in named for module in modules_of(it.name, packages.record(it))]
    if not modules:
        return

    def run(module: tuple[str, str]) -> _Import:
        job = {"module": module[1]}
        return _Import(*module, children.run(inventory.executable, "importing", job, environ, TIMEOUT))

    started = time.perf_counter()
    with waiting_threads(at_once(len(modules), None), children) as threads:
        done = list(threads.map(run, modules))
    seconds = round(time.perf_counter() - started, 4)
    right = [it for it in done if it.outcome.result is not None]
    if right:
        names = ", ".join(dict.fromkeys(it.module for it in right))
        yield ProbeReport(IMPORTS, Status.PASS, seconds, names)
    for it in done:
        if it.outcome.result is None:
            yield _failed(it, explain, partial(_edited, packages, inventory.prefix), has_gpu=has_gpu)


def modules_of(package: str, record: Iterable[Row] | None) -> tuple[str, ...]:
    """The importable names of a package's modules: ``sklearn``, or ``google.cloud.storage``.

    A module named like the package represents all others. Modules in a namespace count only if there are no others.
    Other modules are often included by mistake, such as ``tests``. Private modules and stubs are left out.
    """
    paths = [PurePosixPath(row.path) for row in record or () if row.path.endswith(_SOURCE)]
    folders = {it.parent for it in paths if it.name == "__init__.py"}
    outermost = {it for it in folders if not any(above in folders for above in it.parents)}
    found = {it.parts for it in outermost}
    found |= {(it.name.partition(".")[0],) for it in paths if len(it.parts) == 1}
    meant = [it for it in found if it and _is_meant(it)]
    names = sorted(".".join(it) for it in meant if len(it) == min(map(len, meant)))
    return tuple([it for it in names if normalized(it) == package] or names)


def _is_meant(parts: tuple[str, ...]) -> bool:
    is_private = any(it.startswith("_") or it.endswith("__mypyc") or not it.isidentifier() for it in parts)
    return parts[0] not in _BESIDE and not is_private


def _named(inventory: Inventory, packages: Packages) -> list[Package]:
    """The installed packages that the user requested: those in the request of the environment's lock.

    Without a lock, those that an installer marked as requested, unless another package requires them.
    """
    requested = _requested(inventory.prefix)
    if requested is None:
        required = {need.name for it in packages.by_name.values() for need in it.needs}
        marked = (it for it in packages.by_name.values() if is_file(it.folder / "REQUESTED"))
        requested = {it.name for it in marked} - required - {*_TOOLS}
    found = [packages.by_name[name] for name in sorted(requested) if name in packages.by_name]
    return [it for it in found if not frameworks_among([it.name])]


def _requested(prefix: Path) -> set[str] | None:
    """The requirements in the lock of an environment that envsolve created; None for other environments."""
    try:
        record = read_record(prefix)
        if record is None:
            return None
        path = prefix / LOCKS / record.lock_name
        lock = lock_in(path, path.read_text("utf-8"), this_platform())
    except (UsageError, FileError, OSError):
        return None
    if lock is None or lock.made is None or lock.made.request is None:
        return None
    return {name for line in lock.made.request if (name := _name(line))}


def _name(requirement: str) -> str:
    """The package that a line requires; "" if it names none."""
    try:
        return normalized(parse_need(requirement).name)
    except ValueError:
        return ""


def _failed(
    it: _Import,
    explain: Callable[[str], Iterable[Finding]],
    edited: Callable[[_Import, str], Iterable[Finding]],
    *,
    has_gpu: bool,
) -> ProbeReport:
    name, seconds = f"{IMPORT}{it.module}", it.outcome.seconds
    raised = it.outcome.error
    text = f"{raised['type']}: {raised['text']}" if raised else ""
    causes = [str(cause) for cause in it.outcome.noted("causes") or ()]
    output = "\n".join((it.outcome.tail, text, *causes)).strip()
    line = ([text, *causes][-1] or output or "it ended without a word").splitlines()[0][:_LONGEST_LINE]
    if not has_gpu and _WANTS_A_GPU.search(output):
        return ProbeReport(name, Status.SKIP, seconds, f"not tried: it needs a GPU ({line})")
    if it.outcome.ending.timeout is not None:
        line = f"it took more than {it.outcome.ending.timeout:g} s"
    elif it.outcome.ending.crash:
        line = it.outcome.ending.crash
    found = next((finding for finding in explain(output) if finding.severity is Severity.ERROR), None)
    findings = (found,) if found else tuple(edited(it, line))
    other = make_finding("module-not-imported", (line,), about=it.package, package=it.package, module=it.module)
    return ProbeReport(name, Status.FAIL, seconds, line, findings or (other,))


def _edited(packages: Packages, prefix: Path, it: _Import, line: str) -> Iterator[Finding]:
    """A finding for each package that had another version of a file in which the import failed."""
    files = {Path(str(file)) for file in it.outcome.noted("files") or ()}
    for package in packages.by_name.values():
        for row in () if package.is_of_conda else packages.record(package) or ():
            file = package.location / row.path
            if file in files and row.sha256 is not None and digest_of(file) != row.sha256:
                pip = ["pip", "install", "--force-reinstall", "--no-deps", "--no-cache-dir"]
                yield make_finding(
                    EDITED,
                    (line,),
                    about=package.name,
                    module=it.module,
                    package=package.name,
                    path=row.path,
                    install=sync_command(prefix) or shlex.join([*pip, f"{package.name}=={package.version}"]),
                )
                break
