"""Packages made for a test: real files with real hashes, so that an installer could install them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from packaging.utils import canonicalize_name

_LONG_AGO = (2020, 2, 2, 0, 0, 0)


class IndexFile(NamedTuple):
    """A file as an index lists it; with ``_replace`` a test makes the index return less, or wrong data.

    ``content`` is None where the index lists the file and does not have it. ``sha256`` is None where the page has no
    hash, ``metadata_sha256`` where it lists no metadata file, which exists if ``metadata`` does. ``href`` is a wrong
    link on the page.
    """

    name: str
    content: bytes | None = None
    metadata: bytes | None = None
    sha256: str | None = None
    metadata_sha256: str | None = None
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    yanked: str | None = None
    href: str | None = None

    @property
    def is_wheel(self) -> bool:
        """Whether it is a wheel."""
        return self.name.endswith(".whl")


def core_metadata(
    name: str,
    version: str,
    *,
    requires: Iterable[str] = (),
    requires_python: str | None = None,
    extras: Iterable[str] = (),
    more: Iterable[str] = (),
) -> bytes:
    """Core metadata with a description that could be mistaken for headers; ``more`` are further headers."""
    lines = ["Metadata-Version: 2.2", f"Name: {name}", f"Version: {version}"]
    lines += [f"Requires-Python: {requires_python}"] if requires_python is not None else []
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {it}" for it in requires]
    return "\n".join([*lines, *more, "", "A description.", "Requires-Dist: not-a-header", ""]).encode()


def wheel(
    name: str,
    version: str,
    requires: Iterable[str] = (),
    *,
    tags: str = "py3-none-any",
    requires_python: str | None = None,
    extras: Iterable[str] = (),
    build: str = "",
    metadata: bytes | None = None,
    members: Mapping[str, bytes] | None = None,
    upload_time: str | None = None,
    yanked: str | None = None,
) -> IndexFile:
    """A wheel with its metadata file; ``metadata`` replaces the one made from the other arguments."""
    if metadata is None:
        metadata = core_metadata(name, version, requires=requires, requires_python=requires_python, extras=extras)
    stem = f"{canonicalize_name(name).replace('-', '_')}-{version}"
    content = zipped(stem, metadata, tags, {f"{stem.partition('-')[0]}.py": b"", **(members or {})})
    return IndexFile(
        f"{stem}{build and f'-{build}'}-{tags}.whl",
        content,
        metadata,
        hashlib.sha256(content).hexdigest(),
        hashlib.sha256(metadata).hexdigest(),
        len(content),
        requires_python,
        upload_time,
        yanked,
    )


def sdist(
    name: str,
    version: str,
    requires: Iterable[str] = (),
    *,
    pkg_info: bytes | None = None,
    static: bool = True,
    members: Mapping[str, bytes] | None = None,
    requires_python: str | None = None,
    upload_time: str | None = None,
    yanked: str | None = None,
) -> IndexFile:
    """A source distribution; one that is not ``static`` has requirements that only a build reports (PEP 643).

    ``members`` are further files, or others in the place of its PKG-INFO and its pyproject.toml.
    """
    if pkg_info is None:
        more = () if static else ("Dynamic: Requires-Dist",)
        pkg_info = core_metadata(name, version, requires=requires, requires_python=requires_python, more=more)
    stem = f"{canonicalize_name(name).replace('-', '_')}-{version}"
    build = b'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in {"PKG-INFO": pkg_info, "pyproject.toml": build, **(members or {})}.items():
            member = tarfile.TarInfo(f"{stem}/{path}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    packed = gzip.compress(buffer.getvalue(), mtime=0)
    return IndexFile(
        f"{stem}.tar.gz",
        packed,
        None,
        hashlib.sha256(packed).hexdigest(),
        None,
        len(packed),
        requires_python,
        upload_time,
        yanked,
    )


@lru_cache(maxsize=4096)
def stand_in(stem: str, metadata: bytes, padding: int) -> bytes:
    """A wheel in place of a recorded one: its metadata comes after ``padding`` bytes, as in a real one."""
    return zipped(stem, metadata, "py3-none-any", {"padding.bin": bytes(padding)})


def zipped(stem: str, metadata: bytes, tags: str, members: Mapping[str, bytes]) -> bytes:
    """The bytes of a wheel: ``members`` first and its metadata last, as the standard recommends."""
    wheel_file = f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tags}\n".encode()
    described = {**members, f"{stem}.dist-info/METADATA": metadata, f"{stem}.dist-info/WHEEL": wheel_file}
    lines = [f"{path},sha256={_digest(content)},{len(content)}\n" for path, content in described.items()]
    record = f"{stem}.dist-info/RECORD"
    described[record] = "".join([*lines, f"{record},,\n"]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in described.items():
            compression = zipfile.ZIP_DEFLATED if path.endswith("/METADATA") else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(path, _LONG_AGO), content, compression)
    return buffer.getvalue()


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
