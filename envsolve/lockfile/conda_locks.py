"""Files of conda packages as locks: conda-lock.yml, pixi.lock, explicit files and environment.yml.

What one of them does not say stays unsaid: nothing is asked of a channel. Of an environment.yml only what pins a
version is taken; people edit these files, so that a range, or an entry that is not understood, is left open and is no
error.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.index.fitting import Interpreter
from envsolve.lockfile.conda_file import HeldFormat
from envsolve.lockfile.conda_header import UNNAMED, Comments, comments_of, facts_on_top, stack_name
from envsolve.lockfile.conda_lock_facts import facts_in_metadata
from envsolve.lockfile.conda_lock_file import LockedPlatform, conda_lock_of
from envsolve.lockfile.environment_file import Entries, read_entries
from envsolve.lockfile.explicit_file import explicit_of
from envsolve.lockfile.facts import with_facts
from envsolve.lockfile.lock import MAIN, Lock, Made, Open, sorted_pins
from envsolve.lockfile.pip_package import PipPackage
from envsolve.lockfile.pixi_lock_file import DEFAULT, PixiEnvironment, PixiLockFile, PixiPlatform, pixi_lock_of
from envsolve.lockfile.requirements_txt import read_lines
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.yaml_document import document_of, items_of, table_of
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.match_spec import MatchSpec, parse_match_spec
from envsolve.model.need import Markers, parse_need
from envsolve.model.package import PackageFile, Pin

_ALIAS = "https://conda.anaconda.org/"
"""Where conda, mamba and pixi find a channel that has a name alone, unless they are told otherwise."""
_CONDA_FORGE = "conda-forge"
_NO_SOURCE = "the command line"
"""What envsolve's own files name where no file was read."""
_ARCHIVES = (".whl", ".tar.gz", ".tar.bz2", ".zip")
_RANGE = re.compile(r"[<>!~,|]")


class CondaLocks(NamedTuple):
    """A lock for each platform of a file that envsolve knows, and sentences on what of the file is in none of them."""

    locks: tuple[Lock, ...]
    left_out: tuple[str, ...] = ()

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms, in the order of the file."""
        return tuple(lock.platform for lock in self.locks)


def read(kind: HeldFormat, text: str, environment: str | None = None) -> CondaLocks:
    """The locks in the ``text`` of a file of this kind, which is any but an environment.yml.

    Of a pixi.lock they are those of one ``environment``, None for the default one. What leaves something to be decided
    is ``open`` in a lock. Raises FileError where the text is no such file, or has no such environment.
    """
    if environment is not None and kind is not HeldFormat.PIXI:
        raise FileError("it holds one environment, and only a pixi.lock has several by name")
    if kind is HeldFormat.CONDA_LOCK:
        return _of_conda_lock(text)
    if kind is HeldFormat.PIXI:
        return _of_pixi(pixi_lock_of(document_of(text)), environment)
    return CondaLocks((_of_explicit(text),))


def read_environment(text: str, platform: Platform) -> Lock:
    """What an environment.yml pins on ``platform``; what it asks for in no one version is ``open``.

    A package of conda has no more than name, version and build; a version may be the beginning of one, as in
    ``python=3.11``, and a build a pattern, as in ``pytorch=2.13.0=cuda126*``. Raises FileError where it is none.
    """
    entries = read_entries(text, platform)
    asked = tuple(_asked(entries))
    lines = read_lines("\n".join(" ".join(entry.split()) for entry, _ in entries.pip), "")
    pins = tuple(pin for pin in lines.pins if not pin.marker)
    lock = lines._replace(
        pins=pins,
        open=(
            *(Open(f"{shown(it.name)} is no one version", it.name, of_conda=True) for it in asked if not it.version),
            *lines.open,
            *(Open(f"{shown(it.name)} is not for every machine", it.name) for it in lines.pins if it.marker),
        ),
    )
    conda = [it for it in asked if it.version]
    lock = assembled(lock, platform, conda, facts_on_top(text, platform), comments_of(text))
    name = entries.table.get("name")
    return lock._replace(
        channels=tuple(_channels_in(entries)),
        environment=_unless_unnamed(name.value) if name is not None and isinstance(name.value, str) else "",
        variables=tuple(_variables_in(entries)),
    )


def read_conda(kind: HeldFormat, text: str, platform: Platform) -> Lock | None:
    """What the ``text`` of a file of this kind holds for ``platform``; None where it is for other ones.

    Raises FileError where the text is no such file.
    """
    if kind is HeldFormat.ENVIRONMENT:
        return read_environment(text, platform)
    return next((it for it in read(kind, text).locks if it.platform in ("", platform)), None)


def assembled(
    lock: Lock,
    platform: Platform | None,
    conda: Iterable[CondaPackage],
    facts: Mapping[str, object] | None,
    comments: Comments,
) -> Lock:
    """``lock`` with packages of conda, and with what facts and comments say of it."""
    machines = comments.machines.get(platform or "", "")
    packages = tuple(sorted(conda, key=lambda it: it.name))
    told = with_facts(lock, facts, machines=machines)
    virtual = {it.name: it.version for it in told.virtual_packages}
    python = next((it.version for it in packages if it.name == "python"), "")
    return told._replace(
        platform=platform or "",
        conda=packages,
        python=python,
        glibc=virtual.get("__glibc"),
        environment=_unless_unnamed(stack_name(told.stack) or comments.environment),
        variables=told.variables or comments.variables,
        remarks=comments.remarks,
        exported_from=comments.exported_from,
    )


def named_channel(channel: str) -> str:
    """``channel`` by the name that every tool of conda knows it by, else by its address."""
    address = channel.rstrip("/")
    name = address.removeprefix(_ALIAS)
    return name if name and name != address else address


def channels_of(packages: Iterable[CondaPackage], made: Made | None = None) -> tuple[str, ...]:
    """Where ``packages`` are from: in the order that was asked for, then by name, conda-forge last."""
    used = sorted({named_channel(it.channel) for it in packages if it.channel})
    given = [it for it in map(named_channel, made.option("channels") if made else ()) if it in used]
    others = sorted((it for it in used if it not in given), key=lambda it: it == _CONDA_FORGE)
    return tuple(dict.fromkeys((*given, *others)))


def _of_conda_lock(text: str) -> CondaLocks:
    file = conda_lock_of(document_of(text))
    comments = comments_of(text)
    locks: list[Lock] = []
    for stated in file.platforms:
        platform = _platform(stated.platform)
        if platform is None:
            continue
        bare = _with_wheels(Lock(()), platform, [it.package for it in stated.pip], [it.package for it in stated.conda])
        facts = facts_in_metadata(file, platform)
        locks.append(assembled(bare, platform, [it.package for it in stated.conda], facts, comments))
    packages = [package for lock in locks for package in lock.conda]
    made = next((lock.made for lock in locks), None)
    channels = tuple(map(named_channel, file.channels)) or channels_of(packages, made)
    sources = tuple(it for it in file.sources if it and it != _NO_SOURCE)
    return CondaLocks(
        tuple(lock._replace(channels=channels, sources=sources) for lock in locks),
        (
            *_left_out("platform", [it.platform for it in file.platforms if _platform(it.platform) is None]),
            *_categories(file.platforms),
        ),
    )


def _of_explicit(text: str) -> Lock:
    file = explicit_of(text)
    platform = _platform(file.platform or "")
    left_open = [
        Open("what stands here is no address of a conda package", line=it, of_conda=True) for it in file.unread
    ]
    left_open += [Open("a wheel in its comments has no address", line=line) for line in file.unplaced]
    if platform is None:
        stated = f"{shown(file.platform)} is no platform that envsolve knows" if file.platform else "it names none"
        left_open.append(
            Open(f"it does not say for which platform it is: {stated} (a comment says it: # platform: NAME)")
        )
    bare = _with_wheels(Lock(file.pins, open=tuple(left_open)), platform, file.wheels, file.packages)
    lock = assembled(bare, platform, file.packages, facts_on_top(text, platform or ""), comments_of(text))
    return lock._replace(platform=file.platform or "", channels=channels_of(lock.conda, lock.made))


def _of_pixi(file: PixiLockFile, name: str | None) -> CondaLocks:
    environment = _environment(file, name)
    if environment is None:
        return CondaLocks(())
    by_subdir: dict[str, PixiPlatform] = {}
    for stated in sorted(environment.platforms, key=lambda it: it.name != it.subdir):
        by_subdir.setdefault(stated.subdir, stated)
    index = environment.indexes[0].rstrip("/") if environment.indexes else ""
    channels = tuple(map(named_channel, environment.channels))
    locks: list[Lock] = []
    for subdir, stated in by_subdir.items():
        platform = _platform(subdir)
        if platform is None:
            continue
        built = (Open(f"{shown(it)} is built from source, which no other lock can hold") for it in stated.sources)
        bare = Lock((), default_index=index, default_is_plain=not index or _is_plain(index), open=tuple(built))
        bare = _with_wheels(bare, platform, stated.pip, stated.conda)
        locks.append(assembled(bare, platform, stated.conda, None, Comments())._replace(channels=channels))
    machines = [it.name for it in environment.platforms if it not in by_subdir.values()]
    return CondaLocks(
        tuple(locks),
        (
            *_left_out("environment", [it.name for it in file.environments if it is not environment]),
            *_left_out("machine", machines),
            *_left_out("platform", [subdir for subdir in by_subdir if _platform(subdir) is None]),
        ),
    )


def _environment(file: PixiLockFile, name: str | None) -> PixiEnvironment | None:
    named = {it.name: it for it in file.environments}
    if name is None:
        return named.get(DEFAULT, next(iter(file.environments), None))
    if name not in named:
        raise FileError(f"it has no environment {shown(name)}: it has {', '.join(map(shown, named)) or 'none'}")
    return named[name]


def _with_wheels(
    lock: Lock, platform: Platform | None, wheels: Iterable[PipPackage], conda: Iterable[CondaPackage]
) -> Lock:
    """``lock`` with what pip installs, each package at its address."""
    python = next((it.version for it in conda if it.name == "python"), "")
    markers = _markers(platform, python)
    found = [_pin(wheel, markers) for wheel in wheels]
    pins = tuple(sorted_pins((*lock.pins, *(it for it in found if isinstance(it, Pin)))))
    return lock._replace(pins=pins, open=(*lock.open, *(it for it in found if isinstance(it, Open))))


def _pin(wheel: PipPackage, markers: Markers) -> Pin | Open:
    url, _, fragment = wheel.url.partition("#")
    name = url.partition("?")[0].rpartition("/")[2]
    label = f"{wheel.name} {wheel.version}".strip()
    if not url.startswith(("http://", "https://")) or not name.endswith(_ARCHIVES):
        return Open(f"{shown(label)} is from a folder or a repository, which no other lock can hold", wheel.name)
    if not wheel.version:
        return Open(f"it has no version of {shown(wheel.name)}", wheel.name)
    folder = next((f"#{it}" for it in fragment.split("&") if it.startswith("subdirectory=")), "")
    hashes = () if wheel.sha256 is None else (("sha256", wheel.sha256),)
    requires = tuple(sorted(set(_required(wheel, markers))))
    return Pin(
        wheel.name, wheel.version, (PackageFile(name, url + folder, hashes),), wheel.index_url, requires=requires
    )


def _required(wheel: PipPackage, markers: Markers) -> Iterator[str]:
    """The names of what it needs on the platform; extras are not asked for."""
    for line in wheel.requires:
        try:
            need = parse_need(line)
            if markers.holds(need.marker):
                yield need.name
        except ValueError:
            continue


def _markers(platform: Platform | None, python: str) -> Markers:
    try:
        major, minor, patch = (*Version(python).release, 0, 0)[:3]
    except InvalidVersion:
        return Markers({})
    return Markers({} if platform is None else Interpreter((major, minor, patch), platform, None).marker_values())


def _asked(entries: Entries) -> Iterator[CondaPackage]:
    """What can be understood; the version is "" where it is not pinned."""
    for entry, _ in entries.conda:
        try:
            spec = parse_match_spec(entry)
        except ValueError:
            continue
        version = spec.exact_version or _beginning(entry, spec)
        yield CondaPackage(spec.name, version, spec.build, spec.subdir, "", channel=spec.channel)


def _beginning(entry: str, spec: MatchSpec) -> str:
    """What ``conda env export --no-builds`` writes, ``name=version``, which conda takes for all that begins with it."""
    version = spec.version.removesuffix(".*")
    return version if version != spec.version and "*" not in entry and not _RANGE.search(version) else ""


def _channels_in(entries: Entries) -> Iterator[str]:
    node = entries.table.get("channels")
    for item in [] if node is None else items_of(node, "channels"):
        if isinstance(item.value, str):
            yield without_secrets(item.value)


def _variables_in(entries: Entries) -> Iterator[tuple[str, str]]:
    node = entries.table.get("variables")
    for name, value in () if node is None else table_of(node, "variables").items():
        if isinstance(value.value, str):
            yield name, without_secrets(value.value)


def _unless_unnamed(name: str) -> str:
    return "" if name == UNNAMED else name


def _is_plain(index: str) -> bool:
    from envsolve.index.settings import default_index

    return index == default_index().rstrip("/")


def _platform(name: str) -> Platform | None:
    return Platform(name) if name in tuple(Platform) else None


def _left_out(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"left out: {what} {' and '.join(map(shown, names))}"


def _categories(found: Collection[LockedPlatform]) -> Iterator[str]:
    held = (
        *(it.categories for part in found for it in part.conda),
        *(it.categories for part in found for it in part.pip),
    )
    others = sorted({name for categories in held for name in categories} - {MAIN})
    if others:
        named = f"{'category' if len(others) == 1 else 'categories'} {' and '.join(map(shown, others))}"
        yield f"the packages of the {named} are among the others: no other format has categories"
