"""Check before writing that a format can express a lock: see :mod:`envsolve.model.lock_format`."""

from __future__ import annotations

from collections.abc import Mapping

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, Refused, UsageError
from envsolve.model.lock_format import FORMATS
from envsolve.model.reference import EDITABLE, AddressKind, as_typed, kind_of, named


def require_sources(urls: Mapping[str, str], format_name: str, *, beside_conda: bool = False) -> None:
    """Raise UsageError if one of ``urls``, by package, is a repository or a directory, which the format cannot have.

    ``beside_conda``: the request also has conda packages, and no format for these can have such a package.
    """
    if FORMATS[format_name].has_sources:
        return
    formats = " or ".join(f"--format {it.name}" for it in FORMATS.values() if it.has_sources)
    way = f"move the requirements of pip to a requirements file, and lock that with {formats}"
    refused = {name: kind for name, url in urls.items() if (kind := kind_of(url)) is not AddressKind.FILE}
    if refused:
        listed = ", ".join(f"{name}, which is from a {kind.value}" for name, kind in refused.items())
        raise UsageError(
            "direct-reference-not-supported",
            f"the format {format_name!r} does not support {listed}",
            tuple(as_typed(without_secrets(named(urls[name])).removesuffix(EDITABLE)) for name in refused),
            (Hint(way if beside_conda else f"use {formats}"),),
            refused=tuple(
                Refused(name, "", f"is from a {kind.value}, which the format {format_name!r} does not support")
                for name, kind in refused.items()
            ),
        )
