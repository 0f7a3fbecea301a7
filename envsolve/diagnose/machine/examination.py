"""Run the checks of a machine, in order; a check that fails is reported and does not affect the others.

Everything that was examined is the inventory, ready for JSON: the driver, toolkits, libraries, and relevant variables
by name. Other variables are not shown, since their values can be secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envsolve.diagnose.machine import (
    broken_libraries,
    driver_library,
    driver_versions,
    gpus,
    library_path,
    presence,
    reported,
    system,
    toolkit,
    variables,
)
from envsolve.diagnose.machine.libraries import Library, Reached
from envsolve.diagnose.machine.nearest import nearest_the_cause
from envsolve.diagnose.machine.survey import Survey
from envsolve.diagnose.report import Report, found_by, printable, printable_inventory, run_checks
from envsolve.findings.catalogue import make_finding
from envsolve.host.loader import CUDA_LIBRARY, LIBRARY_PATH, NVML_LIBRARY
from envsolve.model.finding import Finding

CHECKS: tuple[tuple[str, Callable[[Survey], Iterator[Finding]]], ...] = (
    ("the platform", system.check_platform),
    ("the kernel", system.check_first_wsl),
    ("the C library", system.check_c_library),
    ("the GPUs", presence.check_hardware),
    ("the kernel drivers of the GPUs", presence.check_other_drivers),
    ("whether a driver is installed", presence.check_installed),
    ("the GPUs that no driver takes", presence.check_undriven),
    ("the driver's branch", driver_versions.check_branch),
    ("whether driver and GPUs agree", driver_versions.check_doubtful),
    ("the kind of kernel module", driver_versions.check_module_kind),
    ("the container", presence.check_container),
    ("a Linux driver inside WSL", system.check_linux_driver),
    ("the toolkit's stubs", driver_library.check_stubs),
    ("forward compatibility", driver_library.check_compatibility),
    ("the driver's versions", driver_versions.check_versions),
    ("the driver's library", driver_library.check_library),
    ("the file of the driver's library", driver_library.check_damage),
    ("the driver's library NVML", driver_library.check_management_library),
    ("the device files", presence.check_device_files),
    ("what the driver reported", reported.check_reported),
    ("hidden GPUs", gpus.check_visible),
    ("MIG", gpus.check_instances),
    ("the kinds of GPUs", gpus.check_kinds),
    ("files of CUDA libraries", broken_libraries.check_files),
    ("the entries of LD_LIBRARY_PATH", library_path.check_entries),
    ("CUDA libraries on the library path", library_path.check_libraries),
    ("directories of the library path", library_path.check_missing),
    ("libraries on PATH", library_path.check_program_path),
    ("the loader's cache", library_path.check_cache),
    ("stale entries of the loader's cache", library_path.check_stale),
    ("variables for toolkits", toolkit.check_pointers),
    ("XLA_FLAGS", toolkit.check_data_directory),
    ("the toolkit and the driver", toolkit.check_driver),
    ("the toolkit and the GPUs", toolkit.check_gpus),
    ("variables of CUDA", variables.check_variables),
    ("overrides of other tools", variables.check_overrides),
    ("Jetson", system.check_jetson),
    ("the toolkits", toolkit.check_several),
    ("the sources of the detection", reported.check_unreadable),
)
"""The order of findings of the same severity: system, driver, what hides it, libraries, variables."""
VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", presence.DEVICES, presence.CAPABILITIES, "CUDA_DEVICE_ORDER"),
    *(LIBRARY_PATH, "LD_PRELOAD", *toolkit.TOOLKIT_VARIABLES, "CUDNN_PATH", "XLA_FLAGS"),
    *(name for rule in variables.RULES for name in rule.names),
    *variables.OVERRIDES,
    *("CONDA_PREFIX", "VIRTUAL_ENV"),
)
"""The variables that the checks read, except PATH, which is long and uninformative."""


def examine_machine(survey: Survey) -> Report:
    """Run all checks, without changing anything, without root and without starting a process.

    Raises MatrixError if the matrix cannot be read; any other failure becomes a finding.
    """
    found = run_checks(CHECKS, survey)
    findings = [finding for _, of_check in found for finding in of_check]
    inventory = printable_inventory(inventory_of(survey))
    gaps = tuple(f"{path} could not be looked at: {why}" for path, why in survey.files.gaps.items())
    if gaps:
        findings.append(make_finding("places-not-checked", gaps, places=gaps))
    return Report(nearest_the_cause(map(printable, findings)), inventory, found_by(found))


def inventory_of(survey: Survey) -> Mapping[str, object]:
    """Everything that was examined."""
    libraries = (
        *_driver_libraries(survey),
        *library_path.libraries_on_path(survey),
        *library_path.cached_libraries(survey),
    )
    return {
        "driver": _driver(survey),
        "toolkits": toolkit.toolkits_as_json(survey.toolkits),
        "variables": {name: survey.environ[name] for name in VARIABLES if name in survey.environ},
        "libraries": [it._asdict() for it in dict.fromkeys(libraries)],
        "container": None if survey.container is None else survey.container._asdict(),
        "wsl": survey.is_wsl,
        "jetson": survey.l4t,
        "distribution": None if survey.distribution is None else survey.distribution.name or survey.distribution.id,
    }


def _driver(survey: Survey) -> dict[str, object]:
    return {
        "version": _text(survey.host.driver),
        "cuda": _text(survey.host.driver_cuda),
        "status": str(survey.host.status),
        "kernel_module": _text(survey.module_version) if survey.is_linux else None,
        "open_kernel_module": survey.module_is_open if survey.is_linux else None,
        "pci": [it._asdict() for it in survey.bus],
        "libcuda": _reached(survey.libcuda),
        "nvml": _reached(survey.nvml),
    }


def _reached(found: Reached | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {"path": found.path, "real": found.real, "version": _text(found.version), "origin": found.rule.value}


def _driver_libraries(survey: Survey) -> tuple[Library, ...]:
    found = ((CUDA_LIBRARY, survey.libcuda), (NVML_LIBRARY, survey.nvml))
    return tuple(Library(name, it.path, _text(it.version), it.rule.value) for name, it in found if it is not None)


def _text(value: object | None) -> str | None:
    return None if value is None else str(value)
