"""The source of a package, read and not run: which strings an expression in it can be.

Codes of errors and ids of findings are strings that the source passes to a class. Most stand there as they are; others
come out of a table, a condition, a variable or an argument, and are followed to where they stand.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

_DEEPEST = 8
"""From where a string stands to where it is used there are at most three or four steps; a circle has no end."""
GAP = "..."


class Call(NamedTuple):
    """A call and the module that it is in."""

    module: Module
    node: ast.Call

    def argument(self, position: int, name: str) -> ast.expr | None:
        """The argument of that name or at that position; None where neither is given."""
        named = next((it.value for it in self.node.keywords if it.arg == name), None)
        return named or (self.node.args[position] if position < len(self.node.args) else None)


class Module:
    """One module."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self._around: dict[ast.AST, ast.AST] = {
            child: parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)
        }

    @cached_property
    def imports(self) -> Mapping[str, tuple[str, str]]:
        """The module and the name there of each name that is imported with ``from``."""
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) and node.module)
        return {it.asname or it.name: (str(node.module), it.name) for node in found for it in node.names}

    @cached_property
    def classes(self) -> Mapping[str, tuple[str, ...]]:
        """The fields of each class of values: those of a NamedTuple, or what ``__init__`` takes."""
        return {node.name: tuple(_fields(node)) for node in self.tree.body if isinstance(node, ast.ClassDef)}

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """Every call."""
        return tuple(Call(self, node) for node in ast.walk(self.tree) if isinstance(node, ast.Call))

    def returned_by(self, function: str) -> Iterator[ast.expr]:
        """What the functions and methods of that name return."""
        named = (it for it in ast.walk(self.tree) if isinstance(it, ast.FunctionDef) and it.name == function)
        returns = (it.value for one in named for it in ast.walk(one) if isinstance(it, ast.Return))
        return (value for value in returns if value is not None)

    def function(self, node: ast.AST) -> ast.FunctionDef | None:
        """The function around ``node``."""
        while node in self._around:
            node = self._around[node]
            if isinstance(node, ast.FunctionDef):
                return node
        return None


class Source:
    """A package. ``unread`` grows with every expression that no string was found for."""

    def __init__(self, directory: Path) -> None:
        paths = sorted(directory.rglob("*.py"))
        names = {path: ".".join((directory.name, *path.relative_to(directory).with_suffix("").parts)) for path in paths}
        self.modules = {name: Module(path, name) for path, name in names.items()}
        self.unread: list[str] = []
        self._fields: dict[tuple[str, str], list[str]] = {}
        self._calls: dict[str, list[Call]] = {}
        for call in (call for module in self.modules.values() for call in module.calls):
            self._calls.setdefault(_name(call.node.func) or "", []).append(call)

    def calls_of(self, *names: str) -> Iterator[tuple[str, Call]]:
        """Every call of something that is called by one of ``names``, with that name."""
        return ((name, call) for name in dict.fromkeys(names) for call in self._calls.get(name, ()))

    def argument(self, call: Call, field: str) -> ast.expr | None:
        """The argument of the call of a class for one of its fields."""
        fields = self._fields_of(call)
        return call.argument(fields.index(field), field) if field in fields else None

    def strings(self, node: ast.expr | None, module: Module) -> list[str]:
        """The strings that ``node`` can be, in the order of the source."""
        found = list(dict.fromkeys(self._strings(node, module, _DEEPEST)))
        if not found:
            self.unread.append(f"{module.name}: {'' if node is None else ast.unparse(node)}")
        return found

    @staticmethod
    def sentence(node: ast.expr | None) -> str:
        """The text of ``node`` with dots for what is filled in; empty where it is no text in this place."""
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.IfExp):
            return Source.sentence(node.body) or Source.sentence(node.orelse)
        parts = node.values if isinstance(node, ast.JoinedStr) else ()
        return "".join(str(it.value) if isinstance(it, ast.Constant) else GAP for it in parts)

    def _strings(self, node: ast.AST | None, module: Module, left: int) -> Iterator[str]:
        read = self._readers.get(type(node))
        if left > 0 and read is not None:
            yield from read(node, module, left - 1)

    @cached_property
    def _readers(self) -> Mapping[type, Callable[[Any, Module, int], Iterator[str]]]:
        return {
            ast.Constant: self._of_constant,
            ast.IfExp: self._of_choice,
            ast.JoinedStr: self._of_joined,
            ast.Name: self._of_name,
            ast.Attribute: lambda node, module, left: self._field(node.value, node.attr, module, left),
            ast.Subscript: lambda node, module, left: self._of_table(node.value, node, module, left),
            ast.Call: self._of_call,
            _First: lambda node, module, left: self._first(node.of, module, left),
        }

    def _of_constant(self, node: ast.Constant, module: Module, left: int) -> Iterator[str]:
        if isinstance(node.value, str):
            yield node.value

    def _of_choice(self, node: ast.IfExp, module: Module, left: int) -> Iterator[str]:
        yield from self._strings(node.body, module, left)
        yield from self._strings(node.orelse, module, left)

    def _of_joined(self, node: ast.JoinedStr, module: Module, left: int) -> Iterator[str]:
        parts = [list(self._part(part, module, left)) for part in node.values]
        yield from ("".join(it) for it in product(*parts))

    def _of_name(self, node: ast.Name, module: Module, left: int) -> Iterator[str]:
        for where, value in self._values(node.id, node, module):
            yield from self._strings(value, where, left)

    def _of_table(self, table: ast.expr, node: ast.AST, module: Module, left: int) -> Iterator[str]:
        for where, value in self._values(table.id, node, module) if isinstance(table, ast.Name) else ():
            yield from self._members(value, where, left)

    def _of_call(self, node: ast.Call, module: Module, left: int) -> Iterator[str]:
        """What a function returns; of ``TABLE.get`` what is in the table, and what is taken where it is not."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            yield from self._of_table(node.func.value, node, module, left)
            yield from (text for it in node.args[1:] for text in self._strings(it, module, left))
        elif isinstance(node.func, ast.Name):
            yield from (text for it in module.returned_by(node.func.id) for text in self._strings(it, module, left))

    def _part(self, part: ast.expr, module: Module, left: int) -> Iterator[str]:
        value = part.value if isinstance(part, ast.FormattedValue) else part
        found = list(self._strings(value, module, left))
        yield from found or [GAP]

    def _members(self, value: ast.AST, module: Module, left: int) -> Iterator[str]:
        """The values of a table, or the first of each where it is several."""
        for member in value.values if isinstance(value, ast.Dict) else ():
            yield from self._first(member, module, left)

    def _first(self, value: ast.AST, module: Module, left: int) -> Iterator[str]:
        """The first of what ``value`` is unpacked into; ``value`` itself where it is one."""
        if isinstance(value, ast.Tuple):
            yield from self._strings(value.elts[0], module, left)
        elif isinstance(value, ast.Call) and (returned := list(module.returned_by(_name(value.func) or ""))):
            yield from (text for it in returned if left > 0 for text in self._first(it, module, left - 1))
        else:
            yield from self._strings(value, module, left)

    def _field(self, value: ast.expr, field: str, module: Module, left: int) -> Iterator[str]:
        """What a field can be of the one value that ``value`` names, else of any of the classes that are seen here."""
        named = self._values(value.id, value, module) if isinstance(value, ast.Name) else []
        calls = [Call(where, it) for where, it in named if isinstance(it, ast.Call)]
        calls = [it for it in calls if self.argument(it, field) is not None]
        if calls:
            yield from self._passed_for(field, calls, left)
            return
        if (module.name, field) not in self._fields:
            self._fields[module.name, field] = []  # what asks for itself adds nothing
            self._fields[module.name, field] = list(self._passed_for(field, self._makers(field, module), left))
        yield from self._fields[module.name, field]

    def _makers(self, field: str, module: Module) -> list[Call]:
        """Every call of a class that has the field, of those that are seen in this module."""
        seen = {module.name: module.classes, **self._imported_classes(module)}
        owners = {(of, name) for of, classes in seen.items() for name, fields in classes.items() if field in fields}
        named = dict.fromkeys(name for _, name in sorted(owners))
        return [call for name, call in self.calls_of(*named) if self._origin(name, call.module) in owners]

    def _passed_for(self, field: str, calls: list[Call], left: int) -> Iterator[str]:
        for call in calls:
            yield from self._strings(self.argument(call, field), call.module, left)

    def _imported_classes(self, module: Module) -> dict[str, dict[str, tuple[str, ...]]]:
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for of, name in module.imports.values():
            there = self.modules.get(of)
            if there is not None and name in there.classes:
                found.setdefault(of, {})[name] = there.classes[name]
        return found

    def _origin(self, name: str, module: Module) -> tuple[str, str]:
        return module.imports.get(name, (module.name, name))

    def _fields_of(self, call: Call) -> tuple[str, ...]:
        of, name = self._origin(_name(call.node.func) or "", call.module)
        return self.modules[of].classes.get(name, ()) if of in self.modules else ()

    def _values(self, name: str, node: ast.AST, module: Module) -> list[tuple[Module, ast.AST]]:
        """What ``name`` stands for where ``node`` is: what is assigned to it, passed for it, or imported by it."""
        function = module.function(node)
        if function is not None:
            found = list(_assigned(name, ast.walk(function)))
            if found:
                return [(module, it) for it in found]
            parameters = [it.arg for it in (*function.args.args, *function.args.kwonlyargs)]
            if name in parameters:
                return [(call.module, it) for call, it in self._passed(function.name, parameters.index(name), name)]
        of, there = self._origin(name, module)
        where = self.modules.get(of)
        return [] if where is None else [(where, it) for it in _assigned(there, where.tree.body)]

    def _passed(self, function: str, place: int, name: str) -> Iterator[tuple[Call, ast.expr]]:
        for _, call in self.calls_of(function):
            argument = call.argument(place, name)
            if argument is not None:
                yield call, argument


class _First(ast.expr):
    """The first of what ``of`` unpacks into."""

    __match_args__ = ("of",)

    def __init__(self, of: ast.expr) -> None:
        super().__init__()
        self.of = of


def _name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else None


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for it in node.body:
        if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name):
            yield it.target.id
        elif isinstance(it, ast.FunctionDef) and it.name == "__init__":
            yield from (argument.arg for argument in it.args.args[1:])


def _assigned(name: str, nodes: Iterator[ast.AST] | list[ast.stmt]) -> Iterator[ast.AST]:
    """Everything that is assigned to ``name``, also as one of several."""
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            targets: list[ast.expr] = [node.target]
            value: ast.expr = node.value
        elif isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name) and target.id == name:
                yield value
            elif isinstance(target, ast.Tuple):
                yield from _unpacked(name, target, value)


def _unpacked(name: str, target: ast.Tuple, value: ast.expr) -> Iterator[ast.AST]:
    for place, it in enumerate(target.elts):
        if isinstance(it, ast.Name) and it.id == name:
            if isinstance(value, ast.Tuple):
                yield value.elts[place]
            elif place == 0:
                yield _First(value)
