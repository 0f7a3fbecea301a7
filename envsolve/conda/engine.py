"""The program that runs py-rattler: jobs arrive on standard input, answers leave on standard output.

It is a separate process because py-rattler (0.28) sometimes crashes when an interpreter ends, after the work is done:
threads of its runtime outlive the interpreter (PyO3/pyo3-async-runtimes issue 40). Here the process ends without any
clean-up, and a crash would lose an exit code that no one reads. It imports nothing from envsolve, so that it starts
while the rest is still loading. Besides it only installer.py imports rattler, also in a separate process.

A message is its length in bytes on a separate line, then JSON. The first job is the settings, and has no answer; nor
has ``prepare``, which only starts reading channels that will be requested later. At the end of the input no one waits
for an answer any more: the process ends at once, whatever it is doing.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from queue import SimpleQueue
from tempfile import mkstemp
from typing import Any, BinaryIO

Job = Mapping[str, Any]
_TOOLS = ("pixi", "envsolve")
"""The tools whose settings apply, later ones first: mirrors, proxies, certificates (rattler's own, shared, of each)."""
_CACHE_ACTIONS = {"": "cache-or-fetch", "offline": "force-cache-only", "refresh": "no-cache"}


class Engine:
    """rattler with the settings of one command: its channels, their logins, and its cache of their repodata."""

    def __init__(self, settings: Job, logins: Job) -> None:
        from rattler import ChannelConfig, Gateway, SourceConfig

        config = read_config()
        alias = settings["channel_alias"]
        self.logins = logins
        self._channels = ChannelConfig(alias, str(Path.cwd())) if alias else config.channel_config
        self._gateway = Gateway(
            cache_dir=settings["cache_directory"],
            default_config=SourceConfig(cache_action=_CACHE_ACTIONS[settings["mode"]]),  # type: ignore[arg-type]
            client=client_of(config, settings, logins),
        )

    async def listed(self, job: Job) -> str:
        """The packages of each name in the first channel that has it, as ``[version, build, depends]``."""
        found = await self._first_with(job, job["names"])
        entries = {
            name: [[str(it.version), str(it.build), list(it.depends)] for it in records]
            for name, records in found.items()
        }
        return json.dumps({"packages": entries})

    async def solve(self, job: Job) -> str:
        """The packages for some specs, with all their dependencies."""
        from rattler import GenericVirtualPackage, MatchSpec, PackageName, Version, solve
        from rattler.package import BuildString

        newest = job["exclude_newer"]
        records = await solve(
            self._sources(job),
            await self._specs(job),
            gateway=self._gateway,
            platforms=[job["platform"], "noarch"],
            locked_packages=await self._locked(job),
            virtual_packages=[
                GenericVirtualPackage(PackageName(name), Version(version), BuildString(build))
                for name, version, build in job["virtual_packages"]
            ],
            exclude_newer=None if newest is None else datetime.fromisoformat(newest),
            timestamp_policy="allow-missing",
            constraints=[MatchSpec(spec) for spec in job["constraints"]],
        )
        return f'{{"records": [{", ".join(record.to_json() for record in records)}]}}'

    async def _specs(self, job: Job) -> list[Any]:
        """The specs to install, each with the channel that it has to come from.

        rattler only reads the packages of a channel that match a spec. So it would use packages of a later channel that
        strict priority excludes.
        """
        from rattler import MatchSpec

        specs = [MatchSpec(spec) for spec in job["specs"]]
        free = [None if spec.channel is not None else str(spec.name.normalized) for spec in specs]
        if len(job["channels"]) == 1 or not any(free):
            return specs
        found = await self._first_with(job, filter(None, free))
        channels = {name: str(records[0].channel).rstrip("/") for name, records in found.items()}
        return [
            MatchSpec(f"{channels[name]}::{text}") if name in channels else spec
            for name, spec, text in zip(free, specs, job["specs"], strict=True)
        ]

    async def _locked(self, job: Job) -> list[Any]:
        """The packages of an existing lock that the channels still have."""
        if not job["locked"]:
            return []
        from rattler import MatchSpec

        specs = [MatchSpec(f"{name} =={version} {build}") for name, version, build in job["locked"]]
        found = await self._gateway.query(self._sources(job), [job["platform"], "noarch"], specs, recursive=False)
        return [record for records in found for record in records]

    async def _first_with(self, job: Job, names: Iterable[str]) -> dict[str, list[Any]]:
        """The records of each name in the first channel that has it: strict priority excludes the others."""
        from rattler import MatchSpec

        specs = [MatchSpec(name) for name in sorted(set(names))]
        queried = await self._gateway.query(self._sources(job), [job["platform"], "noarch"], specs, recursive=False)
        found: dict[str, list[Any]] = {}
        for record in (record for records in queried for record in records):
            same = found.setdefault(record.name.normalized, [])
            if not same or same[0].channel == record.channel:
                same.append(record)
        return found

    def _sources(self, job: Job) -> list[Any]:
        from rattler import Channel

        return [Channel(name, self._channels) for name in job["channels"]]


def main() -> None:
    """Answer jobs until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both processes, and envsolve's decides
    os.umask(0o077)  # repodata of a private channel are for this user only
    stand_somewhere()
    goes, jobs = sys.stdout.buffer, SimpleQueue[Job]()
    sys.stdout = sys.stderr
    loop = asyncio.new_event_loop()
    import rattler  # noqa: F401  # while the other process still thinks about what to ask

    threading.Thread(target=hand_on, args=(sys.stdin.buffer, jobs), daemon=True).start()
    settings, engine = jobs.get(), None
    failed: tuple[list[str], Exception] | None = None
    while True:
        job = jobs.get()
        try:
            if engine is None or engine.logins != job["logins"]:
                engine, failed = Engine(settings, job["logins"]), None
            if failed is not None and set(failed[0]) <= set(job["channels"]):
                raise failed[1]  # rattler has already retried it
            answer = loop.run_until_complete(_answering(engine, job)(job))
        except Exception as error:  # noqa: BLE001  # whatever rattler raises is for the other process to tell
            answer = json.dumps({"error": type(error).__name__, "text": str(error)})
            if job["kind"] == "prepare":
                failed = job["channels"], error
        if job["kind"] != "prepare":
            send(answer, goes)


def stand_somewhere() -> None:
    """Change to the root if the working directory was removed: py-rattler does not load without one."""
    try:
        os.getcwd()  # noqa: PTH109  # as py-rattler does
    except OSError:
        os.chdir("/")


def hand_on(stream: BinaryIO, jobs: SimpleQueue[Job]) -> None:
    """Pass on incoming messages, and end the process at the end of the input."""
    try:
        while (job := receive(stream)) is not None:
            jobs.put(job)
    finally:
        os._exit(0)


def _answering(engine: Engine, job: Job) -> Callable[[Job], Awaitable[str]]:
    return {"prepare": engine.listed, "list": engine.listed, "solve": engine.solve}[job["kind"]]


def receive(stream: BinaryIO) -> Job | None:
    """The next message; None at the end of the input."""
    length = stream.readline()
    if not length.strip():
        return None
    return json.loads(stream.read(int(length)))  # type: ignore[no-any-return]


def send(answer: str, stream: BinaryIO) -> None:
    """Send a message."""
    content = answer.encode()
    stream.write(b"%d\n" % len(content))
    stream.write(content)
    stream.flush()


def client_of(config: Any, settings: Job, logins: Job) -> Any:
    """The HTTP client of rattler, configured by ``config`` and with ``logins`` (envsolve.conda.logins)."""
    from rattler import Client, Config

    with _login_file(config, logins["hosts"]) as path:
        lines = [] if path is None else [f"authentication-override-file = {json.dumps(path)}"]
        mirrors = (f"{json.dumps(bare)} = [{json.dumps(opened)}]" for bare, opened in logins["mirrors"].items())
        opening = Config.from_toml("\n".join((*lines, "[mirrors]", *mirrors)))
        return Client.from_config(
            config.merge(opening),
            max_retries=settings["retries"],
            user_agent=settings["user_agent"],
            timeout=settings["timeout"],
        )


@contextmanager
def _login_file(config: Any, hosts: Mapping[str, tuple[str, str]]) -> Iterator[str | None]:
    """A file of rattler's store with ``hosts`` and the content of the user's own file; None without any.

    rattler reads logins only from files and the keyring, and reads a file when it creates a client.
    """
    if not hosts:
        yield None
        return
    own = (os.environ.get("RATTLER_AUTH_FILE"), config.authentication_override_file)
    known: dict[str, object] = {}
    for path in filter(None, own):
        known |= _store_in(Path(path))
    known |= {host: {"BasicHTTP": {"username": user, "password": word}} for host, (user, word) in hosts.items()}
    number, name = mkstemp(prefix="envsolve-")  # readable by this user only
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            json.dump(known, file)
        yield name
    finally:
        Path(name).unlink()


def _store_in(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def read_config() -> Any:
    """The rattler settings of this user and of the system."""
    from rattler import Config

    locations = {str(path): shared for tool in _TOOLS for path, shared in Config.config_search_paths(tool)}
    return _merged(Config, [(path, shared) for path, shared in locations.items() if _is_file(path)])


def _merged(configs: Any, locations: list[tuple[str, bool]]) -> Any:
    """The settings in several files; an error names the file, which py-rattler does not."""
    try:
        return configs.load_from_locations(locations)
    except Exception as error:
        for location in locations:
            try:
                configs.load_from_locations([location])
            except Exception as wrong:  # noqa: BLE001  # this is the file
                raise type(wrong)(f"{location[0]}: {wrong}") from None
        raise error from None


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except OSError:
        return False


if __name__ == "__main__":
    main()
