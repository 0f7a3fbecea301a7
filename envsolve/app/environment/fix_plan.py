"""The environment that fixes what the doctor found: the installed frameworks and what goes with them.

It is a text for pip or conda, with the commands that apply it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve import __version__
from envsolve.app.environment.doctoring import Diagnosed, DoctorRequest
from envsolve.app.request.own_rows import stack_is_own
from envsolve.app.request.targets import Target
from envsolve.app.solve.solving import framework_requests, matrix_date_of, notes_of, solve_request, stacks_of
from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.commands import pip_command
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.shells import Shell
from envsolve.errors import EnvsolveError, Hint, UsageError
from envsolve.frameworks import FRAMEWORKS, Framework, frameworks_among
from envsolve.lockfile import Answer
from envsolve.lockfile.lock import RequestedSpec
from envsolve.lockfile.pip_specs import pip_specs
from envsolve.lockfile.stack_requirements import stack_requirements
from envsolve.matrix import Matrix
from envsolve.model.names import normalized
from envsolve.model.need import parse_need
from envsolve.model.note import Note
from envsolve.model.release import Release, Source
from envsolve.model.request import LockedVersions, Packages, Policy, Request, parse_versions
from envsolve.model.solution import Solution
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.bounds import constraints_of
from envsolve.resolve.solver import Solver

_NEW = "NEW_ENV"


class _Way(NamedTuple):
    """One thing to try: the frameworks as typed and a Python; ``keeps`` where the versions are those installed."""

    frameworks: tuple[str, ...]
    python: SpecifierSet | None
    keeps: bool


def fix_plan(
    diagnosed: Diagnosed, asked: DoctorRequest, environ: Mapping[str, str], file: str | None = None
) -> tuple[str, tuple[Note, ...]]:
    """The environment that would fix it, as text, and what to say beside it; ``file`` is where it is written.

    For an environment of conda that is an environment.yml, for any other what pip reads. It is for the installed
    frameworks and the packages that go with them, and tried are, in order: 1. their exact versions with the
    environment's Python 2. with another 3. other patch releases 4. other versions. What is for another Python goes into
    a new environment. On a machine without a GPU an environment for CUDA stays one.
    Raises UsageError if no framework is installed, UnsolvableError where nothing runs here.
    """
    matrix = Matrix(asked.matrix_directory)
    known = [(name, version) for name, version in diagnosed.frameworks if name in matrix.framework_names]
    if not known:
        raise UsageError(
            "nothing-to-plan",
            "the environment has no framework that envsolve knows, so there is nothing to fix",
            hints=(Hint("request one", "envsolve --framework pytorch --gpu auto"),),
        )
    request, notes = _machine(diagnosed.scene, [name for name, _ in known])
    planner = _Planner(diagnosed, matrix, environ, file or "THIS_FILE")
    minor = ".".join(diagnosed.environment.python.split(".")[:2])
    refusals: list[tuple[_Way, EnvsolveError]] = []
    for way in _ways(known, minor):
        try:
            text, more = planner.plan(
                request._replace(frameworks=framework_requests(way.frameworks, matrix), python=way.python),
                separate=bool(minor) and way.python is None,
            )
        except EnvsolveError as error:
            refusals.append((way, error))
            continue
        changes = _changes(way, refusals, minor)
        return text, (*(Note("plan", it) for it in (*notes, *changes)), *more)
    raise refusals[-1][1]


def _ways(known: Sequence[tuple[str, str]], minor: str) -> Iterator[_Way]:
    exact = tuple(f"{name}=={version.partition('+')[0]}" for name, version in known)
    patches = tuple(f"{name}=={'.'.join(version.partition('+')[0].split('.')[:2])}.*" for name, version in known)
    pythons = [parse_versions(minor), None] if minor else [None]
    for frameworks in (exact, patches, tuple(name for name, _ in known)):
        for python in pythons:
            yield _Way(frameworks, python, frameworks is exact)


def _machine(scene: Scene, names: Sequence[str]) -> tuple[Request, list[str]]:
    """The request for this machine; where no GPU is detected, for the GPUs and the CUDA of the installed builds.

    Raises UsageError if these are unknown.
    """
    kind = "environment" if scene.inventory.is_conda else "requirements"
    builds = [it for it in scene.builds if it.name in names and it.cuda is not None]
    here = Request((), gpus=("auto",), format=kind, prefer=Policy.LOCKED, locked=_held(scene, builds))
    if scene.host.capabilities or not builds:
        return here, []
    codes = [release.code for build in builds for release in build.releases[:1]]
    targets = sorted({target.capability for code in codes for target in code.sass})
    gpus = [gpu for gpu in targets if all(code.runs_as(gpu) is not None for code in codes)]
    if not gpus or len(codes) < len(builds):
        raise _without_gpu(builds)
    cuda = {f"{build.cuda_version or build.cuda_major}.*" for build in builds}
    said = f"no GPU was detected: planned for the GPUs that the installed builds support, {gpus[0]} to {gpus[-1]}"
    one = parse_versions(cuda.pop()) if len(cuda) == 1 else None
    return here._replace(gpus=tuple(map(str, gpus)), cuda=one), [said]


def _held(scene: Scene, builds: Sequence[Build]) -> LockedVersions:
    """The builds that stay if they run here."""
    packages = [(it.package.name, it.package.version, "") for it in builds if it.package is not None]
    packages += [(it.conda.name, it.conda.version, it.conda.build) for it in builds if it.conda is not None]
    cuda = next((str(it.cuda_version) for it in builds if it.cuda_version is not None), None)
    return LockedVersions(tuple(packages), ".".join(scene.inventory.python.split(".")[:2]) or None, cuda)


def _without_gpu(builds: Sequence[Build]) -> UsageError:
    asked = " ".join(f"-f {build.name}" for build in builds)
    return UsageError(
        "no-gpu-to-plan-for",
        "the environment is for CUDA, and no GPU was detected on this machine",
        (f"envsolve does not know which GPUs {builds[0].label} supports",),
        (
            Hint("run it on the machine with the GPU"),
            Hint("or name that GPU", f"envsolve {asked} --gpu 'RTX 4090'"),
            Hint("or plan for the CPU", f"envsolve {asked} --gpu none"),
        ),
    )


def _changes(way: _Way, refusals: Sequence[tuple[_Way, EnvsolveError]], minor: str) -> Iterator[str]:
    """What of the environment the plan does not keep, a line each, with what the solver said against it.

    The versions were given up for the refusal of them with whatever Python. Python was given up for the last refusal.
    """
    if not way.keeps:
        error = [error for tried, error in refusals if tried.keeps][-1]
        yield f"the installed versions cannot stay: {_reason(error)}"
    if way.python is None and minor:
        yield f"Python {minor} cannot stay: {_reason(refusals[-1][1])}"


def _reason(error: EnvsolveError) -> str:
    """A refusal on one line; of a chain of facts its first says most and is shortest."""
    says_all = error.code == "no-such-release" or not error.cause
    return " ".join((error.message if says_all else error.cause[0]).split())


class _Planner:
    """Makes the text for a request, for one environment."""

    def __init__(self, diagnosed: Diagnosed, matrix: Matrix, environ: Mapping[str, str], file: str) -> None:
        self._file = file
        self._scene = diagnosed.scene
        self._environment = diagnosed.environment
        self._matrix = matrix
        self._environ = environ

    def plan(self, request: Request, *, separate: bool) -> tuple[str, tuple[Note, ...]]:
        """The text in the request's format, and its notes; in an environment of its own if ``separate``."""
        if request.format == "environment":
            return self._of_conda(request)
        targets, solutions, _ = stacks_of(request, self._matrix, self._environ, Solver(self._matrix))
        (target,), (solution,) = targets, solutions
        beside = tuple(self._beside(solution))
        commands = (
            self._in_new(solution) if separate or not self._environment.runs else self._in_place(solution, beside)
        )
        text = stack_requirements(self._answer(target, solution, beside), tuple(commands))
        return text, tuple(dict.fromkeys(notes_of(targets, solutions)))

    def _of_conda(self, request: Request) -> tuple[str, tuple[Note, ...]]:
        known = [FRAMEWORKS[it.framework] for it in request.frameworks if it.framework in FRAMEWORKS]
        companions = tuple(self._companions(known))
        beside = Packages(requirements=tuple(sorted({it.name for it in companions})))
        request = request._replace(packages=beside)
        plain = request._replace(prefer=Policy.NEWEST_FRAMEWORK, locked=LockedVersions())
        solved = solve_request(request, self._matrix, self._environ, recorded=plain)
        of_pip = [it.name for it in self._of_pip(companions)]
        shell, prefix = self._scene.shell_kind, str(self._scene.inventory.prefix)
        first = [shell.joined(pip_command("uninstall", ["-y", *of_pip], self._scene))] if of_pip else []
        apply = shell.joined(["conda", "env", "update", "-p", prefix, "-f", self._file])
        notes = (Note("plan", f"apply it with {' and then '.join(f'`{it}`' for it in (*first, apply))}"),)
        return solved.texts[0][1], (*notes, *solved.notes)

    def _of_pip(self, companions: Iterable[Package]) -> Iterator[Package]:
        """The frameworks of the environment, and ``companions``, that pip has installed: conda brings them instead."""
        mine = [it for it in self._scene.packages.by_name.values() if frameworks_among([it.name])]
        yield from (it for it in dict.fromkeys((*mine, *companions)) if it.is_wheel and not it.is_of_conda)

    def _answer(self, target: Target, solution: Solution, beside: tuple[RequestedSpec, ...]) -> Answer:
        date, own = matrix_date_of(target.problem, self._matrix), stack_is_own(self._matrix, solution)
        return Answer(
            solution, target.hosts, self._environment.plan, date, __version__, own_matrix=own, requested=beside
        )

    def _beside(self, solution: Solution) -> Iterator[RequestedSpec]:
        """What is installed and goes with the frameworks of ``solution``, and bounds on what they break with."""
        have = self._scene.packages.by_name
        said = {normalized(Requirement(spec).name) for spec, _ in pip_specs(solution)}
        for release in (choice.release for choice in solution.choices):
            for package in self._companions(frameworks_among([release.package])):
                if package.name not in said:
                    said.add(package.name)
                    yield RequestedSpec(self._companion(package, release), f"goes with {release.package}", by_pip=True)
            for need in constraints_of(release, self._matrix.build_facts):
                if need.name in have and need.name not in said:
                    said.add(need.name)
                    why = f"{release.package} {release.version} does not work with other versions"
                    yield RequestedSpec(str(need), why, by_pip=True)

    def _companions(self, frameworks: Sequence[Framework]) -> Iterator[Package]:
        """The installed packages that are nothing without one of ``frameworks``, and no part of one."""
        have = self._scene.packages.by_name
        parts = {name for name in have if frameworks_among([name])}
        waiting = [it for it in have.values() if it.name in parts]
        beside = {name for name in have if any(it.is_beside(name) for it in frameworks)}
        while waiting:
            new = {parse_need(text).name for text in waiting.pop().requires} & beside - parts
            parts |= new
            waiting += [have[name] for name in new]
        for name in sorted(beside - parts):
            if have[name].is_wheel and not have[name].editable:
                yield have[name]

    def _companion(self, package: Package, release: Release) -> str:
        """How a companion of ``release`` is requested: in the installed version where that goes with it."""
        version = parsed_version(package.version)
        if version is None or not self._fits(package, version, release):
            return package.name
        return f"{package.name}=={_build_of(package.name, version, release)}"

    def _fits(self, package: Package, version: Version, release: Release) -> bool:
        """Whether the installed version of a companion goes with ``release``, by its metadata and the matrix."""
        wanted = [it for it in self._scene.wanted if it.requirer.name == package.name and it.name == release.package]
        known = self._matrix.build_facts(package.name, self._scene.platform)
        facts = [it for it in known if it.covers(str(version))]
        return all(it.requirement.specifier.contains(release.version, prereleases=True) for it in wanted) and all(
            (release.cuda is None or it.go_with(release.cuda))
            and it.without_code_for(self._scene.host.capabilities, release.cuda) is None
            and all(
                need.name != release.package or SpecifierSet(need.specifier).contains(release.version)
                for need in it.requires
            )
            for it in facts
        )

    def _in_place(self, solution: Solution, beside: Sequence[RequestedSpec]) -> Iterator[str]:
        """The commands that apply a plan in the environment: first away with what pip would leave as it is."""
        shell = self._scene.shell_kind
        stay = sorted(self._left_by_pip(solution, beside))
        if stay:
            yield shell.joined(pip_command("uninstall", ["-y", *stay], self._scene))
        words = pip_command("install", ["-r", self._file], self._scene)
        yield shell.joined([*words, *(["--index-strategy", "unsafe-best-match"] if words[0] == "uv" else [])])

    def _left_by_pip(self, solution: Solution, beside: Sequence[RequestedSpec]) -> Iterator[str]:
        """The packages that are in the way: another build of a version that is requested, and rivals for its module.

        To pip 2.6.0+cpu is 2.6.0, so it leaves that. A rival takes files of its own with it when it goes.
        """
        have = self._scene.packages.by_name
        specs = [*(spec for spec, _ in pip_specs(solution)), *(it.spec for it in beside)]
        asked = {normalized(it.name): it.specifier for it in map(Requirement, specs)}
        for known in FRAMEWORKS.values():
            chosen = asked.keys() & set(known.rivals)
            there = have.keys() & set(known.rivals)
            if chosen and there - chosen:
                yield from there
        for name, specifier in asked.items():
            pinned = next(
                (Version(it.version) for it in specifier if it.operator == "==" and "*" not in it.version), None
            )
            installed = parsed_version(have[name].version) if name in have else None
            if (
                pinned is not None
                and installed is not None
                and installed != pinned
                and specifier.contains(installed, prereleases=True)
            ):
                yield name

    def _in_new(self, solution: Solution) -> Iterator[str]:
        """The commands that apply a plan in a new environment."""
        python = str(solution.python)
        shell = self._scene.shell_kind
        if shell is Shell.POSIX:
            yield f"python{python} -m venv {_NEW}"
            yield f"{_NEW}/bin/python -m pip install -r {shell.quoted(self._file)}"
        else:
            yield f"py -{python} -m venv {_NEW}"
            yield f"{_NEW}\\Scripts\\python -m pip install -r {shell.quoted(self._file)}"


def _build_of(name: str, version: Version, release: Release) -> str:
    """The version of a companion as the index of ``release`` has it: with a local version in PyTorch's own."""
    local = release.full_version.local if release.source is Source.PYTORCH else None
    of_index = any(name in it.own_index for it in frameworks_among([release.package]))
    return f"{version.public}+{local}" if local is not None and of_index else version.public
