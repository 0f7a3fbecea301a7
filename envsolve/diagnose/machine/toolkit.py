"""The CUDA toolkits of a machine: their places, their versions, and what refers to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from envsolve.boundary.files import FileError, json_value
from envsolve.diagnose.machine.files import MachineFiles
from envsolve.diagnose.machine.libraries import file_version
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion

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
