"""Read a TOML row strictly, and collect all mistakes instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from envsolve.model.fact import Evidence, EvidenceKind

T = TypeVar("T")


class Mistakes:
    """The mistakes found in one file, each as ``file: key: what is wrong``."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.found: list[str] = []

    def add(self, key: str, message: str) -> None:
        """Record a mistake at ``key``, e.g. ``release[3].cuda``."""
        self.found.append(f"{self.file}: {key}: {message}")


class Row:
    """A TOML table with typed access. A missing or invalid value is reported and replaced with the fallback."""

    def __init__(self, where: str, values: Mapping[str, object], mistakes: Mistakes) -> None:
        self._where = where
        self._values = values
        self._mistakes = mistakes
        self._read: set[str] = set()

    def wrong(self, key: str, message: str) -> None:
        """Report a mistake at ``key``."""
        self._mistakes.add(f"{self._where}.{key}" if key else self._where, message)

    def has(self, key: str) -> bool:
        """Whether ``key`` exists."""
        return key in self._values

    def seen(self, key: str) -> None:
        """Accept ``key`` without reading it."""
        self._read.add(key)

    def text(self, key: str, fallback: str | None = None) -> str:
        """A non-empty string; required unless a fallback is given."""
        return self._parsed(key, str, str, fallback)

    def integer(self, key: str, fallback: int | None = None) -> int:
        """An integer; required unless a fallback is given."""
        return self._parsed(key, int, int, fallback)

    def parsed(self, key: str, parse: Callable[[str], T]) -> T:
        """A required string, as ``parse`` reads it; ValueError of ``parse`` becomes a mistake."""
        return self._parsed(key, str, parse, None)

    def optional(self, key: str, parse: Callable[[str], T]) -> T | None:
        """A string as ``parse`` reads it, or None if the key is absent."""
        return self._parsed(key, str, parse, None) if key in self._values else None

    def texts(self, key: str, *, required: bool = False) -> tuple[str, ...]:
        """A list of strings; absent is empty unless required."""
        return self.each(key, str, required=required)

    def each(self, key: str, parse: Callable[[str], T], *, required: bool = False) -> tuple[T, ...]:
        """Read a list of strings, each with ``parse``."""
        self._read.add(key)
        values = self._values.get(key)
        if values is None:
            if required:
                self.wrong(key, "is missing")
            return ()
        if not isinstance(values, list) or (required and not values):
            self.wrong(key, "must be a list with at least one entry" if required else "must be a list")
            return ()
        return tuple(item for value in values for item in self._item(key, value, parse))

    def table(self, key: str) -> tuple[tuple[str, str], ...]:
        """A table of strings as sorted pairs; absent is empty."""
        self._read.add(key)
        value = self._values.get(key, {})
        if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
            self.wrong(key, "must be a table of strings")
            return ()
        return tuple(sorted(value.items()))

    def evidence(self, known: Mapping[str, Evidence]) -> tuple[Evidence, ...]:
        """The row's evidence, strongest kind first; a row without evidence is a mistake."""
        names = self.texts("evidence", required=True)
        for name in names:
            if name not in known:
                self.wrong("evidence", f"names {name!r}, which is not in [evidence]")
        order = list(EvidenceKind)
        return tuple(sorted((known[name] for name in names if name in known), key=lambda item: order.index(item.kind)))

    def done(self) -> None:
        """Report keys that were not read, because a misspelt key would be silently ignored."""
        for key in self._values:
            if key not in self._read:
                self.wrong(key, "is not a key of this table")

    def _parsed(self, key: str, kind: type, parse: Callable[..., T], fallback: T | None) -> T:
        self._read.add(key)
        value = self._values.get(key)
        if value is None:
            if fallback is None:
                self.wrong(key, "is missing")
                raise RowError
            return fallback
        if not isinstance(value, kind) or isinstance(value, bool) or value == "":
            self.wrong(key, f"must be a non-empty {'string' if kind is str else 'integer'}, not {value!r}")
            raise RowError
        try:
            return parse(value)
        except ValueError as error:
            self.wrong(key, str(error) or f"{value!r} cannot be read")
            raise RowError from error

    def _item(self, key: str, value: object, parse: Callable[[str], T]) -> tuple[T, ...]:
        if not isinstance(value, str):
            self.wrong(key, f"must contain strings, not {value!r}")
            return ()
        try:
            return (parse(value),)
        except ValueError as error:
            self.wrong(key, str(error) or f"{value!r} cannot be read")
            return ()


class RowError(Exception):
    """A required value of a row is unusable. The mistake is already recorded and the row is skipped."""
