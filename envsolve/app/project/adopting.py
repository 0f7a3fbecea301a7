"""What a directory says about the environment that it needs: files of conda, pip, pixi, Poetry and envsolve.

Files that people write stay in place, and the project names them. From locks, which have far more packages than were
requested, only the frameworks are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.app.packages.conda_requirements import requirements_on
from envsolve.app.project.adopting_packages import table_of
from envsolve.app.project.adopting_pixi import values_of_pixi
from envsolve.app.project.adopting_poetry import values_of_poetry
from envsolve.app.status.locked_stack import LockedStack, locked_stack
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORK_OF_WHEEL, framework_of_name
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.names import normalized
from envsolve.model.request import Packages
from envsolve.project import Settings
from envsolve.project.reading import PYPROJECT, parsed, read_text

_ENVIRONMENTS = ("environment.yml", "environment.yaml")
_INPUTS = ("requirements.in", "requirements.txt")
_CONDA_LOCKS = ("conda-lock.yml", "conda-lock.yaml")
_PIXI = "pixi.toml"


class Adopted(NamedTuple):
    """The keys of a project as TOML has them, the files that they come from, and notes."""

    values: dict[str, object]
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def adopted(directory: Path, platform: Platform, matrix: Matrix) -> Adopted:
    """The requirements in the files of ``directory``; no values if there are none, or only [project].

    Raises UsageError if a file cannot be read.
    """
    for names, take in (
        (_ENVIRONMENTS, _of_environment),
        (_INPUTS, _of_requirements),
        (_CONDA_LOCKS, _of_lock),
        ((_PIXI,), _of_pixi),
        ((PYPROJECT,), _of_pyproject),
    ):
        for name in names:
            if (directory / name).is_file() and (found := take(directory / name, platform, matrix)).values:
                return found._replace(notes=(*found.notes, *_aside(directory, name)))
    return Adopted({})


def names_framework(settings: Settings, platform: Platform) -> bool:
    """Whether the request on ``platform`` names a framework, also in its files, which are relative to this directory.

    Raises UsageError if a file cannot be read.
    """
    if settings.frameworks:
        return True
    packages = Packages(
        settings.requirements, settings.requirement_files, settings.constraint_files, exclude=settings.exclude
    )
    found = requirements_on(packages, platform)
    names = [parse_match_spec(it.spec).name for it in found.conda]
    names += [] if found.python is None else [need.name for need, _ in found.python.needs]
    return any(normalized(it) in DEPENDENT_FRAMEWORKS or framework_of_name(it) for it in names)


def _aside(directory: Path, taken: str) -> Iterator[str]:
    """Other files with requirements that were not read."""
    others = [it for it in (*_ENVIRONMENTS, *_INPUTS, _PIXI) if it != taken and (directory / it).is_file()]
    if others and taken not in _CONDA_LOCKS:
        yield f"ignored {', '.join(others)}: {taken} takes precedence"


def _of_pixi(path: Path, _platform: Platform, _matrix: Matrix) -> Adopted:
    values, notes = values_of_pixi(parsed(path, read_text(path)), path.name)
    return Adopted(values, (path.name,), notes)


def _of_pyproject(path: Path, _platform: Platform, _matrix: Matrix) -> Adopted:
    """The tables of pixi and Poetry, if [project] does not list dependencies."""
    document = parsed(path, read_text(path))
    tool, project = table_of(document.get("tool")), table_of(document.get("project"))
    pixi, poetry = table_of(tool.get("pixi")), table_of(tool.get("poetry"))
    if pixi.get("dependencies") or pixi.get("pypi-dependencies"):
        values, notes = values_of_pixi(pixi, "[tool.pixi]", str(project.get("name", "")))
        return Adopted(values, (f"[tool.pixi] in {path.name}",), notes)
    if poetry.get("dependencies") and not project.get("dependencies"):
        values, notes = values_of_poetry(poetry)
        return Adopted(values, (f"[tool.poetry] in {path.name}",), notes)
    return Adopted({})


def _of_environment(path: Path, platform: Platform, matrix: Matrix) -> Adopted:
    """A file that a person wrote is required as it is; from one of envsolve's, only its frameworks are required."""
    stack = locked_stack(path, platform, matrix)
    if stack is not None and stack.lock.made is not None:
        return _of_stack(path, stack)
    return Adopted({"requirement-files": [path.name], "outputs": ["conda-lock.yml"]}, (path.name,))


def _of_requirements(path: Path, platform: Platform, matrix: Matrix) -> Adopted:
    stack = locked_stack(path, platform, matrix)
    if stack is not None and stack.lock.made is not None:
        taken = _of_stack(path, stack)
        others = [it for it in stack.lock.made.request or () if _framework(it) is None]
        return taken._replace(values={**taken.values, **({"requirements": others} if others else {})})
    return Adopted({"requirement-files": [path.name], "outputs": ["pylock.toml"]}, (path.name,))


def _of_lock(path: Path, platform: Platform, matrix: Matrix) -> Adopted:
    stack = locked_stack(path, platform, matrix)
    if stack is None or not stack.releases:
        return Adopted({})
    taken = _of_stack(path, stack)
    note = f"{path.name} does not record the request: only its frameworks are imported, add the rest under requirements"
    return taken._replace(notes=(note,))


def _of_stack(path: Path, stack: LockedStack) -> Adopted:
    return Adopted({"frameworks": sorted(stack.releases), "outputs": [path.name]}, (path.name,))


def _framework(requirement: str) -> str | None:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return None if name is None else FRAMEWORK_OF_WHEEL.get(normalized(name[0])) or _of_own_name(name[0])


def _of_own_name(name: str) -> str | None:
    return name if name in FRAMEWORK_OF_WHEEL.values() else None
