"""The frameworks that envsolve supports, one for each file of ``data/frameworks``, whose README describes the keys.

They have the names of a framework and the roles of its files. Its builds are in the matrix. Those in ``dependent`` are
packages for one build of another framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import starmap
from pathlib import Path
from typing import Any, Literal, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.boundary.document import TomlFile
from envsolve.model.names import normalized
from envsolve.model.request import parse_framework


class Preload(StrEnum):
    """Whether a framework loads CUDA's libraries from NVIDIA's packages by path, before it needs them."""

    NEVER = "never"
    AFTER_FAILURE = "after-failure"
    """Only if the loader does not find them."""
    LISTED = "listed"
    """Always those that it opens by name."""
    WITH_DEPENDENCIES = "with-dependencies"
    """Always, each after its dependencies, as cuda-pathfinder does."""
    REQUESTED = "asked"
    """Only if the program calls a function for it."""


class Opened(NamedTuple):
    """Libraries that the file ``caller`` opens by name. Those that are not ``required`` are for few programs."""

    caller: str
    libraries: tuple[str, ...]
    required: bool = True


class Libraries(NamedTuple):
    """A framework's libraries: those that load CUDA's, CUDA's that they open by name, and those with kernels.

    All are patterns of files below the directory of its modules.
    """

    package: str
    roots: tuple[str, ...]
    code: tuple[str, ...]
    dll_roots: tuple[str, ...]
    dll_directories: tuple[str, ...]
    on_import: bool
    older_cudnn: Literal["refused", "run"] | None
    preload: Preload
    opened: tuple[Opened, ...]


class Built(NamedTuple):
    """Where the files say what they were built for: names of variables in the module ``file``.

    Without ``cuda``, the path of ``file`` has that information.
    """

    file: str
    version: str | None
    cuda: str | None
    cudnn: str | None
    gpu: tuple[str, ...]


class Framework(NamedTuple):
    """A framework. The README of ``data/frameworks`` describes each field, under the key with its name."""

    name: str
    order: int
    title: str
    mentioned: str
    aliases: tuple[str, ...]
    needs_gpu: bool
    first_use: str | None
    wheels: tuple[str, ...]
    cpu_wheels: Mapping[str, str]
    mistaken: tuple[str, ...]
    rivals: tuple[str, ...]
    own_index: tuple[str, ...]
    built_with: tuple[str, ...]
    preload_call: str | None
    conda_packages: tuple[str, ...]
    conda_builds: tuple[str, ...]
    conda_holds: Mapping[str, tuple[str, ...]]
    conda_builds_hold: Mapping[str, Mapping[str, tuple[str, ...]]]
    conda_code: tuple[str, ...]
    needs_xla_flags: bool
    installed: str
    beside: str | None
    pairs: Mapping[str, str]
    same_version: Mapping[str, str]
    gpu_packages: str | None
    owners: Mapping[str, str]
    built: Built
    libraries: Libraries

    @property
    def probe(self) -> str:
        """The module of :mod:`envsolve.validation.inside` that tests it."""
        return f"on_{self.name}"

    def is_installed_as(self, package: str) -> bool:
        """Whether an installed package with this normalized name is the framework, or contains it."""
        return re.fullmatch(self.installed, package) is not None

    def is_beside(self, package: str) -> bool:
        """Whether a package with this normalized name is a part of it, or is only used with it."""
        return self.beside is not None and re.fullmatch(self.beside, package) is not None

    def has_gpu_code(self, package: str, version: str = "") -> bool:
        """Whether only GPU builds have a package with this normalized name."""
        return self.gpu_packages is not None and re.match(self.gpu_packages, f"{package}=={version}") is not None

    def is_mentioned_in(self, line: str) -> bool:
        """Whether a line of a log names it."""
        return self.place_in(line) is not None

    def place_in(self, line: str) -> int | None:
        """Return the position of its first name in a line of a log, or None."""
        found = re.search(self.mentioned, line, re.IGNORECASE)
        return None if found is None else found.start()


class DependentFramework(NamedTuple):
    """A package for one build of the framework ``on``.

    The README of ``data/frameworks/dependent`` describes the fields.

    ``-f`` requests both.
    """

    name: str
    title: str
    on: str
    oldest: str | None
    extra_before: str | None
    platforms: tuple[str, ...]
    cpu_index: str | None
    kernel: str | None
    least: str
    """The least compute capability that its wheels have code for."""

    @property
    def probe(self) -> str:
        """The module of :mod:`envsolve.validation.inside` that runs its ``kernel``."""
        return f"on_{self.name}"

    def requirement(self, versions: SpecifierSet) -> str:
        """Return the requirement for ``-f``, with the extra of older versions if ``versions`` only admit these."""
        if self.oldest is None:
            return f"{self.name}{versions}"
        named = [it.version.removesuffix(".*") for it in versions]
        known = [
            self.oldest,
            *named,
            *(f"{it}.1" for it in named),
        ]  # each range of a specifier begins at or after one of these
        newer = versions & SpecifierSet(f">={self.oldest}")
        if self.extra_before is not None and not any(newer.contains(it, prereleases=True) for it in known):
            return f"{self.name}[{self.extra_before}]{versions}"
        return f"{self.name}{newer}"


AnyFramework = Framework | DependentFramework


def frameworks_among(packages: Iterable[str]) -> tuple[Framework, ...]:
    """Return the frameworks that the installed ``packages`` (names in any spelling) are or contain."""
    names = {normalized(name) for name in packages}
    return tuple(it for it in FRAMEWORKS.values() if any(map(it.is_installed_as, names)))


def is_extra_for(package: str, extra: str) -> bool:
    """Whether an extra has a name of the framework that ``package`` is: the extra ``torch``, which requires torch."""
    known = FRAMEWORKS.get(FRAMEWORK_OF_WHEEL.get(package, ""))
    return known is not None and extra in (known.name, *known.aliases, *known.wheels, *known.cpu_wheels)


def rivals_of(framework: str) -> tuple[str, ...]:
    """Return packages that install the same module as ``framework``; none for one of a user's own matrix."""
    known = FRAMEWORKS.get(framework)
    return () if known is None else known.rivals


def packages_of(framework: str) -> tuple[str, ...]:
    """Return the packages of indexes and conda that are ``framework``; none for one of a user's own matrix."""
    known = FRAMEWORKS.get(framework)
    return () if known is None else (*known.wheels, *known.conda_packages)


def needs_gpu(framework: str) -> bool:
    """Whether ``framework`` does nothing without a GPU, so that its builds are no alternative for the CPU."""
    known = FRAMEWORKS.get(framework)
    return known is not None and known.needs_gpu


def split_dependent(texts: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the frameworks that ``-f`` names, and the requirements on the dependent ones.

    ``vllm==0.30.*`` is ``pytorch`` and the requirement ``vllm==0.30.*``. Invalid texts stay unchanged.
    """
    frameworks, requirements = [], []
    for text in texts:
        try:
            name, versions = parse_framework(text)
        except ValueError:
            name, versions = text, SpecifierSet()
        known = DEPENDENT_FRAMEWORKS.get(normalized(name))
        if known is None:
            frameworks.append(text)
            continue
        frameworks.append(known.on)
        requirements.append(known.requirement(versions))
    return tuple(frameworks), tuple(requirements)


def _files(*below: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    package = Path(__file__).parent
    shipped = package / "_frameworks"
    directory = shipped if shipped.is_dir() else package.parent / "data" / "frameworks"
    for path in sorted(directory.joinpath(*below).glob("*.toml")):
        yield path.stem, TomlFile(path, cached=True).content()


def read_dependent_framework(name: str, document: Mapping[str, Any]) -> DependentFramework:
    """Return the dependent framework ``name`` from its file. Raises KeyError if a required key is missing."""
    get = document.get
    title, on, platforms = document["title"], document["on"], tuple(document["platforms"])
    extra, least = get("extra-before"), document["least"]
    return DependentFramework(name, title, on, get("oldest"), extra, platforms, get("cpu-index"), get("kernel"), least)


def read_framework(name: str, document: Mapping[str, Any]) -> Framework:
    """Return the framework ``name`` from its file. Raises KeyError if a required key is missing."""
    wheels, conda, installed = document["wheels"], document["conda"], document["installed"]
    return Framework(
        name,
        document["order"],
        document["title"],
        document["mentioned"],
        tuple(document.get("aliases", ())),
        document.get("needs-gpu", False),
        document.get("first-use"),
        tuple(wheels["packages"]),
        wheels.get("cpu", {}),
        tuple(wheels.get("mistaken", ())),
        tuple(wheels.get("rivals", ())),
        tuple(wheels.get("own-index", ())),
        tuple(wheels.get("built-with", ())),
        wheels.get("preload"),
        tuple(conda["packages"]),
        tuple(conda["builds"]),
        _tuples(conda.get("holds", {})),
        {name: _tuples(projects) for name, projects in conda.get("builds-hold", {}).items()},
        tuple(conda.get("code", ())),
        conda.get("needs-xla-flags", False),
        installed["packages"],
        installed.get("beside"),
        installed.get("pairs", {}),
        installed.get("same-version", {}),
        installed.get("gpu"),
        installed.get("owners", {}),
        _built(document["built"]),
        _libraries(document["libraries"]),
    )


def _tuples(table: Mapping[str, Iterable[str]]) -> Mapping[str, tuple[str, ...]]:
    return {name: tuple(values) for name, values in table.items()}


def _built(table: Mapping[str, Any]) -> Built:
    get = table.get
    return Built(table["file"], get("version"), get("cuda"), get("cudnn"), tuple(get("gpu", ())))


def _libraries(table: Mapping[str, Any]) -> Libraries:
    opened = (Opened(it["caller"], tuple(it["libraries"]), it.get("required", True)) for it in table.get("opened", ()))
    return Libraries(
        table["package"],
        tuple(table["roots"]),
        tuple(table["code"]),
        tuple(table["dll-roots"]),
        tuple(table["dll-directories"]),
        table["on-import"],
        table.get("older-cudnn"),
        Preload(table["preload"]),
        tuple(opened),
    )


FRAMEWORKS: Mapping[str, Framework] = {
    it.name: it for it in sorted(starmap(read_framework, _files()), key=lambda it: it.order)
}
"""By envsolve's name, in the order in which they are tested and listed."""

DEPENDENT_FRAMEWORKS: Mapping[str, DependentFramework] = {
    it.name: it for it in starmap(read_dependent_framework, _files("dependent"))
}
"""By the name of the package, which is also the name for ``-f``."""

FRAMEWORK_OF_WHEEL: Mapping[str, str] = {wheel: it.name for it in FRAMEWORKS.values() for wheel in it.wheels}
"""Packages on indexes that are a framework for GPUs, whatever requires them."""

FRAMEWORK_OF_CPU_WHEEL: Mapping[str, str] = {wheel: it.name for it in FRAMEWORKS.values() for wheel in it.cpu_wheels}
"""Packages on indexes that are a framework's CPU build under another name."""

GPU_WHEEL_OF: Mapping[str, str] = {
    wheel: gpu_wheel for it in FRAMEWORKS.values() for wheel, gpu_wheel in it.cpu_wheels.items()
}
"""The package that such a CPU build replaces, and that other packages require."""

OWN_INDEX: Mapping[str, str] = {name: it.name for it in FRAMEWORKS.values() for name in it.own_index}
"""Packages of which the framework's own index has a build for each CUDA."""

BUILT_WITH: Mapping[str, str] = {name: it.name for it in FRAMEWORKS.values() for name in it.built_with}
"""Those of them that do not work with a build of the framework for another CUDA."""

FRAMEWORK_OF_CONDA: Mapping[str, str] = {name: it.name for it in FRAMEWORKS.values() for name in it.conda_packages}
"""Conda packages that are a framework, or only a name for one."""


def framework_of_name(name: str) -> str | None:
    """Return the framework that a conda or Python package is, or None."""
    return FRAMEWORK_OF_CONDA.get(name) or FRAMEWORK_OF_WHEEL.get(normalized(name))


def framework_of_word(word: str) -> str | None:
    """Return the framework with the name, alias or Python package ``word``, or None."""
    if word in DEPENDENT_FRAMEWORKS:
        return word
    return next((it.name for it in FRAMEWORKS.values() if word in (it.name, *it.aliases, it.wheels[0])), None)
