"""The name of a project from its files, without a build."""

from __future__ import annotations

import ast
import configparser
from collections.abc import Callable

from envsolve.boundary.files import FileError, toml_document

FILES = ("pyproject.toml", "setup.cfg", "setup.py")


def stated_name(read: Callable[[str], bytes]) -> str:
    """The name of a project, "" if only a build shows it. ``read`` returns the content of one of its files."""
    readers = zip(FILES, (_in_pyproject, _in_setup_cfg, _in_setup_py), strict=True)
    found = (reader(read(name).decode("utf-8", "replace")) for name, reader in readers)
    return next((name for name in found if isinstance(name, str) and name), "")


def _in_pyproject(text: str) -> object:
    try:
        tables = toml_document(text)
    except FileError:
        return None
    for keys in (("project", "name"), ("tool", "poetry", "name")):
        found: object = tables
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        if found:
            return found
    return None


def _in_setup_cfg(text: str) -> object:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    return parser.get("metadata", "name", fallback=None)


def _in_setup_py(text: str) -> object:
    """The argument ``name`` in the call of ``setup``, if it is a literal."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and "setup" in (getattr(node.func, it, None) for it in ("id", "attr")):
            for keyword in node.keywords:
                if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                    return keyword.value.value
    return None
