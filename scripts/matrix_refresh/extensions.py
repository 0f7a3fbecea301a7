"""What the wheels of packages with kernels hold: the GPUs that these are compiled for, their CUDA and their PyTorch.

Of each release one wheel for each platform is read. Its libraries are read as a stream; one of hundreds of MB only up
to the first of its fat binaries, since a compiler writes the code of every source file for the same GPUs. A library
that another release has unchanged (size, CRC) is not read again.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.binary.fat_binary import DeviceTargets
from envsolve.binary.package_facts import brings_cuda, libraries_in, together
from envsolve.binary.streamed_library import StreamedLibrary, read_stream
from envsolve.model.host import Platform
from envsolve.model.need import Need
from envsolve.model.versions import CudaVersion
from envsolve.releases.reader import Observation, Read
from envsolve.releases.wheels import Listing, WheelFile
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.wheel import Wheel

EDITION = "extensions-8"
_PLATFORMS = ("linux-64", "linux-aarch64", "win-64")
_RECENT = dt.timedelta(days=548)
"""18 months."""
_LEAST = 10
"""Releases that are read although they are older than that."""
_LARGE = 200 << 20
"""Bytes of a library, compressed, from which on it is not read to its end."""
_ENOUGH = 60
"""Fat binaries of such a library that are read."""
_TORCH_PIN = re.compile(r"^Requires-Dist: torch *\(?==", re.MULTILINE)
_MARKERS = {
    "linux-64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "x86_64"},
    "linux-aarch64": {"sys_platform": "linux", "platform_system": "Linux", "platform_machine": "aarch64"},
    "win-64": {"sys_platform": "win32", "platform_system": "Windows", "platform_machine": "AMD64"},
}


class Extension(NamedTuple):
    """A package with kernels, and the ``libraries`` in its wheels that are read.

    Where these have groups ``major`` and ``minor``, there is one for each CUDA; from release ``nearest_from`` on one
    for a near CUDA of the same major will do. ``first`` is the release from which on all are read, None where the age
    decides. ``needs_own_cuda``: it refuses a framework of another CUDA even if it has a runtime of its own. ``loss`` is
    what is lost where its CUDA is another, with the ``loss_seen`` that says so; ``works_without_code``: where it has no
    code for the GPU, too.
    """

    package: str
    libraries: re.Pattern[str]
    first: Version | None = None
    nearest_from: Version | None = None
    needs_own_cuda: bool = False
    loss: str = ""
    loss_seen: str = ""
    works_without_code: bool = False

    @property
    def edition(self) -> str:
        """The cache key of its wheels: with other libraries they are read again."""
        return f"{EDITION}-{hashlib.sha256(self.libraries.pattern.encode()).hexdigest()[:8]}"

    @property
    def has_one_for_each_cuda(self) -> bool:
        """Whether a wheel has a library for each CUDA."""
        return "minor" in self.libraries.groupindex


class Facts(NamedTuple):
    """What a wheel holds: its targets, and the CUDA that it loads and does not bring along, as a specifier.

    ``cuda`` is None where it loads none, or libraries of several, of which it takes the one that is there.
    ``linked_cuda`` is the major of a CUDA runtime that is part of it. ``by_cuda`` are the targets of a library for each
    CUDA, by the specifier of the stacks that load it, ``ptx_cuda`` is the toolkit that wrote its PTX. ``torch`` is the
    PyTorch that it was compiled for, as a requirement, where its metadata do not say.
    """

    targets: DeviceTargets
    cuda: str | None
    linked_cuda: str | None = None
    by_cuda: tuple[tuple[str, DeviceTargets], ...] = ()
    ptx_cuda: str | None = None
    torch: str | None = None

    @property
    def say_something(self) -> bool:
        """Whether any of it is known."""
        own = (self.cuda, self.linked_cuda, self.by_cuda, self.torch)
        return bool(self.targets.sass or self.targets.ptx or any(own))


class Row(NamedTuple):
    """Releases in a row that hold the same on ``platforms``, the oldest first; without platforms on all.

    ``is_first``: there are older releases, which were not read and are taken to hold the same as these.
    """

    versions: tuple[Version, ...]
    facts: Facts
    files: tuple[WheelFile, ...]
    is_first: bool = False
    platforms: tuple[str, ...] = ()


Toolkits = Callable[[], Sequence[CudaVersion]]
"""Every CUDA that there is."""
TorchFor = Callable[[Sequence[str], Platform], Need | None]
"""The PyTorch that has all of some symbols."""
_Read = tuple[Version, WheelFile, Facts]


def extensions_in(document: Mapping[str, Mapping[str, str | bool]]) -> dict[str, Extension]:
    """The packages of ``extensions.toml`` by their names."""
    return {name: _extension(name, row) for name, row in document.items()}


def _extension(name: str, row: Mapping[str, str | bool]) -> Extension:
    first, nearest = row.get("first"), row.get("nearest_from")
    return Extension(
        name,
        re.compile(str(row["libraries"])),
        Version(str(first)) if first else None,
        Version(str(nearest)) if nearest else None,
        bool(row.get("needs_own_cuda")),
        str(row.get("loss", "")),
        str(row.get("loss_seen", "")),
        bool(row.get("works_without_code")),
    )


class Observer:
    """Reads wheels of one package; what an unchanged library holds is remembered."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._known: dict[tuple[int, int], StreamedLibrary] = {}

    def __call__(self, wheel: Wheel) -> Observation:
        """The targets and the CUDA of one wheel."""
        names = [name for name in libraries_in(wheel.members) if self._extension.libraries.fullmatch(name)]
        libraries = {name: self._library(name, wheel) for name in names}
        found = together(libraries, wheel.members)
        metadata = wheel.text(".dist-info/METADATA") or ""
        observation = {
            "libraries": names,
            "sass": list(found.sass),
            "ptx": list(found.ptx),
            "cuda": list(map(str, found.cuda)),
            "loads": sorted({str(major) for it in libraries.values() for major in it.cuda}),
            "ptx cuda": [] if found.ptx_cuda is None else [found.ptx_cuda],
            "linked": [] if found.linked_cuda is None else [str(found.linked_cuda)],
            "brings": list(filter(brings_cuda, _required(metadata, wheel.file.platform))),
            "torch": [] if _TORCH_PIN.search(metadata) else list(found.torch),
        }
        if self._extension.has_one_for_each_cuda:
            for cuda, of_cuda in self._by_cuda(libraries).items():
                one = together(of_cuda, ())
                observation |= {f"sass {cuda}": list(one.sass), f"ptx {cuda}": list(one.ptx)}
        return observation

    def _by_cuda(self, libraries: Mapping[str, StreamedLibrary]) -> dict[str, dict[str, StreamedLibrary]]:
        found: dict[str, dict[str, StreamedLibrary]] = {}
        for name, library in libraries.items():
            if (match := self._extension.libraries.fullmatch(name)) is not None:
                found.setdefault(f"{match['major']}.{match['minor']}", {})[name] = library
        return found

    def _library(self, name: str, wheel: Wheel) -> StreamedLibrary:
        size, mark = wheel.size(name), wheel.checksum(name)
        if (size, mark) not in self._known:
            self._known[size, mark] = read_stream(wheel.chunks(name), enough=_ENOUGH if size > _LARGE else None)
        return self._known[size, mark]


def _required(metadata: str, platform: str | None) -> Iterator[str]:
    """The packages that a wheel requires without an extra on ``platform``."""
    environment = {**_MARKERS[platform or _PLATFORMS[0]], "extra": ""}
    for line in metadata.splitlines():
        if line.startswith("Requires-Dist:"):
            try:
                requirement = Requirement(line.partition(":")[2].strip())
            except InvalidRequirement:
                continue
            if requirement.marker is None or requirement.marker.evaluate(environment):
                yield canonicalize_name(requirement.name)


def rows_of(
    extension: Extension,
    shelf: Listing,
    released: Mapping[str, str],
    read: Read,
    *,
    today: dt.date,
    toolkits: Toolkits,
    torch_for: TorchFor,
) -> list[Row]:
    """The releases of a package that are read, those in a row that hold the same together.

    ``released`` are the days on which they were. A platform whose wheels hold something else has rows of its own.
    """
    every = [it for it in sorted(shelf.versions(extension.package)) if _wheels(extension.package, it, shelf)]
    chosen = _chosen(extension, every, released, today)
    by_platform: dict[str, list[_Read]] = {}
    for version in chosen:
        for platform, file in _wheels(extension.package, version, shelf).items():
            observation = read(file)
            facts = _facts(extension, version, observation, toolkits)
            torch = None if extension.loss else torch_for(observation["torch"], Platform(platform))
            facts = facts._replace(torch=torch and str(torch))
            by_platform.setdefault(platform, []).append((version, file, facts))
    has_older = extension.first is None and len(every) > len(chosen)
    groups = _alike(by_platform)
    return [
        row._replace(platforms=platforms if len(groups) > 1 else ())
        for platforms, seen in groups.items()
        for row in _in_a_row(seen, has_older=has_older)
    ]


def _chosen(
    extension: Extension, versions: Sequence[Version], released: Mapping[str, str], today: dt.date
) -> Sequence[Version]:
    if extension.first is not None:
        return [it for it in versions if it >= extension.first]
    since = (today - _RECENT).isoformat()
    recent = [it for it in versions if released.get(str(it), "") >= since]
    return versions[-max(_LEAST, len(recent)) :]


def _wheels(package: str, version: Version, shelf: Listing) -> dict[str, WheelFile]:
    """The wheels of a release that are read, of the newest Python: one for each platform."""
    found: dict[str, WheelFile] = {}
    for file in shelf.wheels(package, version):
        platform = file.platform or _PLATFORMS[0]
        if platform in _PLATFORMS:
            found.setdefault(platform, file)
    return found


def _alike(by_platform: Mapping[str, list[_Read]]) -> dict[tuple[str, ...], list[_Read]]:
    """Platforms whose wheels hold the same in every release that both have, each time with those of the first."""
    groups: dict[tuple[str, ...], list[_Read]] = {}
    for platform in _PLATFORMS:
        seen = by_platform.get(platform, [])
        if not seen:
            continue
        for platforms, others in groups.items():
            facts = {version: it for version, _, it in others}
            if all(facts.get(version, it) == it for version, _, it in seen):
                more = [it for it in seen if it[0] not in facts]
                del groups[platforms]
                groups[*platforms, platform] = sorted([*others, *more], key=lambda it: it[0])
                break
        else:
            groups[platform,] = seen
    return groups


def _in_a_row(seen: Iterable[_Read], *, has_older: bool) -> Iterator[Row]:
    for number, (facts, members) in enumerate(groupby(seen, key=lambda it: it[2])):
        group = list(members)
        versions, files = tuple(it[0] for it in group), tuple(it[1] for it in group)
        yield Row(versions, facts, files, has_older and number == 0)


def _facts(extension: Extension, version: Version, observation: Observation, toolkits: Toolkits) -> Facts:
    if extension.has_one_for_each_cuda:
        is_near = extension.nearest_from is not None and version >= extension.nearest_from
        return _facts_by_cuda(observation, toolkits(), is_near=is_near)
    majors = observation["loads" if extension.needs_own_cuda else "cuda"] if not observation["brings"] else []
    linked = [] if extension.needs_own_cuda else observation["linked"]
    return Facts(
        DeviceTargets.of(observation["sass"], observation["ptx"]),
        f"=={majors[0]}.*" if len(majors) == 1 else None,
        linked[0] if linked else None,
        ptx_cuda=next(iter(observation["ptx cuda"]), None),
    )


def _facts_by_cuda(observation: Observation, toolkits: Sequence[CudaVersion], *, is_near: bool) -> Facts:
    """The libraries for each CUDA, by the stacks that load them: of that CUDA, or ``is_near`` of that major.

    In the latter case the newest library that is no newer than the stack is loaded, else the oldest.
    """
    shipped = sorted(CudaVersion.parse(key.removeprefix("sass ")) for key in observation if key.startswith("sass "))
    loaded: dict[CudaVersion, CudaVersion] = {}
    for toolkit in sorted({*toolkits, *shipped}):
        of_major = [it for it in shipped if it.major == toolkit.major]
        if toolkit in shipped:
            loaded[toolkit] = toolkit
        elif is_near and of_major:
            loaded[toolkit] = max((it for it in of_major if it < toolkit), default=of_major[0])
    targets = {it: DeviceTargets.of(observation[f"sass {it}"], observation[f"ptx {it}"]) for it in shipped}
    known = sorted({*toolkits, *shipped})
    by_cuda = []
    for (_, code), group in groupby(loaded.items(), key=lambda it: (it[0].major, targets[it[1]])):
        stacks = [it for it, _ in group]
        by_cuda.append((_stacks(stacks, known, is_near=is_near), code))
    return Facts(DeviceTargets.of((), ()), _stacks(list(loaded), known, is_near=is_near), None, tuple(by_cuda))


def _stacks(served: Sequence[CudaVersion], known: Sequence[CudaVersion], *, is_near: bool) -> str:
    """The specifier of the stacks of ``served``, among all CUDA that is ``known``.

    The newest of a major stands for the rest of it where a newer major is known, or ``is_near``.
    """
    first, last = served[0], served[-1]
    later = next((it for it in known if it > last), None)
    is_open = is_near if later is None else later.major != last.major
    end = f"{last.major + 1}" if is_open else f"{last.major}.{last.minor + 1}"
    gaps = [f"!={it}" for it in known if first < it < last and it not in served]
    return ",".join([f">={first}", f"<{end}", *gaps])


def toml_of(extension: Extension, rows: Sequence[Row], today: str) -> str:
    """The file of a package in ``data/compat_matrix/extensions``. Raises RefreshError where nothing was found."""
    known = [row for row in rows if row.facts.say_something]
    if not known:
        raise RefreshError(f"no wheel of {extension.package} has kernels or loads CUDA")
    lines = [
        f"# Made by scripts/refresh_extensions.py from the wheels of {extension.package}.",
        "",
        "schema_version = 1",
        f'updated = "{today}"',
    ]
    for row in known:
        lines += ["", *_evidence(extension, row, today)]
    if extension.loss:
        lines += ["", "[evidence.loss]", 'kind = "wheel"', f"reference = {_quoted(extension.loss_seen)}"]
        lines += [f'seen = "{today}"']
    for row, following in reversed(list(zip(rows, (*rows[1:], None), strict=True))):  # the newest first
        if row in known:
            is_next = following is not None and following.platforms == row.platforms
            for build in _builds(extension, row, following if is_next else None):
                lines += ["", *build]
    return "\n".join(lines) + "\n"


def _evidence(extension: Extension, row: Row, today: str) -> Iterator[str]:
    first, last = row.versions[0], row.versions[-1]
    what = f"{len(row.versions)} releases, {first} to {last}" if len(row.versions) > 1 else f"{row.files[0].filename}"
    on = f" for {' and '.join(row.platforms)}" if row.platforms else ""
    yield f"[evidence.{_name(row)}]"
    yield 'kind = "wheel"'
    read = "fat binaries, names of CUDA libraries" + (", symbols of PyTorch" if row.facts.torch else "")
    reference = f"{what}{on}: {read} in {extension.libraries.pattern}"
    if row.is_first:
        reference += f"; releases before {first} were not read and are taken to hold the same"
    yield f"reference = {_quoted(reference)}"
    if len(row.versions) == 1 and row.files[0].sha256:
        yield f'sha256 = "{row.files[0].sha256}"'
    yield f'seen = "{today}"'


def _builds(extension: Extension, row: Row, following: Row | None) -> Iterator[list[str]]:
    facts = row.facts
    about = ["[[build]]", f'package = "{extension.package}"', f'versions = "{_specifier(row, following)}"']
    about += [f"platforms = {_listed(row.platforms)}"] if row.platforms else []
    in_full = [f"evidence = {_listed([_name(row)])}"]
    in_part = [f'loss = "{extension.loss}"', f"evidence = {_listed([_name(row), 'loss'])}"]
    cuda = [f'requires = ["{facts.torch}"]'] if facts.torch is not None else []
    cuda += [f'cuda = "{facts.cuda}"'] if facts.cuda is not None else []
    rest = [f'linked_cuda = "{facts.linked_cuda}"'] if facts.linked_cuda is not None else []
    rest += [*_code(facts.targets), *([f'ptx_cuda = "{facts.ptx_cuda}"'] if facts.ptx_cuda is not None else [])]
    if extension.works_without_code or not extension.loss:
        parts = [([*cuda, *rest], in_part if extension.loss else in_full)]
    else:
        parts = [(cuda, in_part), (rest, in_full)]
    parts += [([f'with_cuda = "{stacks}"', *_code(targets)], in_full) for stacks, targets in facts.by_cuda]
    yield from ([*about, *what, *end] for what, end in parts if what)


def _code(targets: DeviceTargets) -> Iterator[str]:
    if targets.sass or targets.ptx:
        yield f"sass = {_listed(targets.sass)}"
    if targets.ptx:
        yield f"ptx = {_listed(targets.ptx)}"


def _specifier(row: Row, following: Row | None) -> str:
    """From the first version of a row on up to the next row, or to the last one that was read.

    A release of which nothing could be read ends it, too.
    """
    first, last = row.versions[0], row.versions[-1]
    least = "" if row.is_first else f">={first},"
    if following is not None:
        return f"{least}<{following.versions[0]}"
    return f"{least}<={last}" if row.is_first or first != last else f"=={first}"


def _name(row: Row) -> str:
    version = "v" + re.sub(r"[^0-9a-z]", "-", str(row.versions[0]))
    return "-".join([version, *row.platforms])


def _quoted(text: str) -> str:
    return f"'{text}'"


def _listed(items: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{it}"' for it in items) + "]"
