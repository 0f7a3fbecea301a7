"""Change an existing environment to another lock: only what differs is installed or removed.

Meanwhile its record says that it is changing. After a failure, the same command continues.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from envsolve.app.environment.making import CreateRequest, Progress, install_packages, scratch_in
from envsolve.app.status.locked_stack import packages_in
from envsolve.app.status.package_changes import Change
from envsolve.boundary.answers import query_python
from envsolve.create.claims import altered_files, claiming
from envsolve.create.plan import Kind, Plan
from envsolve.create.prefix import Place, list_own_files, note_foreign_files, require_claim
from envsolve.create.record import State, record_of, write_lock, write_record
from envsolve.create.tools import find_uv, tool_environ
from envsolve.create.wheels import uninstall
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.errors import OutsideError
from envsolve.host.machine import this_platform
from envsolve.matrix.load import Matrix
from envsolve.model.note import Note
from envsolve.model.versions import is_same_version
from envsolve.validation.metadata import LIBRARY, Package, Packages
from envsolve.validation.metadata import read_record as read_rows

_SITE_PACKAGES = ("lib/python3.*/site-packages", "Lib/site-packages")


def can_change(place: Place, plan: Plan, python: Path, environ: Mapping[str, str]) -> bool:
    """Whether the environment can be changed to ``plan``: it has the same kind and a fitting Python."""
    if place.record is None or place.record.kind is not plan.kind:
        return False
    try:
        version = query_python(python, "'.'.join(map(str, sys.version_info[:3]))", environ)
    except OutsideError:
        return False
    if plan.kind is Kind.VENV:
        return plan.python is None or str(version) in plan.python
    wanted = next((it.version for it in plan.lock.conda if it.name == "python"), "")
    return str(version).split(".")[:2] == wanted.split(".")[:2]


def change(
    request: CreateRequest, plan: Plan, place: Place, matrix: Matrix, environ: Mapping[str, str], progress: Progress
) -> tuple[tuple[Change, ...], tuple[Note, ...]]:
    """Change the environment at ``place`` to ``plan``. Returns the changes and notes.

    Raises OutsideError if something cannot be fetched or run, UsageError if envsolve did not create it.
    """
    prefix, record = place.path, place.record
    assert record is not None
    require_claim(prefix)
    before, foreign, altered = installed(prefix), note_foreign_files(prefix), frozenset(altered_files(prefix))
    with claiming(prefix):
        write_record(prefix, record._replace(state=State.CHANGING, passed=None))
        again = _remove_wheels(request, plan, prefix, altered, environ, progress)
        if again and not request.network.offline:  # hard links give the cache the same damage
            request = request._replace(network=request.network._replace(no_cache=True))
        notes = install_packages(request, plan, prefix, matrix, environ, progress, again)
        write_lock(prefix, plan)
        after = installed(prefix)
        changes = tuple(_changes(before, after, again))
        changed = {it.name for it in changes}
        list_own_files(prefix, foreign.difference(*(files for name, files in _files(prefix) if name in changed)))
        finished = record_of(plan, request.command, State.FINISHED, prefix)
        write_record(prefix, finished if changes else finished._replace(passed=record.passed))
    if again:
        text = f"files of {' and '.join(sorted(again))} were missing or changed: installed again"
        notes = (*notes, Note("installed-again", text))
    return changes, notes


def would_change(plan: Plan, prefix: Path) -> tuple[Change, ...]:
    """What :func:`change` or, without an environment, a creation would change at ``prefix``.

    Packages whose marker depends on the version of Python count for every version.
    """
    wanted: dict[str, list[str]] = {}
    for it in packages_in(plan.lock, this_platform()):
        wanted.setdefault(it.name, []).append(f"{it.version} {it.build or ''}".strip())
    there = installed(prefix)
    pip = set() if find_uv() else {"pip"}
    again = damaged(prefix) - pip
    return tuple(
        Change(name, there.get(name), " or ".join(wanted[name]) if name in wanted else None)
        for name in sorted({*wanted, *there.keys() - pip})
        if name in again or name not in there or not any(is_same(there[name], it) for it in wanted.get(name, ()))
    )


def is_same(version: str, other: str) -> bool:
    """Whether a package installed in ``version`` is the one in a lock with version ``other``, "" for any."""
    return not other or is_same_version(version, other)


def installed(prefix: Path) -> dict[str, str]:
    """The versions of the packages installed below ``prefix``; for conda packages with their build."""
    conda = {it.name: f"{it.version} {it.build}" for it in CondaMeta(prefix).packages}
    return {**{it.name: it.version for it in _wheels(prefix)}, **conda}


def damaged(prefix: Path, altered: Collection[Path] = ()) -> frozenset[str]:
    """The packages below ``prefix`` that lack files, or whose libraries were changed.

    Also those whose RECORD was rewritten: someone installed the same version again. Edited modules are left alone.
    ``altered`` are files that were changed before this command claimed the directory.
    """
    wrong = {it for it in (*altered, *altered_files(prefix)) if _is_damage(prefix / it)}
    return frozenset(name for name, files in _files(prefix) if not wrong.isdisjoint(files)) if wrong else frozenset()


def _is_damage(path: Path) -> bool:
    is_of_package = path.name == "RECORD" or LIBRARY.search(path.name) is not None
    is_there = os.path.exists(path)  # noqa: PTH110 - it never raises; a link to nothing is none
    return is_of_package or not is_there or not path.stat().st_size


def _files(prefix: Path) -> Iterator[tuple[str, set[Path]]]:
    """The packages below ``prefix``, each with the files that it installed."""
    for it in _wheels(prefix):
        yield it.name, {(it.location / row.path).relative_to(prefix) for row in read_rows(it.folder) or ()}
    for package in CondaMeta(prefix).packages:
        yield package.name, set(map(Path, package.files))


def _changes(before: Mapping[str, str], after: Mapping[str, str], again: Collection[str]) -> Iterator[Change]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name) or name in again:
            yield Change(name, before.get(name), after.get(name))


def _wheels(prefix: Path) -> tuple[Package, ...]:
    """The installed wheels, without those that conda installed."""
    folders = (it for pattern in _SITE_PACKAGES for it in prefix.glob(pattern))
    return CondaMeta(prefix).without(Packages(folders).every)


def _remove_wheels(
    request: CreateRequest,
    plan: Plan,
    prefix: Path,
    altered: Collection[Path],
    environ: Mapping[str, str],
    progress: Progress,
) -> frozenset[str]:
    """Uninstall the wheels that are not in the lock, and damaged ones. Returns all damaged packages.

    The pip that installs the others stays.
    """
    uv = find_uv()
    pip = set[str]() if uv else {"pip"}
    python = plan.kind.interpreter(prefix, windows=this_platform().is_windows)
    with scratch_in(prefix) as scratch, tool_environ(environ, request.network, scratch) as variables:

        def remove(names: Collection[str]) -> None:
            if names:
                uninstall(python, sorted(names), uv, variables, progress)

        remove({it.name for it in _wheels(prefix)} - {pin.name for pin in plan.lock.pins} - pip)
        progress("looking for damaged files")
        again = (damaged(prefix, altered) | (request.again & installed(prefix).keys())) - pip
        remove(again & {it.name for it in _wheels(prefix)})
    return again
