"""Pip's packages in files of conda packages: each is a file at an address, of an index or of any other place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.version import Version

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.index.fitting import Interpreter
from envsolve.lockfile.checked_pins import is_strong
from envsolve.lockfile.lock import Open, version_in
from envsolve.lockfile.text_file import shown
from envsolve.model.host import Platform
from envsolve.model.names import is_name, normalized
from envsolve.model.need import Markers, parse_need
from envsolve.model.package import PackageFile, Pin
from envsolve.model.reference import file_name_in

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.!+_-]*\Z")
_ARCHIVES = (".whl", ".tar.gz", ".tar.bz2", ".zip")
_SUBDIRECTORY = "subdirectory="


def pin_at(
    name: str,
    version: str,
    url: str,
    digest: str,
    *,
    index_url: str | None = None,
    requires: Sequence[str] = (),
    markers: Markers | None = None,
) -> Pin | Open:
    """Return the package whose file is at ``url``, without credentials, or Open for a directory or a repository.

    ``digest`` is ``sha256:0a...``, or "" if only the address may have one. ``requires`` are names or requirements, of
    which those count whose ``markers`` hold. Raises FileError if a name, a version or an address is invalid.
    """
    url = without_secrets(url)
    address, _, fragment = url.partition("#")
    version = version or version_in(normalized(name), address)
    if not (is_name(name) and (not version or _VERSION.match(version)) and url.isprintable()):
        raise FileError(f"{shown(name)} is not a valid pip package")
    parts = fragment.split("&")
    hashes = dict(_digests((digest, *(part.replace("=", ":", 1) for part in parts))))
    file = file_name_in(address)
    if not url.startswith(("http://", "https://")) or not (hashes or file.endswith(_ARCHIVES)):
        label = f"{normalized(name)} {version}".strip()
        return Open(
            f"{shown(label)} is from a folder or a repository, which no other lock format supports", normalized(name)
        )
    folder = next((f"#{it}" for it in parts if it.startswith(_SUBDIRECTORY)), "")
    return Pin(
        normalized(name),
        version,
        (PackageFile(file, address + folder, tuple(hashes.items())),),
        None if index_url is None else without_secrets(index_url),
        requires=tuple(sorted(set(_required(requires, markers or Markers({}))))),
    )


def markers_of(platform: str, python: str) -> Markers:
    """Return the marker values on a platform for a version of Python; none if envsolve does not know one of them."""
    try:
        major, minor, patch = (*Version(python).release, 0, 0)[:3]
        return Markers(Interpreter((major, minor, patch), Platform(platform), None).marker_values())
    except ValueError:
        return Markers({})


def _digests(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The first secure digest among ``texts``."""
    for text in texts:
        kind, _, digest = text.lower().partition(":")
        if is_strong(kind, digest):
            yield kind, digest
            return


def _required(requires: Sequence[str], markers: Markers) -> Iterator[str]:
    """The names of a package's requirements on the platform. No extras are requested."""
    for line in requires:
        try:
            need = parse_need(line)
            if markers.holds(need.marker):
                yield need.name
        except ValueError:
            continue
