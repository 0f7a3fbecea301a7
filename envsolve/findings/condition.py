"""Conditions over declared facts: ``status == 'NOT_SUPPORTED' and not saw('out-of-memory')``.

The syntax is a part of Python's: names, parts of facts (``driver.major``), constants, calls of declared functions,
comparisons, ``and``, ``or`` and ``not``. A comparison with an unknown value (None) is false. In a constant a backslash
stands for itself, as regular expressions need it.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from itertools import accumulate
from typing import Any

Facts = Callable[[str], object]
"""The value of a declared fact by its name: None if it is unknown; for a function, the callable."""

_OPERATORS: Mapping[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, items: item in items,
    ast.NotIn: lambda item, items: item not in items,
}


_PART = re.compile(r"\w+(?:\.\w+)+")


class Condition:
    """A parsed condition. Raises ValueError for anything outside the language."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._tree = _Parts().visit(ast.parse(text.replace("\\", r"\\"), mode="eval")).body
        except SyntaxError as error:
            raise ValueError(f"{text!r} is not a condition: {error.msg}") from None
        self.names = frozenset(_names(self._tree))

    def value(self, facts: Facts) -> object:
        """The value; truth is as in Python."""
        return _value(self._tree, facts)

    def holds(self, facts: Facts) -> bool:
        """Whether it is true."""
        return bool(_value(self._tree, facts))

    def arguments_of(self, function: str) -> frozenset[str]:
        """The strings that it passes to ``function``."""
        calls = (it for it in ast.walk(self._tree) if isinstance(it, ast.Call) and ast.unparse(it.func) == function)
        return frozenset(str(arg.value) for it in calls for arg in it.args if isinstance(arg, ast.Constant))

    @cached_property
    def known(self) -> frozenset[str]:
        """The names that have a value whenever the condition holds."""
        return _known(self._tree)


class _Parts(ast.NodeTransformer):
    """Joins the name of a fact and its part into one name: ``driver.major``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:  # the name that ast calls
        text = ast.unparse(node)
        return ast.Name(id=text) if _PART.fullmatch(text) else node


def _names(node: ast.expr) -> list[str]:
    match node:
        case ast.Name(id=name):
            return [name]
        case ast.Constant():
            return []
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts):
            return [name for part in parts for name in _names(part)]
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return _names(part)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
            return [*_names(left), *_names(right)]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name.isidentifier():
            return [name, *(it for arg in args for it in _names(arg))]
    raise ValueError(f"{ast.unparse(node)!r} is not allowed in a condition")


def _known(node: ast.expr) -> frozenset[str]:
    match node:
        case ast.Name(id=name):
            return frozenset(accumulate(name.split("."), "{}.{}".format))
        case ast.BoolOp(op=ast.And(), values=parts):
            return frozenset[str]().union(*map(_known, parts))
        case ast.BoolOp(values=parts):
            return frozenset.intersection(*map(_known, parts))
        case ast.Compare(left=left, comparators=[right]):
            return frozenset[str]().union(*(_known(it) for it in (left, right) if isinstance(it, ast.Name)))
    return frozenset()


def _value(node: ast.expr, facts: Facts) -> object:  # noqa: PLR0911 - one for each kind of expression
    match node:
        case ast.Name(id=name):
            return facts(name)
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=parts):
            return tuple(_value(part, facts) for part in parts)
        case ast.BoolOp(op=kind, values=[*parts, last]):
            for part in parts:
                found = _value(part, facts)
                if bool(found) is isinstance(kind, ast.Or):
                    return found
            return _value(last, facts)
        case ast.UnaryOp(operand=part):
            return not _value(part, facts)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _value(left, facts), _value(right, facts)
            return one is not None and other is not None and _OPERATORS[type(op)](one, other)
        case ast.Call(func=ast.Name(id=name), args=args):
            function = facts(name)
            assert callable(function), name
            return function(*(_value(arg, facts) for arg in args))
    raise AssertionError(ast.dump(node))
