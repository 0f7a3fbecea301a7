"""Records of packages that do not exist, with files that match their hashes and sizes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import md5, sha256
from typing import NamedTuple

from scripts.channel_trimmer.channels import Record

_UPLOADED = "2026-01-01T00:00:00+00:00"


class MadePackage(NamedTuple):
    """A package's file, and its record on the channel."""

    file_name: str
    content: bytes
    fields: Record

    @property
    def subdir(self) -> str:
        """A platform, or ``noarch``."""
        return self.fields["subdir"]


def record(
    name: str,
    version: str = "1.0",
    depends: Iterable[str] = (),
    *,
    build: str = "0",
    build_number: int = 0,
    subdir: str = "linux-64",
    constrains: Iterable[str] = (),
    noarch: str | None = None,
    uploaded: str | None = _UPLOADED,
    suffix: str = ".conda",
    **more: object,
) -> MadePackage:
    """A package of this name; ``noarch`` is ``python`` or ``generic`` and puts it there.

    ``uploaded`` is an ISO time, None for a record without one. ``more`` replaces what a field would be, or with None
    leaves it out: ``sha256=None``.
    """
    file_name = f"{name}-{version}-{build}{suffix}"
    content = f"{file_name} of {subdir if noarch is None else 'noarch'}\n".encode() * 20
    fields: dict[str, object] = {
        "name": name,
        "version": version,
        "build": build,
        "build_number": build_number,
        "subdir": subdir if noarch is None else "noarch",
        "depends": list(depends),
        "constrains": list(constrains),
        "md5": md5(content, usedforsecurity=False).hexdigest(),
        "sha256": sha256(content).hexdigest(),
        "size": len(content),
        "license": "BSD-3-Clause",
        "noarch": noarch,
        "timestamp": uploaded and int(datetime.fromisoformat(uploaded).timestamp() * 1000),
    }
    given = {key: value for key, value in {**fields, **more}.items() if value is not None}
    return MadePackage(file_name, content, given)  # type: ignore[arg-type]  # a test may make any of them wrong
