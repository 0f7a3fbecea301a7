"""Whose a library is, and which CUDA or cuDNN it belongs to, by its file name.

A number in a file name belongs to the name: libcudart.so.11.0 is the runtime of CUDA 11.0 to 11.8. The table of names
is ``libraries.toml`` of the matrix; for names that it lacks (nppc of CUDA 10) the number is read as CUDA counts them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from envsolve.diagnose.facts.shared.tables import first_match
from envsolve.diagnose.knowledge import Knowledge
from envsolve.model.versions import CudaVersion


class Owner(StrEnum):
    """To what a library belongs."""

    CUDA = "cuda"
    CUDNN = "cudnn"
    TENSORRT = "tensorrt"
    DRIVER = "driver"
    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    ONNXRUNTIME = "onnxruntime"
    BITSANDBYTES = "bitsandbytes"
    LLAMA = "llama"
    VISUAL_CPP = "visual-cpp"
    ZLIB = "zlib"
    RELEASE_FAULT = "release-fault"
    """Libraries that a faulty release of PyTorch for Windows wants."""
    GPU_PROGRAM = "gpu-program"
    """For CUDA by its name, of whatever program."""
    SYSTEM = "system"


class Span(NamedTuple):
    """The toolkits, from the first to the last, in which a library has one name."""

    first: CudaVersion
    last: CudaVersion

    def __contains__(self, cuda: object) -> bool:
        return isinstance(cuda, CudaVersion) and self.first <= cuda <= self.last

    @property
    def minors(self) -> int:
        """How many minors it may stand for; the fewer, the more the name says."""
        return (self.last.major - self.first.major) * 100 + self.last.minor - self.first.minor

    def common(self, other: Span) -> Span | None:
        """The toolkits of both; None if they have none in common."""
        first, last = max(self.first, other.first), min(self.last, other.last)
        return Span(first, last) if first <= last else None

    def __str__(self) -> str:
        if self.first == self.last:
            return f"CUDA {self.first}"
        return f"CUDA {self.first} to {self.last}"

    @property
    def major(self) -> int | None:
        """The major; None if several have the name."""
        return self.last.major if self.first.major == self.last.major else None

    @property
    def shortly(self) -> str | None:
        """``CUDA 11`` or ``CUDA 10.1``; None if several majors have the name."""
        if self.first == self.last:
            return f"CUDA {self.first}"
        if self.first.major != self.last.major:
            return None
        return f"CUDA {self.first.major}" if self.first.major > _LAST_BY_MINOR else str(self)


_LAST_BY_MINOR = 10
"""The last major of which every minor has names of its own, but for a few libraries."""

_STEM = re.compile(r"(?:lib)?([A-Za-z]+)")
_LINUX_NUMBER = re.compile(r"\.so\.(\d+)(?:\.(\d+))?")
_WINDOWS_NUMBER = re.compile(r"_(\d{1,3})(?:_\d)?\.dll", re.IGNORECASE)
_CUDNN_MAJOR = re.compile(r"\.so\.(\d)|64_(\d)\.dll", re.IGNORECASE)
_BY_YEAR = re.compile(r"cupti64_20\d\d", re.IGNORECASE)
_COUNTS_ITSELF = re.compile(
    r"(lib)?(nccl|cutensor|nvshmem|cufile|cusparselt|cudss|nvtoolsext|nvtx|nvvm)", re.IGNORECASE
)
"""Libraries whose numbers are their own, not CUDA's."""


_MAJORS = frozenset(map(str, range(10, 20)))
"""Two digits that are a major version; others are major and minor: 75 is 7.5."""


def owner_of(file_name: str) -> Owner:
    """To what ``file_name`` belongs."""
    return Owner(first_match("library-owner", file_name, whole=True) or Owner.SYSTEM)


def stem_of(file_name: str) -> str:
    """``cudart`` of libcudart.so.11.0 and of cudart64_110.dll."""
    match = _STEM.match(file_name)
    return match[1] if match else file_name


def cudnn_major(file_name: str) -> int | None:
    """The major version of cuDNN that a library of it belongs to; None for a name without a number."""
    match = _CUDNN_MAJOR.search(file_name)
    if match:
        return int(match[1] or match[2])
    return 8 if re.search(r"_(infer|train)", file_name, re.IGNORECASE) else None


def is_plain(file_name: str) -> bool:
    """Whether the name has no number, as the link has that a toolkit's installer makes for developers."""
    return file_name.endswith(".so") or re.fullmatch(r"[a-z]+\.dll", file_name, re.IGNORECASE) is not None


def span_of(knowledge: Knowledge, file_name: str) -> Span | None:
    """The toolkits in which a library of CUDA has this name; None if the name does not say."""
    known = knowledge.cuda_range(file_name)
    if known is None:
        return _span_by_number(knowledge, file_name)
    first, last = known
    if (first, last) == (CudaVersion(11, 7), CudaVersion(11, 8)):  # the table has these names from the first wheels on
        first = CudaVersion(11, 0)
    return Span(first, last)


def _span_by_number(knowledge: Knowledge, file_name: str) -> Span | None:
    """By the number in the name: 10 is all of CUDA 10 but 10.0, which counts by minors, 7.5 and 75 are 7.5."""
    if _COUNTS_ITSELF.match(file_name) or _BY_YEAR.match(file_name) or owner_of(file_name) is not Owner.CUDA:
        return None
    linux = _LINUX_NUMBER.search(file_name)
    if linux is not None:
        return _span(knowledge, linux[1], linux[2])
    windows = _WINDOWS_NUMBER.search(file_name)
    if windows is None:
        return None
    digits = windows[1]
    if digits in _MAJORS:
        return _span(knowledge, digits, None)
    return _span(knowledge, digits[:-1], digits[-1])


def _span(knowledge: Knowledge, major: str, minor: str | None) -> Span | None:
    if not major:
        return None
    if minor is not None:
        return Span(CudaVersion(int(major), int(minor)), CudaVersion(int(major), int(minor)))
    minors = [it.version for it in knowledge.matrix.cuda.toolkits if it.version.major == int(major)]
    if not minors:
        return None
    first = max(min(minors), CudaVersion(10, 1)) if int(major) == _LAST_BY_MINOR else min(minors)
    return Span(first, max(minors))
