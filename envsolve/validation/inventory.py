"""The content of an environment: what its own interpreter reports, and the distributions that it would find."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.programs import is_system_text
from envsolve.validation.metadata import Packages

_VERSION = re.compile(r"\d{1,4}(\.\d{1,4}){1,2}(?!\d)")
_USUAL = ["CPython", False, 64]


class Distribution(NamedTuple):
    """An installed distribution: its normalized name (PEP 503), its version, the directory it is imported from."""

    name: str
    version: str
    location: Path


class Inventory(NamedTuple):
    """One environment.

    ``search_path`` are the directories of its modules, in order; of two distributions with one name the first counts.
    ``prefix`` is the environment's own directory; ``owns_prefix`` is false for a system's Python, whose prefix
    (``/usr``) contains much that is not the environment's. ``takes_usual_wheels`` is true for 64-bit CPython with the
    GIL, which wheels are looked up for.
    """

    python: str
    executable: Path
    prefix: Path
    search_path: tuple[Path, ...]
    distributions: tuple[Distribution, ...]
    is_conda: bool
    owns_prefix: bool
    takes_usual_wheels: bool = True

    @property
    def option(self) -> tuple[str, str]:
        """The option that names this environment for envsolve's commands."""
        return ("--prefix", str(self.prefix)) if self.owns_prefix else ("--python", str(self.executable))

    def distribution(self, *names: str) -> Distribution | None:
        """The first installed distribution among ``names``, which are normalized."""
        return next((it for name in names for it in self.distributions if it.name == name), None)

    def owns(self, path: Path) -> bool:
        """Whether a file belongs to the environment: below its prefix, or below a directory of its search path."""
        roots = (*self.search_path, *((self.prefix,) if self.owns_prefix else ()))
        return any(path.is_relative_to(root) for root in roots)


def distributions_in(search_path: Iterable[Path]) -> tuple[Distribution, ...]:
    """The distributions that count, in the directories of a search path."""
    return tuple(Distribution(it.name, it.version, it.location) for it in Packages(search_path).by_name.values())


def inventory_of(answer: Mapping[str, object]) -> Inventory:
    """The inventory from the answer of :mod:`envsolve.validation.inside.inventory`.

    Raises ValueError if it is invalid.
    """
    prefix, base_prefix = _path(answer.get("prefix")), _path(answer.get("base_prefix"))
    is_conda = answer.get("is_conda") is True
    search_path = answer.get("search_path")
    if not isinstance(search_path, list):
        raise ValueError("it has no list of search_path")
    directories = tuple(map(_path, search_path))
    python = answer.get("python")
    if not isinstance(python, str) or _VERSION.match(python) is None:
        raise ValueError(f"it has no version of Python in {python!r:.80}")
    return Inventory(
        python=python,
        executable=_path(answer.get("executable")),
        prefix=prefix,
        search_path=directories,
        distributions=distributions_in(directories),
        is_conda=is_conda,
        owns_prefix=is_conda or prefix != base_prefix,
        takes_usual_wheels=[answer.get(key) for key in ("implementation", "free_threaded", "bits")] == _USUAL,
    )


def _path(value: object) -> Path:
    if not isinstance(value, str) or not is_system_text(value) or not os.path.isabs(value):  # noqa: PTH117 - a text
        raise ValueError(f"it has no absolute path in {value!r:.80}")
    return Path(value)
