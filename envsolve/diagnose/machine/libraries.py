"""CUDA libraries among files, by the names of the files, and which file the loader of this machine uses for a name.

The order is that of glibc's ld.so for a program without search paths of its own: 1. LD_LIBRARY_PATH 2. ld.so.cache 3.
the default directories. A file for another machine is skipped; one that is no library ends the search. The loader's
built-in directories are taken from the distribution: the loader itself is not run, since the machine may be a recorded
one.

The only directory of LD_LIBRARY_PATH through which libcuda is found has to stay there. On NixOS, in some containers and
with HPC modules there is such a directory; removing it loses the GPU.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from envsolve.binary.elf import Abi, read_library
from envsolve.binary.loader_cache import FLAGS, CacheEntry, chosen_files, read_cache
from envsolve.binary.lookup import Rule
from envsolve.binary.unreadable import Damage, UnreadableLibraryError
from envsolve.diagnose.machine.files import MachineFiles
from envsolve.host.loader import LIBRARY_PATH, library_entries
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import is_of_driver, version_in

_NUMBER = re.compile(r"\.so\.(\d+(?:\.\d+)+)\Z")
CACHE = "/etc/ld.so.cache"
ABIS: Mapping[Platform, Abi] = {
    Platform.LINUX_64: Abi("EM_X86_64", 64),
    Platform.LINUX_AARCH64: Abi("EM_AARCH64", 64),
}
_PROCESSORS = {Platform.LINUX_64: "x86_64", Platform.LINUX_AARCH64: "aarch64"}
UNSET = f"unset {LIBRARY_PATH}"


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


class Reached(NamedTuple):
    """The file that the loader reaches first: its path as found, its target, and the rule.

    ``damage`` is what prevents loading it.
    """

    path: str
    real: str
    rule: Rule
    damage: UnreadableLibraryError | None = None

    @property
    def version(self) -> DriverVersion | None:
        """The driver version in its name."""
        return driver_version(self.real)

    def __str__(self) -> str:
        leads = "" if self.real == self.path else f" -> {self.real}"
        return f"{self.path}{leads} (by {self.rule.value})"


class LoaderView(NamedTuple):
    """What the loader uses: the directories of LD_LIBRARY_PATH, the cache, and its default directories."""

    platform: Platform
    library_path: tuple[str, ...]
    cache: tuple[CacheEntry, ...]
    defaults: tuple[str, ...]

    @property
    def abi(self) -> Abi | None:
        """The ABI of a process of this machine; None if it is not Linux."""
        return ABIS.get(self.platform)

    @property
    def cached(self) -> Mapping[str, str]:
        """The chosen file for each name in the cache."""
        if self.abi is None:
            return {}
        chosen = chosen_files(self.cache, FLAGS[self.abi.machine, self.abi.bits], ())
        return {name: str(path) for name, path in chosen.items()}

    def of_this_abi(self) -> tuple[CacheEntry, ...]:
        """The entries of the cache for a process of this machine."""
        if self.abi is None:
            return ()
        return tuple(it for it in self.cache if it.flags == FLAGS[self.abi.machine, self.abi.bits])

    def candidates(self, name: str) -> Iterator[tuple[Rule, str]]:
        """The files that are tried for ``name``, in order."""
        yield from ((Rule.LIBRARY_PATH, f"{directory.rstrip('/')}/{name}") for directory in self.library_path)
        if name in self.cached:
            yield Rule.CACHE, self.cached[name]
        yield from ((Rule.DEFAULT, f"{directory}/{name}") for directory in self.defaults)


def loader_view(files: MachineFiles, platform: Platform, library_path: tuple[str, ...]) -> LoaderView:
    """The view of the loader of ``platform``; ``library_path`` holds absolute directories only."""
    if platform not in ABIS:
        return LoaderView(platform, (), (), ())
    cache = read_cache(files.file(CACHE)) if files.data(CACHE) else ()
    return LoaderView(platform, library_path, cache, _default_directories(files, platform))


def reached(files: MachineFiles, view: LoaderView, name: str) -> Reached | None:
    """The file that the search for ``name`` ends at; None if there is none for this machine."""
    for rule, path in view.candidates(name):
        real = files.real(path)
        if real is None or not files.is_file(real):
            continue
        damage = damage_of(files, real, view.abi)
        if damage is None or damage.damage is not Damage.OTHER_MACHINE:
            return Reached(path, real, rule, damage)
    return None


def damage_of(files: MachineFiles, path: str, abi: Abi | None) -> UnreadableLibraryError | None:
    """What is wrong with the library at ``path``; None if nothing is."""
    try:
        read_library(files.file(path), abi=abi)
    except UnreadableLibraryError as error:
        return error
    return None


def _default_directories(files: MachineFiles, platform: Platform) -> tuple[str, ...]:
    """The directories that Debian and its derivatives, or all others, compile in."""
    multiarch = f"{_PROCESSORS[platform]}-linux-gnu"
    if files.is_directory(f"/usr/lib/{multiarch}"):
        return (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib", "/usr/lib")
    return ("/lib64", "/usr/lib64", "/lib", "/usr/lib")


def facts_without(
    directories: Iterable[str], value: str, driver: str | None, place_of: Callable[[str], str]
) -> dict[str, object]:
    """Facts on how to keep harmful ``directories`` of the variable away from programs, for the step ``own-libraries``.

    ``driver`` is the only directory in ``value`` through which libcuda is found; None if it is found without the
    variable. It has to stay, and nothing can be removed if it is harmful itself. ``place_of`` normalizes the spelling
    of a directory.
    """
    harmful = tuple(dict.fromkeys(directories))
    places = set(map(place_of, harmful))
    left = ":".join(it for it in library_entries(value) if it and place_of(it) not in places)
    cut = UNSET if driver is None else f"export {LIBRARY_PATH}={shlex.quote(left)}"
    is_lost = driver is not None and place_of(driver) in places
    return {"cut": None if is_lost else cut, "keeps": driver, "directories": harmful}
