"""The places beside package indexes that publish wheels with GPU code, one for each file of ``data/sources``.

The README there says what the keys mean. What is here is which lists such a place has, and what the label in the name
of one of its wheels says, ``2.8.3+cu12torch2.9cxx11abiTRUE``, or the page that lists one without a label.
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
"""Whether wheels for a CUDA and a minor of PyTorch may serve, each "" if a page does not say."""


class Labelled(NamedTuple):
    """What a wheel says it was built for, in its label or by the page that lists it; "" if it does not say.

    ``cuda`` is a version (``12.8``) or, where its publisher says that it is for all of them, a major (``12``).
    ``torch`` is a minor of PyTorch, of some pages with its patch, ``torch_min`` the oldest. ``abi`` says whether that
    PyTorch has the C++11 ABI.
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
    """A list of files: JSON with the keys to its ``rows`` and to what one of them says, else HTML with links.

    ``lanes`` and ``torches`` are the values of the placeholders that were seen.
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
        """What its address leaves open."""
        return tuple(dict.fromkeys(name for _, name, _, _ in Formatter().parse(self.url) if name))

    def pages(self, package: str, goes: Goes, versions: Sequence[str]) -> Iterator[Page]:
        """Its pages for ``versions`` of a package: those whose CUDA and PyTorch ``goes`` admits."""
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
    """A place that publishes wheels; ``is_official`` where the project of the packages publishes them itself."""

    id: str
    title: str
    publisher: str
    is_official: bool
    packages: tuple[str, ...]
    platforms: tuple[str, ...]
    listings: tuple[Listing, ...]
    rules: tuple[_Rule, ...]

    def listing_for(self, package: str) -> Listing | None:
        """The best list of a package."""
        return next((it for it in self.listings if package in it.packages), None)

    def said_by(self, package: str, label: str, page: Page) -> Labelled | None:
        """What the local version of a wheel on ``page`` says, "" for none; None for a wheel that is not used."""
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
        """A label for the wheels on ``page`` that have none: the same file is on the page of another CUDA as well."""
        said = self.said_by(package, "", page)
        torch = f"torch{said.torch}" if said is not None and said.torch else ""
        return f"cu{said.cuda}{torch}" if said is not None and said.cuda else ""


def cuda_of_lane(lane: str) -> str:
    """The version of CUDA that a lane is for: 12.8 for ``cu128``."""
    return _number(lane.removeprefix("cu"), 2)


def sources_for(package: str, platform: str, *, third_party: bool) -> tuple[ExtensionSource, ...]:
    """The places that may have wheels of ``package`` for ``platform``, those of its own project first.

    Places of others are among them only if ``third_party`` allows it.
    """
    found = [it for it in _shipped() if package in it.packages and platform in it.platforms and it.listing_for(package)]
    allowed = [it for it in found if it.is_official or third_party]
    return tuple(sorted(allowed, key=lambda it: (not it.is_official, it.id)))


def _number(digits: str, major: int) -> str:
    """128 or 12.8 as 12.8, with two digits in the major; 210 or 2.10 as 2.10, with one."""
    plain = digits.replace(".", "")
    return ".".join(filter(None, (plain[:major], plain[major:])))


def read_sources(directory: Path) -> tuple[ExtensionSource, ...]:
    """The places that the files of ``directory`` describe. Raises MatrixError if one is no TOML."""
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
