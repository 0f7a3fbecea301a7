"""Packages in an environment.yml or a pixi.toml whose versions conda, pixi or pip choose when they install them.

Where conda installs the frameworks, conda installs them too, by the name that channels usually have for a project.
Where pip does, they are wheels as well, since wheels are built against the wheels of PyTorch and TensorFlow. A file by
its address and a project with extras are always pip's: conda has no way to require them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from envsolve.app.packages.conda_needs import may_be_conda
from envsolve.app.packages.conda_requirements import (
    CondaRequirements,
    refuse_overrides,
    requirements_on,
    with_stack,
    without_wheels,
)
from envsolve.app.packages.lock_frameworks import dependent_of
from envsolve.app.packages.lock_stacks import interpreter_of
from envsolve.app.packages.requirements import Requirements, for_target, is_unnamed
from envsolve.app.request.command import command_of, way_out
from envsolve.app.request.targets import Target
from envsolve.conda.names import conda_names
from envsolve.conda.specs import conda_versions
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORK_OF_CONDA, FRAMEWORK_OF_WHEEL
from envsolve.lockfile.conda_specs import conda_specs
from envsolve.lockfile.lock import Lock, RequestedSpec
from envsolve.lockfile.restriction import require_sources
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.match_spec import MatchSpec, parse_match_spec
from envsolve.model.names import normalized
from envsolve.model.need import Markers
from envsolve.model.note import Note
from envsolve.model.reference import AddressKind, kind_of, named
from envsolve.model.request import Request
from envsolve.model.solution import Solution

_FEW = 4


class Beside(NamedTuple):
    """The packages that a file lists in addition to the frameworks, and the variables that it sets.

    ``chosen`` are those whose version a lock has chosen; an installer chooses the others.
    """

    requested: tuple[RequestedSpec, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    chosen: tuple[RequestedSpec, ...] = ()

    def notes(self, request: Request) -> Iterator[Note]:
        """A note that the versions are not chosen yet, with the command that pins them."""
        names = [it.spec for it in self.requested if it not in self.chosen]
        if names:
            few = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
            is_pips = all(it.by_pip for it in self.requested)
            installer, lock = ("pip", "requirements") if is_pips else ("conda", "conda-lock")
            installer = "pixi" if request.format == "pixi" else installer
            ignored = (
                ""
                if request.packages.exclude_newer is None
                else f" without {request.requester.name_of('exclude-newer')}"
            )
            be, their, them = ("is", "its version", "it") if len(names) == 1 else ("are", "their versions", "them")
            text = f"{few} {be} not pinned: {installer} will choose {their}{ignored}, and a lock pins {them}"
            hint = way_out(text, request._replace(format=lock), request)
            yield Note("not-pinned", hint.text, hint.command).about(packages=", ".join(names))


def needs_lock(targets: Iterable[Target]) -> bool:
    """Whether a request names a dependent framework: each of its releases requires one of the framework.

    So both must be chosen together, which only a lock does.
    """
    requirements = (requirements_on(it.request.packages, it.problem.platform) for it in targets)
    return any(True for it in requirements for _ in _dependent(it))


def _dependent(requirements: CondaRequirements) -> Iterator[str]:
    yield from (name for it in requirements.conda if (name := parse_match_spec(it.spec).name) in DEPENDENT_FRAMEWORKS)
    yield from (
        need.name
        for need, _ in (requirements.python.needs if requirements.python else ())
        if dependent_of(need) is not None
    )


def with_packages(target: Target) -> Target:
    """``target`` with the frameworks among the packages of its request, and the indexes of its files.

    Raises UsageError if the packages cannot be read, or include hashes, constraints or overrides.
    """
    request = target.request
    refuse_overrides(request)
    requirements = requirements_on(request.packages, target.problem.platform)
    if requirements.python is not None and (requirements.python.hashed or requirements.python.constraints):
        what = "hashes" if requirements.python.hashed else "constraints"
        raise UsageError(
            "requirements-not-supported",
            f"the format {request.format!r} does not support {what}: it pins no packages",
            hints=(Hint("write a lock", command_of(request._replace(format="conda-lock"))),),
        )
    target = with_stack(target, requirements, (*request.channels, *requirements.channels))
    target = target._replace(notes=(*target.notes, *requirements.notes))
    if not target.request.frameworks:
        raise UsageError(
            "no-framework",
            "which framework?",
            (f"the format {request.format!r} needs a framework, and the request includes none",),
            (
                Hint("name one: -f pytorch"),
                Hint("or lock only the packages", command_of(request._replace(format="conda-lock"))),
            ),
        )
    return target if requirements.python is None else _with_indexes(target, requirements.python)


def _with_indexes(target: Target, requirements: Requirements) -> Target:
    """``target`` with the indexes from its requirement files."""
    request = target.request
    extra = tuple(dict.fromkeys((*request.extra_index_urls, *requirements.extra_index_urls)))
    return target._replace(
        request=request._replace(index_url=request.index_url or requirements.index_url, extra_index_urls=extra)
    )


def beside_stack(target: Target, solution: Solution, lock: Lock | None = None) -> Beside:
    """The packages that a file with ``solution`` lists in addition.

    Dependent frameworks have the version that they have in ``lock``, the one around that stack.
    """
    requirements = requirements_on(target.request.packages, target.problem.platform)
    listed = (*_of_conda(requirements, solution), *_of_python(requirements, target, solution))
    exact = {} if lock is None else dict(_exact(lock))
    dependent = set(_dependent(requirements))
    known = [(exact.get(name) if (name := _name_of(it.spec)) in dependent else None) for it in listed]
    chosen = [None if pin is None else pin._replace(reason=it.reason) for pin, it in zip(known, listed, strict=True)]
    both = tuple(pin or it for pin, it in zip(chosen, listed, strict=True))
    return Beside(both, requirements.variables, tuple(it for it in chosen if it is not None))


def _exact(lock: Lock) -> Iterator[tuple[str, RequestedSpec]]:
    """Each package of ``lock`` as a requirement on its version, or on its file if no index has it."""
    for it in lock.conda:
        yield it.name, RequestedSpec(f"{it.name} =={it.version}")
    for pin in lock.pins:
        need = f"{pin.name} @ {pin.files[0].url}" if pin.index_url is None else f"{pin.name}=={pin.version}"
        yield pin.name, RequestedSpec(need, by_pip=True)


def _name_of(spec: str) -> str:
    """The name at the start of a requirement for pip or conda."""
    found = re.match(r"[\w.-]+", spec)
    return "" if found is None else normalized(found[0])


def _of_conda(requirements: CondaRequirements, solution: Solution) -> Iterator[RequestedSpec]:
    """The match specs that say more than the stack, which was solved for versions of Python, CUDA and frameworks."""
    pinned = {_name_of(spec) for spec, _ in conda_specs(solution)}
    of_stack = pinned & {"python", *CUDA_PACKAGES, *FRAMEWORK_OF_CONDA}
    for it in without_wheels(requirements.conda, solution):
        spec = parse_match_spec(it.spec)
        if spec.name not in of_stack or spec != MatchSpec(spec.name, spec.version):
            yield it


def _of_python(requirements: CondaRequirements, target: Target, solution: Solution) -> Iterator[RequestedSpec]:
    if requirements.python is None:
        return
    found = for_target(requirements.python, Markers(interpreter_of(target.problem, solution).marker_values()))
    by_pip = any(choice.release.source.is_wheel for choice in solution.choices)
    needs = {need: origin for need, origin in found.needs if need.name not in FRAMEWORK_OF_WHEEL or need.url}
    is_pixi = target.request.format == "pixi"  # a requirement for pip may be a repository
    urls = {it.name: it.url for it in needs if it.url and (is_pixi or kind_of(it.url) is AddressKind.FOLDER)}
    require_sources(urls, "pixi" if is_pixi else "environment", beside_conda=bool(requirements.conda))
    for need, origin in needs.items():
        reason = f"requested by {origin}"
        if by_pip or not may_be_conda(need, origin):
            yield RequestedSpec(named(need.url) if is_unnamed(need) else str(need), reason, by_pip=True)
        else:
            yield RequestedSpec(f"{conda_names(need.name)[0]} {conda_versions(need.specifier)}".strip(), reason)
