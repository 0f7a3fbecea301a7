"""Rules on look-alikes: memory, kernels that fail, processes, networks, disks. None is a mismatch of versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules import code
from envsolve.diagnose.rules.named import about_gpus, known


def out_of_memory(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Memory of the GPU, or of the computer; each framework has its own ways to want less."""
    if _index_errors(case) and all(_STATUS.search(it.line) for it in sightings):
        return
    host = tuple(it for it in sightings if it.get("host"))
    device = tuple(it for it in sightings if it not in host)
    if host and not device:
        yield Diagnosis((Cause("host-out-of-memory"),), host)
        return
    fields = merged(device)
    wanted = fields.get("wanted") or fields.get("device") or _bytes(fields)
    words = known(
        wanted=wanted and f" ({wanted})",
        pytorch="PyTorch" if case.framework in (None, "pytorch") else None,
        tensorflow="TensorFlow" if case.framework == "tensorflow" else None,
        jax="JAX" if case.framework == "jax" else None,
        vllm="vLLM" if "vllm" in fields else None,
    )
    yield Diagnosis((Cause("out-of-memory", words),), device)


_STATUS = re.compile(r"(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE)_STATUS_\w+", re.IGNORECASE)


def _index_errors(case: Case) -> tuple[Sighting, ...]:
    """An index out of range in the CPU's words, which the GPU tells as a failure of the library called next."""
    return tuple(it for it in case.of("program-error") if it.get("index"))


def _bytes(fields: Mapping[str, str]) -> str | None:
    number = fields.get("bytes")
    return None if number is None else f"{int(number.replace(',', '')) / 2**30:.2f} GiB"


def kernel_failed(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Kernels that broke off: by a check of their own, by a bad access, or by the system."""
    asserts = tuple(it for it in sightings if it.get("assert") or it.get("assertion"))
    if asserts:
        assertion = next((it.get("assertion") for it in asserts if it.get("assertion")), None)
        words = known(assertion_words=assertion and f" (assertion {assertion.strip()})")
        yield Diagnosis((Cause("kernel-assert", words),), asserts)
        return
    timeouts = tuple(it for it in sightings if it.get("timeout"))
    if timeouts:
        yield Diagnosis((Cause("kernel-timeout"),), timeouts)
        return
    yield Diagnosis((Cause("kernel-failed"),), sightings)


def cublas_broken(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A status of cuBLAS alone tells little: memory and earlier failures before a wrong library."""
    if case.saw("kernel-failed", "out-of-memory", "no-code-for-gpu"):
        return
    fields = merged(sightings)
    old = fields.get("old", "")
    if old and tuple(code.library_without_code(case, case.of("library-without-code"))):
        return
    status = (fields.get("status") or _OLD_WORDS.get(old, "")).removeprefix("CUBLAS_STATUS_")
    words = {"status_words": f"cuBLAS reports CUBLAS_STATUS_{status}"} if status else {}
    order = _BY_STATUS.get(status, ("cublas-memory", "cublas-arguments", "cublas-other-copy"))
    yield Diagnosis(tuple(Cause(it, words) for it in order), sightings)


_OLD_WORDS = {
    "resource allocation failed": "ALLOC_FAILED",
    "library not initialized": "NOT_INITIALIZED",
    "an access to GPU memory space failed": "MAPPING_ERROR",
    "the GPU program failed to execute": "EXECUTION_FAILED",
    "an internal operation failed": "INTERNAL_ERROR",
    "an invalid numeric value was used as an argument": "INVALID_VALUE",
}
"""The statuses of cuBLAS in the words of PyTorch before 1.8 (THCublasCheck)."""

_BY_STATUS = {
    "INVALID_VALUE": ("cublas-other-copy", "cublas-arguments"),
    "NOT_SUPPORTED": ("cublas-arguments", "cublas-other-copy"),
    "EXECUTION_FAILED": ("cublas-arguments", "cublas-memory", "cublas-other-copy"),
    "INTERNAL_ERROR": ("cublas-arguments", "cublas-memory", "cublas-other-copy"),
}
"""What a status of cuBLAS may come from, the likeliest first."""


def program_error(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Mistakes of programs in the words of PyTorch and TensorFlow; an index may be told twice, the GPU's way too."""
    indices = _index_errors(case)
    if indices:
        failed = case.of("out-of-memory", "cublas-broken", "cudnn-broken")
        on_gpu = tuple(it for it in failed if _STATUS.search(it.line))
        status = next((match[0] for it in on_gpu if (match := _STATUS.search(it.line))), None)
        yield Diagnosis((Cause("index-out-of-range", known(status=status)),), (*indices, *on_gpu))
        return
    kinds = {"devices": "tensors-on-different-devices", "shapes": "shapes-differ", "autograd": "autograd-misuse"}
    for kind, explanation in kinds.items():
        found = tuple(it for it in sightings if it.get(kind))
        if found:
            yield Diagnosis((Cause(explanation),), found)
            return


def not_a_number(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NaN, with a word on Apple's GPUs where the text is of one."""
    apple = case.told("apple") is not None
    words = known(apple="MPS" if apple else None)
    yield Diagnosis((Cause("not-a-number", words),), sightings)


def loader_worker(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Processes of a DataLoader: shared memory where the text names it or it was a bus error."""
    text = " ".join(it.line for it in sightings).lower()
    if re.search(r"shared memory|/shm\b|bus error|signal: bus", text):
        yield Diagnosis((Cause("shared-memory-too-small"),), sightings)
        return
    signal = merged(sightings).get("signal", "").strip()
    yield Diagnosis(
        (Cause("loader-worker-died", {"signal_words": f" (signal {signal})" if signal else ""}),), sightings
    )


def nccl_trouble(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NCCL at run time: what waits, what cannot connect, what fails in CUDA."""
    if case.saw("kernel-failed", "out-of-memory", "no-code-for-gpu", "driver-too-old", "undefined-symbol"):
        return
    fields = merged(sightings)
    if "timeout" in fields:
        yield Diagnosis((Cause("nccl-timeout"),), sightings)
    elif "cuda" in fields and "duplicate" not in fields:
        yield Diagnosis((Cause("nccl-cuda-error"),), sightings)
    else:
        yield Diagnosis((Cause("nccl-failed", known(duplicate=fields.get("duplicate"))),), sightings)


def disk_full(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Full disks, where something of a GPU stack is installed or run; shared memory is another matter."""
    if about_gpus(case) and not case.saw("loader-worker"):
        yield Diagnosis((Cause("disk-full"),), sightings)


def download_failed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Downloads of GPU packages that failed."""
    if about_gpus(case):
        refused = any(re.search(r"certificate|ssl", it.line, re.IGNORECASE) for it in sightings)
        yield Diagnosis((Cause("certificate-refused" if refused else "download-failed"),), sightings)


RULES: Mapping[str, Rule] = {
    "out-of-memory": out_of_memory,
    "kernel-failed": kernel_failed,
    "cublas-broken": cublas_broken,
    "program-error": program_error,
    "not-a-number": not_a_number,
    "loader-worker": loader_worker,
    "nccl-trouble": nccl_trouble,
    "disk-full": disk_full,
    "download-failed": download_failed,
}
