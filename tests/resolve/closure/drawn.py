"""Random small worlds of packages, and an index of them in memory: without a server hundreds of questions are fast."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from typing import NamedTuple
from urllib.parse import urlsplit

from hypothesis import strategies as st

from envsolve.index.client import Indexes, Pool
from envsolve.index.fetch import PAGE_LIMIT, Response
from envsolve.index.file_metadata import FileMetadata
from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.need import parse_need
from envsolve.model.package import Present
from envsolve.resolve.closure.releases import Wanted
from envsolve.resolve.closure.resolve import Conflict, Found, Question, found_for
from envsolve.resolve.closure.world import Limit
from tests.index.packages import core_metadata
from tests.index.shelf import JSON_TYPE

EXTRA = "x"
URL = "https://packages.example.org/simple/"
_TARGET = Wanted(Interpreter((3, 12, 4), Platform.LINUX_64))

Pins = Mapping[str, str]


class Drawn(NamedTuple):
    """A world: requirements by project and version, and the request.

    A requirement of the extra ends in ``; extra == 'x'``; every project has that extra.
    """

    projects: Mapping[str, Mapping[str, Sequence[str]]]
    requested: tuple[str, ...]


class MemoryIndex:
    """A ``Fetcher`` with the pages and the metadata of a world. ``requested`` are the requested paths.

    ``uploaded`` says when, and ``tags`` for which Pythons a version is there, by project and version.
    """

    def __init__(
        self,
        world: Drawn,
        uploaded: Mapping[tuple[str, str], str] | None = None,
        tags: Mapping[tuple[str, str], str] | None = None,
    ) -> None:
        self.requested: list[str] = []
        self._answers: dict[str, bytes] = {}
        for name, versions in world.projects.items():
            files = []
            for version, requires in versions.items():
                file = f"{name}-{version}-{(tags or {}).get((name, version), 'py3-none-any')}.whl"
                self._answers[f"/files/{file}.metadata"] = core_metadata(
                    name, version, requires=requires, extras=[EXTRA]
                )
                entry = {"filename": file, "url": f"/files/{file}", "hashes": {}, "core-metadata": True}
                files.append(entry | ({"upload-time": uploaded[name, version]} if uploaded else {}))
            page = {"meta": {"api-version": "1.1"}, "name": name, "versions": [*versions], "files": files}
            self._answers[f"/simple/{name}/"] = json.dumps(page).encode()

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """See Fetcher."""
        self.requested.append(urlsplit(url).path)
        body = self._answers.get(urlsplit(url).path)
        return Response(404, {}, b"", url) if body is None else Response(200, {"content-type": JSON_TYPE}, body, url)


class NoShelf:
    """Stores nothing."""

    def read(self, bucket: str, key: str) -> bytes | None:
        """See Shelf."""
        return None

    def write(self, bucket: str, key: str, content: bytes) -> None:
        """See Shelf."""


def resolved(
    world: Drawn,
    *,
    locked: Pins | None = None,
    requested: Sequence[str] | None = None,
    present: Mapping[str, Present] | None = None,
) -> Pins | None:
    """The pins that envsolve finds for a world; None if it finds none."""
    try:
        found = answer_for(world, MemoryIndex(world), locked=locked, requested=requested, present=present)
    except Conflict:
        return None
    return {pin.name: pin.version for pin in found.pins}


def answer_for(
    world: Drawn,
    index: MemoryIndex,
    *,
    locked: Pins | None = None,
    requested: Sequence[str] | None = None,
    present: Mapping[str, Present] | None = None,
    limits: Mapping[str, Limit] | None = None,
    urls: Sequence[str] = (URL,),
) -> Found:
    """The complete answer for a world on ``index``, which all ``urls`` lead to. Raises Conflict."""
    lines = world.requested if requested is None else requested
    question = Question(
        roots=tuple((parse_need(line), "the command line") for line in lines),
        wanted=_TARGET,
        limits=lambda name: (limits[name],) if limits and name in limits else (),
        locked=locked or {},
        present=present or {},
    )
    return found_for(question, Indexes(urls, Pool(index, NoShelf(), FileMetadata())), inf)


_VERSIONS = ("1.0", "2.0", "3.0", "4.0")
_NAMES = tuple("abcdef")


@cache
def _one_of(*things: str) -> st.SearchStrategy[str]:
    """One strategy for each set of things: creating one takes longer than drawing from it."""
    return st.sampled_from(things)


@st.composite
def _requirement(draw: st.DrawFn, names: Sequence[str]) -> str:
    name, extra = draw(_one_of(*names)), draw(_one_of("", "", "", f"[{EXTRA}]"))
    low, high = draw(_one_of("", "", "2", "3")), draw(_one_of("", "", "3", "4"))
    bounds = [f">={low}" if low else "", f"<{high}" if high else ""]
    specifier = draw(_one_of(",".join(filter(None, bounds)), "!=2.0", "==1.0", "~=3.0", f"<={low or 1}"))
    return f"{name}{extra}{specifier}"


@cache
def _requirements(names: tuple[str, ...]) -> st.SearchStrategy[str]:
    return _requirement(names)


@cache
def _of_version(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    marks = _one_of("", "", "; extra == 'x'")
    return st.lists(st.builds(lambda need, mark: need + mark, _requirements(names), marks), max_size=3)


@st.composite
def worlds(draw: st.DrawFn) -> Drawn:
    """Four to six projects of one to four versions, each with up to three requirements, sometimes of the extra."""
    names = _NAMES[: draw(st.integers(4, 6))]
    of_version = _of_version(names)
    projects = {name: {it: draw(of_version) for it in _VERSIONS[: draw(st.integers(1, 4))]} for name in names}
    requested = draw(st.lists(_requirements(names), min_size=1, max_size=3))
    return Drawn(projects, tuple(requested))
