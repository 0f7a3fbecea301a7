"""Facts on failures that look like a mismatch of versions and are none."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged

_STATUS = re.compile(r"(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE)_STATUS_\w+", re.IGNORECASE)
_OLD_WORDS = {
    "resource allocation failed": "ALLOC_FAILED",
    "library not initialized": "NOT_INITIALIZED",
    "an access to GPU memory space failed": "MAPPING_ERROR",
    "the GPU program failed to execute": "EXECUTION_FAILED",
    "an internal operation failed": "INTERNAL_ERROR",
    "an invalid numeric value was used as an argument": "INVALID_VALUE",
}
"""The statuses of cuBLAS in the words of PyTorch before 1.8 (THCublasCheck)."""


def memory_wanted(_case: Case, lines: Lines) -> str | None:
    """The size of an allocation that failed, as written or in GiB."""
    fields = merged(lines)
    if number := fields.get("bytes"):
        return f"{int(number.replace(',', '')) / 2**30:.2f} GiB"
    return fields.get("wanted") or fields.get("device")


def cublas_status(_case: Case, lines: Lines) -> str | None:
    """The status, read from PyTorch's old words where these are all there is."""
    fields = merged(lines)
    status = fields.get("status") or _OLD_WORDS.get(fields.get("old", ""))
    return status and status.removeprefix("CUBLAS_STATUS_")


def status_beside(case: Case, _lines: Lines) -> str | None:
    """A status that a library reports after an index was out of range."""
    failed = (_STATUS.search(it.line) for it in case.of("out-of-memory", "cublas-broken", "cudnn-broken"))
    return next((match[0] for match in failed if match), None)
