"""Find the PyTorch releases that a library was compiled for, by the symbols of PyTorch's C++ interface that it needs.

Only symbols that some releases have and others lack are informative. torch_symbols.toml leaves out symbols that every
release has, or that none was found to have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from packaging.version import Version

from envsolve.matrix.row import Row
from envsolve.model.fact import Evidence
from envsolve.model.need import Need

TABLE = "torch_symbols"
"""The name of the file without its suffix."""
FRAMEWORK = "pytorch"
"""The framework of the C++ interface."""
_PART = re.compile(r"(\d+)|C[1-3](?=E)|D[0-2](?=E)")
_SHOWN = 60
_SPECIAL = {"V": "the virtual table of ", "I": "the type information of "}


class SymbolRow(NamedTuple):
    """The symbols that only the releases of some minors of PyTorch have."""

    torch: tuple[Version, ...]
    names: tuple[str, ...]


def parse_symbols(row: Row, known: Mapping[str, Evidence]) -> SymbolRow:
    """Read a ``[[symbols]]`` row of torch_symbols.toml."""
    row.evidence(known)
    return SymbolRow(row.each("torch", Version, required=True), row.texts("names", required=True))


class TorchSymbols:
    """The content of torch_symbols.toml."""

    def __init__(self, rows: Collection[SymbolRow]) -> None:
        self._minors = sorted({minor for row in rows for minor in row.torch})
        self._having = {name: frozenset(row.torch) for row in rows for name in row.names}

    def need_of(self, names: Collection[str]) -> Need | None:
        """Return the releases that have all the symbols ``names``, or None if these do not tell.

        The oldest and the newest listed releases also represent those before and after them. If no release has all
        symbols, they are from libraries for several releases.
        """
        known = {name: self._having[name] for name in sorted(names) if name in self._having}
        fit = [minor for minor in self._minors if all(minor in it for it in known.values())]
        if not fit or len(fit) == len(self._minors):
            return None
        before = [it for it in self._minors if it < fit[0]]
        after = [it for it in self._minors if it > fit[-1]]
        between = [it for it in self._minors if fit[0] < it < fit[-1] and it not in fit]
        bounds = [f">={fit[0]}"] if before else []
        bounds += [f"<{it}" for it in after[:1]] + [f"!={it}.*" for it in between]
        others = (*before[-1:], *between[:1], *after[:1])
        lacking = {it: min((name for name, having in known.items() if it not in having), key=len) for it in others}
        reasons = " and ".join(f"PyTorch {it} does not have {readable(name)}" for it, name in lacking.items())
        because = f"it was compiled for that PyTorch: {reasons}"
        return Need("torch", (), ",".join(bounds), "", because=because)


def readable(symbol: str) -> str:
    """Return the nested C++ name in a mangled name (Itanium C++ ABI, 5.1), including prefixes as loaders report them.

    Parameters and templates are left out.
    """
    parts: list[str] = []
    position = max(symbol.find("N"), 0) + 1
    while symbol[position : position + 1] in ("K", "V", "r"):
        position += 1
    while (found := _PART.match(symbol, position)) is not None:
        if found[1] is None:
            parts.append(("~" if found[0][0] == "D" else "") + parts[-1] if parts else "")
            break
        position = found.end() + int(found[1])
        parts.append(symbol[found.end() : position])
        if symbol[position : position + 1] == "B":  # an ABI tag, as in name[abi:cxx11]
            break
    what = _SPECIAL.get(symbol[3:4], "") if symbol.startswith("_ZT") else ""
    return f"{what}{'::'.join(parts)} ({symbol[:_SHOWN]}{'...' if len(symbol) > _SHOWN else ''})"
