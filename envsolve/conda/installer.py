"""The program that installs conda packages with py-rattler: settings and a job come in, progress and the result go out.

It is a separate process for the reasons in engine.py, whose messages and settings it shares: rattler may crash, or be
killed in the middle of a package, and the command survives to clean up. Unlike the engine it uses the user's file
permissions: the files that it writes may be shared.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from envsolve.conda.engine import Job, client_of, hand_on, read_config, send, stand_somewhere
from envsolve.conda.package_paths import require_inside

_FROM_INDEX = ("build_number", "constrains", "depends", "license", "license_family", "noarch", "timestamp")
"""What a package's metadata have and a lock need not: conda and pixi use it when they change the environment."""


class Installer:
    """One job: the packages in it become the environment at its prefix."""

    def __init__(self, settings: Job, job: Job, goes: BinaryIO) -> None:
        self._settings, self._job, self._goes = settings, job, goes

    async def run(self) -> None:
        """Install. Raises whatever rattler raises, and MissingError if packages are not cached offline."""
        from rattler import PackageCache, Subdir, install

        config = read_config()
        client = client_of(config, self._settings, self._settings["logins"])
        cache = Path(self._settings["cache_directory"])
        records = [_record(it) for it in self._job["packages"]]
        if self._settings["mode"] == "offline":
            await _require_in(PackageCache(cache), records)
        prefix = Path(self._job["prefix"])
        await install(
            records,
            target_prefix=prefix,
            cache_dir=cache,
            reinstall_packages=set(self._job["again"]),
            platform=Subdir(self._job["platform"]),
            client=client,
            config=config,
            reporter=_Reporter(self._goes, {it.name.normalized: cache / _stem(it) for it in records}),
        )
        _complete(prefix / "conda-meta")


class MissingError(Exception):
    """Packages that are not in the cache, while downloads are not allowed."""


async def _require_in(cache: Any, records: Iterable[Any]) -> None:
    index = await cache.index()
    missing = [record.file_name for record in records if not index.contains_record(record)]
    if missing:
        several = f"{len(missing)} packages, such as {missing[0]}, are not cached"
        raise MissingError(several if len(missing) > 1 else f"{missing[0]} is not cached")


def _record(package: Job) -> Any:
    from rattler import PackageRecord, RepoDataRecord
    from rattler.package import BuildString

    md5, sha256 = (bytes.fromhex(package[name]) if package[name] else None for name in ("md5", "sha256"))
    record = PackageRecord(
        package["name"],
        package["version"],
        BuildString(package["build"]),
        package["build_number"],
        package["subdir"],
        noarch=package["noarch"],
        depends=package["depends"],
        constrains=package["constrains"],
        size=package["size"],
        md5=md5,
        sha256=sha256,
    )
    return RepoDataRecord(record, package["file_name"], package["url"], package["channel"])


def _stem(record: Any) -> str:
    """The name that rattler gives the directory of an unpacked package in its cache."""
    return f"{record.name.normalized}-{record.version}-{record.build}"


def _paths(package: Path) -> Iterator[str]:
    """The files that an unpacked package lists. Raises whatever rattler raises if it cannot read them."""
    from rattler.package import PathsJson

    listed = PathsJson.from_package_directory_with_deprecated_fallback(package)
    return (str(it.relative_path) for it in listed.paths)


class _Reporter:
    """rattler's callbacks: the number of packages, and the current one. The others do nothing.

    ``unpacked`` maps the name of each package to its directory in the cache.
    """

    def __init__(self, goes: BinaryIO, unpacked: Mapping[str, Path]) -> None:
        self._goes, self._unpacked, self._total, self._done = goes, unpacked, len(unpacked), 0
        self._sending = threading.Lock()

    def on_populate_cache_start(self, operation: int, package_name: str) -> int:
        self._report(f"fetching {package_name}")
        return 0

    def on_link_start(self, operation: int, package_name: str) -> int:
        """Called before the first file of a package is linked; an exception here would not end the installation."""
        try:
            package = self._unpacked[package_name]
            require_inside(package.name, _paths(package))
        except Exception as error:  # noqa: BLE001  # whatever it is, nothing of the package may be linked
            with self._sending:
                send(json.dumps(_error_json(error)), self._goes)
                os._exit(0)
        self._done += 1
        self._report(f"{self._done} of {self._total}, {package_name}")
        return 0

    def _report(self, text: str) -> None:
        with self._sending:
            send(json.dumps({"progress": text}), self._goes)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *_: 0


def _complete(folder: Path) -> None:
    """Complete the records of installed packages from the packages' own metadata.

    Packages that an earlier command installed are complete, and need not be in the cache any more.
    """
    for path in folder.glob("*.json"):
        record = json.loads(path.read_bytes())
        index = Path(record["extracted_package_dir"]) / "info" / "index.json"
        if not index.is_file():
            continue
        read = json.loads(index.read_bytes())
        known = {key: read[key] for key in _FROM_INDEX if read.get(key) is not None}
        path.write_text(json.dumps(record | known, indent=2), "utf-8")


def _error_json(error: Exception) -> dict[str, object]:
    return {"error": type(error).__name__, "text": str(error)}


def main() -> None:
    """Do the one job, and report how it ended; if the input ends before, the process ends too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both processes, and envsolve's decides
    stand_somewhere()
    goes, jobs = sys.stdout.buffer, SimpleQueue[Job]()
    sys.stdout = sys.stderr
    threading.Thread(target=hand_on, args=(sys.stdin.buffer, jobs), daemon=True).start()
    settings, job = jobs.get(), jobs.get()
    answer: dict[str, object] = {"done": True}
    try:
        asyncio.new_event_loop().run_until_complete(Installer(settings, job, goes).run())
    except Exception as error:  # noqa: BLE001  # whatever rattler raises is for the other process to tell
        answer = _error_json(error)
    send(json.dumps(answer), goes)
    os._exit(0)
