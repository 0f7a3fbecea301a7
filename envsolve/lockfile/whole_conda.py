"""A lock of conda packages that is there already, whole: everything in it, as a lock that any format is written from.

conda-lock.yml, pixi.lock and explicit files. What one of them does not say stays unsaid: nothing is asked of a channel.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from envsolve.boundary.files import FileError
from envsolve.index.fitting import Interpreter
from envsolve.lockfile.conda_file import HeldFormat
from envsolve.lockfile.conda_lock import MAIN, CondaLock, PlatformLock
from envsolve.lockfile.conda_lock_file import CondaLockFile, LockedPlatform, conda_lock_of
from envsolve.lockfile.explicit_file import explicit_of
from envsolve.lockfile.facts import SCHEMA_VERSION
from envsolve.lockfile.pip_package import PipPackage
from envsolve.lockfile.pixi_lock_file import PixiEnvironment, PixiLockFile, PixiPlatform, pixi_lock_of
from envsolve.lockfile.recorded import UNNAMED, Comments, RecordedLock, RecordedPart, comments_of, exported, sound_facts
from envsolve.lockfile.recorded_facts import facts_in_header, facts_in_metadata
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.toml import Value
from envsolve.lockfile.yaml_document import document_of
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.need import Markers, parse_need
from envsolve.model.package import PackageFile, Pin
from envsolve.model.versions import LibcVersion

_OF_THE_WHOLE = (
    *("schema_version", "envsolve_version", "command", "matrix_date", "own_matrix", "exclude_newer", "variables"),
)
"""Facts of a whole lock, as :mod:`envsolve.lockfile.conda_lock_facts` tells them apart from those of a platform."""
_OF_NO_LOCK = ("platform", "content_hash")
"""What readers add to the facts."""
_ALIAS = "https://conda.anaconda.org/"
"""Where conda, mamba and pixi find a channel that has a name alone, unless they are told otherwise."""
_CONDA_FORGE = "conda-forge"
_NAME = re.compile(r"[A-Za-z0-9_.+-]+\Z")
_NO_SOURCE = "the command line"
"""What envsolve's own files name where no file was read."""
_ARCHIVES = (".whl", ".tar.gz", ".tar.bz2", ".zip")


class NotWholeError(FileError):
    """A lock lacks what every other format needs, or has what none of them can hold."""


class Origin(NamedTuple):
    """The file that is read: what it is called, and the envsolve that writes it in another format."""

    name: str
    version: str


class Whole(NamedTuple):
    """A lock, what of its file is in none of the other formats, and all platforms that the file is for."""

    lock: CondaLock
    notes: tuple[str, ...] = ()
    platforms: tuple[Platform, ...] = ()


def whole_lock(
    kind: HeldFormat,
    text: str,
    origin: Origin,
    environment: str | None = None,
    platforms: Collection[Platform] = (),
) -> Whole:
    """Everything in the ``text`` of a lock of this kind for ``platforms``, () for all that it has.

    Of a pixi.lock it is one ``environment``, None for the default one.

    Raises FileError where it is none, NotWholeError where something in it has no address that a lock could name.
    """
    if environment is not None and kind is not HeldFormat.PIXI:
        raise NotWholeError("it holds one environment, and only a pixi.lock has several by name")
    if kind is HeldFormat.CONDA_LOCK:
        return _of_conda_lock(conda_lock_of(document_of(text)), text, origin, platforms)
    if kind is HeldFormat.PIXI:
        return _of_pixi(pixi_lock_of(document_of(text)), environment, origin, platforms)
    return _of_explicit(text, origin)


def _of_conda_lock(file: CondaLockFile, text: str, origin: Origin, platforms: Collection[Platform]) -> Whole:
    comments = comments_of(text)
    known = {it: platform for it in file.platforms if (platform := _platform(it.platform)) is not None}
    facts = {platform: facts_in_metadata(file, platform) for platform in known.values()}
    whole = next((it for it in facts.values() if it is not None), None)
    parts = tuple(
        _part(
            platform,
            [it.package for it in stated.conda],
            [it.package for it in stated.pip],
            facts[platform],
            comments,
        )
        for stated, platform in known.items()
        if platform in (platforms or known.values())
    )
    channels = tuple(map(named_channel, file.channels)) or _channels(parts)
    lock = _lock(parts, channels, whole, comments, origin)
    sources = tuple(it for it in file.sources if it and it != _NO_SOURCE)
    notes = (*_other_platforms(file.platforms), *_categories(file.platforms))
    return Whole(lock._replace(sources=sources), notes, tuple(known.values()))


def _of_explicit(text: str, origin: Origin) -> Whole:
    file = explicit_of(text)
    if file.unread:
        raise FileError("what stands here is no address of a conda package", file.unread[0])
    if file.unread_pip:
        raise NotWholeError("a wheel in its comments has no address", file.unread_pip[0])
    platform = _platform(file.platform or "")
    if platform is None:
        stated = f"{shown(file.platform)} is no platform that envsolve knows" if file.platform else "it names none"
        raise NotWholeError(f"for which platform it is cannot be told: {stated} (a comment says it: # platform: NAME)")
    comments, facts = comments_of(text), facts_in_header(text)
    parts = (_part(platform, file.packages, file.wheels, facts, comments),)
    return Whole(_lock(parts, _channels(parts, facts), facts, comments, origin), (), (platform,))


def _of_pixi(file: PixiLockFile, name: str | None, origin: Origin, platforms: Collection[Platform]) -> Whole:
    environment = _environment(file, name)
    by_subdir: dict[str, PixiPlatform] = {}
    for stated in sorted(environment.platforms, key=lambda it: it.name != it.subdir):
        by_subdir.setdefault(stated.subdir, stated)
    known = {it: platform for it in by_subdir.values() if (platform := _platform(it.subdir)) is not None}
    wanted = {it: platform for it, platform in known.items() if platform in (platforms or known.values())}
    built = next((source for it in wanted for source in it.sources), None)
    if built is not None:
        raise NotWholeError(f"{shown(built)} is built from source, which no other lock can hold")
    parts = tuple(_part(platform, it.conda, it.pip, None, Comments()) for it, platform in wanted.items())
    others = [it.name for it in file.environments if it is not environment]
    machines = [it.name for it in environment.platforms if it not in by_subdir.values()]
    notes = [*_left_out("environment", others), *_left_out("machine", machines)]
    notes += _left_out("platform", [it.subdir for it in by_subdir.values() if it not in known])
    lock = _lock(parts, tuple(map(named_channel, environment.channels)), None, Comments(), origin)
    index = environment.indexes[0].rstrip("/") if environment.indexes else None
    lock = lock._replace(default_index=index, default_is_plain=index is None or _is_plain(index))
    return Whole(lock, tuple(notes), tuple(known.values()))


def named_channel(channel: str) -> str:
    """``channel`` by the name that every tool of conda knows it by, else by its address."""
    address = channel.rstrip("/")
    name = address.removeprefix(_ALIAS)
    return name if name and name != address else address


def _environment(file: PixiLockFile, name: str | None) -> PixiEnvironment:
    named = {it.name: it for it in file.environments}
    if not named:
        raise NotWholeError("it has no environment")
    if name is None:
        return named.get("default", file.environments[0])
    if name not in named:
        raise NotWholeError(f"it has no environment {shown(name)}: it has {', '.join(map(shown, named))}")
    return named[name]


def _part(
    platform: Platform,
    conda: Iterable[CondaPackage],
    pip: Iterable[PipPackage],
    facts: Mapping[str, object] | None,
    comments: Comments,
) -> PlatformLock:
    packages = tuple(sorted(conda, key=lambda it: it.name))
    python = next((it.version for it in packages if it.name == "python"), "")
    own = _facts_of_part(facts or {}, python)
    virtual = own.get("virtual_packages", ())
    assert isinstance(virtual, list | tuple)
    recorded = RecordedPart(
        comments.made_for.get(platform) or (f"# For: {platform}",),
        comments.remarks,
        own,
        _name(own) or comments.name or UNNAMED,
    )
    return PlatformLock(
        platform,
        packages,
        tuple(_pin(it, _markers(platform, python, own)) for it in sorted(pip)),
        (),
        tuple(_virtual(str(it)) for it in virtual),
        None,
        python,
        recorded,
    )


def _lock(
    parts: tuple[PlatformLock, ...],
    channels: tuple[str, ...],
    facts: Mapping[str, object] | None,
    comments: Comments,
    origin: Origin,
) -> CondaLock:
    """Channels without any package are kept, as they were asked; facts are those of the whole lock."""
    told = dict(facts or {})
    if told and comments.variables:
        told.setdefault("variables", dict(comments.variables))
    variables = told.get("variables")
    exclude_newer = told.get("exclude_newer")
    told |= {"schema_version": SCHEMA_VERSION} if told else {}
    return CondaLock(
        parts,
        channels,
        command=str(told.get("command", "")),
        envsolve_version=origin.version,
        matrix_date=None,
        variables=tuple((str(key), str(held)) for key, held in variables.items())
        if isinstance(variables, dict)
        else (),
        exclude_newer=exclude_newer if isinstance(exclude_newer, str) else None,
        recorded=RecordedLock(exported(comments.made, origin.name), _values(told, _OF_THE_WHOLE)),
    )


def _facts_of_part(facts: Mapping[str, object], python: str) -> dict[str, Value]:
    """The facts of one platform, in the order in which they are written."""
    if not facts:
        return {}
    virtual = facts.get("virtual_packages")
    glibc = next((it.version for it in map(_virtual, virtual) if it.name == "__glibc"), None) if virtual else None  # type: ignore[call-overload]  # a list, as every reader gives it
    told = {"request": None, "python": python or None, "glibc": glibc, **facts}
    others = [key for key in told if key not in (*_OF_THE_WHOLE, *_OF_NO_LOCK)]
    return _values(told, others)


def _values(facts: Mapping[str, object], keys: Iterable[str]) -> dict[str, Value]:
    """Those of ``facts`` with one of ``keys``, in that order, as far as they are anything that a lock records."""
    return sound_facts({key: facts[key] for key in keys if facts.get(key) is not None})


def _name(facts: Mapping[str, Value]) -> str | None:
    """What the environment of a stack is called: see :func:`envsolve.lockfile.conda_specs.environment_name`."""
    frameworks, cuda = facts.get("frameworks"), facts.get("cuda")
    if not isinstance(frameworks, list):
        return None
    names = [str(it.get("framework")) for it in frameworks if isinstance(it, dict)]
    major = str(cuda or "").partition(".")[0]
    name = f"{'-'.join(names)}-{f'cuda{major}' if major else 'cpu'}"
    return name if _NAME.match(name) else None


def _virtual(text: str) -> VirtualPackage:
    name, _, rest = text.partition("=")
    version, _, build = rest.partition("=")
    return VirtualPackage(name, version or "0", build or "0")


def _pin(wheel: PipPackage, markers: Markers) -> Pin:
    url, _, fragment = wheel.url.partition("#")
    name = url.partition("?")[0].rpartition("/")[2]
    label = f"{wheel.name} {wheel.version}".strip()
    if "://" not in url or not url.startswith(("http://", "https://")) or not name.endswith(_ARCHIVES):
        raise NotWholeError(f"{shown(label)} is from a folder or a repository, which no other lock can hold")
    if wheel.sha256 is None:
        raise NotWholeError(f"it has no sha256 of {shown(label)}")
    if not wheel.version:
        raise NotWholeError(f"it has no version of {shown(wheel.name)}")
    folder = next((f"#{it}" for it in fragment.split("&") if it.startswith("subdirectory=")), "")
    file = PackageFile(name, url + folder, (("sha256", wheel.sha256),))
    requires = sorted(set(_required(wheel, markers)))
    return Pin(wheel.name, wheel.version, (file,), wheel.index_url, requires=tuple(requires))


def _required(wheel: PipPackage, markers: Markers) -> Iterator[str]:
    """The names of what it needs on the platform; extras are not asked for."""
    for line in wheel.requires:
        try:
            need = parse_need(line)
            if markers.holds(need.marker):
                yield need.name
        except ValueError:
            continue


def _markers(platform: Platform, python: str, facts: Mapping[str, Value]) -> Markers:
    try:
        major, minor, patch = (*Version(python).release, 0, 0)[:3]
    except InvalidVersion:
        return Markers({})
    glibc = facts.get("glibc")
    libc = LibcVersion.parse(glibc) if isinstance(glibc, str) else None
    return Markers(Interpreter((major, minor, patch), platform, libc).marker_values())


def _channels(parts: Sequence[PlatformLock], facts: Mapping[str, object] | None = None) -> tuple[str, ...]:
    packages = (package for part in parts for package in part.conda)
    return channels_of(packages, str((facts or {}).get("command", "")))


def channels_of(packages: Iterable[CondaPackage], command: str = "") -> tuple[str, ...]:
    """Where ``packages`` are from: in the order that ``command`` names, then by name, conda-forge last."""
    used = sorted({named_channel(it.channel) for it in packages if it.channel})
    given = [it for it in map(named_channel, words_of(command, "--channel")) if it in used]
    others = sorted((it for it in used if it not in given), key=lambda it: it == _CONDA_FORGE)
    return tuple(dict.fromkeys((*given, *others)))


def words_of(command: str, option: str) -> tuple[str, ...]:
    """What a recorded command names with a long option, in its order."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ()
    return tuple(value for name, value in pairwise(words) if name == option)


def _is_plain(index: str) -> bool:
    from envsolve.index.settings import default_index

    return index == default_index().rstrip("/")


def _platform(name: str) -> Platform | None:
    return Platform(name) if name in tuple(Platform) else None


def _other_platforms(found: Sequence[LockedPlatform]) -> Iterator[str]:
    yield from _left_out("platform", [it.platform for it in found if _platform(it.platform) is None])


def _left_out(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"left out: {what} {' and '.join(map(shown, names))}"


def _categories(found: Sequence[LockedPlatform]) -> Iterator[str]:
    held = (
        *(it.categories for part in found for it in part.conda),
        *(it.categories for part in found for it in part.pip),
    )
    others = sorted({name for categories in held for name in categories} - {MAIN})
    if others:
        named = f"{'category' if len(others) == 1 else 'categories'} {' and '.join(map(shown, others))}"
        yield f"the packages of the {named} are among the others: no other format has categories"
