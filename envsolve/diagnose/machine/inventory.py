"""Everything that was examined, ready for JSON: the driver, toolkits, libraries, and relevant variables by name.

Other variables are not shown, since their values can be secrets.
"""

from __future__ import annotations

from collections.abc import Mapping

from envsolve.diagnose.machine.cached_libraries import cached_libraries
from envsolve.diagnose.machine.container import CAPABILITIES, DEVICES
from envsolve.diagnose.machine.libraries import Library
from envsolve.diagnose.machine.library_path import libraries_on_path
from envsolve.diagnose.machine.loading import Reached
from envsolve.diagnose.machine.survey import Survey
from envsolve.diagnose.machine.toolkit import TOOLKIT_VARIABLES
from envsolve.diagnose.machine.toolkit_checks import toolkits_as_json
from envsolve.diagnose.machine.variables import OVERRIDES, RULES
from envsolve.host.loader import CUDA_LIBRARY, LIBRARY_PATH, NVML_LIBRARY

VARIABLES = (
    *("CUDA_VISIBLE_DEVICES", DEVICES, CAPABILITIES, "CUDA_DEVICE_ORDER"),
    *(LIBRARY_PATH, "LD_PRELOAD", *TOOLKIT_VARIABLES, "CUDNN_PATH", "XLA_FLAGS"),
    *(name for rule in RULES for name in rule.names),
    *OVERRIDES,
    *("CONDA_PREFIX", "VIRTUAL_ENV"),
)
"""The variables that the checks read, except PATH, which is long and uninformative."""


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
