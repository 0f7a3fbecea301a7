"""Everything a resolution knows about packages: releases by name, requirements, and prefetched pages and metadata.

Prefetching: as soon as a requirement is met, threads fetch the page it needs, then the metadata of the version that
will probably be chosen, then the pages which that needs. On a network with 80 ms of delay this takes a seventh of the
time (measured). It has no influence on the result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.errors import OutsideError
from envsolve.frameworks import is_extra_for
from envsolve.index.checks import BUILD_FAILED, NOT_THERE
from envsolve.index.client import Indexes
from envsolve.index.metadata import Metadata
from envsolve.index.one_index import identity
from envsolve.index.page import RawFile, version_of
from envsolve.model.names import normalized
from envsolve.model.need import Need, joined, lower_bound
from envsolve.model.package import Present
from envsolve.resolve.closure.old_numpy import numpy_for
from envsolve.resolve.closure.releases import DirectReleases, Fit, Fitting, Releases, Unfit, Wanted
from envsolve.resolve.closure.virtual import Virtual, VirtualReleases, file_of
from envsolve.resolve.closure.workers import Workers

_CONNECTIONS = 48


class Limit(NamedTuple):
    """The only versions of a project that may be used, and the reason as a sentence; "" if the user wrote the limit.

    ``origin`` is where the user wrote it. With ``is_exclusion`` the versions are those that may not be used, except the
    ``exempt`` ones. ``is_of_gpu`` marks versions excluded because they do not run on the GPU.
    """

    specifier: str
    because: str
    origin: str = ""
    is_exclusion: bool = False
    exempt: frozenset[str] = frozenset()
    is_of_gpu: bool = False

    def admitted(self, releases: Releases) -> int:
        """Return the versions that may be used."""
        mask = releases.mask(self.specifier)
        if not self.is_exclusion:
            return mask
        for version in self.exempt:
            mask &= ~releases.mask(f"=={version}")
        return releases.mask("") & ~mask

    def admits(self, version: str) -> bool:
        """Whether ``version`` may be used."""
        is_in = SpecifierSet(self.specifier).contains(version, prereleases=True)
        return is_in is not self.is_exclusion or version in self.exempt


Limits = Callable[[str], tuple[Limit, ...]]
"""Returns the limits of a project by its name."""
Judge = Callable[[str, str, tuple[Need, ...]], tuple[Need, ...]]
"""Returns the real requirements of a version, given its project's name, the version and the requirements in its
metadata.

Those with ``for_extra`` are not requirements yet, but bounds on a framework in an extra with its name. They become
requirements if the framework is in the stack."""


class Known(NamedTuple):
    """What worlds of one Python share: which wheels of a project fit it, and what was prefetched."""

    releases: dict[str, Releases | None]
    visited: set[tuple[str, str, int]]


class World:
    """The packages of ``indexes`` for one target, and those that are ``present``, for which no index is used.

    ``limits`` returns the limits on projects by name. ``virtual`` are projects that are in no index. ``judge`` corrects
    the metadata of others. Worlds that share ``alike`` read the metadata of only one wheel per version, as uv does,
    which is enough to choose between them. Projects in ``late`` are decided after the packages that require them.
    Worlds of one Python that share ``known`` look at each project once. Only a world that may use source instead of
    wheels has its own.
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
        """Errors for files that an index lists but does not have, by project and version. Such files are skipped."""
        self.lacks_wheels = False
        """Whether the newest version of some project has only source, which is not allowed."""
        self.to_build: dict[str, str] = {}
        """The newest version of each project whose requirements only a build reports and that was not built."""
        self.failed_builds: dict[tuple[str, str], OutsideError] = {}
        """Errors of failed builds, by project and version."""
        self.virtual = frozenset(it.name for it in virtual)
        self._judge = judge
        self._alike = alike
        self.late = frozenset(late)
        for it in virtual:
            self._releases[it.name] = VirtualReleases(it, self.fitting)
            for position, needs in enumerate(it.needs):
                self._needs[identity(file_of(it.name, position)), ""] = needs

    def releases(self, name: str) -> Releases | None:
        """Return the versions of a project, or None if no index has it. Raises OutsideError."""
        if name in self._releases:
            return self._releases[name]
        project, direct = self.indexes.project(name), self.indexes.direct(name)
        found = None if project is None else Releases(project, self.fitting)
        if project is not None and direct is not None:
            found = DirectReleases(project, self.fitting, direct)
        return self._releases.setdefault(name, found)

    def newest(self, releases: Releases, mask: int, *, prereleases: bool = False) -> int | None:
        """Return the newest version in ``mask`` that is available: with a wheel, or from source if that is allowed.

        Yanked versions do not count, and pre-releases only with ``prereleases``, if they are requested or there is
        nothing else.
        """
        prereleases = prereleases or self.wanted.prereleases
        found = releases.newest(mask, prereleases=prereleases)
        self.lacks_wheels |= not self.wanted.sources and releases.newest_is_source(mask)
        if self.wanted.sources:
            source = releases.newest(mask, prereleases=prereleases, source=True)
            return max((it for it in (found, source) if it is not None), default=None)
        return found

    def limited(self, releases: Releases) -> int:
        """Return the versions of a project that its limits admit."""
        mask = releases.mask("")
        for limit in self.limits(releases.project.name):
            mask &= limit.admitted(releases)
        return mask

    def needs(self, releases: Releases, file: RawFile, extra: str) -> tuple[Need, ...] | None:
        """Return the requirements of a file on the target, with ``extra`` or without.

        The result is None if its metadata is unusable. Raises OutsideError.
        """
        name, key = releases.project.name, (identity(file), extra)
        if name in self.present:
            return tuple(self._applicable(self.present[name].requires or (), extra)) if extra else ()
        if key in self._needs:
            return self._needs[key]
        never = () if extra or file[0].endswith(".whl") else self._never_met(name, version_of(name, file[0]) or "")
        if never:
            return self._needs.setdefault(key, never)
        metadata = self._metadata_or_none(releases, file)
        if metadata is None or (metadata.needs_build and not self.wanted.as_if_built):
            return None
        if metadata.needs_build:
            return ()  # empty until it is built
        needs = self._worked_out(metadata, extra)
        if needs is not None and not extra:
            needs = (*needs, *numpy_for(file, needs))
            if self._judge is not None:
                optional = tuple(self._of_framework_extras(name, metadata))
                needs = self._judge(name, version_of(name, file[0]) or "", (*needs, *optional))
            needs = self._overridden(needs)
        return self._needs.setdefault(key, needs)

    def _never_met(self, name: str, version: str) -> tuple[Need, ...]:
        """What the builds of a version require, if nothing meets it: none of them runs on the GPU, for example.

        Then its metadata does not matter. To read that of a source distribution takes up to seconds.
        """
        needs = () if self._judge is None else self._judge(name, version, ())
        masks: dict[str, int] = {}
        for need in needs:
            releases = self._releases[need.name] if need.name in self.virtual else None
            if releases is not None:
                masks[need.name] = masks.get(need.name, -1) & releases.mask(need.specifier)
        return tuple(need for need in needs if masks.get(need.name, -1) == 0)

    def _metadata_or_none(self, releases: Releases, file: RawFile) -> Metadata | None:
        """The metadata of a file, or None if it is unavailable, which is recorded."""
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
        """Whether a newer source distribution needs a build, so that fetching this one would bring nothing new."""
        return name in self.to_build and not file[0].endswith(".whl")

    def metadata(self, releases: Releases, file: RawFile) -> Metadata:
        """Return the metadata of a file, or of an equivalent one. Raises OutsideError."""
        return self.indexes.metadata(releases.project, self._read_for(releases, file))

    def needs_build(self, releases: Releases, file: RawFile) -> bool:
        """Whether only a build reports the requirements of a file. Raises OutsideError."""
        is_source = releases.project.name not in self.virtual and not file[0].endswith(".whl")
        return is_source and self.metadata(releases, file).needs_build

    def build(self, files: Iterable[tuple[Releases, RawFile]]) -> bool:
        """Build those files whose requirements only a build reports, if allowed; return whether more is known now.

        Raises OutsideError, except for a failed build, whose file is not used again.
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
        """Whether the requirements of a file are known without fetching anything."""
        return (
            releases.project.name in self.virtual
            or self.indexes.metadata_at_hand(releases.project, self._read_for(releases, file)) is not None
        )

    def reads_own_metadata(self, releases: Releases, file: RawFile) -> bool:
        """Whether the metadata read for ``file`` is that of the file itself."""
        return not file[0].endswith(".whl") or identity(self._read_for(releases, file)) == identity(file)

    def _read_for(self, releases: Releases, file: RawFile) -> RawFile:
        """The file whose metadata is read for ``file``.

        For source, this is a wheel of its version for another Python, if any.

        uv also assumes that source and wheels of a version have the same requirements. The wheel needs no build.
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
        """Whether ``extra`` adds a requirement on any system and Python, or None if the file has no such extra.

        For a file that is not built yet nothing is known, so the extra counts as adding nothing.
        """
        metadata = self.metadata(releases, file)
        if metadata.needs_build:
            return False
        if any(need.for_extra == extra for need in metadata.requires or ()):
            return True
        return False if extra in map(normalized, metadata.extras) else None

    def unfit(self, releases: Releases, position: int, *, pins: bool) -> Unfit | None:
        """Return why a version cannot be used, whatever others require, or None if it can. Raises OutsideError."""
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
        """Return the requirements of a file, with ``extra`` or without, that overrides replace. Raises OutsideError."""
        if not self.wanted.overridden:
            return ()
        name = releases.project.name
        needs = tuple(self._applicable(self.metadata(releases, file).requires or (), extra))
        if self._judge is not None and not extra:
            needs = self._judge(name, version_of(name, file[0]) or "", needs)
        return tuple(need for need in needs if need.name in self.wanted.overridden)

    def _worked_out(self, metadata: Metadata, extra: str) -> tuple[Need, ...] | None:
        if metadata.requires is None or not self.fitting.supports(metadata.requires_python):
            return None
        try:
            found = self._overridden(self._applicable(metadata.requires, extra, self.wanted.overridden))
        except ValueError:
            return None
        if any(need.url and not self.indexes.is_direct(need.name, need.url) for need in found):
            return None
        return found

    def _of_framework_extras(self, name: str, metadata: Metadata) -> Iterator[Need]:
        """The oldest framework that a package works with, if only its extra for that framework says it.

        diffusers has ``torch>=2.6; extra == "torch"``. Upper bounds do not count: no older release would have a higher
        one. Other extras do not count either: ``dev`` and ``test`` list what the tests of the package use. Nor does the
        bound if the user requires exact versions of both: there is nothing to choose, and pip and uv install them.
        """
        for need in metadata.requires or ():
            if not need.for_extra or need.name in self.wanted.overridden or not is_extra_for(need.name, need.for_extra):
                continue
            if {name, need.name} <= self.wanted.pinned:
                continue
            least = lower_bound(need.specifier)
            if least and self.markers.holds(need.marker, need.for_extra):
                because = f"its extra {need.for_extra} says"
                yield need._replace(extras=(), specifier=least, marker="", because=because)

    def _applicable(self, needs: Iterable[Need], extra: str, anyway: Container[str] = ()) -> Iterator[Need]:
        """The requirements of a file that apply with ``extra`` or without; those on ``anyway`` always apply.

        An override replaces a requirement whatever its marker is, as in uv. Raises ValueError for an invalid marker.
        """
        holds = self.markers.holds
        for need in needs:
            if need.for_extra != extra and (need.for_extra or (extra and "extra" not in need.marker)):
                continue
            is_met = not need.marker or (holds(need.marker, extra) and not (extra and holds(need.marker)))
            if is_met or need.name in anyway:
                yield need

    def _overridden(self, needs: Iterable[Need]) -> tuple[Need, ...]:
        """``needs`` after overrides. The limits of a project contain the versions that its override admits."""
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
        """Prefetch what ``needs`` will probably need, and what that will need."""
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
        """The requirements that follow from ``need``, after its page and its metadata were fetched."""
        releases = self.releases(need.name)
        return () if releases is None else self._after(need, releases)

    def _after(self, need: Need, releases: Releases) -> tuple[Need, ...]:
        fit = self._probable(need, releases)
        if fit is None:
            return ()
        return tuple(it for extra in ("", *need.extras) for it in self.needs(releases, fit.best, extra) or ())

    def _next(self, need: Need) -> tuple[Need, ...]:
        """The same without waiting. If metadata has to be fetched, a thread fetches it."""
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
        """The version that a resolver without other requirements would choose."""
        try:
            position = releases.newest(releases.mask(need.specifier) & self.limited(releases))
        except ValueError:
            return None
        found = None if position is None else releases.fit(position)
        return found if isinstance(found, Fit) else None

    def prepare(self, releases: Releases, files: list[RawFile], *, further: bool) -> None:
        """Prefetch the metadata of several files at once, and with ``further`` what each of them will need."""
        for file in () if releases.project.name in self.virtual else files:
            if not self.is_at_hand(releases, file):
                self.workers.submit(partial(self._read, releases, file, further=further))

    def _read(self, releases: Releases, file: RawFile, *, further: bool) -> None:
        needs = self.needs(releases, file, "") or ()
        if further:
            self.look_ahead(needs)

    def close(self) -> None:
        """End the threads. Raises an unexpected exception of a thread."""
        self.workers.close()
        if self.workers.failure is not None:
            raise self.workers.failure
