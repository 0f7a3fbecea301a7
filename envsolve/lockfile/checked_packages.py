"""Check conda packages before writing them into a lock: names, addresses without credentials, real checksums.

A channel is not trusted. A name or an address that could start another line of a file, and with it another package, is
refused here, before any format is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envsolve.errors import Hint, OutsideError
from envsolve.lockfile.checked_pins import checked_url
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z"
_VERSION = r"[A-Za-z0-9_][A-Za-z0-9_.!+%~-]*\Z"
_BUILD = r"[A-Za-z0-9_.+~-]*\Z"
"""A little more than CEP 26 allows: old packages have upper case, and some snapshots a version with ``%21`` for
``!``."""
_ENDINGS = (".conda", ".tar.bz2")
_MD5 = r"[0-9a-f]{32}\Z"
_SHA256 = r"[0-9a-f]{64}\Z"


def checked_packages(packages: Iterable[CondaPackage], *, are_files: bool = True) -> Iterator[CondaPackage]:
    """Yield ``packages`` by name, without invalid checksums.

    ``are_files`` is true if files have to be found and verified.

    Raises OutsideError ``unsound-package`` if a name, a version, a build or an address is invalid in a lock, and
    ``no-hash`` for a package without any checksum.
    """
    for package in sorted(packages, key=lambda package: package.name):
        _check(package)
        if not are_files:
            yield package
            continue
        checked = package._replace(
            url=_url(package),
            md5=package.md5 if package.md5 and re.match(_MD5, package.md5) else None,
            sha256=package.sha256 if package.sha256 and re.match(_SHA256, package.sha256) else None,
        )
        if checked.md5 is None and checked.sha256 is None:
            raise without_hash(package, "md5 or sha256")
        yield checked


def require_platform(platform: str) -> None:
    """Raise OutsideError ``unsound-package`` if the platform of conda packages is unknown."""
    if platform not in tuple(Platform):
        raise _invalid(f"{platform!r} is not a platform of conda packages")


def without_hash(package: CondaPackage, checksum: str) -> OutsideError:
    """Return the error for a package whose channel has no ``checksum`` of it."""
    message = f"{package.file_name!r} has no {checksum}, and a lock needs one"
    channel = checked_url(package.channel) if "://" in package.channel else package.channel
    cause = (f"{package.name} {package.version} is from {channel or checked_url(package.url)}",)
    hint = Hint(f"use a channel with checksums in its repodata for {package.name}")
    return OutsideError("no-hash", message, cause, (hint,))


def _check(package: CondaPackage) -> None:
    if not re.match(_NAME, package.name):
        raise _invalid(f"{package.name!r} is not a conda package name")
    if not re.match(_VERSION, package.version):
        raise _invalid(f"{package.version!r} is not a version of {package.name}")
    if not re.match(_BUILD, package.build):
        raise _invalid(f"{package.build!r} is not a build of {package.name}")


def _url(package: CondaPackage) -> str:
    """Its address, without anything that readers of explicit files take for a variable (CEP 23)."""
    url, _, _ = package.url.partition("#")
    if not url.endswith(_ENDINGS):
        raise _invalid(f"{package.url!r} is not the URL of a conda package")
    return checked_url(url).replace("$", "%24")


def _invalid(what: str) -> OutsideError:
    hint = Hint("remove the package, or use another channel for it")
    return OutsideError("unsound-package", f"{what}: it cannot be locked", hints=(hint,))
