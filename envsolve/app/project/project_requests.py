"""Turns a project into requests: one for each of its files, for the machines that share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple

from envsolve.app.packages.conda_requirements import is_environment_file, requirements_on
from envsolve.app.packages.lock_frameworks import holding_on, require_wheels_of_dependents
from envsolve.app.request.hosts import detected_host
from envsolve.app.request.overrides import CONDA_CUDA
from envsolve.app.request.recorded_machine import ORIGIN, recorded_machine
from envsolve.app.request.targets import targets_of
from envsolve.app.solve.solving import framework_requests
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import split_dependent
from envsolve.matrix.load import Matrix
from envsolve.model.host import GpuStatus, Platform
from envsolve.model.lock_format import PLATFORM, PYTHON_FORMATS, SOLVED_FORMATS, format_for_file, tool_of
from envsolve.model.request import NamedHost, Packages, Request
from envsolve.model.requester import Requester
from envsolve.project import Machine, Output, Part, Project
from envsolve.project.reading import refuse_value


class FileRequest(NamedTuple):
    """A file of the project, and its request.

    ``recorded`` is the request of the project if ``request`` was changed for this machine.
    """

    part: Part
    output: Output
    request: Request
    recorded: Request | None = None

    @property
    def as_recorded(self) -> Request:
        """The request that the file records."""
        return self.recorded or self.request

    def path(self, platform: Platform) -> str:
        """The file for ``platform``, relative to the project."""
        return self.output.file.replace(PLATFORM, platform)


def file_requests(
    project: Project, matrix: Matrix, environ: Mapping[str, str], packages: Packages
) -> Iterator[FileRequest]:
    """The requests of all files of the project. ``packages`` says how existing pins are treated.

    The current directory is that of the project. Raises UsageError for mistakes in the project, with key and line.
    """
    for part in project.parts:
        request = _request(project, part, matrix, environ, packages)
        _refuse_inputs(project, part)
        here = _machine_of_lock(part, request, matrix, environ)
        for output in part.outputs:
            name = _format(project, part, output)
            if here is None:
                yield FileRequest(part, output, request._replace(format=name))
            else:
                yield FileRequest(part, output, here._replace(format=name), request._replace(format=name))


def require_wheels(project: Project, matrix: Matrix, environ: Mapping[str, str]) -> None:
    """Raise UnsolvableError for a framework that no lock of the project can contain, whatever the indexes have.

    Other errors are left to locking.
    """
    with suppress(UsageError):
        for file in file_requests(project, matrix, environ, Packages()):
            if file.request.format not in PYTHON_FORMATS:
                continue
            for target in targets_of(file.request, matrix, environ):
                wanted = requirements_on(file.request.packages, target.problem.platform).python
                if wanted is not None:
                    require_wheels_of_dependents(target, wanted, holding_on([target.problem]))


def _refuse_inputs(project: Project, part: Part) -> None:
    """Raise UsageError if an output is also a requirements file, which would be lost, or cannot hold a conda file."""
    settings = part.settings
    of_conda = next(filter(is_environment_file, settings.requirement_files), None)
    python_lock = next((it.file for it in part.outputs if _format(project, part, it) in PYTHON_FORMATS), None)
    if of_conda is not None and python_lock is not None:
        message = f"{of_conda} is a conda file, but the Python lock {python_lock} uses package indexes"
        hint = Hint('make a conda lock: outputs = ["conda-lock.yml"]')
        refuse_value(project, key_of(part, "outputs"), UsageError("contradictory-options", message, hints=(hint,)))
    files = (*settings.requirement_files, *settings.constraint_files, *settings.build_constraint_files)
    read = {Path(name).resolve() for name in files}
    for output in part.outputs:
        if Path(output.file).resolve() in read:
            message = f"{output.file} is a requirements file, and the lock would overwrite it"
            hint = Hint("use two files, for example requirements.in and requirements.txt")
            refuse_value(project, key_of(part, "outputs"), UsageError("contradictory-options", message, hints=(hint,)))


def key_of(part: Part, key: str) -> tuple[str, ...]:
    """The key of a part within the project."""
    return ("targets", part.name, key) if part.name else (key,)


def _request(project: Project, part: Part, matrix: Matrix, environ: Mapping[str, str], packages: Packages) -> Request:
    settings = part.settings
    of_matrix, dependent = split_dependent(settings.frameworks)
    try:
        frameworks = framework_requests(of_matrix, matrix)
    except UsageError as error:
        if "frameworks" in part.typed:
            raise
        refuse_value(project, key_of(part, "frameworks"), error)
    request = Request(
        frameworks=frameworks,
        python=settings.python,
        cuda=settings.cuda,
        sources=settings.sources,
        channels=settings.channels,
        index_url=settings.index_url,
        extra_index_urls=settings.extra_index_urls,
        prefer=settings.prefer,
        packages=packages._replace(
            requirements=(*settings.requirements, *dependent),
            files=settings.requirement_files,
            constraints=settings.constraint_files,
            overrides=settings.overrides,
            exclude=settings.exclude,
            build_constraints=settings.build_constraint_files,
            exclude_newer=settings.exclude_newer,
            audit=settings.audit,
            allow_builds=settings.allow_builds,
            pre=settings.pre,
            extensions=settings.extensions,
            pytorch_index_url=settings.pytorch_index_url,
            places=(*settings.places, *(project.file.name for _ in dependent)),
        ),
        requester=Requester(project.file.name, part.typed),
    )
    if len(part.machines) == 1:
        machine = part.machines[0]
        return _on(machine, request)
    named = tuple(it for machine in part.machines for it in _named(project, machine, request, matrix, environ))
    bare = [it for it in named if not it.host.gpus and it.host.status in (GpuStatus.NO_HARDWARE, GpuStatus.NO_GPU)]
    if bare and len(bare) < len(named):
        message = f"{bare[0].name} has no NVIDIA GPU, but others that share its files have one: no build fits both"
        hint = Hint("give this target its own `outputs`")
        name = max((it.name for it in part.machines if bare[0].name.startswith(it.name)), key=len)
        refuse_value(project, ("targets", name), UsageError("hosts-differ", message, hints=(hint,)))
    return request._replace(hosts=tuple(it.name for it in named), named_hosts=named)


def _on(machine: Machine, request: Request) -> Request:
    return request._replace(**{key: value for key, value in machine._asdict().items() if key != "name"})


def _machine_of_lock(part: Part, request: Request, matrix: Matrix, environ: Mapping[str, str]) -> Request | None:
    """``request`` for this machine, completed from an existing lock; None if nothing has to be added.

    Without a GPU, as in CI, the lock is for the machine that it records. It would be wrong to choose CPU builds because
    of the place where it is checked. A newer C library does not change the lock, either.
    """
    if request.named_hosts or request.hosts or request.gpus not in ((), ("auto",)) or len(request.platforms) > 1:
        return None
    if environ.get(CONDA_CUDA) == "":
        return None
    here = detected_host(matrix, environ, thorough=False)
    platform = request.platform or here.platform
    files = (Path(output.file.replace(PLATFORM, platform)) for output in part.outputs)
    known = next(filter(None, (recorded_machine(file, platform) for file in files)), None)
    if known is None or platform is not here.platform:
        return None
    found = known.stands_in_for(here)
    note = None
    if known.is_gpu and not here.gpus and here.status in (GpuStatus.NO_HARDWARE, GpuStatus.NO_GPU, GpuStatus.READY):
        found = found._replace(status=GpuStatus.READY)
        note = f"no NVIDIA GPU was found: the lock is still for the recorded machine ({known})"
    if found._replace(origin=here.origin) == here:
        return None
    noted = found if note is None else found._replace(notes=(*found.notes, note))
    named = NamedHost(ORIGIN, noted, str(known))
    return request._replace(gpus=(), hosts=(ORIGIN,), named_hosts=(named,))


def _named(
    project: Project, machine: Machine, request: Request, matrix: Matrix, environ: Mapping[str, str]
) -> Iterator[NamedHost]:
    """The hosts of one of several targets. An error names its key."""
    try:
        targets = targets_of(_on(machine, request), matrix, environ)
    except UsageError as error:
        refuse_value(project, ("targets", machine.name), error)
    for target in targets:
        of = f"{machine.name} ({target.problem.platform})" if len(targets) > 1 else machine.name
        for number, host in enumerate(target.hosts):
            name = f"{of}: {target.request.hosts[number]}" if len(target.hosts) > 1 else of
            yield NamedHost(name, host, typed(machine))


def typed(machine: Machine) -> str:
    """The description of a machine in the project."""
    parts = [*(machine.gpus or (() if machine.hosts else ("auto",))), *machine.hosts]
    parts += [] if machine.driver is None else [f"driver {machine.driver}"]
    parts += [] if machine.glibc is None else [f"glibc {machine.glibc}"]
    return ", ".join((*parts, *machine.platforms))


def _format(project: Project, part: Part, output: Output) -> str:
    found = output.format or format_for_file(PurePath(output.file))
    if tool_of(PurePath(output.file)) is not None:
        message = f"{output.file} is a lock of another tool: envsolve cannot write it"
    elif found is None:
        message = f"cannot infer the format of {output.file} from its name: write {{ file = ..., format = ... }}"
    elif found in SOLVED_FORMATS:
        return found
    else:
        message = f"unknown format {found!r}"
    refuse_value(
        project,
        key_of(part, "outputs"),
        UsageError("unknown-format", message, (f"known: {', '.join(SOLVED_FORMATS)}",)),
    )
