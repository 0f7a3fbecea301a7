"""Add packages to an existing environment around its frameworks, with few changes.

At first all installed packages stay. If they conflict with the request, conflicting ones may change within the limits
of the frameworks. A framework, its CUDA, and packages that no index has never change: a framework of a vendor's image
could not be installed again.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve import __version__
from envsolve.app.environment.capturing import interpreter_of
from envsolve.app.environment.installed_conda import installed_conda
from envsolve.app.environment.installed_packages import InstalledPackages
from envsolve.app.lock.answer_refusal import refuse_strangers
from envsolve.app.lock.lock_notes import notes_of_metadata
from envsolve.app.lock.lock_refusal import packages_refusal
from envsolve.app.lock.lock_worlds import builds_of
from envsolve.app.packages.audit import WheelAudit
from envsolve.app.packages.direct_packages import with_direct
from envsolve.app.packages.lock_frameworks import require_wheels, with_frameworks
from envsolve.app.packages.lock_indexes import Connection, Places, start
from envsolve.app.packages.lock_stacks import attempt_of, joined_among, with_joined
from envsolve.app.packages.requirements import Requirements, for_target, read_requirements
from envsolve.app.packages.stack_wheels import indexes_for, limits_around, notes_of, question_around, required_by_builds
from envsolve.app.request.command import recorded_options
from envsolve.app.request.network import Network
from envsolve.app.request.refusal import refusal
from envsolve.app.request.targets import target_of
from envsolve.app.solve.solving import request_without_secrets
from envsolve.app.status.locked_stack import LockedStack, stack_in
from envsolve.app.status.package_changes import Change
from envsolve.conda.names import present_projects
from envsolve.create.changeable import require_changeable
from envsolve.create.claims import claiming, is_claimed
from envsolve.create.prefix import foreign_files, list_own_files
from envsolve.create.tools import InstallerNetwork, find_uv
from envsolve.create.wheels import Wheels, install_wheels
from envsolve.diagnose.environment.found import find_environment
from envsolve.errors import EnvsolveError, Hint, UnsolvableError, UsageError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, FRAMEWORKS
from envsolve.host.machine import this_platform
from envsolve.index.client import Indexes
from envsolve.index.fitting import Interpreter
from envsolve.lockfile.lock import Lock, Made, wheels_lock
from envsolve.lockfile.options import AROUND
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.host import Platform
from envsolve.model.need import Markers, Need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.prose import sentence_list
from envsolve.model.release import Release
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.request import Packages as RequestedPackages
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import is_same_version
from envsolve.resolve.closure.bounds import THE_STACK, constraints_of
from envsolve.resolve.closure.releases import Fitting, Releases
from envsolve.resolve.closure.resolve import Conflict, Found, Question, end_of_search, found_for
from envsolve.resolve.closure.resolve import Progress as ResolveProgress
from envsolve.resolve.closure.unknown_builds import is_about_cuda
from envsolve.resolve.solver import Solver
from envsolve.validation.child import Children
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import Packages

_PURE = "-none-any.whl"
_OF_NVIDIA = "nvidia-"
"""The prefix of the packages of CUDA itself, whose versions the frameworks require."""
_FEW = 2


class AddRequest(NamedTuple):
    """A request to add packages to the environment at ``prefix``: those of ``request``, from its indexes, for its GPUs.

    ``request`` has a format for wheels only. ``show`` gets a text for each step, ``packages`` the progress of the
    search. ``existing`` are the versions in an existing lock.
    """

    prefix: str
    request: Request
    network: Network
    matrix: Matrix
    show: Callable[[str], None]
    packages: ResolveProgress
    existing: Mapping[str, str] = {}


class Addition(NamedTuple):
    """The changes to the environment of ``inventory``, and the lock of the packages to install.

    ``wanted`` are the requirements. ``around`` are those packages of the requirements and of the lock's dependencies
    that are already installed: ``name==1.0``.
    """

    inventory: Inventory
    changes: tuple[Change, ...]
    lock: Lock
    notes: tuple[Note, ...]
    wanted: Requirements
    around: tuple[str, ...]


def planned(add_request: AddRequest, environ: Mapping[str, str]) -> Addition:
    """Return the changes to the environment.

    Raises UsageError if the environment cannot be changed, UnsolvableError if nothing fits it, OutsideError if an index
    fails.
    """
    inventory = _inventory(add_request, environ)
    require_changeable(inventory.executable, environ, is_systems=not inventory.owns_prefix)
    return _addition(add_request, inventory, environ)


def lock_around(
    add_request: AddRequest, recorded: Request, environ: Mapping[str, str]
) -> tuple[Platform, Lock, tuple[Note, ...]]:
    """The lock of the packages that the environment lacks; ``recorded`` is the request to record in it.

    Raises the same errors as :func:`planned`, and UsageError if the environment has another Python than requested.
    """
    require_wheels(add_request.request)
    inventory = _inventory(add_request, environ)
    python = add_request.request.python
    if python is not None and inventory.python not in python:
        message = (
            f"{add_request.prefix} has Python {inventory.python}, and {add_request.request.requester} requires {python}"
        )
        raise UsageError("contradictory-options", message, hints=(Hint("change one of them"),))
    found = _addition(add_request, inventory, environ)
    needs, constraints = found.wanted.as_recorded
    bare, _ = request_without_secrets(recorded)
    made = Made(
        __version__,
        f"envsolve lock --around {shlex.quote(add_request.prefix)}",
        tuple(dict.fromkeys((*map(str, recorded.frameworks), *needs))),
        exclude_newer=recorded.packages.exclude_newer,
        notes=("without what the environment has that it was made around: install it there, with --no-deps",),
        request_digest=found.wanted.digest,
        options=(*recorded_options(bare), *constraints, (AROUND, found.around)),
    )
    return this_platform(), found.lock._replace(made=made), found.notes


def _inventory(add_request: AddRequest, environ: Mapping[str, str]) -> Inventory:
    """The inventory of the environment. Raises UsageError if its Python does not run."""
    add_request.show("querying the environment's Python")
    with Children() as children:
        found = find_environment(add_request.prefix, None, environ, children)
    if not found.runs:
        message = f"the Python of {found.inventory.prefix} does not run"
        hints = (Hint("show the problem and its fix", f"envsolve doctor --prefix {shlex.quote(add_request.prefix)}"),)
        raise UsageError("python-not-found", message, hints=hints)
    return found.inventory


def _addition(add_request: AddRequest, inventory: Inventory, environ: Mapping[str, str]) -> Addition:
    add_request.show("package indexes")
    with start(add_request.request, add_request.network, environ) as (wanted, where, connection):
        try:
            return _Around(add_request, inventory, wanted, where, connection, environ).addition()
        except UnsolvableError as error:
            error.hints = tuple(
                it._replace(command=None) for it in error.hints
            )  # the commands would write another lock
            raise


def install(
    addition: Addition,
    network: InstallerNetwork,
    environ: Mapping[str, str],
    show: Callable[[str], None],
    *,
    builds: bool,
) -> tuple[Note, ...]:
    """Install the packages of ``addition`` and nothing else. Returns notes.

    If that fails, the error says in which state the environment is.
    """
    inventory = addition.inventory
    prefix, before = inventory.prefix, _versions(inventory)
    is_own = is_claimed(prefix)
    foreign = frozenset(foreign_files(prefix)) if is_own else frozenset()
    wheels = Wheels(addition.lock, find_uv(), alone=False, builds=builds)
    try:
        with (
            claiming(prefix) if is_own else nullcontext(),
            TemporaryDirectory(prefix="envsolve-", ignore_cleanup_errors=True) as scratch,
        ):
            notes = install_wheels(inventory.executable, wheels, network, environ, Path(scratch), show)
            if is_own:
                list_own_files(prefix, foreign)
    except EnvsolveError as error:
        after = _versions(inventory)
        changed = sorted(it for it in {*before, *after} if before.get(it) != after.get(it))
        state = f"it has other versions of {', '.join(changed)} now" if changed else "nothing in it has changed"
        error.cause = (*error.cause, f"{prefix}: {state}")
        raise
    return tuple(notes)


def _versions(inventory: Inventory) -> dict[str, str]:
    return {name: it.version for name, it in Packages(inventory.search_path).by_name.items()}


def _by_name(request: Request, installed: Mapping[str, str]) -> Iterator[tuple[Need, str]]:
    """The frameworks of a request, as packages: an installed one may be a build that the matrix does not have.

    ``installed`` are the installed packages of frameworks. For other frameworks this is the CPU package if the request
    is for the CPU.
    """
    for it in request.frameworks:
        known = FRAMEWORKS.get(it.framework)
        if known is not None:
            there = [name for name, framework in installed.items() if framework == it.framework]
            of_cpu = tuple(known.cpu_wheels) if request.wants_cpu else ()
            yield Need((*there, *of_cpu, *known.wheels)[0], (), str(it.specifier), ""), str(request.requester)


def _of_installers(environ: Mapping[str, str]) -> Requirements:
    """The constraints in the settings of pip and uv, as in NVIDIA's images."""
    files = (file for name in ("PIP_CONSTRAINT", "UV_CONSTRAINT") for file in environ.get(name, "").split())
    return read_requirements(RequestedPackages(constraints=tuple(dict.fromkeys(files))))


def _newest(needs: Iterable[Need], question: Question, indexes: Indexes) -> Iterator[tuple[str, str]]:
    """The newest version of each package that ``needs`` allow, regardless of installed packages."""
    fitting = Fitting(question.wanted)
    specifiers: dict[str, list[str]] = {}
    for need in needs:
        if need.name not in question.present and not need.url:
            specifiers.setdefault(need.name, []).append(need.specifier)
    for name, of in specifiers.items():
        project = indexes.project(name)
        if project is not None:
            releases = Releases(project, fitting)
            mask = releases.mask(",".join(filter(None, of)))
            position = releases.newest(mask, prereleases=question.wanted.prereleases)
            if position is not None:
                yield name, project.versions[position]


def _solution_of(builds: Mapping[str, Release], request: Request, problem: Problem, solver: Solver) -> Solution | None:
    attempt = attempt_of(builds, request, problem, solver)
    return None if attempt is None else attempt.solution


class _Around:
    """The search for packages around the installed ones."""

    def __init__(
        self,
        add_request: AddRequest,
        inventory: Inventory,
        wanted: Requirements,
        where: Places,
        connection: Connection,
        environ: Mapping[str, str],
    ) -> None:
        self._add_request, self._inventory, self._where, self._connection = add_request, inventory, where, connection
        self._platform = this_platform()
        self._interpreter: Interpreter = interpreter_of(inventory, self._platform)
        markers = Markers(self._interpreter.marker_values())
        self._requirements = for_target(
            with_direct(wanted, connection, add_request.request.format, markers.holds, {}), markers
        )
        self._installed = InstalledPackages(inventory, markers, self._requirements.addresses)
        self._wanted = self._requirements._replace(
            needs=(*_by_name(add_request.request, self._installed.frameworks), *self._requirements.needs),
            constraints=(*self._requirements.constraints, *for_target(_of_installers(environ), markers).constraints),
        )
        self._matrix = add_request.matrix
        self._end = end_of_search(builds=add_request.request.packages.allow_builds)
        self._fixed: frozenset[str] = frozenset()
        self._left_out: set[str] = set()
        self._conda = installed_conda(inventory.prefix).packages if inventory.is_conda else ()
        stack = self._installed_stack()
        self._known = {} if stack is None else {name: rows[0] for name, rows in stack.releases.items() if rows}
        self._unknown = [it for it, framework in self._installed.frameworks.items() if framework not in self._known]
        python = self._interpreter.minor_version
        frameworks = (FrameworkRequest(name, SpecifierSet(f"=={it.version}")) for name, it in self._known.items())
        request = add_request.request._replace(frameworks=tuple(frameworks), python=SpecifierSet(f"=={python}.*"))
        target = with_frameworks(target_of(request, self._matrix, environ), self._wanted, where)
        there = set(self._installed.frameworks.values()) - self._known.keys()
        named = tuple(it for it in target.problem.frameworks if it.framework not in there)
        self._request, self._problem = target.request, target.problem._replace(frameworks=named)

    def _installed_stack(self) -> LockedStack | None:
        """The installed frameworks, as builds of the matrix."""
        packages = (it for it in self._installed.by_name.values() if not it.is_of_conda)
        pins = tuple(Pin(it.name, it.version, (), None) for it in packages)
        return stack_in(Lock(pins, conda=self._conda), PurePath("pylock.toml"), "", self._platform, self._matrix)

    def addition(self) -> Addition:
        """The changes. Raises UnsolvableError, OutsideError."""
        request = self._request
        audit = WheelAudit(request, lambda: self._connection.wheels, self._add_request.packages)
        joined: list[str] = []
        refused: UnsolvableError | None = None
        while True:
            try:
                solution = None
                solution = self._stack(joined)
                found = self._found(solution)
            except UnsolvableError as error:
                refused = refused or error
                new_builds = self._new_builds(solution)
                if not new_builds:
                    raise refused from None
                self._left_out |= new_builds
                continue
            new = [it for it in joined_among(found.pins, self._problem) if it not in joined]
            if new:
                joined += new
                continue
            self._matrix, is_suited = audit.learned(found.pins, solution, self._matrix)
            if is_suited:
                break
        refuse_strangers(solution, found.pins, request)
        before = {name: it.version for name, it in self._installed.by_name.items()}
        pins = tuple(
            it for it in found.pins if it.index_url is None or not is_same_version(before.get(it.name), it.version)
        )
        notes = (
            *self._held_back(found),
            *(note for pin in pins for note in notes_of(pin)),
            *notes_of_metadata(found, request),
            *audit.notes(pins),
            *self._not_verified(pins, solution),
            *self._where.notes,
            *self._connection.notes,
        )
        changes = tuple(Change(it.name, before.get(it.name), it.version) for it in pins)
        bare = tuple(dict.fromkeys(it._replace(command=None) for it in notes))
        needed = {*(need.name for need, _ in self._wanted.needs), *(name for pin in pins for name in pin.requires)}
        around = tuple(f"{it}=={before[it]}" for it in sorted(needed & self._fixed))
        return Addition(self._inventory, changes, self._lock(pins), bare, self._requirements, around)

    def _lock(self, pins: tuple[Pin, ...]) -> Lock:
        where = self._where
        return wheels_lock(pins, self._interpreter, where.default_shown, default_is_plain=where.is_plain)

    def _new_builds(self, solution: Solution | None) -> set[str]:
        """The builds of frameworks that are not installed; other builds of these may fit the installed packages."""
        releases = (it.release for it in (solution.choices if solution is not None else ()))
        return {it.label for it in releases if it.framework not in self._known}

    def _stack(self, joined: list[str]) -> Solution | None:
        """The frameworks, including new ones, as builds for this machine; None if unknown.

        Raises UnsolvableError if a requested framework has no build for it.
        """
        problem = with_joined(self._problem, self._wanted, joined)
        request, solver = self._request._replace(frameworks=problem.frameworks), Solver(self._matrix, self._there)
        new = [it.framework for it in problem.frameworks if it.framework not in self._known]
        if not self._known:
            solution = solver.solve(request, problem) if new else None
            if new and solution is None and not problem.cpu:
                raise refusal(request, problem, solver)
            return solution
        builds = dict(self._known)
        solution = _solution_of(builds, request, problem, solver)
        rows = builds_of(solver, request, problem) if new and solution is not None else {}
        for name in new if solution is not None else ():
            tried = ((row, _solution_of({**builds, name: row}, request, problem, solver)) for row in rows[name][::-1])
            row, solution = next((it for it in tried if it[1] is not None), (None, None))
            if row is None and name not in joined and not problem.cpu:
                installed = sentence_list(self._installed.by_name[it].label for it in self._installed.frameworks)
                message = f"no build of {name} for this machine goes with the installed {installed}"
                raise UnsolvableError("packages-conflict", message, hints=(Hint("use a separate environment"),))
            if row is None:
                return None
            builds[name] = row
        return solution

    def _there(self, table: FrameworkTable) -> FrameworkTable:
        return table._replace(releases=tuple(it for it in table.releases if it.label not in self._left_out))

    def _found(self, solution: Solution | None) -> Found:
        """All packages to install or change; others stay. Raises UnsolvableError."""
        self._fixed = frozenset(self._installed.by_name)
        while True:
            try:
                return self._found_around(solution)
            except Conflict as conflict:
                in_the_way = self._installed.in_the_way(conflict, self._fixed)
                stays = {it: self._installed.why_it_stays(it, self._unknown) for it in in_the_way}
                loose = {name for name, why in stays.items() if not why}
                if not loose:
                    refused = packages_refusal(conflict, self._request, None)
                    refused.cause += tuple(f"{name} stays: {why}" for name, why in sorted(stays.items()))
                    raise refused from conflict
                self._fixed -= loose

    def _found_around(self, solution: Solution | None) -> Found:
        packages, wanted, installed, fixed = (
            self._add_request.request.packages,
            self._wanted,
            self._installed,
            self._fixed,
        )
        limits = limits_around(solution, wanted, self._matrix, fixed)
        question = question_around(solution, wanted, self._interpreter, packages, self._matrix, limits)
        needs = (it for it in question.roots if it[1] != THE_STACK or it[0].name not in fixed)
        builds = {name: FRAMEWORK_OF_WHEEL[name] for name in installed.by_name if name in FRAMEWORK_OF_WHEEL}
        question = question._replace(
            roots=(*needs, *installed.requirements_of(fixed), *self._of_builds(fixed)),
            limits=lambda name: () if name in fixed else limits(name),
            locked={
                **self._add_request.existing,
                **{name: it.version for name, it in installed.by_name.items() if name not in fixed},
            },
            present={**present_projects(self._conda), **installed.present(fixed)},
            judge=required_by_builds(self._matrix, self._platform, (), builds),
            virtual=(),
        )
        indexes = indexes_for(solution, wanted, packages, self._where, self._connection)
        question = question._replace(newest=dict(_newest([it for it, _ in wanted.needs], question, indexes)))
        return found_for(question, indexes, self._end, self._add_request.packages)

    def _of_builds(self, fixed: Collection[str]) -> Iterator[tuple[Need, str]]:
        """Requirements of the installed frameworks on packages that may change, beyond their metadata."""
        facts_of = partial(self._matrix.build_facts, platform=self._platform)
        installed = self._installed.by_name
        for build in (it for it in self._known.values() if it.source.is_wheel and it.package in installed):
            for need in constraints_of(build, facts_of):
                if need.name in installed and need.name not in fixed:
                    yield need, f"the installed {installed[build.package].label}"

    def _held_back(self, found: Found) -> Iterator[Note]:
        """The requested packages that are not at their newest version because of installed packages."""
        because = {it.name: it.because for it in found.pins}
        for it in found.behind:
            reasons = tuple(dict.fromkeys((*it.limited_by, *because[it.name])))[:_FEW]
            why = " and ".join(reasons) or "it does not go with what is installed"
            way = f"require {it.name}>={it.newest} if that may change"
            note = Note("held-back", f"{it.name} {it.version} is used, not {it.newest}: {why}; {way}")
            yield note.about(name=it.name, version=it.version, newest=it.newest)

    def _not_verified(self, pins: Iterable[Pin], solution: Solution | None) -> Iterator[Note]:
        """Packages of ``pins`` with CUDA code if nothing says which CUDA and GPU it must support."""
        names = [
            it.name
            for it in pins
            if it.name in FRAMEWORK_OF_WHEEL
            or (
                is_about_cuda(it.name, it.requires)
                and not it.files[0].name.endswith(_PURE)
                and not it.name.startswith(_OF_NVIDIA)
            )
        ]
        if not names or (solution is not None and not self._unknown):
            return
        if self._unknown:
            installed = sentence_list(self._installed.by_name[it].label for it in self._unknown)
            why = f"the matrix does not know the installed {installed}"
        elif self._problem.cpu:
            why = "no GPU was found here; name the GPU with --gpu"
        else:
            why = "the installed frameworks are not known to run on this machine's GPU"
        yield Note("not-verified", f"CUDA code of {', '.join(names)} was not verified: {why}")
