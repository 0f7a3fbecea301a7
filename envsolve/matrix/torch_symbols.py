"""Which releases of PyTorch a library was compiled for, by the symbols of PyTorch's C++ interface that it needs.

Only a symbol that some releases have and others lack says anything. What torch_symbols.toml does not list, as every
release has it or none was seen to, says nothing.
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
"""The file, without its ending."""
FRAMEWORK = "pytorch"
"""Whose C++ interface it is."""
_PART = re.compile(r"(\d+)|C[1-3](?=E)|D[0-2](?=E)")
_SHOWN = 60
_SPECIAL = {"V": "the virtual table of ", "I": "the type information of "}


class SymbolRow(NamedTuple):
    """The symbols that the releases of some minors of PyTorch have, and no others."""

    torch: tuple[Version, ...]
    names: tuple[str, ...]


def parse_symbols(row: Row, known: Mapping[str, Evidence]) -> SymbolRow:
    """A ``[[symbols]]`` row of torch_symbols.toml."""
    row.evidence(known)
    return SymbolRow(row.each("torch", Version, required=True), row.texts("names", required=True))


class TorchSymbols:
    """What torch_symbols.toml says."""

    def __init__(self, rows: Collection[SymbolRow]) -> None:
        self._minors = sorted({minor for row in rows for minor in row.torch})
        self._having = {name: frozenset(row.torch) for row in rows for name in row.names}

    def need_of(self, names: Collection[str]) -> Need | None:
        """The releases that have all the symbols ``names``; None if these do not say.

        The oldest and the newest that are listed stand for those before and after them. Where no release has them all,
        they are of libraries for several.
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
    """A mangled name of a nested name in C++ (Itanium C++ ABI, 5.1), and how that begins, as loaders report it.

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
        if symbol[position : position + 1] == "B":  # a tag of the ABI, as in name[abi:cxx11]
            break
    what = _SPECIAL.get(symbol[3:4], "") if symbol.startswith("_ZT") else ""
    return f"{what}{'::'.join(parts)} ({symbol[:_SHOWN]}{'...' if len(symbol) > _SHOWN else ''})"
