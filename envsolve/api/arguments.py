"""Arguments of the functions: one item or several, as text or as a value, become values or one error."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from typing import BinaryIO, TypeVar

from packaging.specifiers import SpecifierSet

from envsolve.boundary.files import FileError, open_argument
from envsolve.errors import UsageError
from envsolve.model.capability import ComputeCapability
from envsolve.model.names import is_name
from envsolve.model.words import gpu_name, one_word, parse_moment

T = TypeVar("T")

Words = str | Iterable[str]
"""One text or several."""
File = str | os.PathLike[str]
Files = File | Iterable[File]
Gpus = str | ComputeCapability | Iterable[str | ComputeCapability]
Range = str | SpecifierSet
"""A version or a range of versions: ``3.11``, ``>=3.10,<3.13``."""
Log = str | bytes | os.PathLike[str] | BinaryIO | BaseException


def words(given: Words) -> tuple[str, ...]:
    """Each text; a requirement object of another library counts as its text."""
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def each(name: str, given: Words, parse: Callable[[str], T]) -> tuple[T, ...]:
    """Each text as a value, without duplicates."""
    return tuple(dict.fromkeys(read(name, text, parse) for text in words(given)))


def read(name: str, given: str, parse: Callable[[str], T]) -> T:
    """A text as a value.

    ``parse`` raises ValueError with a sentence for the user; this raises UsageError with the name.
    """
    try:
        return parse(given)
    except ValueError as error:
        raise UsageError("usage", f"{name}: {error}") from error


def value(name: str, given: str | T | None, kind: type[T], parse: Callable[[str], T]) -> T | None:
    """A text as a value; None and values are returned as they are."""
    if given is None or isinstance(given, kind):
        return given
    if not isinstance(given, str):
        raise UsageError("usage", f"{name}: {given!r} is neither a string nor a {kind.__name__}")
    return read(name, given, parse)


def address(name: str, given: str | None) -> str | None:
    """An address, which must be one word, since it is a line of a file."""
    return None if given is None else read(name, given, one_word)


def file(given: File | None) -> str | None:
    """The name of a file or a directory."""
    return None if given is None else os.fspath(given)


def file_names(given: Files) -> tuple[str, ...]:
    """The names of files."""
    return tuple(os.fspath(it) for it in ((given,) if isinstance(given, str | os.PathLike) else given))


def gpus_of(given: Gpus) -> tuple[str, ...]:
    """GPUs in the form of a request."""
    items = (given,) if isinstance(given, str | ComputeCapability) else given
    found = tuple(read("gpus", str(it), gpu_name) for it in items)
    return ("none",) if set(found) == {"none"} else found


def package_names(name: str, given: Words) -> tuple[str, ...]:
    """Names of packages, without versions."""
    found = words(given)
    for text in found:
        if not is_name(text):
            raise UsageError("usage", f"{name}: {text!r} is not the name of a package such as 'numpy'")
    return found


def moment(given: str | date) -> str:
    """A moment in UTC; a day means its end."""
    return read("exclude_newer", str(given), parse_moment)


def log(given: Log) -> AbstractContextManager[BinaryIO]:
    """The stream to explain; a stream from the caller is not closed. Raises OSError if a file cannot be opened."""
    if isinstance(given, BaseException):
        import traceback

        given = "".join(traceback.format_exception(given))
    if isinstance(given, str):
        given = given.encode("utf-8", "replace")
    if isinstance(given, bytes):
        return io.BytesIO(given)
    if isinstance(given, os.PathLike):
        try:
            return open_argument(os.fspath(given))
        except FileError as error:
            raise OSError(f"cannot read {os.fspath(given)}: {error.reason}") from None
    return nullcontext(given)


def require_one(**given: object) -> None:
    """Raise UsageError if two arguments with the same meaning are given."""
    if all(it is not None for it in given.values()):
        names = " and ".join(given)
        raise UsageError("contradictory-options", f"{names} exclude each other: give only one")


def require_format(name: str, known: tuple[str, ...]) -> None:
    """Raise UsageError for a format that is none of these."""
    if name not in known:
        raise UsageError("unknown-format", f"unknown format {name!r}", (f"known: {', '.join(known)}",))
