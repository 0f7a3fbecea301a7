"""Facts on what needs a library that is not found: which program, in which version, built with which CUDA."""

from __future__ import annotations

from collections.abc import Callable

from envsolve.diagnose.case import TITLES, Case, Lines
from envsolve.diagnose.facts.libraries import cuda_of_library
from envsolve.diagnose.facts.pytorch import pytorch_cuda
from envsolve.diagnose.facts.shared.gpu_code import first_field
from envsolve.diagnose.facts.shared.programs import NOT_EXTENSIONS, importer_of, named_program, title_of
from envsolve.diagnose.facts.shared.seen_libraries import toolkits, versions_built_for
from envsolve.model.names import normalized
from envsolve.model.versions import CudaVersion, parsed_version

_ONE_CUDA_A_VERSION = ("tensorflow", "onnxruntime")
"""Frameworks each version of which is built for one CUDA only."""
_LAST_BY_MINOR = 10
"""The last CUDA of which every minor version has names of its own."""
_OLD_MAJOR = 11
_ON_PYPI = frozenset(
    (
        *("flash-attn", "xformers", "sageattention", "mamba-ssm", "causal-conv1d"),
        *("natten", "sgl-kernel", "spconv", "deepspeed"),
    )
)


def asking(case: Case, lines: Lines) -> str | None:
    """The program that needs the library, a key of :mod:`programs` or a framework; not one of another CUDA."""
    named = named_program(case, lines)
    other = torch_is_of_other_cuda(case, lines) or package_that_asks(case, lines) is not None
    return named if named is not None or other else case.framework


def asking_title(case: Case, lines: Lines) -> str | None:
    """How its makers write it; a package with the CUDA of the library in its name."""
    return package_that_asks(case, lines) or title_of(asking(case, lines))


def asking_framework(case: Case, lines: Lines) -> str | None:
    """The program, if it is a framework of the matrix."""
    program = asking(case, lines)
    return program if program in TITLES else None


def asking_other(case: Case, lines: Lines) -> str | None:
    """The program, if it is another than the framework of the case: the environment to solve is one for it."""
    program = asking(case, lines)
    return None if program == case.framework else program


def versions_for_library(case: Case, lines: Lines) -> str | None:
    """The versions whose wheels need the library: ``TensorFlow 2.5 to 2.11``."""
    span = cuda_of_library(case, lines)
    return None if span is None else _versions(case, lines, lambda cuda: cuda in span)


def versions_for_toolkit(case: Case, lines: Lines) -> str | None:
    """The versions whose wheels are for the CUDA on the machine, if that is another."""
    span = cuda_of_library(case, lines)
    there = [it for it in toolkits(case) if span is None or it not in span]
    return _versions(case, lines, lambda cuda: any(_same_names(cuda, it) for it in there))


def _versions(case: Case, lines: Lines, fits: Callable[[CudaVersion], bool]) -> str | None:
    program = asking(case, lines)
    found = versions_built_for(case, program, fits) if program in _ONE_CUDA_A_VERSION else None
    return found and f"{title_of(program)} {found}"


def _same_names(one: CudaVersion, other: CudaVersion) -> bool:
    """Whether two toolkits have the same file names: from 11.1 on those of one major, before of one minor."""
    return one == other or (one.major == other.major and min(one, other) >= CudaVersion(11, 1))


def torch_is_of_other_cuda(case: Case, lines: Lines) -> bool:
    """Whether PyTorch is of another CUDA than the library: something else needs it."""
    cuda, span = pytorch_cuda(case), cuda_of_library(case, lines)
    if span is None:
        return False
    majors = (span.first.major, span.last.major)
    if cuda is None:
        built = _majors_of_torch(case)
        return bool(built) and not built.intersection(majors)
    return cuda not in span and (cuda.major not in majors or cuda.major <= _LAST_BY_MINOR)


def _majors_of_torch(case: Case) -> set[int]:
    """The CUDA majors that the wheels of the installed PyTorch are for, if the text has its version alone."""
    version = parsed_version(case.version_of("pytorch"))
    if version is None or version.local or case.framework != "pytorch":
        return set()
    every = case.knowledge.all_releases("pytorch", case.platform)
    return {it.cuda.major for it in every if it.version.release == version.release and it.source.is_wheel and it.cuda}


def asking_extension(case: Case, lines: Lines) -> str | None:
    """The compiled package beside PyTorch that asks: of the traceback, of the line, or the only one in the text."""
    importer = importer_of(case, lines)
    if importer is not None and importer.lower() not in NOT_EXTENSIONS and not importer.startswith("_"):
        span, cuda = cuda_of_library(case, lines), case.built_cuda
        fits = span is not None and case.framework == "pytorch" and cuda is not None and cuda in span
        return None if fits else importer
    program = named_program(case, lines)
    if program not in (None, "vllm"):
        return None
    numbers = {it.number for it in lines}
    beside = {normalized(it.value) for it in case.clues.get("extension", ()) if it.number in numbers}
    if len(beside) == 1 and case.framework in (None, "pytorch"):
        return beside.pop()
    if not torch_is_of_other_cuda(case, lines):
        return None
    named = {normalized(it) for it in case.every("extension")}
    return program or (named.pop() if len(named) == 1 else None)


def extension_package(case: Case, lines: Lines) -> str | None:
    """Its package for pip, if it has one of its name."""
    extension = normalized(asking_extension(case, lines) or "")
    return extension if extension in _ON_PYPI else None


def usually_beside_pytorch(case: Case, lines: Lines) -> bool:
    """Whether the program finds a newer CUDA of PyTorch or of the machine more often than none."""
    span, program = cuda_of_library(case, lines), asking(case, lines)
    if span is None:
        return program == "rapids"
    return span.last.major <= _OLD_MAJOR and program in ("onnxruntime", "ctranslate2", "cupy", "llama.cpp")


def package_that_asks(case: Case, lines: Lines) -> str | None:
    """That package, if its CUDA is the one of the library."""
    span, cuda = cuda_of_library(case, lines), cuda_of_package(case, lines)
    if span is None or cuda is None:
        return None
    fits = CudaVersion.parse(cuda) in span if "." in cuda else int(cuda) in (span.first.major, span.last.major)
    return first_field(case.of("program-named"), "built") if fits else None


def cuda_of_package(case: Case, _lines: Lines) -> str | None:
    """The CUDA in that name: 9.2, or 12 for all of CUDA 12."""
    digits = next((it.get("digits") for it in case.of("program-named") if it.get("built") and it.get("digits")), None)
    if digits is None:
        return None
    return digits if int(digits) in range(10, 20) else f"{digits[:-1]}.{digits[-1]}"
