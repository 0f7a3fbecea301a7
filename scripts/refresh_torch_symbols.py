#!/usr/bin/env python3
"""Read which symbols each PyTorch has that others lack, and write data/compat_matrix/torch_symbols.toml.

    .venv-test/bin/python scripts/refresh_torch_symbols.py                    the listed symbols, and those of libc10
    .venv-test/bin/python scripts/refresh_torch_symbols.py torchrl fbgemm-gpu  what wheels of these need as well

PyTorch has 100,000 symbols that come and go; listed are those of libc10, which every extension needs some of, and those
that an extension was seen to need. The newest release of each minor is read in whole, for x86-64 Linux: 18 GB in all.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import tomli
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from envsolve.binary.package_facts import libraries_in  # noqa: E402
from envsolve.binary.streamed_library import read_stream, torch_symbols_of  # noqa: E402
from envsolve.releases.reader import Observation  # noqa: E402
from envsolve.releases.wheels import Listing, WheelFile  # noqa: E402
from scripts.matrix_refresh.cache import write_whole  # noqa: E402
from scripts.matrix_refresh.credentials import endpoint_of  # noqa: E402
from scripts.matrix_refresh.index import Index  # noqa: E402
from scripts.matrix_refresh.observation import Observations  # noqa: E402
from scripts.matrix_refresh.settings import default_cache, default_endpoint, places  # noqa: E402
from scripts.matrix_refresh.wheel import Wheel, new_session  # noqa: E402

_EDITION = "torch-symbols-1"
_FIRST = Version("1.4")
_PLATFORM = "linux-64"
_OF_TORCH = re.compile(r"torch/lib/lib(c10(?:_cuda)?|torch(?:_\w+)?)\.so")
_LARGEST = 200 << 20
"""Bytes of a library of an extension, packed, that is read."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@places
def refresh(packages: tuple[str, ...], matrix: Path, index_url: str | None, cache_dir: Path | None) -> None:
    """Bring data/compat_matrix/torch_symbols.toml up to what was shipped."""
    cache, session = cache_dir or default_cache(), new_session()
    endpoint = endpoint_of(index_url or default_endpoint())
    session.auth = endpoint.auth
    index = Index(endpoint.url, cache, session, offline=False)
    observations = Observations(cache, _EDITION, _observed, session)
    path = matrix / "torch_symbols.toml"
    names = _listed_in(tomli.loads(path.read_text(encoding="utf-8"))) if path.exists() else set()
    for package in packages:
        shelf = Listing(index.wheels(package)).on([_PLATFORM])
        wheels = (shelf.wheels(package, version)[0] for version in shelf.versions(package))
        names.update(name for wheel in wheels for name in observations.read(wheel)["needs"])
    chosen = dict(_newest_of_minors(Listing(index.wheels("torch"))))
    read = {minor: observations.read(wheel) for minor, wheel in chosen.items()}
    names.update(name for it in read.values() for name in it["c10"])
    text = toml_of({minor: set(it["has"]) for minor, it in read.items()}, names, [*chosen.values()])
    write_whole(path, text)
    click.echo(f"{len(read)} releases of torch, {len(names)} symbols, {observations.transferred / 1e6:,.0f} MB")


def _newest_of_minors(shelf: Listing) -> Iterator[tuple[str, WheelFile]]:
    found: dict[str, WheelFile] = {}
    for version in sorted(shelf.versions("torch")):
        wheels = shelf.wheels("torch", version, _PLATFORM)
        if version >= _FIRST and wheels:
            found[f"{version.major}.{version.minor}"] = wheels[0]
    return iter(found.items())


def _observed(wheel: Wheel) -> Observation:
    """The symbols of PyTorch that the libraries of a wheel have or, in one of another package, need."""
    if wheel.file.project == "torch":
        has = {
            match[1]: torch_symbols_of(wheel.chunks(it)) for it in wheel.members if (match := _OF_TORCH.fullmatch(it))
        }
        every = set[str]().union(*has.values())
        return {"c10": sorted(it for name in ("c10", "c10_cuda") for it in has.get(name, ())), "has": sorted(every)}
    read = (read_stream(wheel.chunks(it)) for it in libraries_in(wheel.members) if wheel.size(it) <= _LARGEST)
    return {"needs": sorted({name for library in read for name in library.torch})}


def _listed_in(document: Mapping[str, object]) -> set[str]:
    rows = document.get("symbols")
    return {name for row in rows for name in row["names"]} if isinstance(rows, list) else set()


def toml_of(having: Mapping[str, set[str]], names: Iterable[str], wheels: Sequence[WheelFile]) -> str:
    """The file: ``names`` by the minors that have them, where ``having`` are the names of each."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(set(names)):
        minors = tuple(minor for minor, of_minor in having.items() if name in of_minor)
        if minors:
            groups.setdefault(minors, []).append(name)
    today = dt.datetime.now(dt.UTC).date().isoformat()
    files = f"{len(wheels)} wheels from PyPI, {wheels[0].filename} to {wheels[-1].filename}"
    lines = [
        "# Made by scripts/refresh_torch_symbols.py from the wheels of torch for x86-64 Linux.",
        "",
        "schema_version = 1",
        f'updated = "{today}"',
        "",
        "[evidence.wheels]",
        'kind = "wheel"',
        f'reference = "symbols that libc10*.so and libtorch*.so define (.dynsym) in {files}"',
        f'seen = "{today}"',
    ]
    for minors, listed in sorted(groups.items(), key=lambda it: [list(map(int, minor.split("."))) for minor in it[0]]):
        lines += ["", "[[symbols]]", "torch = [" + ", ".join(f'"{it}"' for it in minors) + "]", "names = ["]
        lines += [*(f'    "{name}",' for name in listed), "]", 'evidence = ["wheels"]']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    refresh()
