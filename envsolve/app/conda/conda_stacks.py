"""Which stack to try after one whose packages conda cannot solve.

Another toolkit may work if the channels have its libraries for one release but not for the next. Otherwise rattler
solves with fewer and fewer frameworks pinned to their builds; the last requested one is released first, as the first is
the most important. Its choices show which versions fit together; the stack is solved again among these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.conda.conda_refusal import Unfit
from envsolve.app.packages.channel_builds import ChannelBuilds
from envsolve.conda.specs import conda_versions
from envsolve.errors import UnsolvableError
from envsolve.model.conda import CondaPackage
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.release import Release
from envsolve.model.solution import Solution
from envsolve.model.versions import parsed_version

Packages = Callable[[Sequence[str]], Sequence[CondaPackage] | None]
"""Solves match specs with the channels; returns None if there is no solution."""


def other_toolkit(unfit: Unfit, packages: Packages) -> Iterator[SpecifierSet]:
    """The toolkits with which conda can install exactly the builds of a stack, the newest first.

    If the driver compiles kernels from PTX, none is newer than that of the stack, as the driver must be able to read
    it.
    """
    solution = unfit.solution
    if solution is None or solution.toolkit is None:
        return
    chosen = [it.release for it in solution.choices]
    if any(it.source.is_wheel for it in chosen):
        return
    own = str(solution.toolkit.version)
    compiled = any(it.startswith("compute_") for choice in solution.choices for it in choice.runs_as.values())
    for bound in (f"<{own}",) if compiled else ("", f"<{own}"):
        name = CUDA_PACKAGES[0]
        specs = [*_specs(unfit, solution, chosen, len(chosen)), *([f"{name} {bound}"] if bound else [])]
        found = {it.name: it.version for it in packages(specs) or ()}
        toolkit = ".".join(found.get(name, "").split(".")[:2])
        if toolkit and toolkit != own:
            yield SpecifierSet(f"=={toolkit}")


def narrow(builds: ChannelBuilds, unfit: Unfit, packages: Packages) -> bool:
    """Leave out of ``builds`` what ``unfit`` shows to be unavailable. Returns whether anything was left out."""
    solution = unfit.solution
    chosen = [] if solution is None else [it.release for it in solution.choices if not it.release.source.is_wheel]
    if solution is None:
        return False
    if not chosen:
        builds.leave_out_python(solution.problem.platform, solution.python)
        return True
    for fixed in range(len(chosen) - 1, -1, -1):
        found = packages(tuple(_specs(unfit, solution, chosen, fixed)))
        if found is not None:
            _keep_found(builds, solution, chosen[fixed:], found)
            return True
    builds.keep(chosen[0], solution.python, None)
    return True


def leave_out_wheels(builds: ChannelBuilds, solution: Solution, error: UnsolvableError) -> None:
    """Leave out the wheels of ``solution``: those that no index has for every Python, others for its Python."""
    from envsolve.app.lock.lock_refusal import NOT_ON_INDEX

    for release in (it.release for it in solution.choices if it.release.source.is_wheel):
        pythons = map(Version, release.pythons) if error.code == NOT_ON_INDEX else (solution.python,)
        for python in pythons:
            builds.leave_out(release, python)


def _keep_found(
    builds: ChannelBuilds, solution: Solution, free: Sequence[Release], found: Sequence[CondaPackage]
) -> None:
    """Of the released frameworks keep only the versions that were found; leave out those of the stack."""
    versions = {it.name: parsed_version(it.version) for it in found}
    others = [it for it in free if versions.get(it.package) != it.version]
    for release in others:
        builds.keep(release, solution.python, versions.get(release.package))
    if not others:
        builds.leave_out(free[0], solution.python)


def _specs(unfit: Unfit, solution: Solution, chosen: Sequence[Release], fixed: int) -> Iterator[str]:
    """The match specs: the first ``fixed`` frameworks with their builds, the others in any build for the same CUDA."""
    of_stack = {it.package for it in chosen}
    of_stack |= {package for release in chosen for package, _ in release.companions}
    yield f"python {solution.python}.*"
    for it in unfit.specs:
        name = parse_match_spec(it.spec).name
        if name not in of_stack and name != "python" and not it.of_stack:
            yield it.spec
    for release in chosen[:fixed]:
        yield f"{release.package} =={release.version} {release.build_string}"
    requested = {it.framework: it.specifier for it in solution.problem.frameworks}
    for release in chosen[fixed:]:
        versions = conda_versions(str(requested.get(release.framework, SpecifierSet()))) or "*"
        yield f"{release.package} {versions} {_family(release)}"


def _family(release: Release) -> str:
    """The common start of the names of conda-forge's builds for the same CUDA major version, or for the CPU."""
    if release.cuda is None:
        return "cpu*"
    return f"cuda{release.cuda.major}*" if release.build_string.startswith("cuda") else "*"
