"""The page of a place that publishes wheels, read as an index with one project (envsolve.extension_sources).

If only the page says which CUDA a wheel is for, the same file name is on several pages. Here its name gets a label,
``kaolin-0.18.0+cu12.8torch2.8.0-...``; its address has the published name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import OutsideError
from envsolve.extension_sources import Listing
from envsolve.index.cached_page import CachedPage
from envsolve.index.fetch import Fetcher
from envsolve.index.metadata import Metadata
from envsolve.index.one_index import Index, MetadataReader, Shelf, Trust
from envsolve.index.page import Project, RawFile, project_of, read_page
from envsolve.model.reference import file_name_in


class ListingPage(Index):
    """One page of a listing, at ``url``, with files of any packages.

    ``labels`` returns the label for wheels of a package without one; "" if they need none.
    """

    def __init__(
        self,
        url: str,
        listing: Listing,
        labels: Callable[[str], str],
        fetcher: Fetcher,
        shelf: Shelf,
        trust: Trust,
        read: MetadataReader,
    ) -> None:
        super().__init__(url, fetcher, shelf, trust, read)
        self._page, self._listing, self._labels = url, listing, labels

    def metadata(self, project: Project, file: RawFile) -> Metadata:
        """See Index."""
        return super().metadata(project, _as_published(file))

    def metadata_at_hand(self, project: Project, file: RawFile) -> Metadata | None:
        """See Index."""
        return super().metadata_at_hand(project, _as_published(file))

    def _address(self, name: str) -> str:
        return self._page

    def _project_in(self, name: str, cached: CachedPage, url: str = "") -> Project | None:
        project, label = self._read_page(name, cached, url), self._labels(name)
        if project is None or not label:
            return project
        files = (it for position in range(len(project.versions)) for it in project.files(position))
        return project_of(name, project.url, (_with_label(it, label) for it in files))

    def _read_page(self, name: str, cached: CachedPage, url: str) -> Project | None:
        if cached.page is None:
            return None
        if not self._listing.is_json:
            return read_page(name, cached.page, cached.content_type, url or self._page)
        try:
            files = list(_files(self._listing, msgspec.json.decode(cached.page)))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            text = f"the list of wheels at {without_secrets(self._page)} cannot be read"
            raise OutsideError("index-page-invalid", text, (str(error),)) from None
        return project_of(name, url or self._page, files)


def _with_label(file: RawFile, label: str) -> RawFile:
    """A wheel with ``label`` added if its version has no label; any other file unchanged."""
    project, _, rest = file[0].partition("-")
    version, _, tags = rest.partition("-")
    is_bare = file[0].endswith(".whl") and "+" not in version
    return (f"{project}-{version}+{label}-{tags}", *file[1:]) if is_bare else file


def _as_published(file: RawFile) -> RawFile:
    return (published_name(file[1]), *file[1:])


def published_name(address: str) -> str:
    """The published name of the file at ``address`` of a listing."""
    return unquote(file_name_in(address))


def _files(listing: Listing, document: Any) -> Iterator[RawFile]:
    for row in _values(document, listing.rows):
        name, address = _values(row, listing.file)[0], _values(row, listing.address)[0]
        digest = next(iter(_values(row, listing.digest)), "").removeprefix("sha256:")
        yield str(name), str(address), (("sha256", str(digest)),) if digest else (), None, None, None, None, None


def _values(value: Any, keys: Sequence[str]) -> list[Any]:
    """The values at a path of keys; ``*`` stands for each element of a list or a table."""
    if not keys:
        return [] if value is None else [value]
    if keys[0] != "*":
        return _values(value.get(keys[0]), keys[1:])
    elements = value.values() if isinstance(value, dict) else value
    return [found for it in elements for found in _values(it, keys[1:])]
