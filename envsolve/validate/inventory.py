"""What an environment holds, as its own interpreter tells it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.model.names import normalized


class Distribution(NamedTuple):
    """An installed distribution: its normalized name (PEP 503), its version, the directory it is imported from."""

    name: str
    version: str
    location: Path


class Inventory(NamedTuple):
    """One environment.

    ``search_path`` are the directories its modules come from, in order; of two distributions of one name the first
    counts. ``prefix`` is the environment's own directory; ``owns_prefix`` is false for a system's Python, whose prefix
    (``/usr``) holds much that is not the environment's.
    """

    python: str
    executable: Path
    prefix: Path
    search_path: tuple[Path, ...]
    distributions: tuple[Distribution, ...]
    is_conda: bool
    owns_prefix: bool

    def distribution(self, *names: str) -> Distribution | None:
        """The first installed one of ``names``, which are normalized."""
        return next((it for name in names for it in self.distributions if it.name == name), None)

    def owns(self, path: Path) -> bool:
        """Whether a file is the environment's own: below its prefix, or below a directory of its search path."""
        roots = (*self.search_path, *((self.prefix,) if self.owns_prefix else ()))
        return any(path.is_relative_to(root) for root in roots)


def inventory_of(answer: Mapping[str, object]) -> Inventory:
    """Read what :mod:`envsolve.validate.inside.inventory` found."""
    prefix, base_prefix = Path(str(answer["prefix"])), Path(str(answer["base_prefix"]))
    is_conda = bool(answer["is_conda"])
    distributions: dict[str, Distribution] = {}
    for name, version, directory in answer["distributions"]:  # type: ignore[attr-defined]  # as the probe writes it
        distributions.setdefault(normalized(name), Distribution(normalized(name), version, Path(directory)))
    return Inventory(
        python=str(answer["python"]),
        executable=Path(str(answer["executable"])),
        prefix=prefix,
        search_path=tuple(map(Path, answer["search_path"])),  # type: ignore[call-overload]  # as the probe writes it
        distributions=tuple(distributions.values()),
        is_conda=is_conda,
        owns_prefix=is_conda or prefix != base_prefix,
    )
