"""GPUs that a variable hides from CUDA programs started here.

CUDA_VISIBLE_DEVICES (NVIDIA's programming guide, 5.2.1.1): numbers, UUIDs or prefixes of UUIDs; everything after an
invalid one is ignored. A number that occurs twice leaves no GPU (torch.cuda, ``_parse_visible_devices``).
NVIDIA_VISIBLE_DEVICES is read once, by the runtime of a container, and by no program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey
from envsolve.host.gpus import total
from envsolve.model.finding import Finding, Severity
from envsolve.validation.driver_verdict import HIDES_EVERYTHING

VARIABLE = "CUDA_VISIBLE_DEVICES"
_UUID = re.compile(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)\s*$", re.MULTILINE | re.IGNORECASE)
_GPUS = "/proc/driver/nvidia/gpus"


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
