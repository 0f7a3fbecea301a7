"""The metadata of one file of an index, by the cheapest way the index offers.

1. The metadata file beside a wheel (PEP 658), whose digest the page states.
2. Out of the wheel itself: the end of the archive, then the member, by range requests; some kB of some GB.
3. The whole file, where the server does not do ranges, as long as it is small.
4. Of a source distribution what its archive states (envsolve.index.source_archive).
5. A build of the metadata alone, where the user allows running the code of packages: only when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from envsolve.index.checks import check_hash, checked_metadata, invalid, not_had
from envsolve.index.fetch import METADATA_LIMIT, Fetcher
from envsolve.index.metadata import Metadata
from envsolve.model.package import PackageFile

if TYPE_CHECKING:
    from envsolve.index.build_environments import BuildEnvironments

_OK = 200
_NOT_THERE = (404, 410)


class FileMetadata(NamedTuple):
    """Reads the metadata of files. With ``builds`` it may also run the build of source distributions, in those."""

    builds: BuildEnvironments | None = None

    def __call__(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """What ``file`` says of itself, which must be about the project and version that its name says.

        Raises OutsideError where it cannot be had: ``metadata-hash-mismatch``, ``metadata-invalid``,
        ``file-not-there``.
        """
        content = self._beside(fetcher, file) if file.metadata is not None else None
        if content is None and file.is_wheel:
            content = _from_wheel(fetcher, file)
        if content is None:
            from envsolve.index.source_metadata import of_source

            return of_source(fetcher, file)
        return checked_metadata(content, file)

    def built(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        """What the build of a source distribution says of it, which runs its code.

        Raises OutsideError where there is no answer: ``no-hash``, ``metadata-invalid``, ``build-failed``.
        """
        from envsolve.index.source_metadata import built

        assert self.builds is not None
        return built(fetcher, file, self.builds)

    def _beside(self, fetcher: Fetcher, file: PackageFile) -> bytes | None:
        """The metadata file beside it; None where the index promised one and has none."""
        address, mark, query = file.url.partition("?")
        response = fetcher.fetch(f"{address}.metadata{mark}{query}", limit=METADATA_LIMIT)
        if response.status in _NOT_THERE:
            return None
        if response.status != _OK:
            raise not_had(file, response)
        check_hash(response.body, file.metadata or (), f"{file.name}.metadata")
        return response.body


def _from_wheel(fetcher: Fetcher, file: PackageFile) -> bytes:
    from envsolve.index.wheel_member import BrokenArchiveError, metadata_member

    try:
        return metadata_member(fetcher, file)
    except BrokenArchiveError as error:
        raise invalid(file, f"the wheel is damaged: {error}") from None
