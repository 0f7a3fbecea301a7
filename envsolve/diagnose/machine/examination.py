"""Run the checks of a machine, in order; a check that fails is reported and does not affect the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.broken_libraries import check_files
from envsolve.diagnose.machine.cached_libraries import check_cache, check_stale
from envsolve.diagnose.machine.compatibility import check_compatibility
from envsolve.diagnose.machine.container import check_container
from envsolve.diagnose.machine.device_files import check_device_files
from envsolve.diagnose.machine.driver_library import check_damage, check_library, check_stubs
from envsolve.diagnose.machine.driver_versions import check_branch, check_doubtful, check_module_kind, check_versions
from envsolve.diagnose.machine.gpu_kinds import check_instances, check_kinds
from envsolve.diagnose.machine.inventory import inventory_of
from envsolve.diagnose.machine.library_path import (
    check_entries,
    check_libraries,
    check_missing,
    check_preload,
    check_program_path,
)
from envsolve.diagnose.machine.nearest import nearest_the_cause
from envsolve.diagnose.machine.presence import check_hardware, check_installed, check_other_drivers, check_undriven
from envsolve.diagnose.machine.reported import check_reported, check_unreadable
from envsolve.diagnose.machine.survey import Surroundings, Survey
from envsolve.diagnose.machine.system import (
    check_c_library,
    check_first_wsl,
    check_jetson,
    check_linux_driver,
    check_platform,
)
from envsolve.diagnose.machine.toolkit_checks import (
    check_data_directory,
    check_driver,
    check_gpus,
    check_pointers,
    check_several,
)
from envsolve.diagnose.machine.variables import check_overrides, check_variables
from envsolve.diagnose.machine.visibility import check_visible
from envsolve.diagnose.plain_text import printable, printable_inventory
from envsolve.errors import EnvsolveError
from envsolve.findings.catalogue import make_finding
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding


class Check(NamedTuple):
    """One check, and the name of its subject in messages."""

    subject: str
    look: Callable[[Survey], Iterator[Finding]]


class MachineReport(NamedTuple):
    """The findings, the most severe first, and what was checked, ready for JSON."""

    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The subjects of the checks, each with the ids of its findings."""


CHECKS = (
    Check("the platform", check_platform),
    Check("the kernel", check_first_wsl),
    Check("the C library", check_c_library),
    Check("the GPUs", check_hardware),
    Check("the kernel drivers of the GPUs", check_other_drivers),
    Check("whether a driver is installed", check_installed),
    Check("the GPUs that no driver takes", check_undriven),
    Check("the driver's branch", check_branch),
    Check("whether driver and GPUs agree", check_doubtful),
    Check("the kind of kernel module", check_module_kind),
    Check("the container", check_container),
    Check("a Linux driver inside WSL", check_linux_driver),
    Check("the toolkit's stubs", check_stubs),
    Check("forward compatibility", check_compatibility),
    Check("the driver's versions", check_versions),
    Check("the driver's library", check_library),
    Check("the file of the driver's library", check_damage),
    Check("the device files", check_device_files),
    Check("what the driver reported", check_reported),
    Check("hidden GPUs", check_visible),
    Check("MIG", check_instances),
    Check("the kinds of GPUs", check_kinds),
    Check("files of CUDA libraries", check_files),
    Check("the entries of LD_LIBRARY_PATH", check_entries),
    Check("CUDA libraries on the library path", check_libraries),
    Check("directories of the library path", check_missing),
    Check("libraries on PATH", check_program_path),
    Check("LD_PRELOAD", check_preload),
    Check("the loader's cache", check_cache),
    Check("stale entries of the loader's cache", check_stale),
    Check("variables for toolkits", check_pointers),
    Check("XLA_FLAGS", check_data_directory),
    Check("the toolkit and the driver", check_driver),
    Check("the toolkit and the GPUs", check_gpus),
    Check("variables of CUDA", check_variables),
    Check("overrides of other tools", check_overrides),
    Check("Jetson", check_jetson),
    Check("the toolkits", check_several),
    Check("the sources of the detection", check_unreadable),
)
"""The order of findings of the same severity: system, driver, what hides it, libraries, variables."""


def examine_machine(surroundings: Surroundings, matrix: Matrix) -> MachineReport:
    """Run all checks, without changing anything, without root and without starting a process.

    Raises MatrixError if the matrix cannot be read; any other failure becomes a finding.
    """
    survey = Survey(surroundings, matrix)
    failures: list[str] = []
    found = [(check.subject, _findings(check, survey, failures)) for check in CHECKS]
    findings = [finding for _, of_check in found for finding in of_check]
    inventory = printable_inventory(inventory_of(survey))
    gaps = [f"{path} could not be looked at: {why}" for path, why in survey.files.gaps.items()]
    if unseen := [*failures, *gaps]:
        findings.append(make_finding("places-not-checked", unseen, places=tuple(unseen)))
    checks = tuple((subject, tuple(it.id for it in of_check)) for subject, of_check in found)
    return MachineReport(nearest_the_cause(map(printable, findings)), inventory, checks)


def _findings(check: Check, survey: Survey, failures: list[str]) -> list[Finding]:
    try:
        return list(check.look(survey))
    except EnvsolveError:
        raise
    except OSError as error:
        failures.append(f"{check.subject} could not be looked at: {error}")
    except Exception as error:  # noqa: BLE001 - the other checks are worth more than a traceback
        failures.append(f"{check.subject} could not be looked at: {type(error).__name__}: {error}")
    return []
