"""Files as an accident or an attacker leaves them: a valid document with a few values changed, or with noise in it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

_WORDS = st.sampled_from(
    (
        *("", "0", "-1", "=", "==", "*", "..", "/", "\\", "~", "$HOME", "${HOME}", "%", "\0", "\x1b[31m", "\u202e"),
        *("\ud800", "\n", "\r\nhint: x", "name", "pytorch", "1e999", "nan", "9" * 30, "a" * 5000, "[" * 3000),
        *("http://u:p@h/", "-r x", "1.*", ">=3", "linux-64", "8.6", "-", "..\\..", "file:///dev/zero"),
    )
)
TEXTS = st.one_of(_WORDS, st.text(max_size=30))
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.sampled_from([2**63, -(2**70)]), st.floats(), TEXTS)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4))
)
_NOISE = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [b"\0", b"\xff\xfe", b"[" * 2000, b"{" * 2000, b"\n- ", b'"', b"'''", b"&a *a", b"9" * 5000, b"\r"]
    ),
)


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """``document`` (JSON) with one to four of its values replaced, removed, or combined with others."""
    changed = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 4))):
        holder, key = draw(st.sampled_from(_places(changed)))
        match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
            case "replace":
                holder[key] = draw(_VALUES)
            case "remove":
                del holder[key]
            case _ if isinstance(holder, dict):
                holder[draw(TEXTS)] = draw(_VALUES)
            case _:
                holder.insert(key, draw(_VALUES))
        if not changed:
            break
    return changed


@st.composite
def noisy(draw: st.DrawFn, content: bytes) -> bytes:
    """``content`` with one to four pieces cut out, doubled or replaced by noise."""
    changed = content
    for _ in range(draw(st.integers(1, 4))):
        first = draw(st.integers(0, len(changed)))
        last = draw(st.integers(first, min(len(changed), first + 200)))
        middle = draw(st.one_of(_NOISE, st.just(b""), st.just(changed[first:last] * 2)))
        changed = changed[:first] + middle + changed[last:]
    return changed


def _places(node: Any) -> list[tuple[Any, Any]]:
    """Every position in a document: its container, and the key or number there."""
    entries = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    found = [(node, key) for key, _ in entries]
    for _, value in list(entries) if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        found += _places(value)
    return found
