"""Versions of NVIDIA's software, which do not follow PEP 440, and parsing of versions that do."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from packaging.version import Version

_DRIVER = re.compile(r"[Rr]?(\d{3})(?:\.(\d{1,3}))?(?:\.(\d{1,3}))?\Z")
_DRIVER_API_NUMBERS = range(1000, 99991)
_MINOR = re.compile(r"\d++(?:\.\d++)?+(?=\.|(?:a|b|rc)\d|$)", re.ASCII)
_MAJOR_MINOR = re.compile(r"(\d{1,2})\.(\d{1,3})(?:\.\d+)*\Z")


class DriverVersion(NamedTuple):
    """An NVIDIA driver version such as 580.65.06 (Linux) or 566.36 (Windows).

    Parts compare as numbers: 535.104.05 is newer than 535.86.09. A missing part is unknown and counts as new enough, so
    that ``580`` means a driver of the branch R580 and meets a floor of 580.65.06.
    """

    parts: tuple[int, ...]
    text: str

    @classmethod
    def parse(cls, text: str) -> DriverVersion:
        """Read ``580.65.06``, ``566.36``, ``580`` or ``R580``. Raises ValueError for anything else."""
        match = _DRIVER.match(text.strip())
        if match is None:
            is_cuda = _MAJOR_MINOR.match(text.strip()) is not None
            meant = f"; {text} is a CUDA version, and nvidia-smi prints the driver before it" if is_cuda else ""
            raise ValueError(f"{text!r} is not an NVIDIA driver version such as 580.65.06{meant}")
        digits = [part for part in match.groups() if part is not None]
        return cls(tuple(int(part) for part in digits), ".".join(digits))

    def meets(self, floor: DriverVersion) -> bool:
        """Whether this driver is at least ``floor``, as far as both have parts."""
        shared = min(len(self.parts), len(floor.parts))
        return self.parts[:shared] >= floor.parts[:shared]

    def __str__(self) -> str:
        return self.text


class CudaVersion(NamedTuple):
    """A CUDA version by major and minor, 12.6: the granularity of driver floors and binary compatibility."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> CudaVersion:
        """Read ``12.6`` or ``12.6.3``. Raises ValueError for anything else."""
        match = _MAJOR_MINOR.match(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a CUDA version such as 12.6")
        return cls(int(match[1]), int(match[2]))

    @classmethod
    def from_driver_api(cls, number: int) -> CudaVersion | None:
        """Read the integer of cuDriverGetVersion (12040 is 12.4).

        The result is None outside of 1.0 to 99.99, which is garbage.
        """
        if number not in _DRIVER_API_NUMBERS:
            return None
        return cls(number // 1000, number % 1000 // 10)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class LibcVersion(NamedTuple):
    """A glibc version, 2.35."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> LibcVersion:
        """Read ``2.35`` or ``2.35.1``. Raises ValueError for anything else."""
        match = _MAJOR_MINOR.match(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is not a glibc version such as 2.35")
        return cls(int(match[1]), int(match[2]))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@cache
def minor_of(version: str | None) -> str | None:
    """Return the part of a version that a stack decides. An exact environment has 3.12.11 of Python and 11.8.0 of CUDA.

    The result is None for an invalid version, because users may write anything into a file.
    """
    found = None if version is None else _MINOR.match(version)
    return None if found is None else found[0]


def parsed_version(text: str | None) -> Version | None:
    """Return ``text`` as a PEP 440 version, or None if it is invalid."""
    from packaging.version import Version

    try:
        return Version(text or "")
    except ValueError:
        return None


def is_same_version(one: str | None, other: str | None) -> bool:
    """Whether two texts are the same version, however spelled. None is not a version."""
    return one == other or None is not parsed_version(one) == parsed_version(other)


def parsed_cuda(text: str | None) -> CudaVersion | None:
    """Return ``text`` as a CUDA version, with ``12`` as 12.0, or None if it is invalid."""
    try:
        return CudaVersion.parse(text if "." in text else f"{text}.0") if text else None
    except ValueError:
        return None
