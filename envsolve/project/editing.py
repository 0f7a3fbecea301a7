"""Add requirements to a project file or remove them; all other lines and comments stay."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.errors import Hint, UsageError
from envsolve.frameworks import FRAMEWORKS, framework_of_word
from envsolve.model.names import normalized
from envsolve.model.need import parse_need
from envsolve.model.reference import gives_address
from envsolve.project.keys import ALIASES
from envsolve.project.reading import PYPROJECT, TABLE, parsed

_FRAMEWORKS, _REQUIREMENTS, _DEPENDENCIES = "frameworks", "requirements", "dependencies"


class _List(NamedTuple):
    """A list of requirements under ``key`` of ``table``. ``path`` is its place in messages."""

    table: MutableMapping[str, Any]
    key: str
    path: str

    @property
    def entries(self) -> list[str]:
        """The entries of the list, none if it does not exist."""
        return [str(it) for it in self.table.get(self.key, ())]


def with_requirements(path: Path, text: str, requirements: Sequence[str]) -> str:
    """Return ``text``, the content of the project file ``path``, with ``requirements`` added.

    A framework goes to ``frameworks`` and anything else to ``requirements``. If the project locks the dependencies in
    [project], all go there. An entry with the same name is replaced in place. Raises UsageError ``requirement-invalid``
    for an invalid requirement.
    """
    document, lists = _lists(path, text)
    dependencies = next((it for it in lists if it.key == _DEPENDENCIES), None)
    for requirement in requirements:
        name = _name_in(requirement)
        there = [(it, entry) for it in lists for entry in it.entries if _name_in(entry) == name]
        for found, entry in there:
            found.table[found.key][found.entries.index(entry)] = _spelled(requirement, found)
        if not there:
            frameworks, others = lists[:2]
            found = dependencies or (frameworks if _framework_of(requirement) else others)
            _append(found, _spelled(requirement, found))
    return _with_ends_of(text, document.as_string())


def without_requirements(path: Path, text: str, names: Sequence[str]) -> str:
    """Return ``text`` without the requirements with these names, in any list of the project file.

    Raises UsageError ``not-required`` if a name is in none of its lists.
    """
    document, lists = _lists(path, text)
    for name in names:
        wanted, found = _name_in(name), False
        for it in lists:
            for entry in [entry for entry in it.entries if _name_in(entry) == wanted]:
                del it.table[it.key][it.entries.index(entry)]
                found = True
                if not it.entries and it.key != _DEPENDENCIES:
                    del it.table[it.key]
        if not found:
            where = " or ".join(dict.fromkeys(it.path for it in lists))
            message = f"{path.name} does not require {name}: it is not in {where}"
            hint = Hint("see what requires it in the lock, or which requirement file names it")
            raise UsageError("not-required", message, hints=(hint,))
    return _with_ends_of(text, document.as_string())


def _with_ends_of(text: str, edited: str) -> str:
    """``edited`` with Windows line ends if ``text`` has only these. tomlkit writes new lines without them."""
    is_windows = "\r\n" in text and text.count("\n") == text.count("\r\n")
    return edited.replace("\r\n", "\n").replace("\n", "\r\n") if is_windows else edited


def _lists(path: Path, text: str) -> tuple[Any, list[_List]]:
    """The document, and the lists of requirements that its project locks, envsolve's own first."""
    import tomlkit

    parsed(path, text)  # for the error, which names the line
    document = tomlkit.parse(text)
    own: MutableMapping[str, Any] = document
    if path.name == PYPROJECT:
        for key in TABLE:
            own = own[key]
    prefix = f"{'.'.join(TABLE)}." if path.name == PYPROJECT else ""
    lists = list(_own_lists(own, prefix))
    for name, target in own.get("targets", {}).items():
        lists += [it for it in _own_lists(target, f"{prefix}targets.{name}.") if it.entries]
    project = document.get("project", {}) if path.name == PYPROJECT else {}
    if own.get("project-dependencies") and "dependencies" in project:
        lists.append(_List(project, _DEPENDENCIES, "project.dependencies"))
    return document, lists


def _own_lists(table: MutableMapping[str, Any], prefix: str) -> Iterator[_List]:
    singular = {plural: it for it, plural in ALIASES.items()}
    for key in (_FRAMEWORKS, _REQUIREMENTS):
        used = next((it for it in (singular.get(key, key), key) if it in table), key)
        yield _List(table, used, f"{prefix}{used}")


def _spelled(requirement: str, place: _List) -> str:
    """``requirement`` as written in ``place``: a framework has its name on the index where other tools read it."""
    known = FRAMEWORKS.get(_framework_of(requirement) or "")
    if known is None or place.key in (_FRAMEWORKS, *ALIASES):
        return requirement
    need = parse_need(requirement)
    name = need.name if need.name in (*known.wheels, *known.cpu_wheels) else known.wheels[0]
    return f"{name}{need.specifier}"


def _append(to: _List, requirement: str) -> None:
    import tomlkit

    if to.key in to.table:
        to.table[to.key].append(requirement)
        return
    array = tomlkit.array()
    array.append(requirement)
    to.table[to.key] = array


def _framework_of(requirement: str) -> str | None:
    """The framework that ``requirement`` is for, or None if it is another package or has extras."""
    try:
        need = parse_need(requirement)
    except ValueError:
        return None
    return None if need.extras or need.url or need.marker else framework_of_word(need.name)


def _name_in(requirement: str) -> str:
    """The framework or package of ``requirement``, or the address itself if it has no name.

    Raises UsageError ``requirement-invalid`` for an invalid requirement.
    """
    framework = _framework_of(requirement)
    if framework is not None:
        return framework
    try:
        return normalized(parse_need(requirement).name)
    except ValueError as error:
        if gives_address(requirement):
            return requirement
        raise UsageError("requirement-invalid", str(error), hints=(Hint("write it as 'numpy>=2'"),)) from None
