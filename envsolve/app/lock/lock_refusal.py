"""The error if no set of packages fits a stack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from time import monotonic

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.compiling import how_to_compile
from envsolve.app.packages.stack_wheels import index_of
from envsolve.app.request.command import way_out
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import ConflictStep, Hint, Refused, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, OWN_INDEX, rivals_of
from envsolve.index.requirement_file import place_of
from envsolve.model.need import Need, parse_need
from envsolve.model.prose import sentence_list
from envsolve.model.reference import gives_address
from envsolve.model.release import Source
from envsolve.model.request import Packages, Request
from envsolve.model.requester import Requester
from envsolve.model.solution import Solution
from envsolve.resolve.closure.bounds import THE_STACK
from envsolve.resolve.closure.explain import (
    between_packages,
    contested,
    explain,
    fitting_versions,
    glibc_needed_in,
    missing,
    newest_excluded,
    other_python_for,
    reasons_of,
    versions,
    without_gpu_code,
)
from envsolve.resolve.closure.provider import Requirement
from envsolve.resolve.closure.releases import Unfit
from envsolve.resolve.closure.resolve import Conflict

_MOST_CAUSES = 3
_FEW_NAMES = 3
_SECONDS = 2
"""The time to find versions that would fit."""
PACKAGES_CONFLICT = "packages-conflict"
"""The error code for versions of packages that conflict."""
NEWER_GLIBC = "newer-glibc"
"""The kind of the hint if there is a wheel, and it needs a newer C library."""
NOT_ON_INDEX = "release-not-on-index"
"""The error code for a build of a framework that is in the matrix but not on the indexes."""


def packages_refusal(
    conflict: Conflict, request: Request, solution: Solution | None, facts: Sequence[str] = ()
) -> UnsolvableError:
    """The error for ``conflict``. ``solution`` is the stack with which it occurred, ``facts`` are behind it."""
    interpreter = conflict.provider.world.wanted.interpreter
    reasons = _Reasons(conflict, request, solution)
    code, message = reasons.code_and_message(f"Python {interpreter.full_version} on {interpreter.platform}")
    error = refusal(code, message, reasons.of_folders or explain(conflict, facts), tuple(reasons.hints(code)))
    error.refused = tuple(_refused(conflict, code, message))
    error.reasons = tuple(_most_telling_first(error, conflict, reasons.of_folders))
    return error


class _Reasons:
    """What is wrong with the packages in ``conflict``, for the error and its hints."""

    def __init__(self, conflict: Conflict, request: Request, solution: Solution | None) -> None:
        self._conflict, self._request, self._solution = conflict, request, solution
        self._world = conflict.provider.world
        self._names = contested(conflict)
        unlisted = list(_unlisted(conflict))
        self._lacking = [*(it for it in missing(conflict) if it.origin), *unlisted]
        """The requirements that no version on an index meets."""
        self.of_folders = list(dict.fromkeys(_of_folders(self._lacking, conflict, solution, request.packages)))
        self._beside = [name for name in self._names if name in self._world.present]
        """The packages that are installed already."""
        self._is_of_conda = any(self._world.present[name].requires is None for name in self._beside)
        self._unfit = {name: found for name in self._names if (found := reasons_of(name, conflict))}
        """Why no version of a package can be installed, each reason with its newest version."""
        self._unknown = [name for name in _unknown(conflict) if name not in {it.name for it in unlisted}]
        self._unknown += [name for name, found in self._unfit.items() if found.keys() == {Unfit.NO_FILE}]
        """The packages on no index; those without a file are only known from the matrix."""
        self._reasons = {it for found in self._unfit.values() for it in found}
        if any(self._world.limits(name) for name in self._unfit):  # the stack leaves no others
            self._reasons -= {Unfit.YANKED, Unfit.PRERELEASE}
        self._without_code = list(without_gpu_code(conflict))[:_FEW_NAMES]

    def code_and_message(self, target: str) -> tuple[str, str]:
        """The code and the message of the error. ``target`` is the Python and the platform."""
        if self._is_about_files:
            return self._about_files(target)
        if self._unknown:
            return "package-not-found", f"no package index has {' or '.join(self._unknown)}"
        if self._lacking:
            return _lacking(self._lacking)
        stack = _with(self._solution, ())
        if self._without_code:
            names = " and ".join(it.name for it in self._without_code)
            return "gpu-not-supported", f"{names} cannot run on the GPU, for {target}{stack}"
        return PACKAGES_CONFLICT, _conflict_text(self._conflict, self._beside, target + stack, self._is_of_conda)

    def _about_files(self, target: str) -> tuple[str, str]:
        """The code and the message if versions would fit, and none of their files can be installed."""
        names = " and ".join(self._names[:_FEW_NAMES])
        if self._reasons == {Unfit.YANKED}:
            return "yanked", f"the required {names} was withdrawn"
        if self._reasons == {Unfit.PRERELEASE}:
            return "version-not-found", f"the required {names} has only pre-releases"
        if Unfit.OTHER_HASHES in self._reasons:
            return "hash-mismatch", _of_other_hashes(self._unfit, self._beside)
        limited = {name for name in self._unfit if any(it.origin for it in self._world.limits(name))}
        return "no-wheel", _cannot_be_installed(self._unfit, limited, target, self._solution)

    def hints(self, code: str) -> Iterator[Hint]:
        """What the user can do about the error ``code``."""
        conflict, request, solution = self._conflict, self._request, self._solution
        rivals = tuple(_rival_hints(conflict, request, solution))
        yield from rivals
        if self._is_of_conda and code != "hash-mismatch":
            yield Hint("install a required version with conda")
        if code == PACKAGES_CONFLICT:
            yield from _override_hints(conflict, request, solution)
        if not rivals:
            yield from self._file_hints() if self._is_about_files else (self._general_hint(),)
        for name, found in self._unfit.items():
            if solution is not None and Unfit.SOURCE_ONLY in found:
                yield from how_to_compile(name, found[Unfit.SOURCE_ONLY], solution)
        yield from _glibc_hints(conflict, request)
        if code == "hash-mismatch":
            yield from _hash_hints(self._unfit, solution, self._beside, request.requester)

    @property
    def _is_about_files(self) -> bool:
        return bool(self._reasons) and not self._unknown and not self._lacking

    def _general_hint(self) -> Hint:
        named = self._request.requester.name_of
        choices = self._solution.choices if self._solution else ()
        of_pytorch = {it.release.package for it in choices if it.release.source is Source.PYTORCH}
        if of_pytorch & {*self._unknown, *(requirement.name for requirement in self._lacking)}:
            return Hint(f"name a PyTorch index or mirror that has this build with {named('pytorch-index-url')}")
        if self._unknown:
            return Hint(f"check the spelling, or add the index that has it with {named('extra-index-urls')}")
        if self._lacking:
            return Hint(f"require other versions, or add the index that has these with {named('extra-index-urls')}")
        if self._without_code:
            required = " and ".join(dict.fromkeys(it.required for it in self._without_code))
            other = ", or require another version" if all(it.others_run for it in self._without_code) else ""
            return Hint(f"leave out {required}{other}: no other PyTorch, CUDA or Python changes this")
        return Hint("relax one of these requirements, or move one into a separate environment")

    def _file_hints(self) -> Iterator[Hint]:
        request, reasons = self._request, self._reasons
        if reasons & {Unfit.SOURCE_ONLY, Unfit.NEEDS_BUILD} and not request.packages.allow_builds:
            yield build_hint(request)
        if reasons & {Unfit.OTHER_PYTHON, Unfit.OTHER_PLATFORM}:
            yield self._on_other_pythons()
        if Unfit.YANKED in reasons:
            yield Hint("pin it with == to install a withdrawn version")
        if reasons == {Unfit.PRERELEASE}:
            pre = request._replace(packages=request.packages._replace(pre=True))
            yield way_out("allow pre-releases, or name one behind >=", pre, request)
        if Unfit.TOO_NEW in reasons:
            yield Hint(f"set a later date with {request.requester.name_of('exclude-newer')}")

    def _on_other_pythons(self) -> Hint:
        """Name a Python that the packages have wheels for, unless every Python was tried."""
        request = self._request
        if request.frameworks and request.python is None:
            return Hint("try another version of the package")
        python = other_python_for(self._unfit, self._conflict)
        names = " and ".join(f"{name} {next(iter(found.values()))}" for name, found in self._unfit.items())
        if python is None:
            platform = self._world.wanted.interpreter.platform
            return Hint(f"no Python on {platform} has wheels of {names}: require another version or another package")
        text = f"{names} can be installed on Python {python}"
        return way_out(text, request._replace(python=SpecifierSet(f"=={python}.*")), request)


def _most_telling_first(error: UnsolvableError, conflict: Conflict, of_folders: Sequence[str]) -> Iterator[str]:
    """The causes that tell more than the message of the error."""
    if error.code == PACKAGES_CONFLICT:
        yield from (*newest_excluded(conflict), *between_packages(conflict), *reversed(error.cause))
    yield from of_folders[-1:]


def _conflict_text(conflict: Conflict, beside: list[str], target: str, is_of_conda: bool) -> str:
    """A sentence that names the conflicting packages. ``beside`` are those that are already installed."""
    if beside:
        present = conflict.provider.world.present
        names = [it if is_of_conda else str(present[it]) for it in beside[:_FEW_NAMES]]
        what = "conda packages" if is_of_conda else "installed"
        do = "do" if is_of_conda or len(names) > 1 else "does"
        return f"the {what} {' and '.join(names)} {do} not meet the requirements for {target}"
    names = contested(conflict)[:_FEW_NAMES]
    if conflict.provider.world.virtual.isdisjoint(names):
        return f"the requirements for {' and '.join(names)} conflict, for {target}"
    return f"only one package may install {' and '.join(names)}, for {target}"


def _refused(conflict: Conflict, code: str, message: str) -> Iterator[Refused]:
    """The user's own requirements that no installable package meets, without frameworks."""
    if code not in ("package-not-found", "no-wheel"):
        return
    direct = {
        requirement.name: requirement.origin
        for requirement, parent in conflict.causes
        if parent is None and requirement.origin != THE_STACK
    }
    for name, origin in direct.items():
        if origin and name not in FRAMEWORK_OF_WHEEL:
            yield Refused(name, place_of(origin, name), "is on no index" if code == "package-not-found" else message)


def refusal(code: str, message: str, causes: Sequence[str], hints: tuple[Hint, ...]) -> UnsolvableError:
    """An error that prints its first, most informative ``causes``; ``-v`` and JSON have all of them."""
    steps = tuple(ConflictStep(cause, "", "") for cause in causes)
    return UnsolvableError(code, message, tuple(causes[:_MOST_CAUSES]), hints, conflict=steps)


def rank_of(conflict: Conflict, refused: UnsolvableError) -> tuple[bool, ...]:
    """The sort key of a refusal among those for other Pythons; the most informative one is the least.

    A reason that applies to every Python is more informative than one about a build missing from an index, about
    packages that no one requested, or about files that exist for another Python.
    """
    is_requested = any(requirement.origin not in ("", THE_STACK) for requirement, _ in conflict.causes)
    about = {Unfit.OTHER_PLATFORM, Unfit.OTHER_PYTHON}
    is_about_python = any(about & reasons_of(name, conflict).keys() for name in contested(conflict))
    return refused.code == NOT_ON_INDEX, not is_requested, is_about_python


def index_hint(index: str, request: Request) -> Hint:
    """Suggest adding the index that the source distribution of a package refers to."""
    added = request._replace(extra_index_urls=tuple(dict.fromkeys((*request.extra_index_urls, index))))
    return way_out("add the index that has the wheels", added, request)


def build_hint(request: Request, python: SpecifierSet | None = None) -> Hint:
    """Suggest building packages, perhaps for a Python that the user did not name."""
    building = request._replace(packages=request.packages._replace(allow_builds=True), python=python or request.python)
    return way_out("allow building packages from source, which runs their code", building, request)


def _with(solution: Solution | None, but: Collection[str]) -> str:
    """The frameworks of the stack as text, without those whose packages are in ``but``."""
    labels = [it.release.label for it in solution.choices if it.release.package not in but] if solution else []
    return f" with {sentence_list(labels)}" if labels else ""


def _of_other_hashes(unfit: Mapping[str, Mapping[Unfit, str]], of_conda: Collection[str]) -> str:
    names = [f"{name} {found[Unfit.OTHER_HASHES]}" for name, found in unfit.items() if Unfit.OTHER_HASHES in found]
    if of_conda:
        return f"conda installs {' and '.join(of_conda)}, and the required hashes are those of a wheel"
    return f"the index has other hashes for {' and '.join(names[:_FEW_NAMES])} than required"


def _hash_hints(
    unfit: Mapping[str, Mapping[Unfit, str]], solution: Solution | None, of_conda: Collection[str], requester: Requester
) -> Iterator[Hint]:
    if of_conda:
        yield Hint(f"remove the hashes of {' and '.join(of_conda)}: the lock has those of the conda package")
        return
    yield Hint("find out who changed the file on the index before you trust it")
    yield Hint("remove --hash, or replace the hashes by those of this index")
    stack = {} if solution is None else {it.release.package: it.release.source for it in solution.choices}
    if any(stack.get(name) is Source.PYTORCH for name in unfit):
        yield Hint(f"if the hashes are those of the builds on PyPI, use them: {requester.setting('sources', 'pypi')}")


def _glibc_hints(conflict: Conflict, request: Request) -> Iterator[Hint]:
    needed = glibc_needed_in(conflict)
    if needed is not None:
        text = f"for a machine with glibc {needed} or newer"
        yield way_out(text, request._replace(glibc=needed), request, NEWER_GLIBC)


def _cannot_be_installed(
    unfit: Mapping[str, Mapping[Unfit, str]], limited: AbstractSet[str], target: str, solution: Solution | None
) -> str:
    """The packages without a file for the target, and why their newest versions do not fit.

    A package of the stack, and one that constraints limit to old versions, is named with its version. The stack is
    named unless the C library is the only reason, which no other stack changes.
    """
    stack = {} if solution is None else {it.release.package: it.release.full_version for it in solution.choices}
    versions = {**{name: next(iter(unfit[name].values())) for name in limited}, **stack}
    names = [f"{name} {versions[name]}" if name in versions else name for name in unfit]
    why = list(dict.fromkeys(next(iter(found)) for found in unfit.values()))
    beside = "" if why == [Unfit.NEWER_GLIBC] else _with(solution, unfit.keys())
    return (
        f"{' and '.join(names[:_FEW_NAMES])} cannot be installed on {target}{beside}: {' and '.join(why[:_FEW_NAMES])}"
    )


def _lacking(requirements: list[Requirement]) -> tuple[str, str]:
    names = " and ".join(dict.fromkeys(versions(requirement) for requirement in requirements))
    if all(requirement.origin == THE_STACK for requirement in requirements):
        return NOT_ON_INDEX, f"no package index has {names}, the best build for this machine"
    return "version-not-found", f"no package index has {names}"


def _of_folders(
    lacking: list[Requirement], conflict: Conflict, solution: Solution | None, packages: Packages
) -> Iterator[str]:
    """The reasons for packages that a folder of PyTorch's index does not have, so that other indexes were queried."""
    indexes = conflict.provider.world.indexes
    releases = {it.release.package: it.release for it in (solution.choices if solution else ())}
    for requirement in lacking:
        own = index_of(releases[requirement.name], packages) if requirement.name in releases else None
        folder = "" if own is None else without_secrets(own).rstrip("/")
        if requirement.releases is None:
            yield f"{requirement.origin} requires {versions(requirement)}"
            yield (
                f"{folder} does not have {requirement.name}, and no other index has it"
                if folder
                else f"no index other than PyTorch's has {requirement.name}"
            )
            continue
        if not folder:
            continue
        project = requirement.releases.project
        other = indexes.index_url(project)
        if other != folder:
            available = (
                " to ".join(dict.fromkeys((project.versions[0], project.versions[-1]))) if project.versions else "none"
            )
            yield f"{requirement.origin} requires {versions(requirement)}"
            yield f"{folder} does not have {requirement.name}, and {other} has {available}"


def _unlisted(conflict: Conflict) -> Iterator[Requirement]:
    """Packages of the stack that no queried index has, but which another folder of PyTorch's index may have."""
    for requirement, _ in conflict.causes:
        if requirement.origin == THE_STACK and requirement.releases is None and requirement.name in OWN_INDEX:
            yield requirement


def _unknown(conflict: Conflict) -> list[str]:
    return [name for name in contested(conflict) if conflict.provider.world.releases(name) is None]


def _rival_hints(conflict: Conflict, request: Request, solution: Solution | None) -> Iterator[Hint]:
    """What to do if a framework is required under the name of another build than that of the stack."""
    for release in (choice.release for choice in (() if solution is None else solution.choices)):
        others = set(rivals_of(release.framework)) - {release.package}
        framework = request.requester.setting("frameworks", release.framework)
        for requirement, parent in conflict.causes:
            if requirement.name not in others:
                continue
            if parent is None:
                wanted = f"{release.package}{requirement.specifier}"
                instead = f"{versions(requirement)} ({requirement.origin})"
                yield Hint(f"require {wanted} instead of {instead}: it is the build for this machine")
            else:
                yield Hint(
                    f"{parent.name} requires {requirement.name} by that name: to install that build, request neither "
                    f"{framework} nor {release.package}"
                )


def _override_hints(conflict: Conflict, request: Request, solution: Solution | None) -> Iterator[Hint]:
    """How to ignore bounds on a framework that a package has only in an extra, which nothing requested."""
    stack = {choice.release.package: choice.release.version for choice in (solution.choices if solution else ())}
    world = conflict.provider.world
    for requirement, parent in conflict.causes:
        if parent is None or parent.extra or parent.name in world.present or requirement.name not in stack:
            continue
        needs = world.metadata(parent.releases, parent.fit.best).requires or ()
        bounds = [need for need in needs if need.name == requirement.name]  # none if the matrix has the bound
        if bounds and all(need.for_extra for need in bounds):
            override = f"{requirement.name}=={stack[requirement.name]}"
            packages = request.packages._replace(overrides=(*request.packages.overrides, override))
            text = f"ignore what only an extra of {parent.name} requires"
            yield way_out(text, request._replace(packages=packages), request)


def typed_requirements(request: Request) -> Iterator[tuple[str, Need]]:
    """The named requirements on the command line, as typed."""
    yield from ((text, parse_need(text)) for text in request.packages.requirements if not gives_address(text))


def requiring(name: str, specifier: str, text: str, request: Request) -> Hint:
    """A hint to require other versions of ``name``; with a command if the requirement was typed."""
    typed = {line for line, need in typed_requirements(request) if need.name == name}
    if not typed:
        return Hint(f"{text}: require {name}{specifier}")
    requirements = dict.fromkeys(
        str(parse_need(line)._replace(specifier=specifier)) if line in typed else line
        for line in request.packages.requirements
    )
    packages = request.packages._replace(requirements=tuple(requirements))
    return way_out(text, request._replace(packages=packages), request)


def fitting_hints(conflict: Conflict, request: Request) -> Iterator[Hint]:
    """Versions of the packages in ``conflict`` that would fit, found within a few seconds."""
    for name, version in fitting_versions(conflict, monotonic() + _SECONDS):
        yield requiring(name, f"=={version}", f"{name} {version} would fit", request)
