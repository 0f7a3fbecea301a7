"""The examination of an environment: all checks in order, independent of each other.

If one check cannot read something, this becomes a finding, and the other checks continue: a broken environment is what
this is for. Nothing is run. A validation makes some of the checks, too (:func:`examine_libraries`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.checks import (
    conda,
    driver,
    gpu_code,
    kernels,
    libraries,
    library_path,
    library_versions,
    missing,
    module_directories,
    package_files,
    packages,
    pythons,
    requirements,
)
from envsolve.diagnose.environment.commands import bound
from envsolve.diagnose.environment.malformed_files import malformed_files
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.report import Report, found_by, not_made, printable, printable_inventory, run_checks
from envsolve.model.finding import Finding, worst_first
from envsolve.resolve.closure.bounds import cuda_major_of
from envsolve.validation.metadata import Package
from envsolve.validation.report import Library, StaticReport

CHECKS: tuple[tuple[str, Callable[[Scene], Iterable[Finding]]], ...] = (
    ("the frameworks and the libraries they load", lambda scene: scene.static.findings),
    ("the driver for the frameworks", driver.driver_for_builds),
    ("the driver for PTX", driver.driver_for_ptx),
    ("code for the GPUs", gpu_code.code_of_builds),
    ("the cuDNN that is loaded", library_versions.old_cudnn),
    ("functions of CUDA's libraries", library_versions.missing_functions),
    ("the C++ library", library_versions.old_cxx_library),
    ("the C++ runtime of Windows", missing.visual_c_runtime),
    ("requirements of packages", requirements.requirements),
    ("parts of one version", requirements.parts_of_one_version),
    ("companions of one CUDA", requirements.companions_of_one_cuda),
    ("what builds need beyond their metadata", packages.packages_that_need_others),
    ("code for the GPUs in further packages", packages.packages_without_code),
    ("the CUDA of further packages", packages.packages_for_other_cuda),
    ("the C compiler for Triton", packages.missing_c_compiler),
    ("modules for another Python", package_files.modules_of_another_python),
    ("files of packages", package_files.missing_files),
    ("files that were written over", package_files.overwritten_files),
    ("files of two packages", package_files.shared_files),
    ("remains of installations", module_directories.renamed),
    ("packages recorded twice", module_directories.recorded_twice),
    ("records of packages", module_directories.without_record),
    ("malformed files", lambda scene: malformed_files(scene.inventory, scene.packages, scene.conda)),
    (".pth files", module_directories.path_files),
    ("packages for another CUDA", packages.leftover_packages),
    ("libraries of conda and of pip", conda.libraries_of_both),
    ("packages of conda and of pip", conda.overwritten_packages),
    ("conda's CUDA", conda.toolkit_of_another_cuda),
    ("conda's builds", conda.solved_without_cuda),
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
    ("directories of the environment", module_directories.closed_directories),
)
"""The checks by their subject, in the order of findings with the same severity."""
_OF_LIBRARIES = (
    gpu_code.cpu_builds,
    package_files.two_distributions,
    library_versions.old_c_library,
    libraries.damaged_libraries,
    missing.missing_libraries,
    missing.missing_dlls,
    libraries.foreign_libraries,
    libraries.two_majors,
    library_versions.cudnn_of_two_releases,
    gpu_code.code_in_libraries,
)
_LOCAL = re.compile(r"\+cu(\d+)(\d)\b")
_OWN_VERSION = ("cuda-toolkit", "cudatoolkit")


def examine_environment(scene: Scene) -> Report:
    """Examine an environment on a machine; files are read, and nothing is run or written.

    Raises MatrixError for a matrix that does not load.
    """
    found = run_checks(CHECKS, scene)
    findings = [bound(finding, scene) for _, of_check in found for finding in of_check]
    try:
        listing = printable_inventory(listing_of(scene))
    except Exception as error:  # noqa: BLE001 - as for a check
        listing = {}
        findings.append(not_made("the list of packages", error))
    return Report(worst_first(dict.fromkeys(map(printable, findings))), listing, found_by(found))


def examine_libraries(scene: Scene) -> StaticReport:
    """The checks of libraries, which a validation makes too: files are read, and the loader is simulated."""
    findings = dict.fromkeys(finding for check in _OF_LIBRARIES for finding in check(scene))
    found = (scene.files.located(name, path) for paths in scene.loads.found.values() for name, path in paths.items())
    return StaticReport(worst_first(findings), tuple(dict.fromkeys(found)), scene.loads.shadowed)


def listing_of(scene: Scene) -> Mapping[str, object]:
    """Prefix, Python, packages, frameworks, the libraries that they would load, and conda's packages."""
    return {
        "prefix": str(scene.inventory.prefix),
        "python": scene.inventory.python or None,
        "packages": [_package(package, scene) for package in sorted(scene.packages.by_name.values())],
        "frameworks": [_framework(build) for build in scene.builds],
        "libraries": list(_libraries(scene)),
        "conda": [
            {"name": it.name, "version": it.version, "build": it.build, "channel": it.channel or None}
            for it in scene.conda.packages
        ],
    }


def _package(package: Package, scene: Scene) -> dict[str, object]:
    return {
        "name": package.name,
        "version": package.version,
        "installer": package.installer,
        "cuda": _cuda_of(package, scene),
    }


def _cuda_of(package: Package, scene: Scene) -> str | None:
    """The CUDA that a package is for, as reported by its framework, or by its local version or name."""
    build = next((it for it in scene.builds if it.package is not None and it.package.folder == package.folder), None)
    if build is not None:
        return build.cuda
    match = _LOCAL.search(package.version)
    if match is not None:
        return f"{match[1]}.{match[2]}"
    if package.name in _OWN_VERSION:
        return ".".join(package.version.split(".")[:2])
    major = cuda_major_of(package.name)
    return str(major) if major is not None else None


def _framework(build: Build) -> dict[str, object]:
    exact = build.cuda_version
    return {
        "framework": build.name,
        "version": build.version,
        "package": build.conda.name if build.conda else build.package.name if build.package else None,
        "cuda": str(exact) if exact is not None else build.cuda,
        "cudnn": str(build.cudnn) if build.cudnn is not None else None,
        "directory": str(build.framework.directory),
    }


def _libraries(scene: Scene) -> Iterator[dict[str, object]]:
    for library in scene.static.libraries:
        owner = scene.owners.of(library.path)
        yield _versioned(library, scene).as_json() | {"package": owner.name if owner is not None else None}


def _versioned(library: Library, scene: Scene) -> Library:
    version = scene.owners.version_of(library.path) if library.version is None else None
    return library._replace(version=str(version)) if version is not None else library
