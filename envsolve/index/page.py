"""The page of a project, as JSON (PEP 691) or HTML (PEP 503), as versions in ascending order and the files of each.

A page lists up to thousands of files, and a lock needs few of them. All file names are checked, but an entry is parsed
only when its version is needed (this saves 150 MB for 411 packages).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct
from packaging.version import Version

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import OutsideError
from envsolve.model.names import normalized
from envsolve.model.package import Hashes
from envsolve.model.versions import parsed_version

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
"""The header Accept: JSON, which has more fields, or any other form."""
_JSON = ("application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.latest+json", "application/json")
_SDIST_ENDINGS = (".tar.gz", ".zip")
_WHEEL_PARTS = (5, 6)

RawFile = tuple[str, str, Hashes, int | None, str | None, str | None, str | None, Hashes | None]
"""The fields of a PackageFile, with the address as on the page."""


class _About(Struct, frozen=True):
    api_version: str = msgspec.field(default="1.0", name="api-version")


class _File(Struct, rename="kebab", gc=False):
    filename: str
    url: str
    hashes: dict[str, str]
    size: Annotated[int, Meta(ge=0, lt=1 << 60)] | None = None
    upload_time: str | None = None
    requires_python: str | None = None
    yanked: str | bool | None = None
    core_metadata: bool | dict[str, str] | None = None
    dist_info_metadata: bool | dict[str, str] | None = None
    data_dist_info_metadata: bool | dict[str, str] | None = None


class _Page(Struct):
    files: list[Raw]
    meta: _About = _About()


_read_page = msgspec.json.Decoder(_Page).decode
_read_file = msgspec.json.Decoder(_File).decode


class Project:
    """The versions of the project ``name`` in ascending order, and the files of each by ``files``.

    ``url`` is the base of relative addresses on its page. Safe for several threads: at worst, two of them parse the
    same version.
    """

    def __init__(self, name: str, url: str, entries: Mapping[str, Sequence[Raw | RawFile]]) -> None:
        self.name = name
        self.url = url
        self.versions = tuple(entries)
        self._entries = tuple(entries.values())
        self._files: dict[int, tuple[RawFile, ...]] = {}

    def files(self, position: int) -> tuple[RawFile, ...]:
        """The files of one version."""
        found = self._files.get(position)
        if found is None:
            found = tuple(_raw_file(_read_file(it)) if isinstance(it, Raw) else it for it in self._entries[position])
            self._files[position] = found
        return found


def read_page(name: str, body: bytes, content_type: str, url: str) -> Project:
    """The project ``name`` in its page from ``url``.

    Files of other projects, of unknown kinds and with invalid names are ignored, as by installers. Raises OutsideError
    if the page is neither JSON nor HTML of a package index.
    """
    if content_type.partition(";")[0].strip().lower() not in _JSON:
        base_url, files = _from_html(name, body, url)
        return project_of(name, base_url, files)
    try:
        page = _read_page(body)
        if page.meta.api_version.partition(".")[0] != "1":
            raise ValueError("it uses a newer version of the simple API than envsolve supports")
        return Project(name, url, _by_version(name, ((_read_file(it).filename, it) for it in page.files)))
    except (ValueError, RecursionError) as error:
        raise _no_page(name, url, f"its JSON is not that of an index page ({error})") from None


def project_of(name: str, url: str, files: Iterable[RawFile]) -> Project:
    """The project ``name`` with its own files among ``files``."""
    return Project(name, url, _by_version(name, ((it[0], it) for it in files)))


def _by_version(name: str, files: Iterable[tuple[str, Raw | RawFile]]) -> dict[str, list[Raw | RawFile]]:
    """Files by the first spelling of their version, ascending."""
    found: dict[str, list[Raw | RawFile]] = {}
    for file_name, file in files:
        version = version_of(name, file_name)
        if version is not None:
            found.setdefault(version, []).append(file)
    by_key: dict[Version, tuple[str, list[Raw | RawFile]]] = {}
    for version, its_files in found.items():
        key = parsed_version(version)
        if key is not None:
            by_key.setdefault(key, (version, []))[1].extend(its_files)
    return dict(by_key[key] for key in sorted(by_key))


def version_of(name: str, file_name: str) -> str | None:
    """The version in the name of a wheel or a source distribution of ``name``, else None."""
    if file_name.endswith(".whl"):
        parts = file_name.split("-")
        fits = len(parts) in _WHEEL_PARTS and normalized(parts[0]) == name and _is_file_name(file_name)
        return parts[1].replace("_", "-") if fits else None
    for ending in _SDIST_ENDINGS:
        if file_name.endswith(ending):
            return _sdist_version(name, file_name.removesuffix(ending))
    return None


def _is_file_name(text: str) -> bool:
    return "/" not in text and text.isprintable()


def _sdist_version(name: str, stem: str) -> str | None:
    position = stem.rfind("-")
    while position > 0:
        if normalized(stem[:position]) == name:
            return stem[position + 1 :] if _is_file_name(stem) else None
        position = stem.rfind("-", 0, position)
    return None


def _raw_file(file: _File) -> RawFile:
    """The fields of a file. PEP 714 renamed the key of the metadata, and older indexes still use the old one."""
    yanked = "" if file.yanked is True else file.yanked
    stated = (file.core_metadata, file.dist_info_metadata, file.data_dist_info_metadata)
    metadata = next((it for it in stated if it is not None), False)
    return (
        file.filename,
        file.url,
        tuple(file.hashes.items()),
        file.size,
        file.upload_time,
        file.requires_python,
        yanked if isinstance(yanked, str) else None,
        tuple(metadata.items()) if isinstance(metadata, dict) else () if metadata else None,
    )


def _from_html(name: str, body: bytes, url: str) -> tuple[str, list[RawFile]]:
    from envsolve.index.html_page import read_links

    try:
        base_url, links, is_page = read_links(body.decode("utf-8", "replace"), url)
    except (ValueError, AssertionError) as error:  # HTMLParser raises the second for some marked sections
        raise _no_page(name, url, f"its HTML is invalid ({error})") from None
    if not is_page:
        raise _no_page(name, url, "it is neither JSON nor an HTML page of links")
    if not may_lead(url, base_url):
        raise _no_page(name, url, f"its links start from {base_url!r}")
    return base_url, list(_of_links(links))


def _of_links(links: Iterable[tuple[str, dict[str, str | None]]]) -> Iterator[RawFile]:
    from urllib.parse import unquote

    for text, attributes in links:
        address, _, fragment = (attributes.get("href") or "").partition("#")
        metadata = attributes.get("data-core-metadata", attributes.get("data-dist-info-metadata", "false"))
        file_name = unquote(address.partition("?")[0].rstrip("/").rpartition("/")[2]) or text
        yield (
            file_name,
            address,
            _digests(fragment),
            None,
            attributes.get("data-upload-time"),
            attributes.get("data-requires-python"),
            (attributes["data-yanked"] or "") if "data-yanked" in attributes else None,
            None if metadata == "false" else _digests(metadata or ""),
        )


def _digests(text: str) -> Hashes:
    algorithm, _, digest = text.partition("=")
    return ((algorithm, digest.partition("&")[0].lower()),) if digest and algorithm.islower() else ()


def may_lead(page_url: str, url: str) -> bool:
    """Whether a page may link to ``url``: web addresses always, files of this machine only from a local page."""
    scheme = url.partition(":")[0].lower()
    return scheme in ("http", "https") or (scheme == "file" and page_url.startswith("file:"))


def _no_page(name: str, url: str, reason: str) -> OutsideError:
    return OutsideError("index-page-invalid", f"the page of {name} at {without_secrets(url)} cannot be read: {reason}")
