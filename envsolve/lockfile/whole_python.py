"""A Python lock that is there already, whole: what a requirements file or a pylock.toml says of every package.

Read is what a lock is: exact pins, by any tool. What leaves something to be decided is refused, as nothing is solved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.held_pins import pin_of
from envsolve.lockfile.recorded import Comments, comments_of
from envsolve.lockfile.text_file import shown
from envsolve.lockfile.whole_conda import NotWholeError
from envsolve.model.names import is_name, normalized
from envsolve.model.need import check_marker
from envsolve.model.package import Hashes, PackageFile
from envsolve.model.requirement_line import hashes_of, logical_lines

_DIRECT = re.compile(
    r"""([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*@\s*(\S+)
        \s*(?:\s;(.*?))?((?:\s+--hash[=\s]\S+)*)\s*\Z""",
    re.VERBOSE,
)
_OPTION = re.compile(r"(--?[A-Za-z-]+)(?:\s*=\s*|\s+|\Z)(.*)\Z")
_INDEX, _EXTRA_INDEX = ("-i", "--index-url"), ("--extra-index-url",)
_HARMLESS = ("--require-hashes", "--only-binary", "--prefer-binary", "--pre", "--trusted-host", "--use-feature")
"""What does not change which files exact pins with hashes are, or is about the connection alone."""
_EXTRAS = re.compile(r"#.* \[")
_FROM = re.compile(r"\s*# from (\S+)\Z")
_VIA = re.compile(r"\s*# via(?: (.*\S))?\s*\Z")
_MORE_VIA = re.compile(r"\s*#   (.*\S)\s*\Z")
_BECAUSE = re.compile(r"\s*# because: (.*\S)\s*\Z")
_GROUPS = re.compile(r"\b(?:extras|dependency_groups)\b")


class WholePin(NamedTuple):
    """One package: normalized name, version as written, and what the file says of it.

    ``hashes`` are ``sha256:0a...``, sorted; ``files`` are those that it names with their addresses. ``url`` is where a
    direct reference is. ``index_url`` is the index it is from, None where the file does not say.
    """

    name: str
    version: str
    hashes: tuple[str, ...] = ()
    files: tuple[PackageFile, ...] = ()
    url: str | None = None
    index_url: str | None = None
    via: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    marker: str = ""


class WholePython(NamedTuple):
    """A lock. ``facts`` are those that envsolve recorded, None where another tool wrote it.

    ``index_url`` and ``extra_index_urls`` are those that it names, ``requires_python`` the Pythons it is for.
    """

    pins: tuple[WholePin, ...]
    comments: Comments
    facts: Mapping[str, object] | None = None
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    requires_python: str = ""


def requirements_in(text: str, facts: Mapping[str, object] | None) -> WholePython:
    """What a requirements file says. Raises FileError for what is no line of one, NotWholeError for what pins nothing.

    pip-tools, uv and envsolve write below a package what requires it, and uv and envsolve where it is from.
    """
    pins: list[WholePin] = []
    indexes: list[str] = []
    extra: list[str] = []
    in_via = False
    for _, content, comment in logical_lines(text):
        if not content:
            in_via = bool(pins) and _told(pins, comment, in_via=in_via)
        elif content.startswith("-"):
            _option(content, indexes, extra)
        else:
            pins.append(_pin(content))
            in_via = _told(pins, comment, in_via=False)
    _require_markers(pins)
    return WholePython(
        tuple(_with_requires(pins)),
        comments_of(text),
        facts,
        without_secrets(indexes[-1]).rstrip("/") if indexes else None,
        tuple(dict.fromkeys(without_secrets(url).rstrip("/") for url in extra)),
    )


def pylock_in(document: Mapping[str, Any], text: str, facts: Mapping[str, object] | None) -> WholePython:
    """What a valid pylock.toml says. Raises FileError for what is no marker, NotWholeError for what is no exact pin."""
    pins = [_of_pylock(package) for package in document["packages"]]
    _require_markers(pins)
    requires_python = document.get("requires-python", "")
    return WholePython(tuple(_with_via(pins)), comments_of(text), facts, requires_python=requires_python)


def _require_markers(pins: Sequence[WholePin]) -> None:
    """Raise FileError for what is no marker: it would be written behind a name, where options of pip may stand."""
    for pin in pins:
        try:
            check_marker(pin.marker)
        except ValueError:
            raise FileError(f"the marker of {shown(pin.name)} is none: {shown(pin.marker)}") from None


def _option(content: str, indexes: list[str], extra: list[str]) -> None:
    found = _OPTION.match(content)
    option, value = (found[1], found[2].strip()) if found else (content, "")
    if option in _INDEX:
        indexes.append(value)
    elif option in _EXTRA_INDEX:
        extra.append(value)
    elif option not in _HARMLESS:
        raise NotWholeError(f"it has the option {shown(content)}, which no other format can say")


def _pin(content: str) -> WholePin:
    found = _DIRECT.match(content)
    if found is not None:
        name, url, marker, hashes = found.groups()
        if not url.startswith(("http://", "https://")):
            raise NotWholeError(f"{shown(name)} is from a folder or a repository, which no lock can prove")
        return WholePin(
            normalized(name),
            "",
            tuple(sorted(hashes_of(hashes))),
            url=without_secrets(url),
            marker=(marker or "").strip(),
        )
    pinned = pin_of(content)
    if pinned is None or "*" in pinned[0].version:
        raise NotWholeError(f"{shown(content)} is no one version")
    pin, marker = pinned
    return WholePin(pin.name, pin.version, pin.hashes, marker=marker)


def _told(pins: list[WholePin], line: str, *, in_via: bool) -> bool:
    """Add to the last pin what a comment says of it; whether the next may go on with what requires it."""
    pin = pins[-1]
    via, because, index = _VIA.match(line), _BECAUSE.match(line), _FROM.match(line)
    more = _MORE_VIA.match(line) if in_via else None
    if via is not None:
        pins[-1] = pin._replace(via=(*pin.via, *filter(None, (via[1],))))
        return via[1] is None
    if more is not None:
        pins[-1] = pin._replace(via=(*pin.via, more[1]))
        return True
    if because is not None:
        pins[-1] = pin._replace(because=(*pin.because, because[1]))
    elif index is not None:
        pins[-1] = pin._replace(index_url=without_secrets(index[1]).rstrip("/"))
    return False


def _with_requires(pins: Sequence[WholePin]) -> Iterator[WholePin]:
    """What each requires: what says that it is there because of it."""
    names = {pin.name for pin in pins}
    requires: dict[str, set[str]] = {}
    for pin in pins:
        for source in pin.via:
            name = normalized(source.partition("[")[0])
            if is_name(source.partition("[")[0]) and name in names:
                requires.setdefault(name, set()).add(pin.name)
    for pin in pins:
        yield pin._replace(requires=tuple(sorted(requires.get(pin.name, ()))))


def _with_via(pins: Sequence[WholePin]) -> Iterator[WholePin]:
    """What requires each, where the file says it of others alone."""
    via: dict[str, set[str]] = {}
    for pin in pins:
        for name in pin.requires:
            via.setdefault(name, set()).add(pin.name)
    for pin in pins:
        yield pin if pin.via else pin._replace(via=tuple(sorted(via.get(pin.name, ()))))


def _of_pylock(package: Mapping[str, Any]) -> WholePin:
    name, marker = str(package["name"]), str(package.get("marker", ""))
    if not is_name(name):
        raise FileError(f"{shown(name)} is no name of a package")
    if "vcs" in package or "directory" in package:
        raise NotWholeError(f"{shown(name)} is from a folder or a repository, which no requirements file can prove")
    if _GROUPS.search(marker):
        raise NotWholeError(f"{shown(name)} is for an extra or a group alone, and requirements know neither")
    ours = package.get("tool", {}).get("envsolve", {})
    archive = package.get("archive")
    files = [package["sdist"]] if "sdist" in package else []
    files = [_file(it) for it in (*package.get("wheels", ()), *files)]
    if archive is None and not files:
        raise NotWholeError(f"{shown(name)} has no file")
    index = package.get("index")
    pin = WholePin(
        normalized(name),
        str(package.get("version", "")),
        files=tuple(files),
        index_url=None if index is None else without_secrets(str(index)).rstrip("/"),
        via=tuple(map(str, ours.get("via", ()))),
        because=tuple(map(str, ours.get("because", ()))),
        requires=tuple(sorted({normalized(str(it["name"])) for it in package.get("dependencies", ())})),
        requires_python=package.get("requires-python"),
        marker=marker,
    )
    if archive is not None:
        return _archive(pin, archive)
    return pin._replace(hashes=_named(it for file in files for it in file.hashes))


def _archive(pin: WholePin, archive: Mapping[str, Any]) -> WholePin:
    url = str(archive.get("url", ""))
    if "://" not in url:
        raise NotWholeError(f"{shown(pin.name)} is a file of one machine, which no other one has")
    folder = f"#subdirectory={archive['subdirectory']}" if "subdirectory" in archive else ""
    hashes = _named(_hashes(archive["hashes"]))
    return pin._replace(url=without_secrets(url) + folder, hashes=hashes)


def _file(told: Mapping[str, Any]) -> PackageFile:
    url = str(told.get("url", ""))
    uploaded = told.get("upload-time")
    return PackageFile(
        str(told.get("name") or (url or str(told.get("path", ""))).rpartition("/")[2]),
        without_secrets(url),
        _hashes(told["hashes"]),
        told.get("size"),
        None if uploaded is None else str(uploaded),
    )


def _hashes(table: Mapping[str, Any]) -> Hashes:
    return tuple((str(algorithm), str(digest)) for algorithm, digest in table.items())


def _named(hashes: Iterator[tuple[str, str]] | Hashes) -> tuple[str, ...]:
    return tuple(sorted({f"{algorithm}:{digest}" for algorithm, digest in hashes}))
