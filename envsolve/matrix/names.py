"""Product names and PCI ids of GPUs, with their compute capabilities.

Names can be ambiguous (a GT 730 is 2.1, 3.0 or 3.5). They are used only if there is no driver to report the capability,
and an ambiguous name is an error, not a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from envsolve.errors import Hint, MatrixError, UsageError
from envsolve.matrix.row import Mistakes, Row, RowError
from envsolve.model.capability import ComputeCapability

_TOKEN = re.compile(r"[a-z]+|\d+")
_PCI_ID = re.compile(r"[0-9a-f]{4}")
_BRANDS = frozenset({"nvidia", "geforce", "tesla", "graphics", "card"})
_SUGGESTIONS = 4
_INSTANCE = re.compile(r"(?<=\S)\s+MIG\b.*", re.IGNORECASE)
"""What CUDA adds to the product in the name of a MIG instance: NVIDIA A100-SXM4-40GB MIG 1g.5gb."""
_OF_OTHERS = {
    "AMD": re.compile(r"\b(?:AMD|Radeon|RX ?\d{3,4}|Instinct|MI\d{2,3}X?|gfx\d+)\b", re.IGNORECASE),
    "Apple": re.compile(r"\b(?:Apple|M[1-5](?: ?(?:Pro|Max|Ultra))?)\b(?!\d)|\bMPS\b", re.IGNORECASE),
    "Intel": re.compile(r"\b(?:Intel|Arc|Iris|UHD)\b", re.IGNORECASE),
}
"""Names of GPUs of other vendors. They are tried only for a name that no NVIDIA GPU has."""


class GpuModel(NamedTuple):
    """A product and its compute capabilities, more than one if several chips had the name."""

    name: str
    capabilities: tuple[ComputeCapability, ...]


class GpuNames:
    """Looks up product names as users type them: in any case, with or without NVIDIA, GeForce or Tesla.

    Only the rows that match a name are read. :func:`read_gpus` reads and checks all of them.
    """

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self._rows = [(_tokens(str(row.get("name", ""))), row) for row in rows]

    def find(self, text: str, setting: Callable[[str], str] = "--gpu {}".format) -> GpuModel:
        """Return the product that ``text`` names. ``setting`` returns the option or key with another value, for hints.

        An exact name wins. Otherwise every product with these words counts, if all have the same capability. Raises
        UsageError for a name that is unknown or has several capabilities.
        """
        wanted = _tokens(_INSTANCE.sub("", text))
        if not wanted:
            raise self._unknown(text, setting)
        rows = [row for tokens, row in self._rows if tokens == wanted]
        rows = rows or [row for tokens, row in self._rows if _holds(tokens, wanted)]
        if not rows:
            raise self._unknown(text, setting)
        found = _models(rows)
        capabilities = sorted({capability for model in found for capability in model.capabilities})
        if len(capabilities) > 1:
            raise _ambiguous(text, found, capabilities, setting)
        return GpuModel(found[0].name if len(found) == 1 else text, tuple(capabilities))

    def _unknown(self, text: str, setting: Callable[[str], str]) -> UsageError:
        maker = next((maker for maker, names in _OF_OTHERS.items() if names.search(text)), None)
        if maker is not None:
            message = f"{text!r} is a GPU of {maker}, and envsolve knows NVIDIA GPUs only"
            return UsageError("unknown-gpu", message, hints=(Hint(f"for a CPU environment use {setting('none')}"),))
        import difflib

        rows = {" ".join(tokens): row for tokens, row in self._rows}
        is_name = any(it.isalpha() for it in text)  # digits alone are a mistyped compute capability
        close = difflib.get_close_matches(" ".join(_tokens(text)), rows, n=1, cutoff=0.6) if is_name else ()
        meant = _models([rows[name] for name in close])
        hints = tuple(Hint(f"did you mean {it.name!r}?") for it in meant)
        example = str(meant[0].capabilities[0]) if meant else "8.6"
        return UsageError(
            "unknown-gpu",
            f"no NVIDIA GPU is known as {text!r}",
            hints=(*hints, Hint(f"give its compute capability instead, e.g. {setting(example)}")),
        )


def read_gpus(document: Mapping[str, object], mistakes: Mistakes) -> tuple[GpuModel, ...]:
    """Return every valid row of a parsed gpus.toml."""
    models = []
    for number, values in enumerate(gpu_rows(document), 1):
        row = Row(f"gpu[{number}]", values, mistakes)
        try:
            first = row.parsed("capability", ComputeCapability.parse)
            every = row.each("capabilities", ComputeCapability.parse)
            models.append(GpuModel(row.text("name"), every or (first,)))
        except RowError:
            continue
        row.texts("evidence", required=True)
        for key in ("architecture", "note", "inferred"):
            row.seen(key)
        row.done()
    return tuple(models)


def gpu_rows(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the rows of a parsed gpus.toml unchanged."""
    rows = document.get("gpu")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def read_pci_ids(document: Mapping[str, object], mistakes: Mistakes) -> dict[str, tuple[str, ComputeCapability]]:
    """Return product name and capability by device id (four hex digits), from a parsed pci_ids.toml."""
    devices = document.get("device", {})
    table = {}
    for device, values in (devices if isinstance(devices, dict) else {}).items():
        if not _PCI_ID.fullmatch(device):
            mistakes.add(f"device.{device}", "is not a device id of four hex digits in lower case")
        if not isinstance(values, dict):
            mistakes.add(f"device.{device}", "must be a table")
            continue
        row = Row(f"device.{device}", values, mistakes)
        try:
            table[device] = (row.text("name"), row.parsed("capability", ComputeCapability.parse))
        except RowError:
            continue
        row.done()
    return table


def _tokens(text: str) -> tuple[str, ...]:
    return tuple(token for token in _TOKEN.findall(text.casefold()) if token not in _BRANDS)


def _holds(tokens: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return any(tokens[start : start + len(wanted)] == wanted for start in range(len(tokens) - len(wanted) + 1))


def _models(rows: Sequence[Mapping[str, object]]) -> tuple[GpuModel, ...]:
    mistakes = Mistakes("gpus.toml")
    models = read_gpus({"gpu": list(rows)}, mistakes)
    if mistakes.found:
        raise MatrixError("matrix-invalid", "the table of GPUs has mistakes", tuple(mistakes.found))
    return models


def _ambiguous(
    text: str, found: Sequence[GpuModel], capabilities: list[ComputeCapability], setting: Callable[[str], str]
) -> UsageError:
    names = ", ".join(model.name for model in found[:_SUGGESTIONS])
    return UsageError(
        "ambiguous-gpu",
        f"{text!r} matches GPUs of compute capability {', '.join(map(str, capabilities))}",
        cause=(f"it matches {names}" + (" and others" if len(found) > _SUGGESTIONS else ""),),
        hints=(
            Hint("query the driver: nvidia-smi --query-gpu=name,compute_cap --format=csv"),
            Hint(f"then give the capability, e.g. {setting(str(capabilities[-1]))}"),
        ),
    )
