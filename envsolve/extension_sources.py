"""Places other than package indexes that publish wheels with GPU code, one for each file of ``data/sources``.

The README there describes the keys. The module finds the lists of such a place, and reads the label in the name of a
wheel, ``2.8.3+cu12torch2.9cxx11abiTRUE``, or the page that lists a wheel without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from string import Formatter
from typing import Any, NamedTuple

from envsolve.boundary.document import TomlFile

Goes = Callable[[str, str], bool]
"""Whether wheels for a CUDA and a minor of PyTorch may be used, each "" if a page does not say."""


class Labelled(NamedTuple):
    """What a wheel was built for, by its label or the page that lists it; "" if unknown.

    ``cuda`` is a version (``12.8``), or a major (``12``) if the wheel is for all its versions. ``torch`` is a minor of
    PyTorch, on some pages with its patch, ``torch_min`` the oldest. ``abi`` says whether that PyTorch has the C++11
    ABI.
    """

    cuda: str
    torch: str = ""
    torch_min: str = ""
    abi: str = ""


class Page(NamedTuple):
    """A page of a listing, with the CUDA and the PyTorch in its address, "" if it names none."""

    url: str
    cuda: str = ""
    torch: str = ""


class Listing(NamedTuple):
    """A list of files: JSON with the keys to its ``rows`` and to their values, else HTML with links.

    ``lanes`` and ``torches`` are known values of the placeholders.
    """

    url: str
    is_json: bool
    packages: tuple[str, ...]
    lanes: tuple[str, ...] = ()
    torches: tuple[str, ...] = ()
    tags: str = ""
    rows: tuple[str, ...] = ()
    file: tuple[str, ...] = ()
    address: tuple[str, ...] = ()
    digest: tuple[str, ...] = ()

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The placeholders in its address."""
        return tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(self.url) if name))

    def pages(self, package: str, goes: Goes, versions: Sequence[str]) -> Iterator[Page]:
        """Yield its pages for ``versions`` of a package whose CUDA and PyTorch ``goes`` admits."""
        open_ones = self.placeholders
        choices = {
            "project": (package,),
            "distribution": (package.replace("-", "_"),),
            "lane": self.lanes,
            "version": versions,
            "tag": tuple(self.tags.format(version=it) for it in versions),
            "page": ("1",),
        }
        torch_names = [it for it in open_ones if it.startswith("torch")]
        named = [it for it in open_ones if it not in torch_names]
        for torch in self.torches if torch_names else ("",):
            spelled = {"torch": torch, "torch_version": torch, "torch_digits": torch.replace(".", "")}
            for values in product(*(choices[it] for it in named)):
                given = dict(zip(named, values, strict=True))
                cuda = cuda_of_lane(given.get("lane", ""))
                if goes(cuda, ".".join(torch.split(".")[:2])):
                    yield Page(self.url.format(**given, **spelled), cuda, torch)


class _Rule(NamedTuple):
    label: re.Pattern[str]
    packages: tuple[str, ...]
    has_cuda_of_page: bool
    has_torch_of_page: bool
    is_major: bool


class ExtensionSource(NamedTuple):
    """A place that publishes wheels. ``is_official`` is true if the packages' own project publishes them."""

    id: str
    title: str
    publisher: str
    is_official: bool
    packages: tuple[str, ...]
    platforms: tuple[str, ...]
    listings: tuple[Listing, ...]
    rules: tuple[_Rule, ...]

    def listing_for(self, package: str) -> Listing | None:
        """Return the best list for a package."""
        return next((it for it in self.listings if package in it.packages), None)

    def read_label(self, package: str, label: str, page: Page) -> Labelled | None:
        """Return what the local version of a wheel on ``page`` says, "" for none, or None if the wheel is not used."""
        for rule in self.rules:
            found = rule.label.fullmatch(label) if package in rule.packages else None
            if found is not None:
                groups = {name: value for name, value in found.groupdict().items() if value}
                cuda = page.cuda if rule.has_cuda_of_page else _number(groups.get("cuda", ""), 2)
                return Labelled(
                    cuda.partition(".")[0] if rule.is_major else cuda,
                    page.torch if rule.has_torch_of_page else _number(groups.get("torch", ""), 1),
                    _number(groups.get("torch_min", ""), 1),
                    groups.get("abi", "").upper(),
                )
        return None

    def label_on(self, page: Page, package: str) -> str:
        """Return a label for wheels on ``page`` without one.

        Other pages have the same file name for another CUDA.
        """
        labelled = self.read_label(package, "", page)
        torch = f"torch{labelled.torch}" if labelled is not None and labelled.torch else ""
        return f"cu{labelled.cuda}{torch}" if labelled is not None and labelled.cuda else ""


def cuda_of_lane(lane: str) -> str:
    """Return the CUDA version of a lane: 12.8 for ``cu128``."""
    return _number(lane.removeprefix("cu"), 2)


def sources_for(package: str, platform: str, *, third_party: bool) -> tuple[ExtensionSource, ...]:
    """Return the places that may have wheels of ``package`` for ``platform``, those of its own project first.

    Places of third parties are included only with ``third_party``.
    """
    found = [it for it in _shipped() if package in it.packages and platform in it.platforms and it.listing_for(package)]
    allowed = [it for it in found if it.is_official or third_party]
    return tuple(sorted(allowed, key=lambda it: (not it.is_official, it.id)))


def _number(digits: str, major: int) -> str:
    """The version 12.8 for 128 or 12.8, with two digits in the major; 2.10 for 210 or 2.10, with one."""
    plain = digits.replace(".", "")
    return ".".join(filter(None, (plain[:major], plain[major:])))


def read_sources(directory: Path) -> tuple[ExtensionSource, ...]:
    """The places that the files of ``directory`` describe. Raises MatrixError if one is not TOML."""
    return tuple(_source(TomlFile(path, cached=True).content()) for path in sorted(directory.glob("*.toml")))


@cache
def _shipped() -> tuple[ExtensionSource, ...]:
    package = Path(__file__).parent
    shipped = package / "_sources"
    return read_sources(shipped if shipped.is_dir() else package.parent / "data" / "sources")


def _source(document: Mapping[str, Any]) -> ExtensionSource:
    packages = tuple(document["packages"])
    listings = (_listing(it, packages) for it in document["listing"] if it["format"] != "none")
    rules = (it for it in document["name"] if it["cuda_from"] != "versions")
    return ExtensionSource(
        document["id"],
        document["title"],
        document["publisher"],
        document["official"],
        packages if "only_for" not in document else (),
        tuple(document["platforms"]),
        tuple(listings),
        tuple(_rule(it, packages) for it in rules),
    )


def _rule(table: Mapping[str, Any], packages: tuple[str, ...]) -> _Rule:
    return _Rule(
        re.compile(table["label"], re.IGNORECASE),
        tuple(table.get("packages", packages)),
        table["cuda_from"] == "page",
        table["torch_from"] == "page",
        table["cuda_match"] == "major",
    )


def _listing(table: Mapping[str, Any], packages: tuple[str, ...]) -> Listing:
    keys: Iterable[tuple[str, ...]] = (tuple(table.get(it, ())) for it in ("rows", "file", "address", "digest"))
    return Listing(
        table["url"],
        table["format"] == "json",
        tuple(table.get("packages", packages)),
        tuple(table.get("lanes", ())),
        tuple(table.get("torches", ())),
        table.get("tags", ""),
        *keys,
    )
