"""The CUDA toolkits of a machine: their places, their versions, what refers to them, and what this machine can use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from envsolve.boundary.files import FileError, json_value
from envsolve.diagnose.machine.files import MachineFiles
from envsolve.diagnose.machine.libraries import file_version
from envsolve.model.finding import Finding
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion

if TYPE_CHECKING:
    from envsolve.diagnose.machine.survey import Survey

TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDAToolkit_ROOT")
"""Variables with the path of a toolkit: the first two of NVIDIA, PyTorch and CuPy, the others of build systems (CMake).
"""
NVCC_ON_PATH = "nvcc on PATH"

_PLACES = (("/usr/local", "cuda"), ("/opt", "cuda"))
_ONE_PLACE = ("/usr/lib/cuda",)
"""Debian's package nvidia-cuda-toolkit."""
_WINDOWS_PLACE = r"NVIDIA GPU Computing Toolkit\CUDA"
_DATA_DIRECTORY = re.compile(r"--xla_gpu_cuda_data_dir=[\"']?([^\s\"']+)")
_CUDA_NUMBER = re.compile(r"^\s*#\s*define\s+CUDA_VERSION\s+(\d+)", re.MULTILINE)
_VERSION_LINE = re.compile(r"CUDA Version (\d+(?:\.\d+)+)")
_TARGETS = ("targets/x86_64-linux", "targets/sbsa-linux", "targets/aarch64-linux")
_LIBRARIES = ("lib64", *(f"{it}/lib" for it in _TARGETS), "bin")
_RUNTIME = re.compile(r"(?:libcudart\.so\.|cudart64_)\d")
_HEADERS = ("include", *(f"{it}/include" for it in _TARGETS))
_INSTALLED = ("/usr/local", "/opt", "the distribution", "Program Files")
_OTHER_VARIABLES = ("CUDNN_PATH",)
_LIBDEVICE = ("nvvm", "libdevice", "libdevice.10.bc")
_LIBDEVICE_ELSEWHERE = ("libdevice.10.bc",)


class Toolkit(NamedTuple):
    """A toolkit: its directory with all links followed, its version if known, and how it was found."""

    path: str
    version: str | None
    origins: tuple[str, ...]

    @property
    def cuda(self) -> CudaVersion | None:
        """Its version by major and minor."""
        return None if self.version is None else CudaVersion.parse(self.version)

    @property
    def is_default(self) -> bool:
        """Whether a variable or the compiler on PATH refers to it, and not only its place."""
        return any(origin in (*TOOLKIT_VARIABLES, NVCC_ON_PATH) for origin in self.origins)

    def __str__(self) -> str:
        return f"{self.path} ({self.version or 'of no known version'})"


def toolkits_of(
    files: MachineFiles, platform: Platform, environ: Mapping[str, str], program_path: tuple[str, ...]
) -> tuple[Toolkit, ...]:
    """Every toolkit once, in this order: usual places of installers, variables, the compiler on PATH."""
    windows = platform.is_windows
    found: dict[str, tuple[str, list[str]]] = {}
    named = ((environ[name], name) for name in TOOLKIT_VARIABLES if environ.get(name))
    for path, origin in (*_installed(files, environ, windows=windows), *named, *_of_compiler(files, program_path)):
        real = files.real(path)
        if real is not None and is_toolkit(files, real):
            found.setdefault(real.casefold() if windows else real, (real, []))[1].append(origin)
    return tuple(
        Toolkit(path, version_of(files, path), tuple(dict.fromkeys(origins))) for path, origins in found.values()
    )


def is_toolkit(files: MachineFiles, directory: str) -> bool:
    """Whether a directory contains a toolkit, and not only a compatibility package or a script called nvcc."""
    marks = ("bin/nvcc.profile", "version.json", "version.txt", *(f"{it}/cuda.h" for it in _HEADERS))
    if any(files.is_file(files.join(directory, *mark.split("/"))) for mark in marks):
        return True
    return next(_runtimes(files, directory), None) is not None


def version_of(files: MachineFiles, directory: str) -> str | None:
    """The version of a toolkit, in order from: 1. version.json 2. version.txt 3. cuda.h 4. the file of its runtime."""
    ways = (_of_json, _of_text, _of_header, _of_runtime)
    return next((version for version in (way(files, directory) for way in ways) if version is not None), None)


def compiler_on_path(files: MachineFiles, program_path: tuple[str, ...]) -> str | None:
    """The first nvcc on PATH."""
    names = ("nvcc", "nvcc.exe")
    paths = (files.join(directory, name) for directory in program_path for name in names)
    return next((path for path in paths if files.is_file(path)), None)


def compilers_toolkit(files: MachineFiles, compiler: str) -> str:
    """The toolkit of ``compiler``: the parent of its real directory."""
    return files.parent(files.parent(files.real(compiler) or compiler))


def data_directory(environ: Mapping[str, str]) -> str | None:
    """The toolkit in XLA_FLAGS for XLA's compiler."""
    match = _DATA_DIRECTORY.search(environ.get("XLA_FLAGS", ""))
    return None if match is None else match[1]


def _installed(files: MachineFiles, environ: Mapping[str, str], *, windows: bool) -> Iterator[tuple[str, str]]:
    if windows:
        place = files.join(environ.get("ProgramFiles") or r"C:\Program Files", _WINDOWS_PLACE)
        yield from ((files.join(place, name), "Program Files") for name in files.names(place))
        return
    for directory, prefix in _PLACES:
        for name in files.names(directory):
            if name.startswith(prefix):
                yield f"{directory}/{name}", directory
    yield from ((place, "the distribution") for place in _ONE_PLACE)


def _of_compiler(files: MachineFiles, program_path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    compiler = compiler_on_path(files, program_path)
    if compiler is not None:
        yield compilers_toolkit(files, compiler), NVCC_ON_PATH


def _of_json(files: MachineFiles, directory: str) -> str | None:
    text = files.text(files.join(directory, "version.json"))
    try:
        document: Any = json_value(text or "{}")
        return _checked(str(document["cuda"]["version"]))
    except (FileError, LookupError, TypeError):
        return None


def _of_text(files: MachineFiles, directory: str) -> str | None:
    match = _VERSION_LINE.search(files.text(files.join(directory, "version.txt")) or "")
    return None if match is None else _checked(match[1])


def _of_header(files: MachineFiles, directory: str) -> str | None:
    for place in _HEADERS:
        match = _CUDA_NUMBER.search(files.text(files.join(directory, *place.split("/"), "cuda.h")) or "")
        version = None if match is None else CudaVersion.from_driver_api(int(match[1]))
        if version is not None:
            return str(version)
    return None


def _of_runtime(files: MachineFiles, directory: str) -> str | None:
    """The version in ``libcudart.so.12.4.127`` is 12.4."""
    versions = (file_version(files.real(path) or path) for path in _runtimes(files, directory))
    found = next((version for version in versions if version is not None), None)
    return None if found is None else ".".join(found.split(".")[:2])


def _runtimes(files: MachineFiles, directory: str) -> Iterator[str]:
    """The files of the CUDA runtime: the only part of a toolkit in an image for running programs."""
    for place in _LIBRARIES:
        within = files.join(directory, *place.split("/"))
        yield from (files.join(within, name) for name in files.names(within) if _RUNTIME.match(name))


def _checked(version: str) -> str | None:
    try:
        CudaVersion.parse(version)
    except ValueError:
        return None
    return version


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
