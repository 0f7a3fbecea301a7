"""Projects that conda installs, as the resolver sees them: one version each, with nothing to fetch or choose.

Conda handles the requirements of such a project. Its version is as conda writes it. A version that Python cannot parse
(``9e``, ``1.0_3``) lies in no specifier, and meets only a requirement without one.
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
    """The one installed version of a project."""

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
        """Return a Fit, whatever files an index has. If hashes are required, nothing proves them, so it is Unfit."""
        return Unfit.OTHER_HASHES if self._fitting.wanted.hashes.get(self.project.name) is not None else _THERE

    def _worked_out(self, specifier: str) -> int:
        if not self._is_readable or specifier.startswith(_BY_ADDRESS):
            return 0
        return super()._worked_out(specifier)


def releases_of(present: Mapping[str, Present], fitting: Fitting) -> Iterator[tuple[str, Releases]]:
    """Yield the releases of each present project, by its normalized name."""
    return ((name, PresentReleases(name, it.version, fitting)) for name, it in present.items())


def specifier_of(need: Need) -> str:
    """Return what ``need`` requires of a present project. A requirement on a file's address is never met by conda."""
    return f"{_BY_ADDRESS}{without_secrets(need.url.partition('#')[0])}" if need.url else need.specifier
