"""The metadata of one file of an index, by the cheapest way that the index offers.

1. The metadata file of a wheel (PEP 658), with its digest on the page.
2. From the wheel itself: the end of the archive, then the member, by range requests; some kB of some GB.
3. From the whole wheel, if the server does not support ranges and the wheel is small.
4. For a source distribution, the metadata in its archive (envsolve.index.source_archive).
5. A build of the metadata, only on request and if the user allows running the code of packages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from envsolve.index.checks import check_hash, checked_metadata, invalid, not_served
from envsolve.index.fetch import METADATA_LIMIT, Fetcher
from envsolve.index.metadata import Metadata
from envsolve.model.package import PackageFile

if TYPE_CHECKING:
    from envsolve.index.build_environments import BuildEnvironments

_OK = 200
_NOT_THERE = (404, 410)


class FileMetadata(NamedTuple):
    """Reads the metadata of files. With ``builds`` it can also build that of source distributions, in these."""

    builds: BuildEnvironments | None = None

    def __call__(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """The metadata of ``file``, which must be for the project and version in its name.

        Raises OutsideError ``metadata-hash-mismatch``, ``metadata-invalid`` or ``file-not-there``.
        """
        content = self._beside(fetcher, file) if file.metadata is not None else None
        if content is None and file.is_wheel:
            content = _from_wheel(fetcher, file)
        if content is None:
            from envsolve.index.source_metadata import of_source

            return of_source(fetcher, file)
        return checked_metadata(content, file)

    def built(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """The metadata from a build of a source distribution, which runs its code.

        Raises OutsideError ``no-hash``, ``metadata-invalid`` or ``build-failed``.
        """
        from envsolve.index.source_metadata import built

        assert self.builds is not None
        return built(fetcher, file, self.builds)

    def _beside(self, fetcher: Fetcher, file: PackageFile) -> bytes | None:
        """The metadata file of a wheel; None if the index lists one but does not have it."""
        address, mark, query = file.url.partition("?")
        response = fetcher.fetch(f"{address}.metadata{mark}{query}", limit=METADATA_LIMIT)
        if response.status in _NOT_THERE:
            return None
        if response.status != _OK:
            raise not_served(file, response)
        check_hash(response.body, file.metadata or (), f"{file.name}.metadata")
        return response.body


def _from_wheel(fetcher: Fetcher, file: PackageFile) -> bytes:
    from envsolve.index.wheel_member import BrokenArchiveError, metadata_member

    try:
        return metadata_member(fetcher, file)
    except BrokenArchiveError as error:
        raise invalid(file, f"the wheel is damaged: {error}") from None
