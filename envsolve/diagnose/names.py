"""Which Python names came and went with the releases of a package: data/findings/names, one file for each package."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import tomli

from envsolve.findings.catalogue import find_findings
from envsolve.model.names import normalized


class Span(NamedTuple):
    """The releases that have a name: the first and the last of them, None where it was always there, or still is.

    ``after`` is the first release without it.
    """

    since: str | None
    until: str | None
    after: str | None


def span_of(module: str, attribute: str | None) -> Span | None:
    """The releases that have a name of a module, or without a name those that have the module.

    None if every release has it, none has it, or the package is not listed.
    """
    package, _, inside = module.partition(".")
    names = _names_of(package)
    if names is None:
        return None
    if attribute is not None:
        return names.span(f"{inside}.{attribute}".lstrip("."))
    folders = inside.split(".")
    found = (names.span(".".join(folders[:end])) for end in range(len(folders), 0, -1))
    return next((it for it in found if it is not None), None)


class _Names(NamedTuple):
    releases: list[str]
    since: dict[str, str]
    until: dict[str, str]

    def span(self, name: str) -> Span | None:
        since, until = self.since.get(name), self.until.get(name)
        if since is None and until is None:
            return None
        return Span(since, until, None if until is None else self.releases[self.releases.index(until) + 1])


@cache
def _names_of(package: str) -> _Names | None:
    path = find_findings() / "names" / f"{normalized(package).replace('-', '_')}.toml"
    if not path.is_file():
        return None
    document = tomli.loads(path.read_text(encoding="utf-8"))
    return _Names(document["releases"], _by_name(document["since"]), _by_name(document["until"]))


def _by_name(groups: dict[str, str]) -> dict[str, str]:
    """The release of each name, of lines ``trainer.utils: ConstantLengthDataset DPODataCollator``."""
    found: dict[str, str] = {}
    for release, lines in groups.items():
        for line in lines.splitlines():
            module, _, names = line.partition(":")
            found.update({f"{module}.{name}".lstrip("."): release for name in names.split()})
    return found
