"""Wheels that are on no index, from the places in ``data/sources``.

Such a wheel is a version of its package with a label: ``2.8.3+cu12torch2.9cxx11abiTRUE``. In the search it is one more
version, and requires the CUDA and PyTorch that its label names. If an index has a wheel of the version that runs with
the stack, that one is preferred. A wheel without a label gets one for the search, which names the page that lists it
(envsolve.index.listing); in the lock it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.lock_evidence import UNREAD_PLACES
from envsolve.app.packages.lock_frameworks import python_of
from envsolve.app.packages.lock_indexes import Connection
from envsolve.app.packages.stack_in_search import StackInSearch
from envsolve.app.request.targets import glibc_of
from envsolve.boundary.display import size_text
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError
from envsolve.extension_sources import ExtensionSource, Labelled, Listing, Page, sources_for
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, FRAMEWORKS
from envsolve.index.client import Indexes
from envsolve.index.extended import Elsewhere, More
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.index.listing import published_name
from envsolve.index.one_index import file_address
from envsolve.index.page import Project, version_of
from envsolve.lockfile.options import Options
from envsolve.matrix.torch_symbols import FRAMEWORK
from envsolve.model.build_facts import BuildFacts
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.need import Need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.request import Request
from envsolve.model.solution import Problem
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.resolve import Progress

_MOST_VERSIONS = 8
"""The number of newest versions that are read from a place with a page for each version."""
_ABI_CHANGED = "2.7"
"""PyTorch's wheels for Linux have the C++11 ABI from this version on; of 2.6 only those for CUDA 12.6 (its release
notes)."""
_FIRST_WITH_ABI, _ITS_CUDA = "2.6", "12.6"


class _Wheel(NamedTuple):
    source: ExtensionSource
    page: str
    version: str
    label: Labelled
    addresses: tuple[str, ...]


class ExtensionWheels:
    """The wheels in the places of ``data/sources`` for the builds of ``stack``.

    Third parties are queried only if ``request`` allows it.
    """

    def __init__(self, stack: StackInSearch, problem: Problem, indexes: Indexes, request: Request) -> None:
        self._request = request
        self._stack, self._platform, self._indexes = stack, problem.platform, indexes
        self._ranks = Ranks(Interpreter(python_of(problem.python, None), problem.platform, glibc_of(problem)))
        self._unread: dict[str, dict[str, str]] = {}
        """The places that could not be read with the reasons, by package."""
        self._wheels: dict[str, list[_Wheel]] = {}
        self._at: dict[str, _Wheel] = {}
        """The wheels by the addresses of their files."""

    def found(self, needs: Iterable[Need]) -> list[BuildFacts]:
        """Look for wheels of the packages in ``needs`` not searched before. Returns facts about those found."""
        specifiers: dict[str, list[str]] = {}
        for need in needs:
            if not need.url and need.name not in FRAMEWORK_OF_WHEEL and need.name not in self._wheels:
                specifiers.setdefault(need.name, []).append(need.specifier)
        for name, limits in specifiers.items():
            sources = sources_for(name, self._platform.value, third_party=self._request.packages.extensions)
            if sources and self._stack.builds:
                limit = SpecifierSet(",".join(filter(None, limits)))
                self._wheels[name] = list(self._of_package(name, sources, limit))
        new = [(name, it) for name in specifiers for it in self._wheels.get(name, ())]
        self._at |= {url: it for _, it in reversed(new) for url in it.addresses}
        return [self._facts_of(name, it) for name, it in new]

    @property
    def more(self) -> More:
        """The versions for the search."""
        return {
            name: {it.version: [Elsewhere(it.page, it.version)] for it in reversed(wheels)}
            for name, wheels in self._wheels.items()
            if wheels
        }

    def existing_versions(self, pins: Iterable[Pin]) -> dict[str, str]:
        """The search versions of those of ``pins``, from an existing lock, that are in one of the places."""
        found = ((pin.name, self._at.get(pin.files[0].url)) for pin in pins if pin.index_url is None and pin.files)
        return {name: wheel.version for name, wheel in found if wheel is not None}

    def by_address(
        self, pins: Sequence[Pin], existing: Iterable[Pin], connection: Connection, progress: Progress
    ) -> Iterator[Pin]:
        """``pins`` with address, publisher and sha256 of each wheel from one of the places.

        A file is fetched if neither its place nor an ``existing`` pin has its digest, or if its place has several
        digests. Raises OutsideError.
        """
        digests = {it.files[0].url: it.files[0] for it in existing if it.index_url is None and it.files}
        for pin in pins:
            file = pin.files[0]
            wheel = None if pin.index_url is None else self._at.get(file.url)
            if wheel is None:
                yield pin
                continue
            stated = {digest for it in pin.files if it.url == file.url for digest in it.hashes if digest[0] == "sha256"}
            if len(stated) != 1:  # a file that was replaced may be listed with the digests of both
                report = partial(_report_download, progress, len(pins), file.name)
                file = digests.get(file.url) or connection.with_digest(file._replace(hashes=()), report)
                if stated and stated.isdisjoint(file.hashes):
                    message = f"{file.name} has none of the digests that {without_secrets(wheel.page)} states"
                    raise OutsideError("hash-mismatch", message, hints=(Hint("try again later"),))
            because = f"from {wheel.source.title}, published by {wheel.source.publisher}"
            yield pin._replace(files=(file,), index_url=None, because=(*pin.because, because))

    def as_published(self, pins: Iterable[Pin]) -> Iterator[Pin]:
        """``pins`` with the names and versions under which the places publish them."""
        for pin in pins:
            if pin.index_url is None and pin.files[0].url in self._at:
                file = pin.files[0]._replace(name=published_name(pin.files[0].url))
                yield pin._replace(version=published_version(pin), files=(file,))
            else:
                yield pin

    def unread(self, pins: Iterable[Pin]) -> Options:
        """The places that could not be read, as recorded in the evidence of a lock with ``pins``."""
        entries = tuple(f"{name} {', '.join(reasons)}" for name, reasons in sorted(self._missed(pins).items()))
        return ((UNREAD_PLACES, entries),) if entries else ()

    def notes(self, pins: Iterable[Pin]) -> Iterator[Note]:
        """Notes on the publishers of the wheels of ``pins`` from these places, and on places that could not be read."""
        pins = tuple(pins)
        for name, reasons in self._missed(pins).items():
            note = Note("extension-source-unread", _unread_text(name, reasons))
            yield note.about(name=name, sources=", ".join(reasons))
        for pin in pins:
            source = self.source_of(pin)
            if source is not None:
                own = "the project itself" if source.is_official else source.publisher
                text = f"{pin.name} {published_version(pin)} is from {source.title}, published by {own}"
                yield Note("extension-source", text).about(name=pin.name, source=source.id, publisher=source.publisher)

    def source_of(self, pin: Pin) -> ExtensionSource | None:
        """The place of the wheel of ``pin``; None if it is from an index."""
        wheel = None if pin.index_url is None else self._at.get(pin.files[0].url)
        return None if wheel is None else wheel.source

    def behind_refusal(self) -> Iterator[str]:
        """The places that could not be read, for packages whose newest version has no wheel on an index."""
        for name, reasons in self._unread.items():
            project = self._indexes.project(name)
            newest = project.files(len(project.versions) - 1) if project is not None and project.versions else ()
            if not any(it[0].endswith(".whl") for it in newest):
                yield _unread_text(name, reasons)

    def _missed(self, pins: Iterable[Pin]) -> dict[str, dict[str, str]]:
        """The places that could not be read, without those of packages that have a wheel from an index in ``pins``."""
        wheels = (it for it in pins if it.index_url is not None and it.files[0].is_wheel)
        from_index = {it.name for it in wheels if it.files[0].url not in self._at}
        return {name: reasons for name, reasons in self._unread.items() if name not in from_index}

    def _of_package(self, name: str, sources: Sequence[ExtensionSource], limit: SpecifierSet) -> Iterator[_Wheel]:
        """The wheels of ``name`` that no index has. Of similar wheels only the one from the first place."""
        at_index = self._indexes.project(name)
        versions = () if at_index is None else tuple(it for it in at_index.versions if limit.contains(it))
        covered: set[tuple[str, ...]] = set()
        for source in sources:
            listing = source.listing_for(name)
            assert listing is not None
            of_source: set[tuple[str, ...]] = set()
            for page, project in self._pages(name, source, listing, versions[::-1][:_MOST_VERSIONS]):
                made_up = source.label_on(page, name)
                for position, version in enumerate(project.versions):
                    public, _, text = version.partition("+")
                    label = source.read_label(name, "" if text == made_up else text, page)
                    if (
                        label is None
                        or not limit.contains(version, prereleases=True)
                        or not self._goes(label.cuda, label.torch)
                    ):
                        continue
                    if at_index is not None and self._runs_from(at_index, name, public):
                        continue
                    files = project.files(position)
                    kinds = {(public, *_kind_of(label), tag) for it in files for tag in self._tags(it[0])}
                    if kinds and not kinds <= covered:
                        of_source |= kinds
                        addresses = tuple(without_secrets(file_address(project, it)) for it in files)
                        yield _Wheel(source, page.url, version, label, addresses)
            covered |= of_source

    def _pages(
        self, name: str, source: ExtensionSource, listing: Listing, versions: Sequence[str]
    ) -> Iterator[tuple[Page, Project]]:
        for page in listing.pages(name, self._goes, versions):
            labels = partial(source.label_on, page)
            try:
                project = self._indexes.pool.listing(page.url, listing, labels).project(name)
            except OutsideError as error:
                self._unread.setdefault(name, {})[source.title] = error.message
                return
            if project is not None:
                yield page, project

    def _goes(self, cuda: str, torch: str) -> bool:
        """Whether a build of the stack fits wheels for ``cuda`` and a minor of PyTorch; each is "" for any."""
        for framework, rows in self._stack.builds.items():
            for row in rows:
                is_torch = not torch or (framework == FRAMEWORK and f"{row.version}.".startswith(f"{torch}."))
                if row.cuda is not None and is_torch and _cuda_for(cuda).contains(str(row.cuda)):
                    return True
        return False

    def _runs_from(self, project: Project, name: str, version: str) -> bool:
        """Whether an index has a wheel of ``version`` for the platform that runs with a build of the stack."""
        known = list(map(parsed_version, project.versions))
        wanted = parsed_version(version)
        files = project.files(known.index(wanted)) if wanted in known else ()
        has_wheel = any(self._ranks.fits_another_python(it[0]) for it in files if it[0].endswith(".whl"))
        return has_wheel and self._stack.runs_beside_a_build(name, version)

    def _tags(self, wheel: str) -> list[str]:
        """The Python tags of a wheel for the platform; none if it is for another platform."""
        is_for_it = wheel.endswith(".whl") and self._ranks.fits_another_python(wheel)
        return wheel.split("-")[-3].split(".") if is_for_it else []

    def _facts_of(self, name: str, wheel: _Wheel) -> BuildFacts:
        label = wheel.label
        cuda = _cuda_for(label.cuda)
        torch = f"=={label.torch}.*" if label.torch else f">={label.torch_min}" if label.torch_min else ""
        if label.abi and self._platform is Platform.LINUX_64:
            has_abi = label.abi == "TRUE"
            bound = f">={_FIRST_WITH_ABI}" if has_abi else f"<{_ABI_CHANGED}"
            if not (label.torch and SpecifierSet(bound).contains(label.torch)):
                torch = ",".join(filter(None, (torch, bound)))
            if label.torch == _FIRST_WITH_ABI:
                cuda &= SpecifierSet(f">={_ITS_CUDA}" if has_abi else f"<{_ITS_CUDA}")
        requires = (Need(FRAMEWORKS[FRAMEWORK].wheels[0], (), torch, ""),) if torch else ()
        evidence = Evidence(EvidenceKind.FILE_NAME, without_secrets(wheel.page), "")
        exactly = SpecifierSet(f"=={wheel.version}")
        built_with = label.cuda if "." in label.cuda else f"{label.cuda}.99"  # the newest of a major has all code
        code = self._stack.code_of(name, wheel.version.partition("+")[0], built_with) if cuda else None
        return BuildFacts(name, exactly, cuda, requires, (), "", (evidence,), code=code, platforms=(self._platform,))


def _cuda_for(cuda: str) -> SpecifierSet:
    """The CUDA versions that a wheel runs with: the one it was built with, or newer ones of the same major version.

    All if the wheel names none.
    """
    major, _, minor = cuda.partition(".")
    return SpecifierSet(f">={cuda},<{int(major) + 1}" if minor else f"=={major}.*" if major else "")


def _report_download(progress: Progress, packages: int, name: str, done: int, size: int) -> None:
    progress(packages, f"{size_text(done)} of {size_text(size)} downloaded for the sha256 of {name}")


def _unread_text(name: str, reasons: Mapping[str, str]) -> str:
    text = f"could not read {', '.join(reasons)}: wheels of {name} there were not considered"
    return f"{text} ({next(iter(reasons.values()))})"


def published_version(pin: Pin) -> str:
    """The version under which the wheel of ``pin`` is published, without a label made up for the search."""
    return version_of(pin.name, published_name(pin.files[0].url)) or pin.version


def _kind_of(label: Labelled) -> tuple[str, str]:
    return label.cuda.partition(".")[0], label.torch or label.torch_min
