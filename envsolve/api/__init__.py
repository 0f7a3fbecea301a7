"""The Python API: the commands as functions, with values as arguments and results.

``import envsolve`` provides these functions. They take what the command line takes, by the names of its options: one
item or several, each as text or as a value. They print nothing and write only to the cache. Variables of other tools
apply as for the commands (CONDA_OVERRIDE_CUDA, PIP_INDEX_URL); ENVSOLVE_<OPTION> does not.

Each function may raise errors of :mod:`envsolve.errors`, besides those that it documents: UsageError for input that
cannot be understood or read, MatrixError for a matrix that does not load, UnsolvableError if nothing fits, OutsideError
if the network, the disk or a program fails. ``as_json`` of a result is what the command prints with ``--json``, with
the types of :mod:`envsolve.documents`. A notebook shows a result as a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from packaging.specifiers import SpecifierSet

from envsolve.api.arguments import (
    File,
    Files,
    Gpus,
    Log,
    Range,
    Words,
    address,
    each,
    file,
    file_names,
    gpus_of,
    log,
    moment,
    package_names,
    read,
    require_format,
    require_one,
    value,
    words,
)
from envsolve.app.status.results import DetectedHost, Diagnosis, Environment, Explanation, LockFiles, Status, Validation
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import Audit, Packages, Policy, Request, parse_cuda_versions, parse_versions
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from envsolve.model.words import member_of, one_word

if TYPE_CHECKING:
    from envsolve.matrix import Matrix

__all__ = [
    "DetectedHost",
    "Diagnosis",
    "Environment",
    "Explanation",
    "LockFiles",
    "Status",
    "Validation",
    "detect",
    "doctor",
    "explain",
    "lock",
    "solve",
    "status",
    "validate",
]


def detect(*, matrix: File | None = None) -> DetectedHost:
    """Detect this machine: platform, driver, GPUs, C library, and the source of each fact, as ``envsolve detect``.

    ``matrix`` is a directory to read instead of the matrix that envsolve ships, as in all functions.
    """
    from envsolve.app.request.hosts import detected_host

    return DetectedHost(*detected_host(_matrix(matrix), os.environ, thorough=True))


def solve(
    frameworks: Words = (),
    *,
    gpus: Gpus = (),
    driver: str | DriverVersion | None = None,
    glibc: str | LibcVersion | None = None,
    python: Range | None = None,
    cuda: Range | None = None,
    hosts: Files = (),
    platforms: Words = (),
    sources: Words = (),
    prefer: str = "newest-framework",
    channels: Words = (),
    index_url: str | None = None,
    extra_index_urls: Words = (),
    pytorch_index_url: str | None = None,
    exclude_newer: str | date | None = None,
    format: str = "environment",  # noqa: A002 - the name of the option
    offline: bool = False,
    refresh: bool = False,
    cache_dir: File | None = None,
    no_cache: bool = False,
    matrix: File | None = None,
) -> Environment:
    """An environment with these frameworks that runs on the GPU and the driver, as ``envsolve solve`` prints it.

    ``frameworks`` are names, optionally with versions: ``"pytorch>=2.5"``. The target is this machine by default:
    ``gpus`` is ``"auto"``, ``"none"`` (CPU), or products and compute capabilities, all of which the stack must run on;
    ``driver`` is the version of NVIDIA's driver and ``glibc`` that of the C library, on Linux; ``hosts`` are host
    files, in place of ``gpus``; ``platforms`` are names of conda's platforms. ``python`` and ``cuda`` are versions or
    ranges: ``"3.11"``, ``">=3.10,<3.13"``, ``"12.*"``. ``sources`` are in order of preference; ``prefer`` says how to
    choose between working stacks: ``newest-framework``, ``newest-cuda`` or ``widest-gpu``. ``channels``, ``index_url``,
    ``extra_index_urls`` and ``pytorch_index_url`` are conda channels and package indexes in place of, or in addition
    to, the default ones. Versions released after ``exclude_newer`` are ignored: a day is included until its end, and a
    moment without a time zone is in UTC. ``format`` is ``environment``, ``json`` or ``pixi``; ``matrix`` is as for
    :func:`detect`. The network is only used for a requested release that is newer than the matrix and for a dependent
    framework, such as vLLM, and never with ``offline``; ``refresh``, ``cache_dir`` and ``no_cache`` are as for
    :func:`lock`.

    Raises UnsolvableError, with the reasons and with changes that help, if no build runs there: a CPU build is never
    chosen when a GPU is present or named.
    """
    from envsolve.app.any_lock.environment_file import environment_file
    from envsolve.app.lock.lock_request import LockRequest
    from envsolve.app.matrix.unknown_releases import knowing_new_releases
    from envsolve.app.request.network import Network
    from envsolve.app.solve.solving import Solved
    from envsolve.model.lock_format import STACK_FORMATS

    require_format(format, STACK_FORMATS)
    tables = _matrix(matrix)
    request = _request(
        tables,
        frameworks=frameworks,
        gpus=gpus,
        driver=driver,
        glibc=glibc,
        python=python,
        cuda=cuda,
        hosts=hosts,
        platforms=platforms,
        sources=sources,
        prefer=prefer,
        channels=channels,
        index_url=index_url,
        extra_index_urls=extra_index_urls,
        format=format,
        packages=Packages(
            exclude_newer=None if exclude_newer is None else moment(exclude_newer),
            pytorch_index_url=address("pytorch_index_url", pytorch_index_url),
        ),
    )

    network = Network(offline, refresh, file(cache_dir), no_cache)

    def solved_by(known: Matrix) -> tuple[Solved, Solved]:
        lock_request = LockRequest(request, network)
        solved = environment_file(lock_request, known, os.environ)
        if format == "json":
            return solved, solved
        as_json = lock_request._replace(request=request._replace(format="json"))
        return solved, environment_file(as_json, known, os.environ)

    solved, data = knowing_new_releases(solved_by, request, tables, network, os.environ)
    return Environment(solved.texts, solved.solutions, solved.notes, data.texts[0][1])


def lock(
    frameworks: Words = (),
    requirements: Words = (),
    *,
    gpus: Gpus = (),
    driver: str | DriverVersion | None = None,
    glibc: str | LibcVersion | None = None,
    python: Range | None = None,
    cuda: Range | None = None,
    hosts: Files = (),
    platforms: Words = (),
    sources: Words = (),
    prefer: str = "newest-framework",
    channels: Words = (),
    index_url: str | None = None,
    extra_index_urls: Words = (),
    pytorch_index_url: str | None = None,
    requirement_files: Files = (),
    constraint_files: Files = (),
    build_constraint_files: Files = (),
    overrides: Words = (),
    exclude_newer: str | date | None = None,
    audit: str = "auto",
    allow_builds: bool = False,
    pre: bool = False,
    extensions: bool = False,
    existing: File | None = None,
    upgrade: bool | Words = False,
    format: str = "pylock",  # noqa: A002 - the name of the option
    offline: bool = False,
    refresh: bool = False,
    cache_dir: File | None = None,
    no_cache: bool = False,
    matrix: File | None = None,
) -> LockFiles:
    """The frameworks, the requirements and all their dependencies, pinned and with digests.

    ``format`` is ``pylock`` or ``requirements``, whose packages are from package indexes, or ``conda-lock`` or
    ``explicit``, whose packages are from conda channels and which need ``envsolve[conda]``. ``requirements`` are Python
    requirements, ``requirement_files`` and ``constraint_files`` name files with them, ``build_constraint_files`` files
    that limit what builds require. ``overrides`` replace every requirement on the same package, including those of
    other packages, in a lock of packages from indexes. Uploads after ``exclude_newer`` are ignored, too. ``audit`` says
    how much CUDA code is read in wheels that the matrix does not know: ``auto``, ``full`` or ``off``. ``allow_builds``
    allows packages without a wheel, which runs their code; ``pre`` allows pre-releases; ``extensions`` allows wheels
    with GPU code that others than their projects publish. With ``offline`` the network is not used, only the cache;
    ``refresh`` fetches cached data again; ``cache_dir`` is the directory of the cache, and ``no_cache`` disables it.
    The rest is as for :func:`solve`.

    ``existing`` is the file of a lock, if it exists: its pins stay if they fit, except for packages that ``upgrade``
    names, or all with ``upgrade=True``; ``{platform}`` in the name stands for each platform.

    Raises UnsolvableError if no stack or no set of packages fits, OutsideError if an index or a channel fails, or if
    py-rattler is needed and not installed.
    """
    from envsolve.api.locking import lock_files
    from envsolve.app.request.network import Network
    from envsolve.model.lock_format import CONDA_FORMATS, PYTHON_FORMATS

    require_format(format, (*PYTHON_FORMATS, *CONDA_FORMATS))
    tables = _matrix(matrix)
    request = _request(
        tables,
        frameworks=frameworks,
        gpus=gpus,
        driver=driver,
        glibc=glibc,
        python=python,
        cuda=cuda,
        hosts=hosts,
        platforms=platforms,
        sources=sources,
        prefer=prefer,
        channels=channels,
        index_url=index_url,
        extra_index_urls=extra_index_urls,
        format=format,
        packages=Packages(
            requirements=words(requirements),
            files=file_names(requirement_files),
            constraints=file_names(constraint_files),
            overrides=words(overrides),
            build_constraints=file_names(build_constraint_files),
            exclude_newer=None if exclude_newer is None else moment(exclude_newer),
            audit=read("audit", audit, member_of(Audit)),
            allow_builds=allow_builds,
            pre=pre,
            extensions=extensions,
            upgrade=upgrade is True,
            upgraded=() if isinstance(upgrade, bool) else package_names("upgrade", upgrade),
            pytorch_index_url=address("pytorch_index_url", pytorch_index_url),
        ),
    )
    network = Network(offline, refresh, file(cache_dir), no_cache)
    return lock_files(request, tables, network, file(existing))


def status(
    files: Files = (),
    *,
    gpus: Gpus = (),
    driver: str | DriverVersion | None = None,
    hosts: Files = (),
    platform: str | None = None,
    project: File | None = None,
    matrix: File | None = None,
) -> Status:
    """Check whether environment files and locks run on a machine and match the project, as ``envsolve status``.

    ``files`` are environment files and locks. Without ``files`` and a machine these are the files of the project in the
    directory ``project``, by default in the current one or above; without a project those with the usual names in the
    current directory. ``gpus``, ``driver``, ``hosts`` and ``matrix`` are as for :func:`solve`; ``platform`` is one
    name.

    Raises UsageError if a file or a project cannot be read, or there is nothing to check. A file that does not run is
    no error: see ``ok`` and ``files``.
    """
    from contextlib import chdir

    from envsolve.app.project.project_status import project_status
    from envsolve.app.status.status import files_to_check, status_of
    from envsolve.project import find_project, project_file, read_project

    tables, names = _matrix(matrix), file_names(files)
    request = Request(
        frameworks=(),
        gpus=gpus_of(gpus),
        driver=value("driver", driver, DriverVersion, DriverVersion.parse),
        hosts=file_names(hosts),
        platforms=() if platform is None else each("platform", platform, member_of(Platform)),
    )
    by_itself = bool(names) or request != Request(frameworks=())
    if project is not None and by_itself:
        raise UsageError("contradictory-options", "a project names its own files and machines: leave out others")
    found = None if by_itself else find_project(Path.cwd()) if project is None else project_file(file(project))
    if found is None:
        return Status(tuple(status_of(files_to_check(names), request, tables, os.environ, by_itself=len(names) == 1)))
    found_project = read_project(found)
    with chdir(found_project.directory):
        return Status(tuple(project_status(found_project, tables, os.environ)))


def validate(
    *,
    prefix: File | None = None,
    python: File | None = None,
    frameworks: Words = (),
    device: Literal["auto", "cuda", "cpu"] = "auto",
    gpus: Iterable[int] | Literal["all"] | None = None,
    burn: float = 0.0,
    timeout: float | None = None,
    matrix: File | None = None,
) -> Validation:
    """Test an environment by running kernels in it, as ``envsolve validate``; this process is not affected.

    The environment is that of the directory ``prefix`` or of the interpreter ``python``, or the active one;
    ``python=sys.executable`` means the environment of this process. ``frameworks`` are names; by default all installed
    ones. ``device`` is the device to test: ``cuda``, ``cpu``, or ``auto`` for the GPU if the machine or the environment
    has NVIDIA components. ``gpus`` are the numbers of the GPUs to test, as in nvidia-smi; None is the first one that
    programs see. ``burn`` is how many seconds products are repeated and compared on each GPU, ``timeout`` how many a
    framework may take (default: 120, and 600 if its kernels are compiled first). ``matrix`` is as for :func:`detect`.

    Raises UsageError if the environment cannot be determined or does not have a framework that is named, OutsideError
    if its interpreter does not run. An environment that fails is no error: see ``ok``.
    """
    from envsolve.app.environment.validating import ValidateRequest, validation_of

    require_one(prefix=prefix, python=python)
    chosen = gpus if gpus is None or gpus == "all" else tuple(dict.fromkeys(gpus)) or None
    if isinstance(chosen, tuple) and any(gpu < 0 for gpu in chosen):
        raise UsageError("usage", "gpus: GPUs are numbered from 0; `nvidia-smi -L` lists them")
    if device not in ("auto", "cuda", "cpu"):
        raise UsageError("usage", f"device: {device!r} is not one of auto, cuda, cpu")
    if device == "cpu" and chosen is not None:
        raise UsageError("contradictory-options", "device='cpu' tests no GPU, but gpus selects some")
    if not burn >= 0 or (timeout is not None and not timeout >= 0):
        raise UsageError("usage", "burn and timeout are seconds, and not below 0")
    request = ValidateRequest(
        _Silence(),
        prefix=file(prefix),
        python=file(python),
        frameworks=tuple(dict.fromkeys(words(frameworks))),
        device=device,
        gpus=chosen,
        burn=burn,
        timeout=timeout,
        matrix_directory=None if matrix is None else Path(matrix),
    )
    return validation_of(request, os.environ)


def explain(
    text: Log,
    *,
    frameworks: Words = (),
    gpus: Gpus = (),
    driver: str | DriverVersion | None = None,
    host: File | None = None,
    platform: str | None = None,
    prefix: File | None = None,
    python: str | None = None,
    built_cuda: str | CudaVersion | None = None,
    toolkit: str | CudaVersion | None = None,
    matrix: File | None = None,
) -> Explanation:
    """Find cause and fix of the errors in a text or a log, as ``envsolve explain``.

    ``text`` is the text itself, a ``Path`` of a file, a binary stream, or an exception, which is read with its
    traceback. The other arguments are known facts about the machine and the environment of the failure, as for
    :func:`solve`; but ``host`` is one host file, ``platform`` one name, ``prefix`` the directory of an environment, and
    ``python`` (``"3.12"``), ``built_cuda`` (``"12.6"``, of the framework) and ``toolkit`` (of the machine) are single
    versions.

    Raises UsageError for a file that cannot be read or a ``prefix`` that is no environment. A text without a known
    error is no error: the result has no findings.
    """
    from envsolve.app.explain.explaining import ExplainRequest
    from envsolve.app.explain.explaining import explain as explained

    named = gpus_of(gpus)
    require_one(host=host, gpus=named or None)
    if "none" in named:
        raise UsageError("usage", "gpus: 'none' describes no machine: omit it")
    if python is not None and not re.fullmatch(r"[23]\.\d{1,2}(\.\d{1,2})?", python):
        raise UsageError("usage", f"python: {python!r} is not a version of Python such as 3.12")
    request = ExplainRequest(
        gpus=named,
        driver=value("driver", driver, DriverVersion, DriverVersion.parse),
        host=file(host),
        platform=value("platform", platform, Platform, member_of(Platform)),
        prefix=file(prefix),
        python=python,
        built_cuda=_cuda_text("built_cuda", built_cuda),
        toolkit=_cuda_text("toolkit", toolkit),
        frameworks=words(frameworks),
        matrix_directory=None if matrix is None else Path(matrix),
    )
    try:
        with log(text) as stream:
            return explained(stream, request, os.environ)
    except OSError as error:
        name = os.fspath(text) if isinstance(text, os.PathLike) else "the stream"
        raise UsageError("log-unreadable", f"{name} cannot be read: {error.strerror or error}") from error


def _cuda_text(name: str, cuda: str | CudaVersion | None) -> str | None:
    return None if cuda is None else str(value(name, cuda, CudaVersion, CudaVersion.parse))


def doctor(*, prefix: File | None = None, python: File | None = None, matrix: File | None = None) -> Diagnosis:
    """Find what breaks GPU stacks on this machine and in an environment, as ``envsolve doctor``.

    ``prefix``, ``python`` and ``matrix`` are as for :func:`validate`. Nothing is changed, no framework is imported.
    Raises UsageError if the named environment does not exist.
    """
    from envsolve.app.environment.doctoring import DoctorRequest, diagnose

    require_one(prefix=prefix, python=python)
    request = DoctorRequest(
        _Silence(),
        prefix=file(prefix),
        python=file(python),
        matrix_directory=None if matrix is None else Path(matrix),
    )
    return diagnose(request, os.environ).result


def _request(
    matrix: Matrix,
    *,
    frameworks: Words,
    gpus: Gpus,
    driver: str | DriverVersion | None,
    glibc: str | LibcVersion | None,
    python: Range | None,
    cuda: Range | None,
    hosts: Files,
    platforms: Words,
    sources: Words,
    prefer: str,
    channels: Words,
    index_url: str | None,
    extra_index_urls: Words,
    format: str,  # noqa: A002 - as above
    packages: Packages,
) -> Request:
    from envsolve.app.solve.solving import framework_requests
    from envsolve.frameworks import split_dependent

    named, dependent = split_dependent(words(frameworks))
    requested = framework_requests(named, matrix)
    if not requested and not packages.requirements and not packages.files:
        raise UsageError("no-framework", "which framework?", hints=(Hint("name one: 'pytorch>=2.5'"),))
    policy = read("prefer", prefer, member_of(Policy))
    if policy is Policy.LOCKED:
        raise UsageError("nothing-to-keep", "prefer='locked' needs an existing lock, and there is none here")
    return Request(
        frameworks=requested,
        python=value("python", python, SpecifierSet, parse_versions),
        cuda=value("cuda", cuda, SpecifierSet, parse_cuda_versions),
        gpus=gpus_of(gpus),
        driver=value("driver", driver, DriverVersion, DriverVersion.parse),
        glibc=value("glibc", glibc, LibcVersion, LibcVersion.parse),
        hosts=file_names(hosts),
        platforms=each("platforms", platforms, member_of(Platform)),
        sources=each("sources", sources, member_of(Source)),
        prefer=policy,
        channels=each("channels", channels, one_word),
        index_url=address("index_url", index_url),
        extra_index_urls=each("extra_index_urls", extra_index_urls, one_word),
        format=format,
        packages=packages._replace(requirements=(*dependent, *packages.requirements)),
    )


def _matrix(directory: File | None) -> Matrix:
    from envsolve.matrix import Matrix

    return Matrix(directory)


class _Silence:
    """Ignores progress."""

    def show(self, text: str) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""
