"""Read YAML from users and other tools, as untrusted input.

The nodes are read and not what a loader constructs from them, so scalars stay as written: ``1.10`` is the version 1.10,
although YAML's rules make it the number 1.1, and ``2024-01-01`` is not a date. Documents that could exhaust memory or
the stack are refused first: PyYAML's C parser ends the process if brackets are nested too deep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from envsolve.boundary.display import one_line
from envsolve.boundary.files import FileError
from envsolve.lockfile.text_file import shown

if TYPE_CHECKING:
    from yaml import MarkedYAMLError, Node

_DEEPEST = 100
_DEEP_BLOCK = rf"(?m)^[ \t?:-]{{{_DEEPEST}}}(?![ \t]*(?:#|$))"
"""Collections in block style nest by indentation, or by indicators on one line."""
_FLOW_BRACKET = r"[\[\]{}]"
_ANCHOR = r"(?m)(?:^|[\s\[{,:])&\S"
_MOST_NODES = 300_000
"""The maximum number of nodes of a document with its aliases expanded."""
_LONGEST_LINE = 4096
_NULLS = ("", "~", "null", "Null", "NULL")


def compose(text: str) -> Node | None:
    """Return the nodes of the one document in ``text``, with their lines, or None if there is none.

    Raises FileError for invalid YAML, several documents, deep nesting, or a document that is small only because of
    aliases.
    """
    if re.search(_DEEP_BLOCK, text) or _is_deep_flow(text):
        raise FileError(f"it is nested more than {_DEEPEST} deep")
    node = _parsed(text)
    if node is not None and re.search(_ANCHOR, text):
        _refuse_bomb(node)
    return node


def document_of(text: str) -> object:
    """Return the document in ``text`` as dictionaries, lists and strings, or None. Raises like compose."""
    node = compose(text)
    return None if node is None else plain(node)


def plain(root: Node) -> object:
    """Return ``root`` as dictionaries, lists and strings. Raises FileError if a key is not a string."""
    from yaml import MappingNode

    def read(node: Node) -> object:
        if isinstance(node, MappingNode):
            return {key_of(key): read(value) for key, value in node.value}
        return node.value if isinstance(node.value, str) else [read(item) for item in node.value]

    return read(root)


def table_of(node: Node, what: str) -> dict[str, Node]:
    """Return the nodes of a mapping by key, none for null. Raises FileError for other types or a duplicate key."""
    from yaml import MappingNode

    if isinstance(node.value, str) and is_null(node.value):
        return {}
    if not isinstance(node, MappingNode):
        raise FileError(f"{what} is not a mapping", line_of(node))
    table: dict[str, Node] = {}
    for key, value in node.value:
        name = key_of(key)
        if name in table:
            raise FileError(f"{shown(name)} appears twice", line_of(key))
        table[name] = value
    return table


def items_of(node: Node, what: str) -> list[Node]:
    """Return the nodes of a list, none for null. Raises FileError for other types."""
    from yaml import SequenceNode

    if isinstance(node.value, str) and is_null(node.value):
        return []
    if not isinstance(node, SequenceNode):
        raise FileError(f"{what} is not a list", line_of(node))
    return list(node.value)


def scalar_of(node: Node, what: str) -> str:
    """Return the text of a scalar, "" for null. Raises FileError for other types, and if it is not one line of text."""
    if not isinstance(node.value, str):
        quotes = "text with a colon at its end, or before a space, needs quotes"
        raise FileError(f"{what} is a list or a mapping, where text belongs; {quotes}", line_of(node))
    written = node.value.replace("\t", " ")
    if not _is_line(written):
        raise FileError(f"{what} is not one line of ordinary text", line_of(node))
    return "" if is_null(written) else written


def key_of(node: Node) -> str:
    """Return a key. Raises FileError if it is not a string."""
    if not isinstance(node.value, str):
        raise FileError("a key is a list or a mapping, where text belongs", line_of(node))
    return node.value


def line_of(node: Node) -> int:
    """Return the line on which it begins, counted from 1."""
    return node.start_mark.line + 1


def is_null(text: object) -> bool:
    """Whether a scalar, quoted or not, is YAML's null. None is the value of a missing key."""
    return text is None or text in _NULLS


def mapping(value: object, what: str) -> Mapping[str, object]:
    """Return ``value`` if it is a mapping, and an empty one for null. Raises FileError otherwise."""
    if is_null(value):
        return {}
    if not isinstance(value, dict):
        raise FileError(f"{what} is not a mapping")
    return value


def sequence(value: object, what: str) -> Sequence[object]:
    """Return ``value`` if it is a list, and an empty one for null. Raises FileError otherwise."""
    if is_null(value):
        return ()
    if not isinstance(value, list):
        raise FileError(f"{what} is not a list")
    return value


def text_or_none(value: object, what: str) -> str | None:
    """Return ``value`` if it is one line of text, None for null. Raises FileError otherwise."""
    if is_null(value):
        return None
    if not isinstance(value, str) or not _is_line(value):
        raise FileError(f"{what} is not one line of ordinary text")
    return value


def text(value: object, what: str) -> str:
    """Return ``value`` if it is one line of text. Raises FileError otherwise."""
    found = text_or_none(value, what)
    if found is None:
        raise FileError(f"{what} is missing")
    return found


def _parsed(text: str) -> Node | None:
    import yaml

    try:
        loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)(text)
        try:
            node: Node | None = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _no_yaml(error) from None
    except (yaml.YAMLError, ValueError):
        raise FileError("it is not valid YAML: it contains invalid characters") from None
    except RecursionError:
        raise FileError("it is nested too deep") from None
    return node


def _is_line(text: str) -> bool:
    return text.isprintable() and len(text) <= _LONGEST_LINE


def _is_deep_flow(text: str) -> bool:
    """Whether brackets are nested too deep.

    Those in comments and quoted text count as well, but they are usually closed.
    """
    depth = 0
    for found in re.finditer(_FLOW_BRACKET, text):
        depth = depth + 1 if found[0] in "[{" else max(depth - 1, 0)
        if depth > _DEEPEST:
            return True
    return False


def _no_yaml(error: MarkedYAMLError) -> FileError:
    mark = error.problem_mark or error.context_mark
    reason = one_line(error.problem or error.context or "it cannot be parsed")
    return FileError(f"it is not valid YAML: {reason}", None if mark is None else mark.line + 1)


def _refuse_bomb(root: Node) -> None:
    from yaml import MappingNode

    sizes: dict[int, int] = {}

    def size(node: Node) -> int:
        known = sizes.get(id(node))
        if known is not None or isinstance(node.value, str):
            return known or 1
        sizes[id(node)] = _MOST_NODES  # until it is known, so that a cycle is too large
        children = chain.from_iterable(node.value) if isinstance(node, MappingNode) else node.value
        sizes[id(node)] = found = 1 + sum(map(size, children))
        return found

    if size(root) > _MOST_NODES:
        raise FileError("its aliases expand to too much")
