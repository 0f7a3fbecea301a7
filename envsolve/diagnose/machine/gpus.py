"""Problems of the GPUs themselves: several kinds in one machine, MIG without an instance, GPUs that a variable hides.

CUDA_VISIBLE_DEVICES (NVIDIA's programming guide, 5.2.1.1): numbers, UUIDs or prefixes of UUIDs; everything after an
invalid one is ignored. A number that occurs twice leaves no GPU (torch.cuda, ``_parse_visible_devices``).
NVIDIA_VISIBLE_DEVICES is read once, by the runtime of a container, and by no program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey
from envsolve.host.evidence import HIDES_EVERYTHING
from envsolve.host.gpus import total
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding, Severity

_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_ORDER = "CUDA_DEVICE_ORDER"
VARIABLE = "CUDA_VISIBLE_DEVICES"
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)\s*$", re.MULTILINE | re.IGNORECASE)
_GPUS = "/proc/driver/nvidia/gpus"


def check_kinds(survey: Survey) -> Iterator[Finding]:
    """GPUs of several compute capabilities: one build must support all, and their numbers differ from nvidia-smi's."""
    host = survey.host
    if len(host.capabilities) < 2:  # noqa: PLR2004 - two are several
        return
    yield survey.finding(
        "gpus-differ",
        [f"{gpu.count} x {gpu.label}" for gpu in host.gpus],
        gpus=tuple(it.label for it in host.gpus),
        by_bus=survey.environ.get(_ORDER) == "PCI_BUS_ID",
    )


def check_instances(survey: Survey) -> Iterator[Finding]:
    """MIG enabled without an instance to compute on."""
    if any(gpu.mig for gpu in survey.host.gpus) and _has_no_instance(survey):
        evidence = [f"{gpu.label}: MIG on" for gpu in survey.host.gpus if gpu.mig]
        yield survey.finding("mig-without-instances", evidence)


def _has_no_instance(survey: Survey) -> bool:
    reading = survey.reading(Source.LIBCUDA)
    if reading is not None:
        nothing = reading.problem is not None and reading.problem.code == Trouble.NO_DEVICE
        return nothing or reading.gpus == ()
    gpus = [name for name in survey.files.names(_CAPABILITIES) if name.startswith("gpu")]
    instances = [
        name for gpu in gpus for name in survey.files.names(f"{_CAPABILITIES}/{gpu}/mig") if name.startswith("gi")
    ]
    return bool(gpus) and not instances


def check_visible(survey: Survey) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES that hides every GPU, or names a missing one."""
    value = survey.environ.get(VARIABLE)
    if value is None or not survey.gpus:
        return
    names = [name.strip() for name in value.split(",")]
    if value.strip() in HIDES_EVERYTHING:
        yield _finding(survey, value, "nothing")
        return
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        yield _finding(survey, value, "twice", twice)
        return
    unknown = next((name for name in names if not _is_there(survey, name)), None)
    if unknown is not None:
        yield _finding(survey, value, "unknown" if unknown else "empty", unknown, partly=unknown != names[0])


def _finding(survey: Survey, value: str, problem: str, gpu: str | None = None, *, partly: bool = False) -> Finding:
    return survey.finding(
        "gpus-hidden",
        (f"{VARIABLE}={value}", f"{_count(survey)} on this machine"),
        severity=Severity.WARNING if partly else Severity.ERROR,
        visible=repr(value),
        problem=problem,
        gpu=gpu,
        partly=partly,
    )


def _is_there(survey: Survey, name: str) -> bool:
    """Whether ``name`` is a GPU; if that cannot be known (MIG, UUIDs in no file), it is assumed."""
    if re.fullmatch(r"[+-]?\d+", name):
        return any(gpu.mig for gpu in survey.gpus) or 0 <= int(name) < total(survey.host.gpus)
    uuids = _uuids(survey)
    if re.match("GPU-", name, re.IGNORECASE) and uuids:
        return any(uuid.lower().startswith(name.lower()) for uuid in uuids)
    return re.match("(?:GPU|MIG)-", name, re.IGNORECASE) is not None


def _uuids(survey: Survey) -> list[str]:
    files = survey.files
    texts = (files.text(f"{_GPUS}/{name}/information") for name in files.names(_GPUS)) if survey.is_linux else ()
    return [match[1] for text in texts for match in _UUID.finditer(text or "")]


def _count(survey: Survey) -> str:
    number = total(survey.host.gpus)
    return f"{number} GPU{'' if number == 1 else 's'}"
