"""Capture a lock of the packages that are installed in a working environment.

The environment is examined first, as the lock would reproduce its errors. Nothing is solved and nothing is guessed;
packages that no lock can contain are reported.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve import __version__
from envsolve.app.environment.exact_files import ExactFiles, IndexOptions, exact_files
from envsolve.app.environment.exporting import Exported
from envsolve.app.environment.installed_conda import InstalledConda, Missing, installed_conda
from envsolve.app.environment.installed_wheels import TOOLS, InstalledWheels, captured, named, wheels_of
from envsolve.app.environment.validating import Progress
from envsolve.app.packages.stack_wheels import notes_of
from envsolve.app.request.targets import target_of
from envsolve.app.request.virtual_packages import virtual_packages
from envsolve.boundary.secrets import without_secrets
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.diagnose.environment.examination import examine_environment
from envsolve.diagnose.environment.found import find_environment
from envsolve.diagnose.environment.scene import Scene
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.host.detection import detect
from envsolve.host.machine import this_glibc
from envsolve.index.fitting import Interpreter
from envsolve.lockfile import constraints_txt
from envsolve.lockfile.conda_locks import channels_of
from envsolve.lockfile.formats import write_conda_lock, write_python_lock
from envsolve.lockfile.lock import Lock, Made, RequestedSpec, conda_lock, wheels_lock
from envsolve.matrix import Matrix
from envsolve.model.conda import VirtualPackage
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Host, Platform
from envsolve.model.lock_format import CONDA_FORMATS, VENV_FORMATS
from envsolve.model.need import Markers
from envsolve.model.note import Note
from envsolve.model.request import Request
from envsolve.resolve.closure.releases import Unfit
from envsolve.validation.activation import activated
from envsolve.validation.child import Children
from envsolve.validation.metadata import Package, Packages

if TYPE_CHECKING:
    from envsolve.diagnose.environment.found import FoundEnvironment
    from envsolve.validation.inventory import Inventory

_NUMBERS = re.compile(r"\d+")
_FEW = 20


class CaptureRequest(NamedTuple):
    """The environment to capture, None for the active one, and how.

    ``format_name`` is None for the default of the kind of environment. ``allow_missing`` leaves out packages that no
    lock can contain; ``force`` captures an environment with errors. ``validate`` runs kernels in it first.
    """

    progress: Progress
    prefix: str | None = None
    python: str | None = None
    format_name: str | None = None
    indexes: IndexOptions = IndexOptions()
    allow_missing: bool = False
    force: bool = False
    validate: bool = False
    matrix_directory: Path | None = None


class _Environment(NamedTuple):
    """The conda packages, the wheels, and the Python and system of the wheels, None without any.

    ``requires`` lists for each wheel the other ones that it requires.
    """

    inventory: Inventory
    host: Host
    conda: InstalledConda
    wheels: tuple[Package, ...]
    requires: Mapping[str, set[str]]
    interpreter: Interpreter | None


def capture(request: CaptureRequest, environ: Mapping[str, str]) -> Exported:
    """Return the lock of the installed packages.

    Raises UsageError if the environment cannot be read or the format is for another kind; UnsolvableError
    ``environment-unsound`` and ``packages-not-captured``; OutsideError if an index fails.
    """
    matrix = Matrix(request.matrix_directory)
    try:
        request.progress.show("querying the environment's Python")
        host = detect(thorough=False, environ=environ, pci_table=matrix.gpu_of_pci_id)
        with Children() as children:
            found = find_environment(request.prefix, request.python, environ, children)
        if request.format_name == constraints_txt.FORMAT:
            return _constraints(found.inventory, host)
        problems = _problems(request, found, host, matrix, environ)
        if problems and not request.force:
            raise _unsound(request, found.inventory, problems)
        environment = _looked_at(found, host)
        format_name = _format(request, environment)
        request.progress.show("package indexes")
        text, notes = _written(request, environment, format_name, matrix, environ)
    finally:
        request.progress.clear()
    if problems:
        broken = f"the environment has errors that the lock will reproduce: {'; '.join(problems[:_FEW])}"
        notes = (Note("environment-unsound", broken), *notes)
    return Exported(((host.platform.value, text),), notes)


def _constraints(inventory: Inventory, host: Host) -> Exported:
    """The versions of all installed packages, even of those that no lock can contain. Queries no index."""
    packages = Packages(inventory.search_path).by_name.values()
    lines = [f"{it.name}=={it.version}" for it in packages if it.described and it.name not in TOOLS]
    return Exported(((host.platform.value, constraints_txt.write(lines, str(inventory.prefix))),))


def _problems(
    capture_request: CaptureRequest, found: FoundEnvironment, host: Host, matrix: Matrix, environ: Mapping[str, str]
) -> list[str]:
    """The errors of the environment, one per line: from its files and, if requested, from running it."""
    capture_request.progress.show(f"activating {found.inventory.prefix}")
    activation = activated(environ, found.inventory)
    capture_request.progress.show("the environment")
    report = examine_environment(Scene(found.inventory, host, activation.environ, matrix, shell=environ))
    findings: Sequence[Finding] = (*found.findings, *activation.findings, *report.findings)
    problems = [it.title for it in findings if it.severity is Severity.ERROR]
    if capture_request.validate and found.runs:
        from envsolve.app.environment.validating import ValidateRequest, validation_of

        python, directory = str(found.inventory.executable), capture_request.matrix_directory
        request = ValidateRequest(capture_request.progress, python=python, device="here", matrix_directory=directory)
        validation = validation_of(request, environ)
        if not validation.report.is_unbroken:
            problems += [it.title for it in validation.report.findings if it.severity is Severity.ERROR]
            problems = problems or ["a probe failed"]
    return list(dict.fromkeys(problems))


def _unsound(request: CaptureRequest, inventory: Inventory, problems: Sequence[str]) -> UnsolvableError:
    named_by = shlex.join(_named(request) or ["--prefix", str(inventory.prefix)])
    return UnsolvableError(
        "environment-unsound",
        f"{inventory.prefix} has errors that a lock would reproduce",
        tuple(problems[:_FEW]),
        (
            Hint("show the problems and their fixes", f"envsolve doctor {named_by}"),
            Hint("capture it anyway", f"envsolve capture {named_by} --force"),
        ),
    )


def _looked_at(found: FoundEnvironment, host: Host) -> _Environment:
    inventory = found.inventory
    conda = installed_conda(inventory.prefix)
    packages = tuple(Packages(inventory.search_path).by_name.values())
    if inventory.is_conda:
        packages = CondaMeta(inventory.prefix).without(packages)
    if found.runs and packages:
        interpreter = interpreter_of(inventory, host.platform)
        wheels, requires = captured(packages, Markers(interpreter.marker_values()))
        return _Environment(inventory, host, conda, wheels, requires, interpreter if wheels else None)
    if packages:
        raise UsageError(
            "python-not-found",
            f"the Python of {inventory.prefix} does not run, so its compatible wheels are unknown",
            hints=(Hint("fix it first", f"envsolve doctor --prefix {shlex.quote(str(inventory.prefix))}"),),
        )
    return _Environment(inventory, host, conda, (), {}, None)


def interpreter_of(inventory: Inventory, platform: Platform) -> Interpreter:
    """The Python of the environment. Raises UnsolvableError for an implementation other than CPython."""
    if not inventory.takes_usual_wheels:
        message = f"wheels are looked up for 64-bit CPython only, and {inventory.executable} is not that"
        hints = (Hint("list the installed packages with that Python", "python -m pip freeze"),)
        raise UnsolvableError("python-not-supported", message, hints=hints)
    major, minor, patch = (*map(int, _NUMBERS.findall(inventory.python)), 0, 0)[:3]
    return Interpreter((major, minor, patch), platform, this_glibc())


def _format(request: CaptureRequest, environment: _Environment) -> str:
    """The requested format. Raises UsageError if it is for another kind of environment."""
    prefix, is_conda = environment.inventory.prefix, environment.inventory.is_conda
    name = request.format_name or ("conda-lock" if is_conda else "requirements")
    if name in CONDA_FORMATS and not is_conda:
        raise UsageError(
            "nothing-to-capture",
            f"{prefix} is not a conda environment, and {name} is a format for conda packages",
            hints=(Hint("choose another format: --format requirements or pylock"),),
        )
    if name in VENV_FORMATS and not environment.wheels:
        what = "only conda packages, no wheels" if is_conda else "no packages"
        hint = (
            Hint("choose another format: --format conda-lock or explicit")
            if is_conda
            else Hint("install packages first")
        )
        raise UsageError("nothing-to-capture", f"{prefix} has {what}", hints=(hint,))
    return name


def _written(
    request: CaptureRequest, environment: _Environment, format_name: str, matrix: Matrix, environ: Mapping[str, str]
) -> tuple[str, tuple[Note, ...]]:
    command = _command(request, format_name)
    interpreter = environment.interpreter
    if interpreter is None:
        _require_complete(request, environment.conda.missing)
        virtual = _virtual_packages(environment.host, matrix, environ)
        lock = _conda_lock(environment, InstalledWheels((), (), ()), None, command, virtual)
        return _conda_text(lock, format_name), ()
    with exact_files(request.indexes, named(environment.wheels), environ, interpreter=interpreter) as files:
        wheels = wheels_of(environment.wheels, environment.requires, files)
    conda_missing = environment.conda.missing if format_name in CONDA_FORMATS else ()
    missing = (*conda_missing, *wheels.missing)
    _require_complete(request, missing)
    notes = (*_notes(environment, wheels, missing), *files.notes)
    if format_name in CONDA_FORMATS:
        virtual = _virtual_packages(environment.host, matrix, environ)
        return _conda_text(_conda_lock(environment, wheels, files, command, virtual), format_name), notes
    if environment.inventory.is_conda:
        notes += (Note("left-out", "only the wheels are captured: the conda packages, including Python, are left out"),)
    where = files.where
    lock = wheels_lock(wheels.pins, interpreter, where.default_shown, default_is_plain=where.is_plain)
    made = Made(__version__, command, wheels.requested)
    return write_python_lock(lock._replace(made=made), format_name), notes


def _require_complete(request: CaptureRequest, missing: Sequence[Missing]) -> None:
    if not missing or request.allow_missing:
        return
    again = shlex.join(["envsolve", "capture", *_named(request), "--allow-missing"])
    hints = [Hint("leave them out; a note will list them", again)]
    unfit = {it.unfit for it in missing}
    if Unfit.NO_FILE in unfit:
        hints.insert(0, Hint("name their index with --index-url or --extra-index-url"))
    if Unfit.SOURCE_ONLY in unfit:
        hints.insert(0, Hint("allow packages that only have a source distribution: --allow-builds"))
    count = "one package" if len(missing) == 1 else f"{len(missing)} packages"
    raise UnsolvableError("packages-not-captured", f"{count} cannot be locked", tuple(map(str, missing)), tuple(hints))


def _notes(environment: _Environment, wheels: InstalledWheels, missing: Sequence[Missing]) -> tuple[Note, ...]:
    notes = [note for pin in wheels.pins for note in notes_of(pin)]
    prefix = environment.inventory.prefix
    outside = [it.name for it in environment.wheels if not it.folder.is_relative_to(prefix)]
    if outside and environment.inventory.owns_prefix:
        text = f"included from outside {prefix}: {', '.join(outside[:_FEW])}"
        notes.append(Note("outside-of-environment", text))
    if missing:
        notes.append(Note("left-out", f"left out: {'; '.join(map(str, missing))}"))
        gone = {it.name for it in missing}
        needy = [pin.name for pin in wheels.pins if environment.requires[pin.name] & gone]
        if needy:
            text = f"left-out packages are required by {', '.join(needy)}: install the lock with pip's --no-deps"
            notes.append(Note("left-out-is-required", text))
    return tuple(notes)


def _conda_lock(
    environment: _Environment,
    wheels: InstalledWheels,
    files: ExactFiles | None,
    command: str,
    virtual: tuple[VirtualPackage, ...],
) -> Lock:
    packages = environment.conda.packages
    request = (
        *(RequestedSpec(spec) for spec in environment.conda.requested),
        *(RequestedSpec(spec, by_pip=True) for spec in wheels.requested),
    )
    return conda_lock(packages, wheels.pins, environment.host.platform, virtual, request)._replace(
        made=Made(__version__, command, tuple(it.spec for it in request)),
        default_index="" if files is None else files.where.default_shown,
        default_is_plain=files is None or files.where.is_plain,
        channels=channels_of(packages),
    )


def _conda_text(lock: Lock, format_name: str) -> str:
    ((_, text),) = write_conda_lock((lock,), format_name)
    return text


def _virtual_packages(host: Host, matrix: Matrix, environ: Mapping[str, str]) -> tuple[VirtualPackage, ...]:
    """The virtual packages of this machine, on which the packages are installed."""
    target = target_of(Request((), gpus=("none",), platforms=(host.platform,)), matrix, environ)
    found = virtual_packages(target.problem, None, target.hosts, matrix.cuda, environ)
    if host.glibc is not None:
        found = tuple(it._replace(version=str(host.glibc)) if it.name == "__glibc" else it for it in found)
    cuda = () if host.driver_cuda is None else (VirtualPackage("__cuda", str(host.driver_cuda)),)
    return tuple(sorted((*found, *cuda)))


def _named(request: CaptureRequest) -> list[str]:
    if request.prefix is not None:
        return ["--prefix", request.prefix]
    return [] if request.python is None else ["--python", request.python]


def _command(request: CaptureRequest, format_name: str) -> str:
    """The command that captures the environment again, without logins."""
    indexes = request.indexes
    words = ["envsolve", "capture", *_named(request), "--format", format_name]
    for option, urls in (
        ("--extra-index-url", indexes.extra_index_urls),
        ("--index-url", (indexes.index_url,)),
        ("--pytorch-index-url", (indexes.pytorch_index_url,)),
    ):
        words += [word for url in urls if url is not None for word in (option, without_secrets(url))]
    words += ["--allow-builds"] if indexes.allow_builds else []
    words += ["--allow-missing"] if request.allow_missing else []
    words += ["--force"] if request.force else []
    return shlex.join(words)
