"""Facts on the machine and on containers: which GPUs a process may see, and what stands in its way."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged

_LONGEST_REASON = 160


def visible_value(case: Case, _lines: Lines) -> str | None:
    """What CUDA_VISIBLE_DEVICES is set to."""
    seen = case.of("gpus-hidden")
    return ((seen[0].get("value") or "").strip("'\" ") or "empty") if seen else None


def several_buses(_case: Case, lines: Lines) -> bool:
    """Whether lines are of several GPUs."""
    return len({it.get("bus") for it in lines}) > 1


def runtime_reason(_case: Case, lines: Lines) -> str | None:
    """The reason of nvidia-container-cli without what the runtime wraps around it."""
    text = re.split(r'\\+n|\\+"|: unknown\b(?! device)|", ', merged(lines).get("reason", ""))[0].strip(" .\\\"'")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
