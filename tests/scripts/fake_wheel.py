"""A wheel in memory with the interface of a remote wheel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.version import Version

from envsolve.matrix import Matrix
from envsolve.matrix.load import find_matrix
from envsolve.releases.reader import Observation, Reader, ReadRow
from envsolve.releases.requirements import CudaReleases
from envsolve.releases.wheels import Listing, WheelFile
from scripts.matrix_refresh.wheel import Wheel
from tests.scripts.wheels import AARCH64, LINUX, MAC_ARM, MAC_INTEL, WINDOWS

_TAGS = {
    "linux-64": LINUX,
    "linux-aarch64": AARCH64,
    "win-64": WINDOWS,
    "osx-64": MAC_INTEL,
    "osx-arm64": MAC_ARM,
}


class FakeWheel(Wheel):
    """Its members come from a mapping; everything else is real."""

    def __init__(self, file: WheelFile, contents: Mapping[str, bytes], *, deep: bool = True) -> None:
        self.file = file
        self._deep = deep
        self.read: list[str] = []
        self.members = list(contents)
        self._contents = contents

    def text(self, ending: str) -> str | None:
        member = self.find(ending)
        return None if member is None else b"".join(self.chunks(member)).decode()

    def content(self, member: str) -> bytes:
        return b"".join(self.chunks(member))

    def chunks(self, member: str) -> Iterator[bytes]:
        self.read.append(member)
        content = self._contents[member]
        yield from (content[start : start + 100] for start in range(0, len(content), 100))


def cuda_releases() -> CudaReleases:
    """The components of toolkits as the matrix has them."""
    return CudaReleases(Matrix(find_matrix()).components)


def wheel_file(project: str, version: str, platform: str, python: str = "3.12") -> WheelFile:
    """A wheel as an index lists it."""
    tag = f"cp{python.replace('.', '')}"
    name = f"{project.replace('-', '_')}-{version}-{tag}-{tag}-{_TAGS[platform]}.whl"
    glibc = "2.17" if platform.startswith("linux") else None
    return WheelFile(project, Version(version), name, name, "0" * 64, platform, (python,), glibc)


def rows_of(reader: Reader, wheels: Mapping[WheelFile, Mapping[str, bytes]]) -> list[ReadRow]:
    """The rows that ``reader`` makes of ``wheels``, each given by its members."""

    def read(file: WheelFile) -> Observation:
        wheel = FakeWheel(file, wheels[file])
        seen = reader.observe(wheel)
        return {**seen, "read": wheel.read}

    versions = sorted({file.version for file in wheels}, reverse=True)
    return [row for version in versions for row in reader.rows(version, Listing(wheels), read)]
