"""Variables of CUDA that break programs or slow them down: one row each, with the page that says what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding, Severity

_GUIDE = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html"
_CUBLAS = "https://docs.nvidia.com/cuda/cublas/"
_JAX = "https://docs.jax.dev/en/latest/config_options.html"


class Rule(NamedTuple):
    """What a variable does when ``applies`` to its value; ``source`` says so."""

    names: tuple[str, ...]
    applies: Callable[[str], bool]
    id: str
    title: str
    severity: Severity
    cause: str
    fix: str
    source: str


def _is_on(value: str) -> bool:
    """Whether a switch of CUDA is on: a number other than 0."""
    return value.strip() not in ("", "0")


def _is_off(value: str) -> bool:
    return value.strip() == "0"


RULES = (
    Rule(
        ("CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"),
        _is_on,
        "ptx-compilation-disabled",
        "Compiling PTX is switched off",
        Severity.WARNING,
        "The driver compiles no PTX, so that no kernel runs that was not built for this very GPU: Triton, NVRTC, Numba "
        "and builds older than the GPU fail.",
        "Unset it.",
        _GUIDE,
    ),
    Rule(
        ("CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"),
        _is_on,
        "ptx-compilation-forced",
        "The driver is told to ignore machine code",
        Severity.WARNING,
        "The driver compiles everything from PTX: a start takes minutes, and a library without PTX, as most of the "
        "frameworks' are, has no kernel image at all.",
        "Unset it; it is for testing alone.",
        _GUIDE,
    ),
    Rule(
        ("CUDA_LAUNCH_BLOCKING",),
        _is_on,
        "launch-blocking",
        "Every kernel is waited for",
        Severity.WARNING,
        "Programs wait for the end of each kernel before they start the next one: good for finding an error, and slow.",
        "Unset it when no error is looked for.",
        _GUIDE,
    ),
    Rule(
        ("CUDA_MODULE_LOADING",),
        lambda value: value.strip().upper() == "EAGER",
        "eager-module-loading",
        "All kernels are loaded at the start",
        Severity.INFO,
        "CUDA loads every kernel of a library when a program starts: that takes seconds and hundreds of megabytes of "
        "the GPU's memory. LAZY has been the default since CUDA 12.2 (12.3 on Windows).",
        "Unset it, or set it to LAZY.",
        _GUIDE,
    ),
    Rule(
        ("CUDA_CACHE_DISABLE",),
        _is_on,
        "jit-cache-disabled",
        "What the driver compiles is not kept",
        Severity.INFO,
        "Kernels that the driver compiles from PTX are compiled again at each start, which can take minutes.",
        "Unset it, unless the home directory cannot be written to.",
        _GUIDE,
    ),
    Rule(
        ("NVIDIA_TF32_OVERRIDE",),
        _is_off,
        "tf32-switched-off",
        "TF32 is switched off for all libraries",
        Severity.INFO,
        "cuBLAS, cuDNN and the other libraries compute float32 without TF32, whatever the framework asks for: exact, "
        "and several times slower on GPUs from Ampere (8.0) on.",
        "Unset it where speed counts more; frameworks have a setting of their own for TF32.",
        _CUBLAS,
    ),
    Rule(
        ("JAX_PLATFORMS", "JAX_PLATFORM_NAME"),
        lambda value: value.strip().lower() == "cpu",
        "framework-kept-on-cpu",
        "JAX is told to use the CPU",
        Severity.WARNING,
        "JAX does not look for a GPU.",
        "Unset it, or set JAX_PLATFORMS=cuda, which fails where the GPU cannot be used.",
        _JAX,
    ),
)


def check_variables(survey: Survey) -> Iterator[Finding]:
    """The rules above, each for the variables that are set."""
    if not survey.has_gpu or not survey.platform.has_cuda:
        return
    for rule in RULES:
        found = [name for name in rule.names if name in survey.environ and rule.applies(survey.environ[name])]
        if found:
            said = " and ".join(f"{name} is {survey.environ[name]!r}" for name in found)
            yield Finding(
                rule.id,
                rule.title,
                rule.severity,
                f"{said}. {rule.cause}",
                rule.fix,
                survey.unset(*found),
                tuple(f"{name}={survey.environ[name]}" for name in found),
                sources=(rule.source,),
            )
