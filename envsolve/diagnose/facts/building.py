"""Facts on building extensions: the CUDA toolkit that a build finds, the host compiler, what is built."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.shared.gpu_packages import is_of_gpus
from envsolve.findings.catalogue import shipped
from envsolve.model.release import Source
from envsolve.model.versions import CudaVersion

_GCC_SINCE = {8: "10.1", 9: "11.0", 10: "11.1", 11: "11.4", 12: "12.0", 13: "12.4", 14: "12.8", 15: "13.0"}
"""The first CUDA that takes a gcc as host compiler (host_config.h of the toolkits, as gathered in ax3l/9489132)."""
_FOR_WINDOWS = ("sageattention", "qattn")
"""Packages whose built wheels are for Windows only."""
_LAST_NAME = re.compile(r"^.*/([^/@#]+?)(?:\.git)?(?:[@#].*)?/?$")
_NAMES = {"FlashAttention": "flash-attn", "flash_attn": "flash-attn"}


def torch_builds(case: Case, lines: Lines) -> tuple[str, ...]:
    """The builds of PyTorch's index for the CUDA of nvcc: its minor, or for want of it those of its major."""
    found = merged(lines).get("found")
    if found is None:
        return ()
    major, _, minor = found.partition(".")
    builds = {it.build for it in case.knowledge.all_releases("pytorch") if it.source is Source.PYTORCH}
    same = tuple(it for it in builds if it == f"cu{major}{minor}")
    return same or tuple(sorted(it for it in builds if re.fullmatch(rf"cu{major}\d", it)))


def gpu_package(_case: Case, lines: Lines) -> str | None:
    """The package, built for CUDA, that the lines name, by pip's name."""
    fields = merged(lines)
    named = [it for key in ("package", "package_of_nvcc") if (it := fields.get(key))]
    return next((it for name in named if is_of_gpus(it := _NAMES.get(name, name.replace("_", "-")))), None)


def built_package(case: Case, lines: Lines) -> str | None:
    """The package that pip or uv builds; of a repository or a directory its last name."""
    address = built_from(case, lines)
    if address is not None:
        return _LAST_NAME.sub(r"\1", address).replace("_", "-")
    names = [it.replace("_", "-") for it in _built(case)]
    return names[-1] if names else None


def built_from(case: Case, _lines: Lines) -> str | None:
    """The repository or the directory that it is built from, if pip or uv names one: git+https://..., /app/package."""
    last = next((it for it in reversed(_built(case)) if "/" in it), None)
    return f"git+{last}" if last is not None and last.startswith("https:") else last


def _built(case: Case) -> list[str]:
    return [it for it in case.every("building") if it.lower() not in ("torch", "setup.py")]


def wheels_page(case: Case, _lines: Lines) -> str | None:
    """Where a package that the text names has built wheels that are not on PyPI."""
    texts = " ".join((*case.packages, *case.every("gpu_name"), *(it.line for it in case.sightings))).casefold()
    pages = shipped().table("wheels").items()
    return next(
        (str(page) for name, page in pages if name in texts and (case.windows or name not in _FOR_WINDOWS)), None
    )


# ---------------------------------------------------------------------------------------------- where nvcc is


def in_image(case: Case, _lines: Lines) -> bool:
    """Whether it happened in a container, by more than the advice of a package's own message."""
    advice = re.compile(r"installing within a container|hub\.docker\.com/r/pytorch", re.IGNORECASE)
    named = any(not advice.search(it.line) for it in case.clues.get("container", ()))
    return named or any(re.search("runtime|base", it) for it in case.every("cuda_image"))


# ---------------------------------------------------------------------------------------------- host compilers


def gcc_major(case: Case, lines: Lines) -> int | None:
    """The newest gcc that this nvcc takes."""
    fields = merged(lines)
    if "gcc" in fields:
        return int(fields["gcc"].partition(".")[0])
    if "cuda" in fields:
        return _newest_gcc(CudaVersion.parse(fields["cuda"]))
    if case.toolkit is None or "headers_of" not in fields:
        return None
    newest = _newest_gcc(case.toolkit)
    return newest if newest is not None and newest < int(fields["headers_of"]) else None


def _newest_gcc(cuda: CudaVersion) -> int | None:
    return max((gcc for gcc, since in _GCC_SINCE.items() if CudaVersion.parse(since) <= cuda), default=None)


def next_gcc(case: Case, lines: Lines) -> int | None:
    """The gcc after that."""
    major = gcc_major(case, lines)
    return None if major is None or major + 1 not in _GCC_SINCE else major + 1


def next_gcc_cuda(case: Case, lines: Lines) -> str | None:
    """The first CUDA that takes it."""
    return _GCC_SINCE.get(next_gcc(case, lines) or 0)
