"""Facts on the machine and on containers: which GPUs a process may see, and what stands in its way."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.model.versions import parsed_version

_HARDWARE_XIDS = {
    "48": "an ECC error of two bits",
    "62": "a halt of the internal microcontroller",
    "63": "an event of row remapping",
    "64": "a failure of row remapping",
    "74": "an error of NVLink",
    "92": "a high rate of ECC errors",
    "94": "a contained ECC error",
    "95": "an uncontained ECC error",
    "110": "a security fault",
    "140": "an unrecovered ECC error",
}
_LONGEST_REASON = 160


def module_plainly_not_loaded(case: Case, _lines: Lines) -> bool:
    """Whether somebody says so who has tried; TensorFlow says it of every container and WSL, which lack a file."""
    return any("does not appear" not in it.line for it in case.of("driver-not-loaded"))


def pytorch_counts_numbers_only(case: Case, _lines: Lines) -> str | None:
    """``yes``, ``no`` or ``maybe``: PyTorch 1.13 ignores UUIDs in CUDA_VISIBLE_DEVICES (pytorch#84879 to #92315)."""
    version = parsed_version(case.version_of("pytorch"))
    if version is None:
        return "maybe" if case.framework in (None, "pytorch") else "no"
    return "yes" if version.release[:2] == (1, 13) else "no"


def visible_value(case: Case, _lines: Lines) -> str | None:
    """What CUDA_VISIBLE_DEVICES is set to."""
    seen = case.of("gpus-hidden")
    return ((seen[0].get("value") or "").strip("'\" ") or "empty") if seen else None


def built_by_gcc(case: Case, _lines: Lines) -> str | None:
    """The major of the gcc that the kernel was built by."""
    return case.clue("kernel_gcc")


def several_buses(_case: Case, lines: Lines) -> bool:
    """Whether lines are of several GPUs."""
    return len({it.get("bus") for it in lines}) > 1


def xid_meaning(_case: Case, lines: Lines) -> str | None:
    """What an Xid of the hardware means."""
    return _HARDWARE_XIDS.get(merged(lines).get("xid", ""))


def runtime_reason(_case: Case, lines: Lines) -> str | None:
    """The reason of nvidia-container-cli without what the runtime wraps around it."""
    text = re.split(r'\\+n|\\+"|: unknown\b(?! device)|", ', merged(lines).get("reason", ""))[0].strip(" .\\\"'")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def cdi_device(_case: Case, lines: Lines) -> str | None:
    """The CDI device, or the file, that is not there."""
    fields = merged(lines)
    return (fields.get("device") or fields.get("file") or "").rstrip(":.,\"'") or None


def part_of_driver(_case: Case, lines: Lines) -> str | None:
    """A library of the driver that a container lacks."""
    fields = merged(lines)
    return fields.get("library") or fields.get("other")


def windows_build(case: Case, _lines: Lines) -> str | None:
    """The Windows that has no GPU for WSL, by its build or version."""
    fields = merged(case.of("windows-without-gpu-for-wsl"))
    return fields.get("build") or fields.get("build_of_version") or fields.get("version")


def notebook_service(case: Case, _lines: Lines) -> str | None:
    """Colab or Kaggle."""
    seen = case.of("colab")
    return merged(seen).get("service", "colab").capitalize() if seen else None


def driver_of_linux(case: Case, _lines: Lines) -> bool:
    """Whether the driver is that of Linux itself: those of Windows, which WSL has, are of two numbers only."""
    return case.driver is not None and len(case.driver.parts) == len(("major", "minor", "patch")) and not case.wsl


def available(case: Case, _lines: Lines) -> bool:
    """Whether the text says elsewhere that a GPU is available."""
    return (case.clue("available") or "").casefold() == "true"


def image_or_apptainer(_case: Case, lines: Lines) -> str:
    """Which of them says that there is no driver."""
    return "apptainer" if "nv files" in lines[0].line.casefold() else "image"
