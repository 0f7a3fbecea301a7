"""An environment that is there, brought to another lock: only what differs is installed or removed.

While that goes on, its record says that it is changing: whatever fails then, the same command goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from envsolve.app.making import CreateRequest, Progress, install_packages, scratch_in
from envsolve.app.package_changes import Change
from envsolve.boundary.answers import ask_python
from envsolve.create.claims import claiming
from envsolve.create.plan import Kind, Plan
from envsolve.create.prefix import Place, list_own_files, note_foreign_files, require_claim
from envsolve.create.record import State, record_of, write_lock, write_record
from envsolve.create.tools import find_uv, tool_environ
from envsolve.create.wheels import uninstall
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.diagnose.environment.metadata import Package, Packages
from envsolve.errors import OutsideError
from envsolve.host.machine import this_platform
from envsolve.matrix.load import Matrix
from envsolve.model.note import Note

_SITE_PACKAGES = ("lib/python3.*/site-packages", "Lib/site-packages")


def can_change(place: Place, plan: Plan, python: Path, environ: Mapping[str, str]) -> bool:
    """Whether the environment can become that of ``plan`` as it stands: of the same kind, with a Python that fits."""
    if place.record is None or place.record.kind is not plan.kind:
        return False
    try:
        version = ask_python(python, "'.'.join(map(str, sys.version_info[:3]))", environ)
    except OutsideError:
        return False
    if plan.kind is Kind.VENV:
        return plan.python is None or str(version) in plan.python
    wanted = next((it.version for it in plan.lock.conda if it.name == "python"), "")
    return str(version).split(".")[:2] == wanted.split(".")[:2]


def change(
    asked: CreateRequest, plan: Plan, place: Place, matrix: Matrix, environ: Mapping[str, str], progress: Progress
) -> tuple[tuple[Change, ...], tuple[Note, ...]]:
    """Bring the environment at ``place`` to ``plan``; what changed in it, and what to note.

    Raises OutsideError where something cannot be fetched or run, UsageError where envsolve did not make it.
    """
    prefix, record = place.path, place.record
    assert record is not None
    require_claim(prefix)
    before, foreign = installed(prefix), note_foreign_files(prefix)
    with claiming(prefix):
        write_record(prefix, record._replace(state=State.CHANGING))
        _remove_others(asked, plan, prefix, environ, progress)
        notes = install_packages(asked, plan, prefix, matrix, environ, progress)
        write_lock(prefix, plan)
        list_own_files(prefix, foreign)
        write_record(prefix, record_of(plan, asked.request, State.FINISHED, prefix))
    return tuple(_differences(before, installed(prefix))), notes


def installed(prefix: Path) -> dict[str, str]:
    """The versions of what is installed below ``prefix``, conda packages with their build."""
    conda = {it.name: f"{it.version} {it.build}" for it in CondaMeta(prefix).packages}
    return {**{it.name: it.version for it in _wheels(prefix)}, **conda}


def _differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name), after.get(name))


def _wheels(prefix: Path) -> list[Package]:
    """The installed wheels, without what conda installed."""
    folders = (it for pattern in _SITE_PACKAGES for it in prefix.glob(pattern))
    of_conda = CondaMeta(prefix).distributions
    every = (it for it in Packages(folders).every if not it.is_of_conda)
    return [it for it in every if it.folder.relative_to(prefix).as_posix() not in of_conda]


def _remove_others(
    asked: CreateRequest, plan: Plan, prefix: Path, environ: Mapping[str, str], progress: Progress
) -> None:
    """Uninstall the wheels that the lock has not, but for the pip that installs the others."""
    uv = find_uv()
    kept = {pin.name for pin in plan.lock.pins} | (set() if uv else {"pip"})
    names = sorted({it.name for it in _wheels(prefix)} - kept)
    if not names:
        return
    python = plan.kind.interpreter(prefix, windows=this_platform().is_windows)
    with scratch_in(prefix) as scratch, tool_environ(environ, asked.network, scratch) as variables:
        uninstall(python, names, uv, variables, progress)
