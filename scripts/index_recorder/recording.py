"""One recorded project, and its file.

Only metadata that a resolver reads are stored. A file is identified by its name, so that a recording does not say which
index it is from. There is one compressed file for each project: a test reads only those it needs, and the metadata of a
thousand releases that each differ in a line take little space.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path
from typing import NamedTuple

_KEPT_HEADERS = frozenset(
    {"metadata-version", "name", "version", "requires-python", "requires-dist", "provides-extra", "dynamic"}
)
_SUFFIX = ".json.xz"


class RecordedFile(NamedTuple):
    """A file as its index lists it; the fields are those of the file on disk, in its order.

    ``size`` is in bytes, ``upload_time`` as RFC 3339 writes it, ``yanked`` the reason ("" for none given) or None.
    """

    name: str
    sha256: str
    size: int | None = None
    requires_python: str | None = None
    upload_time: str | None = None
    yanked: str | None = None


class RecordedProject(NamedTuple):
    """The files of a project in the order of its index, and the metadata of some of its wheels by file name."""

    name: str
    files: tuple[RecordedFile, ...]
    metadata: dict[str, str]


def write(directory: Path, project: RecordedProject) -> Path:
    """Write ``project`` to ``directory``; the same project gives the same bytes."""
    document = {"files": project.files, "metadata": dict(sorted(project.metadata.items())), "name": project.name}
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    path = directory / f"{project.name}{_SUFFIX}"
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    return path


def read(directory: Path, name: str) -> RecordedProject | None:
    """The recorded project of the normalized ``name``; None if there is none."""
    try:
        content = (directory / f"{name}{_SUFFIX}").read_bytes()
    except FileNotFoundError:
        return None
    document = json.loads(lzma.decompress(content))
    return RecordedProject(document["name"], tuple(RecordedFile(*it) for it in document["files"]), document["metadata"])


def names(directory: Path) -> Iterator[str]:
    """The normalized names of all recorded projects, sorted."""
    for path in sorted(directory.glob(f"*{_SUFFIX}")):
        yield path.name.removesuffix(_SUFFIX)


def forget_others(directory: Path, current: set[Path]) -> None:
    """Remove the recordings that are not among ``current``."""
    for path in directory.glob(f"*{_SUFFIX}"):
        if path not in current:
            path.unlink()


def stripped(metadata: bytes) -> str:
    """The headers of core metadata that a resolver reads, in their order: no description, no people, no addresses."""
    headers = message_from_string(metadata.decode("utf-8", "replace")).items()
    return "".join(f"{name}: {' '.join(value.split())}\n" for name, value in headers if name.lower() in _KEPT_HEADERS)
