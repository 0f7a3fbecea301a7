"""``--format requirements``: hashed pins that pip, uv and pip-tools install, each with its requesters and reasons.

The file is complete: it names the indexes that it needs, and the hashes of every file that the target may install.
Files of pip-tools, uv and pip can be read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from envsolve.boundary.display import one_line
from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.checked_pins import checked_address, checked_pins, checked_url, strong_hashes
from envsolve.lockfile.facts import commented, facts_of, in_comments, with_facts
from envsolve.lockfile.header import exported_from_in, lock_header, machines_in
from envsolve.lockfile.lock import Lock, Open, bare_files, repository_pin, sorted_pins, version_in
from envsolve.lockfile.text_file import shown
from envsolve.model.names import normalized
from envsolve.model.need import is_marker
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import ARCHIVES, EDITABLE, AddressKind, file_name_in, gives_address, kind_of
from envsolve.model.requirement_line import hashes_of, logical_lines, without_hashes

_PIN = re.compile(
    r"""([A-Za-z0-9][A-Za-z0-9._-]*)    # name
        \s*(?:\[[^\]]*\])?              # extras
        \s*==(?!=)\s*([A-Za-z0-9][A-Za-z0-9.!+_-]*)
        \s*(?:;(.*))?\Z                # marker
    """,
    re.VERBOSE,
)
_DIRECT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*@\s*(\S+)\s*(?:\s;(.*))?\Z")
_FOLDER = re.compile(r"(?:-e )?\s*(?:\.{1,2}(?:[/\\]|\Z|\s)|/|[A-Za-z]:[\\/])")
_NAMED = re.compile(r"#\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*\Z")
"""The name of the project in a directory, which is not in the path."""
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:[\[(<>=!~;@]|\Z)")
_OPTION = re.compile(r"(--?[A-Za-z-]+)(?:\s*=\s*|\s+|\Z)(.*)\Z")
_INDEX, _EXTRA_INDEX, _FIND_LINKS = ("-i", "--index-url"), "--extra-index-url", ("-f", "--find-links")
_HARMLESS = ("--require-hashes", "--only-binary", "--prefer-binary", "--pre", "--trusted-host", "--use-feature")
"""Options that do not change which files exact pins with hashes are, or are only about the connection."""
_FROM = re.compile(r"\s*# from (\S+)\s*\Z")
"""How envsolve, and uv on request, name the index of the pin above."""
_VIA = re.compile(r"\s*# via(?: (.*\S))?\s*\Z")
_MORE_VIA = re.compile(r"\s*#   (.*\S)\s*\Z")
_BECAUSE = re.compile(r"\s*# because: (.*\S)\s*\Z")


def write(lock: Lock) -> str:
    """Return the content of the file, byte for byte the same for the same lock.

    Raises OutsideError ``no-hash`` for a file without a secure hash, ``unsound-package`` for anything that would break
    a line.
    """
    return _text_of(lock.with_digest(_text_of, read))


def read(text: str) -> Lock:
    """Return the lock in a requirements file of any tool. Lines that pin nothing are ``open``.

    Raises FileError for an invalid line, and if envsolve's table is not valid TOML.
    """
    for number, content, _ in logical_lines(text):
        if content and not _is_known(content):
            raise FileError(f"{shown(content)} is not a requirement", number)
    return read_lines(text, text)


def read_lines(lines: str, comments: str) -> Lock:
    """Return the lock in ``lines`` of requirements, with the facts at the top of ``comments``.

    Raises like :func:`read`.
    """
    lock = with_facts(_requirements(lines), in_comments(comments), machines=machines_in(comments))
    if lock.made is not None or not lock.indexes:  # otherwise it may be from any of several indexes
        pins = (pin._replace(index_url=lock.default_index) if pin.index_url == "" else pin for pin in lock.pins)
        lock = lock._replace(pins=tuple(pins))
    return lock._replace(exported_from=exported_from_in(comments))


def pin_of(requirement: str) -> Pin | None:
    """Return the pin in one line of requirements, or None if it pins nothing."""
    found = _PIN.match(without_hashes(requirement))
    if found is None:
        return None
    name, version, marker = found.groups()
    return Pin(normalized(name), version, bare_files(hashes_of(requirement)), "", marker=(marker or "").strip())


def name_of(requirement: str) -> str | None:
    """Return the normalized name in one line of requirements, or None for an option, a path or a bare address."""
    found = _NAME.match(requirement)
    return None if found is None else normalized(found[1])


def lines_of_pins(lock: Lock) -> Iterator[str]:
    """Yield the lines for an installer: the indexes and the pins. Raises OutsideError like :func:`write`."""
    options = index_options(lock)
    if options:
        yield from options
        yield ""
    for pin in checked_pins(lock.pins):
        yield from _requirement(pin, lock.default_index)


def index_options(lock: Lock) -> tuple[str, ...]:
    """Return the options that name the indexes; none if installers use the required one by default."""
    options = [*([] if lock.default_is_plain else [f"--index-url {checked_url(lock.default_index)}"])]
    options += [f"--extra-index-url {checked_url(index)}" for index in lock.indexes]
    options += [f"--find-links {checked_url(place)}" for place in lock.find_links]
    return tuple(dict.fromkeys(options))


def _requirements(text: str) -> Lock:
    """The pins in lines of requirements, without the comments at the top."""
    reading = _Reading()
    for _, content, comment in logical_lines(text):
        reading.take(content, comment)
    return reading.lock()


def _is_known(content: str) -> bool:
    """Whether a requirements file may have the line: an option, a variable, an address, an archive or a requirement."""
    is_archive = content.split(maxsplit=1)[0].endswith(ARCHIVES)  # pip installs such a file from the current directory
    return content.startswith(("-", "$")) or gives_address(content) or is_archive or name_of(content) is not None


class _Reading:
    """The lines of one file, read in order. A comment is about the pin above it."""

    def __init__(self) -> None:
        self._pins: list[Pin] = []
        self._open: list[Open] = []
        self._indexes: list[str] = []
        self._extra: list[str] = []
        self._find_links: list[str] = []
        self._is_about_pin = False
        self._in_via = False

    def take(self, content: str, comment: str) -> None:
        """Read the next line."""
        if _FOLDER.match(content) and _NAMED.match(comment):
            self._folder(content, comment)
        elif content.startswith("-"):
            self._option(content)
        elif content:
            self._requirement(content)
        if comment and self._is_about_pin:
            self._remark(comment)
        elif not comment:
            self._in_via = False

    def lock(self) -> Lock:
        """The lock in the lines read so far."""
        default = _address(self._indexes[-1]) if self._indexes else ""
        return Lock(
            tuple(sorted_pins(self._pins)),
            default_index=default,
            default_is_plain=not default,
            indexes=tuple(dict.fromkeys(map(_address, self._extra))),
            find_links=tuple(dict.fromkeys(map(without_secrets, self._find_links))),
            open=tuple(self._open),
        )

    def _option(self, content: str) -> None:
        self._is_about_pin = self._in_via = False
        found = _OPTION.match(content)
        option, value = (found[1], found[2].strip()) if found else (content, "")
        if option in _INDEX:
            self._indexes.append(value)
        elif option == _EXTRA_INDEX:
            self._extra.append(value)
        elif option in _FIND_LINKS and "://" in value:
            self._find_links.append(value)
        elif option not in _HARMLESS:
            self._open.append(Open(f"it has the option {shown(content)}, which no other format supports"))

    def _folder(self, content: str, comment: str) -> None:
        """Read a directory, whose name is in the comment after it."""
        path, _, marker = content.partition(" ; ")
        is_editable = path.startswith("-e ")
        url = path.removeprefix("-e ").strip() + (EDITABLE if is_editable else "")
        name = comment.removeprefix("#").strip()
        self._add(Pin(normalized(name), "", (PackageFile(file_name_in(url), url),), None, marker=marker.strip()))

    def _requirement(self, content: str) -> None:
        found = pin_of(content) or _direct(content)
        self._add(found or Open(f"{shown(content)} is not pinned to one version", name_of(content)))

    def _add(self, found: Pin | Open) -> None:
        self._in_via = False
        if isinstance(found, Pin) and not is_marker(found.marker):
            found = Open(f"the marker of {shown(found.name)} is none: {shown(found.marker)}", found.name)
        self._is_about_pin = isinstance(found, Pin)
        if isinstance(found, Pin):
            self._pins.append(found)
        else:
            self._open.append(found)

    def _remark(self, line: str) -> None:
        pin = self._pins[-1]
        via, because, index = _VIA.match(line), _BECAUSE.match(line), _FROM.match(line)
        more = _MORE_VIA.match(line) if self._in_via else None
        self._in_via = more is not None or (via is not None and via[1] is None)
        if more is not None or (via is not None and via[1]):
            pin = pin._replace(via=(*pin.via, (more or via)[1]))  # type: ignore[index]  # one of them matched
        elif because is not None:
            pin = pin._replace(because=(*pin.because, because[1]))
        elif index is not None:
            pin = pin._replace(index_url=_address(index[1]))
        self._pins[-1] = pin


def _direct(content: str) -> Pin | Open | None:
    """A package by its address, or None for other lines."""
    found = _DIRECT.match(without_hashes(content))
    if found is None:
        return None
    name, url, marker = found.groups()
    url, name = without_secrets(url), normalized(name)
    if kind_of(url) is AddressKind.REPOSITORY:
        return repository_pin(Pin(name, "", (), None, marker=(marker or "").strip()), url)
    if not url.startswith(("http://", "https://")):
        return Open(f"{shown(name)} is a file or a folder of one machine", name)
    digests = tuple((kind, digest) for kind, _, digest in (it.partition(":") for it in sorted(hashes_of(content))))
    file = PackageFile(file_name_in(url), url, digests)
    return Pin(name, version_in(name, url), (file,), None, marker=(marker or "").strip())


def _address(url: str) -> str:
    return without_secrets(url).rstrip("/")


def _text_of(lock: Lock) -> str:
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: Lock) -> Iterator[str]:
    yield from lock_header(lock)
    if lock.indexes:
        yield "# From several indexes: uv looks into all of them with --index-strategy unsafe-best-match, pip always."
    yield from commented(facts_of(lock))
    yield ""
    yield from lines_of_pins(lock)


def _requirement(pin: Pin, default_index: str) -> Iterator[str]:
    files = [it for it in (pin.files if pin.index_url is not None else pin.files[:1]) if it.is_archive]
    hashes = {f"{algorithm}:{digest}" for file in files for algorithm, digest in strong_hashes(pin, file)}
    requested = f"{pin.name}=={pin.version}" if pin.index_url is not None else _by_address(pin)
    marker = f" ; {one_line(pin.marker)}" if pin.marker else ""
    name = f"  # {pin.name}" if pin.index_url is None and kind_of(pin.files[0].url) is AddressKind.FOLDER else ""
    yield " \\\n".join([f"{requested}{marker}{name}", *(f"    --hash={digest}" for digest in sorted(hashes))])
    yield from _via(pin)
    for reason in pin.because:
        yield f"    {one_line(f'# because: {reason}')}"
    if pin.index_url not in (None, "", default_index):
        yield f"    # from {checked_url(str(pin.index_url))}"


def _by_address(pin: Pin) -> str:
    url = checked_address(pin.files[0].url)
    if kind_of(url) is not AddressKind.FOLDER:
        return f"{pin.name} @ {url}"
    path = url.removesuffix(EDITABLE)
    if path == url:
        return url
    is_url = " " in path and Path(path).is_absolute()  # pip reads -e up to a space, uv a path to the end of the line
    return f"-e {Path(path).as_uri() if is_url else path}"


def _via(pin: Pin) -> Iterator[str]:
    """Who requires a package, as in pip-tools: on the same line for one, else below it."""
    named = sorted({one_line(source) for source in pin.via})
    if len(named) == 1:
        yield f"    # via {named[0]}"
    elif named:
        yield "    # via"
        for source in named:
            yield f"    #   {source}"
