"""Laws for every page: it is read, or refused with an OutsideError."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envsolve.errors import OutsideError
from envsolve.index.page import ACCEPT, Project, read_page
from envsolve.model.versions import parsed_version
from tests.index.packages import wheel
from tests.index.shelf import HTML_TYPE, JSON_TYPE, Shelf
from tests.laws import examples

URL = "https://packages.example.org/simple/some-name/"
NAME = "some-name"
TYPES = st.sampled_from([JSON_TYPE, HTML_TYPE, "application/json", "text/plain", "", ACCEPT])


def page_of_wheels(*, as_json: bool) -> bytes:
    shelf = Shelf("https://packages.example.org", "/simple/", "rich", recorded=False, padding=0)
    versions = [f"{number}.{number % 3}" for number in range(6)]
    files = [wheel(NAME, it, requires_python=">=3.8", yanked="why" if it == "3.0" else None) for it in versions]
    shelf.add(NAME, files)
    page = shelf.page(NAME, as_json=as_json)
    assert page is not None
    return page.body


PAGES = {JSON_TYPE: page_of_wheels(as_json=True), HTML_TYPE: page_of_wheels(as_json=False)}
PIECES = [
    *(b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"true", b"1e999", b"NaN", b"\\", b"\\u0000", b"\xff", b"\0"),
    *(
        b'{"filename":',
        b'"files":[',
        b'"versions":["1.0"],',
        b"},{",
        b"-1.0-",
        b"9" * 5000,
        b"\\ud800",
        b"\xef\xbb\xbf",
    ),
    *(
        b"<a href=",
        b"<a",
        b"</a>",
        b"<!--",
        b"<![",
        b"<![CDATA[",
        b"<!",
        b"<?",
        b"&#x110000;",
        b"&#1114112;",
        b"'",
        b">",
    ),
    *(b"<base href='", b"http://[", b"#sha256=", b" data-yanked", b" data-core-metadata=", b"<script>", b"..", b"%"),
]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[bytes, str]:
    """A correct page with a few pieces removed, doubled or replaced."""
    content_type = draw(st.sampled_from(list(PAGES)))
    body = PAGES[content_type]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(start + draw(st.sampled_from([0, 1, 8, 200])), len(body))))
        middle = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4), st.just(body[start:end] * 2)))
        body = body[:start] + middle + body[end:]
    return body, draw(st.one_of(st.just(content_type), TYPES))


def read(body: bytes, content_type: str) -> None:
    """Read a page and all of its versions; the only error may be OutsideError."""
    with suppress(OutsideError):
        assert_types(read_page(NAME, body, content_type, URL))


def assert_types(project: Project) -> None:
    """The guarantees for callers: text, numbers and digests in the fields for them."""
    keys = [parsed_version(version) for version in project.versions]
    assert None not in keys
    assert keys == sorted(set(keys), key=keys.index)
    for position in range(len(project.versions)):
        for name, url, hashes, size, uploaded, requires_python, yanked, metadata in project.files(position):
            assert isinstance(name, str)
            assert isinstance(url, str)
            assert all(isinstance(part, str) for pair in (*hashes, *(metadata or ())) for part in pair)
            assert size is None or (type(size) is int and size >= 0)
            assert all(isinstance(text, str | None) for text in (uploaded, requires_python, yanked))


@pytest.mark.thorough
@settings(max_examples=examples(150), deadline=None)
@given(mutated())
@example((b"<![foo", HTML_TYPE))
@example((b"<html><base href='http://['><a href='x'>", HTML_TYPE))
@example((b"[" * 100_000, JSON_TYPE))
@example((b'{"files":[{"filename":"some_name-1.0.zip","url":1,"hashes":{}}]}', JSON_TYPE))
def test_a_page_with_faults_is_read_or_refused(page: tuple[bytes, str]) -> None:
    read(*page)


FILE = {"filename": "some_name-1.0-py3-none-any.whl", "url": "x", "hashes": {}}


@pytest.mark.parametrize("version", ["2.0", "x", ""])
def test_a_page_of_a_newer_api_is_refused(version: str) -> None:
    page = {"meta": {"api-version": version}, "files": [FILE]}
    with pytest.raises(OutsideError, match="index-page-invalid"):
        read_page(NAME, json.dumps(page).encode(), JSON_TYPE, URL)


@pytest.mark.parametrize("size", [-5, 10**30, True, 1.5, "10", [1]])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    page = json.dumps({"files": [{**FILE, "size": 10}]})
    assert read_page(NAME, page.encode(), JSON_TYPE, URL).files(0)[0][3] == 10
    with pytest.raises(OutsideError, match="index-page-invalid"):
        read_page(NAME, json.dumps({"files": [{**FILE, "size": size}]}).encode(), JSON_TYPE, URL)


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=500), TYPES)
def test_any_bytes_are_read_or_refused(body: bytes, content_type: str) -> None:
    read(body, content_type)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
KEYS = ("filename", "url", "hashes", "size", "upload-time", "requires-python", "yanked", "core-metadata", "gpg-sig")


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5), max_size=3), JSON, st.booleans())
def test_entries_of_any_shape_are_read_or_refused(entries: list[dict[str, Any]], other: object, stated: bool) -> None:
    whole = {"filename": "some_name-1.0-py3-none-any.whl", "url": "x", "hashes": {}}
    files = [{**whole, **entry} for entry in entries]
    page: dict[str, Any] = {"meta": {"api-version": "1.1"}, "name": NAME, "files": files, "versions": ["1.0"]}
    page |= {} if stated else {"versions": other, "meta": other}
    read(json.dumps(page).encode(), JSON_TYPE)


def test_two_spellings_of_a_version_are_one_and_versions_ascend() -> None:
    names = ["some_name-10.0.zip", "some_name-2.0.tar.gz", "Some.Name-2.0.0.zip", "some_name-2-py3-none-any.whl"]
    files = [{**FILE, "filename": name} for name in (*names, "other-3.0.zip", "some_name-x.zip")]
    project = read_page(NAME, json.dumps({"files": files}).encode(), JSON_TYPE, URL)
    assert project.versions == ("2.0", "10.0")
    assert [file[0] for file in project.files(0)] == names[1:]
