"""Core metadata of a distribution: what it requires. Only the fields that a resolver needs are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from envsolve.index.fetch import number_of
from envsolve.model.need import Need, parse_need

_FIELD = re.compile(
    r"^(Metadata-Version|Name|Version|Requires-Python|Requires-Dist|Provides-Extra|Dynamic):[ \t]*(.*)$",
    re.MULTILINE | re.IGNORECASE,
)
_FOLDED = re.compile(r"\r?\n[ \t]+")
_END_OF_FIELDS = re.compile(r"\r?\n\r?\n")
_CORRECTIONS = (
    (re.compile(r"([<>]=?)(\s*\d+(?:\.\d+)*)\.\*"), r"\1\2"),  # >=1.19.*
    (re.compile(r"(?<=[\d*])\s*(?=[<>=!~]=|[<>])"), ","),  # >=1.0<2.0
)
_FIRST_WITH_STATIC_SDISTS = (2, 2)
_MOST_REQUIREMENTS = 10_000
"""The most requirements of one file; the largest real ones have 2,000, one for each of their extras."""


class Metadata(NamedTuple):
    """The metadata of one file.

    ``requires`` is None if a requirement is invalid, as in some old files, or if there are too many. ``is_static``: the
    requirements of a source distribution are valid for every wheel built from it (PEP 643). ``needs_build``: only a
    build shows the requirements, so ``requires`` is None. ``corrected`` has the original text of invalid requirements
    that were read like older installers do. ``leads_to`` is the index with the files of a stub source distribution,
    ``built_with`` the older build tools that a build needed. ``build_imports`` are packages of frameworks that the
    build of a source distribution imports but does not require.
    """

    name: str
    version: str
    requires: tuple[Need, ...] | None
    requires_python: str | None = None
    extras: tuple[str, ...] = ()
    is_static: bool = True
    needs_build: bool = False
    corrected: tuple[str, ...] = ()
    leads_to: str = ""
    built_with: str = ""
    build_imports: tuple[str, ...] = ()


def read_metadata(content: bytes) -> Metadata:
    """The metadata in a METADATA or PKG-INFO file. Raises ValueError if it names no project or version."""
    text = _END_OF_FIELDS.split(content.decode("utf-8", "replace").lstrip("\ufeff\r\n"), maxsplit=1)[0]
    fields: dict[str, list[str]] = {}
    for field, value in _FIELD.findall(_FOLDED.sub(" ", text)):
        fields.setdefault(field.lower(), []).append(value.strip())
    if "name" not in fields or "version" not in fields:
        raise ValueError("it names no project or no version")
    lines = fields.get("requires-dist", [])
    requires = needs_in(lines)
    dynamic = {value.lower() for value in fields.get("dynamic", ())}
    return Metadata(
        fields["name"][0],
        fields["version"][0],
        requires,
        fields.get("requires-python", [None])[0],
        tuple(fields.get("provides-extra", ())),
        _version(fields) >= _FIRST_WITH_STATIC_SDISTS
        and not dynamic & {"requires-dist", "requires-python", "provides-extra"},
        corrected=() if requires is None else tuple(line for line in lines if not _is_valid(line)),
    )


def needs_in(lines: Sequence[str]) -> tuple[Need, ...] | None:
    """The requirements in the lines, as older installers read them; None if one of them is invalid even so."""
    if len(lines) > _MOST_REQUIREMENTS:
        return None
    try:
        return tuple(parse_need(line if _is_valid(line) else corrected(line)) for line in lines)
    except ValueError:
        return None


def corrected(line: str) -> str:
    """A requirement in standard form, if pip up to 24.0 accepted its invalid form.

    https://packaging.python.org/en/latest/specifications/version-specifiers took effect in pip 24.1.
    """
    need, semicolon, marker = line.partition(";")
    for pattern, replacement in _CORRECTIONS:
        need = pattern.sub(replacement, need)
    return need + semicolon + marker


def _is_valid(line: str) -> bool:
    try:
        parse_need(line)
    except ValueError:
        return False
    return True


def _version(fields: dict[str, list[str]]) -> tuple[int, ...]:
    stated = fields.get("metadata-version", ["1.0"])[0]
    return tuple(number for part in stated.split(".") if (number := number_of(part)) is not None)
