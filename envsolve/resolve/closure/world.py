"""Everything a resolution knows of packages: releases by name, what each requires, and what it is asked ahead.

Asking ahead: as soon as a requirement is met, threads fetch the page it needs, then the metadata of the version that
will probably be taken, then the pages which that needs. On a network with 80 ms of delay this takes a seventh of the
time (measured). It decides nothing: the resolver takes the same versions with and without.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.errors import OutsideError
from envsolve.index.checks import BUILD_FAILED, NOT_THERE
from envsolve.index.client import Indexes
from envsolve.index.metadata import Metadata
from envsolve.index.one_index import identity
from envsolve.index.page import RawFile, version_of
from envsolve.model.names import normalized
from envsolve.model.need import Need, joined
from envsolve.model.package import Present
from envsolve.resolve.closure.old_numpy import numpy_for
from envsolve.resolve.closure.releases import DirectReleases, Fit, Fitting, Releases, Unfit, Wanted
from envsolve.resolve.closure.virtual import Virtual, VirtualReleases, file_of
from envsolve.resolve.closure.workers import Workers

_CONNECTIONS = 48


class Limit(NamedTuple):
    """Versions that alone may be taken of a project, and the sentence that says why; "" if a person wrote it.

    ``origin`` is where a person wrote it. What ``is_exclusion`` may not be taken, but for the versions that are
    ``exempt``. What ``is_of_gpu`` is excluded since it does not run on the GPU.
    """

    specifier: str
    because: str
    origin: str = ""
    is_exclusion: bool = False
    exempt: frozenset[str] = frozenset()
    is_of_gpu: bool = False

    def admitted(self, releases: Releases) -> int:
        """The versions that may be taken."""
        mask = releases.mask(self.specifier)
        if not self.is_exclusion:
            return mask
        for version in self.exempt:
            mask &= ~releases.mask(f"=={version}")
        return releases.mask("") & ~mask

    def admits(self, version: str) -> bool:
        """Whether ``version`` may be taken."""
        is_in = SpecifierSet(self.specifier).contains(version, prereleases=True)
        return is_in is not self.is_exclusion or version in self.exempt


Limits = Callable[[str], tuple[Limit, ...]]
"""The limits of a project by its name."""
Judge = Callable[[str, str, tuple[Need, ...]], tuple[Need, ...]]
"""What a version of a project requires in truth, by its name, its version and what its metadata say."""


class Known(NamedTuple):
    """What worlds of one Python share: which wheels of a project suit it, and what was asked ahead."""

    releases: dict[str, Releases | None]
    visited: set[tuple[str, str, int]]


class World:
    """The packages of ``indexes`` for one target, and those that are ``present``, for which no index is asked.

    ``limits`` bound the versions of projects by name. ``virtual`` are projects that are in no index, and ``judge`` says
    what the metadata of others leave out. Worlds that share ``alike`` read one wheel for all of a version, as uv does:
    so much is enough to choose between them. What is ``late`` is decided after what requires it. Worlds of one Python
    that share ``known`` look at each project once; only one that may take source in place of wheels has its own.
    """

    def __init__(
        self,
        indexes: Indexes,
        wanted: Wanted,
        limits: Limits,
        present: Mapping[str, Present],
        virtual: Sequence[Virtual] = (),
        judge: Judge | None = None,
        alike: dict[tuple[str, str], RawFile] | None = None,
        late: Collection[str] = (),
        known: Known | None = None,
    ) -> None:
        self.indexes = indexes
        self.wanted = wanted
        self.limits = limits
        self.present = present
        self.markers = indexes.pool.markers(wanted.interpreter.marker_values())
        self.fitting = Fitting(wanted)
        self.workers = Workers(_CONNECTIONS)
        self._releases, self._visited = known or Known({}, set())
        if present:
            from envsolve.resolve.closure.present import releases_of

            self._releases.update(releases_of(present, self.fitting))
        self._needs: dict[tuple[str, str], tuple[Need, ...] | None] = {}
        self.missing: dict[tuple[str, str], OutsideError] = {}
        """The errors for files that an index lists and does not have, by project and version: they are skipped."""
        self.lacks_wheels = False
        """Whether a project was looked at whose newest version is only source, and no source may be taken."""
        self.to_build: dict[str, str] = {}
        """The newest version of each project of which only a build tells what it requires, and none was made."""
        self.failed_builds: dict[tuple[str, str], OutsideError] = {}
        """The errors of builds that failed, by project and version."""
        self.virtual = frozenset(it.name for it in virtual)
        self._judge = judge
        self._alike = alike
        self.late = frozenset(late)
        for it in virtual:
            self._releases[it.name] = VirtualReleases(it, self.fitting)
            for position, needs in enumerate(it.needs):
                self._needs[identity(file_of(it.name, position)), ""] = needs

    def releases(self, name: str) -> Releases | None:
        """The versions of a project; None if no index knows it. Raises OutsideError."""
        if name in self._releases:
            return self._releases[name]
        project, direct = self.indexes.project(name), self.indexes.direct(name)
        found = None if project is None else Releases(project, self.fitting)
        if project is not None and direct is not None:
            found = DirectReleases(project, self.fitting, direct)
        return self._releases.setdefault(name, found)

    def newest(self, releases: Releases, mask: int, *, prereleases: bool = False) -> int | None:
        """The newest of the versions in ``mask`` that can be had, from source where no wheel can, if that is allowed.

        No yanked one, and a pre-release only with ``prereleases``, where they are wanted or there is nothing else.
        """
        prereleases = prereleases or self.wanted.prereleases
        found = releases.newest(mask, prereleases=prereleases)
        self.lacks_wheels |= not self.wanted.sources and releases.newest_is_source(mask)
        if self.wanted.sources:
            source = releases.newest(mask, prereleases=prereleases, source=True)
            return max((it for it in (found, source) if it is not None), default=None)
        return found

    def limited(self, releases: Releases) -> int:
        """The versions of a project that its limits admit."""
        mask = releases.mask("")
        for limit in self.limits(releases.project.name):
            mask &= limit.admitted(releases)
        return mask

    def needs(self, releases: Releases, file: RawFile, extra: str) -> tuple[Need, ...] | None:
        """What a file requires on the target, with ``extra`` or by itself; None if its metadata is no good.

        Raises OutsideError.
        """
        name, key = releases.project.name, (identity(file), extra)
        if name in self.present:
            return tuple(self._that_hold(self.present[name].requires or (), extra)) if extra else ()
        if key in self._needs:
            return self._needs[key]
        metadata = self._metadata_or_none(releases, file)
        if metadata is None or (metadata.needs_build and not self.wanted.as_if_built):
            return None
        if metadata.needs_build:
            return ()  # until it is built
        needs = self._worked_out(metadata, extra)
        if needs is not None and not extra:
            needs = (*needs, *numpy_for(file, needs))
            if self._judge is not None:
                needs = self._judge(name, version_of(name, file[0]) or "", needs)
            needs = self._overridden(needs)
        return self._needs.setdefault(key, needs)

    def _metadata_or_none(self, releases: Releases, file: RawFile) -> Metadata | None:
        """The metadata of a file; None if they cannot be had, which is noted."""
        name = releases.project.name
        version = version_of(name, file[0]) or ""
        if self._is_left_to_a_build(name, file) or (name, version) in self.failed_builds:
            return None
        try:
            metadata = self.metadata(releases, file)
        except OutsideError as error:
            if error.code != NOT_THERE:
                raise
            self.missing[name, version] = error
            return None
        if metadata.needs_build and not self.wanted.as_if_built:
            self.to_build.setdefault(name, version)
        return metadata

    def _is_left_to_a_build(self, name: str, file: RawFile) -> bool:
        """Whether a file is source like a newer one that has to be built: it is not fetched to find out the same."""
        return name in self.to_build and not file[0].endswith(".whl")

    def metadata(self, releases: Releases, file: RawFile) -> Metadata:
        """What a file, or one like it, says of itself. Raises OutsideError."""
        return self.indexes.metadata(releases.project, self._read_for(releases, file))

    def needs_build(self, releases: Releases, file: RawFile) -> bool:
        """Whether only a build would tell what a file requires. Raises OutsideError."""
        is_source = releases.project.name not in self.virtual and not file[0].endswith(".whl")
        return is_source and self.metadata(releases, file).needs_build

    def build(self, files: Iterable[tuple[Releases, RawFile]]) -> bool:
        """Build at once those of which only a build tells what they require, if allowed; whether more is known now.

        Raises OutsideError, but not where a build fails: that file is not taken again.
        """
        unbuilt = [it for it in files if self.needs_build(*it)]
        for it in unbuilt[1:]:
            self.workers.submit(partial(self._is_built, *it))
        return any([self._is_built(*it) for it in unbuilt])  # noqa: C419 - each, not up to the first

    def _is_built(self, releases: Releases, file: RawFile) -> bool:
        name = releases.project.name
        try:
            return self.indexes.build(releases.project, self._read_for(releases, file)) is not None
        except OutsideError as error:
            if error.code != BUILD_FAILED:
                raise
            self.failed_builds[name, version_of(name, file[0]) or ""] = error
            return True

    def is_at_hand(self, releases: Releases, file: RawFile) -> bool:
        """Whether nothing has to be fetched to know what a file requires."""
        return (
            releases.project.name in self.virtual
            or self.indexes.metadata_at_hand(releases.project, self._read_for(releases, file)) is not None
        )

    def reads_what_it_takes(self, releases: Releases, file: RawFile) -> bool:
        """Whether the metadata that were read for ``file`` are those that count for it."""
        return not file[0].endswith(".whl") or identity(self._read_for(releases, file)) == identity(file)

    def _read_for(self, releases: Releases, file: RawFile) -> RawFile:
        """The file whose metadata is read for ``file``: of source, a wheel of its version for another Python, if any.

        uv takes source and wheels of a version to require the same as well; the wheel is had without a build.
        """
        if file[0].endswith(".whl") and self._alike is None:
            return file
        name = releases.project.name
        version = version_of(name, file[0]) or ""
        if self._alike is not None and file[0].endswith(".whl"):
            return self._alike.setdefault((name, version), file)
        return releases.wheel_for_another_python(version) or file

    def has_extra(self, releases: Releases, file: RawFile, extra: str) -> bool:
        """Whether a file has ``extra``, declared or not."""
        declared = self.metadata(releases, file).extras
        return extra in map(normalized, declared) or bool(self.needs(releases, file, extra))

    def knows_extra(self, releases: Releases, file: RawFile, extra: str) -> bool | None:
        """Whether ``extra`` of a file brings anything, on whatever system and Python; None if there is none.

        Of what is still to be built nothing is known: it counts as one that brings nothing here.
        """
        metadata = self.metadata(releases, file)
        if metadata.needs_build:
            return False
        if any(need.for_extra == extra for need in metadata.requires or ()):
            return True
        return False if extra in map(normalized, metadata.extras) else None

    def unfit(self, releases: Releases, position: int, *, pins: bool) -> Unfit | None:
        """Why a version cannot be taken, whatever others require; None if it can. Raises OutsideError."""
        fit = releases.fit(position)
        if isinstance(fit, Unfit):
            source = releases.source_fit(position) if self.wanted.sources else fit
            if isinstance(source, Unfit):
                return fit
            fit = source
        if fit.is_yanked and not pins:
            return Unfit.YANKED
        if self.needs(releases, fit.best, "") is not None:
            return None
        name = releases.project.name
        if (name, version_of(name, fit.best[0]) or "") in self.failed_builds:
            raise self.failed_builds[name, version_of(name, fit.best[0]) or ""]
        if self._is_left_to_a_build(name, fit.best):
            return Unfit.NEEDS_BUILD
        metadata = self.metadata(releases, fit.best)
        return Unfit.UNREADABLE if self.fitting.supports(metadata.requires_python) else Unfit.OTHER_PYTHON

    def replaced(self, releases: Releases, file: RawFile, extra: str) -> tuple[Need, ...]:
        """What a file requires, with ``extra`` or by itself, that overrides replace. Raises OutsideError."""
        if not self.wanted.overridden:
            return ()
        name = releases.project.name
        needs = tuple(self._that_hold(self.metadata(releases, file).requires or (), extra))
        if self._judge is not None and not extra:
            needs = self._judge(name, version_of(name, file[0]) or "", needs)
        return tuple(need for need in needs if need.name in self.wanted.overridden)

    def _worked_out(self, metadata: Metadata, extra: str) -> tuple[Need, ...] | None:
        if metadata.requires is None or not self.fitting.supports(metadata.requires_python):
            return None
        try:
            found = self._overridden(self._that_hold(metadata.requires, extra, self.wanted.overridden))
        except ValueError:
            return None
        if any(need.url and not self.indexes.is_direct(need.name, need.url) for need in found):
            return None
        return found

    def _that_hold(self, needs: Iterable[Need], extra: str, anyway: Container[str] = ()) -> Iterator[Need]:
        """The requirements of a file that count with ``extra``, or by itself; on projects of ``anyway`` always.

        An override replaces a requirement whatever its marker is, as in uv. Raises ValueError for what is no marker.
        """
        holds = self.markers.holds
        for need in needs:
            if need.for_extra != extra and (need.for_extra or (extra and "extra" not in need.marker)):
                continue
            is_met = not need.marker or (holds(need.marker, extra) and not (extra and holds(need.marker)))
            if is_met or need.name in anyway:
                yield need

    def _overridden(self, needs: Iterable[Need]) -> tuple[Need, ...]:
        """``needs`` with what overrides leave of them: the limits of a project say which versions they admit."""
        overridden = self.wanted.overridden
        if not overridden:
            return tuple(needs)
        found = []
        for need in needs:
            if need.name not in overridden:
                found.append(need)
            elif (extras := overridden[need.name]) is not None:
                found.append(Need(need.name, joined(need.extras, extras), "", ""))
        return tuple(found)

    def look_ahead(self, needs: tuple[Need, ...]) -> None:
        """Have fetched what ``needs`` will probably need, and what that will need."""
        waiting = list(needs)
        while waiting:
            need = waiting.pop()
            if need.url or need.name in self.present or need.name in self.virtual:
                continue
            known, _ = self.indexes.at_hand(need.name) if need.name not in self._releases else (True, None)
            if known:
                waiting += self._next(need)
            else:
                self._send(need)

    def _send(self, need: Need) -> None:
        key = (need.name, need.specifier, hash(need.extras))
        if key not in self._visited:
            self._visited.add(key)
            self.workers.submit(lambda: self.look_ahead(self._fetched(need)))

    def _fetched(self, need: Need) -> tuple[Need, ...]:
        """What ``need`` leads to, after its page and its metadata were fetched."""
        releases = self.releases(need.name)
        return () if releases is None else self._after(need, releases)

    def _after(self, need: Need, releases: Releases) -> tuple[Need, ...]:
        fit = self._probable(need, releases)
        if fit is None:
            return ()
        return tuple(it for extra in ("", *need.extras) for it in self.needs(releases, fit.best, extra) or ())

    def _next(self, need: Need) -> tuple[Need, ...]:
        """The same without waiting: where metadata has to be fetched a thread does it."""
        releases = self.releases(need.name)
        if releases is None:
            return ()
        mask = releases.mask(need.specifier) if need.specifier else releases.mask("")
        key = (need.name, ",".join(need.extras), mask)
        if key in self._visited:
            return ()
        self._visited.add(key)
        fit = self._probable(need, releases)
        if fit is None:
            return ()
        if not self.is_at_hand(releases, fit.best):
            self.workers.submit(lambda: self.look_ahead(self._fetched(need)))
            return ()
        return self._after(need, releases)

    def _probable(self, need: Need, releases: Releases) -> Fit | None:
        """The version that a resolver without other requirements takes."""
        try:
            mask = releases.mask(need.specifier) & self.limited(releases)
            position = releases.newest(mask & own if (own := releases.own) & mask else mask)
        except ValueError:
            return None
        found = None if position is None else releases.fit(position)
        return found if isinstance(found, Fit) else None

    def prepare(self, releases: Releases, files: list[RawFile], *, further: bool) -> None:
        """Have the metadata of several files fetched at once; ``further``: and what each of them will need."""
        for file in () if releases.project.name in self.virtual else files:
            if not self.is_at_hand(releases, file):
                self.workers.submit(partial(self._read, releases, file, further=further))

    def _read(self, releases: Releases, file: RawFile, *, further: bool) -> None:
        needs = self.needs(releases, file, "") or ()
        if further:
            self.look_ahead(needs)

    def close(self) -> None:
        """End the threads. Raises what went wrong in one of them."""
        self.workers.close()
        if self.workers.failure is not None:
            raise self.workers.failure
