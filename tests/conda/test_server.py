"""The loopback channels themselves, checked with rattler."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import md5, sha256
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zstandard

from scripts.channel_trimmer.cases import read_roots
from scripts.channel_trimmer.summary import summary
from tests.conda.conftest import Mirror
from tests.conda.faults import garbled, halved, log_in, no_json, other_shard
from tests.conda.records import record
from tests.conda.server import ChannelServer
from tests.conda.shelf import RECORDED
from tests.conda.solving import Answer, Request, Way, ask_rattler, case

ROOTS = read_roots(RECORDED / "roots.toml")
OUTCOMES = json.loads((RECORDED / "outcomes.json").read_text("utf-8"))
"""Rattler's results for the complete channels that the recorded ones are part of."""


@contextmanager
def requested(server: ChannelServer, path: str, *, method: str = "GET", **headers: str) -> Iterator[HTTPResponse]:
    """The answer to one request."""
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    yield connection.getresponse()
    connection.close()


def solved(answer: Answer) -> list[str]:
    """The names of the files that solve it."""
    assert answer.error + answer.outcome.problem == "", answer.text
    return [file.rsplit("/", 1)[1] for file in answer.outcome.files]


@pytest.mark.thorough
def test_cases_give_the_same_result_on_recorded_and_complete_channels(mirrored: Path) -> None:
    cases = ROOTS.cases[::4]  # scripts/trim_channel.py compares them all
    answers = ask_rattler(Request(it) for it in cases)
    assert [answer.text for answer in answers if answer.error] == []
    found = {it.name: summary(it, answer.outcome) for it, answer in zip(cases, answers, strict=True)}
    for name, it in found.items():
        if "unsolvable" in it:  # the text may mention records that only the complete channel has
            assert "unsolvable" in OUTCOMES[name]
        else:
            assert it == OUTCOMES[name]


def test_a_bare_name_gets_a_cpu_build_if_the_driver_is_too_old_for_the_newest_cuda() -> None:
    for framework in ("pytorch", "tensorflow", "jax"):
        assert (
            OUTCOMES[f"{framework} by its bare name, __cuda 11.8"]
            == OUTCOMES[f"{framework} by its bare name, no __cuda"]
        )


@pytest.mark.thorough
def test_rattler_reads_compressed_repodata_plain_repodata_and_shards(mirror: Mirror) -> None:
    trio = next(it for it in ROOTS.cases if it.name == "tensorflow, pytorch and jax")
    ways = (Way(cache="zst"), Way(cache="json", zst=False), Way(cache="shards", sharded=True))
    with ChannelServer(sharded=True) as server:
        mirror(server)
        answers = ask_rattler(Request(trio, way=way) for way in ways)
    assert [summary(trio, it.outcome) for it in answers] == [OUTCOMES[trio.name]] * 3
    for subdir in ("linux-64", "noarch"):
        for name in ("repodata.json.zst", "repodata.json", "repodata_shards.msgpack.zst"):
            assert server.count(f"/conda-forge/{subdir}/{name}", method="GET") == 1
    shards = server.count("/conda-forge/*/shards/*", method="GET")
    assert len(answers[0].outcome.files) < shards < 400


@pytest.mark.thorough
def test_a_channel_made_for_a_test_works_with_recorded_ones(own_channel_server: ChannelServer, mirror: Mirror) -> None:
    mirror(own_channel_server)
    ours = own_channel_server.channel("ours")
    ours.add(
        record("alpha", "1.0"),
        record("alpha", "2.0", ["beta >=2", "six"], build="h1_1", build_number=1),
        record("beta", "2.1", noarch="python", depends=["python >=3.11"], suffix=".tar.bz2"),
    )
    (answer,) = ask_rattler([Request(case("alpha", "python 3.12.*", channels=("ours", "conda-forge")))])
    files = solved(answer)
    assert {"alpha-2.0-h1_1.conda", "beta-2.1-0.tar.bz2"} < set(files)
    assert [it for it in answer.outcome.files if "alpha" in it or "beta" in it] == [
        "ours/linux-64/alpha-2.0-h1_1.conda",
        "ours/noarch/beta-2.1-0.tar.bz2",
    ]
    ours.withdraw("alpha-2.0-h1_1.conda")
    (answer,) = ask_rattler([Request(case("alpha", channels=("ours",)), way=Way(cache="later"))])
    assert solved(answer) == ["alpha-1.0-0.conda"]
    ours.add(record("alpha", "1.5"))
    (answer,) = ask_rattler([Request(case("alpha", channels=("ours",)), way=Way(cache="last"))])
    assert solved(answer) == ["alpha-1.5-0.conda"]


def test_a_made_package_matches_its_record(own_channel_server: ChannelServer) -> None:
    made = record("alpha", noarch="generic", constrains=["__cuda >=12"], license="MIT", sha256=None)
    assert made.fields["noarch"] == "generic"
    assert made.fields["license"] == "MIT"
    assert "sha256" not in made.fields
    made = record("alpha", uploaded="2026-08-22T00:00:00+00:00")
    own_channel_server.channel("label/dev").add(made)
    with requested(own_channel_server, "/label/dev/linux-64/alpha-1.0-0.conda") as answer:
        content = answer.read()
    assert made.fields["sha256"] == sha256(content).hexdigest()
    assert made.fields["md5"] == md5(content, usedforsecurity=False).hexdigest()
    assert made.fields["size"] == len(content)
    assert made.fields["timestamp"] == 1_787_356_800_000


@pytest.mark.thorough
def test_fresh_repodata_is_not_requested_again_and_works_offline(
    own_channel_server: ChannelServer, mirror: Mirror
) -> None:
    mirror(own_channel_server)
    own_channel_server.channel("ours").add(record("alpha"))
    wanted = case("alpha", channels=("ours",))
    first, again, offline, uncached = ask_rattler(
        [
            Request(wanted),
            Request(wanted, way=Way(timeout=7)),  # a gateway of its own, on the same cache
            Request(wanted, way=Way(cache_action="force-cache-only")),
            Request(wanted, way=Way(cache="empty", cache_action="force-cache-only")),
        ]
    )
    assert solved(first) == solved(again) == solved(offline) == ["alpha-1.0-0.conda"]
    assert uncached.text.startswith("no usable repodata cache for https://conda.anaconda.org/ours/")
    assert own_channel_server.count("*", method="GET") == 2


@pytest.mark.thorough
def test_a_private_channel_needs_its_token_or_password(
    own_channel_server: ChannelServer, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server = own_channel_server
    mirror(server)
    server.channel("private").add(record("alpha"))
    server.require_token("tk-1", under="/private/")
    server.channel("staff").add(record("alpha"))
    server.require("me", "secret", under="/staff/")
    host = urlsplit(server.url).netloc
    private, staff = case("alpha", channels=("private",)), case("alpha", channels=("staff",))
    answers = ask_rattler(
        [
            Request(private, server.url),
            Request(private, f"{server.url}/t/tk-2"),
            Request(private, f"{server.url}/t/tk-1"),
            Request(staff, server.url),
            Request(staff, f"http://me:wrong@{host}", Way(cache="others")),
            Request(staff, f"http://me:secret@{host}", Way(cache="mine")),
        ]
    )
    assert [_status(it) for it in answers] == ["401", "403", "", "401", "403", ""]
    assert solved(answers[2]) == solved(answers[5]) == ["alpha-1.0-0.conda"]

    credentials = tmp_path / "credentials.json"
    credentials.write_text(json.dumps({"127.0.0.1": {"CondaToken": "tk-1"}}), "utf-8")
    monkeypatch.setenv("RATTLER_AUTH_FILE", str(credentials))
    (answer,) = ask_rattler([Request(private, server.url, Way(cache="kept"))])
    assert solved(answer) == ["alpha-1.0-0.conda"]
    assert {it.path.split("/")[1] for it in server.requests[-4:]} == {"t"}


def _status(answer: Answer) -> str:
    return answer.text.partition("error (")[2][:3]


FAULTS = {
    "broken": "503 Service Unavailable",
    "reset": "Connection reset by peer",
    "no-json": "failed to parse repodata.json",
    "log-in": "failed to parse repodata.json",
    "slow": "operation timed out",
    "garbled": "failed to decode zstd shard",
    "halved": "incomplete frame",
    "lost": "404 Not Found",
}
"""What rattler says of each fault: the channel's name, and words of the text."""


@pytest.mark.thorough
def test_each_fault_results_in_its_own_error_without_waiting(own_channel_server: ChannelServer, mirror: Mirror) -> None:
    server = own_channel_server
    mirror(server)
    for name in FAULTS:
        server.channel(name, zst=False, sharded=name in {"garbled", "halved", "lost"}).add(record("alpha"))
    server.fault("/broken/*", status=503)
    server.fault("/reset/*", reset=True)
    server.fault("/no-json/*", alter=no_json)
    server.fault("/log-in/*", alter=log_in)
    server.fault("/slow/*", stall=30)
    server.fault("/garbled/*/shards/*", alter=garbled)
    server.fault("/halved/*.zst", alter=halved)
    server.fault("/lost/*/shards/*", status=404)
    shards = Way(zst=False, sharded=True, timeout=1)
    answers = ask_rattler((Request(case("alpha", channels=(name,)), way=shards) for name in FAULTS), at_once=True)
    for (name, words), answer in zip(FAULTS.items(), answers, strict=True):
        assert (name, answer.error) == (name, "GatewayError")
        assert words in answer.text, name
        assert answer.seconds < 5, name


@pytest.mark.thorough
def test_a_missing_subdirectory_is_empty_unless_it_is_noarch(own_channel_server: ChannelServer, mirror: Mirror) -> None:
    mirror(own_channel_server)
    own_channel_server.channel("plain", subdirs=("noarch",)).add(record("alpha", noarch="generic"))
    own_channel_server.channel("bare", subdirs=("linux-64",)).add(record("alpha"))
    names = ("plain", "bare", "absent")
    plain, *others = ask_rattler(Request(case("alpha", channels=(name,))) for name in names)
    assert solved(plain) == ["alpha-1.0-0.conda"]
    assert all(it.text.startswith("could not find subdir 'noarch' in channel") for it in others)


@pytest.mark.thorough
def test_rattler_trusts_a_shard_with_a_wrong_hash(own_channel_server: ChannelServer, mirror: Mirror) -> None:
    mirror(own_channel_server)
    own_channel_server.channel("ours", sharded=True).add(record("alpha"))
    own_channel_server.fault("/ours/*/shards/*", alter=other_shard)
    (answer,) = ask_rattler([Request(case("alpha", channels=("ours",)), way=Way(sharded=True))])
    assert "evil *, for which no candidates were found" in answer.outcome.problem


def test_a_temporary_fault_ends(own_channel_server: ChannelServer) -> None:
    own_channel_server.fault("/conda-forge/noarch/*", status=429, retry_after=1, times=2)
    found = []
    for _ in range(3):
        with requested(own_channel_server, "/conda-forge/noarch/repodata.json") as answer:
            found.append((answer.status, answer.headers["Retry-After"]))
    assert found == [(429, "1"), (429, "1"), (200, None)]
    own_channel_server.fault("*", redirect="/elsewhere{path}")
    with requested(own_channel_server, "/nvidia/noarch/repodata.json") as answer:
        assert (answer.status, answer.headers["Location"]) == (302, "/elsewhere/nvidia/noarch/repodata.json")
    own_channel_server.heal()
    with requested(own_channel_server, "/nvidia/noarch/repodata.json") as answer:
        assert answer.status == 200


def test_stopping_ends_stalled_answers() -> None:
    server = ChannelServer(recorded=False)
    server.channel("ours")
    server.fault("*", stall=30)
    server.start()
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=10)
    connection.request("GET", "/ours/noarch/repodata.json")
    time.sleep(0.05)  # until the server waits
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 5
    connection.close()


def test_a_cut_answer_is_shorter_than_announced(own_channel_server: ChannelServer) -> None:
    own_channel_server.fault("*", cut=True)
    with (
        requested(own_channel_server, "/conda-forge/noarch/repodata.json.zst") as answer,
        pytest.raises(IncompleteRead),
    ):
        answer.read()


def test_files_are_served_like_those_of_a_channel(channel_server: ChannelServer) -> None:
    with requested(channel_server, "/conda-forge/win-64/repodata.json.zst") as answer:
        packed, tag = answer.read(), answer.headers["ETag"]
        assert answer.headers["Content-Type"] == "application/zstd"
        assert answer.headers["Last-Modified"] == "Sat, 22 Aug 2026 00:00:00 GMT"
    with requested(channel_server, "/conda-forge/win-64/repodata.json") as answer:
        assert answer.read() == zstandard.decompress(packed)
        assert answer.headers["Content-Type"] == "application/json"
    with requested(channel_server, "/conda-forge/win-64/repodata.json.zst", If_None_Match=tag) as answer:
        assert (answer.status, answer.read()) == (304, b"")
    with requested(channel_server, "/conda-forge/win-64/repodata.json.zst", method="HEAD") as answer:
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, str(len(packed)), b"")
    for path in (
        "/conda-forge/osx-64/repodata.json",
        "/conda-forge/win-64/repodata_shards.msgpack.zst",
        "/conda-forge/win-64/alpha-1.0-0.conda",
        "/bioconda/noarch/repodata.json",
    ):
        with requested(channel_server, path) as answer:
            assert answer.status == 404
