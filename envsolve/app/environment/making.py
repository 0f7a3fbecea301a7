"""The installation of a plan: conda packages with rattler, a venv and wheels with uv or pip."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.create.activation import forget, write_library_path, write_variables, write_xla_flags
from envsolve.create.plan import Kind, Plan
from envsolve.create.record import LOCKS
from envsolve.create.tools import InstallerNetwork, find_uv
from envsolve.frameworks import FRAMEWORKS
from envsolve.host.machine import this_platform
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.release import CudaLibraries

if TYPE_CHECKING:
    from envsolve.conda.session import Session

Progress = Callable[[str], None]
_CONDA_CACHE = "conda-packages"


class CreateRequest(NamedTuple):
    """A request to create an environment: where, from which lock, and how.

    ``lock`` is the lock file; with ``text``, the file that a newly made lock would be in. ``command`` creates the
    environment again. ``python`` limits the interpreter of a venv. ``channel_logins`` are addresses of channels,
    without and with logins. ``session`` opens the solver of conda packages for an environment.yml, which has no
    addresses. ``force`` replaces an environment of envsolve; ``changes`` only installs and removes what differs, and
    reinstalls the packages in ``again``. ``keep`` leaves an unfinished environment. ``builds`` allows building packages
    without a wheel, within ``build_constraints`` and those recorded in the lock. ``on_note`` gets notes before anything
    is fetched. ``project`` is the file that requests the lock, if any. ``dry_run`` changes nothing.
    """

    prefix: str
    lock: Path
    command: str
    network: InstallerNetwork
    session: Callable[[], AbstractContextManager[Session]]
    text: str | None = None
    python: SpecifierSet | None = None
    channel_logins: tuple[tuple[str, str], ...] = ()
    force: bool = False
    changes: bool = False
    again: frozenset[str] = frozenset()
    keep: bool = False
    builds: bool = False
    build_constraints: tuple[str, ...] = ()
    on_note: Callable[[Note], None] = lambda _: None
    dry_run: bool = False
    project: str = ""


def make(
    request: CreateRequest, plan: Plan, prefix: Path, matrix: Matrix, environ: Mapping[str, str], progress: Progress
) -> tuple[Note, ...]:
    """Install ``plan`` into the directory ``prefix``. Returns notes.

    Raises OutsideError if something cannot be fetched or run, and OSError.
    """
    if plan.kind is Kind.VENV:
        with scratch_in(prefix) as scratch:
            _make_venv(request, plan, prefix, find_uv(), environ, scratch, progress)
    return install_packages(request, plan, prefix, matrix, environ, progress)


def install_packages(
    request: CreateRequest,
    plan: Plan,
    prefix: Path,
    matrix: Matrix,
    environ: Mapping[str, str],
    progress: Progress,
    again: Collection[str] = (),
) -> tuple[Note, ...]:
    """Install the packages of ``plan`` into the environment at ``prefix``; existing ones stay. Returns notes.

    Reinstalls the conda packages in ``again``. Raises the same errors as :func:`make`.
    """
    platform = this_platform()
    notes: list[Note] = []
    if plan.kind is Kind.CONDA:
        notes += _install_conda(request, plan, prefix, environ, progress, again)
    if plan.lock.pins:
        from envsolve.create.builds import recorded_build_constraints
        from envsolve.create.wheels import Wheels, install_wheels

        constraints = tuple(dict.fromkeys((*request.build_constraints, *recorded_build_constraints(plan.lock))))
        wheels = Wheels(plan.lock, find_uv(), plan.kind is Kind.VENV, request.builds, constraints)
        logins = (*request.network.logins, *(address for _, address in plan.logins))
        network = request.network._replace(logins=logins)
        python = plan.kind.interpreter(prefix, windows=platform.is_windows)
        with scratch_in(prefix) as scratch:
            notes += install_wheels(python, wheels, network, environ, scratch, progress)
    if plan.kind is Kind.CONDA:
        write_variables(prefix, plan.lock.variables)
        notes += _write_activation(plan, prefix, platform, matrix)
    return tuple(notes)


def _make_venv(
    request: CreateRequest,
    plan: Plan,
    prefix: Path,
    uv: str | None,
    environ: Mapping[str, str],
    scratch: Path,
    progress: Progress,
) -> None:
    from envsolve.create.interpreter import find_python
    from envsolve.create.tools import tool_environ
    from envsolve.create.venv import make_venv

    with tool_environ(environ, request.network, scratch) as variables:
        progress("looking for a Python")
        found = find_python(plan.python, uv, variables, offline=request.network.offline, project=request.project)
        make_venv(prefix, found, uv, variables, progress)


def _install_conda(
    request: CreateRequest,
    plan: Plan,
    prefix: Path,
    environ: Mapping[str, str],
    progress: Progress,
    again: Collection[str],
) -> list[Note]:
    from envsolve.conda.installing import Installation, install, missing_scripts, package_cache

    network = request.network
    with ExitStack() as stack:
        if network.no_cache:
            passing = TemporaryDirectory(prefix="envsolve-", ignore_cleanup_errors=True)
            cache = Path(stack.enter_context(passing))
        elif network.cache_directory is not None:
            cache = network.cache_directory / _CONDA_CACHE
        else:
            cache = package_cache(environ)
        install(
            Installation(
                prefix, this_platform(), plan.lock.conda, cache, request.channel_logins, network.offline, again
            ),
            progress,
        )
    scripts = missing_scripts(prefix)
    if not scripts:
        return []
    text = f"{' and '.join(scripts)}: the post-link script was not run (like pixi)"
    return [Note("script-not-run", text)]


def _write_activation(plan: Plan, prefix: Path, platform: Platform, matrix: Matrix) -> Iterator[Note]:
    """Set variables that the frameworks need when the environment is activated.

    Not on Windows: there an activated environment is on the path, and no framework has XLA.
    """
    from envsolve.app.status.locked_stack import stack_in

    forget(prefix)
    stack = None if platform.is_windows else stack_in(plan.lock, PurePath(plan.lock_name), plan.text, platform, matrix)
    rows = [row for rows in (stack.releases.values() if stack is not None else ()) for row in rows]
    if any(row.cuda_libraries is CudaLibraries.NONE and row.source.is_wheel for row in rows):
        write_library_path(prefix)
    known = (FRAMEWORKS[row.framework] for row in rows if row.cuda is not None and row.framework in FRAMEWORKS)
    with_xla = next((it for it in known if it.needs_xla_flags), None)
    if with_xla is not None and not write_xla_flags(prefix):
        yield Note(
            "libdevice-missing",
            f"{with_xla.title} compiles some kernels with XLA, which needs libdevice, but this lock does not have it. "
            "If an error says 'libdevice not found', add cuda-nvcc",
        )


@contextmanager
def scratch_in(prefix: Path) -> Iterator[Path]:
    """A temporary directory below ``prefix`` that only this user can read. Raises OSError.

    Files for installers may contain logins. After a kill, the next command removes them here; in the system's directory
    for temporary files they would stay.
    """
    folder = prefix / LOCKS
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:  # created with mode 0700
        yield Path(scratch)
