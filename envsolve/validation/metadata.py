"""The metadata of installed distributions: their names, requirements and installers, and their files in RECORD.

Nothing in it is trusted: a path may lead outside of the environment, a line may be truncated, a file may be huge. Only
the head of a METADATA file is read; the description below it may be megabytes long.
"""

from __future__ import annotations

import csv
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.boundary.display import short_line
from envsolve.boundary.files import FileError, decoded, json_value, read_bytes, read_head
from envsolve.boundary.reading import bytes_of, is_directory, is_file, names_of, text_of
from envsolve.frameworks import FRAMEWORKS, Framework
from envsolve.model.names import is_name, normalized
from envsolve.model.need import Markers, Need, parse_need

if TYPE_CHECKING:
    from packaging.direct_url import DirectUrl

LONGEST = 16 * 1024 * 1024
"""Limit in bytes for a RECORD. That of TensorFlow, with 13,000 files, has 2 MB."""
_SHA256 = "sha256="
_HEAD = 256 * 1024
"""Bytes of a METADATA file that are read. The longest head on PyPI, with a thousand requirements, has 70 KB."""
_FOLDER = re.compile(r"(?P<name>[^~-][^-]*)-(?P<version>[^-]+?)(?:-py[\d.]+)?\.(?P<kind>dist|egg)-info\Z")
LIBRARY = re.compile(r"\.so(?:\.\d+)*\Z|\.dll\Z|\.pyd\Z", re.IGNORECASE)
"""The suffixes of libraries."""
_CUDA_SUFFIX = re.compile(r"-cu\d+$")
DIRECT_URL = "direct_url.json"
_BLANK_LINE = re.compile(rb"\r?\n[ \t]*\r?\n")
_ONE_LINE = ("name", "version", "requires-dist")
"""Fields that end up in locks and messages."""
_ENDLESS = re.compile(r"(?<![0-9])[0-9]{1000}")
"""A number that Python refuses to parse, or nearly."""
_OF_CONDA = ("conda", "conda-build")
"""INSTALLER in conda's packages."""


class Row(NamedTuple):
    """One file: its path in the directory of modules, its sha256 in URL-safe base64, its size in bytes."""

    path: str
    sha256: str | None
    size: int | None


def read_record(folder: Path) -> tuple[Row, ...] | None:
    """The rows of the RECORD in a .dist-info ``folder`` with paths inside its directory; None if there is none."""
    content = bytes_of(folder / "RECORD", LONGEST)
    return None if content is None else tuple(_rows(content.decode("utf-8", "surrogateescape")))


def record_fault(folder: Path) -> str:
    """Why the RECORD in ``folder`` is malformed; "" if it is not, or if there is none."""
    try:
        content = read_bytes(folder / "RECORD", LONGEST)
        text = "" if content is None else decoded(content)
    except FileError as error:
        return error.reason
    if "\0" in text:
        return "it has a NUL character"
    try:
        for _ in csv.reader(text.splitlines()):
            pass
    except csv.Error as error:
        return f"it is no table of files: {error}"
    return ""


def _rows(text: str) -> Iterator[Row]:
    rows = csv.reader(text.splitlines())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:  # an unterminated field, or a NUL
            continue
        if row and _stays_below(row[0]):
            digest = row[1] if len(row) > 1 else ""
            size = row[2] if len(row) > 2 else ""  # noqa: PLR2004 - the third field
            sha256 = digest.removeprefix(_SHA256) if digest.startswith(_SHA256) else None
            yield Row(os.path.normpath(row[0]), sha256, int(size) if size.isascii() and size.isdecimal() else None)


def _stays_below(path: str) -> bool:
    """Whether the file is in the directory of modules. Scripts are not, and do not matter here."""
    return bool(path) and "\0" not in path and not os.path.isabs(path) and not os.path.normpath(path).startswith("..")  # noqa: PTH117


class Package(NamedTuple):
    """An installed distribution: normalized name, version, and the folder of its metadata.

    ``requires`` are requirements as written. ``described`` says whether its metadata has a name and a version.
    ``fault`` names a malformed metadata file with the reason.
    """

    name: str
    version: str
    folder: Path
    installer: str | None
    requires: tuple[str, ...]
    editable: bool
    described: bool
    fault: tuple[Path, str] | None = None

    @property
    def location(self) -> Path:
        """The directory of modules."""
        return self.folder.parent

    @property
    def is_wheel(self) -> bool:
        """Whether it was installed from a wheel, with a RECORD."""
        return self.folder.suffix == ".dist-info"

    @property
    def is_of_conda(self) -> bool:
        """Whether conda installed it. A system's package manager leaves no INSTALLER, or its own name."""
        return self.installer in _OF_CONDA

    @property
    def label(self) -> str:
        """Its name in sentences."""
        return f"{self.name} {self.version}"

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts of findings about it."""
        return {"package": self.name, "version": self.version}

    @property
    def needs(self) -> Iterator[Need]:
        """Its requirements, except invalid ones."""
        for text in self.requires:
            with suppress(ValueError):
                yield parse_need(text)


def applies(need: Need, extras: Iterable[str], markers: Markers) -> bool:
    """Whether a requirement of a package with ``extras`` applies; one with an invalid marker does not."""
    with suppress(ValueError):
        return any(markers.holds(need.marker, extra) for extra in extras)
    return False


def required_extras(packages: Iterable[Package], markers: Markers) -> dict[str, set[str]]:
    """The extras of each package that the others require, and "" for its requirements without an extra.

    The extras that a user requested are recorded nowhere.
    """
    needs = {package.name: tuple(package.needs) for package in packages}
    extras = {name: {""} for name in needs}
    waiting = list(needs)
    while waiting:
        name = waiting.pop()
        for need in needs[name]:
            known = extras.get(need.name)
            if known is not None and not known.issuperset(need.extras) and applies(need, extras[name], markers):
                known.update(need.extras)
                waiting.append(need.name)
    return extras


Claim = tuple[Package, Row]
"""A package, and a row of its RECORD."""


class Packages:
    """The distributions in the directories of a search path, in order."""

    def __init__(self, search_path: Iterable[Path]) -> None:
        self._search_path = tuple(dict.fromkeys(search_path))
        self._records: dict[Path, tuple[Row, ...] | None] = {}

    @cached_property
    def every(self) -> tuple[Package, ...]:
        """All distributions, including those that another one of the same name hides."""
        return tuple(package for directory in self._search_path for package in _packages(directory))

    @cached_property
    def by_name(self) -> Mapping[str, Package]:
        """The first distribution of each name, which is the one that counts."""
        found: dict[str, Package] = {}
        for package in self.every:
            found.setdefault(package.name, package)
        return found

    @cached_property
    def together(self) -> Mapping[tuple[Path, str], tuple[Package, ...]]:
        """The distributions with the same directory and name."""
        found: dict[tuple[Path, str], list[Package]] = defaultdict(list)
        for package in self.every:
            found[package.location, package.name].append(package)
        return {key: tuple(packages) for key, packages in found.items()}

    @cached_property
    def claims(self) -> Mapping[tuple[Path, str], tuple[Claim, ...]]:
        """The files that several packages of different names claim."""
        found: dict[tuple[Path, str], list[Claim]] = defaultdict(list)
        for package in self.every:
            for row in () if package.is_of_conda else self.record(package) or ():
                found[package.location, row.path].append((package, row))
        several = ((key, claims) for key, claims in found.items() if len(claims) > 1)
        return {key: tuple(claims) for key, claims in several if len({package.name for package, _ in claims}) > 1}

    @cached_property
    def known_pairs(self) -> tuple[tuple[tuple[Package, ...], str, tuple[str, ...]], ...]:
        """Packages of one framework or NVIDIA library with the same files: the packages, what they are, the files."""
        return (*self._of_one_module(), *self._of_one_library())

    def get(self, *names: str) -> Package | None:
        """The first installed one of ``names``."""
        return next((self.by_name[name] for name in names if name in self.by_name), None)

    def requirers(self, name: str) -> tuple[str, ...]:
        """The packages that require ``name`` without any extra."""
        return tuple(
            it.name
            for it in self.by_name.values()
            if any(need.name == name and not need.for_extra for need in it.needs)
        )

    def cpu_dependency(self, framework: Framework) -> tuple[str, tuple[str, ...]] | None:
        """The package for CPUs that the framework is installed as, and the packages that require it by that name.

        None if it is installed as a package that also has GPU builds, or if the user requested it (REQUESTED of
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
        """
        installed = [it for it in self.by_name.values() if framework.is_installed_as(it.name)]
        if (
            len(installed) != 1
            or installed[0].name not in framework.cpu_wheels
            or installed[0].name in framework.wheels
        ):
            return None
        requirers = self.requirers(installed[0].name)
        return None if not requirers or is_file(installed[0].folder / "REQUESTED") else (installed[0].name, requirers)

    def record(self, package: Package) -> tuple[Row, ...] | None:
        """The files of a package; None if it has no RECORD. Each RECORD is read once."""
        if package.folder not in self._records:
            self._records[package.folder] = read_record(package.folder) if package.is_wheel else None
        return self._records[package.folder]

    def _of_one_module(self) -> Iterator[tuple[tuple[Package, ...], str, tuple[str, ...]]]:
        for module, names in (it for known in FRAMEWORKS.values() for it in known.owners.items()):
            init = f"{module}/__init__.py"
            named = (it for it in self.by_name.values() if re.fullmatch(names, it.name))
            owners = tuple(it for it in named if init in self._paths(it))
            if len(owners) > 1:
                yield owners, f"the module {module}", (init,)

    def _of_one_library(self) -> Iterator[tuple[tuple[Package, ...], str, tuple[str, ...]]]:
        components: dict[str, list[Package]] = defaultdict(list)
        for package in self.by_name.values():
            if package.name.startswith("nvidia-"):
                components[_CUDA_SUFFIX.sub("", package.name)].append(package)
        for owners in components.values():
            if len(owners) > 1 and len({it.location for it in owners}) == 1:
                shared = set.intersection(*map(self._paths, owners))
                libraries = tuple(sorted(filter(LIBRARY.search, shared)))
                if libraries:
                    yield tuple(owners), libraries[0].rpartition("/")[2], libraries

    def _paths(self, package: Package) -> set[str]:
        return {row.path for row in self.record(package) or ()}


def _packages(directory: Path) -> Iterator[Package]:
    for name in names_of(directory):
        match = _FOLDER.match(name)
        if match is not None:
            yield _package(directory / name, match["name"], match["version"])


def _package(folder: Path, name: str, version: str) -> Package:
    file, fields, reason = _fields(folder)
    head = dict(reversed(fields))
    installer = text_of(folder / "INSTALLER", 100)
    reason = reason or _fault(fields, head)
    return Package(
        name=normalized(head["name"] if is_name(head.get("name", "")) else name),
        version=head.get("version", version),
        folder=folder,
        installer=(installer or "").strip().casefold() or None,
        requires=tuple(value for field, value in fields if field == "requires-dist"),
        editable=_is_editable(folder),
        described="name" in head and "version" in head,
        fault=(file, reason) if reason else None,
    )


def _fault(fields: list[tuple[str, str]], head: Mapping[str, str]) -> str:
    """Why metadata with these fields is malformed; "" if it is not. Without a name it is no metadata at all."""
    if not is_name(head.get("name", "none")):
        return f"its Name is no project name: {head['name']!r:.80}"
    for field, value in fields:
        if field in _ONE_LINE and not value.isprintable():
            return f"its {field.title()} has control characters"
        if field in _ONE_LINE and _ENDLESS.search(value):
            return f"its {field.title()} has a number of a thousand digits"
    return ""


def _head(folder: Path) -> tuple[Path, bytes, str]:
    """The file of the metadata, its beginning, and why it cannot be read; without content if there is none."""
    for file in (folder / "METADATA", folder / "PKG-INFO", *([] if is_directory(folder) else [folder])):
        try:
            content = read_head(file, _HEAD)
        except FileError as error:
            return file, b"", error.reason
        if content is not None:
            return file, _BLANK_LINE.split(content, maxsplit=1)[0], ""
    return folder, b"", ""


def _fields(folder: Path) -> tuple[Path, list[tuple[str, str]], str]:
    """The metadata file, the fields in its head with lower-case names, and why it cannot be read.

    A folded line continues the one before it.
    """
    file, content, reason = _head(folder)
    text = content.decode("utf-8", "replace")
    if "\ufffd" in text and not _is_utf8(content):
        reason = "it is not UTF-8"
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if not line.strip():
            break
        name, colon, value = line.partition(":")
        if line[0] in " \t" and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {line.strip()}")
        elif colon:
            found.append((name.strip().casefold(), value.strip()))
    return file, [(name, value) for name, value in found if value], reason


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.end == len(content) == _HEAD  # the limit cuts a character in two
    return True


def _is_editable(folder: Path) -> bool:
    try:
        source = direct_url(folder)
    except FileError:
        return False
    return source is not None and source.dir_info is not None and source.dir_info.editable is True


def direct_url(folder: Path) -> DirectUrl | None:
    """The direct_url.json in ``folder``; None without one. Raises FileError if it is malformed."""
    content = read_bytes(folder / DIRECT_URL, _HEAD)
    if content is None:
        return None
    from packaging.direct_url import DirectUrl, DirectUrlValidationError

    document = json_value(content)
    try:
        return DirectUrl.from_dict(document if isinstance(document, dict) else {})
    except (DirectUrlValidationError, ValueError) as error:
        raise FileError(f"it violates its specification: {short_line(str(error))}") from None
