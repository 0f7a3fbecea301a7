"""A pylock.toml as a document whose shape is that of the specification: every reader of one begins here."""

from __future__ import annotations

from typing import Any

from envsolve.boundary.files import FileError, toml_document
from envsolve.lockfile.text_file import clean


def pylock_document(text: str) -> dict[str, Any]:
    """The tables of a pylock.toml (PEP 751).

    Raises FileError for what is no TOML, no pylock.toml, or not of the shape that the specification asks for.
    """
    from packaging.pylock import Pylock, PylockValidationError

    document = toml_document(text)
    if "lock-version" not in document:
        raise FileError("it is TOML, but no pylock.toml")
    try:
        Pylock.from_dict(document)
    except PylockValidationError as error:
        raise FileError(f"it is not as the specification of pylock.toml asks: {clean(str(error))}") from None
    return document
