"""Which Python requirements become conda packages: those that a channel has in an allowed version.

All others become wheels. Requirements given by address, with extras or with hashes are always installed by pip: match
specs cannot express addresses and extras, and the hashes are those of files on package indexes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.channel_builds import takes
from envsolve.app.packages.conda_requirements import CondaRequirements, Listing, Split
from envsolve.app.packages.lock_frameworks import pythons_of_stack
from envsolve.app.packages.lock_stacks import interpreter_of
from envsolve.app.packages.requirements import Requirements, for_target
from envsolve.conda.names import conda_names
from envsolve.conda.session import Listed
from envsolve.conda.specs import conda_versions
from envsolve.errors import Hint, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, OWN_INDEX
from envsolve.index.requirement_file import PIP_SECTION
from envsolve.lockfile.lock import MAIN, RequestedSpec
from envsolve.model.need import Markers, Need, parse_need
from envsolve.model.release import Source
from envsolve.model.requester import Requester
from envsolve.model.solution import Problem, Solution


class FrameworksIn(NamedTuple):
    """The frameworks that are requested by the names of their projects, with their versions.

    ``python`` are the Pythons for which their markers hold. ``as_wheels`` means that one of them must be a wheel: it is
    in a pip section, or has hashes of files on package indexes.
    """

    frameworks: tuple[tuple[str, SpecifierSet], ...]
    python: SpecifierSet | None
    as_wheels: bool


def frameworks_in(requirements: Requirements, anyway: frozenset[str], problem: Problem) -> FrameworksIn:
    """The frameworks in ``requirements`` for the stack of ``problem``. ``anyway`` are requested elsewhere."""
    python, holds = pythons_of_stack(requirements, anyway, problem)
    found = [(need, origin) for need, origin in requirements.needs if _is_of_stack(need) and holds(need.marker)]
    frameworks = tuple((FRAMEWORK_OF_WHEEL[need.name], SpecifierSet(need.specifier)) for need, _ in found)
    hashed = {
        FRAMEWORK_OF_WHEEL[need.name] for need, _ in requirements.hashed if _is_of_stack(need) and holds(need.marker)
    }
    in_section = any(origin.startswith(PIP_SECTION) for _, origin in found)
    requested = anyway.union(name for name, _ in frameworks)
    return FrameworksIn(frameworks, python, as_wheels=in_section or bool(hashed & requested))


def _is_of_stack(need: Need) -> bool:
    return need.name in FRAMEWORK_OF_WHEEL and not need.url


def split_needs(
    conda_requirements: CondaRequirements,
    requirements: Requirements,
    problem: Problem,
    solution: Solution | None,
    listed: Listing,
    anyway: frozenset[str],
) -> Split:
    """The requirements that apply to the target, as match specs if the channels have an allowed version.

    A wheel for the Python of the stack is preferred to a conda package for another Python, which would need an older
    stack. Requirements in ``anyway`` are the exception.
    """
    python = for_target(requirements, Markers(interpreter_of(problem, solution).marker_values()))
    hashed = python.hashes
    _refuse_hashes_of_conda(hashed, solution)

    def is_for_conda(need: Need, origin: str) -> bool:
        return need.name not in hashed and may_be_conda(need, origin)

    needs = [it for it in python.needs if it[0].name not in FRAMEWORK_OF_WHEEL or it[0].url]
    names = frozenset(name for it in needs if is_for_conda(*it) for name in conda_names(it[0].name))
    found = listed(names) if names else {}
    conda, by_pip, left, elsewhere = [], [], [], set()
    for need, origin in needs:
        companion = _is_companion(need.name, solution)
        of_stack = None if solution is None or companion or need.name in anyway else str(solution.python)
        spec = as_conda(need, found, of_stack) if is_for_conda(need, origin) else None
        category, reason = conda_requirements.categories.get(need.name, MAIN), f"requested by {origin}"
        if spec is not None:
            conda.append(RequestedSpec(spec, reason, category))
            continue
        if companion and solution is not None:
            raise _no_companion(need, solution.request.requester, None if is_for_conda(need, origin) else origin)
        by_pip.append(RequestedSpec(str(need), reason, category, by_pip=True))
        left.append((need, origin))
        if is_for_conda(need, origin) and as_conda(need, found, None) is not None:
            elsewhere.add(need.name)
    return Split(
        tuple(conda),
        tuple(by_pip),
        python._replace(needs=tuple(left)),
        elsewhere=frozenset(elsewhere),
        constraints=tuple(_constraints(python)),
    )


def _refuse_hashes_of_conda(hashed: Collection[str], solution: Solution | None) -> None:
    """Raise UnsolvableError if a framework has the hashes of a wheel, but the stack has conda's build."""
    if solution is None:
        return
    for choice in solution.choices:
        release = choice.release
        names = sorted(it for it in hashed if FRAMEWORK_OF_WHEEL.get(it) == release.framework)
        if names and not release.source.is_wheel:
            raise UnsolvableError(
                "hash-mismatch",
                f"conda installs {names[0]}, and the required hashes are those of a wheel",
                (f"{names[0]} is required with file hashes (--hash), and the stack has {release.label}",),
                (
                    Hint(f"remove the hashes of {names[0]}: the lock has those of the conda package"),
                    Hint(f"or use the wheel: {_of_wheels(solution.request.requester)}"),
                ),
            )


def _constraints(requirements: Requirements) -> Iterator[str]:
    """The constraints, for every conda package that may be the project."""
    for need, _ in requirements.constraints:
        if need.specifier:
            yield from (f"{name} {conda_versions(need.specifier)}" for name in conda_names(need.name))


def _is_companion(name: str, solution: Solution | None) -> bool:
    """Whether ``name`` is built against a PyTorch from conda. Its wheels are built against PyTorch's own wheel."""
    choices = () if solution is None else solution.choices
    framework = OWN_INDEX.get(name)
    return any(it.release.framework == framework and not it.release.source.is_wheel for it in choices)


def companions(names: frozenset[str], listed: Listing, requester: Requester) -> Iterator[RequestedSpec]:
    """Conda packages of PyTorch's family that wheels need, for a PyTorch from conda.

    Raises UnsolvableError if no channel has one.
    """
    found = listed(frozenset(it for name in names for it in conda_names(name)))
    for name in sorted(names):
        need = parse_need(name)
        spec = as_conda(need, found, None)
        if spec is None:
            raise _no_companion(need, requester)
        yield RequestedSpec(spec, "required by wheels; its own wheels need the wheel of PyTorch")


def _no_companion(need: Need, requester: Requester, wheel_for: str | None = None) -> UnsolvableError:
    """The error for a missing companion. ``wheel_for`` is what requires its wheel, whatever the channels have."""
    who = f"no channel has {need}" if wheel_for is None else f"{wheel_for} requires a wheel of {need.name}"
    message = f"{who}, and its wheels are built against PyTorch's wheels, not conda's build"
    hint = Hint(f"use a PyTorch wheel too: {_of_wheels(requester)}")
    if wheel_for is None:
        return UnsolvableError("no-companion", message, hints=(hint,))
    return UnsolvableError("no-companion", message, hints=(Hint(f"install {need.name} with conda"), hint))


def _of_wheels(requester: Requester) -> str:
    return f"{requester.setting('sources', Source.PYTORCH)}, or {requester.setting('sources', Source.PYPI)}"


def may_be_conda(need: Need, origin: str) -> bool:
    """Whether a match spec can express a requirement and its origin allows conda."""
    return not need.url and not need.extras and not origin.startswith(PIP_SECTION)


def as_conda(need: Need, listed: Mapping[str, Sequence[Listed]], python: str | None) -> str | None:
    """``need`` as a match spec of the first package that provides an allowed version; None if there is none.

    With ``python``, only packages for that Python count.
    """
    for name in conda_names(need.name):
        fitting = (it for it in listed.get(name, ()) if python is None or takes(it, python))
        if any(_admits(need.specifier, package.version) for package in fitting):
            return f"{name} {conda_versions(need.specifier)}".strip()
    return None


def _admits(specifier: str, version: str) -> bool:
    try:
        return not specifier or SpecifierSet(specifier).contains(Version(version))
    except ValueError:
        return False
