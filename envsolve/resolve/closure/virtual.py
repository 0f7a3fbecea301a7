"""Projects that no index has, such as the builds of a framework or the majors of CUDA, for the resolver to choose from.

Their candidates are numbered from 0, the best one last, like versions. A set of candidates is written as a specifier of
a special form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from envsolve.index.page import Project, RawFile
from envsolve.model.need import Need
from envsolve.resolve.closure.releases import Fit, Fitting, Releases, Unfit

_SET = "&"
"""The prefix of a specifier that is a set of candidates, as the bits of a hexadecimal number."""


class Virtual(NamedTuple):
    """A made-up project. ``needs`` are the requirements of each of its candidates, the best one last."""

    name: str
    needs: tuple[tuple[Need, ...], ...]


def among(name: str, candidates: Iterable[int]) -> Need:
    """Return a requirement on one of ``candidates`` of the virtual project ``name``."""
    return Need(name, (), f"{_SET}{sum(1 << it for it in set(candidates)):x}", "")


class VirtualReleases(Releases):
    """The candidates of a virtual project, all of which are available."""

    __slots__ = ()

    def __init__(self, virtual: Virtual, fitting: Fitting) -> None:
        count = len(virtual.needs)
        super().__init__(Project(virtual.name, "", {str(it): () for it in range(count)}), fitting)

    def fit(self, position: int) -> Fit | Unfit:
        """See Releases. The file only identifies the candidate."""
        return Fit(file_of(self.project.name, position), (), is_yanked=False)

    def source_fit(self, position: int) -> Fit | Unfit:
        """See Releases."""
        return Unfit.SOURCE_ONLY

    def _worked_out(self, specifier: str) -> int:
        if specifier.startswith(_SET):
            return int(specifier.removeprefix(_SET), 16) & self.mask("")
        return super()._worked_out(specifier)


def file_of(name: str, position: int) -> RawFile:
    """Return a stand-in for the file of a candidate."""
    return (f"{name} {position}", "", (), None, None, None, None, None)
