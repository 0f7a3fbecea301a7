"""A case: what was seen in a text, and what is known of the machine and the environment that it is about.

What the command line says counts before what the text says, and that before what was found on this machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from envsolve.diagnose.knowledge import Knowledge
from envsolve.diagnose.quoted import said
from envsolve.findings.catalogue import shipped
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORKS, DependentFramework, frameworks_among
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Host, Platform
from envsolve.model.release import Release
from envsolve.model.versions import CudaVersion, DriverVersion, parsed_cuda

TITLES = {name: it.title for name, it in FRAMEWORKS.items()}
"""How the makers of each framework write its name."""


class Clue(NamedTuple):
    """Something that a text says in passing: its value, and the line that says it with its number."""

    value: str
    line: str
    number: int


class Sighting(NamedTuple):
    """A symptom in a text: the named groups of its pattern, and the line with its number."""

    symptom: str
    fields: Mapping[str, str]
    line: str
    number: int

    def get(self, field: str) -> str | None:
        """A named group; None if it took no part."""
        return self.fields.get(field) or None


Lines = tuple[Sighting, ...]
"""The sightings that a rule judges together."""


def merged(sightings: Iterable[Sighting]) -> dict[str, str]:
    """The fields of all sightings; where several have one, the first counts."""
    return {name: value for it in reversed(tuple(sightings)) for name, value in it.fields.items()}


class Given(NamedTuple):
    """What the command line says of machine and environment; None and () where it says nothing.

    ``packages`` are installed ones by normalized name, ``""`` for an unknown version. ``host`` is this machine
    or the one of a host file.
    """

    host: Host | None = None
    gpus: tuple[str, ...] = ()
    capabilities: tuple[ComputeCapability, ...] = ()
    driver: DriverVersion | None = None
    platform: Platform | None = None
    python: str | None = None
    built_cuda: str | None = None
    toolkit: str | None = None
    packages: Mapping[str, str] = {}
    prefix: str | None = None


class Case:
    """What is known. A property is None or empty if nothing is known of it; nothing is assumed."""

    def __init__(
        self,
        sightings: tuple[Sighting, ...],
        clues: Mapping[str, tuple[Clue, ...]],
        given: Given,
        knowledge: Knowledge,
    ) -> None:
        self.sightings = tuple(_in_words(said(sightings, {clue.number for clue in clues.get("frame", ())})))
        self.clues = clues
        self.given = given
        self.knowledge = knowledge

    def of(self, *symptoms: str) -> tuple[Sighting, ...]:
        """The sightings of ``symptoms``, in the order of the text."""
        return tuple(it for it in self.sightings if it.symptom in symptoms)

    def saw(self, *symptoms: str) -> bool:
        """Whether one of ``symptoms`` is in the text."""
        return any(it.symptom in symptoms for it in self.sightings)

    def clue(self, name: str) -> str | None:
        """The value of the first clue of that name."""
        found = self.clues.get(name, ())
        return found[0].value if found else None

    def every(self, name: str) -> tuple[str, ...]:
        """The values of all clues of that name, each once."""
        return tuple(dict.fromkeys(clue.value for clue in self.clues.get(name, ())))

    # the environment

    @cached_property
    def packages(self) -> Mapping[str, str]:
        """Installed packages by normalized name, with their versions, ``""`` where only the name is known."""
        from envsolve.diagnose.packages import packages_in

        return {**packages_in(self.clues), **self.given.packages}

    @cached_property
    def frameworks(self) -> tuple[str, ...]:
        """The frameworks that it is about, by envsolve's names, the most likely first.

        What is given chooses among those that the text names, and decides where the text names none; what failed by
        the text's own words stays with the framework that they name.
        """
        from envsolve.diagnose.packages import frameworks_in, packages_in

        found = frameworks_in(self)
        given = [it.name for it in frameworks_among(self.given.packages)]
        lines = [it.line for it in self.sightings]
        failed = [it for it in found if any(FRAMEWORKS[it].is_mentioned_in(line) for line in lines)]
        names = [*packages_in(self.clues), *self.every("framework")]
        named = [*failed, *(it for it in found if any(FRAMEWORKS[it].is_mentioned_in(text) for text in names))]
        first = [it for it in given if it in failed] or [it for it in given if it in named] or failed
        return tuple(dict.fromkeys((*first, *found)))

    @property
    def framework(self) -> str | None:
        """The framework that it is most likely about."""
        return self.frameworks[0] if self.frameworks else None

    @property
    def mentioned(self) -> str | None:
        """The framework of the case; for want of one, the first that the text mentions in any line."""
        texts = self.every("gpu_name")
        passing = (it.name for it in FRAMEWORKS.values() if any(map(it.is_mentioned_in, texts)))
        return self.framework or next(passing, None)

    @cached_property
    def dependent(self) -> DependentFramework | None:
        """The package that requires one build of the framework, so that another build breaks it; given, or named."""
        found = (it for name, it in DEPENDENT_FRAMEWORKS.items() if name in self.given.packages)
        named = map(str.casefold, self.every("dependent"))
        it = next(found, None) or next((DEPENDENT_FRAMEWORKS[name] for name in named), None)
        if it is None or self.framework not in (None, it.on):
            return None
        return it if self.platform is None or self.platform.value in it.platforms else None

    def version_of(self, framework: str | None) -> str | None:
        """The version of a framework as the text has it, local part included: ``2.1.0+cu118``."""
        from envsolve.diagnose.packages import version_in

        return version_in(self, framework) if framework else None

    def releases(self, framework: str | None = None) -> tuple[Release, ...]:
        """The builds of the matrix that the framework's version may be, by version, build and platform."""
        name = framework or self.framework
        version = self.version_of(name)
        if name is None or version is None:
            return ()
        return self.knowledge.releases(name, version, self.platform)

    @cached_property
    def built_cuda(self) -> CudaVersion | None:
        """The CUDA that the framework of the case was built with."""
        return self.cuda_of(self.framework)

    def cuda_of(self, framework: str | None) -> CudaVersion | None:
        """The CUDA that ``framework`` was built with: by the text, its local version, or all its builds."""
        given = self.given.built_cuda if framework == self.framework else None
        built = self._built_cuda_in_text(framework) or given
        if built is not None and (version := parsed_cuda(built)) is not None:
            return version
        local = (self.version_of(framework) or "").partition("+")[2]
        if local.startswith("cu") and local[2:].isdecimal():
            return CudaVersion(int(local[2:-1]), int(local[-1]))
        releases = [it for it in self.releases(framework) if it.cuda is not None] if framework else []
        if self.clue("conda") is None:
            releases = [it for it in releases if it.source.is_wheel] or releases
        found = {it.cuda for it in releases}
        tags = {parsed_cuda(f"{it[:-1]}.{it[-1]}") for it in self.every("cuda_tag")}
        if len(tags) == 1 and (not found or tags < found):
            found = tags
        return found.pop() if len(found) == 1 else None

    def _built_cuda_in_text(self, framework: str | None) -> str | None:
        """The CUDA that a framework was built with by the text, without what it says of another framework."""
        for clue in self.clues.get("built_cuda", ()):
            named = [it.name for it in FRAMEWORKS.values() if it.is_mentioned_in(clue.line)]
            if framework is None or not named or framework in named:
                return clue.value
        return None

    @cached_property
    def toolkit(self) -> CudaVersion | None:
        """A CUDA toolkit that is installed on the machine."""
        return parsed_cuda(self.given.toolkit or self.clue("toolkit"))

    @property
    def cudnn(self) -> str | None:
        """The cuDNN that is installed, as the text says."""
        return self.clue("cudnn")

    @cached_property
    def python(self) -> str | None:
        """The version of Python."""
        return self.given.python or self.clue("python")

    # the machine

    @cached_property
    def driver(self) -> DriverVersion | None:
        """The version of the NVIDIA driver."""
        if self.given.driver is not None:
            return self.given.driver
        for text in self.every("driver"):
            try:
                return DriverVersion.parse(text)
            except ValueError:
                continue
        return self.given.host.driver if self.given.host is not None else None

    @cached_property
    def driver_cuda(self) -> CudaVersion | None:
        """The newest CUDA that the driver supports in full: as the text says, or by its branch."""
        found = self.clue("driver_cuda")
        if found is not None and (version := parsed_cuda(found)) is not None:
            return version
        return self.knowledge.cuda_of(self.driver) if self.driver is not None else None

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Product names of the GPUs; of one name within another only the longer."""
        names = (*self.given.gpus, *self.every("gpu"))
        found = tuple(it for it in names if not any(it != other and it in other for other in names))
        if not found and self.given.host is not None:
            found = tuple(it.name for it in self.given.host.gpus if it.name)
        return found

    @cached_property
    def capabilities(self) -> tuple[ComputeCapability, ...]:
        """Compute capabilities of the GPUs: given, as numbers, or by their names where these have only one."""
        if self.given.capabilities:
            return self.given.capabilities
        numbers = list(_capabilities(self.every("capability")))
        named = [it for it in map(self.knowledge.capability_of, self.gpus) if it is not None]
        host = () if self.given.host is None or numbers or named else self.given.host.capabilities
        return tuple(dict.fromkeys((*numbers, *named, *host)))

    @property
    def capability(self) -> ComputeCapability | None:
        """The compute capability, of several GPUs the first."""
        return self.capabilities[0] if self.capabilities else None

    @cached_property
    def platform(self) -> Platform | None:
        """The platform: given, by name, or by what only one of them has, which counts before what is given."""
        if self.given.platform is not None:
            return self.given.platform if self.linux_library is None else self._linux
        for text in self.every("platform"):
            found = _PLATFORMS.get(text.casefold())
            if found is not None:
                return found
        if self.clue("macos") is not None:
            return Platform.OSX_ARM64 if self.clue("apple") is not None else Platform.OSX_64
        in_words = self.clue("windows_in_words") is not None and self.clue("linux") is None
        if not self.wsl and (self.clue("windows") is not None or in_words):
            return Platform.WIN_64
        if self.clue("linux") is not None or self.wsl:
            return self._linux
        return self.given.host.platform if self.given.host is not None else None

    @property
    def _linux(self) -> Platform:
        return Platform.LINUX_AARCH64 if self.clue("aarch64") is not None else Platform.LINUX_64

    @cached_property
    def linux_library(self) -> str | None:
        """A missing library of Linux where another platform is given, for which no build needs it.

        bitsandbytes looks for libcudart.so on Windows, too.
        """
        if self.given.platform is None or self.given.platform in _LINUX:
            return None
        missed = (it.get("library") or "" for it in self.of("library-missing") if "bitsandbytes" not in it.line)
        return next((it for it in missed if _OF_LINUX.search(it)), None)

    @property
    def windows(self) -> bool:
        """Whether it happened on native Windows."""
        return self.platform is Platform.WIN_64

    @cached_property
    def wsl(self) -> bool:
        """Whether it happened inside WSL."""
        return self.clue("wsl") is not None or (self.given.host is not None and self.given.host.wsl)

    @property
    def container(self) -> bool:
        """Whether it happened in a container."""
        return self.clue("container") is not None

    @property
    def jetson(self) -> bool:
        """Whether it happened on a Jetson module."""
        return self.clue("jetson") is not None

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """What sentences may mention, by the names of fields."""
        known: dict[str, object | None] = {
            **(self.fields_of(self.framework) if self.framework else {"built_cuda": self.built_cuda}),
            "toolkit": self.toolkit,
            "cudnn": self.cudnn,
            "python": self.python,
            "driver": self.driver,
            "driver_cuda": self.driver_cuda,
            "gpu": self.gpus[0] if self.gpus else None,
            "capability": self.capability,
            "platform": self.platform,
        }
        return {key: str(value) for key, value in known.items() if value is not None}

    def fields_of(self, framework: str) -> dict[str, str]:
        """Fields on ``framework`` for a cause that is about it, whichever the case is about; ``""`` is unknown."""
        cuda = self.cuda_of(framework)
        return {
            "framework": TITLES.get(framework, framework),
            "name": framework,
            "version": self.version_of(framework) or "",
            "built_cuda": "" if cuda is None else str(cuda),
        }


def _in_words(sightings: Iterable[Sighting]) -> Iterator[Sighting]:
    """``sightings``; an error by its number becomes the symptom that it means, unless words in the text name that."""
    seen = tuple(sightings)
    words = {it.symptom for it in seen}
    for it in seen:
        number = (it.get("number") or "").lstrip("0") if it.symptom == "cuda-error-number" else ""
        symptom = shipped().error_symptoms.get(number)
        if symptom is None or symptom in words:
            yield it
        else:
            yield it._replace(symptom=symptom, fields={"error_number": number})


_LINUX = (Platform.LINUX_64, Platform.LINUX_AARCH64)
_OF_LINUX = re.compile(r"\.so(?:\.\d+)*$")
_PLATFORMS = {it.value: it for it in Platform}


def _capabilities(texts: tuple[str, ...]) -> Iterator[ComputeCapability]:
    for text in texts:
        try:
            yield ComputeCapability.parse(text)
        except ValueError:
            continue
