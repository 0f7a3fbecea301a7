"""Wheels of packages whose wheels are on no index, from the places in ``data/sources``.

A wheel there is a version of its package with a label: ``2.8.3+cu12torch2.9cxx11abiTRUE``. In the search it is one more
version, and what its label says, the CUDA and the PyTorch that it was built for, is required of the stack. A version
that an index has a wheel of that runs beside the stack is taken from the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.lock_frameworks import python_of
from envsolve.app.lock_indexes import Lines
from envsolve.app.stack_in_search import StackInSearch
from envsolve.app.targets import glibc_of
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import OutsideError
from envsolve.extension_sources import ExtensionSource, Labelled, Listing, sources_for
from envsolve.frameworks import FRAMEWORKS
from envsolve.index.client import Indexes
from envsolve.index.extended import Elsewhere, More
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.index.page import Project
from envsolve.matrix.torch_symbols import FRAMEWORK
from envsolve.model.build_facts import BuildFacts
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.need import Need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.reference import parse_reference
from envsolve.model.request import Request
from envsolve.model.solution import Problem
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.resolve import Progress

_MOST_VERSIONS = 8
"""Of a place with a page for each version, this many of the newest are read."""
_ABI_CHANGED = "2.7"
"""PyTorch's wheels for Linux have the C++11 ABI from here on; of 2.6 those for CUDA 12.6 (its release notes)."""
_FIRST_WITH_ABI, _ITS_CUDA = "2.6", "12.6"


class _Wheel(NamedTuple):
    source: ExtensionSource
    page: str
    version: str
    said: Labelled


class ExtensionWheels:
    """What the places in ``data/sources`` have of the packages that ``needs`` name, for the builds of ``stack``.

    Third parties are asked only if the ``request`` allows it.
    """

    def __init__(
        self, needs: Iterable[Need], stack: StackInSearch, problem: Problem, indexes: Indexes, request: Request
    ) -> None:
        self._stack, self._platform, self._indexes = stack, problem.platform, indexes
        self._ranks = Ranks(Interpreter(python_of(problem.python, None), problem.platform, glibc_of(problem)))
        self._unread: dict[str, dict[str, str]] = {}
        """By package the places that could not be read, each with the reason."""
        self._wheels: dict[str, list[_Wheel]] = {}
        specifiers: dict[str, list[str]] = {}
        for need in needs:
            if not need.url:
                specifiers.setdefault(need.name, []).append(need.specifier)
        for name, limits in specifiers.items():
            sources = sources_for(name, self._platform.value, third_party=request.packages.extensions)
            if sources:
                limit = SpecifierSet(",".join(filter(None, limits)))
                self._wheels[name] = list(self._of_package(name, sources, limit))

    @property
    def more(self) -> More:
        """The versions in the search."""
        return {
            name: {it.version: [Elsewhere(it.page, it.version)] for it in reversed(wheels)}
            for name, wheels in self._wheels.items()
            if wheels
        }

    @property
    def facts(self) -> Iterator[BuildFacts]:
        """What the labels say."""
        for name, wheels in self._wheels.items():
            for it in wheels:
                yield self._facts_of(name, it)

    def by_address(
        self, pins: Sequence[Pin], held: Iterable[Pin], lines: Lines, progress: Progress | None
    ) -> Iterator[Pin]:
        """``pins`` with the address, the publisher and the sha256 of each wheel from one of the places.

        A file is fetched if neither its place states its digest nor one of the pins that are ``held``. Raises
        OutsideError.
        """
        digests = {it.files[0].url: it.files[0] for it in held if it.index_url is None and it.files}
        sources = {without_secrets(it.page).rstrip("/"): it.source for of in self._wheels.values() for it in of}
        for pin in pins:
            source = sources.get(pin.index_url or "")
            if source is None:
                yield pin
                continue
            file = pin.files[0]
            if "sha256" not in dict(file.hashes):
                known = digests.get(file.url)
                if known is None and progress is not None:
                    progress(len(pins), f"downloading {file.name} for its sha256")
                file = known or lines.direct.read(pin.name, parse_reference(file.url)).file
            because = f"from {source.title}, published by {source.publisher}"
            yield pin._replace(files=(file,), index_url=None, because=(*pin.because, because))

    def notes(self, pins: Iterable[Pin]) -> Iterator[Note]:
        """Who publishes the wheels of ``pins`` from one of the places, and which places could not be read."""
        for name, reasons in self._unread.items():
            text = f"could not read {', '.join(reasons)}: wheels of {name} there were not considered"
            note = Note("extension-source-unread", f"{text} ({next(iter(reasons.values()))})")
            yield note.about(name=name, sources=", ".join(reasons))
        for pin in pins:
            source = self.source_of(pin)
            if source is not None:
                own = "the project itself" if source.is_official else source.publisher
                text = f"{pin.name} {pin.version} is from {source.title}, published by {own}"
                yield Note("extension-source", text).about(name=pin.name, source=source.id, publisher=source.publisher)

    def source_of(self, pin: Pin) -> ExtensionSource | None:
        """The place that ``pin`` is from; None where it is from an index."""
        return next((it.source for it in self._wheels.get(pin.name, ()) if it.version == pin.version), None)

    def _of_package(self, name: str, sources: Sequence[ExtensionSource], limit: SpecifierSet) -> Iterator[_Wheel]:
        """The wheels of ``name``; of those alike the one of the first place, and none that an index has as well."""
        at_index = self._indexes.project(name)
        versions = () if at_index is None else tuple(it for it in at_index.versions if limit.contains(it))
        covered: set[tuple[str, ...]] = set()
        for source in sources:
            listing = source.listing_for(name)
            assert listing is not None
            of_source: set[tuple[str, ...]] = set()
            for page, project in self._pages(name, source, listing, versions[::-1][:_MOST_VERSIONS]):
                for position, version in enumerate(project.versions):
                    public, _, label = version.partition("+")
                    said = source.said_by(name, label)
                    if (
                        said is None
                        or not limit.contains(version, prereleases=True)
                        or not self._goes(said.cuda, said.torch)
                    ):
                        continue
                    if at_index is not None and self._runs_from(at_index, name, public):
                        continue
                    kinds = {
                        (public, *_kind_of(said), tag) for it in project.files(position) for tag in self._tags(it[0])
                    }
                    if kinds and not kinds <= covered:
                        of_source |= kinds
                        yield _Wheel(source, page, version, said)
            covered |= of_source

    def _pages(
        self, name: str, source: ExtensionSource, listing: Listing, versions: Sequence[str]
    ) -> Iterator[tuple[str, Project]]:
        for url in listing.addresses(name, self._goes, versions):
            try:
                project = self._indexes.pool.listing(url, listing).project(name)
            except OutsideError as error:
                self._unread.setdefault(name, {})[source.title] = error.message
                return
            if project is not None:
                yield url, project

    def _goes(self, cuda: str, torch: str) -> bool:
        """Whether a build of the stack goes with wheels for ``cuda`` and a minor of PyTorch, each "" for any."""
        for framework, rows in self._stack.builds.items():
            for row in rows:
                is_torch = not torch or (framework == FRAMEWORK and ".".join(str(row.version).split(".")[:2]) == torch)
                if row.cuda is not None and is_torch and (not cuda or _cuda_for(cuda).contains(str(row.cuda))):
                    return True
        return False

    def _runs_from(self, project: Project, name: str, version: str) -> bool:
        """Whether an index has a wheel of ``version`` for the platform that goes with a build of the stack."""
        known = list(map(parsed_version, project.versions))
        wanted = parsed_version(version)
        files = project.files(known.index(wanted)) if wanted in known else ()
        has_wheel = any(self._ranks.may_be_had(it[0]) for it in files if it[0].endswith(".whl"))
        return has_wheel and self._stack.runs_beside_a_build(name, version)

    def _tags(self, wheel: str) -> list[str]:
        """The Pythons of a wheel for the platform; none where it is for another."""
        is_for_it = wheel.endswith(".whl") and self._ranks.may_be_had(wheel)
        return wheel.split("-")[-3].split(".") if is_for_it else []

    def _facts_of(self, name: str, wheel: _Wheel) -> BuildFacts:
        said = wheel.said
        cuda = _cuda_for(said.cuda)
        torch = f"=={said.torch}.*" if said.torch else f">={said.torch_min}" if said.torch_min else ""
        if said.abi and self._platform is Platform.LINUX_64:
            has_abi = said.abi == "TRUE"
            bound = f">={_FIRST_WITH_ABI}" if has_abi else f"<{_ABI_CHANGED}"
            if not (said.torch and SpecifierSet(bound).contains(said.torch)):
                torch = ",".join(filter(None, (torch, bound)))
            if said.torch == _FIRST_WITH_ABI:
                cuda &= SpecifierSet(f">={_ITS_CUDA}" if has_abi else f"<{_ITS_CUDA}")
        requires = (Need(FRAMEWORKS[FRAMEWORK].wheels[0], (), torch, ""),) if torch else ()
        evidence = Evidence(EvidenceKind.FILE_NAME, without_secrets(wheel.page), "")
        exactly = SpecifierSet(f"=={wheel.version}")
        built_with = said.cuda if "." in said.cuda else f"{said.cuda}.99"  # the newest of a major has all code
        code = self._stack.code_of(name, wheel.version.partition("+")[0], built_with)
        return BuildFacts(name, exactly, cuda, requires, (), "", (evidence,), code=code, platforms=(self._platform,))


def _cuda_for(cuda: str) -> SpecifierSet:
    """The CUDA of a stack that a wheel runs with: a newer one of the same major has what it was built with."""
    major, _, minor = cuda.partition(".")
    return SpecifierSet(f">={cuda},<{int(major) + 1}" if minor else f"=={major}.*")


def _kind_of(said: Labelled) -> tuple[str, str]:
    return said.cuda.partition(".")[0], said.torch or said.torch_min
