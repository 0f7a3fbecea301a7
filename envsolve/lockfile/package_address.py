"""What the address of a conda package says about it, for lock files that have nothing else, after validation.

``https://conda.anaconda.org/conda-forge/linux-64/bzip2-1.0.8-hda65f42_8.conda`` has the channel, the platform, and
name, version and build. Only the name may contain a hyphen (CEP 26). https://conda.org/learn/ceps/cep-0026
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.lockfile.text_file import shown
from envsolve.model.conda import CondaPackage

_FILE = re.compile(r"([A-Za-z0-9_][A-Za-z0-9._-]*)-([^-]+)-([^-]+)\.(?:conda|tar\.bz2)\Z")
_LONGEST = 2000
_NAME = re.compile(r"[a-z0-9_][a-z0-9._-]*\Z")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z._+!-]*\Z")
_BUILD = re.compile(r"[0-9A-Za-z_.+]*\Z")
_SUBDIR = re.compile(r"(?:noarch|[a-z0-9]+-[a-z0-9]+)?\Z")
_NOARCH = "noarch"
_PLACE = re.compile(r"[^\s\"'<>\\^`{|}]+\Z")
"""An address or a path that needs no quotes. Other characters are percent-encoded in it."""
_DIGITS = {"md5": re.compile(r"[0-9a-f]{32}\Z"), "sha256": re.compile(r"[0-9a-f]{64}\Z")}


def package_of(stated: CondaPackage) -> CondaPackage:
    """Return ``stated`` with missing fields from its address, without credentials and invalid digests.

    The address decides whether a package is for any platform, because old locks state the platform that they are for.
    Raises FileError if a name, a version or an address is invalid: it might start another line of what is written from
    it.
    """
    url = without_secrets(stated.url.partition("#")[0])
    name, version, build, subdir, channel = _parts_of(url)
    package = stated._replace(
        name=(stated.name or name).lower(),
        version=stated.version or version,
        build=stated.build or build,
        subdir=subdir if subdir == _NOARCH else stated.subdir or subdir,
        url=url,
        md5=_digest("md5", stated.md5),
        sha256=_digest("sha256", stated.sha256),
        channel=without_secrets(stated.channel or channel).rstrip("/"),
    )
    if not _is_writable(package):
        raise FileError(f"{shown(stated.name or stated.url)} is not a valid conda package")
    return package


def _parts_of(url: str) -> tuple[str, str, str, str, str]:
    """Name, version, build, platform and channel in an address or a path, each "" if missing."""
    folder, _, file = url.replace("\\", "/").rpartition("/") if len(url) <= _LONGEST else ("", "", "")
    found = _FILE.match(unquote(file))
    name, version, build = ("", "", "") if found is None else found.groups()
    channel, _, subdir = folder.rpartition("/")
    return (
        (name, version, build, subdir, channel) if subdir and _SUBDIR.match(subdir) else (name, version, build, "", "")
    )


def _digest(algorithm: str, text: str | None) -> str | None:
    lowered = (text or "").lower()
    return lowered if _DIGITS[algorithm].match(lowered) else None


def _is_writable(package: CondaPackage) -> bool:
    named = _NAME.match(package.name) and _VERSION.match(package.version) and _BUILD.match(package.build)
    placed = _SUBDIR.match(package.subdir) and _PLACE.match(package.url) and _PLACE.match(package.channel or "-")
    return bool(named and placed and len(package.url) <= _LONGEST) and all(
        map(str.isprintable, (*package.depends, *package.constrains))
    )
