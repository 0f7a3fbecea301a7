"""A manifest of pixi, pixi.toml, read back as a lock of what it pins: its default environment, for one platform.

https://pixi.prefix.dev/latest/reference/pixi_manifest has the tables. People edit these files: what is asked for in no
one version, or in words that are not understood, is left open and is no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.boundary.files import toml_document
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.conda_header import comments_of, facts_on_top
from envsolve.lockfile.conda_locks import assembled
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.requirements_txt import read_lines
from envsolve.lockfile.text_file import shown
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.names import is_name, normalized

_PIN = re.compile(r"(?:==)?([0-9][\w.!+]*?)(?:\.\*)?\Z")
_BARE = re.compile(r"[0-9]")


def read(text: str, platform: Platform) -> Lock | None:
    """What a manifest pins on ``platform``; None where it is for other ones. Raises FileError where it is no TOML."""
    document = toml_document(text)
    workspace = _table(document.get("workspace")) or _table(document.get("project"))
    platforms = [_named(it, "platform") for it in _list(workspace.get("platforms"))]
    if platforms and platform not in platforms:
        return None
    conda = [_package(name, asked) for name, asked in _asked(document, "dependencies", platform)]
    wheels = read_lines("\n".join(_requirements(document, platform)), "")
    indexes = {normalized(name): index for name, index in _indexes(document, platform)}
    left_open = (Open(f"{shown(it.name)} is no one version", it.name, of_conda=True) for it in conda if not it.version)
    bare = wheels._replace(
        pins=tuple(it._replace(index_url=indexes.get(it.name, it.index_url)) for it in wheels.pins),
        open=(*left_open, *wheels.open),
    )
    pinned = [it for it in conda if it.version]
    lock = assembled(bare, platform, pinned, facts_on_top(text, platform), comments_of(text))
    channels = (_named(it, "channel") for it in _list(workspace.get("channels")))
    return lock._replace(channels=tuple(without_secrets(it) for it in channels if it))


def requirements_in(text: str, platform: Platform) -> tuple[str, ...]:
    """The wheels that a manifest asks for on ``platform``, as requirements. Raises FileError where it is no TOML."""
    return tuple(_requirements(toml_document(text), platform))


def _asked(document: Mapping[str, object], key: str, platform: Platform) -> Iterator[tuple[str, Mapping[str, object]]]:
    """What is asked of each package, as a table; what is said of the platform takes the place of the rest.

    A name that no package has, and a text that is no line of one, are passed over.
    """
    targets = _table(document.get("target"))
    families = ("win",) if platform.is_windows else ("unix", platform.partition("-")[0])
    found = dict(_table(document.get(key)))
    for name in (*families, platform):
        found.update(_table(_table(targets.get(name)).get(key)))
    for package, asked in found.items():
        if is_name(package):
            yield package, {"version": asked} if isinstance(asked, str) else _table(asked)


def _package(name: str, asked: Mapping[str, object]) -> CondaPackage:
    """A package of conda; the version is "" where it is not pinned."""
    pin = _PIN.match(_text(asked, "version").strip())
    channel = without_secrets(_text(asked, "channel"))
    return CondaPackage(name, "" if pin is None else pin[1], _text(asked, "build"), "", "", channel=channel)


def _requirements(document: Mapping[str, object], platform: Platform) -> Iterator[str]:
    for name, asked in _asked(document, "pypi-dependencies", platform):
        extras = ",".join(it for it in _list(asked.get("extras")) if isinstance(it, str))
        project = f"{name}[{extras}]" if extras else name
        version = _text(asked, "version").strip()
        address = _text(asked, "url")
        bare = "==" if _BARE.match(version) else ""
        yield f"{project} @ {address}" if address else f"{project}{bare}{'' if version == '*' else version}"


def _indexes(document: Mapping[str, object], platform: Platform) -> Iterator[tuple[str, str]]:
    for name, asked in _asked(document, "pypi-dependencies", platform):
        if "index" in asked:
            yield name, without_secrets(_text(asked, "index")).rstrip("/")


def _named(entry: object, key: str) -> str:
    """A platform or a channel: by its name, or by a table that has it."""
    return entry if isinstance(entry, str) else _text(_table(entry), key)


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _text(table: Mapping[str, object], key: str) -> str:
    found = table.get(key)
    return found if isinstance(found, str) and found.isprintable() else ""
