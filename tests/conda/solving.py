"""The results of rattler for channels, in its own process: py-rattler 0.28 sometimes crashes when a process ends.

The process reads rattler's configuration where envsolve does, and so goes where the fixture ``mirrored`` sends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from scripts.channel_trimmer.cases import Case, Outcome

if TYPE_CHECKING:
    from rattler import Gateway
    from rattler.networking.fetch_repo_data import CacheAction

ROOT = Path(__file__).parents[2]
ANACONDA = "https://conda.anaconda.org"


class Way(NamedTuple):
    """How channels are read.

    ``cache`` names a cache below RATTLER_CACHE_DIR. ``timeout`` is in seconds, for each answer of the server. Nothing
    is tried again, except what rattler retries by itself.
    """

    zst: bool = True
    sharded: bool = False
    cache: str = "cache"
    cache_action: CacheAction = "cache-or-fetch"
    timeout: int = 20


class Request(NamedTuple):
    """A case on channels whose addresses begin with ``base``, without a slash at its end."""

    case: Case
    base: str = ANACONDA
    way: Way = Way()


class Answer(NamedTuple):
    """The result, or the class and the text of the error, and the time in seconds."""

    outcome: Outcome
    error: str
    text: str
    seconds: float


def case(*specs: str, channels: tuple[str, ...] = ("conda-forge",), cuda: str | None = None) -> Case:
    """A case for a machine with Linux."""
    virtual = ("__unix 0", "__linux 5.15", "__glibc 2.35", "__archspec 1 x86_64_v3")
    return Case("", "linux-64", channels, specs, virtual if cuda is None else (*virtual, f"__cuda {cuda}"))


def ask_rattler(requests: Iterable[Request], *, at_once: bool = False) -> Sequence[Answer]:
    """The answers in the order of the requests; ``at_once`` runs them concurrently."""
    question = {"requests": [(it.case._asdict(), it.base, it.way) for it in requests], "at_once": at_once}
    ran = subprocess.run(
        [sys.executable, "-m", "tests.conda.solving"],
        input=json.dumps(question, default=str),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=60,
    )
    return [Answer(Outcome(tuple(files), problem), *rest) for (files, problem), *rest in json.loads(ran.stdout)]


@cache
def _gateway(way: Way) -> Gateway:
    from rattler import Client, Config, Gateway, SourceConfig

    config = Config.load_from_default_locations("envsolve")
    return Gateway(
        Path(os.environ["RATTLER_CACHE_DIR"]) / way.cache,
        SourceConfig(way.zst, bz2_enabled=False, sharded_enabled=way.sharded, cache_action=way.cache_action),
        client=Client.from_config(config, max_retries=0, timeout=way.timeout),
    )


async def _answer(request: Request) -> Answer:
    from rattler.exceptions import GatewayError

    from scripts.channel_trimmer.solving import solve_case

    began = time.monotonic()
    try:
        outcome, error, text = await solve_case(_gateway(request.way), request.base, request.case), "", ""
    except GatewayError as caught:
        outcome, error, text = Outcome(), type(caught).__name__, str(caught)
    return Answer(outcome, error, text, time.monotonic() - began)


async def _answers(requests: list[Request], *, at_once: bool) -> list[Answer]:
    if at_once:
        return await asyncio.gather(*map(_answer, requests))
    return [await _answer(it) for it in requests]


def _read(case: dict[str, Any], base: str, way: list[Any]) -> Request:
    """The JSON result, whose lists were tuples."""
    newest = case["exclude_newer"]
    lists = {key: tuple(value) for key, value in case.items() if isinstance(value, list)}
    read = Case(**{**case, **lists, "exclude_newer": newest and date.fromisoformat(newest)})
    return Request(read, base, Way(*way))


if __name__ == "__main__":
    given = json.load(sys.stdin)
    found = asyncio.run(_answers([_read(*it) for it in given["requests"]], at_once=given["at_once"]))
    json.dump(found, sys.stdout)
    sys.stdout.flush()
    os._exit(0)
