"""CuPy: kernels are compiled at run time; precompiled code is in the fat binaries of a few of its modules.

All modules with device code are compiled with one list of architectures. So only the smallest, the random generator, is
read, and its PTX has the toolkit that compiled it: the wheel itself only says ``12.x``. METADATA has the CUDA versions
that the wheel is for, ``_wheel.json`` the cuDNN that it was compiled with, up to CuPy 13.
"""

from __future__ import annotations

import json
import re

from packaging.version import Version

from envsolve.releases.device_code import observed_code
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
from envsolve.releases.requirements import extras, requirements
from envsolve.releases.wheels import WheelFile

_ONE_CUDA = ("117", "116", "115", "114", "113", "112", "111", "110", "102")
"""Old wheels are for one toolkit each, which is in their name."""
_DEVICE_CODE = re.compile(r"/_generator_api\.[\w.-]+\.(so|pyd)$")
_MEANT_FOR = re.compile(r"wheel \(precompiled binary\) package for CUDA (\d+)\.(\d+|x)(?: [~-] [\d.x]+)?\.")
_LIBRARIES = "ctk"
"""The extra with the CUDA libraries, from CuPy 14 on."""


class CupyReader(ReaderOfSingleWheels):
    """Reads cupy-cuda13x, cupy-cuda12x, cupy-cuda11x and, from CuPy 10 on, the wheels for one toolkit each."""

    name = "cupy"
    framework = "cupy"
    edition = "cupy-2"
    oldest = Version("10.0")
    releases_of = (
        *("cupy-cuda13x", "cupy-cuda12x", "cupy-cuda11x"),
        *(f"cupy-cuda{cuda}" for cuda in _ONE_CUDA),
    )

    def observe(self, wheel: OpenWheel) -> Observation:
        """Return CUDA, device code and requirements of one wheel."""
        seen = requirements_of(wheel)
        meant = _MEANT_FOR.search(wheel.text(".dist-info/METADATA") or "")
        if meant is not None:
            seen["meant_for"] = [f"{meant[1]}.{meant[2]}", *(["and later"] if " " in _range_of(meant[0]) else [])]
        preloads = json.loads(wheel.text(".data/_wheel.json") or "{}")
        if "cudnn" in preloads:
            seen["cudnn"] = [preloads["cudnn"]["version"]]
        member = next((name for name in wheel.members if _DEVICE_CODE.search(name)), None)
        return seen if member is None else seen | observed_code(wheel.chunks(member))

    def row(self, wheels: list[WheelFile], seen: Observation) -> ReadRow:
        """Return the row of one release on one platform."""
        file = wheels[0]
        cuda = first(seen, "cuda") or _only(seen)
        if "meant_for" not in seen or (cuda is None and "sass" in seen):
            raise ReleaseError(f"{file.filename} does not tell for which CUDA it is, or what compiled it")
        values = self.values(wheels, file.project.removeprefix("cupy-").removesuffix("x"), seen)
        values["cudnn"] = first(seen, "cudnn")
        if "sass" in seen:
            values |= {"cuda": cuda, **code_of(seen)}
        return ReadRow(values | self._libraries(seen), {}, (evidence_of(file, seen),))

    def _libraries(self, seen: Observation) -> dict[str, Value]:
        meant = _specifier(seen["meant_for"])
        if _LIBRARIES not in extras(seen["requires"]):
            return {"cuda_requires": meant, "cuda_libraries": "none"}
        admitted = self._cuda_releases.admitted(requirements(seen["requires"], extra=_LIBRARIES))
        return {"cuda_requires": admitted or meant, "cuda_libraries": "dependencies", "extras": [_LIBRARIES]}


def _only(seen: Observation) -> str | None:
    """The only toolkit that a wheel is for. Those for Jetson with CUDA 10.2 have no PTX that would tell."""
    meant = seen.get("meant_for", [])
    return meant[0] if len(meant) == 1 and not meant[0].endswith("x") else None


def _range_of(text: str) -> str:
    """The text after ``CUDA`` in a description: ``12.x.``, ``11.4.``, ``11.2 ~ 11.x.``."""
    return text.partition(" CUDA ")[2]


def _specifier(meant: list[str]) -> str:
    """The specifier ``==11.4``, ``>=12.0,<13`` for 12.x, or ``>=11.2,<12`` for 11.2 and later of its major."""
    major, _, minor = meant[0].partition(".")
    if minor == "x":
        return f">={major}.0,<{int(major) + 1}"
    return f">={meant[0]},<{int(major) + 1}" if len(meant) > 1 else f"=={meant[0]}"
