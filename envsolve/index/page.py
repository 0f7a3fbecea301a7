"""The page of a project, as JSON (PEP 691) or HTML (PEP 503), as files by version.

A page names up to thousands of files, of which a lock looks at a few: files stay plain tuples in the order of
PackageFile's fields until somebody wants one, and the address of each stays as the page has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import OutsideError
from envsolve.model.names import normalized
from envsolve.model.package import Hashes
from envsolve.model.version_order import Key, key_of

ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
"""What an index is asked for: JSON, which tells more, or whatever it has."""
_JSON = ("application/vnd.pypi.simple.v1+json", "application/vnd.pypi.simple.latest+json", "application/json")
_SDIST_ENDINGS = (".tar.gz", ".zip")
_WHEEL_PARTS = (5, 6)

RawFile = tuple[str, str, Hashes, int | None, str | None, str | None, str | None, Hashes | None]
"""The fields of a PackageFile, its address still as the page wrote it."""


class Listing(NamedTuple):
    """What an index has of one project: its versions in ascending order, and the files of each.

    ``base_url`` is the address that relative addresses on the page start from.
    """

    name: str
    base_url: str
    versions: tuple[str, ...]
    files: tuple[tuple[RawFile, ...], ...]


def read_page(name: str, body: bytes, content_type: str, url: str) -> Listing:
    """The files of the project ``name`` on a page that came from ``url``.

    Files of other projects, of unknown kinds and with names that are no file names are left out, as installers do.
    Raises OutsideError where the page is neither JSON nor HTML of a package index.
    """
    if is_json(content_type):
        base_url, raw = url, _from_json(name, body, url)
    else:
        base_url, raw = _from_html(name, body, url)
    return _listing(name, base_url, raw)


def is_json(content_type: str) -> bool:
    """Whether a page of this type is JSON; anything else is read as HTML."""
    return content_type.partition(";")[0].strip().lower() in _JSON


def _listing(name: str, base_url: str, files: Iterable[RawFile]) -> Listing:
    found: dict[str, list[RawFile]] = {}
    for file in files:
        version = version_of(name, file[0])
        if version is None:
            continue
        if version in found:
            found[version].append(file)
        else:
            found[version] = [file]
    by_key: dict[Key, tuple[str, list[RawFile]]] = {}
    for version, its_files in found.items():
        key = key_of(version)
        if key is None:
            continue
        if key in by_key:
            by_key[key][1].extend(its_files)
        else:
            by_key[key] = (version, its_files)
    ordered = [by_key[key] for key in sorted(by_key)]
    return Listing(name, base_url, tuple(text for text, _ in ordered), tuple(tuple(files) for _, files in ordered))


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


def _from_json(name: str, body: bytes, url: str) -> list[RawFile]:
    import json

    try:
        page = json.loads(body)
        if page.get("meta", {}).get("api-version", "1.0").partition(".")[0] != "1":
            raise ValueError("it uses a newer version of the simple API than envsolve supports")
        return [raw_file(file) for file in page["files"]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _no_page(name, url, f"its JSON is not that of an index page ({type(error).__name__}: {error})") from None


def raw_file(file: dict[str, Any]) -> RawFile:
    """One entry of the list of files. Raises KeyError, TypeError or AttributeError where it is none."""
    name, url, size = file["filename"], file["url"], file.get("size")
    uploaded, requires_python = file.get("upload-time"), file.get("requires-python")
    if not (isinstance(name, str) and isinstance(url, str) and isinstance(size, int | None)):
        raise TypeError("a file whose name or URL is not a string, or whose size is not a number")
    if not (isinstance(uploaded, str | None) and isinstance(requires_python, str | None)):
        raise TypeError(f"{name} has an upload time or a requires-python that is not a string")
    hashes = _hashes(file["hashes"])
    return (name, url, hashes, size, uploaded, requires_python, _yanked(file.get("yanked")), _metadata(file))


def _hashes(stated: dict[str, Any]) -> Hashes:
    found = tuple(stated.items())
    for algorithm, digest in found:
        if not isinstance(digest, str):
            raise TypeError(f"a {algorithm} that is not a string")
    return found


def _yanked(value: object) -> str | None:
    return None if value is None or value is False else value if isinstance(value, str) else ""


def _metadata(file: dict[str, Any]) -> Hashes | None:
    """PEP 714: the key was renamed, and older indexes still write the old one."""
    value = file.get("core-metadata")
    if value is None:
        value = file.get("dist-info-metadata", file.get("data-dist-info-metadata"))
    if isinstance(value, dict):
        return _hashes(value)
    return () if value is True else None


def _from_html(name: str, body: bytes, url: str) -> tuple[str, list[RawFile]]:
    from envsolve.index.html_page import read_links

    try:
        base_url, links, is_page = read_links(body.decode("utf-8", "replace"), url)
    except (ValueError, AssertionError) as error:  # the second is how HTMLParser refuses some marked sections
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
    """Whether a page may name ``url``: over the web always, to a folder of this machine from another one only."""
    scheme = url.partition(":")[0].lower()
    return scheme in ("http", "https") or (scheme == "file" and page_url.startswith("file:"))


def _no_page(name: str, url: str, reason: str) -> OutsideError:
    return OutsideError("index-page-invalid", f"the page of {name} at {without_secrets(url)} cannot be read: {reason}")
