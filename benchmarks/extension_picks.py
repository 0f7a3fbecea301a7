"""Which wheel a lock takes of the lists of data/sources, against the lists themselves.

``python -m benchmarks.extension_picks`` locks each package beside each minor of PyTorch, for each Python, CUDA and
platform of which the compatibility matrix has that PyTorch. A server on the loopback interface has the pages that are
recorded in tests/sources, and stand-ins for PyTorch and for every wheel that is listed. What a row of a list is for is
read from its name by expressions of this file, and shares nothing with envsolve.

``--addresses URL=FILE`` has a list of GitHub's form at URL that is made of the addresses in FILE, one a line, and
``--extensions`` allows third parties, too. ``--package`` and ``--python`` choose some of those.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch
from urllib.parse import unquote

from envsolve import extension_sources
from envsolve.cli.main import run
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer, Reply

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "flash-attn": ("2.8.3", "2.8.3.post1"),
    "causal-conv1d": ("1.6.2.post1",),
    "mamba-ssm": ("2.2.6.post3", "2.3.0", "2.3.1", "2.3.2.post1"),
    "torch-scatter": ("2.1.2",),
    "llama-cpp-python": ("0.3.34",),
}
"""The releases on the package index, which has their source alone."""
TORCHES = [f"2.{minor}" for minor in range(6, 15)]
PYTHONS = [f"3.{minor}" for minor in range(10, 15)]
CUDAS = ["12.4", "12.6", "12.8", "12.9", "13.0", "13.2"]
PLATFORMS = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
_LABELS = (
    r"cu(?P<cuda>1\d\d?)torch(?P<torch>2\.\d+)(?:cxx11abi(?P<abi>TRUE|FALSE))?",
    r"pt(?P<torch>2\d+)cu(?P<cuda>1\d\d)",
)
_DIGESTS = re.compile(rb"(#sha256=|sha256:)?\b[0-9a-f]{64}\b")
"""Those of the real wheels."""
_OUTCOMES = ("as listed", "none listed, none taken", "WRONG")


class Row(NamedTuple):
    """One wheel of a list; ``cuda`` is a major alone where the wheel is for all of it, ``torch`` "" for any."""

    name: str
    version: str
    python: str
    system: str
    cuda: tuple[int, ...]
    torch: str
    abi: str

    def serves(self, torch: str, python: str, cuda: str, machine: str) -> bool:
        """Whether it was built for such an environment, by its name."""
        major, minor = map(int, cuda.split("."))
        is_old = torch == "2.6" and machine == "x86_64" and (major, minor) < (12, 6)  # of 2.6 one build has the ABI
        return (
            self.torch in ("", torch)
            and self.cuda[0] == major
            and self.cuda[1:] <= (minor,)
            and self.python in (f"cp{python.replace('.', '')}", "py3")
            and self.system.startswith(("linux", "manylinux"))
            and self.system.endswith(machine)
            and self.abi in ("", "FALSE" if is_old else "TRUE")
        )


def row_of(name: str, cuda: str) -> Row | None:
    """What the name of a wheel says, on a page for ``cuda``; None for one that is for something else than CUDA."""
    distribution, version, python, _, system = name.removesuffix(".whl").split("-")
    public, _, label = version.partition("+")
    found = next(filter(None, (re.fullmatch(it, label) for it in _LABELS)), None)
    if found is None and (label or not cuda):
        return None
    said = {} if found is None else found.groupdict("")
    digits = said.get("cuda", cuda)
    torch = said.get("torch", "")
    torch = torch if "." in torch or not torch else f"{torch[0]}.{torch[1:]}"
    known = (int(digits[:2]), *map(int, filter(None, [digits[2:]])))
    return Row(distribution.replace("_", "-"), public, python, system, known, torch, said.get("abi", ""))


class Server(IndexServer):
    """Has the lists, by the addresses of the real ones behind that of the server, and every wheel in them."""

    def __init__(self, lists: Mapping[str, bytes]) -> None:
        super().__init__(recorded=False)
        self._lists = {
            url: _DIGESTS.sub(b"", it.replace(b"https://", f"{self.url}/".encode())) for url, it in lists.items()
        }

    def reply(self, path: str, headers: Mapping[str, str]) -> Reply:
        """See IndexServer."""
        body = self._lists.get(f"https:/{path}")
        name = unquote(path.rpartition("/")[2])
        if body is not None:
            kind = "application/json" if body.lstrip()[:1] in (b"[", b"{") else "text/html"
            return Reply(200, body, {"Content-Type": kind, "Cache-Control": "max-age=600"})
        if name.endswith(".whl") and not path.startswith(("/simple/", "/whl/")):
            project, version, tags = name.removesuffix(".whl").split("-", 2)
            needs = [] if project.startswith("llama") else ["torch"]
            return Reply(200, wheel(project, version, needs, tags=tags).content or b"")
        return super().reply(path, headers)


def recorded(*, third_party: bool) -> Iterator[tuple[str, bytes]]:
    """The pages of tests/sources with lists of these packages: address and content."""
    for page in tomllib.loads((ROOT / "tests/sources/pages.toml").read_text("utf-8"))["page"]:
        place = tomllib.loads((ROOT / "data/sources" / f"{page['source']}.toml").read_text("utf-8"))
        if page["package"] in PACKAGES and (place["official"] or third_party):
            yield page["url"], (ROOT / "tests/sources/pages" / page["file"]).read_bytes()


def by_workflow(source: str) -> Iterator[tuple[str, bytes]]:
    """Lists of the names that the workflow of each release made, by the matrix in the file of a place."""
    place = tomllib.loads((ROOT / "data/sources" / f"{source}.toml").read_text("utf-8"))
    listed, made = place["listing"][0], place["listing"][1]
    systems = {"linux-64": "linux_x86_64", "linux-aarch64": "linux_aarch64"}
    names: dict[str, list[str]] = {}
    for row in place["matrix"]:
        for torch in row["torch"]:
            for cuda in row["cuda"]:
                for abi in row["abi"]:
                    for python in row["python"]:
                        names.setdefault(row["version"], []).extend(
                            made["names"].format(
                                version=row["version"],
                                cuda=cuda,
                                torch=torch,
                                abi=abi,
                                python="cp" + python.replace(".", ""),
                                platform=systems[it],
                            )
                            for it in row["platforms"]
                        )
    for version, every in names.items():
        addresses = (made["url"].format(version=version, file=it.replace("+", "%2B")) for it in every)
        yield listed["url"].format(tag=f"v{version}"), json.dumps(assets(addresses)).encode()


def assets(addresses: Iterable[str]) -> dict[str, Any]:
    """A release as GitHub's REST API has it."""
    return {"assets": [{"name": unquote(it.rpartition("/")[2]), "browser_download_url": it} for it in addresses]}


def rows_in(lists: Mapping[str, bytes]) -> dict[str, list[Row]]:
    """The wheels of all lists by package."""
    found: dict[str, set[Row]] = {}
    for url, body in lists.items():
        lane = re.search(r"/cu(1\d\d)/", url)
        for name in re.findall(r"[A-Za-z0-9_.]+-[^\s\"'<>/,#]+\.whl", unquote(body.decode())):
            row = row_of(name, lane[1] if lane else "")
            if row is not None:
                found.setdefault(row.name, set()).add(row)
    return {name: list(rows) for name, rows in found.items()}


def builds() -> dict[tuple[str, str, str], set[str]]:
    """The Pythons of PyTorch's wheels by minor, CUDA and platform; those of the newest patch."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for it in tomllib.loads((ROOT / "data/compat_matrix/pytorch.toml").read_text("utf-8"))["release"]:
        if it["source"] in ("pypi", "pytorch") and "cuda" in it:
            key = (".".join(it["version"].split(".")[:2]), it["cuda"], it["platform"])
            found.setdefault(key, set()).update(it["pythons"])
    return found


def fill(server: IndexServer) -> None:
    """Stand-ins for every build of PyTorch in the matrix, and the source of the packages."""
    shelves: dict[str, Any] = {}
    files: dict[str, list[Any]] = {}
    for it in tomllib.loads((ROOT / "data/compat_matrix/pytorch.toml").read_text("utf-8"))["release"]:
        if it["platform"] not in PLATFORMS or it["source"] not in ("pypi", "pytorch") or "cuda" not in it:
            continue
        is_own = it["source"] == "pytorch"
        version = f"{it['version']}+{it['build']}" if is_own else it["version"]
        shelf = it["build"] if is_own else ""
        for python in (f"cp{text.replace('.', '')}" for text in it["pythons"]):
            tags = f"{python}-{python}-manylinux_2_28_{PLATFORMS[it['platform']]}"
            files.setdefault(shelf, []).append(wheel("torch", version, tags=tags))
    for shelf, wheels in files.items():
        if shelf:
            shelves[shelf] = server.index(f"/whl/{shelf}/", "pytorch")
            shelves[shelf].add("torch", wheels)
        else:
            server.add("torch", wheels)
    for name, versions in PACKAGES.items():
        server.add(name, [sdist(name, it) for it in versions])


def taken(server: IndexServer, package: str, words: Iterable[str]) -> str | None:
    """The name of the wheel that a lock takes of a package; None for a refusal, or for source."""
    out, err = io.StringIO(), io.StringIO()
    indexes = ("--index-url", server.index_url, "--pytorch-index-url", f"{server.url}/whl")
    common = ("--gpu", "9.0", "--glibc", "2.39", "--format", "requirements", "--audit", "off", "--cache-dir", "cache")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run([*words, package, *indexes, *common, "--no-progress"])
    found = re.search(rf"^{package} @ (\S+)", out.getvalue(), re.MULTILINE)
    return None if found is None else unquote(found[1].partition("#")[0].rpartition("/")[2])


def judged(name: str | None, allowed: Iterable[Row]) -> str:
    """Whether what was taken is the newest of what the lists have for the environment."""
    allowed = list(allowed)
    row = None if name is None else row_of(name, "0" if "+" not in name else "")
    if row is None:
        return _OUTCOMES[2] if allowed else _OUTCOMES[1]
    like = [it for it in allowed if (it.version, it.python, it.system, it.torch) == row[1:4] + row[5:6]]
    versions = {tuple(map(int, re.findall(r"\d+", it.version))) for it in allowed}
    is_newest = bool(versions) and tuple(map(int, re.findall(r"\d+", row.version))) == max(versions)
    return _OUTCOMES[0] if like and is_newest else _OUTCOMES[2]


def main() -> None:
    """Print a table, and each wheel that is not the one of the list."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", action="append")
    parser.add_argument("--python", action="append")
    parser.add_argument("--addresses", action="append", default=[])
    parser.add_argument("--extensions", action="store_true")
    options = parser.parse_args()
    lists = {**dict(recorded(third_party=options.extensions)), **dict(by_workflow("mamba"))}
    for url, _, file in (it.partition("=") if "?" not in it else it.rpartition("=") for it in options.addresses):
        lists[url] = json.dumps([assets(Path(file).read_text("utf-8").split())]).encode()
    rows, known = rows_in(lists), builds()
    counts: dict[str, Counter[str]] = {}
    more = ("--extensions",) if options.extensions else ()
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory), Server(lists) as server:
        fill(server)
        places = extension_sources.read_sources(ROOT / "data" / "sources")
        here = tuple(it._replace(listings=tuple(_at(server, one) for one in it.listings)) for it in places)
        with patch.object(extension_sources, "_shipped", lambda: here):
            for package in options.package or PACKAGES:
                for platform, machine in PLATFORMS.items():
                    for torch in TORCHES:
                        for cuda in CUDAS:
                            for python in options.python or PYTHONS:
                                if python not in known.get((torch, cuda, platform), ()):
                                    continue
                                words = ("-f", f"pytorch=={torch}.*", "--python", python, "--cuda", f"{cuda}.*")
                                name = taken(server, package, (*words, "--platform", platform, *more))
                                of_package = rows.get(package, ())
                                allowed = [it for it in of_package if it.serves(torch, python, cuda, machine)]
                                outcome = judged(name, allowed)
                                counts.setdefault(f"{package} {platform}", Counter())[outcome] += 1
                                if outcome == _OUTCOMES[2]:
                                    print(package, platform, torch, cuda, python, name, [*allowed][:3], flush=True)
    print(f"| package, platform | {' | '.join(_OUTCOMES)} |\n|---|---|---|---|")
    for key, found in counts.items():
        print(f"| {key} | {' | '.join(str(found[it]) for it in _OUTCOMES)} |")


def _at(server: IndexServer, listing: extension_sources.Listing) -> extension_sources.Listing:
    return listing._replace(url=listing.url.replace("https://", f"{server.url}/"))


if __name__ == "__main__":
    main()
