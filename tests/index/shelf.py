"""One index of the server: its files, and the formats of its pages."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote

from packaging.utils import canonicalize_name

from scripts.index_recorder import recording
from scripts.index_recorder.recording import RecordedProject
from tests.index.packages import IndexFile, core_metadata, stand_in

Mode = Literal["rich", "poor", "pytorch"]
"""``rich``: PEP 691 and all it can say, or HTML that says as much. ``poor``: PEP 503 from before its attributes, links
relative to the page, no metadata files. ``pytorch``: HTML with absolute links, upload times and no sizes."""
JSON_TYPE = "application/vnd.pypi.simple.v1+json"
HTML_TYPE = "text/html; charset=utf-8"
BEYOND = "beyond-the-recording"
"""The requirements of a stand-in without recorded metadata."""
RECORDED = Path(__file__).parent / "recorded"


class Page(NamedTuple):
    """A page ready to be sent."""

    body: bytes
    zipped: bytes
    content_type: str
    tag: str


class Shelf:
    """The projects of one index at ``path``: those a test added, and before them the recorded ones if ``recorded``.

    ``padding`` is the size in bytes of the stand-ins for recorded wheels that a poor index serves.
    """

    def __init__(self, origin: str, path: str, mode: Mode, *, recorded: bool, padding: int) -> None:
        self.path = path
        self.files_path = f"{path.removesuffix('simple/')}files/"
        self.mode = mode
        self._origin = origin
        self._recorded = recorded
        self._padding = padding
        self._projects: dict[str, dict[str, IndexFile]] = {}
        self._names: dict[str, str] = {}
        self._pages: dict[tuple[str, bool], Page] = {}

    @property
    def index_url(self) -> str:
        """The URL of the index for a client."""
        return f"{self._origin}{self.path}"

    def add(self, name: str, files: Iterable[IndexFile], *, page_name: str | None = None) -> None:
        """List ``files`` in addition to earlier ones; a recorded project of that name is hidden.

        ``page_name`` is the name the page itself gives, where it is not to be the right one.
        """
        project = canonicalize_name(name)
        existing = self._projects[project] if project in self._names else {}
        self._projects[project] = {**existing, **{file.name: file for file in files}}
        self._names[project] = page_name or name
        self._pages.clear()

    def withdraw(self, name: str) -> None:
        """Remove the files that were added under ``name``."""
        del self._projects[canonicalize_name(name)], self._names[canonicalize_name(name)]
        self._pages.clear()

    def projects(self) -> Iterator[str]:
        """The normalized names of all projects, sorted."""
        recorded = set(recording.names(RECORDED)) if self._recorded else set()
        yield from sorted(recorded | set(self._names))

    def files(self, project: str) -> dict[str, IndexFile]:
        """The files of a project by name, in their order; none if there is no such project."""
        if project not in self._projects:
            padding = self._padding if self.mode == "poor" else None
            self._projects[project] = _recorded_files(project, padding) if self._recorded else {}
        return self._projects[project]

    def page(self, project: str, *, as_json: bool) -> Page | None:
        """The page of a project, None if there is none."""
        as_json = as_json and self.mode == "rich"
        if (project, as_json) not in self._pages:
            files = self.files(project)
            if not files and project not in self._names:
                return None
            body = (self._json if as_json else self._html)(project, files.values()).encode("utf-8", "surrogatepass")
            self._pages[project, as_json] = _page(body, as_json=as_json)
        return self._pages[project, as_json]

    def root(self, *, as_json: bool) -> Page:
        """The list of all projects."""
        as_json = as_json and self.mode == "rich"
        if as_json:
            listed = [{"name": name} for name in self.projects()]
            return _page(json.dumps({"meta": {"api-version": "1.1"}, "projects": listed}).encode(), as_json=True)
        links = "".join(f'<a href="{name}/">{name}</a>\n' for name in self.projects())
        return _page(f"<!DOCTYPE html><html><body>\n{links}</body></html>\n".encode(), as_json=False)

    def _link(self, project: str, file: IndexFile) -> str:
        if file.href is not None:
            return file.href
        link = f"{self.files_path}{project}/{quote(file.name)}"
        return f"../../files/{project}/{quote(file.name)}" if self.mode == "poor" else f"{self._origin}{link}"

    def _json(self, project: str, files: Iterable[IndexFile]) -> str:
        listed = [_entry(file, self._link(project, file)) for file in files]
        versions = dict.fromkeys(_version(file.name) for file in files)
        name = self._names.get(project, project)
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "versions": [*versions], "files": listed})

    def _html(self, project: str, files: Iterable[IndexFile]) -> str:
        name = escape(self._names.get(project, project))
        links = "".join(_anchor(file, self._link(project, file), self.mode) for file in files)
        return f"<!DOCTYPE html>\n<html><head><title>Links for {name}</title></head><body>\n{links}</body></html>\n"


@cache
def _recorded_files(project: str, padding: int | None) -> dict[str, IndexFile]:
    """The files of a recorded project by name, read once for all servers; with ``padding`` those of a poor index."""
    found = recording.read(RECORDED, project)
    return {} if found is None else {it.name: it for it in _listed(found, padding)}


def _listed(found: RecordedProject, padding: int | None) -> Iterator[IndexFile]:
    """A recorded project; all wheels of a release have the metadata of the recorded one."""
    of_release = {_version(name): text for name, text in reversed(found.metadata.items())}
    for file in found.files:
        text = found.metadata.get(file.name) or of_release.get(_version(file.name))
        metadata = text.encode() if text is not None and file.name.endswith(".whl") else None
        listed = IndexFile(
            file.name,
            metadata=metadata,
            sha256=file.sha256,
            size=file.size,
            requires_python=file.requires_python,
            upload_time=file.upload_time,
            yanked=file.yanked,
        )
        yield _filled(listed, padding)


def _filled(listed: IndexFile, padding: int | None) -> IndexFile:
    """With the file and metadata that the index has besides the page.

    As on the recorded index, every wheel has metadata. Where the recording lacks it, a rich index still lists it and
    does not have it; a poor one, whose clients must open the newest wheels to see that these are for other Pythons,
    has that Python and a requirement that does not exist. So a test that goes beyond the recording fails.
    """
    if not listed.is_wheel:
        return listed
    if padding is None:
        announced = listed.name.encode() if listed.metadata is None else listed.metadata
        return listed._replace(metadata_sha256=hashlib.sha256(announced).hexdigest())
    name, version = listed.name.split("-")[:2]
    metadata = listed.metadata or core_metadata(
        name, version, requires=[BEYOND], requires_python=listed.requires_python
    )
    content = stand_in(f"{name}-{version}", metadata, padding)
    return listed._replace(content=content, sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def _page(body: bytes, *, as_json: bool) -> Page:
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Page(body, gzip.compress(body, 1, mtime=0), JSON_TYPE if as_json else HTML_TYPE, tag)


def _entry(file: IndexFile, url: str) -> dict[str, object]:
    """A file in the format of PEP 691 and its successors; unknown fields are left out."""
    metadata = {"sha256": file.metadata_sha256} if file.metadata_sha256 is not None else False
    optional = {"size": file.size, "upload-time": file.upload_time, "requires-python": file.requires_python}
    return {
        "filename": file.name,
        "url": url,
        "hashes": {"sha256": file.sha256} if file.sha256 is not None else {},
        "core-metadata": metadata,
        "data-dist-info-metadata": metadata,
        "yanked": False if file.yanked is None else file.yanked or True,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _anchor(file: IndexFile, url: str, mode: Mode) -> str:
    fragment = f"#sha256={file.sha256}" if file.sha256 is not None else ""
    return f'<a href="{escape(url + fragment)}"{_attributes(file, mode)}>{escape(file.name)}</a><br/>\n'


def _attributes(file: IndexFile, mode: Mode) -> str:
    if mode == "poor":
        return ""
    metadata = file.metadata_sha256 and f"sha256={file.metadata_sha256}"
    attributes = {
        "data-requires-python": file.requires_python,
        "data-core-metadata": metadata,
        "data-dist-info-metadata": metadata,
        "data-yanked": file.yanked,
        "data-upload-time": file.upload_time if mode == "pytorch" else None,
    }
    return "".join(f' {name}="{escape(value)}"' for name, value in attributes.items() if value is not None)


def _version(name: str) -> str:
    if name.endswith(".whl"):
        return name.partition("-")[2].partition("-")[0]
    return name.removesuffix(".tar.gz").removesuffix(".zip").rpartition("-")[2]
