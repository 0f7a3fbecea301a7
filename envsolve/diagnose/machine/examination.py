"""Run the checks of a machine, in order; a check that fails is reported and does not affect the others.

Everything that was examined is the inventory, ready for JSON: the driver, toolkits, libraries, and relevant variables
by name. Other variables are not shown, since their values can be secrets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envsolve.diagnose.machine.broken_libraries import check_files
from envsolve.diagnose.machine.driver_library import (
    check_compatibility,
    check_damage,
    check_library,
    check_management_library,
    check_stubs,
)
from envsolve.diagnose.machine.driver_versions import check_branch, check_doubtful, check_module_kind, check_versions
from envsolve.diagnose.machine.gpus import check_instances, check_kinds, check_visible
from envsolve.diagnose.machine.libraries import Library, Reached
from envsolve.diagnose.machine.library_path import (
    cached_libraries,
    check_cache,
    check_entries,
    check_libraries,
    check_missing,
    check_program_path,
    check_stale,
    libraries_on_path,
)
from envsolve.diagnose.machine.nearest import nearest_the_cause
from envsolve.diagnose.machine.presence import (
    CAPABILITIES,
    DEVICES,
    check_container,
    check_device_files,
    check_hardware,
    check_installed,
    check_other_drivers,
    check_undriven,
)
from envsolve.diagnose.machine.reported import check_reported, check_unreadable
from envsolve.diagnose.machine.survey import Survey
from envsolve.diagnose.machine.system import (
    check_c_library,
    check_first_wsl,
    check_jetson,
    check_linux_driver,
    check_platform,
)
from envsolve.diagnose.machine.toolkit import (
    TOOLKIT_VARIABLES,
    check_data_directory,
    check_driver,
    check_gpus,
    check_pointers,
    check_several,
    toolkits_as_json,
)
from envsolve.diagnose.machine.variables import OVERRIDES, RULES, check_overrides, check_variables
from envsolve.diagnose.report import Report, found_by, printable, printable_inventory
from envsolve.errors import EnvsolveError
from envsolve.findings.catalogue import make_finding
from envsolve.host.loader import CUDA_LIBRARY, LIBRARY_PATH, NVML_LIBRARY
from envsolve.model.finding import Finding

CHECKS: tuple[tuple[str, Callable[[Survey], Iterator[Finding]]], ...] = (
    ("the platform", check_platform),
    ("the kernel", check_first_wsl),
    ("the C library", check_c_library),
    ("the GPUs", check_hardware),
    ("the kernel drivers of the GPUs", check_other_drivers),
    ("whether a driver is installed", check_installed),
    ("the GPUs that no driver takes", check_undriven),
    ("the driver's branch", check_branch),
    ("whether driver and GPUs agree", check_doubtful),
    ("the kind of kernel module", check_module_kind),
    ("the container", check_container),
    ("a Linux driver inside WSL", check_linux_driver),
    ("the toolkit's stubs", check_stubs),
    ("forward compatibility", check_compatibility),
    ("the driver's versions", check_versions),
    ("the driver's library", check_library),
    ("the file of the driver's library", check_damage),
    ("the driver's library NVML", check_management_library),
    ("the device files", check_device_files),
    ("what the driver reported", check_reported),
    ("hidden GPUs", check_visible),
    ("MIG", check_instances),
    ("the kinds of GPUs", check_kinds),
    ("files of CUDA libraries", check_files),
    ("the entries of LD_LIBRARY_PATH", check_entries),
    ("CUDA libraries on the library path", check_libraries),
    ("directories of the library path", check_missing),
    ("libraries on PATH", check_program_path),
    ("the loader's cache", check_cache),
    ("stale entries of the loader's cache", check_stale),
    ("variables for toolkits", check_pointers),
    ("XLA_FLAGS", check_data_directory),
    ("the toolkit and the driver", check_driver),
    ("the toolkit and the GPUs", check_gpus),
    ("variables of CUDA", check_variables),
    ("overrides of other tools", check_overrides),
    ("Jetson", check_jetson),
    ("the toolkits", check_several),
    ("the sources of the detection", check_unreadable),
)
"""The order of findings of the same severity: system, driver, what hides it, libraries, variables."""
VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", DEVICES, CAPABILITIES, "CUDA_DEVICE_ORDER"),
    *(LIBRARY_PATH, "LD_PRELOAD", *TOOLKIT_VARIABLES, "CUDNN_PATH", "XLA_FLAGS"),
    *(name for rule in RULES for name in rule.names),
    *OVERRIDES,
    *("CONDA_PREFIX", "VIRTUAL_ENV"),
)
"""The variables that the checks read, except PATH, which is long and uninformative."""


def examine_machine(survey: Survey) -> Report:
    """Run all checks, without changing anything, without root and without starting a process.

    Raises MatrixError if the matrix cannot be read; any other failure becomes a finding.
    """
    failures: list[str] = []
    found = [(subject, _findings(subject, check, survey, failures)) for subject, check in CHECKS]
    findings = [finding for _, of_check in found for finding in of_check]
    inventory = printable_inventory(inventory_of(survey))
    gaps = [f"{path} could not be looked at: {why}" for path, why in survey.files.gaps.items()]
    if unseen := [*failures, *gaps]:
        findings.append(make_finding("places-not-checked", unseen, places=tuple(unseen)))
    return Report(nearest_the_cause(map(printable, findings)), inventory, found_by(found))


def _findings(
    subject: str, check: Callable[[Survey], Iterator[Finding]], survey: Survey, failures: list[str]
) -> list[Finding]:
    try:
        return list(check(survey))
    except EnvsolveError:
        raise
    except OSError as error:
        failures.append(f"{subject} could not be looked at: {error}")
    except Exception as error:  # noqa: BLE001 - the other checks are worth more than a traceback
        failures.append(f"{subject} could not be looked at: {type(error).__name__}: {error}")
    return []


def inventory_of(survey: Survey) -> Mapping[str, object]:
    """Everything that was examined."""
    libraries = (*_driver_libraries(survey), *libraries_on_path(survey), *cached_libraries(survey))
    return {
        "driver": _driver(survey),
        "toolkits": toolkits_as_json(survey.toolkits),
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
