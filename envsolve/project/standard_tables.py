"""The requirements in the standard tables of a pyproject.toml: [project] with its extras, and [dependency-groups].

PEP 621 and PEP 735; packaging.python.org/specifications has both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from envsolve.model.names import normalized

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

TABLE_KEYS = ("project-dependencies", "extras", "dependency-groups")


class Mistake(NamedTuple):
    """What is wrong with the value at ``path``, in words for users.

    ``entry`` is None for a key of envsolve. For a standard table it is the invalid element of the list, "" for the
    whole value.
    """

    path: tuple[str, ...]
    text: str
    entry: str | None = None


Wrong = list[Mistake]


class Standard(NamedTuple):
    """A requirement, and the key of the standard table whose list has it as ``entry``."""

    requirement: str
    path: tuple[str, ...]
    entry: str


def standard_requirements(values: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[tuple[Standard, ...], Wrong]:
    """Return the requirements that ``values`` select from the tables of ``document``, each once, and the mistakes."""
    wrong: Wrong = []
    project = document.get("project")
    project = project if isinstance(project, dict) else {}
    found: list[Standard] = []
    if values.get("project-dependencies"):
        path = ("project", "dependencies")
        found += [Standard(it, path, it) for it in _dependencies(project, wrong)]
    for extra in values.get("extras", ()):
        found += _of_extra(extra, project, wrong)
    groups = values.get("dependency-groups", ())
    if groups:
        found += _of_groups(groups, document.get("dependency-groups"), wrong)
    once: dict[str, Standard] = {}
    for it in found:
        once.setdefault(it.requirement, it)
    return tuple(once.values()), wrong


def requires_python(document: Mapping[str, Any], wrong: Wrong) -> SpecifierSet | None:
    """Return ``requires-python`` of [project], or None if it is missing or invalid, which is added to ``wrong``."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    project = document.get("project")
    text = project.get("requires-python") if isinstance(project, dict) else None
    if text is None:
        return None
    if isinstance(text, str):
        with suppress(InvalidSpecifier):
            return SpecifierSet(text) or None
    path = ("project", "requires-python")
    wrong.append(Mistake(path, 'requires-python is a string with Python versions, such as ">=3.11"', ""))
    return None


def _dependencies(project: Mapping[str, Any], wrong: Wrong) -> Sequence[str]:
    if not project:
        wrong.append(Mistake(("project-dependencies",), "pyproject.toml has no table [project]"))
        return ()
    if "dependencies" in _texts(project.get("dynamic")):
        text = "the project's dependencies are dynamic, so they cannot be read from a file"
        wrong.append(Mistake(("project-dependencies",), text))
        return ()
    return _requirements(project, ("project", "dependencies"), wrong)


def _of_extra(extra: str, project: Mapping[str, Any], wrong: Wrong) -> list[Standard]:
    """The requirements of an extra. References to other extras of this project are replaced with their requirements."""
    from packaging.requirements import InvalidRequirement, Requirement

    extras = project.get("optional-dependencies")
    extras = extras if isinstance(extras, dict) else {}
    table = {normalized(name): name for name in extras}
    own_name = normalized(str(project.get("name", "")))
    found: list[Standard] = []
    seen: set[str] = set()
    left = [extra]
    while left:
        name = normalized(left.pop(0))
        if name in seen:
            continue
        seen.add(name)
        if name not in table:
            text = f"the project has no extra {name!r}; it has {', '.join(table) or 'none'}"
            wrong.append(Mistake(("extras",), text))
            continue
        path = ("project", "optional-dependencies", table[name])
        for text in _requirements(extras, path, wrong):
            entry = Standard(text, path, text)
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                found.append(entry)  # reported where it is read
                continue
            if own_name and normalized(requirement.name) == own_name:
                left += sorted(requirement.extras)
            else:
                found.append(entry)
    return found


def _of_groups(groups: Sequence[str], tables: object, wrong: Wrong) -> tuple[Standard, ...]:
    if not isinstance(tables, dict):
        wrong.append(Mistake(("dependency-groups",), "pyproject.toml has no table [dependency-groups]"))
        return ()
    from packaging.dependency_groups import resolve_dependency_groups
    from packaging.requirements import InvalidRequirement

    try:
        resolve_dependency_groups(tables, *groups)
    except (ExceptionGroup, ValueError, TypeError, LookupError) as error:
        reasons = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        texts = (str(it).strip("'\"") for it in reasons if not isinstance(it, InvalidRequirement))
        wrong += [Mistake(("dependency-groups",), it) for it in texts]
    return tuple(it for group in groups for it in _of_group(group, tables, frozenset()))


def _of_group(group: str, tables: Mapping[str, object], above: frozenset[str]) -> Iterator[Standard]:
    """The requirements of a group and of the groups it includes. ``above`` are those that include it.

    Mistakes in the groups themselves are already reported, and left out.
    """
    from packaging.requirements import InvalidRequirement, Requirement

    name = normalized(group)
    spelled = next((it for it in tables if normalized(it) == name), None)
    entries = None if spelled is None or name in above else tables[spelled]
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield from _of_group(str(entry.get("include-group")), tables, above | {name})
        elif isinstance(entry, str):
            try:
                requirement = str(Requirement(entry))
            except InvalidRequirement:
                requirement = entry  # reported where it is read
            yield Standard(requirement, ("dependency-groups", str(spelled)), entry)


def _requirements(table: Mapping[str, Any], path: tuple[str, ...], wrong: Wrong) -> Sequence[str]:
    """The list at ``path``, whose last key is in ``table``. Elements that are not strings are added to ``wrong``."""
    value = table.get(path[-1], [])
    if not isinstance(value, list) or not all(isinstance(it, str) for it in value):
        wrong.append(Mistake(path, f'{path[-1]} is a list of strings, such as ["numpy>=2"]', ""))
    return _texts(value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(it for it in value if isinstance(it, str)) if isinstance(value, list) else ()
