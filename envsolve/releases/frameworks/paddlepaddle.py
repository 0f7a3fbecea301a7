"""PaddlePaddle: ``version.py`` has CUDA and cuDNN, from 2.2 on; machine code is in one library of 200 to 450 MB.

Its fat binaries begin some 150 MB into the library, and each has all targets that it was compiled for, so only a number
of them is read. For Linux the rest is read for the glibc symbols, because manylinux1 in the name promises too much.
"""

from __future__ import annotations

import re
from collections import deque

from packaging.version import Version

from envsolve.binary.fat_binary import scan_fat_binaries
from envsolve.releases.device_code import GlibcWatch
from envsolve.releases.errors import ReleaseError
from envsolve.releases.reader import (
    Observation,
    OpenWheel,
    ReaderOfSingleWheels,
    ReadRow,
    Value,
    code_of,
    evidence_of,
    first,
    requirements_of,
)
from envsolve.releases.wheels import WheelFile

_VERSION_FILES = ("paddle/version/__init__.py", "paddle/version.py")
_STATED = re.compile(r"^(cuda|cudnn)_version +=[ ]'(\d[\d.]*)'", re.MULTILINE)
_KERNELS = re.compile(r"/(libpaddle|core_avx)\.(so|pyd)$")
_ENOUGH = 40
"""The number of fat binaries to read. Each source file has all targets."""
_GPU, _CPU = "paddlepaddle-gpu", "paddlepaddle"


class PaddlePaddleReader(ReaderOfSingleWheels):
    """Reads paddlepaddle-gpu and paddlepaddle."""

    name = "paddlepaddle"
    framework = "paddlepaddle"
    edition = "paddlepaddle-2"
    oldest = Version("2.2")
    releases_of = (_CPU, _GPU)

    def observe(self, wheel: OpenWheel) -> Observation:
        """Return CUDA, cuDNN, machine code and requirements of one wheel."""
        seen = requirements_of(wheel)
        content = next((text for file in _VERSION_FILES if (text := wheel.text(file)) is not None), "")
        stated = dict(_STATED.findall(content))
        if "cuda" not in stated:
            return seen
        seen |= {name: [version] for name, version in stated.items()}
        member = next((name for name in wheel.members if _KERNELS.search(name)), None)
        if member is None:
            return seen
        glibc = GlibcWatch()
        passing = glibc.passing(wheel.chunks(member))
        targets = scan_fat_binaries(passing, enough=_ENOUGH)
        if wheel.file.glibc is not None:
            deque(passing, maxlen=0)
        seen["sass"], seen["ptx"] = list(targets.sass), list(targets.ptx)
        if glibc.newest is not None:
            seen["glibc"] = [glibc.newest]
        return seen

    def row(self, wheels: list[WheelFile], seen: Observation) -> ReadRow:
        """Return the row of one release on one platform."""
        file = wheels[0]
        cuda, cudnn = first(seen, "cuda"), first(seen, "cudnn")
        if (file.project == _GPU) is not (cuda is not None and cudnn is not None and seen.get("sass") != []):
            raise ReleaseError(f"{file.filename} does not tell its CUDA, or holds it where its name does not say so")
        values = self.values(wheels, "cpu", seen)
        defaults: dict[str, Value] = {}
        if cuda is not None and cudnn is not None:
            values |= {"build": f"cuda{cuda.replace('.', '')}", "cuda": cuda, "cudnn": cudnn}
            values |= code_of(seen)
            major, minor = cudnn.split(".")[:2]
            defaults = {
                "cuda_libraries": "none",
                "cuda_requires": f"=={cuda}",
                "cudnn_requires": f">={major}.{minor},<{int(major) + 1}",
            }
        return ReadRow(values, defaults, (evidence_of(file, seen),))
