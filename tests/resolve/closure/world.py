"""A small world of made-up packages as a case describes it, on two indexes of the loopback server.

packages = [
    { is = "app 1.0", requires = ["part>=2; sys_platform == 'win32'"] },
    { is = "part 2.0", yanked = "broken", tags = "cp312-abi3-win_amd64" },
]
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.index.packages import IndexFile, sdist, wheel
from tests.index.server import IndexServer
from tests.index.shelf import Shelf

_SHA256 = re.compile(r"\{sha256 of ([^}]+)\}")
_OF_A_PACKAGE = {"is", "sdist", "page_requires_python", "metadata", "time_unknown", "not_there"}
UPLOADED = "2024-06-01T12:00:00Z"


class SmallWorld(NamedTuple):
    """The packages of a case. ``second`` is the index that is used if the first does not have a name."""

    first: Shelf
    second: Shelf
    digests: Mapping[str, str]

    def filled(self, text: str) -> str:
        """``text`` with the addresses and digests of files: ``{files}`` and ``{sha256 of NAME}``."""
        files = self.first.index_url.replace("simple/", "files/")
        return _SHA256.sub(lambda found: self.digests[found[1]], text.replace("{files}", files))


def small_world(server: IndexServer, path: str, case: Mapping[str, Any]) -> SmallWorld:
    """The packages of ``case`` on indexes under ``path``."""
    first, second = server.index(f"/{path}/first/simple/"), server.index(f"/{path}/second/simple/")
    digests: dict[str, str] = {}
    for shelf, key in ((first, "packages"), (second, "second")):
        for entry in case.get(key, []):
            needs = [it.replace("{files}", f"{server.url}{shelf.files_path}") for it in entry.get("requires", [])]
            file = index_file({**entry, "requires": needs})
            digests[file.name] = file.sha256 or ""
            shelf.add(entry["is"].split()[0], [file])
    return SmallWorld(first, second, digests)


def index_file(entry: Mapping[str, Any]) -> IndexFile:
    """The file that one entry of a case describes."""
    name, version = entry["is"].split()
    fields: dict[str, Any] = {
        "upload_time": UPLOADED,
        **{key: it for key, it in entry.items() if key not in _OF_A_PACKAGE},
    }
    if "metadata" in entry:
        fields["metadata"] = entry["metadata"].encode()
    file = sdist(name, version, **fields) if entry.get("sdist") else wheel(name, version, **fields)
    if not entry.get("page_requires_python", True):
        file = file._replace(requires_python=None)
    return file._replace(upload_time=None) if entry.get("time_unknown") else file


def words_of(case: Mapping[str, Any], world: SmallWorld, folder: Path) -> list[str]:
    """The command line of a case; its files are written to ``folder``."""
    words = ["--format", "pylock", "--no-cache", "--index-url", world.second.index_url]
    words += ["--extra-index-url", world.first.index_url, "--python", case.get("python", "3.12.4")]
    words += _target(case, folder)
    for option, key in (("--constraint", "constraints"), ("-r", "lines")):
        if key in case:
            words += [option, _written(folder / f"{key}.txt", map(world.filled, case[key]))]
    if "held" in case:
        words += ["-o", _written(folder / "pylock.toml", _lock_of(case["held"]))]
    words += ["--exclude-newer", case["exclude_newer"]] if "exclude_newer" in case else []
    words += [word for name in case.get("upgrade_package", []) for word in ("-P", name)]
    words += [f"--{key.replace('_', '-')}" for key in ("allow_builds", "pre", "upgrade") if case.get(key)]
    return [*words, *map(world.filled, case.get("ask", []))]


def _target(case: Mapping[str, Any], folder: Path) -> list[str]:
    """A machine without a GPU and with a given C library, not that of the machine that runs the tests."""
    platform = case.get("platform", "linux-64")
    if platform != "linux-64":
        return ["--platform", platform]
    host = {"schema_version": 1, "platform": platform, "glibc": case.get("glibc", "2.28"), "driver": None, "gpus": []}
    return ["--host", _written(folder / "host.json", [json.dumps(host)])]


def _lock_of(pins: Iterable[str]) -> Iterable[str]:
    yield '# Made by envsolve 0.1.0:\nlock-version = "1.0"\ncreated-by = "envsolve"'
    for pin in pins:
        name, _, version = pin.partition("==")
        yield f'[[packages]]\nname = "{name}"\nversion = "{version}"'
        yield f'sdist = {{ url = "https://files.example.org/{name}-{version}.tar.gz", hashes = {{ sha256 = "00" }} }}'


def _written(path: Path, lines: Iterable[str]) -> str:
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return str(path)
