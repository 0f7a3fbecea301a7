"""Variables of CUDA that break programs or slow them down: one row each; the catalogue says what each does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding


class Rule(NamedTuple):
    """A finding on the variables ``names``, where ``applies`` to the value of one."""

    names: tuple[str, ...]
    applies: Callable[[str], bool]
    id: str


def _is_on(value: str) -> bool:
    """Whether a switch of CUDA is on: a number other than 0."""
    return value.strip() not in ("", "0")


RULES = (
    Rule(("CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"), _is_on, "ptx-compilation-disabled-by-variable"),
    Rule(("CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"), _is_on, "ptx-compilation-forced"),
    Rule(("CUDA_LAUNCH_BLOCKING",), _is_on, "launch-blocking"),
    Rule(("CUDA_MODULE_LOADING",), lambda value: value.strip().upper() == "EAGER", "eager-module-loading"),
    Rule(("CUDA_CACHE_DISABLE",), _is_on, "jit-cache-disabled"),
    Rule(("NVIDIA_TF32_OVERRIDE",), lambda value: value.strip() == "0", "tf32-switched-off"),
    Rule(("JAX_PLATFORMS", "JAX_PLATFORM_NAME"), lambda value: value.strip().lower() == "cpu", "framework-kept-on-cpu"),
)


def check_variables(survey: Survey) -> Iterator[Finding]:
    """The rules above, each for the variables that are set."""
    if not survey.has_gpu or not survey.platform.has_cuda:
        return
    for rule in RULES:
        found = [name for name in rule.names if name in survey.environ and rule.applies(survey.environ[name])]
        if found:
            entries = tuple(f"{name}={survey.environ[name]}" for name in found)
            yield survey.finding(rule.id, entries, entries=entries, variables_typed=" ".join(found))
