"""The packages that differ between two locks: in version, build, source or files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.status.locked_stack import packages_in
from envsolve.lockfile.lock import Lock
from envsolve.model.host import Platform

if TYPE_CHECKING:
    from envsolve import documents

SOURCE, FILES = "source", "files"


class Change(NamedTuple):
    """A changed package. ``before`` is its old version, None if it was added; ``after`` is None if it was removed.

    ``differs`` says what else differs if the version is the same: ``source`` (index, channel or address) or ``files``.
    """

    name: str
    before: str | None
    after: str | None
    differs: tuple[str, ...] = ()

    def as_json(self) -> documents.Change:
        """The change, for JSON; with ``differs`` if the version is the same."""
        found: documents.Change = {"name": self.name, "before": self.before, "after": self.after}
        if self.differs:
            found["differs"] = list(self.differs)
        return found


class _Package(NamedTuple):
    """A package as a lock pins it: versions with builds, sources, and digests of its files."""

    version: str
    sources: frozenset[str]
    digests: frozenset[tuple[str, str]]

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _ in self.digests}


def package_changes(before: Lock, after: Lock, platform: Platform, *, same_format: bool = True) -> tuple[Change, ...]:
    """The packages that differ between two locks on ``platform``, by name.

    With ``same_format`` any difference in files counts. Two formats may list different files of a release; there a
    package counts only if it has no digest in common.
    """
    old, new = _packages(before, platform), _packages(after, platform)
    return tuple(_changes(old, new, same_format=same_format))


def _changes(old: dict[str, _Package], new: dict[str, _Package], *, same_format: bool) -> Iterator[Change]:
    for name in sorted({*old, *new}):
        was, now = old.get(name), new.get(name)
        if was is None or now is None or was.version != now.version:
            yield Change(name, was and was.version, now and now.version)
        elif differs := tuple(_differences(was, now, same_format=same_format)):
            yield Change(name, was.version, now.version, differs)


def _differences(was: _Package, now: _Package, *, same_format: bool) -> Iterator[str]:
    if was.sources and now.sources and was.sources != now.sources:
        yield SOURCE
    kinds = was.kinds & now.kinds
    old, new = ({it for it in each.digests if it[0] in kinds} for each in (was, now))
    if (old != new) if same_format else (old and new and old.isdisjoint(new)):
        yield FILES


def _packages(lock: Lock, platform: Platform) -> dict[str, _Package]:
    """The pins of a lock for ``platform``. A name may have several versions, each for other Pythons."""
    versions: dict[str, list[str]] = defaultdict(list)
    for it in packages_in(lock, platform):
        if it.version:
            versions[it.name].append(f"{it.version} {(it.build or '').rstrip('*')}".strip())
    sources: dict[str, set[str]] = defaultdict(set)
    digests: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for pin in lock.pins:
        places = [it.url for it in pin.files] if pin.index_url is None else [pin.index_url]
        sources[pin.name].update(filter(None, places))
        digests[pin.name].update(digest for file in pin.files for digest in file.hashes)
    for package in lock.conda:
        sources[package.name].update(filter(None, [package.channel]))
        both = (("md5", package.md5), ("sha256", package.sha256))
        digests[package.name].update((kind, digest) for kind, digest in both if digest)
    return {
        name: _Package(", ".join(dict.fromkeys(found)), frozenset(sources[name]), frozenset(digests[name]))
        for name, found in versions.items()
    }
