"""The requirements of a Poetry project as keys of a project: the main group of ``[tool.poetry.dependencies]``.

https://python-poetry.org/docs/dependency-specification and https://python-poetry.org/docs/pyproject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.project.adopting_packages import (
    OF_PYTORCH,
    Packages,
    Values,
    counted,
    is_of_pytorch,
    table_of,
    texts_of,
)
from envsolve.boundary.secrets import without_secrets

_BOUND = re.compile(r"([\^~])(?!=)\s*(\S+)\Z")
_WILDCARD = re.compile(r"(?:==)?\s*(\d+(?:\.\d+)*)\.[*xX]\Z")
_PLACES = ("path", "file", "git", "url")
_OF_A_PACKAGE = ("version", "extras", "markers", "python", "platform", "source", "optional")
_HARMLESS = ("allow-prereleases", "develop")
_MAJOR_AND_MINOR = 2


def values_of_poetry(poetry: Mapping[str, Any]) -> tuple[Values, tuple[str, ...]]:
    """The keys, as TOML has them, and notes on what they cannot express. ``poetry`` is ``[tool.poetry]``."""
    found = Packages("[tool.poetry]")
    for name, versions in table_of(poetry.get("dependencies")).items():
        for one in versions if isinstance(versions, list) else [versions]:
            _package(name, one if isinstance(one, dict) else {"version": one}, found)
    for text in _left_out(poetry):
        found.note(text)
    return found.finished(), found.notes


def poetry_specifier(text: str) -> SpecifierSet | None:
    """A version constraint of Poetry; None if a specifier cannot express it, as for ``^1 || ^3``."""
    found = SpecifierSet()
    for part in re.split(r"\s*,\s*|\s+(?=[\^~<>=!])", text.strip()):
        try:
            found &= SpecifierSet(_clauses(re.sub(r"\s+", "", part)))
        except ValueError:
            return None
    return found


def _clauses(part: str) -> str:
    """Caret and tilde written out.

    ``^`` fixes the numbers up to the first that is not 0, ``~`` up to the minor version, or the only number.
    """
    if part in ("", "*"):
        return ""
    wildcard = _WILDCARD.match(part)
    if wildcard is not None:
        return f"=={wildcard[1]}.*"
    bound = _BOUND.match(part)
    if bound is None:
        return f"=={part}" if part[0].isdigit() else part
    sign, version = bound.groups()
    release = Version(version).release
    if sign == "~":
        fixed = min(len(release), _MAJOR_AND_MINOR)
    else:
        fixed = next((place for place, number in enumerate(release, 1) if number), len(release))
    above = (*release[: fixed - 1], release[fixed - 1] + 1)
    return f">={version},<{'.'.join(map(str, above))}"


def _package(name: str, table: Mapping[str, Any], found: Packages) -> None:
    place = next((key for key in _PLACES if key in table), None)
    version = table.get("version", "*")
    specifier = poetry_specifier(version) if isinstance(version, str) else None
    if place is not None:
        found.note(f"{name} is ignored: it is specified by {place}, not by version")
    elif table.get("optional"):
        found.note(f"{name} is ignored: it is optional")
    elif specifier is None:
        found.note(f"{name} is ignored: version {version!r} is not supported")
    elif name.lower() == "python":
        found.bound("python", specifier)
    else:
        marker = _marker(table)
        if marker is None:
            found.note(f"{name} is ignored: python = {table['python']!r} cannot be written as a marker")
            return
        found.add(name, specifier, texts_of(table.get("extras", [])), marker)
        if "source" in table:
            found.note(f"the source {table['source']} of {name} is ignored: any index can provide it")
        more = [key for key in table if key not in (*_OF_A_PACKAGE, *_HARMLESS)]
        if more:
            found.note(f"{name}: {counted(more, 'key', 'keys')} ignored")


def _marker(table: Mapping[str, Any]) -> str | None:
    """The marker of a dependency, including its ``python`` and ``platform``; None if a marker cannot express it."""
    parts = [str(table["markers"])] if table.get("markers") else []
    if table.get("platform"):
        parts.append(f'sys_platform == "{table["platform"]}"')
    if table.get("python"):
        specifier = poetry_specifier(str(table["python"]))
        if specifier is None:
            return None
        parts += [
            _of_python(str(clause.operator), clause.version) for clause in sorted(specifier, key=str, reverse=True)
        ]
    return " and ".join(f"({it})" if " or " in it else it for it in parts)


def _of_python(operator: str, version: str) -> str:
    is_short = len(version.removesuffix(".*").split(".")) <= _MAJOR_AND_MINOR
    if is_short and operator in ("==", "!=") and not version.endswith(".*") and "." in version:
        return f'python_full_version {operator} "{version}"'
    return f'{"python_version" if is_short else "python_full_version"} {operator} "{version}"'


def _left_out(poetry: Mapping[str, Any]) -> Iterator[str]:
    groups = [*table_of(poetry.get("group"))] + (["dev"] if poetry.get("dev-dependencies") else [])
    if groups:
        yield f"{counted(dict.fromkeys(groups), 'group', 'groups')} ignored"
    extras = table_of(poetry.get("extras"))
    if extras:
        yield f"{counted(extras, 'extra', 'extras')} ignored"
    sources = poetry.get("source")
    for source in filter(None, map(table_of, sources if isinstance(sources, list) else ())):
        address = without_secrets(str(source.get("url", "")))
        adds = f'is ignored: add extra-index-urls = ["{address}"] to use it' if address else "is ignored"
        yield f"the source {source.get('name')} {OF_PYTORCH if is_of_pytorch(address) else adds}"
