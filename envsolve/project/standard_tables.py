"""What the standard tables of a pyproject.toml require: [project] with its extras, and [dependency-groups].

PEP 621 and PEP 735; packaging.python.org/specifications has both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from envsolve.model.names import normalized

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

TABLE_KEYS = ("project-dependencies", "extras", "dependency-groups")

Wrong = list[tuple[str, str]]
"""Keys, and what is wrong with what they are about."""


def standard_requirements(values: Mapping[str, Any], document: Mapping[str, Any]) -> tuple[tuple[str, ...], Wrong]:
    """The requirements that ``values`` ask for out of the tables of ``document``, and what is wrong with them."""
    wrong: Wrong = []
    project = document.get("project")
    project = project if isinstance(project, dict) else {}
    found: list[str] = []
    if values.get("project-dependencies"):
        found += _dependencies(project, wrong)
    for extra in values.get("extras", ()):
        found += _of_extra(extra, project, wrong)
    groups = values.get("dependency-groups", ())
    if groups:
        found += _of_groups(groups, document.get("dependency-groups"), wrong)
    return tuple(dict.fromkeys(found)), wrong


def requires_python(document: Mapping[str, Any]) -> SpecifierSet | None:
    """``requires-python`` of [project]; None where it is not said, or not as the standard has it."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    project = document.get("project")
    text = project.get("requires-python") if isinstance(project, dict) else None
    try:
        return SpecifierSet(text) if isinstance(text, str) and text.strip() else None
    except InvalidSpecifier:
        return None


def _dependencies(project: Mapping[str, Any], wrong: Wrong) -> Sequence[str]:
    if not project:
        wrong.append(("project-dependencies", "pyproject.toml has no table [project]"))
        return ()
    if "dependencies" in _texts(project.get("dynamic")):
        wrong.append(("project-dependencies", "the project's dependencies are dynamic: no file says which they are"))
        return ()
    return _texts(project.get("dependencies"))


def _of_extra(extra: str, project: Mapping[str, Any], wrong: Wrong) -> list[str]:
    """The requirements of an extra, those of other extras of this project among them instead of its own name."""
    from packaging.requirements import InvalidRequirement, Requirement

    extras = project.get("optional-dependencies")
    table = {normalized(name): _texts(it) for name, it in extras.items()} if isinstance(extras, dict) else {}
    own_name = normalized(str(project.get("name", "")))
    found: list[str] = []
    seen: set[str] = set()
    left = [extra]
    while left:
        name = normalized(left.pop(0))
        if name in seen:
            continue
        seen.add(name)
        if name not in table:
            wrong.append(("extras", f"the project has no extra {name!r}; it has {', '.join(table) or 'none'}"))
            continue
        for text in table[name]:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                found.append(text)  # told where it is read
                continue
            if own_name and normalized(requirement.name) == own_name:
                left += sorted(requirement.extras)
            else:
                found.append(text)
    return found


def _of_groups(groups: Sequence[str], tables: object, wrong: Wrong) -> tuple[str, ...]:
    if not isinstance(tables, dict):
        wrong.append(("dependency-groups", "pyproject.toml has no table [dependency-groups]"))
        return ()
    from packaging.dependency_groups import resolve_dependency_groups

    try:
        return resolve_dependency_groups(tables, *groups)
    except (ExceptionGroup, ValueError, TypeError, LookupError) as error:
        reasons = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
        wrong += [("dependency-groups", str(reason).strip("'\"")) for reason in reasons]
        return ()


def _texts(value: object) -> tuple[str, ...]:
    return tuple(it for it in value if isinstance(it, str)) if isinstance(value, list) else ()
