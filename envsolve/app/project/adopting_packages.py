"""The packages in another tool's table, sorted into the keys of a project: frameworks and all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.specifiers import SpecifierSet

from envsolve.frameworks import framework_of_name
from envsolve.model.release import PYTORCH_INDEX
from envsolve.model.request import in_usual_order

Values = dict[str, object]

OF_PYTORCH = (
    "is ignored: envsolve chooses the build for the GPUs and the driver; "
    'sources = ["pytorch"] restricts it to PyTorch\'s own index'
)
"""The note on an index of PyTorch that was chosen for its CUDA."""


class Packages:
    """What was found so far: ``values`` are keys of a project, ``notes`` say what they cannot express."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.values: Values = {}
        self._lists: dict[str, dict[str, None]] = {}
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes, in order."""
        return tuple(self._notes)

    def note(self, text: str) -> None:
        """Add a note about something that is left out."""
        self._notes[f"{self.where}: {text}"] = None

    def bound(self, key: str, specifier: SpecifierSet) -> None:
        """Limit ``python`` or ``cuda`` further."""
        if len(specifier):
            self.values[key] = in_usual_order(specifier & SpecifierSet(str(self.values.get(key, ""))))

    def add(self, name: str, specifier: SpecifierSet, extras: Iterable[str] = (), marker: str = "") -> None:
        """Add a requirement on a package.

        A framework has no extras, as the solver chooses its build. With a marker, it is a requirement like any other.
        """
        framework = None if marker else framework_of_name(name)
        listed = sorted(map(str, extras))
        versions = in_usual_order(specifier)
        if framework is None:
            text = f"{name}[{','.join(listed)}]{versions}" if listed else f"{name}{versions}"
            self._append("requirements", f"{text}; {marker}" if marker else text)
            return
        if listed:
            self.note(f"the extras {', '.join(listed)} of {name} are ignored: envsolve chooses the build")
        self._append("frameworks", f"{framework}{versions}")

    def finished(self) -> Values:
        """The keys with their values."""
        return {**self.values, **{key: list(found) for key, found in self._lists.items()}}

    def _append(self, key: str, text: str) -> None:
        self._lists.setdefault(key, {})[text] = None


def table_of(value: object) -> Mapping[str, Any]:
    """``value`` if it is a table, or else an empty one."""
    return value if isinstance(value, dict) else {}


def texts_of(value: object) -> list[str]:
    """The strings of ``value``: itself, or those in a list."""
    listed = value if isinstance(value, list) else [value]
    return [it for it in listed if isinstance(it, str)]


def is_of_pytorch(address: str) -> bool:
    """Whether an index is PyTorch's own, or its folder for one CUDA."""
    return f"{address.rstrip('/')}/".startswith(PYTORCH_INDEX)


def counted(names: Iterable[str], one: str, many: str) -> str:
    """``the feature gpu is``, ``the features gpu, test are``."""
    listed = list(names)
    return f"the {one if len(listed) == 1 else many} {', '.join(listed)} {'is' if len(listed) == 1 else 'are'}"
