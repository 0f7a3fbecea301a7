"""What an index has of one project, as far as somebody looks.

The pages of a lock name hundreds of thousands of files (138 MB of JSON for 411 packages, measured), of which it needs a
few of each project. So a page stays as it came, packed, but for the few that are looked into again; its versions are
read at once, from the list that PEP 700 puts on JSON pages, and files where their version is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from envsolve.errors import OutsideError
from envsolve.index.page import Listing, RawFile, is_json, raw_file, read_page, version_of
from envsolve.model.version_order import Key, key_of

if TYPE_CHECKING:
    from json import JSONDecoder

_VERSIONS = re.compile(rb'"versions":\s*\Z')
_API = b'"api-version"'
_KNOWN_API = re.compile(rb':\s*"1(?:\.\d+)?"')
_HEAD = 1000
"""Bytes; what is said of a page stands before its files or behind them."""
_BEFORE_LIST = 64
_MOST_LISTS = 10_000
"""On a page, which has a list or two beside those of files that have some; more are counted by reading all of it."""
_FILES = re.compile(rb'"files":\s*\[\s*\{')
_AFTER_VERSION = (b"-", b".tar.gz", b".zip")
"""What follows the version in the name of a wheel, or of a source distribution."""
_FILE_NAME = re.compile(rb'"filename":\s*"(?:[^"-]*-([^"-]*)-[^"]*\.whl|([^"]*\.(?:tar\.gz|zip)))"')
"""The version of a wheel, or the whole name of a source distribution, whose version has no such place of its own."""
_BEFORE_OBJECT = (b"},{", b"}, {", b"[{", b"[ {")
_AFTER_OBJECT = (b"},{", b"}, {", b"}]", b"} ]")
# What stands between two objects comes first: only the first object has nothing before it, only the last nothing after.
_LONGEST_ENTRY = 8192
"""Bytes; an entry has 600 to 900. Longer ones are found by reading the whole page."""
_FEW = 40
"""Versions looked up one by one, after which reading the whole page is less work."""
Places = Mapping[bytes, list[int]]
"""Where on a page the files of a version are named, by the version as their names write it."""


class Project:
    """The versions of a project in ascending order, and the files of each.

    For the first version the page is searched; for further ones, an index of it tells where their files are. Most pages
    are asked for one version, and the index takes as long as two searches; NumPy's page is asked for nine.

    ``spellings`` are further ways in which the page writes a version. ``unpack`` gives the page once more where a
    version is looked at that was not before, and the page was let go of. ``is_sound`` is False once the page turned out
    to be none. Safe for several threads: at worst two of them read the same version.
    """

    __slots__ = (
        *("_body", "_by_key", "_content_type", "_files", "_indexed", "_listing", "_unpack", "_was_searched"),
        *("is_sound", "name", "spellings", "url", "versions"),
    )

    def __init__(
        self,
        name: str,
        url: str,
        content_type: str,
        unpack: Callable[[], bytes],
        *,
        body: bytes | None = None,
        versions: tuple[str, ...] | None = None,
        spellings: Mapping[str, tuple[str, ...]] | None = None,
        files: Mapping[int, tuple[RawFile, ...]] | None = None,
    ) -> None:
        self.name = name
        self.url = url
        self.is_sound = True
        self._content_type = content_type
        self._unpack = unpack
        self._files = dict(files or {})
        self._listing: Listing | None = None
        self._by_key: dict[Key | None, tuple[RawFile, ...]] | None = None
        self._indexed: tuple[bytes, Places] | None = None
        self._was_searched = False
        self.spellings = dict(spellings or {})
        self._body = body
        if versions is None:
            self._body = unpack() if body is None else body
            versions = self._stated_versions() or self._whole().versions
        self.versions = versions

    @property
    def seen(self) -> Mapping[int, tuple[RawFile, ...]]:
        """The files of the versions that were looked at, by the position of the version."""
        return dict(self._files)

    def files(self, position: int) -> tuple[RawFile, ...]:
        """The files of one version. Raises OutsideError where the page turns out not to be one."""
        found = self._files.get(position)
        if found is None:
            found = self._files[position] = self._look_up(position)
        return found

    def fold(self) -> None:
        """Let go of the unpacked page; a version that is not looked up yet unpacks it again.

        A page that was indexed stays as long as somebody may look into it.
        """
        self._body = None
        if self._listing is not None:
            self._indexed = None

    def _look_up(self, position: int) -> tuple[RawFile, ...]:
        if self._listing is None and len(self._files) < _FEW and is_json(self._content_type):
            body, places = self._page()
            text = self.versions[position]
            stated = (text, *self.spellings.get(text, ()))
            spelled = dict.fromkeys(
                it for each in stated for it in (each, each.replace("-", "_"))
            )  # as wheels write it
            found = [_files_of(body, self.name, each, _named(body, places, each)) for each in spelled]
            if all(found):
                return tuple({file[0]: file for files in found for file in files}.values())
        return self._of_whole(position)

    def _page(self) -> tuple[bytes, Places | None]:
        """The page, and its index from the second look on. Others may fold it meanwhile, so each is read once."""
        indexed = self._indexed
        if indexed is not None:
            return indexed
        body = self._body
        if body is None:
            body = self._body = self._unpack()
        if not self._was_searched:
            self._was_searched = True
            return body, None
        indexed = self._indexed = body, _places(body, self.name)
        return indexed

    def _of_whole(self, position: int) -> tuple[RawFile, ...]:
        listing = self._whole()
        if listing.versions is self.versions:
            return listing.files[position]
        if self._by_key is None:
            self._by_key = {key_of(text): files for text, files in zip(listing.versions, listing.files, strict=True)}
        return self._by_key.get(key_of(self.versions[position]), ())

    def _whole(self) -> Listing:
        if self._listing is None:
            body = self._body if self._indexed is None else self._indexed[0]
            body = self._unpack() if body is None else body
            try:
                self._listing = read_page(self.name, body, self._content_type, self.url)
            except OutsideError:
                self.is_sound = False
                raise
            self.url = self._listing.base_url
        return self._listing

    def _stated_versions(self) -> tuple[str, ...] | None:
        """What the page itself says its versions are, ascending; None where it does not say, or not in this way."""
        if self._body is None or not is_json(self._content_type) or not _FILES.search(self._body):
            return None
        if not self._body.rstrip().endswith(b"}") or not _has_known_api(self._body):
            return None
        start = _only_list_of_versions(self._body)
        if start is None:
            return None
        import json

        try:
            end = self._body.index(b"]", start) + 1
            texts = json.loads(self._body[start:end])
            keyed: dict[Key, list[str]] = {}
            for text in texts:
                key = key_of(text)
                if key is not None:
                    keyed.setdefault(key, []).append(text)
        except (ValueError, TypeError):
            return None
        self.spellings = {texts[0]: tuple(texts[1:]) for texts in keyed.values() if len(texts) > 1}
        return tuple(keyed[key][0] for key in sorted(keyed))


def _has_known_api(body: bytes) -> bool:
    position = body.find(_API, 0, _HEAD)
    position = body.rfind(_API) if position == -1 else position
    return position != -1 and _KNOWN_API.match(body, position + len(_API)) is not None


def _only_list_of_versions(body: bytes) -> int | None:
    """Where the one list called ``versions`` begins; None where there is none, or more than one.

    Lists are found by their bracket, of which a page has few: that takes a tenth of the time of an expression.
    """
    found: list[int] = []
    position = -1
    for _ in range(_MOST_LISTS):
        position = body.find(b"[", position + 1)
        if position == -1:
            return found[0] if len(found) == 1 else None
        if _VERSIONS.search(body, max(position - _BEFORE_LIST, 0), position):
            found.append(position)
    return None


@cache
def _decoder() -> JSONDecoder:
    """Asked directly, as json.loads spends half of its time on a short text around it."""
    from json import JSONDecoder

    return JSONDecoder()


def _named(body: bytes, places: Places | None, version: str) -> Iterable[int]:
    """Where files of ``version`` are named; and where something only looks like it."""
    return _searched(body, version) if places is None else places.get(version.encode(), ())


def _searched(body: bytes, version: str) -> Iterator[int]:
    """Where ``version`` stands in the name or the address of a file."""
    needle = b"-" + version.encode()
    position = body.find(needle)
    while position != -1:
        after = position + len(needle)
        if body.startswith(_AFTER_VERSION, after):
            yield position
        position = body.find(needle, after)


def _places(body: bytes, name: str) -> Places:
    """The index of a page of ``name``."""
    found: dict[bytes, list[int]] = {}
    for match in _FILE_NAME.finditer(body):
        version, of_source = match.groups()
        if version is None:
            version = (version_of(name, of_source.decode("utf-8", "replace")) or "").encode()
        if version in found:
            found[version].append(match.start())
        else:
            found[version] = [match.start()]
    return found


def _files_of(body: bytes, name: str, version: str, places: Iterable[int]) -> tuple[RawFile, ...]:
    """The files of one version, named at ``places``; () where they are not to be found in this way."""
    found: dict[str, RawFile] = {}
    key, end = key_of(version), 0
    for place in places:
        if place < end:  # a file says its version in its name and in its address
            continue
        start, end = _object_around(body, place)
        raw = _decoded(body[start:end])
        if raw is None:
            return ()
        its_version = version_of(name, raw[0])
        if its_version is not None and key_of(its_version) == key:
            found[raw[0]] = raw
    return tuple(found.values())


def _object_around(body: bytes, position: int) -> tuple[int, int]:
    """Where the object in the list of files begins and ends that ``position`` lies in; an empty stretch where unclear.

    Objects within it are followed by a name, never by another object.
    """
    first, last = max(position - _LONGEST_ENTRY, 0), position + _LONGEST_ENTRY
    start = next((at + len(it) - 1 for it in _BEFORE_OBJECT if (at := body.rfind(it, first, position)) != -1), None)
    end = next((at + 1 for it in _AFTER_OBJECT if (at := body.find(it, position, last)) != -1), None)
    return (position, position) if start is None or end is None else (start, end)


def _decoded(text: bytes) -> RawFile | None:
    """One file; None where the piece cut out is not one, because a text in it looks like a boundary."""
    try:
        file, end = _decoder().raw_decode(words := text.decode())
        return raw_file(file) if end == len(words) else None
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
