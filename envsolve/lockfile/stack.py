"""The stack of an answer, as a lock records it, and as a lock by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.conda_specs import channels_of, conda_specs, environment_name
from envsolve.lockfile.header import machines_of
from envsolve.lockfile.lock import Lock, LockedFramework, Made, RequestedSpec, Stack
from envsolve.lockfile.pip_specs import pip_specs, wheels_of
from envsolve.lockfile.remarks import needs_library_path, usage_remarks
from envsolve.lockfile.wheels import find_links_of, index_of, needs_direct_url, requirements_of
from envsolve.model.conda import VirtualPackage
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.host import Host
from envsolve.model.release import Release
from envsolve.model.solution import Solution
from envsolve.model.versions import CudaVersion, LibcVersion

_RUNTIME = re.compile("|".join((r"nvidia-cuda-runtime(?:-cu\d\d)?", *CUDA_PACKAGES)))
"""The CUDA runtime. Its version starts with that of its toolkit, which is not always true for other parts. For conda
packages, these are the ones with the version of all parts."""
_CUDNN = re.compile(r"nvidia-cudnn-cu\d\d|cudnn|libcudnn")
_FIRST_MINOR_COMPATIBLE = 11
"""From CUDA 11 on, a driver for the first minor runs the whole major (NVIDIA, CUDA compatibility)."""
_ASSUMED_GLIBC = LibcVersion.parse("2.28")
"""What pixi assumes for Linux by default."""


def lock_of(answer: Answer, *, sets_library_path: bool = False) -> Lock:
    """Return the requirements of a stack as a lock without packages.

    ``sets_library_path`` is true if the file can set variables. The virtual packages of the lock are what a machine
    must have, unless a solver assumes it by default.
    """
    solution = answer.solution
    request, releases = solution.request, [choice.release for choice in wheels_of(solution)]
    indexes = {it: index_of(release) or "" for release in releases for it in requirements_of(release, solution.python)}
    looked = [release for release in releases if not needs_direct_url(release)]
    variable = ("LD_LIBRARY_PATH", "$CONDA_PREFIX/lib")
    needs_pip = bool(releases) or any(it.by_pip for it in answer.requested)
    needs_pip = needs_pip and not any(it.spec == "pip" for it in answer.requested)
    return Lock(
        (),
        solution.problem.platform.value,
        str(solution.python),
        stack=stack_of(solution, answer.hosts, {}),
        made=Made(
            answer.envsolve_version, answer.command, None, answer.matrix_date, answer.own_matrix, options=answer.options
        ),
        default_index=request.index_url or "",
        default_is_plain=request.index_url is None,
        indexes=tuple(dict.fromkeys((*request.extra_index_urls, *filter(None, map(index_of, looked))))),
        find_links=tuple(dict.fromkeys(filter(None, map(find_links_of, looked)))),
        channels=tuple(channels_of(solution)),
        virtual_packages=tuple(_required(solution)),
        requested=(
            *(RequestedSpec(spec, reason, of_stack=True) for spec, reason in conda_specs(solution)),
            *(it for it in answer.requested if not it.by_pip),
            *((RequestedSpec("pip", of_stack=True),) if needs_pip else ()),
            *(
                RequestedSpec(*it, by_pip=True, of_stack=True, index=indexes.get(it[0], ""))
                for it in pip_specs(solution)
            ),
            *(it for it in answer.requested if it.by_pip),
        ),
        environment=environment_name(solution),
        variables=(*((variable,) if sets_library_path and needs_library_path(solution) else ()), *answer.variables),
        remarks=tuple(usage_remarks(solution, sets_library_path=sets_library_path)),
    )


def _required(solution: Solution) -> Iterator[VirtualPackage]:
    for name, version in (("__cuda", _driver_cuda(solution)), ("__glibc", _glibc(solution))):
        if version is not None:
            yield VirtualPackage(name, str(version))
    if solution.toolkit is not None and solution.problem.gpus:
        yield VirtualPackage("__cuda_arch", str(min(solution.problem.gpus)))


def _driver_cuda(solution: Solution) -> CudaVersion | None:
    """The CUDA version of the lowest driver that the stack runs on, as in ``__cuda``: pixi requires that or newer."""
    toolkit, minimum = solution.toolkit, solution.minimum_driver
    if toolkit is None:
        return None
    full = toolkit.full(windows=all(machine.windows_driver for machine in solution.problem.machines))
    in_full = full is not None and minimum is not None and minimum.parts >= full.parts
    if in_full or toolkit.version.major < _FIRST_MINOR_COMPATIBLE:
        return toolkit.version
    return CudaVersion(toolkit.version.major, 0)


def _glibc(solution: Solution) -> LibcVersion | None:
    """The oldest glibc of the machines if pixi would assume a newer one, or a build's if it needs a newer one."""
    known = [machine.glibc for machine in solution.problem.machines if machine.glibc is not None]
    needed = [choice.release.glibc for choice in solution.choices if choice.release.glibc is not None]
    oldest, newest = min(known, default=_ASSUMED_GLIBC), max(needed, default=_ASSUMED_GLIBC)
    if oldest < _ASSUMED_GLIBC:
        return oldest
    return newest if newest > _ASSUMED_GLIBC else None


def stack_of(solution: Solution, hosts: Iterable[Host], versions: Mapping[str, str]) -> Stack:
    """Return the stack for ``hosts`` as it is locked. ``versions`` are those of the installed packages, by name.

    Of the cuDNN releases that fit a stack, it has the installed one, if that is a package.
    """
    pinned = next((version for name, version in versions.items() if _CUDNN.fullmatch(name)), None)
    runtime = next((version for name, version in versions.items() if _RUNTIME.fullmatch(name)), None)
    cuda = None if solution.toolkit is None else str(solution.toolkit.version)
    cudnn = None if solution.cudnn is None else str(solution.cudnn.version)
    return Stack(
        tuple(_framework(choice.release) for choice in solution.choices),
        tuple(str(gpu) for gpu in solution.problem.gpus),
        None if solution.minimum_driver is None else str(solution.minimum_driver),
        cuda if runtime is None else ".".join(runtime.split(".")[:2]),
        pinned or cudnn,
        machines_of(solution, hosts),
    )


def _framework(release: Release) -> LockedFramework:
    return LockedFramework(
        release.framework, str(release.version), release.package, release.source.value, release.build
    )
