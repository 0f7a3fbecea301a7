"""The page of a place that publishes wheels, read as an index that has one project (envsolve.extension_sources)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import OutsideError
from envsolve.extension_sources import Listing
from envsolve.index.fetch import Fetcher
from envsolve.index.kept import Kept
from envsolve.index.one_index import Index, MetadataReader, Shelf, Trust
from envsolve.index.page import Project, RawFile, project_of, read_page


class ListingPage(Index):
    """One page of a listing, at ``url``, with the files of any packages."""

    def __init__(
        self, url: str, listing: Listing, fetcher: Fetcher, shelf: Shelf, trust: Trust, read: MetadataReader
    ) -> None:
        super().__init__(url, fetcher, shelf, trust, read)
        self._page, self._listing = url, listing

    def _address(self, name: str) -> str:
        return self._page

    def _of_kept(self, name: str, kept: Kept, url: str = "") -> Project | None:
        if kept.page is None:
            return None
        if not self._listing.is_json:
            return read_page(name, kept.page, kept.content_type, url or self._page)
        try:
            files = list(_files(self._listing, msgspec.json.decode(kept.page)))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            text = f"the list of wheels at {without_secrets(self._page)} cannot be read"
            raise OutsideError("index-page-invalid", text, (str(error),)) from None
        return project_of(name, url or self._page, files)


def _files(listing: Listing, document: Any) -> Iterator[RawFile]:
    for row in _values(document, listing.rows):
        name, address = _values(row, listing.file)[0], _values(row, listing.address)[0]
        digest = next(iter(_values(row, listing.digest)), "").removeprefix("sha256:")
        yield str(name), str(address), (("sha256", str(digest)),) if digest else (), None, None, None, None, None


def _values(value: Any, keys: Sequence[str]) -> list[Any]:
    """What lies at a path of keys, ``*`` being each element of a list or a table."""
    if not keys:
        return [] if value is None else [value]
    if keys[0] != "*":
        return _values(value.get(keys[0]), keys[1:])
    elements = value.values() if isinstance(value, dict) else value
    return [found for it in elements for found in _values(it, keys[1:])]
