"""Core metadata of a distribution: what it requires. Only the fields that a resolver needs are read."""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.index.fetch import number_of
from envsolve.model.need import Need, check_specifier, parse_need

_FIELD = re.compile(
    r"^(Metadata-Version|Name|Version|Requires-Python|Requires-Dist|Provides-Extra|Dynamic):[ \t]*(.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_FOLDED = re.compile(r"\r?\n[ \t]+")
_END_OF_FIELDS = re.compile(r"\r?\n\r?\n")
_FIRST_WITH_STATIC_SDISTS = (2, 2)


class Metadata(NamedTuple):
    """What one file says of itself. ``requires`` is None where a requirement cannot be read, as in some old files.

    ``is_static`` says of a source distribution that its requirements hold for every wheel built from it (PEP 643).
    """

    name: str
    version: str
    requires: tuple[Need, ...] | None
    requires_python: str | None = None
    extras: tuple[str, ...] = ()
    is_static: bool = True


def read_metadata(content: bytes) -> Metadata:
    """The metadata in a METADATA or PKG-INFO file. Raises ValueError where it names no project or version."""
    text = _END_OF_FIELDS.split(content.decode("utf-8", "replace").lstrip("\ufeff\r\n"), maxsplit=1)[0]
    fields: dict[str, list[str]] = {}
    for field, value in _FIELD.findall(_FOLDED.sub(" ", text)):
        fields.setdefault(field.lower(), []).append(value.strip())
    if "name" not in fields or "version" not in fields:
        raise ValueError("it names no project or no version")
    dynamic = {value.lower() for value in fields.get("dynamic", ())}
    return Metadata(
        fields["name"][0],
        fields["version"][0],
        _needs(fields.get("requires-dist", [])),
        fields.get("requires-python", [None])[0],
        tuple(fields.get("provides-extra", ())),
        _version(fields) >= _FIRST_WITH_STATIC_SDISTS
        and not dynamic & {"requires-dist", "requires-python", "provides-extra"},
    )


def _needs(lines: list[str]) -> tuple[Need, ...] | None:
    try:
        needs = tuple(map(parse_need, lines))
        for need in needs:
            check_specifier(need.specifier)
    except ValueError:
        return None
    return needs


def _version(fields: dict[str, list[str]]) -> tuple[int, ...]:
    stated = fields.get("metadata-version", ["1.0"])[0]
    return tuple(number for part in stated.split(".") if (number := number_of(part)) is not None)
