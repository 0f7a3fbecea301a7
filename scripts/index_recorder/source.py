"""The index that is recorded: its projects, and the metadata of their wheels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import DistributionPackage, NoMetadataError, NoSuchProjectError, PyPISimple

from scripts.index_recorder.recording import RecordedFile, stripped

_TIMEOUT = 60.0
PYTHONS = ("3.11.7", "3.12.7", "3.13.7")
"""The Pythons that are recorded for, as full versions: a release may ask for a patch level."""
MACHINES = ("x86_64", "aarch64", "AMD64")
"""The platforms that are recorded for, linux-64, linux-aarch64 and win-64, by their ``platform_machine``."""
_ADDRESS = re.compile(r"https?://[^\s)]+")
_PLATFORM = re.compile(r"(any)|win_(amd64)|(?:many)?linux(?:1|2010|2014|_\d+_\d+)?_(x86_64|aarch64)")
_INTERPRETER = re.compile(r"(py|cp)3(\d*)")


class Target(NamedTuple):
    """An interpreter that files are recorded for."""

    python: str
    machine: str


class Listed(NamedTuple):
    """A file on the page of a project; ``version`` is None if its name has none by the standards.

    ``targets`` are those that can install a wheel.
    """

    file: RecordedFile
    version: Version | None
    targets: frozenset[Target]
    package: DistributionPackage

    @property
    def rank(self) -> tuple[bool, bool, str]:
        """Lower for a wheel that represents its release better: linux-64 and CPython 3.11, the target of most tests."""
        machines = {target.machine for target in self.targets}
        pythons = {target.python for target in self.targets}
        return MACHINES[0] not in machines, PYTHONS[0] not in pythons, self.file.name

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel."""
        return self.file.name.endswith(".whl")


class Source:
    """A package index; each page and each metadata file is requested once."""

    def __init__(self, endpoint: str) -> None:
        self._client = PyPISimple(endpoint)
        self._pages: dict[str, list[Listed]] = {}
        self._metadata: dict[str, str | None] = {}

    def page(self, project: str) -> list[Listed]:
        """The files of the project by the normalized name, in the order of the index; none if it has no page."""
        if project not in self._pages:
            try:
                packages = self._client.get_project_page(project, timeout=_TIMEOUT).packages
            except NoSuchProjectError:
                packages = []
            self._pages[project] = [_listed(package) for package in packages if package.digests.get("sha256")]
        return self._pages[project]

    def metadata(self, listed: Listed) -> str | None:
        """The metadata of a wheel that a resolver reads; None if the index has no such file."""
        name = listed.file.name
        if name not in self._metadata:
            try:
                content = self._client.get_package_metadata_bytes(listed.package, timeout=_TIMEOUT)
            except NoMetadataError:
                self._metadata[name] = None
            else:
                self._metadata[name] = stripped(content)
        return self._metadata[name]


def _listed(package: DistributionPackage) -> Listed:
    uploaded = package.upload_time and package.upload_time.isoformat().replace("+00:00", "Z")
    yanked = _ADDRESS.sub("(link)", package.yanked_reason or "") if package.is_yanked else None
    file = RecordedFile(
        package.filename, package.digests["sha256"], package.size, package.requires_python, uploaded or None, yanked
    )
    try:
        if package.filename.endswith(".whl"):
            _, version, _, tags = parse_wheel_filename(package.filename)
            return Listed(file, version, frozenset(_targets(tags, package.requires_python)), package)
        return Listed(file, parse_sdist_filename(package.filename)[1], frozenset(), package)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return Listed(file, None, frozenset(), package)


def _targets(tags: Iterable[Tag], requires_python: str | None) -> Iterator[Target]:
    """The targets that accept a wheel; an unreadable requirement on Python is ignored."""
    try:
        allowed = SpecifierSet(requires_python or "")
    except InvalidSpecifier:
        allowed = SpecifierSet()
    pythons = [python for python in PYTHONS if allowed.contains(python)]
    for tag in tags:
        platform = _PLATFORM.fullmatch(tag.platform)
        if platform is not None:
            machines = [it for it in MACHINES if platform[1] or it.lower() in platform.groups()]
            fitting = [python for python in pythons if _runs(tag, int(python.split(".")[1]))]
            yield from (Target(python, machine) for python in fitting for machine in machines)


def _runs(tag: Tag, minor: int) -> bool:
    """Whether CPython 3 of this minor accepts the interpreter and the ABI of ``tag``."""
    match = _INTERPRETER.fullmatch(tag.interpreter)
    if match is None:
        return False
    least = int(match[2] or 0)
    if match[1] == "py" or tag.abi == "abi3":
        return least <= minor and tag.abi in {"none", "abi3"}
    return least == minor and tag.abi in {f"cp3{minor}", "none"}
