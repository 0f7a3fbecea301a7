"""What a directory says already of the environment that it wants: files of conda, pip, pixi and of envsolve itself.

Files that people write stay where they are and are named in the project; out of locks, which hold far more than was
asked for, only the frameworks are taken.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from envsolve.app.adopting_pixi import values_of_pixi
from envsolve.app.held_stack import HeldStack, held_stack
from envsolve.app.lock_frameworks import FRAMEWORK_OF
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.names import normalized

_ENVIRONMENTS = ("environment.yml", "environment.yaml")
_INPUTS = ("requirements.in", "requirements.txt")
_CONDA_LOCKS = ("conda-lock.yml", "conda-lock.yaml")
_PIXI = "pixi.toml"


class Adopted(NamedTuple):
    """The keys of a project, as TOML has them, the files they are from, and what to tell of it."""

    values: dict[str, object]
    files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def adopted(directory: Path, platform: Platform, matrix: Matrix) -> Adopted:
    """What the files in ``directory`` ask for; no values where none of them is there.

    Raises UsageError where one cannot be read.
    """
    for names, take in (
        (_ENVIRONMENTS, _of_environment),
        (_INPUTS, _of_requirements),
        (_CONDA_LOCKS, _of_lock),
    ):
        for name in names:
            if (directory / name).is_file():
                return take(directory / name, platform, matrix)
    if (directory / _PIXI).is_file():
        values, notes = values_of_pixi(directory / _PIXI)
        return Adopted(values, (_PIXI,), notes)
    return Adopted({})


def _of_environment(path: Path, platform: Platform, matrix: Matrix) -> Adopted:
    """A file that a person wrote is asked as it is; one of envsolve's is an answer: its frameworks are asked."""
    stack = held_stack(path, platform, matrix)
    if stack is not None and stack.recorded is not None:
        return _of_stack(path, stack)
    return Adopted({"requirement-files": [path.name], "outputs": ["conda-lock.yml"]}, (path.name,))


def _of_requirements(path: Path, platform: Platform, matrix: Matrix) -> Adopted:
    stack = held_stack(path, platform, matrix)
    if stack is not None and stack.recorded is not None:
        asked = stack.recorded.get("request")
        taken = _of_stack(path, stack)
        others = (
            [it for it in asked if isinstance(it, str) and _framework(it) is None] if isinstance(asked, list) else []
        )
        return taken._replace(values={**taken.values, **({"requirements": others} if others else {})})
    return Adopted({"requirement-files": [path.name], "outputs": ["pylock.toml"]}, (path.name,))


def _of_lock(path: Path, platform: Platform, matrix: Matrix) -> Adopted:
    stack = held_stack(path, platform, matrix)
    if stack is None or not stack.releases:
        return Adopted({})
    taken = _of_stack(path, stack)
    told = f"{path.name} does not say what was asked for: its frameworks are taken, add the rest under requirements"
    return taken._replace(notes=(told,))


def _of_stack(path: Path, stack: HeldStack) -> Adopted:
    return Adopted({"frameworks": sorted(stack.releases), "outputs": [path.name]}, (path.name,))


def _framework(requirement: str) -> str | None:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    return None if name is None else FRAMEWORK_OF.get(normalized(name[0])) or _of_own_name(name[0])


def _of_own_name(name: str) -> str | None:
    return name if name in FRAMEWORK_OF.values() else None
