"""The files of data/sources are complete and state how the lists of their places are read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from envsolve.extension_sources import Labelled, Listing, Page, read_sources
from envsolve.index.fetch import PAGE_LIMIT, Response
from envsolve.index.file_metadata import FileMetadata
from envsolve.index.listing import ListingPage
from envsolve.index.one_index import Trust
from envsolve.index.page import RawFile

Table = dict[str, Any]

HERE = Path(__file__).parent
PLACES: dict[str, Table] = {
    file.stem: tomllib.loads(file.read_text("utf-8"))
    for file in sorted((HERE.parents[1] / "data" / "sources").glob("*.toml"))
}
SOURCES = {it.id: it for it in read_sources(HERE.parents[1] / "data" / "sources")}
PAGES: list[Table] = tomllib.loads((HERE / "pages.toml").read_text("utf-8"))["page"]

KEYS = {
    "listing": (
        {"format", "url", "hashes", "evidence"},
        {"packages", "lanes", "torches", "tags", "rows", "file", "address", "digest", "names"},
    ),
    "name": ({"label", "cuda_from", "torch_from", "cuda_match"}, {"packages"}),
    "unlabelled": ({"from", "before", "cuda"}, set()),
    "matrix": (
        {"package", "version", "torch", "cuda", "python", "platforms", "checked", "evidence"},
        {"abi"},
    ),
    "file": ({"url", "sha256", "evidence"}, set()),
    "example": ({"file", "package", "version"}, {"cuda", "torch", "torch_min", "abi"}),
}
TOP = {
    "schema_version", "updated", "id", "title", "publisher", "official", "packages", "platforms", "licence",
    "reached_live", "listing", "name", "evidence",
}  # fmt: skip
MORE = {"notes", "terms", "only_for", "unlabelled", "matrix", "file", "example"}
PLACEHOLDERS = {
    "project", "distribution", "version", "lane", "torch", "torch_digits", "torch_version", "tag", "page", "file",
}  # fmt: skip


def tables(place: Table) -> list[tuple[str, Table]]:
    return [(kind, row) for kind in KEYS for row in place.get(kind, [])]


def digits(value: str, major: int) -> str:
    """128 or 12.8 as 12.8, 210 or 2.10 as 2.10, 12 as 12."""
    plain = value.replace(".", "")
    return plain[:major] + ("." + plain[major:] if plain[major:] else "")


def read_label(place: str, file: str, page: Page = Page("")) -> Table | None:  # noqa: B008 - a value
    """The facts of a file on ``page``, as an example has them; None if envsolve does not use the file."""
    name, version, _, _ = parse_wheel_filename(file)
    label = SOURCES[place].read_label(str(name), file.split("-")[1].partition("+")[2], page)
    if label is None:
        return None
    found = {key: value for key, value in label._asdict().items() if value}
    return {"package": str(name), "version": version.public, **found}


def is_used(place: Table, package: str, label: str) -> bool:
    """Whether the first rule for a label names the place where its CUDA is stated."""
    rules = [it for it in place["name"] if package in it.get("packages", place["packages"])]
    first = next((it for it in rules if re.fullmatch(it["label"], label, re.IGNORECASE)), None)
    return first is not None and first["cuda_from"] != "versions"


class OnePage(NamedTuple):
    """A fetcher with one page."""

    body: bytes
    kind: str

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        return Response(200, {"content-type": self.kind}, self.body, url)


class Nothing:
    """A cache that stores nothing."""

    def read(self, bucket: str, key: str) -> bytes | None:
        return None

    def write(self, bucket: str, key: str, content: bytes) -> None:
        return None


def listing_of(place: str, url: str) -> Listing:
    """The list with this address."""
    for listing in SOURCES[place].listings:
        pattern = re.sub(r"\\\{\w+\\\}", "[^/]+?", re.escape(listing.url))
        if re.fullmatch(pattern, url):
            return listing
    pytest.fail(f"no list of {place} has the address {url}")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACES)
def test_keys(name: str) -> None:
    place = PLACES[name]
    assert place["id"] == name
    assert set(place) >= TOP
    assert not set(place) - TOP - MORE
    assert place["packages"] == sorted({canonicalize_name(package) for package in place["packages"]})
    assert set(place["platforms"]) <= {"linux-64", "linux-aarch64", "win-64"}
    for kind, row in tables(place):
        needed, allowed = KEYS[kind]
        assert set(row) >= needed, (kind, row)
        assert not set(row) - needed - allowed, (kind, row)
        assert set(row.get("packages", [])) <= set(place["packages"]), (kind, row)
        assert row.get("package", place["packages"][0]) in place["packages"], (kind, row)


@pytest.mark.parametrize("name", PLACES)
def test_every_statement_has_evidence(name: str) -> None:
    evidence = PLACES[name]["evidence"]
    for entry in evidence.values():
        assert set(entry) == {"url", "what", "date"}
    for kind, row in tables(PLACES[name]):
        if "evidence" in KEYS[kind][0]:
            assert row["evidence"], (kind, row)
            assert set(row["evidence"]) <= set(evidence), (kind, row)


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACES)
def test_listings(name: str) -> None:
    place = PLACES[name]
    for listing in place["listing"]:
        holes = set(re.findall(r"\{(\w+)\}", listing["url"]))
        assert holes <= PLACEHOLDERS
        assert listing["hashes"] in {"all", "some", "none"}
        assert ("lane" in holes) == ("lanes" in listing)
        assert ("tag" in holes) == ("tags" in listing)
        assert bool(holes & {"torch", "torch_digits", "torch_version"}) == ("torches" in listing)
        in_json = {"rows", "file", "address", "digest"}
        assert set(listing) & in_json == (in_json if listing["format"] == "json" else set())
        assert ("names" in listing) == (listing["format"] == "none")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACES)
def test_rules_for_names(name: str) -> None:
    place = PLACES[name]
    for rule in place["name"]:
        groups = set(re.compile(rule["label"]).groupindex)
        assert groups <= {"cuda", "torch", "torch_min", "abi"}
        assert ("cuda" in groups) == (rule["cuda_from"] == "label")
        assert bool(groups & {"torch", "torch_min"}) == (rule["torch_from"] == "label")
        assert rule["cuda_match"] in {"major", "minor"}
        if rule["cuda_from"] == "versions":
            assert place["unlabelled"]


def test_the_cuda_of_vllm_wheels_without_a_label_comes_from_their_ptx() -> None:
    file = HERE.parents[1] / "data" / "compat_matrix" / "extensions" / "vllm.toml"
    rows = [it for it in tomllib.loads(file.read_text("utf-8"))["build"] if it["platforms"] == ["linux-64"]]
    named = PLACES["vllm"]["unlabelled"]
    for row in rows:
        for version in re.findall(r"(?:>=|<=)([\d.]+)", row["versions"]):
            found = [it["cuda"] for it in named if Version(it["from"]) <= Version(version) < Version(it["before"])]
            assert found == [row["ptx_cuda"]], version


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACES)
def test_examples(name: str) -> None:
    for example in PLACES[name].get("example", []):
        label = example["file"].split("-")[1].partition("+")[2]
        if is_used(PLACES[name], example["package"], label):
            assert read_label(name, example["file"]) == _as_used(PLACES[name], example)
        else:
            assert read_label(name, example["file"]) is None


def _as_used(place: Table, example: Table) -> Table:
    """An example with the major of CUDA if its publisher states that a wheel is for all of it."""
    facts = {key: value for key, value in example.items() if key != "file"}
    label = example["file"].split("-")[1].partition("+")[2]
    rule = next(it for it in place["name"] if re.fullmatch(it["label"], label, re.IGNORECASE))
    major = {"cuda": facts["cuda"].partition(".")[0]} if rule["cuda_match"] == "major" and "cuda" in facts else {}
    return {**facts, **major}


@pytest.mark.thorough
@pytest.mark.parametrize("name", PLACES)
def test_names_made_from_a_matrix_are_read_back(name: str) -> None:
    place = PLACES[name]
    systems = {"linux-64": "linux_x86_64", "linux-aarch64": "linux_aarch64", "win-64": "win_amd64"}
    for pattern in [listing["names"] for listing in place["listing"] if listing["format"] == "none"]:
        for row in place["matrix"]:
            file = pattern.format(
                version=row["version"],
                cuda=row["cuda"][0].replace(".", ""),
                torch=row["torch"][-1],
                abi=row["abi"][0],
                python="cp" + row["python"][0].replace(".", ""),
                platform=systems[row["platforms"][0]],
            )
            cuda, torch, abi = row["cuda"][0], row["torch"][-1], row["abi"][0]
            expected = {"package": row["package"], "version": str(Version(row["version"])), "cuda": cuda}
            assert read_label(name, file) == {**expected, "torch": torch, "abi": abi}


def page_of(page: Table) -> Page:
    """A recorded page, with the facts in its address."""
    versions = re.findall(r"\d+(?:\.\w+)+", page["url"])
    found = listing_of(page["source"], page["url"]).pages(page["package"], lambda *_: True, versions)
    return next((it for it in found if it.url == page["url"]), Page(page["url"]))


def read(page: Table, labels: Callable[[str], str] = lambda _: "") -> list[RawFile]:
    """The wheels of a recorded page that are for its package."""
    listing, path = listing_of(page["source"], page["url"]), HERE / "pages" / page["file"]
    fetcher = OnePage(path.read_bytes(), "application/json" if path.suffix == ".json" else "text/html")
    place = ListingPage(page["url"], listing, labels, fetcher, Nothing(), Trust(), FileMetadata(None))
    project = place.project(page["package"])
    positions = range(0 if project is None else len(project.versions))
    return [file for it in positions for file in (project.files(it) if project else ())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["file"])
def test_pages(page: Table) -> None:
    place = PLACES[page["source"]]
    (listing,) = [it for it in place["listing"] if it["url"] == listing_of(page["source"], page["url"]).url]
    wheels = [it for it in read(page) if read_label(page["source"], it[0], page_of(page)) is not None]
    assert len(wheels) == page["wheels"]
    if listing["hashes"] == "all":
        assert all(re.fullmatch("[0-9a-f]{64}", dict(it[2])["sha256"]) for it in wheels)
    if "row" in page and is_used(place, page["package"], page["row"]["file"].split("-")[1].partition("+")[2]):
        wanted = {key: value for key, value in page["row"].items() if key != "sha256"}
        found = next(it for it in wheels if it[0] == page["row"]["file"])
        address = urljoin(page["url"], found[1])
        assert address.startswith("https://")
        assert unquote(address).endswith("/" + found[0])
        assert page["row"].get("sha256") in (None, dict(found[2]).get("sha256"))
        about = {"package": page["package"], "version": parse_wheel_filename(found[0])[1].public}
        assert read_label(page["source"], found[0], page_of(page)) == _as_used(place, {**about, **wanted})


def test_every_source_has_its_page() -> None:
    assert sorted(page["file"] for page in PAGES) == sorted(file.name for file in (HERE / "pages").iterdir())


@pytest.mark.parametrize("name", PLACES)
def test_urls_of_lists_are_complete(name: str) -> None:
    for listing in SOURCES[name].listings:
        found = [it.url for it in listing.pages(listing.packages[0], lambda *_: True, ("1.0",))]
        assert found
        assert not any("{" in it for it in found)


def test_a_wheel_without_a_label_has_one_for_its_page() -> None:
    (page,) = [it for it in PAGES if it["file"] == "llama-cpp-python-cu125.html"]
    place = SOURCES["llama-cpp-python"]
    ((name, *_),) = read(page, lambda package: place.label_on(page_of(page), package))
    assert name == "llama_cpp_python-0.3.34+cu12.5-py3-none-manylinux_2_35_x86_64.whl"
    at = Page("https://example.org/torch-2.8.0_cu128.html", "12.8", "2.8.0")
    assert SOURCES["kaolin"].label_on(at, "kaolin") == "cu12.8torch2.8.0"
    assert SOURCES["kaolin"].read_label("kaolin", "", at) == Labelled("12.8", "2.8.0")
    assert SOURCES["natten"].label_on(at, "natten") == ""
