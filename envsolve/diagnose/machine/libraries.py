"""CUDA libraries among files: the component from a file's name, the version from the name of its target."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from envsolve.diagnose.machine.files import MachineFiles
from envsolve.model.versions import DriverVersion
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import is_of_driver, version_in

_NUMBER = re.compile(r"\.so\.(\d+(?:\.\d+)+)\Z")


class Library(NamedTuple):
    """A CUDA library: the name it is loaded by, its path, its version if the file name has it, and its origin."""

    name: str
    path: str
    version: str | None
    origin: str

    def __str__(self) -> str:
        return f"{self.path} ({self.version})" if self.version else self.path


def component(name: str) -> str | None:
    """The component in a file of this name, in lower case: ``cudart``; None if it is not CUDA's."""
    found = component_of(name)
    return None if found is None else found.lower()


def file_version(path: str) -> str | None:
    """The version in the last part of a path, if there is one."""
    if not is_of_driver(posixpath.basename(path)):
        return version_in(path)
    version = driver_version(path)
    return None if version is None else str(version)


def driver_version(path: str) -> DriverVersion | None:
    """The driver version in a name such as ``libcuda.so.580.65.06``; None on a Jetson."""
    match = _NUMBER.search(path)
    try:
        return None if match is None else DriverVersion.parse(match[1])
    except ValueError:
        return None


def is_loaded_by(name: str, other: str) -> bool:
    """Whether ``name`` rather than ``other`` is the soname of a file: the shortest one with a number."""
    return ".so." in name and (".so." not in other or len(name) < len(other))


def libraries_in(files: MachineFiles, directory: str, origin: str) -> Iterator[Library]:
    """The CUDA libraries in a directory by the names they are loaded by, one for each file."""
    found: dict[str, Library] = {}
    for name in files.names(directory):
        if component(name) is None or is_of_driver(name):
            continue
        path = files.join(directory, name)
        real = files.real(path)
        known = found.get(real or path)
        if known is None or is_loaded_by(name, known.name):
            found[real or path] = Library(name, path, file_version(real or path), origin)
    yield from found.values()
