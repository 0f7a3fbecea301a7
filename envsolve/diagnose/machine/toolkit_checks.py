"""Toolkits and what refers to them: several toolkits, contradicting variables, versions that the machine cannot use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envsolve.diagnose.machine.survey import Survey
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
from envsolve.model.finding import Finding
from envsolve.model.versions import CudaVersion

_INSTALLED = ("/usr/local", "/opt", "the distribution", "Program Files")
_OTHER_VARIABLES = ("CUDNN_PATH",)
_LIBDEVICE = ("nvvm", "libdevice", "libdevice.10.bc")
_LIBDEVICE_ELSEWHERE = ("libdevice.10.bc",)


class Pointer(NamedTuple):
    """A reference to a toolkit: a variable or the compiler on PATH, with the path as written."""

    name: str
    path: str
    version: str | None

    def __str__(self) -> str:
        return f"{self.name}={self.path} ({self.version or 'of no known version'})"


def check_several(survey: Survey) -> Iterator[Finding]:
    """More than one toolkit."""
    installed = [it for it in survey.toolkits if any(origin in _INSTALLED for origin in it.origins)]
    if len(installed) < 2:  # noqa: PLR2004 - two are several
        return
    places = tuple(map(str, installed))
    yield survey.finding("several-toolkits", places, places=places, links=tuple(_links(survey)))


def check_pointers(survey: Survey) -> Iterator[Finding]:
    """Variables that lead to no toolkit, and references to toolkits of different versions."""
    pointers = tuple(pointers_of(survey))
    lost = [it for it in pointers if it.name != NVCC_ON_PATH and _is_lost(survey, it)]
    for name in _OTHER_VARIABLES:
        path = survey.environ.get(name)
        if path and not survey.files.exists(path):
            lost.append(Pointer(name, path, None))
    if lost:
        entries = tuple(f"{it.name}={it.path}" for it in lost)
        typed = " ".join(it.name for it in lost)
        yield survey.finding("cuda-home-wrong", entries, entries=entries, variables_typed=typed)
    versions = {CudaVersion.parse(it.version) for it in pointers if it.version is not None}
    if len(versions) > 1:
        known = [it for it in pointers if it.version is not None]
        entries = tuple(f"{it.name} {it.version} ({it.path})" for it in known)
        yield survey.finding("toolkit-variables-disagree", map(str, known), entries=entries)


def check_data_directory(survey: Survey) -> Iterator[Finding]:
    """The directory in XLA_FLAGS, in which XLA looks for libdevice."""
    path = data_directory(survey.environ)
    places = (_LIBDEVICE, _LIBDEVICE_ELSEWHERE)
    if path is None or any(survey.files.is_file(survey.files.join(path, *it)) for it in places):
        return
    flags = survey.environ["XLA_FLAGS"]
    yield survey.finding("libdevice-missing", (f"XLA_FLAGS={flags}",), path=path, alone=len(flags.split()) == 1)


def check_driver(survey: Survey) -> Iterator[Finding]:
    """A toolkit in use of a newer major version than the driver supports."""
    newest = survey.host.driver_cuda
    for toolkit in survey.toolkits if newest is not None else ():
        assert newest is not None
        if toolkit.is_default and toolkit.cuda is not None and toolkit.cuda.major > newest.major:
            yield survey.finding(
                "toolkit-newer-than-driver",
                (str(toolkit), f"driver: CUDA {newest}"),
                **_facts(toolkit),
                driver_cuda=newest,
                driver_major=newest.major,
            )


def check_gpus(survey: Survey) -> Iterator[Finding]:
    """A toolkit in use that no longer compiles for a GPU of this machine."""
    rows = {row.version: row for row in survey.matrix.cuda.toolkits}
    for toolkit in survey.toolkits:
        row = rows.get(toolkit.cuda) if toolkit.is_default and toolkit.cuda is not None else None
        if row is None or not row.compiles_for:
            continue
        old = [it for it in survey.gpus if it.compute_capability and it.compute_capability < min(row.compiles_for)]
        if old:
            named = tuple(it.label for it in old)
            yield survey.finding(
                "toolkit-drops-gpu",
                (str(toolkit), *named),
                **_facts(toolkit),
                capability=min(row.compiles_for),
                gpus=named,
            )


def _facts(toolkit: Toolkit) -> dict[str, object]:
    return {"toolkit_path": str(toolkit), "origins": toolkit.origins}


def pointers_of(survey: Survey) -> Iterator[Pointer]:
    """Everything that refers to a toolkit."""
    named = [(name, survey.environ[name]) for name in TOOLKIT_VARIABLES if survey.environ.get(name)]
    data = data_directory(survey.environ)
    named += [("XLA_FLAGS", data)] if data is not None else []
    for name, path in named:
        yield Pointer(name, path, version_of(survey.files, path))
    compiler = compiler_on_path(survey.files, survey.program_path)
    if compiler is not None:
        yield Pointer(NVCC_ON_PATH, compiler, version_of(survey.files, compilers_toolkit(survey.files, compiler)))


def _is_lost(survey: Survey, pointer: Pointer) -> bool:
    """Whether a reference leads to no toolkit. XLA_FLAGS has a check of its own."""
    return pointer.name != "XLA_FLAGS" and not is_toolkit(survey.files, pointer.path)


def _links(survey: Survey) -> Iterator[str]:
    """The targets of links to a toolkit."""
    for link in ("/usr/local/cuda", "/opt/cuda"):
        if not survey.platform.is_windows and survey.files.link(link) is not None:
            yield f"{link} -> {survey.files.real(link) or 'nothing'}"


def toolkits_as_json(toolkits: tuple[Toolkit, ...]) -> list[dict[str, object]]:
    """The toolkits for the inventory."""
    return [{"path": it.path, "version": it.version, "origin": ", ".join(it.origins)} for it in toolkits]
