"""A project with options of a single command: they replace the keys of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from envsolve.errors import Hint, UsageError
from envsolve.project import Part, Project

MACHINE = ("gpus", "driver", "hosts", "platforms")
"""The keys that describe a machine."""
ADDED = ("requirements", "requirement_files", "constraint_files", "build_constraint_files", "overrides")
"""The keys that are added to those of the project instead of replacing them."""


def overridden(project: Project, given: Mapping[str, Any]) -> Project:
    """``project`` with ``given`` instead of its own settings, by the field names of Settings and Machine.

    Raises UsageError ``contradictory-options`` if a machine is given and the project has several.
    """
    if not given:
        return project
    return project._replace(parts=tuple(_part(part, given) for part in project.parts))


def _part(part: Part, given: Mapping[str, Any]) -> Part:
    machine = {name: value for name, value in given.items() if name in MACHINE}
    settings = {name: value for name, value in given.items() if name not in MACHINE}
    for name in ADDED:
        if name in settings:
            settings[name] = (*getattr(part.settings, name), *_listed(settings[name]))
    if machine and (len(part.machines) > 1 or part.machines[0].name):
        named = ", ".join(it.name for it in part.machines)
        raise UsageError(
            "contradictory-options",
            f"--{_OPTION[next(iter(machine))]} names a machine, but the project has its own: {named}",
            hints=(Hint("change the target in the project, or omit the option"),),
        )
    if "hosts" in machine:
        machine = {"gpus": (), "driver": None, **machine}
    elif "gpus" in machine:
        machine = {"driver": None, "hosts": (), **machine}
    elif "driver" in machine:
        machine = {"hosts": (), **machine}
    changed = part.machines[0]._replace(**machine) if machine else None
    machines = part.machines if changed is None else (changed,)
    typed = frozenset(name.replace("_", "-") for name in given)
    return part._replace(settings=part.settings._replace(**settings), machines=machines, typed=typed)


_OPTION = {"gpus": "gpu", "driver": "driver", "hosts": "host", "platforms": "platform"}


def _listed(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)
