"""What is installed for a plan, and by what: conda packages by rattler, a venv and wheels by uv or pip."""

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
from envsolve.create.tools import Network, find_uv
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
    """What is to be made, where, and how.

    ``lock`` is the file that is named; with ``text``, a lock that was made for it, the file that it would be in.
    ``request`` is the command that makes it again.
    ``python`` bounds the interpreter of a venv. ``channel_logins`` are addresses of channels, bare and with what opens
    them. ``session`` opens the solver of conda packages, for an environment.yml, which has no addresses. ``force``
    replaces an environment of envsolve, ``changes`` installs and removes only what differs in it, and installs the
    packages ``again`` once more. ``keep`` leaves an unfinished one, ``builds`` lets packages without a wheel be built,
    within ``build_constraints`` and those that the lock records. ``tell`` gets what is to be known before anything is
    fetched. ``project`` is the file that requests the lock, if any. With ``dry_run`` nothing is made or changed.
    """

    prefix: str
    lock: Path
    request: str
    network: Network
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
    tell: Callable[[Note], None] = lambda _: None
    dry_run: bool = False
    project: str = ""


def make(
    asked: CreateRequest, plan: Plan, prefix: Path, matrix: Matrix, environ: Mapping[str, str], progress: Progress
) -> tuple[Note, ...]:
    """Install what ``plan`` has into the directory ``prefix``; what to note of it.

    Raises OutsideError if something cannot be fetched or run. OSError passes.
    """
    if plan.kind is Kind.VENV:
        with scratch_in(prefix) as scratch:
            _make_venv(asked, plan, prefix, find_uv(), environ, scratch, progress)
    return install_packages(asked, plan, prefix, matrix, environ, progress)


def install_packages(
    asked: CreateRequest,
    plan: Plan,
    prefix: Path,
    matrix: Matrix,
    environ: Mapping[str, str],
    progress: Progress,
    again: Collection[str] = (),
) -> tuple[Note, ...]:
    """Install the packages of ``plan`` into the environment at ``prefix``; those that are there stay.

    Conda packages in ``again`` are installed once more. What to note, and errors as in :func:`make`.
    """
    platform = this_platform()
    notes: list[Note] = []
    if plan.kind is Kind.CONDA:
        notes += _install_conda(asked, plan, prefix, environ, progress, again)
    if plan.lock.pins:
        from envsolve.create.builds import recorded_build_constraints
        from envsolve.create.wheels import Wheels, install_wheels

        constraints = tuple(dict.fromkeys((*asked.build_constraints, *recorded_build_constraints(plan.lock))))
        wheels = Wheels(plan.lock, find_uv(), plan.kind is Kind.VENV, asked.builds, constraints)
        logins = (*asked.network.logins, *(address for _, address in plan.logins))
        network = asked.network._replace(logins=logins)
        python = plan.kind.interpreter(prefix, windows=platform.is_windows)
        with scratch_in(prefix) as scratch:
            notes += install_wheels(python, wheels, network, environ, scratch, progress)
    if plan.kind is Kind.CONDA:
        write_variables(prefix, plan.lock.variables)
        notes += _write_activation(plan, prefix, platform, matrix)
    return tuple(notes)


def _make_venv(
    asked: CreateRequest,
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

    with tool_environ(environ, asked.network, scratch) as variables:
        progress("looking for a Python")
        found = find_python(plan.python, uv, variables, offline=asked.network.offline, project=asked.project)
        make_venv(prefix, found, uv, variables, progress)


def _install_conda(
    asked: CreateRequest,
    plan: Plan,
    prefix: Path,
    environ: Mapping[str, str],
    progress: Progress,
    again: Collection[str],
) -> list[Note]:
    from envsolve.conda.installing import Installation, install, missing_scripts, package_cache

    network = asked.network
    with ExitStack() as stack:
        if network.no_cache:
            passing = TemporaryDirectory(prefix="envsolve-", ignore_cleanup_errors=True)
            cache = Path(stack.enter_context(passing))
        elif network.cache_directory is not None:
            cache = network.cache_directory / _CONDA_CACHE
        else:
            cache = package_cache(environ)
        install(
            Installation(prefix, this_platform(), plan.lock.conda, cache, asked.channel_logins, network.offline, again),
            progress,
        )
    scripts = missing_scripts(prefix)
    if not scripts:
        return []
    text = f"{' and '.join(scripts)}: the post-link script was not run (like pixi)"
    return [Note("script-not-run", text)]


def _write_activation(plan: Plan, prefix: Path, platform: Platform, matrix: Matrix) -> Iterator[Note]:
    """Have set what frameworks here need; on Windows an environment is on its path, and no framework has XLA."""
    from envsolve.app.status.locked_stack import stack_in

    forget(prefix)
    held = None if platform.is_windows else stack_in(plan.lock, PurePath(plan.lock_name), plan.text, platform, matrix)
    rows = [row for rows in (held.releases.values() if held is not None else ()) for row in rows]
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
    """A directory below ``prefix`` that this user alone may read, gone when this is left. OSError passes.

    Files of a command may hold logins: here the next command clears them away after a kill, in the system's directory
    for such files they would stay.
    """
    folder = prefix / LOCKS
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:  # made with mode 0700
        yield Path(scratch)
