"""The keys of ``[tool.envsolve]``, from the list that the reading of projects goes by."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.project.keys import ALIASES, KEYS, MACHINE_KEYS, Key, Scope

from .markdown import escaped, table


def keys_table() -> str:
    """Every key, with its type and where it may stand."""
    rows = ((f"[`{it.name}`](#key-{it.name})", it.kind.value, _place(it)) for it in KEYS.values())
    return table(("key", "type", "may stand in"), rows)


def keys_page() -> str:
    """Every key: its meaning, type, words and an example."""
    return "".join("".join(_section(it)) for it in KEYS.values())


def _section(key: Key) -> Iterator[str]:
    yield f"(key-{key.name})=\n### {key.name}\n\n{escaped(key.meaning)}\n\n"
    yield f"- Type: {key.kind.value}\n"
    if key.choices:
        yield f"- Words: {', '.join(f'`{it}`' for it in key.choices)}\n"
    singular = [alias for alias, name in ALIASES.items() if name == key.name]
    if singular:
        yield f"- Also written `{singular[0]}`\n"
    yield f"- May stand in: {_place(key)}\n"
    if key.name in MACHINE_KEYS:
        yield "- It says what a machine is: a target without outputs of its own may have it\n"
    yield f"\n```toml\n{key.name} = {key.example}\n```\n\n"


def _place(key: Key) -> str:
    return "the project" if key.scope is Scope.PROJECT else "the project and a target"
