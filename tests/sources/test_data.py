"""The files of data/sources are whole and say how the lists of their places are read."""

from __future__ import annotations

import json
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

Table = dict[str, Any]

HERE = Path(__file__).parent
PLACES: dict[str, Table] = {
    file.stem: tomllib.loads(file.read_text("utf-8"))
    for file in sorted((HERE.parents[1] / "data" / "sources").glob("*.toml"))
}
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


def read_name(place: Table, file: str, lane: str | None = None) -> Table | None:
    """What the name of a file says, or None if it is not for a reader of this place."""
    name, version, _, _ = parse_wheel_filename(file)
    label = file.split("-")[1].partition("+")[2]
    for rule in place["name"]:
        match = re.fullmatch(rule["label"], label, re.IGNORECASE)
        if match is None or name not in rule.get("packages", place["packages"]):
            continue
        found = {key: value for key, value in match.groupdict().items() if value is not None}
        said = {"package": str(name), "version": version.public}
        if rule["cuda_from"] == "label":
            said["cuda"] = digits(found["cuda"], 2)
        elif rule["cuda_from"] == "page" and lane:
            said["cuda"] = digits(lane.removeprefix("cu"), 2)
        for key in ("torch", "torch_min"):
            if key in found:
                said[key] = digits(found[key], 1)
        if "abi" in found:
            said["abi"] = found["abi"].upper()
        return said
    return None


class Links(HTMLParser):
    """The addresses that a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for key, value in attrs if tag == "a" and key == "href" and value]


def descend(value: Any, keys: list[str]) -> list[Any]:
    """All values at a path of keys, where * is each element."""
    if not keys:
        return [] if value is None else [value]
    if keys[0] != "*":
        return descend(value[keys[0]], keys[1:])
    return [
        found for part in (value.values() if isinstance(value, dict) else value) for found in descend(part, keys[1:])
    ]


def read_page(listing: Table, url: str, text: str) -> list[tuple[str, str, str | None]]:
    """The wheels of a list: name, address, sha256."""
    rows: list[tuple[str, str, str | None]] = []
    if listing["format"] == "html":
        parser = Links()
        parser.feed(text)
        for link in parser.found:
            parts = urlsplit(urljoin(url, link))
            digest = parts.fragment.removeprefix("sha256=") or None
            rows.append((unquote(parts.path.rsplit("/", 1)[-1]), parts._replace(fragment="").geturl(), digest))
    else:
        for row in descend(json.loads(text), listing["rows"]):
            digest = next(iter(descend(row, listing["digest"])), None)
            digest = digest.removeprefix("sha256:") if digest else None
            rows.append((descend(row, listing["file"])[0], descend(row, listing["address"])[0], digest))
    return [row for row in rows if row[0].endswith(".whl")]


def listing_of(place: Table, url: str) -> tuple[Table, dict[str, str]]:
    """The list that has this address, and the values of its placeholders."""
    for listing in place["listing"]:
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+?)", re.escape(listing["url"]))
        if match := re.fullmatch(pattern, url):
            return listing, match.groupdict()
    pytest.fail(f"no list of {place['id']} has the address {url}")


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


@pytest.mark.parametrize("name", PLACES)
def test_examples(name: str) -> None:
    for example in PLACES[name].get("example", []):
        said = {key: value for key, value in example.items() if key != "file"}
        assert read_name(PLACES[name], example["file"]) == said


@pytest.mark.parametrize("name", PLACES)
def test_files_seen(name: str) -> None:
    for row in PLACES[name].get("file", []):
        file = unquote(urlsplit(row["url"]).path.rsplit("/", 1)[-1])
        assert read_name(PLACES[name], file) is not None
        assert re.fullmatch("[0-9a-f]{64}", row["sha256"])


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
            assert read_name(place, file) == {
                "package": row["package"],
                "version": str(Version(row["version"])),
                "cuda": row["cuda"][0],
                "torch": row["torch"][-1],
                "abi": row["abi"][0],
            }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["file"])
def test_pages(page: Table) -> None:
    place = PLACES[page["source"]]
    listing, holes = listing_of(place, page["url"])
    wheels = read_page(listing, page["url"], (HERE / "pages" / page["file"]).read_text("utf-8"))
    read = [(wheel, read_name(place, wheel[0], holes.get("lane"))) for wheel in wheels]
    ours = [(wheel, said) for wheel, said in read if said and said["package"] == page["package"]]
    assert len(ours) == page["wheels"]
    if listing["hashes"] == "all":
        assert all(wheel[2] and re.fullmatch("[0-9a-f]{64}", wheel[2]) for wheel, _ in ours)
    if "row" in page:
        wanted = dict(page["row"])
        file, digest = wanted.pop("file"), wanted.pop("sha256", None)
        wheel, said = next((wheel, said) for wheel, said in ours if wheel[0] == file)
        assert wheel[1].startswith("https://")
        assert unquote(wheel[1]).endswith("/" + file)
        assert digest in (None, wheel[2])
        assert said == {"package": said["package"], "version": said["version"], **wanted}


def test_no_page_is_forgotten() -> None:
    assert sorted(page["file"] for page in PAGES) == sorted(file.name for file in (HERE / "pages").iterdir())


def test_one_address_can_have_several_digests() -> None:
    """SGLang lists a file that was replaced with the digest of each of its states."""
    (page,) = [page for page in PAGES if page["file"] == "sglang-cu129-sgl-kernel.html"]
    listing, _ = listing_of(PLACES["sglang"], page["url"])
    wheels = read_page(listing, page["url"], (HERE / "pages" / page["file"]).read_text("utf-8"))
    addresses = [wheel[1] for wheel in wheels]
    assert len(set(addresses)) < len(set(wheels)) <= len(addresses)
