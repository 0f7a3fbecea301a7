"""What holds for every page: nonsense is an OutsideError, and a look at one version finds what reading it all does."""

from __future__ import annotations

import json
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envsolve.errors import OutsideError
from envsolve.index.page import ACCEPT, Listing, read_page
from envsolve.index.project import Project
from envsolve.model.version_order import key_of
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
    """A right page with a few stretches taken out, doubled or replaced."""
    content_type = draw(st.sampled_from(list(PAGES)))
    body = PAGES[content_type]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = draw(st.integers(start, min(start + draw(st.sampled_from([0, 1, 8, 200])), len(body))))
        middle = draw(st.one_of(st.sampled_from(PIECES), st.binary(max_size=4), st.just(body[start:end] * 2)))
        body = body[:start] + middle + body[end:]
    return body, draw(st.one_of(st.just(content_type), TYPES))


def read_in_both_ways(body: bytes, content_type: str) -> None:
    """Read a page whole and by versions; only OutsideError may come of it."""
    with suppress(OutsideError):
        assert_types(read_page(NAME, body, content_type, URL))
    with suppress(OutsideError):
        project = Project(NAME, URL, content_type, lambda: body, body=body)
        for position in range(len(project.versions)):
            assert isinstance(project.files(position), tuple)


def assert_types(listing: Listing) -> None:
    """What others rely on: text, numbers and digests, where they say so."""
    keys = [key_of(version) for version in listing.versions]
    assert None not in keys
    assert keys == sorted(set(keys), key=keys.index)
    for files in listing.files:
        for name, url, hashes, size, uploaded, requires_python, yanked, metadata in files:
            assert isinstance(name, str)
            assert isinstance(url, str)
            assert all(isinstance(part, str) for pair in (*hashes, *(metadata or ())) for part in pair)
            assert isinstance(size, int | None)
            assert all(isinstance(text, str | None) for text in (uploaded, requires_python, yanked))


@settings(max_examples=examples(150), deadline=None)
@given(mutated())
@example((b"<![foo", HTML_TYPE))
@example((b"<html><base href='http://['><a href='x'>", HTML_TYPE))
@example((b"[" * 100_000, JSON_TYPE))
@example((b'{"files":[{"filename":"some_name-1.0.zip","url":1,"hashes":{}}]}', JSON_TYPE))
def test_a_page_with_faults_is_read_or_refused(page: tuple[bytes, str]) -> None:
    read_in_both_ways(*page)


FILE = {"filename": "some_name-1.0-py3-none-any.whl", "url": "x", "hashes": {}}
META = '"meta":{"api-version":"1.1"}'
FILES = f'"files":[{json.dumps(FILE)}]'


@pytest.mark.parametrize(
    ("page", "versions"),
    [
        (f'{{{META},{FILES},"versions":["1.0","2.0"]}}', ("1.0", "2.0")),
        (f'{{{FILES},{META},"versions": \n ["2.0","1.0"]}}', ("1.0", "2.0")),
        (f'{{"versions":["1.0","2.0"],{FILES},{META}}}', ("1.0", "2.0")),
        (f'{{{FILES},"other":"{"-" * 2000}",{META},"versions":["1.0","2.0"]}}', ("1.0", "2.0")),
        (f'{{{META},{FILES},"versions":["2.0"],"versions":["1.0","2.0"]}}', ("1.0",)),
        (f'{{{META},{FILES},"versions":{" " * 200}["1.0","2.0"]}}', ("1.0",)),
        (f'{{{META},{FILES},"other":[{"[]," * 20_000}1],"versions":["1.0","2.0"]}}', ("1.0",)),
        (f'{{{META},{FILES},"versions":null}}', ("1.0",)),
    ],
)
def test_versions_are_taken_from_the_one_list_of_them_or_from_the_files(page: str, versions: tuple[str, ...]) -> None:
    assert Project(NAME, URL, JSON_TYPE, lambda: b"", body=page.encode()).versions == versions


@pytest.mark.parametrize("page", ["{{{meta},{files},{versions}}}", "{{{files},{versions},{meta}}}"])
def test_a_page_of_an_api_that_is_yet_to_come_is_refused(page: str) -> None:
    parts = {"meta": '"meta":{"api-version":"2.0"}', "files": FILES, "versions": '"versions":["1.0"]'}
    with pytest.raises(OutsideError, match="index-page-invalid"):
        Project(NAME, URL, JSON_TYPE, lambda: b"", body=page.format(**parts).encode())


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=500), TYPES)
def test_any_bytes_are_read_or_refused(body: bytes, content_type: str) -> None:
    read_in_both_ways(body, content_type)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=6,
)
KEYS = ("filename", "url", "hashes", "size", "upload-time", "requires-python", "yanked", "core-metadata", "gpg-sig")


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=5), max_size=3), JSON, st.booleans())
def test_entries_of_any_shape_are_read_or_refused(entries: list[dict[str, Any]], other: object, stated: bool) -> None:
    whole = {"filename": "some_name-1.0-py3-none-any.whl", "url": "x", "hashes": {}}
    files = [{**whole, **entry} for entry in entries]
    page: dict[str, Any] = {"meta": {"api-version": "1.1"}, "name": NAME, "files": files, "versions": ["1.0"]}
    page |= {} if stated else {"versions": other, "meta": other}
    read_in_both_ways(json.dumps(page).encode(), JSON_TYPE)


VERSIONS = (
    *("1.0", "1.0.0", "1", "1.0a1", "1.0.a1", "1.0-1", "1.0.post1", "1.0.1", "11.0", "2.0+cu126", "2.0+CU126"),
    *("2024.01.01", "2024.1.1", "v2", "2.0", "02.0", "1!2.0", "2.0.dev1"),
)
KINDS = ("-py3-none-any.whl", "-1-cp312-cp312-linux_x86_64.whl", ".tar.gz", ".zip")
TEXTS = ("},{", '"},{"', '[{"', "}]", '"files":[{', "-1.0-", "\u00e9\U0001f600", '\\"', '"versions":["9"]', "x" * 9000)
LAYOUTS: tuple[dict[str, Any], ...] = (
    *({}, {"separators": (",", ":")}, {"indent": 1}, {"separators": (" , ", " : ")}),
    *({"ensure_ascii": False}, {"ensure_ascii": False, "separators": (",", ":")}),
)


def sound_page(chance: Random) -> bytes:
    """A page as an index could write it: any layout, any further keys, versions listed in every spelling of a file.

    Where a page leaves out a spelling, a source distribution may be missed: so it is for 2 of the 32 874 versions of
    484 recorded projects, of which no wheel is missed.
    """
    files, stated = [], list[str]()
    for version in chance.sample(VERSIONS, chance.randint(1, 8)):
        stated.append(version)
        for kind in chance.sample(KINDS, chance.randint(0, 3)):
            is_wheel = kind.endswith(".whl")
            stem = "some_name" if is_wheel else chance.choice((NAME, "some_name", "Some.Name"))
            name = f"{stem}-{version.replace('-', '_') if is_wheel else version}{kind}"
            entry = {"filename": name, "url": f"https://files.example.org/{name}", "hashes": {"sha256": "0" * 64}}
            files.append({**more(chance), **entry, **more(chance)})
    page: dict[str, Any] = {"meta": {"api-version": "1.1"}, "name": NAME, "files": files}
    if chance.random() < 0.8:
        page["versions"] = stated
    chance.shuffle(files)
    ordered = chance.sample(list(page.items()), len(page))
    return json.dumps(dict(ordered), **chance.choice(LAYOUTS)).encode()


def more(chance: Random) -> dict[str, Any]:
    """A key that nobody knows, now and then, with a value that looks like something else."""
    if chance.random() < 0.7:
        return {}
    text = chance.choice(TEXTS)
    return {
        chance.choice("abc"): chance.choice([text, [{"filename": text}, {"a": text}], {"versions": [text]}, [text]])
    }


@pytest.mark.parametrize("chunk", range(4))
def test_a_look_at_each_version_finds_what_reading_the_whole_page_does(chunk: int) -> None:
    for seed in range(chunk * 500, chunk * 500 + 500):
        body = sound_page(Random(seed))  # noqa: S311 - it keeps no secret
        whole = read_page(NAME, body, JSON_TYPE, URL)
        project = Project(NAME, URL, JSON_TYPE, lambda body=body: body, body=body)  # type: ignore[misc]
        if seed % 2:
            project.fold()
        expected = {key_of(text): sorted(files) for text, files in zip(whole.versions, whole.files, strict=True)}
        found = {key_of(text): sorted(project.files(at)) for at, text in enumerate(project.versions)}
        assert {key: files for key, files in found.items() if files} == expected, seed


@pytest.mark.parametrize("count", [39, 41, 100])
def test_many_versions_are_found_as_few_are(count: int) -> None:
    """Beyond some versions the whole page is read; both ways meet on one project."""
    files = [
        {"filename": f"some_name-{it}.0-py3-none-any.whl", "url": f"{it}", "hashes": {"sha256": f"{it:064}"}}
        for it in range(count)
    ]
    page = {
        "meta": {"api-version": "1.1"},
        "name": NAME,
        "files": files,
        "versions": [f"{it}.0" for it in range(count)],
    }
    body = json.dumps(page).encode()
    project = Project(NAME, URL, JSON_TYPE, lambda: body, body=body)
    assert [project.files(at)[0][1] for at in reversed(range(count))] == [f"{it}" for it in reversed(range(count))]
    again = Project(NAME, URL, JSON_TYPE, lambda: body, versions=project.versions, files=project.seen)
    assert [again.files(at) for at in range(count)] == [project.files(at) for at in range(count)]


class _LetGoOf(dict[str, tuple[str, ...]]):
    """Spellings that let go of the page when they are asked for, as another thread may at any time."""

    project: Project

    def get(self, key: str, default: Any = None) -> Any:
        self.project.fold()
        return super().get(key, default)


def test_a_page_that_is_let_go_of_meanwhile_is_read_to_the_end() -> None:
    body = PAGES[JSON_TYPE]
    project = Project(NAME, URL, JSON_TYPE, lambda: body, body=body)
    spellings = _LetGoOf()
    spellings.project = project
    project.spellings = spellings
    listing = read_page(NAME, body, JSON_TYPE, URL)
    assert [project.files(at) for at in range(len(project.versions))] == list(listing.files)


def test_a_page_that_is_looked_into_again_is_unpacked_once_more_and_then_stays() -> None:
    body, unpacked = PAGES[JSON_TYPE], list[int]()

    def unpack() -> bytes:
        unpacked.append(1)
        return body

    project = Project(NAME, URL, JSON_TYPE, unpack, body=body)
    listing = read_page(NAME, body, JSON_TYPE, URL)
    for position in reversed(range(len(project.versions))):
        assert project.files(position) == listing.files[position]
        project.fold()
    assert len(unpacked) == 1
