"""The requirements of a conda lock besides the stack: those on the command line and those in files.

Requirements on frameworks, Python and CUDA count for the stack. :mod:`envsolve.app.packages.conda_needs`, which is
imported only if needed, handles requirements on Python packages.
"""

from __future__ import annotations

import hashlib
import json
import os.path
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.request.channel_order import WHEELS, sources_of
from envsolve.app.request.command import recorded_options, way_out
from envsolve.app.request.targets import Target
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.session import Listed
from envsolve.conda.specs import conda_versions, specifier_of
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import FRAMEWORK_OF_CONDA
from envsolve.lockfile.conda_specs import conda_specs
from envsolve.lockfile.lock import MAIN, RequestedSpec
from envsolve.lockfile.options import Options
from envsolve.model.cuda_packages import CUDA_PACKAGES, CUDATOOLKIT, FIRST_MODULAR_CUDA
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.note import Note
from envsolve.model.request import FrameworkRequest, Packages, Request
from envsolve.model.solution import Problem, Solution

if TYPE_CHECKING:
    from envsolve.app.packages.requirements import Requirements
    from envsolve.lockfile.environment_request import EnvironmentFile

_SUFFIXES = (".yml", ".yaml")
Listing = Callable[[frozenset[str]], Mapping[str, Sequence[Listed]]]
"""The packages with given names on the channels."""


class CondaRequirements(NamedTuple):
    """The requirements on one platform: match specs in ``conda``, Python requirements, if any, in ``python``.

    ``channels`` are those that files name, with logins. ``categories`` are those of Python requirements outside of the
    main category.
    """

    conda: tuple[RequestedSpec, ...] = ()
    python: Requirements | None = None
    channels: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    categories: Mapping[str, str] = {}
    notes: tuple[Note, ...] = ()

    def as_recorded(self, request: Request) -> tuple[tuple[str, ...], Options]:
        """The frameworks, requirements and options of ``request`` as a lock records them, without logins."""
        python, constraints = ((), ()) if self.python is None else self.python.as_recorded
        channels = () if request.format in PYTHON_FORMATS else (*request.channels, *self.channels)
        options = recorded_options(request._replace(channels=tuple(dict.fromkeys(channels))))
        requirements = (*map(str, request.frameworks), *(it.spec for it in self.conda), *python)
        return tuple(dict.fromkeys(requirements)), (*options, *constraints)

    @property
    def digest(self) -> str:
        """A digest of all requirements, such as ``sha256:0a...``, without logins."""
        parts = [
            sorted((it.spec, it.category) for it in self.conda),
            None if self.python is None else self.python.digest,
            self.channels,
            self.variables,
            sorted(self.categories.items()),
        ]
        text = without_secrets(json.dumps(parts, separators=(",", ":")))
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class Split(NamedTuple):
    """The match specs for conda and the requirements for pip; ``python`` has the latter as parsed needs.

    ``needs_pip`` means that there are wheels to install, including those of a stack. ``elsewhere`` are projects in
    ``by_pip`` that a channel has only for other Pythons. ``constraints`` are match specs from the user's constraint
    files; they limit dependencies.
    """

    conda: tuple[RequestedSpec, ...]
    by_pip: tuple[RequestedSpec, ...] = ()
    python: Requirements | None = None
    needs_pip: bool = False
    elsewhere: frozenset[str] = frozenset()
    constraints: tuple[str, ...] = ()


def is_environment_file(name: str) -> bool:
    """Whether a file of ``-r`` is an environment.yml."""
    return name.lower().endswith(_SUFFIXES)


def requirements_on(packages: Packages, platform: Platform) -> CondaRequirements:
    """All requirements on ``platform``. Raises UsageError if a file cannot be read."""
    if not packages.are_named:
        return CondaRequirements()
    files = list(_environments(packages, platform))
    entries = [it for file in files for it in file.requested]
    python = _python(packages, files)
    return CondaRequirements(
        conda=tuple(it for it in entries if not it.by_pip and parse_match_spec(it.spec).name not in packages.exclude),
        python=python,
        channels=tuple(dict.fromkeys(_opened(channel, file) for file in files for channel in file.channels)),
        variables=tuple({key: value for file in files for key, value in file.variables}.items()),
        categories=_categories(entries),
        notes=(*(Note("environment-file", text) for file in files for text in file.notes), *python.notes),
    )


def excluded_notes(request: Request, platform: Platform) -> Iterator[Note]:
    """Notes on the excluded requirements, and on exclusions without effect."""
    from envsolve.app.packages.requirements import read_requirements
    from envsolve.index.requirement_file import place_of

    packages = request.packages
    if not packages.exclude:
        return
    if request.format in PYTHON_FORMATS:
        found = dict(read_requirements(packages).excluded)
    else:
        files = list(_environments(packages, platform))
        found = dict(_python(packages, files).excluded)
        names = {parse_match_spec(it.spec).name for file in files for it in file.requested if not it.by_pip}
        origin = next((f"-r {name}" for name in packages.files if is_environment_file(name)), "")
        found |= {it: place_of(origin, it) for it in packages.exclude if it in names}
    for name in packages.exclude:
        if name in found:
            yield Note("excluded", f"{name} is excluded ({found[name]})").about(name=name, where=found[name])
        else:
            yield Note("exclude-unused", f"exclude = [{json.dumps(name)}] has no effect: nothing requires it").about(
                name=name
            )


def refuse_overrides(request: Request) -> None:
    """Raise UsageError if a request for a file of conda has overrides."""
    if request.packages.overrides:
        named = request.requester.name_of("overrides")
        message = f"the format {request.format!r} does not support {named}"
        why = "conda solves with the requirements in its packages, and pip with those in the wheels"
        instead = request._replace(format="requirements", channels=())
        hint = way_out(f"use a Python lock: {', '.join(PYTHON_FORMATS)}", instead, request)
        raise UsageError("requirements-not-supported", message, (why,), (hint,))


def requirements_of(request: Request, platform: Platform, python: str) -> CondaRequirements:
    """What ``request`` requires on ``platform`` with ``python``; for a Python lock no file is one of conda's.

    Raises UsageError if it cannot be read.
    """
    from envsolve.app.packages.requirements import on_python, read_requirements

    if request.format in PYTHON_FORMATS:
        found = CondaRequirements(python=read_requirements(request.packages))
    else:
        found = requirements_on(request.packages, platform)
    return found._replace(python=None if found.python is None else on_python(found.python, python, platform))


def _environments(packages: Packages, platform: Platform) -> Iterator[EnvironmentFile]:
    for name in filter(is_environment_file, packages.files):
        from envsolve.lockfile.environment_request import read_environment

        _refuse_lock(name)
        yield read_environment(Path(name), platform)


def _refuse_lock(name: str) -> None:
    """Raise UsageError for a conda-lock.yml: it lists installed packages, not requirements."""
    from envsolve.lockfile.reading import format_at

    if format_at(Path(name)) == "conda-lock":
        raise UsageError(
            "environment-invalid",
            f"{name} is a lock, and -r reads requirements",
            hints=(Hint(f"to keep its versions, name it with -o: -r environment.yml -o {name}"),),
        )


def _opened(channel: str, file: EnvironmentFile) -> str:
    """A channel of a file, with environment variables expanded like conda does; tokens are best kept in variables."""
    return os.path.expandvars(dict(file.logins).get(channel, channel))


def _python(packages: Packages, files: Sequence[EnvironmentFile]) -> Requirements:
    """The Python requirements: those typed, those in pip's files, and those in pip sections of environment files."""
    from envsolve.app.packages.requirements import read_requirements
    from envsolve.index.requirement_file import FileRequirements

    of_pip = tuple(name for name in packages.files if not is_environment_file(name))
    return read_requirements(packages._replace(files=of_pip), sum((it.pip for it in files), FileRequirements()))


def _categories(requirements: Sequence[RequestedSpec]) -> Mapping[str, str]:
    """The category of each Python requirement outside of the main category."""
    from envsolve.model.need import parse_need

    return {parse_need(it.spec).name: it.category for it in requirements if it.by_pip and it.category != MAIN}


def with_stack(target: Target, requirements: CondaRequirements, channels: tuple[str, ...]) -> Target:
    """``target`` with the required frameworks, Python and CUDA, and with all channels."""
    request, problem = target.request, target.problem
    python, cuda = request.python, request.cuda
    notes: list[Note] = []
    for it in requirements.conda:
        spec = parse_match_spec(it.spec)
        specifier = specifier_of(spec.version) or SpecifierSet()
        if spec.name == "python" and len(specifier):
            python = specifier if python is None else python & specifier
        if spec.name == CUDATOOLKIT and not problem.cpu and specifier.contains(f"{FIRST_MODULAR_CUDA}.0"):
            text = f"{CUDATOOLKIT} ends at CUDA 11.8, and {it.reason}: remove it to allow CUDA 12 and newer"
            notes.append(Note("cudatoolkit-limits-cuda", text))
            specifier &= SpecifierSet(f"<{FIRST_MODULAR_CUDA}")
        if spec.name in CUDA_PACKAGES and len(specifier) and not problem.cpu:
            cuda = specifier if cuda is None else cuda & specifier
    frameworks = {it.framework: it.specifier for it in request.frameworks}
    for name, specifier in _of_frameworks(requirements):
        frameworks[name] = frameworks.get(name, SpecifierSet()) & specifier
    sources = request.sources or sources_of(channels)
    if requirements.python is not None:
        from envsolve.app.packages.conda_needs import frameworks_in

        found = frameworks_in(requirements.python, frozenset(frameworks), problem._replace(python=python))
        python = found.python
        for name, specifier in found.frameworks:
            frameworks[name] = frameworks.get(name, SpecifierSet()) & specifier
        sources = WHEELS if found.as_wheels and not request.sources else sources
    named = tuple(FrameworkRequest(name, specifier) for name, specifier in sorted(frameworks.items()))
    request = request._replace(channels=channels, sources=sources)
    target = target._replace(request=request, notes=(*target.notes, *notes))
    return target.with_bounds(frameworks=named, python=python, cuda=cuda)


def _of_frameworks(requirements: CondaRequirements) -> Iterator[tuple[str, SpecifierSet]]:
    for it in requirements.conda:
        spec = parse_match_spec(it.spec)
        if spec.name in FRAMEWORK_OF_CONDA:
            yield FRAMEWORK_OF_CONDA[spec.name], specifier_of(spec.version) or SpecifierSet()


def without_wheels(requested: Iterable[RequestedSpec], solution: Solution | None) -> tuple[RequestedSpec, ...]:
    """Return the match specs but those on frameworks that ``solution`` has as wheels, which pip installs."""
    wheels = {it.release.framework for it in (solution.choices if solution else ()) if it.release.source.is_wheel}
    return tuple(it for it in requested if FRAMEWORK_OF_CONDA.get(parse_match_spec(it.spec).name) not in wheels)


def with_frameworks(target: Target, names: Sequence[str]) -> Target:
    """``target`` with additional frameworks, in any version."""
    added = tuple(FrameworkRequest(name, SpecifierSet()) for name in names)
    return target.with_bounds(
        frameworks=tuple(sorted((*target.problem.frameworks, *added), key=lambda it: it.framework))
    )


def with_cuda(target: Target, cuda: SpecifierSet | None) -> Target:
    """``target`` with CUDA restricted further; unchanged for None."""
    if cuda is None:
        return target
    return target.with_bounds(cuda=cuda if target.problem.cuda is None else target.problem.cuda & cuda)


def split(
    requirements: CondaRequirements,
    problem: Problem,
    solution: Solution | None,
    listed: Listing,
    anyway: frozenset[str],
) -> Split:
    """Split ``requirements`` into those for conda and those for pip, after the match specs of the stack.

    ``anyway`` are projects that go to conda even if it has them only for other Pythons than the stack's.
    """
    found = Split(())
    if requirements.python is not None:
        from envsolve.app.packages.conda_needs import split_needs

        found = split_needs(requirements, requirements.python, problem, solution, listed, anyway)
    stack = [RequestedSpec(*it, of_stack=True) for it in conda_specs(solution)] if solution else []
    if solution is None and (found.conda or found.by_pip or problem.python is not None):
        versions = conda_versions(str(problem.python or ""))
        stack.append(RequestedSpec(f"python {versions}".strip(), "runs the requested packages"))
    needs_pip = bool(found.by_pip) or any(it.release.source.is_wheel for it in (solution.choices if solution else ()))
    if needs_pip:
        stack.append(RequestedSpec("pip", "installs the wheels"))
    return found._replace(
        conda=(*stack, *without_wheels(requirements.conda, solution), *found.conda), needs_pip=needs_pip
    )
