"""The examination of an environment: all checks in order, independent of each other.

If one check cannot read something, this becomes a finding, and the other checks continue: a broken environment is what
this is for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.diagnose.environment import malformed_files
from envsolve.diagnose.environment.checks import (
    build_facts,
    conda_and_pip,
    conda_cuda,
    cuda_packages,
    driver,
    gpu_code,
    kernels,
    library_path,
    library_versions,
    ownership,
    package_files,
    path_files,
    python_abi,
    pythons,
    remains,
    requirements,
    windows_runtime,
)
from envsolve.diagnose.environment.commands import bound
from envsolve.diagnose.environment.listing import listing_of
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.plain_text import printable, printable_inventory
from envsolve.findings.catalogue import make_finding
from envsolve.host.machine import this_platform
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Host, Platform
from envsolve.validation.inventory import Inventory

CHECKS: tuple[tuple[str, Callable[[Scene], Iterable[Finding]]], ...] = (
    ("the frameworks and the libraries they load", lambda scene: scene.static.findings),
    ("the driver for the frameworks", driver.driver_for_builds),
    ("the driver for PTX", driver.driver_for_ptx),
    ("code for the GPUs", gpu_code.code_of_builds),
    ("the cuDNN that is loaded", library_versions.old_cudnn),
    ("the parts of cuDNN", library_versions.cudnn_of_two_releases),
    ("functions of CUDA's libraries", library_versions.missing_functions),
    ("the C++ library", library_versions.old_cxx_library),
    ("the C++ runtime of Windows", windows_runtime.visual_c_runtime),
    ("requirements of packages", requirements.requirements),
    ("parts of one version", requirements.parts_of_one_version),
    ("companions of one CUDA", requirements.companions_of_one_cuda),
    ("what builds need beyond their metadata", build_facts.packages_that_need_others),
    ("code for the GPUs in further packages", build_facts.packages_without_code),
    ("the CUDA of further packages", build_facts.packages_for_other_cuda),
    ("modules for another Python", python_abi.modules_of_another_python),
    ("files of packages", package_files.missing_files),
    ("files that were written over", package_files.overwritten_files),
    ("files of two packages", ownership.shared_files),
    ("remains of installations", remains.renamed),
    ("packages recorded twice", remains.recorded_twice),
    ("records of packages", remains.without_record),
    ("malformed files", malformed_files.of_environment),
    (".pth files", path_files.path_files),
    ("packages for another CUDA", cuda_packages.leftover_packages),
    ("libraries of conda and of pip", conda_and_pip.libraries_of_both),
    ("packages of conda and of pip", conda_and_pip.overwritten_packages),
    ("conda's CUDA", conda_cuda.toolkit_of_another_cuda),
    ("conda's builds", conda_cuda.solved_without_cuda),
    ("what is active", pythons.stale_activation),
    ("python on PATH", pythons.other_python),
    ("pip on PATH", pythons.other_pip),
    ("PYTHONHOME", pythons.python_home),
    ("modules from elsewhere", pythons.injected_modules),
    ("kernels of Jupyter", kernels.kernels),
    ("LD_LIBRARY_PATH", library_path.unused_library_path),
    ("copies of libraries", library_path.hidden_copies),
    ("LD_PRELOAD", library_path.preloaded_libraries),
    ("the current directory", library_path.current_directory),
    ("directories of the environment", remains.closed_directories),
)
"""The checks by their subject, in the order of findings with the same severity."""
_FAILURES = (OSError, UnreadableLibraryError, ValueError, LookupError, RuntimeError, TypeError, AttributeError)
"""What a check raises for files that contradict themselves: errors of reading, and of invalid values. RuntimeError is
what pathlib raises for circular links before Python 3.13, and RecursionError is one.
"""


class EnvironmentReport(NamedTuple):
    """The findings, the most severe first, and the environment as data (see :mod:`.listing`)."""

    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    scene: Scene
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The subjects of the checks, each with the ids of its findings."""


def examine_environment(
    inventory: Inventory,
    host: Host,
    environ: Mapping[str, str],
    platform: Platform | None = None,
    matrix: Matrix | None = None,
    *,
    shell: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> EnvironmentReport:
    """Examine an environment on the machine ``host``; files are read, and nothing is run or written.

    ``environ`` are the variables of the environment's programs, ``shell`` those of the user's shell if they differ.
    ``platform`` defaults to this machine's, ``matrix`` to the shipped one and ``directory`` to the current one. Raises
    MatrixError for a matrix that does not load.
    """
    scene = Scene(
        inventory,
        host,
        environ,
        platform or this_platform(),
        matrix or Matrix(),
        environ if shell is None else shell,
        directory or Path.cwd(),
    )
    found = [(what, list(_looked_at(what, check, scene))) for what, check in CHECKS]
    findings = [finding for _, of_check in found for finding in of_check]
    try:
        listing = printable_inventory(listing_of(scene))
    except _FAILURES as error:
        listing = {}
        findings.append(_not_looked_at("the list of packages", error))
    ordered = sorted(dict.fromkeys(map(printable, findings)), key=lambda it: list(Severity).index(it.severity))
    checks = tuple((what, tuple(it.id for it in of_check)) for what, of_check in found)
    return EnvironmentReport(tuple(ordered), listing, scene, checks)


def _looked_at(what: str, check: Callable[[Scene], Iterable[Finding]], scene: Scene) -> Iterator[Finding]:
    """The findings of a check, up to the point where it fails."""
    try:
        for finding in check(scene):
            yield bound(finding, scene)
    except _FAILURES as error:
        yield _not_looked_at(what, error)


def _not_looked_at(what: str, error: Exception) -> Finding:
    text = f"{type(error).__name__}: {error}"
    return make_finding("check-not-made", (text,), about=what, subject=what[:1].upper() + what[1:], reason=text)
