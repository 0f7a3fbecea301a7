"""The CUDA libraries of an environment: their files, and whether each loads and is complete."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import frameworks_among
from envsolve.model.finding import Finding
from envsolve.validation.child import Children, Outcome
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import Files
from envsolve.validation.inventory import Inventory
from envsolve.validation.report import Library, Owner, ProbeReport, Status, concluded

NAME = "libraries"
TIMEOUT = 60.0
_ORDER = (
    *("cudart", "nvJitLink", "nvrtc", "cublasLt", "cublas", "cusparse", "cusolver", "cufft", "curand", "nccl"),
    *("cudnn_graph", "cudnn_ops", "cudnn_ops_infer", "cudnn_ops_train", "cudnn_cnn_infer", "cudnn_cnn_train"),
    *("cudnn_cnn", "cudnn_adv_infer", "cudnn_adv_train", "cudnn_adv", "cudnn_heuristic", "cudnn_engines_precompiled"),
    *("cudnn_engines_runtime_compiled", "cudnn_engines_tensor_ir", "cudnn_ext", "cudnn"),
)
"""The order of loading, each after its dependencies. cuSOLVER needs cuBLAS and cuSPARSE, which need nvJitLink (since
CUDA 12).
"""
_SPOKEN_OF = {
    "cudart": "cudart",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cufft": "cuFFT",
    "cusparse": "cuSPARSE",
    "cusolver": "cuSOLVER",
    "nccl": "NCCL",
    "nvJitLink": "nvJitLink",
    "nvrtc": "NVRTC",
}
_NAMES_CUDA = re.compile(
    r"nvidia-(cublas|cuda|cudnn|cufft|curand|cusolver|cusparse|nccl|nvjitlink|nvtx|cufile|nvshmem).*"
    r"|.+-cuda\d.*"
)
"""Distributions that are only useful on NVIDIA GPUs."""
_OF_CUDA = re.compile(r"\+cu\d")
_DRIVER_MISSING = re.compile(r"libcuda\.so\.1: cannot open shared object file: No such file")
"""The message of glibc's loader for a library that is linked to the driver's, like a part of cuDNN 9.28 (its wheel)."""
_DRIVER_SYMBOL = re.compile(r"undefined symbol: (cu[A-Z]\w*)")
"""Functions of the driver API begin with cu and a capital; those of the toolkit's libraries with cuda, cublas, cudnn,
... (cuda.h).
"""


class _Answer(NamedTuple):
    """The probe's answer for one library: its version, the loader's error message, and the status of its check."""

    path: Path
    component: str
    version: str | None
    error: str | None
    status: int


def library_files(inventory: Inventory) -> tuple[Path, ...]:
    """The files of the environment's CUDA libraries, one for each component and major version, in loading order."""
    files: dict[tuple[str, str], Path] = {}
    for path in Files(inventory).libraries:
        component = component_of(path.name)
        if component in _ORDER and ".alt." not in path.name and _is_loaded_by(path):
            files.setdefault((component, path.name), path)
    return tuple(files[key] for key in sorted(files, key=lambda it: (_ORDER.index(it[0]), it[1])))


def is_for_gpus(inventory: Inventory) -> bool:
    """Whether the environment was made for NVIDIA GPUs: it has CUDA libraries, or a build that needs them."""
    if any(_NAMES_CUDA.fullmatch(it.name) or _OF_CUDA.search(it.version) for it in inventory.distributions):
        return True
    names = [it.name for it in inventory.distributions]
    for_gpus = frameworks_among(name for name in names if name.endswith("-gpu"))
    if for_gpus or any(it.needs_gpu for it in frameworks_among(names)):
        return True
    return bool(library_files(inventory))


def probe_libraries(
    inventory: Inventory, environ: Mapping[str, str], children: Children
) -> tuple[ProbeReport, tuple[Library, ...]]:
    """Load all of them in one process of the environment; also returns the libraries, by the file that was loaded."""
    files = library_files(inventory)
    if not files:
        return ProbeReport(NAME, Status.SKIP, 0.0, "the environment holds no CUDA libraries"), ()
    job = {"libraries": [str(path) for path in files]}
    outcome = children.run(inventory.executable, "libraries", job, environ, TIMEOUT)
    answers = [
        _Answer(Path(it["path"]), it["component"], it["version"], it["error"], it["status"])
        for it in outcome.all_noted("library")
    ]
    findings = tuple(_findings(answers, outcome))
    detail = _detail(answers) if outcome.result is not None else f"ended at {outcome.stage}"
    libraries = tuple(Library(it.path.name, it.path, Owner.ENVIRONMENT, it.version) for it in answers)
    return concluded(NAME, outcome.seconds, detail, findings), libraries


def _is_loaded_by(path: Path) -> bool:
    """Whether programs load it by this name, which is neither the linker's nor the one with the full version."""
    if path.suffix.casefold() == ".dll":
        return True
    _, _, number = path.name.partition(".so")
    return number != "" and not (path.is_file() and any(_shorter(path, number)))


def _shorter(path: Path, number: str) -> Iterator[Path]:
    """Links in the same directory with a shorter number, to the same file."""
    parts = number.strip(".").split(".")
    stem = path.name[: -len(number)]
    for length in range(1, len(parts)):
        link = path.with_name(f"{stem}.{'.'.join(parts[:length])}")
        if link.exists():
            yield link


def _findings(answers: list[_Answer], outcome: Outcome) -> Iterator[Finding]:
    apart = [answer for answer in answers if _is_of_another_cudnn(answer)]
    if apart:
        yield make_finding(
            "cudnn-parts-differ",
            (f"{it.path.name}: {it.error or f'its own check of the other parts returned {it.status}'}" for it in apart),
            library=tuple(answer.path.name for answer in apart),
            directory=apart[0].path.parent,
        )
    for answer in answers:
        if answer.error and (lacked := _DRIVER_SYMBOL.search(answer.error)):
            yield make_finding("driver-too-old", [answer.error], library=answer.path.name, function=lacked[1])
        elif answer.error and answer not in apart and not _waits_for_driver(answer):
            yield make_finding(
                "library-does-not-load", [answer.error], library=answer.path.name, path=answer.path, reason=answer.error
            )
    if outcome.result is None:
        yield _crash(outcome)


def _waits_for_driver(answer: _Answer) -> bool:
    """Whether only the driver's library is missing, which another probe tests."""
    return answer.error is not None and _DRIVER_MISSING.match(answer.error) is not None


def _is_of_another_cudnn(answer: _Answer) -> bool:
    """Whether a part of cuDNN reports that another part is from another release, or lacks one of its symbols."""
    if not answer.component.startswith("cudnn"):
        return False
    if answer.error is None:
        return answer.status != 0
    return "undefined symbol" in answer.error and _DRIVER_SYMBOL.search(answer.error) is None


def _crash(outcome: Outcome) -> Finding:
    ending = outcome.ending
    if ending.timeout is not None:
        how = f"did not finish within {ending.timeout:g} seconds."
    elif outcome.error is not None:
        how = f"failed: {outcome.error.get('text')}."
    else:
        how = f"ended the process. {ending}"
    return make_finding("library-crashes", outcome.tail.splitlines()[-5:], library=outcome.stage, reason=how)


def _detail(answers: list[_Answer]) -> str:
    named = [f"{_SPOKEN_OF[it.component]} {it.version}" for it in answers if it.component in _SPOKEN_OF and it.version]
    waiting = sum(map(_waits_for_driver, answers))
    count = f"{sum(1 for it in answers if not it.error)} load"
    return ": ".join(
        filter(None, (f"{count}, {waiting} without a driver cannot" if waiting else count, ", ".join(named)))
    )
