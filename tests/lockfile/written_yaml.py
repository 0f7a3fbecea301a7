"""YAML documents of a format with arbitrary values in some positions, for properties of its reader."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from pathlib import Path

import yaml
from hypothesis import strategies as st

_TEXTS = (
    *("numpy", "numpy=1.26=h1_0", "linux-64", "noarch", "conda", "pip", "pypi", "null", "", "1", "4", "6", "7", "main"),
    *("https://127.0.0.1/channel/linux-64/a-1-h1_0.conda", "https://127.0.0.1/a-1-py3-none-any.whl", "a" * 64, ">=1"),
    *("\u2028", "a\nb", "https://user:secret@127.0.0.1/t/secret/channel", "sel(linux)", "name", "url", "-r a.txt"),
)
_SCALARS = st.sampled_from(_TEXTS) | st.integers() | st.booleans() | st.none() | st.text(max_size=5)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_SCALARS, inner, max_size=3),
    max_leaves=6,
)
_Place = tuple[str | int, ...]


@st.composite
def documents(draw: st.DrawFn, sample: Path) -> str:
    """The document at ``sample`` with a few of its values, at any depth, removed or replaced by any other."""
    document = {"it": deepcopy(_parsed(sample))}
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from([place for place in _places(document) if place]))
        locked: object = document
        for key in way:
            locked = locked[key]  # type: ignore[index]
        if not way or draw(st.booleans()):
            locked[last] = draw(_VALUES)  # type: ignore[index]
        else:
            del locked[last]  # type: ignore[attr-defined]
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump(document["it"], allow_unicode=True, Dumper=dumper))


@cache
def _parsed(sample: Path) -> object:
    return yaml.safe_load(sample.read_text(encoding="utf-8"))


def _places(value: object) -> Iterator[_Place]:
    yield ()
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, locked in inside:
        yield from ((key, *place) for place in _places(locked))
