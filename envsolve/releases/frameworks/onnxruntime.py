"""ONNX Runtime: a small file has the CUDA version, from 1.20 on; all else is in the library of the CUDA provider.

That library has 100 to 270 MB in the wheel and is read completely. Its fat binaries have the machine code, its PTX has
the toolkit if no file does, and its strings have the libraries that it loads, with the majors of CUDA and cuDNN. The
extras ``cuda`` and ``cudnn`` require these, from 1.21 on.
"""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.releases.device_code import LibraryWatch, observed_code
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

_CUDA = re.compile(r"^cuda_version = ['\"](\d+\.\d+)", re.MULTILINE)
_SAYS_CUDA = ("capi/build_and_package_info.py", "capi/version_info.py")
_PROVIDER = ("libonnxruntime_providers_cuda.so", "onnxruntime_providers_cuda.dll")
_EXTRAS = ("cuda", "cudnn")


class OnnxRuntimeReader(ReaderOfSingleWheels):
    """Reads onnxruntime-gpu for its CUDA builds and onnxruntime for those without."""

    name = "onnxruntime"
    framework = "onnxruntime"
    edition = "onnxruntime-1"
    oldest = Version("1.10")
    releases_of = ("onnxruntime", "onnxruntime-gpu")

    def observe(self, wheel: OpenWheel) -> Observation:
        """Return CUDA, cuDNN, device code and requirements of one wheel."""
        seen = requirements_of(wheel)
        matches = (_CUDA.search(wheel.text(ending) or "") for ending in _SAYS_CUDA)
        cuda = next((match[1] for match in matches if match is not None), None)
        provider = next((name for ending in _PROVIDER if (name := wheel.find(ending)) is not None), None)
        if provider is None:
            return seen | {"cuda": [cuda]} if cuda is not None else seen
        names = LibraryWatch()
        seen |= observed_code(names.passing(wheel.chunks(provider)))
        return seen | names.majors | ({"cuda": [cuda]} if cuda is not None else {})

    def row(self, wheels: list[WheelFile], seen: Observation) -> ReadRow:
        """Return the row of one release on one platform."""
        file = wheels[0]
        values = self.values(wheels, "cpu", seen)
        defaults: dict[str, Value] = {}
        if "sass" in seen or "cuda" in seen:
            cuda = _toolkit(file, seen) if "sass" in seen else seen["cuda"][0]
            values |= {"build": f"cuda{cuda.partition('.')[0]}", "cuda": cuda}
            values |= code_of(seen)
            brought = self._libraries(seen)
            values |= brought or {"cuda_libraries": "none"}
            defaults = {} if brought else _by_custom(cuda, first(seen, "cudnn"))
        return ReadRow(values, defaults, (evidence_of(file, seen),))

    def _libraries(self, seen: Observation) -> dict[str, Value]:
        """The requirements of the extras.

        They are empty without extras, and in 1.27, whose extras name missing packages.
        """
        if not set(_EXTRAS) <= extras(seen["requires"]):
            return {}
        required = [it for extra in _EXTRAS for it in requirements(seen["requires"], extra=extra)]
        admitted = self._cuda_releases.admitted(required)
        if admitted is None:
            return {}
        cudnn = next(it for it in required if it.name.startswith("nvidia-cudnn"))
        return {
            "cuda_requires": admitted,
            "cuda_libraries": "dependencies",
            "cudnn_requires": _plain(str(cudnn.specifier)),
            "cudnn_package": str(canonicalize_name(cudnn.name)),
            "extras": list(_EXTRAS),
        }


def _toolkit(file: WheelFile, seen: Observation) -> str:
    """The toolkit, which must be of the major whose cuBLAS the library loads. Raises ReleaseError if it is not."""
    cuda = first(seen, "cuda")
    if cuda is None or [cuda.partition(".")[0]] != seen.get("cublas"):
        named = ", ".join(seen.get("cublas", [])) or "none"
        raise ReleaseError(f"{file.filename} says CUDA {cuda}, and loads cuBLAS {named}")
    return cuda


def _by_custom(cuda: str, cudnn: str | None) -> dict[str, Value]:
    """Without extras: the toolkit it was compiled with or a later one of its major, and the major of cuDNN it loads."""
    after = int(cuda.partition(".")[0]) + 1
    return {
        "cuda_requires": f">={cuda},<{after}",
        "cudnn_requires": None if cudnn is None else f">={cudnn},<{int(cudnn) + 1}",
    }


def _plain(specifier: str) -> str:
    """``~=9.0`` as ``>=9.0,<10``."""
    match = re.fullmatch(r"~=(\d+)\.\d+", specifier)
    return specifier if match is None else f">={specifier.removeprefix('~=')},<{int(match[1]) + 1}"
