"""Packages of pip as locks of conda packages hold them: with their file, which may be of an index or from anywhere."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.index.page import version_of
from envsolve.lockfile.text_file import shown
from envsolve.model.names import is_name, normalized

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.!+_-]*\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_IN_FRAGMENT = "sha256="


class PipPackage(NamedTuple):
    """One package: normalized name, version as written, and where its file is, without credentials.

    ``is_direct`` says that it was asked for by that address, which may then be one of a repository or a folder.
    ``requires`` is what it asks for, as the file has it: names, or requirements with markers.
    """

    name: str
    version: str
    url: str
    sha256: str | None = None
    index_url: str | None = None
    is_direct: bool = False
    requires: tuple[str, ...] = ()


def pip_package(stated: PipPackage) -> PipPackage:
    """``stated`` with what its address tells where it says nothing, and without credentials.

    Raises FileError where a name, a version or an address is none.
    """
    name, url = normalized(stated.name), without_secrets(stated.url)
    version = stated.version or version_of(name, _file_name(url)) or ""
    sound = is_name(stated.name) and (not version or _VERSION.match(version)) and url.isprintable()
    if not sound:
        raise FileError(f"{shown(stated.name)} is no sound package of pip")
    digests = [stated.sha256 or "", *(part.removeprefix(_IN_FRAGMENT) for part in url.partition("#")[2].split("&"))]
    return stated._replace(
        name=name,
        version=version,
        url=url,
        sha256=next((digest.lower() for digest in digests if _SHA256.match(digest.lower())), None),
        index_url=None if stated.index_url is None else without_secrets(stated.index_url),
    )


def _file_name(url: str) -> str:
    return unquote(re.split(r"[?#]", url, maxsplit=1)[0].rpartition("/")[2])
