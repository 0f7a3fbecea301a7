"""The cases to solve on the channels, each a machine and a request, and their outcomes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """Match specs for a platform.

    ``virtual`` are the machine's properties, each as name, version and perhaps build. Unless ``strict``, a package may
    come from any of the channels, not only from the first that has it.
    """

    name: str
    platform: str
    channels: tuple[str, ...]
    specs: tuple[str, ...]
    virtual: tuple[str, ...]
    exclude_newer: date | None = None
    strict: bool = True


class Outcome(NamedTuple):
    """The sorted files that solve a case, as ``conda-forge/linux-64/NAME``, or why the solver found none."""

    files: tuple[str, ...] = ()
    problem: str = ""


class Roots(NamedTuple):
    """The cases, and how many records of a package to keep in addition to theirs; ``*`` is any other package."""

    cases: tuple[Case, ...]
    alternatives: Mapping[str, int]

    def count_of(self, name: str) -> int:
        """How many records of the package ``name`` to keep in each place."""
        return self.alternatives.get(name, self.alternatives["*"])


def read_roots(path: Path) -> Roots:
    """Read a file such as ``tests/conda/channel/roots.toml``."""
    document = tomllib.loads(path.read_text("utf-8"))
    machines, lists = document["machine"], document["lists"]
    cases = []
    for row in document["case"]:
        platform = row.get("platform", "linux-64")
        cuda = [f"__cuda {row['cuda']}"] if "cuda" in row else []
        more = lists[row["with"]] if "with" in row else []
        cases.append(
            Case(
                row["name"],
                platform,
                tuple(row.get("channels", ["conda-forge"])),
                (*row["specs"], *more),
                (*machines[row.get("machine", platform)], *cuda),
                row.get("exclude_newer"),
                row.get("channel_priority", "strict") == "strict",
            )
        )
    names = [it.name for it in cases]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: two cases of one name")
    return Roots(tuple(cases), document["alternatives"])
