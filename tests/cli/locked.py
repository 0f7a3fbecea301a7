"""The content of a lock, read as an installer would, without code of envsolve."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def pins_in(text: str) -> dict[str, str]:
    """The pinned versions of a requirements file, by name."""
    pins = [Requirement(line.removesuffix(" \\")) for line in text.splitlines() if line[:1].isalnum()]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}


def reasons_in(text: str) -> Iterator[tuple[str, str]]:
    """Each package with a sentence in the lock about its version."""
    name = ""
    for line in text.splitlines():
        if line[:1].isalnum():
            name = line.partition("==")[0]
        elif line.startswith("    # because: "):
            yield name, line.removeprefix("    # because: ")
