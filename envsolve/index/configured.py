"""The index settings from one place: the value that readers of configuration share, and their errors.

No message contains a value, because URLs of private indexes can contain passwords.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_bytes
from envsolve.errors import Hint, UsageError


class Configured(NamedTuple):
    """The settings from one place; None or an empty tuple if it does not set them. ``origin`` is the place in words.

    ``find_links_origin`` is the origin of ``find_links`` if the place consists of several variables or files.
    """

    origin: str
    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool | None = None
    cert: str | None = None
    client_cert: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    package_indexes: tuple[tuple[str, str], ...] = ()
    package_indexes_where: tuple[tuple[str, str, str], ...] = ()
    find_links_origin: str = ""

    @property
    def names_an_index(self) -> bool:
        """Whether it sets an index or find-links."""
        return bool(self.index_url or self.extra_index_urls or self.find_links or self.no_index)


_LONGEST = 1024 * 1024
"""The size limit of a configuration file in bytes."""


class Machine(NamedTuple):
    """Where configuration can be. ``root`` is the directory with ``etc``, ``platform`` is as in sys.platform."""

    environ: Mapping[str, str]
    home: Path | None
    prefix: Path | None
    root: Path
    platform: str


def read_file(path: Path) -> bytes | None:
    """The content of a configuration file, None if there is none. Raises UsageError if it cannot be read."""
    try:
        return read_bytes(path, _LONGEST)
    except FileError as error:
        if not os.path.exists(path):  # noqa: PTH110 - a file in an inaccessible folder counts as absent
            return None
        message = f"{path} configures package indexes and cannot be read: {error.reason}"
        raise UsageError("index-settings-unreadable", message, hints=(Hint("check its permissions"),)) from error


def text_of(path: Path, content: bytes) -> str:
    """The content as text. Raises UsageError if it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise malformed(f"{path}, line {line}", "is not UTF-8") from error


def malformed(place: str, problem: str, *, detail: str = "") -> UsageError:
    """The error for an invalid setting: where it is, and what is wrong with it."""
    cause = (f"{place}: {detail}",) if detail else (f"{place} {problem}",)
    return UsageError("index-settings-invalid", f"{place} {problem}", cause, (Hint("fix it or remove it"),))


def first(values: Iterable[str | None]) -> str | None:
    """The first value that is set."""
    return next((value for value in values if value), None)
