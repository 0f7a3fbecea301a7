"""Facts on the PyTorch that is installed."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.facts.companions import folder_of, reinstall_command
from envsolve.model.versions import CudaVersion, parsed_version

Lines = tuple[Sighting, ...]


def pytorch_version(case: Case, _lines: Lines) -> str | None:
    """The installed PyTorch, local part included: 2.6.0+cu124."""
    return case.version_of("pytorch") or None


def pytorch_cuda(case: Case, _lines: Lines = ()) -> CudaVersion | None:
    """The CUDA that it was built with: of the build, or of the index in the command that installed it."""
    folders = (re.search(r"torch\b.*/whl/cu(\d\d)(\d)\b", it.line) for it in case.clues.get("package", ()))
    folder = next((it for it in folders if it is not None), None)
    cuda = case.built_cuda if case.framework is None else case.cuda_of("pytorch")
    return cuda or (None if folder is None else CudaVersion(int(folder[1]), int(folder[2])))


def pytorch_folder(case: Case, _lines: Lines) -> str | None:
    """The folder of PyTorch's index with the installed build: cu130, cpu."""
    cuda = pytorch_cuda(case)
    return folder_of(parsed_version(case.version_of("pytorch"))) or (cuda and f"cu{cuda.major}{cuda.minor}")


def pytorch_reinstall(case: Case, lines: Lines) -> str | None:
    """Pip's command for the PyTorch that is installed, or that replaced another, with what belongs to it."""
    fields = merged(lines)
    return reinstall_command(case, fields.get("found_version") if fields.get("found") == "torch" else None)
