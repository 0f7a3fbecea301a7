"""An answer in JSON (:mod:`envsolve.lockfile.json_answer`), read back as a lock of the frameworks in it.

It names no other package, and of a build the name that the matrix has, which is the beginning of a build string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envsolve.boundary.files import FileError
from envsolve.lockfile.facts import options_of
from envsolve.lockfile.lock import Lock, LockedFramework, Made, Stack, sorted_pins
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.package import Pin
from envsolve.model.release import Source


def is_answer(text: str) -> bool:
    """Whether ``text`` is JSON with frameworks in it, or written by envsolve."""
    document = _parsed(text)
    return isinstance(document, dict) and not {"frameworks", "envsolve_version"}.isdisjoint(document)


def document_of(text: str) -> dict[str, Any]:
    """The document in ``text``. Raises FileError where it is no answer."""
    document = _parsed(text)
    if not isinstance(document, dict):
        raise _no_answer()
    return document


def read(text: str, platform: Platform) -> Lock | None:
    """What an answer holds for ``platform``; None where it is for other ones. Raises FileError where it is none."""
    document = document_of(text)
    try:
        parts = {part["host"]["platform"]: part for part in document.get("platforms", [document])}
        part = parts.get(platform)
        return None if part is None else _lock(part, platform)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _no_answer() from None


def _parsed(text: str) -> object:
    import json

    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found


def _lock(part: Mapping[str, Any], platform: Platform) -> Lock:
    """Raises KeyError, TypeError or ValueError for another shape."""
    frameworks = tuple(map(_framework, part["frameworks"]))
    gpus = [_text_or_none(gpu["compute_capability"]) for gpu in part["host"]["gpus"]]
    stack = Stack(
        frameworks,
        tuple(sorted({it for it in gpus if it is not None})),
        _text_or_none(part.get("minimum_driver")),
        _text_or_none(part.get("cuda")),
        _text_or_none(part.get("cudnn")),
    )
    of_pip = [it for it in frameworks if Source(it.source).is_wheel]
    of_conda = [it for it in frameworks if it not in of_pip]
    return Lock(
        tuple(sorted_pins(Pin(normalized(it.package), _version(it), (), "") for it in of_pip)),
        platform,
        _text(part["python"]),
        _text_or_none(part["host"].get("glibc")),
        stack,
        Made(
            _text(part["envsolve_version"]),
            _text(part["request"]),
            None,
            _text_or_none(part.get("matrix_date")),
            part.get("own_matrix") is True,
            options=options_of(part.get("options"), _text(part["request"])),
        ),
        conda=tuple(CondaPackage(it.package, it.version, "", "", "") for it in of_conda),
    )


def _framework(told: Mapping[str, object]) -> LockedFramework:
    return LockedFramework(*(_text(told[field]) for field in LockedFramework._fields))


def _version(wheel: LockedFramework) -> str:
    """As pip asks for it: see :attr:`envsolve.model.release.Release.full_version`."""
    return f"{wheel.version}+{wheel.build}" if wheel.source == Source.PYTORCH else wheel.version


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise TypeError(value)
    return value


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _no_answer() -> FileError:
    return FileError("it is JSON, but no answer of envsolve")
