"""Which CUDA toolkit compiled a library, where nothing but its PTX tells.

Every toolkit writes PTX of its own version of the instruction set, and the header of a fat binary names that version.
NVIDIA lists which toolkit brought which version: parallel thread execution ISA, release notes.
"""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.binary.fat_binary import Code

_TOOLKIT = {
    **dict(zip(("6.0", "6.1", "6.2", "6.3", "6.4", "6.5"), ("9.0", "9.1", "9.2", "10.0", "10.1", "10.2"), strict=True)),
    **{f"7.{minor}": f"11.{minor}" for minor in range(9)},
    **{f"8.{minor}": f"12.{minor}" for minor in range(6)},
    **dict(zip(("8.7", "8.8"), ("12.8", "12.9"), strict=True)),
    **{f"9.{minor}": f"13.{minor}" for minor in range(4)},
}
"""Version of the PTX ISA to the first toolkit that wrote it, whose driver compiles it; 8.5 is of 12.5 and of 12.6."""


def toolkit_of(found: Iterable[Code]) -> str | None:
    """The toolkit that wrote the newest PTX in ``found``; None without PTX, or with one that came later."""
    versions = {code.ptx_isa for code in found if code.ptx_isa is not None}
    newest = max(versions, key=lambda version: [int(part) for part in version.split(".")], default=None)
    return None if newest is None else _TOOLKIT.get(newest)
