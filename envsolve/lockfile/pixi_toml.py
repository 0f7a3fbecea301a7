"""``--format pixi``: a pixi workspace manifest, pixi.toml, for one or more platforms; pixi solves and locks the rest.

Common requirements of all platforms are written once, others under ``[target.PLATFORM]``. The machine is described at
its platform, as pixi 0.71 and later support (pixi.prefix.dev, declaring virtual packages per platform). The sources are
pixi's documentation and JSON schema (prefix-dev/pixi, docs/reference/pixi_manifest.md, schema/schema.json).

A manifest is read back as a lock of the pins of its default environment on one platform. Users edit these files, so a
requirement on more than one version, or one that cannot be parsed, is left open and is not an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from packaging.version import Version

from envsolve.boundary.files import toml_document
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.checked_pins import checked_url
from envsolve.lockfile.conda_header import comments_of, facts_on_top, header_lines
from envsolve.lockfile.conda_locks import assembled
from envsolve.lockfile.environment_yml import channel_named
from envsolve.lockfile.header import commented
from envsolve.lockfile.lock import Lock, Open, RequestedSpec
from envsolve.lockfile.requirements_txt import read_lines
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.toml import Value, quoted_key, string, value
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.names import is_name, normalized

_FIRST_PIXI = "0.71"
"""The first version with virtual packages per platform. Before, ``[system-requirements]`` applies to all platforms."""
_PIP = RequestedSpec("pip", of_stack=True)
"""A stack with wheels requires pip from conda, but pixi has its own installer."""
_REASONS = {"LD_LIBRARY_PATH": "where the wheel looks for the CUDA libraries"}
_SPEC = re.compile(r"([A-Za-z0-9_.-]+)(.*)\Z")
_PIN = re.compile(r"=([^=<>!~,|]+)(?:=([^=,]+))?\Z")
_PINNED = re.compile(r"(?:==)?([0-9][\w.!+]*?)(?:\.\*)?\Z")
_BARE_VERSION = re.compile(r"[0-9]")
_CONDA_NAME = re.compile(r"[a-z0-9_][a-z0-9._-]*\Z")


class _Dependency(NamedTuple):
    """The requirements on one package; unspecified fields are empty."""

    version: str
    build: str = ""
    extras: tuple[str, ...] = ()
    channel: str = ""
    index: str = ""  # type: ignore[assignment]  # the key in the manifest; no one wants tuple.index
    url: str = ""


class _Wanted(NamedTuple):
    """A dependency with the reasons for it."""

    dependency: _Dependency
    reasons: tuple[str, ...]


_Dependencies = Mapping[str, _Wanted]


def write(locks: Sequence[Lock]) -> str:
    """Return the content of the file, byte for byte the same for the same locks, each for a different platform.

    It has the packages of the locks, or their requirements if they have no packages. Raises UsageError
    ``channels-differ`` if their channels differ, because a manifest has one list.
    """
    return "\n".join(_lines(locks)) + "\n"


def read(text: str, platform: Platform) -> Lock | None:
    """Return what a manifest pins on ``platform``, or None if it is for others.

    Raises FileError if it is not valid TOML.
    """
    document = toml_document(text)
    workspace = _read_table(document.get("workspace")) or _read_table(document.get("project"))
    platforms = [_named(it, "platform") or _named(it, "name") for it in _list(workspace.get("platforms"))]
    if platforms and platform not in platforms:
        return None
    lock, conda = _pinned(_read(document, platform, "dependencies"), _read(document, platform, "pypi-dependencies"))
    lock = assembled(lock, platform, conda, facts_on_top(text, platform), comments_of(text))
    channels = (_named(it, "channel") for it in _list(workspace.get("channels")))
    variables = _merged(document, platform, "activation", "env")
    return lock._replace(
        channels=tuple(without_secrets(it) for it in channels if it),
        variables=tuple((name, without_secrets(_text(variables, name))) for name in variables),
    )


def document_in(text: str) -> object:
    """Return the whole document, with its ranges. Raises FileError if it is not valid TOML."""
    return toml_document(text)


def requirements_in(text: str, platform: Platform) -> tuple[str, ...]:
    """Return the wheels that a manifest requires on ``platform``. Raises FileError if it is not valid TOML."""
    requested = _read(toml_document(text), platform, "pypi-dependencies")
    return tuple(_requirement(name, table) for name, table in requested)


def _lines(locks: Sequence[Lock]) -> Iterator[str]:
    yield from header_lines(locks, resolved=False)
    yield from _for_other_machines(locks)
    yield from _workspace(locks)
    yield from _tables("dependencies", {lock.platform: _conda(lock) for lock in locks})
    yield from _tables("pypi-dependencies", {lock.platform: _wheels(lock) for lock in locks})
    yield from _pypi_options(locks)
    for lock in locks:
        if lock.variables:
            yield ""
            yield f"[target.{lock.platform}.activation.env]"
        for name, text in lock.variables:
            yield commented(f"{quoted_key(name)} = {string(text)}", _REASONS.get(name, ""))


def _for_other_machines(locks: Sequence[Lock]) -> Iterator[str]:
    machines = [_versions(lock) for lock in locks]
    newest = {
        name: max((it[name] for it in machines if name in it), key=Version, default="")
        for name in ("__cuda", "__cuda_arch")
    }
    if newest["__cuda"]:
        variables = (
            f"CONDA_OVERRIDE_{name.strip('_').upper()}={version}" for name, version in newest.items() if version
        )
        yield "# To install it on a machine without the GPU, put"
        yield f"#   {' '.join(variables)}"
        yield "# before pixi."
    if len(locks) == 1 and isinstance(_platform(locks[0]), Mapping):
        yield from _for_older_pixi(locks[0])


def _for_older_pixi(lock: Lock) -> Iterator[str]:
    """The form that pixi deprecates from 0.71 on but still reads. It has no compute capability."""
    yield f"# For pixi before {_FIRST_PIXI} remove requires-pixi and write"
    yield f"#   platforms = {value([lock.platform])}"
    yield "#   [system-requirements]"
    versions = _versions(lock)
    for name, old in (("__cuda", "cuda"), ("__glibc", "libc")):
        if name in versions:
            yield f"#   {old} = {string(versions[name])}"


def _workspace(locks: Sequence[Lock]) -> Iterator[str]:
    platforms = list(map(_platform, locks))
    yield "[workspace]"
    yield f"name = {string(_name(locks))}"
    yield f"channels = {value(_channels(locks))}"
    yield f"platforms = {value(platforms)}"
    if any(isinstance(it, Mapping) for it in platforms):
        yield f"requires-pixi = {string(f'>={_FIRST_PIXI}')}"


def _name(locks: Sequence[Lock]) -> str:
    names = {lock.environment for lock in locks}
    stack = locks[0].stack
    return names.pop() if len(names) == 1 or stack is None else "-".join(it.framework for it in stack.frameworks)


def _channels(locks: Sequence[Lock]) -> list[str]:
    if any(lock.channels != locks[0].channels for lock in locks):
        channels = " and ".join(f"{', '.join(lock.channels)} for {lock.platform}" for lock in locks)
        message = f"the stacks use different channels, but a pixi manifest has one list of them: {channels}"
        hint = Hint(
            "use one source for all platforms, such as --source conda-forge, or write one file for each platform"
        )
        raise UsageError("channels-differ", message, hints=(hint,))
    return list(dict.fromkeys(locks[0].channels))


def _platform(lock: Lock) -> Value:
    """The platform with its requirements on a machine: CUDA, compute capability and C library."""
    versions = _versions(lock)
    cuda: Value = versions.get("__cuda", "")
    if cuda and "__cuda_arch" in versions:
        cuda = {"driver": cuda, "arch": versions["__cuda_arch"]}
    machine: dict[str, Value] = {"cuda": cuda, "glibc": versions.get("__glibc", "")}
    machine = {key: it for key, it in machine.items() if it}
    return {"platform": lock.platform, **machine} if machine else lock.platform


def _versions(lock: Lock) -> dict[str, str]:
    return {it.name: it.version for it in lock.virtual_packages}


def _conda(lock: Lock) -> _Dependencies:
    if lock.is_unresolved:
        requested = (it for it in lock.requested if not (it.by_pip or it == _PIP))
        return _collected((*_conda_dependency(it.spec), it.reason) for it in requested)
    channels = tuple(dict.fromkeys(lock.channels))
    specs = (("=".join(filter(None, it[:3])), channel_named(it, channels)) for it in lock.conda)
    found = ((*_conda_dependency(spec), channel) for spec, channel in specs)
    return _collected((name, dependency._replace(channel=channel), "") for name, dependency, channel in found)


def _conda_dependency(spec: str) -> tuple[str, _Dependency]:
    """A match spec in pixi's form, in which a version without operator is exact."""
    found = _SPEC.match(spec)
    assert found is not None
    name, rest = found[1], found[2].strip()
    pin = _PIN.match(rest)
    if pin is not None and pin[2]:
        return name, _Dependency(f"=={pin[1]}", pin[2])
    if pin is not None:
        return name, _Dependency(pin[1] if pin[1].endswith("*") else f"{pin[1]}.*")
    return name, _Dependency(re.sub(r"\A=(?!=)", "", rest) or "*")


def _wheels(lock: Lock) -> _Dependencies:
    if lock.is_unresolved:
        return _collected((*_wheel(it.spec, it.index), it.reason) for it in lock.requested if it.by_pip)
    specs = (
        (f" @ {checked_url(it.files[0].url)}" if it.index_url is None else f"=={it.version}", it) for it in lock.pins
    )
    return _collected((*_wheel(f"{it.name}{spec}", it.index_url or ""), "") for spec, it in specs)


def _wheel(spec: str, index: str) -> tuple[str, _Dependency]:
    from packaging.requirements import Requirement

    requested = Requirement(spec)
    extras = tuple(sorted(requested.extras))
    if requested.url:
        return requested.name, _Dependency("", extras=extras, url=requested.url)
    return requested.name, _Dependency(str(requested.specifier) or "*", extras=extras, index=index)


def _collected(requested: Iterator[tuple[str, _Dependency, str]]) -> _Dependencies:
    """The dependencies by name. If a package is requested twice, both apply."""
    found: dict[str, _Wanted] = {}
    for name, dependency, reason in requested:
        known = found.get(name)
        if known is None:
            found[name] = _Wanted(dependency, (reason,))
        else:
            found[name] = _Wanted(_both(known.dependency, dependency), tuple(dict.fromkeys((*known.reasons, reason))))
    return found


def _both(one: _Dependency, other: _Dependency) -> _Dependency:
    versions = dict.fromkeys(it.version for it in (one, other) if it.version not in ("", "*"))
    return _Dependency(
        ",".join(versions) or one.version,
        one.build or other.build,
        tuple(sorted({*one.extras, *other.extras})),
        one.channel or other.channel,
        one.index or other.index,
        one.url or other.url,
    )


def _tables(name: str, requested: Mapping[str, _Dependencies]) -> Iterator[str]:
    """One table with the common requirements of all platforms, and one for each platform with the rest."""
    first = next(iter(requested.values()))
    shared = {
        package: it
        for package, it in first.items()
        if all(package in other and other[package].dependency == it.dependency for other in requested.values())
    }
    yield from _table(f"[{name}]", shared)
    for platform, dependencies in requested.items():
        own = {package: it for package, it in dependencies.items() if package not in shared}
        yield from _table(f"[target.{platform}.{name}]", own)


def _table(heading: str, dependencies: _Dependencies) -> Iterator[str]:
    if dependencies:
        yield ""
        yield heading
    for package, (dependency, reasons) in dependencies.items():
        yield commented(f"{quoted_key(package)} = {_dependency_text(dependency)}", "; ".join(reasons))


def _dependency_text(dependency: _Dependency) -> str:
    fields = _fields(dependency)
    return value(dependency.version if fields.keys() == {"version"} else fields)


def _fields(dependency: _Dependency) -> dict[str, Value]:
    return {key: it for key, it in dependency._asdict().items() if it}


def _pypi_options(locks: Sequence[Lock]) -> Iterator[str]:
    """The user's own indexes, and pages of links, which are not indexes. Wheels name their indexes themselves."""
    first, named = locks[0], {it.index for lock in locks for it in lock.requested}
    pages = dict.fromkeys(page for lock in locks for page in lock.find_links)
    options: dict[str, Value] = {
        "index-url": "" if first.default_is_plain else checked_url(first.default_index),
        "extra-index-urls": [checked_url(url) for url in first.indexes if url not in named],
        "find-links": [{"url": page} for page in pages],
    }
    given = {key: option for key, option in options.items() if option}
    if given and any(it.by_pip for lock in locks for it in lock.requested if lock.is_unresolved):
        yield ""
        yield "[pypi-options]"
        for key, option in given.items():
            yield f"{key} = {value(option)}"


def _pinned(
    conda: Iterable[tuple[str, Mapping[str, object]]], wheels: Iterable[tuple[str, Mapping[str, object]]]
) -> tuple[Lock, tuple[CondaPackage, ...]]:
    """The pins in dependencies of both kinds, each given as a table. The rest is open in the lock."""
    packages, by_pip = [_package(*it) for it in sorted(conda, key=_first)], sorted(wheels, key=_first)
    lock = read_lines("\n".join(_requirement(*it) for it in by_pip), "")
    indexes = {
        normalized(name): without_secrets(_text(it, "index")).rstrip("/") for name, it in by_pip if "index" in it
    }
    unpinned = [it.name for it in packages if not it.version]
    left_open = (Open(f"{shown(name)} is not pinned to one version", name, of_conda=True) for name in unpinned)
    return lock._replace(
        pins=tuple(it._replace(index_url=indexes.get(it.name, it.index_url)) for it in lock.pins),
        open=(*left_open, *lock.open),
    ), tuple(it for it in packages if it.version)


def _below(table: Mapping[str, object], key: str) -> Mapping[str, object]:
    return _read_table(table.get(key))


def _first(dependency: tuple[str, object]) -> str:
    return dependency[0]


def _read(document: Mapping[str, object], platform: Platform, key: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The requirements on each package, as a table. Invalid names are skipped."""
    for package, requested in _merged(document, platform, key).items():
        if is_name(package) or (key == "dependencies" and _CONDA_NAME.match(package)):
            yield package, {"version": requested} if isinstance(requested, str) else _read_table(requested)


def _merged(document: Mapping[str, object], platform: Platform, *keys: str) -> dict[str, object]:
    """The table under ``keys``, with the platform's entries replacing the common ones."""
    targets = _read_table(document.get("target"))
    families = ("win",) if platform.is_windows else ("unix", platform.partition("-")[0])
    found: dict[str, object] = {}
    for part in (document, *(_read_table(targets.get(name)) for name in (*families, platform))):
        below: Mapping[str, object] = reduce(_below, keys, part)
        found.update(below)
    return found


def _package(name: str, requested: Mapping[str, object]) -> CondaPackage:
    """A conda package, with the version "" if it is not pinned."""
    pin = _PINNED.match(_text(requested, "version").strip())
    channel = without_secrets(_text(requested, "channel"))
    return CondaPackage(name, "" if pin is None else pin[1], _text(requested, "build"), "", "", channel=channel)


def _requirement(name: str, requested: Mapping[str, object]) -> str:
    """A wheel as a requirement of pip, by address if it has one."""
    extras = ",".join(it for it in _list(requested.get("extras")) if isinstance(it, str))
    project = f"{name}[{extras}]" if extras else name
    version, address = _text(requested, "version").strip(), _text(requested, "url")
    bare = "==" if _BARE_VERSION.match(version) else ""
    return f"{project} @ {address}" if address else f"{project}{bare}{'' if version == '*' else version}"


def _named(entry: object, key: str) -> str:
    """A platform or a channel, given by name or by a table with the name."""
    return entry if isinstance(entry, str) else _text(_read_table(entry), key)


def _read_table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _text(table: Mapping[str, object], key: str) -> str:
    found = table.get(key)
    return found if isinstance(found, str) and found.isprintable() else ""
