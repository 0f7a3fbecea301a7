"""The environment that fixes the doctor's findings: the installed frameworks and their companions.

It is a text for pip or conda, with the commands that apply it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
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
from envsolve.diagnose.environment.commands import Shell, pip_command
from envsolve.diagnose.environment.scene import Scene
from envsolve.errors import EnvsolveError, Hint, UsageError
from envsolve.frameworks import FRAMEWORKS, Framework, frameworks_among
from envsolve.lockfile import Answer
from envsolve.lockfile.lock import RequestedSpec
from envsolve.lockfile.pip_specs import pip_specs
from envsolve.lockfile.stack_requirements import stack_requirements
from envsolve.matrix import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.names import normalized
from envsolve.model.note import Note
from envsolve.model.release import Release, Source
from envsolve.model.request import LockedVersions, Packages, Policy, Request, in_usual_order, parse_versions
from envsolve.model.solution import Solution
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.bounds import constraints_of
from envsolve.resolve.solver import Solver
from envsolve.validation.metadata import Package

_NEW = "NEW_ENV"


class _Way(NamedTuple):
    """One attempt: frameworks as typed, and a Python. ``keeps`` means that the versions are the installed ones."""

    frameworks: tuple[str, ...]
    python: SpecifierSet | None
    keeps: bool


def fix_plan(
    diagnosed: Diagnosed, doctor_request: DoctorRequest, environ: Mapping[str, str], file: str | None
) -> tuple[str, tuple[Note, ...]]:
    """The environment that fixes the findings, as text, with notes. ``file`` is its file name.

    For a conda environment it is an environment.yml, for others a requirements file. It has the installed frameworks
    and their companions. Attempts, in order: 1. the exact versions with the environment's Python 2. with another Python
    3. other patch releases 4. other versions. With another Python, the plan creates a new environment. On a machine
    without a GPU, an environment for CUDA stays one. Raises UsageError if no framework is installed, UnsolvableError if
    nothing runs here.
    """
    matrix = Matrix(doctor_request.matrix_directory)
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
    """The request for this machine; if no GPU is detected, for the GPUs and the CUDA of the installed builds.

    Raises UsageError if these are unknown.
    """
    kind = "environment" if scene.inventory.is_conda else "requirements"
    builds = [it for it in scene.builds if it.name in names and it.cuda is not None]
    here = Request((), gpus=("auto",), format=kind, prefer=Policy.LOCKED, locked=_installed_versions(scene, builds))
    if scene.host.capabilities or not builds:
        return here, []
    codes = [release.code for build in builds for release in build.releases[:1]]
    targets = sorted({target.capability for code in codes for target in code.sass})
    gpus = [gpu for gpu in targets if all(code.runs_as(gpu) is not None for code in codes)]
    if not gpus or len(codes) < len(builds):
        raise _without_gpu(builds)
    cuda = {f"{build.cuda_version or build.cuda_major}.*" for build in builds}
    text = f"no GPU was detected: planned for the GPUs that the installed builds support, {gpus[0]} to {gpus[-1]}"
    one = parse_versions(cuda.pop()) if len(cuda) == 1 else None
    return here._replace(gpus=tuple(map(str, gpus)), cuda=one), [text]


def _installed_versions(scene: Scene, builds: Sequence[Build]) -> LockedVersions:
    """The installed builds, which stay if they run here."""
    packages = [(it.package.name, it.package.version, "") for it in builds if it.package is not None]
    packages += [(it.conda.name, it.conda.version, it.conda.build) for it in builds if it.conda is not None]
    cuda = next((str(it.cuda_version) for it in builds if it.cuda_version is not None), None)
    return LockedVersions(tuple(packages), ".".join(scene.inventory.python.split(".")[:2]) or None, cuda)


def _without_gpu(builds: Sequence[Build]) -> UsageError:
    request = " ".join(f"-f {build.name}" for build in builds)
    return UsageError(
        "no-gpu-to-plan-for",
        "the environment is for CUDA, and no GPU was detected on this machine",
        (f"envsolve does not know which GPUs {builds[0].label} supports",),
        (
            Hint("run it on the machine with the GPU"),
            Hint("or name that GPU", f"envsolve {request} --gpu 'RTX 4090'"),
            Hint("or plan for the CPU", f"envsolve {request} --gpu none"),
        ),
    )


def _changes(way: _Way, refusals: Sequence[tuple[_Way, EnvsolveError]], minor: str) -> Iterator[str]:
    """What the plan changes in the environment, one per line, with the solver's reason.

    The refusal with any Python is the reason for other versions; the last refusal is the reason for another Python.
    """
    if not way.keeps:
        error = [error for tried, error in refusals if tried.keeps][-1]
        yield f"the installed versions cannot stay: {_reason(error)}"
    if way.python is None and minor:
        yield f"Python {minor} cannot stay: {_reason(refusals[-1][1])}"


def _reason(error: EnvsolveError) -> str:
    """A refusal on one line. In a chain of facts, the first is the shortest and most informative."""
    says_all = error.code == "no-such-release" or not error.cause
    return " ".join((error.message if says_all else error.cause[0]).split())


class _Planner:
    """Writes the text for a request and one environment."""

    def __init__(self, diagnosed: Diagnosed, matrix: Matrix, environ: Mapping[str, str], file: str) -> None:
        self._file = file
        self._scene = diagnosed.scene
        self._findings = diagnosed.findings
        self._broken = sorted({name for it in diagnosed.findings for name in it.broken})
        self._environment = diagnosed.environment
        self._matrix = matrix
        self._environ = environ

    def plan(self, request: Request, *, separate: bool) -> tuple[str, tuple[Note, ...]]:
        """The text in the format of the request, with notes. ``separate`` means a new environment."""
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
        """The frameworks of the environment and ``companions`` that pip installed; conda replaces them."""
        mine = [it for it in self._scene.packages.by_name.values() if frameworks_among([it.name])]
        yield from (it for it in dict.fromkeys((*mine, *companions)) if it.is_wheel and not it.is_of_conda)

    def _answer(self, target: Target, solution: Solution, beside: tuple[RequestedSpec, ...]) -> Answer:
        date, own = matrix_date_of(target.problem, self._matrix), stack_is_own(self._matrix, solution)
        return Answer(
            solution, target.hosts, self._environment.plan, date, __version__, own_matrix=own, requested=beside
        )

    def _beside(self, solution: Solution) -> Iterator[RequestedSpec]:
        """What is installed beside the stack: its companions, limits on what breaks it, and broken packages."""
        have = self._scene.packages.by_name
        named = {normalized(Requirement(spec).name) for spec, _ in pip_specs(solution)}
        for release in (choice.release for choice in solution.choices):
            for package in self._companions(frameworks_among([release.package])):
                if package.name not in named:
                    named.add(package.name)
                    yield RequestedSpec(self._companion(package, release), f"goes with {release.package}", by_pip=True)
            for need in constraints_of(release, self._matrix.build_facts):
                if need.name in have and need.name not in named:
                    named.add(need.name)
                    why = f"{release.package} {release.version} does not work with other versions"
                    yield RequestedSpec(str(need), why, by_pip=True)
        required = {it.need.name for it in self._scene.wanted}
        for package in (have[name] for name in self._broken if name in have and name not in named):
            spec = package.name if package.name in required else f"{package.name}=={package.version}"
            yield RequestedSpec(spec, "its files are broken", by_pip=True)

    def _companions(self, frameworks: Sequence[Framework]) -> Iterator[Package]:
        """The installed packages that need one of ``frameworks`` and are not a part of one."""
        have = self._scene.packages.by_name
        parts = {name for name in have if frameworks_among([name])}
        waiting = [it for it in have.values() if it.name in parts]
        beside = {
            name
            for name in have
            if any(it.is_beside(name) for it in frameworks)
            or any(it in frameworks for it in frameworks_among(self._needed_by_builds(name)))
        }
        while waiting:
            new = {need.name for need in waiting.pop().needs} & beside - parts
            parts |= new
            waiting += [have[name] for name in new]
        for name in sorted(beside - parts):
            if have[name].is_wheel and not have[name].editable:
                yield have[name]

    def _needed_by_builds(self, name: str) -> set[str]:
        """What builds of a package require, as the matrix knows."""
        return {need.name for it in self._matrix.build_facts(name, self._scene.platform) for need in it.requires}

    def _companion(self, package: Package, release: Release) -> str:
        """The requirement on a companion of ``release``: the installed version if it fits, or else others."""
        version = parsed_version(package.version)
        known = self._matrix.build_facts(package.name, self._scene.platform)
        if version is None or not self._is_allowed(package, release):
            return package.name
        if self._fits(version, known, release):
            return f"{package.name}=={_build_of(package.name, version, release)}"
        for it in known:
            bounds = (Version(one.version.removesuffix(".*")) for one in it.versions)
            of_it = [bound for bound in bounds if bound in it.versions]
            if (it.cuda or it.requires) and of_it and self._fits(max(of_it), known, release):
                return f"{package.name}{in_usual_order(it.versions)}"
        return package.name

    def _is_allowed(self, package: Package, release: Release) -> bool:
        """Whether the metadata of an installed companion allow ``release``."""
        pairs = ((it.requirer.name, it.need) for it in self._scene.wanted)
        needs = [need for name, need in pairs if (name, need.name) == (package.name, release.package)]
        return all(SpecifierSet(it.specifier).contains(release.version, prereleases=True) for it in needs)

    def _fits(self, version: Version, known: Iterable[BuildFacts], release: Release) -> bool:
        """Whether a version of a companion fits ``release``, by what is ``known`` of its builds."""
        return all(
            (release.cuda is None or it.go_with(release.cuda))
            and it.without_code_for(self._scene.host.capabilities, release.cuda) is None
            and all(
                need.name != release.package or SpecifierSet(need.specifier).contains(release.version)
                for need in it.requires
            )
            for it in known
            if it.covers(str(version))
        )

    def _in_place(self, solution: Solution, beside: Sequence[RequestedSpec]) -> Iterator[str]:
        """The commands that apply a plan in the environment. They first remove packages that pip would not replace."""
        shell = self._scene.shell_kind
        for it in self._findings:
            if it.id == "half-removed-package":  # pip cannot: it does not know their files
                yield it.commands[0]
        links = [it.about for it in self._findings if it.broken and it.about and Path(it.about).is_symlink()]
        if links:  # pip leaves a link that leads nowhere, and cannot install over it
            yield shell.removal(links)
        stay = sorted({*self._left_by_pip(solution, beside), *self._broken})
        records = [len(those) for (_, name), those in self._scene.packages.together.items() if name in stay]
        for _ in range(max(records, default=0)):  # pip removes one record of a package at a time
            yield shell.joined(pip_command("uninstall", ["-y", *stay], self._scene))
        cache = ["--no-cache-dir"] if self._broken else []  # it may have the same damaged file
        words = pip_command("install", [*cache, "-r", self._file], self._scene)
        yield shell.joined([*words, *(["--index-strategy", "unsafe-best-match"] if words[0] == "uv" else [])])

    def _left_by_pip(self, solution: Solution, beside: Sequence[RequestedSpec]) -> Iterator[str]:
        """The packages to remove first: other builds of a requested version, rivals for its module, and misfits.

        For pip, 2.6.0+cpu is 2.6.0, so it does not replace that, nor a package that the plan has without a version.
        Removing a rival later would remove files of the new package.
        """
        have = self._scene.packages.by_name
        specs = [*(spec for spec, _ in pip_specs(solution)), *(it.spec for it in beside)]
        request = {normalized(it.name): it.specifier for it in map(Requirement, specs)}
        for known in FRAMEWORKS.values():
            chosen = request.keys() & set(known.rivals)
            there = have.keys() & set(known.rivals)
            if chosen and there - chosen:
                yield from there
        for name, specifier in request.items():
            pinned = next(
                (Version(it.version) for it in specifier if it.operator == "==" and "*" not in it.version), None
            )
            installed = parsed_version(have[name].version) if name in have else None
            if (name in have and not specifier) or (
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
    """The version of a companion on the index of ``release``: PyTorch's own index adds a local version."""
    local = release.full_version.local if release.source is Source.PYTORCH else None
    of_index = any(name in it.own_index for it in frameworks_among([release.package]))
    return f"{version.public}+{local}" if local is not None and of_index else version.public
