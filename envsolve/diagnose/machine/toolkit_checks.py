"""Toolkits and what points at them: several of them, variables that disagree, versions that the machine cannot use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envsolve.diagnose.machine.survey import Survey, name_of
from envsolve.diagnose.machine.toolkit import (
    NVCC_ON_PATH,
    TOOLKIT_VARIABLES,
    Toolkit,
    compiler_on_path,
    compilers_toolkit,
    data_directory,
    is_toolkit,
    version_of,
)
from envsolve.model.finding import Finding, Severity
from envsolve.model.versions import CudaVersion

_INSTALLED = ("/usr/local", "/opt", "the distribution", "Program Files")
_OTHER_VARIABLES = ("CUDNN_PATH",)
_LIBDEVICE = ("nvvm", "libdevice", "libdevice.10.bc")
_LIBDEVICE_ELSEWHERE = ("libdevice.10.bc",)


class Pointer(NamedTuple):
    """Something that names a toolkit: a variable or the compiler on PATH, with the path as it stands there."""

    name: str
    path: str
    version: str | None

    def __str__(self) -> str:
        return f"{self.name}={self.path} ({self.version or 'of no known version'})"


def check_several(survey: Survey) -> Iterator[Finding]:
    """Several toolkits beside one another."""
    installed = [it for it in survey.toolkits if any(origin in _INSTALLED for origin in it.origins)]
    if len(installed) < 2:  # noqa: PLR2004 - two are several
        return
    chosen = "" if survey.platform.is_windows else _chosen(survey)
    yield Finding(
        "several-toolkits",
        "Several CUDA toolkits are installed",
        Severity.INFO,
        f"There are {', '.join(map(str, installed))}.{chosen} Environments of conda and of pip bring their own CUDA "
        "and use none of them.",
        "Nothing has to be done, unless programs are compiled here: then CUDA_HOME and PATH decide which one is used.",
        (),
        tuple(map(str, installed)),
    )


def check_pointers(survey: Survey) -> Iterator[Finding]:
    """Variables that name no toolkit, and pointers to toolkits of different versions."""
    pointers = tuple(pointers_of(survey))
    lost = [it for it in pointers if it.name != NVCC_ON_PATH and _is_lost(survey, it)]
    for name in _OTHER_VARIABLES:
        path = survey.environ.get(name)
        if path and not survey.files.exists(path):
            lost.append(Pointer(name, path, None))
    if lost:
        yield _lost(survey, lost)
    versions = {CudaVersion.parse(it.version) for it in pointers if it.version is not None}
    if len(versions) > 1:
        yield _disagree(pointers)


def check_data_directory(survey: Survey) -> Iterator[Finding]:
    """The directory in XLA_FLAGS, from which XLA takes libdevice."""
    path = data_directory(survey.environ)
    places = (_LIBDEVICE, _LIBDEVICE_ELSEWHERE)
    if path is None or any(survey.files.is_file(survey.files.join(path, *it)) for it in places):
        return
    yield Finding(
        "libdevice-missing",
        "XLA_FLAGS names a directory without libdevice",
        Severity.WARNING,
        f"XLA_FLAGS has --xla_gpu_cuda_data_dir={path}, and XLA looks for {'/'.join(_LIBDEVICE)} below it, which is "
        "not there: it cannot compile for the GPU, unless it finds the file elsewhere.",
        "Name the directory of a toolkit that has nvvm, or take the flag out and install cuda-nvvm in the environment "
        "(conda: cuda-nvcc; pip: nvidia-cuda-nvcc).",
        survey.unset("XLA_FLAGS") if len(survey.environ["XLA_FLAGS"].split()) == 1 else (),
        (f"XLA_FLAGS={survey.environ['XLA_FLAGS']}",),
    )


def check_driver(survey: Survey) -> Iterator[Finding]:
    """A toolkit that is used, of a newer major version than the driver supports."""
    newest = survey.host.driver_cuda
    for toolkit in survey.toolkits if newest is not None else ():
        assert newest is not None
        if toolkit.is_default and toolkit.cuda is not None and toolkit.cuda.major > newest.major:
            yield Finding(
                "toolkit-newer-than-driver",
                "The CUDA toolkit is newer than the driver",
                Severity.WARNING,
                f"{toolkit}, found by {' and '.join(toolkit.origins)}, is of a newer major version than the CUDA "
                f"{newest} that the driver supports: programs compiled with it do not run here.",
                f"Compile with a toolkit of CUDA {newest.major}. Environments that are installed ready-made are not "
                "concerned.",
                (),
                (str(toolkit), f"driver: CUDA {newest}"),
            )


def check_gpus(survey: Survey) -> Iterator[Finding]:
    """A toolkit that is used, and which no longer compiles for a GPU of this machine."""
    rows = {row.version: row for row in survey.matrix.cuda.toolkits}
    for toolkit in survey.toolkits:
        row = rows.get(toolkit.cuda) if toolkit.is_default and toolkit.cuda is not None else None
        if row is None or not row.compiles_for:
            continue
        old = [it for it in survey.gpus if it.compute_capability and it.compute_capability < min(row.compiles_for)]
        if old:
            yield Finding(
                "toolkit-drops-gpu",
                "The CUDA toolkit does not compile for the GPU",
                Severity.WARNING,
                f"{toolkit}, found by {' and '.join(toolkit.origins)}, compiles for compute capability "
                f"{min(row.compiles_for)} and newer, and this machine has {', '.join(map(name_of, old))}.",
                "Compile with an older toolkit. Environments that are installed ready-made are not concerned.",
                (),
                (str(toolkit), *map(name_of, old)),
            )


def pointers_of(survey: Survey) -> Iterator[Pointer]:
    """Everything that names a toolkit."""
    named = [(name, survey.environ[name]) for name in TOOLKIT_VARIABLES if survey.environ.get(name)]
    data = data_directory(survey.environ)
    named += [("XLA_FLAGS", data)] if data is not None else []
    for name, path in named:
        yield Pointer(name, path, version_of(survey.files, path))
    compiler = compiler_on_path(survey.files, survey.program_path)
    if compiler is not None:
        yield Pointer(NVCC_ON_PATH, compiler, version_of(survey.files, compilers_toolkit(survey.files, compiler)))


def _is_lost(survey: Survey, pointer: Pointer) -> bool:
    """XLA_FLAGS has a check of its own."""
    return pointer.name != "XLA_FLAGS" and not is_toolkit(survey.files, pointer.path)


def _lost(survey: Survey, lost: list[Pointer]) -> Finding:
    said = [
        f"{it.name} is {it.path}, which "
        + ("holds no CUDA toolkit" if survey.files.is_directory(it.path) else "is not there")
        for it in lost
    ]
    return Finding(
        "cuda-home-wrong",
        "A variable names a CUDA toolkit that is not there",
        Severity.WARNING,
        f"{'; '.join(said)}. Compiling extensions fails, and programs that look there for libraries find none.",
        "Correct it or remove it; environments that are installed ready-made do not need it.",
        survey.unset(*(it.name for it in lost)),
        tuple(f"{it.name}={it.path}" for it in lost),
    )


def _disagree(pointers: tuple[Pointer, ...]) -> Finding:
    known = [it for it in pointers if it.version is not None]
    said = ", ".join(f"{it.name} {it.version} ({it.path})" for it in known)
    return Finding(
        "toolkit-variables-disagree",
        "Variables lead to CUDA toolkits of different versions",
        Severity.WARNING,
        f"They do not lead to one toolkit: {said}. Extensions get compiled with one and linked with another.",
        "Let all of them name one toolkit, that of the framework's CUDA, or remove those that are not needed.",
        (),
        tuple(map(str, known)),
    )


def _chosen(survey: Survey) -> str:
    links = [f"{place}/cuda" for place in ("/usr/local", "/opt") if survey.files.link(f"{place}/cuda") is not None]
    return "".join(f" {link} leads to {survey.files.real(link) or 'nothing'}." for link in links)


def toolkits_as_json(toolkits: tuple[Toolkit, ...]) -> list[dict[str, object]]:
    """The toolkits for the inventory."""
    return [{"path": it.path, "version": it.version, "origin": ", ".join(it.origins)} for it in toolkits]
