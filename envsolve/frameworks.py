"""The frameworks that envsolve knows, one for each file of ``data/frameworks``, whose README says what the keys mean.

What is here is what a framework is called and what its files do. Which builds of it there are is the matrix's. Those in
``dependent`` are packages for one build of another framework.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.boundary.document import TomlFile
from envsolve.model.names import normalized
from envsolve.model.request import parse_framework


class Preload(StrEnum):
    """Whether a framework loads CUDA's libraries from the packages of NVIDIA by their paths, before it needs them."""

    NEVER = "never"
    AFTER_FAILURE = "after-failure"
    """Only where the loader has not found them."""
    LISTED = "listed"
    """Always, those that it opens by name."""
    WITH_DEPENDENCIES = "with-dependencies"
    """Always, each after what it needs, as cuda-pathfinder does."""
    ASKED = "asked"
    """Where the program calls for it."""


class Opened(NamedTuple):
    """Libraries that the file ``caller`` opens by name; those that are not ``required`` serve few programs."""

    caller: str
    libraries: tuple[str, ...]
    required: bool = True


class Libraries(NamedTuple):
    """Which libraries of a framework load CUDA's, which they open by name later, and which hold its kernels.

    All are patterns of files below the directory that its modules are in.
    """

    package: str
    roots: tuple[str, ...]
    code: tuple[str, ...]
    dll_roots: tuple[str, ...]
    dll_directories: tuple[str, ...]
    on_import: bool
    checks_cudnn: bool
    preload: Preload
    opened: tuple[Opened, ...]


class Built(NamedTuple):
    """Where its files say what it was built for: the names of variables in the module ``file``.

    Without ``cuda`` it is the path of ``file`` that says so.
    """

    file: str
    version: str | None
    cuda: str | None
    cudnn: str | None
    gpu: tuple[str, ...]


class Framework(NamedTuple):
    """A framework; what each field means is in the README of ``data/frameworks``, under the key of that name."""

    name: str
    order: int
    title: str
    mentioned: str
    aliases: tuple[str, ...]
    needs_gpu: bool
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
        """The module of :mod:`envsolve.validation.inside` that proves it."""
        return f"on_{self.name}"

    def is_installed_as(self, package: str) -> bool:
        """Whether an installed package of this normalized name is the framework, or holds it."""
        return re.fullmatch(self.installed, package) is not None

    def is_beside(self, package: str) -> bool:
        """Whether a package of this normalized name is a part of it, or goes with it alone."""
        return self.beside is not None and re.fullmatch(self.beside, package) is not None

    def has_gpu_code(self, package: str, version: str = "") -> bool:
        """Whether a package of this normalized name is one that only builds for GPUs have."""
        return self.gpu_packages is not None and re.match(self.gpu_packages, f"{package}=={version}") is not None

    def is_mentioned_in(self, line: str) -> bool:
        """Whether a line of a log names it."""
        return self.place_in(line) is not None

    def place_in(self, line: str) -> int | None:
        """Where a line of a log first names it."""
        found = re.search(self.mentioned, line, re.IGNORECASE)
        return None if found is None else found.start()


class DependentFramework(NamedTuple):
    """A package for one build of the framework ``on``; the README of ``data/frameworks/dependent`` explains the fields.

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

    @property
    def probe(self) -> str:
        """The module of :mod:`envsolve.validation.inside` that runs its ``kernel``."""
        return f"on_{self.name}"

    def requirement(self, versions: SpecifierSet) -> str:
        """The requirement that ``-f`` means: with the extra of older versions where ``versions`` admit these alone."""
        if self.oldest is None:
            return f"{self.name}{versions}"
        named = [it.version.removesuffix(".*") for it in versions]
        known = [self.oldest, *named, *(f"{it}.1" for it in named)]  # each range of a specifier begins at or after one
        newer = versions & SpecifierSet(f">={self.oldest}")
        if self.extra_before is not None and not any(newer.contains(it, prereleases=True) for it in known):
            return f"{self.name}[{self.extra_before}]{versions}"
        return f"{self.name}{newer}"


AnyFramework = Framework | DependentFramework


def frameworks_among(packages: Iterable[str]) -> tuple[Framework, ...]:
    """The frameworks that the installed ``packages`` (names in any spelling) are or hold."""
    names = {normalized(name) for name in packages}
    return tuple(it for it in FRAMEWORKS.values() if any(map(it.is_installed_as, names)))


def rivals_of(framework: str) -> tuple[str, ...]:
    """Packages that install the same module as ``framework``; none for one of someone's own matrix."""
    known = FRAMEWORKS.get(framework)
    return () if known is None else known.rivals


def packages_of(framework: str) -> tuple[str, ...]:
    """The packages of indexes and of conda that are ``framework``; none for one of someone's own matrix."""
    known = FRAMEWORKS.get(framework)
    return () if known is None else (*known.wheels, *known.conda_packages)


def needs_gpu(framework: str) -> bool:
    """Whether ``framework`` does nothing without a GPU, so that its builds are no way out where there is none."""
    known = FRAMEWORKS.get(framework)
    return known is not None and known.needs_gpu


def split_dependent(texts: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The frameworks that ``-f`` names, and the requirements that the dependent ones among them are.

    ``vllm==0.30.*`` is ``pytorch`` and the requirement ``vllm==0.30.*``. What cannot be read is left as it is.
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
    """The dependent framework ``name`` from its file. Raises KeyError for a required key that is missing."""
    get = document.get
    title, on, platforms = document["title"], document["on"], tuple(document["platforms"])
    extra = get("extra-before")
    return DependentFramework(name, title, on, get("oldest"), extra, platforms, get("cpu-index"), get("kernel"))


def read_framework(name: str, document: Mapping[str, Any]) -> Framework:
    """The framework ``name`` from its file. Raises KeyError for a required key that is missing."""
    wheels, conda, installed = document["wheels"], document["conda"], document["installed"]
    return Framework(
        name,
        document["order"],
        document["title"],
        document["mentioned"],
        tuple(document.get("aliases", ())),
        document.get("needs-gpu", False),
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
        table.get("checks-cudnn", False),
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
"""By the name of the package, which is that for ``-f``."""

FRAMEWORK_OF_WHEEL: Mapping[str, str] = {wheel: it.name for it in FRAMEWORKS.values() for wheel in it.wheels}
"""Packages on indexes that are a framework for GPUs, however they come into a request."""

FRAMEWORK_OF_CPU_WHEEL: Mapping[str, str] = {wheel: it.name for it in FRAMEWORKS.values() for wheel in it.cpu_wheels}
"""Packages on indexes that are a build of a framework for the CPU under a name of its own."""

ASKED_FOR_AS: Mapping[str, str] = {wheel: asked for it in FRAMEWORKS.values() for wheel, asked in it.cpu_wheels.items()}
"""The package that all others ask for, in whose place such a build stands."""

OWN_INDEX: Mapping[str, str] = {name: it.name for it in FRAMEWORKS.values() for name in it.own_index}
"""Packages of which the index of a framework's makers has a build for each CUDA."""

BUILT_WITH: Mapping[str, str] = {name: it.name for it in FRAMEWORKS.values() for name in it.built_with}
"""Those of them that refuse a build of the framework for another CUDA."""

FRAMEWORK_OF_CONDA: Mapping[str, str] = {name: it.name for it in FRAMEWORKS.values() for name in it.conda_packages}
"""Conda packages that are a framework, or that are nothing but a name for one."""


def framework_of_name(name: str) -> str | None:
    """The framework that a package of conda or of a Python index is."""
    return FRAMEWORK_OF_CONDA.get(name) or FRAMEWORK_OF_WHEEL.get(normalized(name))


def framework_of_word(word: str) -> str | None:
    """The framework that a person means by ``word``: its name, an alias, or its package on a Python index."""
    if word in DEPENDENT_FRAMEWORKS:
        return word
    return next((it.name for it in FRAMEWORKS.values() if word in (it.name, *it.aliases, it.wheels[0])), None)
