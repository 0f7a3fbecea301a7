"""Every code that an error may have, with its kind, its exit code and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve import errors
from envsolve.errors import EnvsolveError

from .markdown import escaped, table
from .source import Source

KINDS: Mapping[str, type[EnvsolveError]] = {
    it.__name__: it
    for it in vars(errors).values()
    if isinstance(it, type) and issubclass(it, EnvsolveError) and it is not EnvsolveError
}


class Code(NamedTuple):
    """A code and the kinds of error that have it."""

    code: str
    kinds: tuple[str, ...]

    @property
    def exit_codes(self) -> tuple[int, ...]:
        """The exit codes of a command that ends with it."""
        return tuple(sorted({KINDS[it].exit_code for it in self.kinds}))


def codes(source: Source) -> list[Code]:
    """All codes, by their names."""
    found: dict[str, dict[str, None]] = {}
    for kind, call in source.calls_of(*KINDS):
        for code in source.strings(call.argument(0, "code"), call.module):
            found.setdefault(code, {})[kind] = None
    return [Code(code, tuple(kinds)) for code, kinds in sorted(found.items())]


def codes_table(source: Source) -> str:
    """The table of all codes."""
    rows = (
        (f"`{it.code}`", " or ".join(f"`{kind}`" for kind in it.kinds), " or ".join(map(str, it.exit_codes)))
        for it in codes(source)
    )
    return table(("code", "kind", "exit code"), rows)


def kinds_table() -> str:
    """The kinds of error, and what each means."""
    rows = (
        (f"`{name}`", str(it.exit_code), escaped((it.__doc__ or "").partition("\n")[0])) for name, it in KINDS.items()
    )
    return table(("kind", "exit code", "meaning"), rows)
