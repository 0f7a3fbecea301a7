"""Facts on the PyTorch that is installed."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.builds import wheel_build
from envsolve.diagnose.facts.shared.gpu_packages import torch_folder
from envsolve.model.versions import CudaVersion, parsed_version


def pytorch_cuda(case: Case, _lines: Lines = ()) -> CudaVersion | None:
    """The CUDA that it was built with: of the build, or of the index in the command that installed it."""
    folders = (re.search(r"torch\b.*/whl/cu(\d\d)(\d)\b", it.line) for it in case.clues.get("package", ()))
    folder = next((it for it in folders if it is not None), None)
    cuda = case.built_cuda if case.framework is None else case.cuda_of("pytorch")
    return cuda or (None if folder is None else CudaVersion(int(folder[1]), int(folder[2])))


def pytorch_folder(case: Case, _lines: Lines) -> str | None:
    """The folder of PyTorch's index with the installed build: cu130, cpu."""
    cuda = pytorch_cuda(case)
    return torch_folder(parsed_version(case.version_of("pytorch"))) or (cuda and f"cu{cuda.major}{cuda.minor}")


def pytorch_reinstall(case: Case, lines: Lines) -> str | None:
    """Pip's command for the PyTorch that is installed, or that replaced another, with what belongs to it."""
    fields = merged(lines)
    replaced = fields.get("found_version") if fields.get("found") == "torch" else None
    torch = parsed_version(replaced or case.version_of("pytorch"))
    companions = case.knowledge.companions_of("pytorch", torch, case.platform)
    if torch is None or not companions or torch.is_prerelease:
        return None
    names = [f"torch=={torch.public}"]
    exact = {name: companions.get(name, "") for name in ("torchvision", "torchaudio")}
    names += [f"{name}=={version}" for name, version in exact.items() if version[:1].isdigit()]
    cuda = case.built_cuda if case.clue("built_cuda") else None
    build = torch_folder(torch) or (cuda and f"cu{cuda.major}{cuda.minor}")
    if not build and case.windows:  # for which pip's own index has only CPU builds
        build = wheel_build(case, lines)
    index = f" --index-url https://download.pytorch.org/whl/{build}" if build else ""
    return f"pip install --force-reinstall {' '.join(names)}{index}"
