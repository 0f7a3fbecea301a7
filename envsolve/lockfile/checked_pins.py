"""Check pins before writing them into a lock: secure hashes, on one line each, without credentials.

An index is not trusted. A name or an address that could start another line of a requirements file, and with it another
requirement or option, is refused here, before any format is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError
from envsolve.model.package import Hashes, PackageFile, Pin
from envsolve.model.reference import EDITABLE, AddressKind, kind_of

_NAME = r"[a-z0-9]+(?:-[a-z0-9]+)*\Z"
"""PEP 503, after normalization."""
_VERSION = r"[0-9A-Za-z][0-9A-Za-z.!+_-]*\Z"
"""The characters that PEP 440 allows."""
_FILE_NAME = r"[^/\\\x00-\x1f\x7f]+\Z"
_DIGITS = {"sha256": 64, "sha384": 96, "sha512": 128}
"""The algorithms that pip accepts for --require-hashes (pip's STRONG_HASHES) and their numbers of hexadecimal
digits."""
STRONG = tuple(_DIGITS)
_HEXADECIMAL = r"[0-9a-f]+\Z"
_SOUND_URL = r"[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9_.~:/?#\[\]!&()*+,;=%-]+\Z"
_URL = r"(?s)[A-Za-z][A-Za-z0-9+.-]*://.+\Z"
_PATH = r"""(?!.* (?: |-|\Z))[^\x00-\x1f\x7f"'`;#$ ][^\x00-\x1f\x7f"'`;#$]*\Z"""
"""Only single spaces within the path, without a hyphen after them, which pip would read as an option."""
_NOT_OF_A_URL = r"[^A-Za-z0-9_.~:/?#\[\]@!$&()*+,;=%-]"
"""What RFC 3986 excludes, and the quote, which has a meaning in a requirements file."""


def checked_pins(pins: Iterable[Pin]) -> Iterator[Pin]:
    """Yield ``pins`` by name, each with at least one file. A pin given by address may have no version.

    Raises OutsideError ``unsound-package`` if a name or a version is invalid in a lock, ``no-hash`` for a pin without
    any file.
    """
    for pin in sorted(pins, key=lambda pin: pin.name):
        if not re.match(_NAME, pin.name):
            raise _invalid(f"{pin.name!r} is not a normalized package name")
        if not re.match(_VERSION, pin.version) and (pin.version or pin.index_url is not None):
            raise _invalid(f"{pin.version!r} is not a version of {pin.name}")
        if not pin.files:
            raise _without_hash(pin, f"{pin.name} {pin.version}, which has no file")
        yield pin


def strong_hashes(pin: Pin, file: PackageFile) -> Hashes:
    """Return the secure digests of ``file``, sorted.

    Raises OutsideError ``no-hash`` if there is none: md5 and sha1 are not secure.
    """
    strong = {algorithm: digest for algorithm, digest in file.hashes if is_strong(algorithm, digest)}
    if not strong:
        raise _without_hash(pin, repr(file.name))
    return tuple(sorted(strong.items()))


def is_strong(algorithm: str, digest: str) -> bool:
    """Whether a digest is of a secure algorithm and valid for it."""
    return len(digest) == _DIGITS.get(algorithm) and re.match(_HEXADECIMAL, digest) is not None


def checked_file_name(file: PackageFile) -> str:
    """Return the name of ``file``. Raises OutsideError ``unsound-package`` if it is a path or breaks its line."""
    if not re.match(_FILE_NAME, file.name):
        raise _invalid(f"{file.name!r} is not a file name")
    return file.name


def checked_url(url: str) -> str:
    """Return ``url`` without secrets, and percent-encoded where it could end its line, a quote or an option.

    Raises OutsideError ``unsound-package`` if it is not an absolute address.
    """
    if re.match(_SOUND_URL, url):
        return url
    if not re.match(_URL, url):
        raise _invalid(f"{url!r} is not an absolute URL")
    return without_secrets(re.sub(_NOT_OF_A_URL, _percent_encoded, url))


def checked_address(url: str) -> str:
    """Return the address of a file, repository or directory for a lock. Raises OutsideError ``unsound-package``.

    The path of a directory has no characters that end a line, or that have a meaning for a shell or a requirements
    file.
    """
    if kind_of(url) is not AddressKind.FOLDER:
        return checked_url(url)
    path = url.removesuffix(EDITABLE)
    if not re.match(_PATH, path):
        raise _invalid(f"{path!r} has characters that a requirements file cannot have in a path")
    return url


def _percent_encoded(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace"))


def _invalid(what: str) -> OutsideError:
    hint = Hint("remove the package, or use another index for it")
    return OutsideError("unsound-package", f"{what}: it cannot be locked", hints=(hint,))


def _without_hash(pin: Pin, what: str) -> OutsideError:
    fallback = "its address" if pin.index_url is None else "an unnamed index"
    index = checked_url(pin.index_url) if pin.index_url else fallback
    message = f"no sha256, sha384 or sha512 for {what}, and a lock needs one"
    cause = (f"{pin.name} {pin.version} is from {index}",)
    hint = Hint(f"use an index with hashes for {pin.name}")
    return OutsideError("no-hash", message, cause, (hint,))
