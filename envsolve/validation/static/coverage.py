"""Whether frameworks and the libraries they load hold code for the GPUs that are there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from envsolve.binary.library_code import read_device_code
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.findings.catalogue import make_finding
from envsolve.model.capability import ComputeCapability, DeviceCode
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.static.installed import Installed

_FAILS = {
    "cublas": "matrix products",
    "cublasLt": "matrix products",
    "cudnn_ops": "convolutions and normalization",
    "cudnn_ops_infer": "convolutions and normalization",
    "cudnn_cnn": "convolutions",
    "cudnn_cnn_infer": "convolutions",
    "cudnn_engines_precompiled": "convolutions",
    "nccl": "communication between GPUs",
}
"""What fails where a component holds no code for a GPU. Others hold little, or compile at run time."""
_MANY_GPUS = frozenset({"nccl"})
"""What only programs on several GPUs use."""


class Codes:
    """The device code of files, each read once; none for what cannot be read, which is another finding."""

    def __init__(self) -> None:
        self._read: dict[Path, DeviceCode] = {}

    def of(self, path: Path) -> DeviceCode:
        """The machine code and PTX in the file at ``path``."""
        place = Path(os.path.realpath(path))
        if place not in self._read:
            try:
                self._read[place] = read_device_code(place)
            except UnreadableLibraryError:
                self._read[place] = DeviceCode(())
        return self._read[place]


def coverage(
    framework: Installed, loaded: Mapping[str, str], capabilities: Sequence[ComputeCapability], codes: Codes
) -> Iterator[Finding]:
    """The findings for one framework, which loads the files ``loaded`` by name; each GPU is judged by itself."""
    own = {file: codes.of(file) for file in framework.files(*framework.libraries.code)}
    own = {file: code for file, code in own.items() if code.sass or code.ptx}
    for gpu in capabilities:
        bare = {file: code for file, code in own.items() if code.runs_as(gpu) is None}
        if bare:
            path, code = next(iter(bare.items()))
            yield _finding("no-code-for-gpu", framework, gpu, bare, path=path.name, covered=listed(code))
            continue
        compiled = {file: code for file, code in own.items() if code.machine_code_for(gpu) is None}
        if compiled:
            path, code = next(iter(compiled.items()))
            yield _finding("ptx-only", framework, gpu, compiled, path=path.name, ptx=code.ptx_for(gpu))
        yield from _libraries(framework, loaded, gpu, codes)


def _libraries(
    framework: Installed, loaded: Mapping[str, str], gpu: ComputeCapability, codes: Codes
) -> Iterator[Finding]:
    for name, path in loaded.items():
        component = component_of(name)
        fails = _FAILS.get(component or "")
        if fails is None:
            continue
        code = codes.of(Path(path))
        if (code.sass or code.ptx) and code.runs_as(gpu) is None:
            severity = Severity.WARNING if component in _MANY_GPUS else Severity.ERROR
            facts = {"library": name, "covered": listed(code), "fails": fails}
            yield _finding("library-without-code-for-gpu", framework, gpu, {Path(path): code}, severity, **facts)


def _finding(
    identifier: str,
    framework: Installed,
    gpu: ComputeCapability,
    files: Mapping[Path, DeviceCode],
    severity: Severity | None = None,
    **facts: Any,
) -> Finding:
    evidence = (f"{file}: {listed(code)}" for file, code in files.items())
    return make_finding(identifier, evidence, about=framework, severity=severity, capability=gpu, **facts)


def listed(code: DeviceCode) -> str:
    """``7.5, 8.0 and PTX for 9.0``."""
    sass = ", ".join(map(str, code.sass))
    ptx = "PTX for " + ", ".join(map(str, code.ptx)) if code.ptx else ""
    return " and ".join(part for part in (sass, ptx) if part)
