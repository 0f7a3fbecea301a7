"""Projects that conda installs, as a resolver sees them: one version each, with nothing to fetch and nothing to choose.

What such a project requires is conda's business. Its version is as conda writes it; one that Python cannot read
(``9e``, ``1.0_3``) lies in no specifier and is good for a requirement without one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.boundary.secrets import without_secrets
from envsolve.index.page import Project, RawFile
from envsolve.model.need import Need
from envsolve.model.package import Present
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.releases import Fit, Fitting, Releases, Unfit

_BY_ADDRESS = " @ "
_NO_FILE: RawFile = ("", "", (), None, None, None, None, None)
_THERE = Fit(_NO_FILE, (), is_yanked=False)


class PresentReleases(Releases):
    """The one version of a project that is there."""

    __slots__ = ("_is_readable",)

    def __init__(self, name: str, version: str, fitting: Fitting) -> None:
        super().__init__(Project(name, "", {version: ()}), fitting)
        self._is_readable = parsed_version(version) is not None

    def position(self, version: str) -> int | None:
        """See Releases."""
        return super().position(version) if self._is_readable else None

    def is_prerelease(self, position: int) -> bool:
        """See Releases."""
        return self._is_readable and super().is_prerelease(position)

    def fit(self, position: int) -> Fit | Unfit:
        """It is installed already, whatever files an index has; where hashes are requested, nothing proves it."""
        return Unfit.OTHER_HASHES if self._fitting.wanted.hashes.get(self.project.name) is not None else _THERE

    def _worked_out(self, specifier: str) -> int:
        if not self._is_readable or specifier.startswith(_BY_ADDRESS):
            return 0
        return super()._worked_out(specifier)


def releases_of(present: Mapping[str, Present], fitting: Fitting) -> Iterator[tuple[str, Releases]]:
    """The releases of each project that is there, by its normalized name."""
    return ((name, PresentReleases(name, it.version, fitting)) for name, it in present.items())


def specifier_of(need: Need) -> str:
    """What ``need`` asks of a project that is there: one file by its address is never what conda installs."""
    return f"{_BY_ADDRESS}{without_secrets(need.url.partition('#')[0])}" if need.url else need.specifier
