"""Conda locks from the command line, on recorded channels that a server on the loopback interface provides."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.conda.conftest import Mirror, channel_server, mirror, mirrored, own_channel_server
from tests.conda.faults import garbled, log_in, no_json
from tests.conda.records import record
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve
from tests.index.packages import wheel
from tests.index.server import IndexServer

__all__ = ["channel_server", "mirror", "mirrored", "own_channel_server"]

_CASES = tomllib.loads((Path(__file__).parents[1] / "cases" / "conda" / "locks.toml").read_text(encoding="utf-8"))[
    "case"
]


def files_in(text: str) -> list[str]:
    """The files that an explicit lock installs, without their suffix."""
    names = (line.partition("#")[0].rpartition("/")[2] for line in text.splitlines() if line.startswith("http"))
    return [name.removesuffix(".conda").removesuffix(".tar.bz2") for name in names]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests that query the recorded channels without faults."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["name"], marks=[pytest.mark.thorough] if case.get("thorough") else [])
        for case in _CASES
    ],
)
def test_each_request_gets_its_packages_or_a_reason(
    case: dict[str, Any], envsolve: Envsolve, mirrored: Path, cache: Path
) -> None:
    done = envsolve(*case["words"], "--format", "explicit", "--cache-dir", str(cache))
    assert done.code == case.get("code", 0), done.err
    if done.code:
        assert done.out == ""
        assert done.err.startswith(f"error: {case['error']}\n"), done.err
        assert [it for it in case.get("says", ()) if it not in done.err] == [], done.err
        return
    files = files_in(done.out)
    assert [it for it in case["holds"] if not any(file.startswith(it) for file in files)] == [], files
    assert [file for file in files if any(file.startswith(f"{it}-") for it in case.get("without", ()))] == []
    assert case.get("note", "") in done.err


@pytest.mark.thorough
def test_other_formats_are_for_one_platform_or_write_one_file_each(
    envsolve: Envsolve, mirrored: Path, cache: Path
) -> None:
    words = ("-f", "pytorch", "--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64")
    done = envsolve(*words, "--format", "conda-lock", "--cache-dir", str(cache))
    assert done.code == 0, done.err
    document = yaml.safe_load(done.out)
    assert document["metadata"]["platforms"] == ["linux-64", "win-64"]
    builds = {it["platform"]: (it["version"], it["build"]) for it in document["package"] if it["name"] == "pytorch"}
    assert {version for version, _ in builds.values()} == {"2.11.0"}
    assert all(build.startswith("cuda12") for _, build in builds.values())
    assert envsolve(*words, "--format", "conda-lock", "--cache-dir", str(cache)).out == done.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "name"),
    [(("--format", "explicit"), "conda-{platform}.lock"), (("--exact",), "environment.{platform}.yml")],
)
def test_other_formats_are_for_one_platform_or_a_file_for_each(
    arguments: tuple[str, ...], name: str, envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    words = ("-f", "pytorch", "--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", *arguments)
    refused = envsolve(*words, "--cache-dir", str(cache))
    assert refused.code == 2
    assert "several-platforms" in refused.err
    done = envsolve(*words, "--cache-dir", str(cache), "-o", str(tmp_path / name))
    assert done.code == 0, done.err
    texts = [(tmp_path / name.format(platform=platform)).read_text() for platform in ("linux-64", "win-64")]
    assert all("2.11.0" in text for text in texts)
    assert texts[0] != texts[1]


def test_a_pixi_manifest_queries_no_channel(envsolve: Envsolve) -> None:
    done = envsolve(
        "-f", "pytorch", "--gpu", "8.6", "--platform", "linux-64", "--platform", "win-64", "--format", "pixi"
    )
    assert done.code == 0, done.err
    document = tomllib.loads(done.out)
    assert [it["platform"] for it in document["workspace"]["platforms"]] == ["linux-64", "win-64"]
    assert document["dependencies"]["pytorch"] == {"version": "==2.13.0", "build": "cuda130*"}


@pytest.mark.thorough
def test_the_lock_records_assumptions_about_the_machine(envsolve: Envsolve, mirrored: Path, cache: Path) -> None:
    words = ("-f", "pytorch", "--gpu", "GTX 1080 Ti", "--driver", "580.65.06", "--format", "conda-lock")
    done = envsolve(*words, "--cache-dir", str(cache))
    facts = yaml.safe_load(done.out)["metadata"]["custom_metadata"]
    assert facts["envsolve.linux-64.compute_capabilities"] == '["6.1"]'
    assert facts["envsolve.linux-64.minimum_driver"] == "525.60.13"
    assert "__cuda=13.0" in facts["envsolve.linux-64.virtual_packages"]
    assert "__cuda_arch=6.1" in facts["envsolve.linux-64.virtual_packages"]


@pytest.mark.thorough
@pytest.mark.parametrize("options", [(), ("-r", "environment.yml")], ids=["by its option", "by a file"])
def test_the_build_of_pytorchs_own_channel_is_preferred_when_that_channel_is_first(
    options: tuple[str, ...],
    own_channel_server: ChannelServer,
    mirror: Mirror,
    envsolve: Envsolve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror(own_channel_server)
    python = ["python >=3.12,<3.13.0a0"]
    own_channel_server.channel("of/ours/pytorch").add(
        record("pytorch", "2.5.1", [*python, "pytorch-cuda 12.4.*"], build="py3.12_cuda12.4_cudnn9.1.0_0"),
        *(record(name, version, python) for name, version in (("torchvision", "0.20.1"), ("torchaudio", "2.5.1"))),
        *(record(name, version) for name, version in (("mkl", "2023.1.0"), ("pytorch-cuda", "12.4"))),
    )
    channel = own_channel_server.url_of("of/ours/pytorch")
    monkeypatch.chdir(tmp_path)
    Path("environment.yml").write_text(f"channels: [{channel}, nvidia]\ndependencies: [python, pytorch=2.5]\n")
    words = options or ("-f", "pytorch", "-c", channel)
    done = envsolve(*words, "--gpu", "8.6", "--format", "explicit", "--no-cache")
    assert done.code == 0, done.err
    assert f"{channel}/linux-64/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.conda" in done.out
    assert own_channel_server.count("/pytorch/*") == 0


@pytest.fixture(scope="module")
def index() -> Iterator[IndexServer]:
    """A package that requires torchvision, and a wheel of torchvision."""
    with IndexServer(recorded=False) as server:
        server.add("seeing", [wheel("seeing", "1.0", ["torchvision>=0.9"])])
        server.add("torchvision", [wheel("torchvision", "0.27.0", tags="cp312-abi3-manylinux_2_28_x86_64")])
        yield server


@pytest.mark.thorough
def test_requirements_of_wheels_on_the_pytorch_family_are_met_by_conda_if_pytorch_is(
    index: IndexServer, envsolve: Envsolve, mirrored: Path, cache: Path
) -> None:
    words = ("-f", "pytorch", "--gpu", "8.6", "--index-url", index.index_url, "--format", "explicit")
    done = envsolve(*words, "seeing", "--cache-dir", str(cache))
    assert done.code == 0, done.err
    assert [it for it in files_in(done.out) if it.startswith("torchvision-0")] == [
        "torchvision-0.25.0-cuda129_py312_h69a17e1_1"
    ]
    assert [line.split()[2] for line in done.out.splitlines() if line.startswith("# pip ")] == ["seeing"]


@pytest.mark.thorough
def test_a_wheel_of_the_pytorch_family_is_refused_beside_conda_packages(
    index: IndexServer, envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    file = tmp_path / "environment.yml"
    file.write_text("dependencies: [pytorch, {pip: [torchvision]}]\n")
    done = envsolve("-r", str(file), "--gpu", "8.6", "--format", "explicit", "--cache-dir", str(cache))
    assert done.code == 1
    assert "the pip section of environment.yml requires a wheel of torchvision" in done.err
    assert "hint: install torchvision with conda" in done.err


@pytest.mark.thorough
def test_an_unnamed_channel_is_not_queried(
    own_channel_server: ChannelServer, mirror: Mirror, envsolve: Envsolve
) -> None:
    mirror(own_channel_server)
    own_channel_server.fault("/pytorch/*", status=404)
    done = envsolve("-f", "pytorch", "--gpu", "8.6", "--no-cache", "--format", "explicit")
    assert done.code == 0, done.err
    assert {it.path.split("/")[1] for it in own_channel_server.requests} == {"conda-forge"}


@pytest.mark.thorough
@pytest.mark.parametrize("build", ["_cp313t", "_cp313"])
def test_an_explicit_build_of_python_is_used_even_without_a_lock(
    build: str, envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    file = tmp_path / "environment.yml"
    file.write_text(f"dependencies: ['python=3.13.*=*{build}']\n")
    done = envsolve("-r", str(file), "--gpu", "none", "--format", "explicit", "--cache-dir", str(cache))
    assert done.code == 0, done.err
    assert [it.endswith(build) for it in files_in(done.out) if it.startswith("python-3")] == [True]


@pytest.mark.thorough
@pytest.mark.parametrize("from_file", [True, False])
def test_a_suggestion_is_a_command_unless_a_file_decides(
    from_file: bool, envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    file = tmp_path / "environment.yml"
    file.write_text("dependencies: [pytorch=2.7, cuda-version=13.0]\n")
    words = ("-r", str(file)) if from_file else ("-f", "pytorch==2.7.*", "--cuda", "13.0")
    done = envsolve(*words, "--gpu", "8.6", "--format", "explicit", "--cache-dir", str(cache))
    assert done.err.startswith("error: cuda-excluded\n")
    change = f": change cuda-version 13.0.* in {file}\n" if from_file else "\n  envsolve "
    assert f"hint: with CUDA 12.9 it fits{change}" in done.err


@pytest.mark.thorough
def test_a_digest_that_only_the_file_needs_is_not_required_for_json(
    own_channel_server: ChannelServer, mirror: Mirror, envsolve: Envsolve
) -> None:
    mirror(own_channel_server)
    own_channel_server.channel("own/bare").add(record("beta", "1.0", md5=None))
    words = ("beta", "--gpu", "none", "-c", own_channel_server.url_of("own/bare"), "--no-cache", "--format")
    assert envsolve(*words, "conda-lock").err.startswith("error: no-hash\n")
    answer = json.loads(envsolve(*words, "conda-lock", "--json").out)
    assert "beta" in str(answer["packages"])


class Private:
    """A channel that needs a token or a password, with one package that no other channel has."""

    TOKEN = "tk-4711-secret"  # noqa: S105  # of a channel that lives as long as its test
    PASSWORD = "hunter2"  # noqa: S105  # as above

    def __init__(self, server: ChannelServer) -> None:
        server.channel("own/private").add(record("alpha", "1.0", ["python >=3.12"], noarch="python"))
        self.server = server

    def words(self, channel: str, *more: str) -> tuple[str, ...]:
        """A request for its package and a framework."""
        return "alpha", "-f", "tensorflow", "--gpu", "8.6", "-c", channel, "--no-cache", *more


@pytest.fixture
def private(own_channel_server: ChannelServer, mirror: Mirror) -> Private:
    mirror(own_channel_server)
    return Private(own_channel_server)


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", [("--format", "conda-lock"), ("--format", "explicit"), ("--exact",)])
def test_a_token_opens_a_private_channel_and_is_stored_nowhere(
    arguments: tuple[str, ...], private: Private, envsolve: Envsolve, tmp_path: Path
) -> None:
    private.server.require_token(Private.TOKEN, under="/own/private/")
    channel = private.server.url_of("own/private", token=Private.TOKEN)
    done = envsolve(*private.words(channel, *arguments, "-v"))
    assert done.code == 0, done.err
    assert "alpha" in done.out
    assert private.server.url_of("own/private") in done.out
    assert Private.TOKEN not in done.out + done.err
    assert "are not written" in done.err


@pytest.mark.thorough
def test_the_cache_of_a_private_channel_is_readable_only_by_its_user(
    private: Private, envsolve: Envsolve, tmp_path: Path
) -> None:
    private.server.require_token(Private.TOKEN, under="/own/private/")
    channel = private.server.url_of("own/private", token=Private.TOKEN)
    words = ("alpha", "--gpu", "none", "-c", channel, "--format", "explicit", "--cache-dir", str(tmp_path))
    assert envsolve(*words).code == 0
    stored = [path for path in tmp_path.rglob("conda-channels/**/*") if path.is_file()]
    assert stored
    assert [path for path in stored if path.stat().st_mode & 0o077] == []


@pytest.mark.thorough
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.parametrize("opener", ["token", "login", "both"])
def test_credentials_of_a_channel_are_not_stored(
    opener: str, sharded: bool, private: Private, envsolve: Envsolve, tmp_path: Path
) -> None:
    server = private.server
    shelf = server.channel("own/closed", sharded=sharded, zst=not sharded)
    shelf.add(record("beta", "1.0"))
    channel = server.url_of("own/closed", token=None if opener == "login" else Private.TOKEN)
    if opener != "login":
        server.require_token(Private.TOKEN, under="/own/closed/")
    if opener != "token":
        server.require("annuser", Private.PASSWORD, under=urlsplit(channel).path)
        channel = channel.replace("//", f"//annuser:{Private.PASSWORD}@")
    cache = tmp_path / "cache"
    words = ("beta", "--gpu", "none", "-c", channel, "--format", "explicit", "--cache-dir", str(cache))
    done = envsolve(*words)
    assert done.code == 0, done.err
    assert f"{server.url_of('own/closed')}/linux-64/beta-1.0-0." in done.out
    assert envsolve(*words, "--offline").out == done.out
    stored = [path.read_bytes() for path in cache.rglob("conda-channels/**/*") if path.is_file()]
    assert stored
    secrets = (Private.TOKEN, Private.PASSWORD, "annuser")
    assert [it for it in secrets if any(it.encode() in content for content in stored)] == []
    assert [it for it in secrets if it in done.out + done.err] == []


@pytest.mark.thorough
def test_credentials_for_a_channel_are_added_to_those_of_rattler(
    private: Private, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private.server.require_token(Private.TOKEN, under="/own/private/")
    with ChannelServer(recorded=False) as other:
        other.channel("staff").add(record("beta", "1.0"))
        other.require("annuser", Private.PASSWORD)
        known = tmp_path / "credentials.json"
        known.write_text(json.dumps({"127.0.0.1": {"CondaToken": Private.TOKEN}}))
        monkeypatch.setenv("RATTLER_AUTH_FILE", str(known))
        staff = other.url_of("staff").replace("127.0.0.1", f"annuser:{Private.PASSWORD}@localhost")
        done = envsolve(
            *private.words(private.server.url_of("own/private"), "beta", "-c", staff, "--format", "explicit")
        )
    assert done.code == 0, done.err
    assert "/own/private/noarch/alpha-1.0-0." in done.out
    assert "/staff/linux-64/beta-1.0-0." in done.out
    assert json.loads(known.read_text()) == {"127.0.0.1": {"CondaToken": Private.TOKEN}}


@pytest.mark.thorough
def test_broken_settings_of_rattler_are_named(mirrored: Path, envsolve: Envsolve) -> None:
    mirrored.write_text("[mirrors]\n[")
    done = envsolve("numpy", "--gpu", "none", "--format", "explicit", "--no-cache")
    assert done.code == 2
    assert f"cause: {mirrored}: " in done.err


@pytest.mark.thorough
def test_a_removed_working_directory_does_not_matter(
    envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = envsolve("numpy", "--gpu", "none", "--format", "explicit", "--cache-dir", str(cache))
    assert done.code == 0, done.err


@pytest.mark.thorough
def test_a_password_in_a_channel_of_an_environment_file_is_stored_nowhere(
    private: Private, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private.server.require("me", Private.PASSWORD, under="/own/private/")
    monkeypatch.setenv("CHANNEL_PASSWORD", Private.PASSWORD)
    address = private.server.url_of("own/private").replace("//", "//me:${CHANNEL_PASSWORD}@")
    file = tmp_path / "environment.yml"
    file.write_text(f"channels: ['{address}', conda-forge]\ndependencies: [python=3.12, alpha]\n")
    done = envsolve("-r", str(file), "--gpu", "none", "--no-cache", "--format", "conda-lock")
    assert done.code == 0, done.err
    assert "alpha-1.0" in done.out
    assert Private.PASSWORD not in done.out + done.err


@pytest.mark.thorough
@pytest.mark.parametrize(("token", "code"), [(None, "channel-refused"), ("tk-of-somebody-else", "channel-refused")])
def test_a_missing_token_gets_a_hint_how_to_log_in(
    token: str | None, code: str, private: Private, envsolve: Envsolve
) -> None:
    private.server.require_token(Private.TOKEN, under="/own/private/")
    done = envsolve(*private.words(private.server.url_of("own/private", token=token), "--format", "conda-lock"))
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: {code}\n")
    assert private.server.url_of("own/private") in done.err
    assert "hint: log in" in done.err
    assert "tk-of" not in done.err


_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "it is down for maintenance": ({"status": 503}, "channel-failed"),
    "it breaks off": ({"reset": True}, "channel-unreachable"),
    "it sends what cannot be unpacked": ({"alter": garbled}, "channel-corrupt"),
    "it sends no JSON": ({"alter": no_json}, "channel-corrupt"),
    "a proxy sends its own page": ({"alter": log_in}, "channel-corrupt"),
    "it is not there": ({"status": 404}, "channel-not-found"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(it, marks=pytest.mark.thorough) if it == "it sends what cannot be unpacked" else it
        for it in _FAULTS
    ],
)
def test_a_failing_channel_is_one_error_and_nothing_is_written(
    fault: str,
    own_channel_server: ChannelServer,
    mirror: Mirror,
    envsolve: Envsolve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror(own_channel_server)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    how, code = _FAULTS[fault]
    own_channel_server.fault("/conda-forge/*", **how)
    output = tmp_path / "conda-linux-64.lock"
    done = envsolve("-f", "tensorflow", "--gpu", "8.6", "--no-cache", "-o", str(output))
    assert (done.code, done.out) == (3, ""), done.err
    assert done.err.startswith(f"error: {code}\n"), done.err
    assert "conda-forge" in done.err
    assert "Traceback" not in done.err
    assert not output.exists()


def test_an_unreachable_server_is_one_error(
    own_channel_server: ChannelServer, mirror: Mirror, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror(own_channel_server)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    own_channel_server.stop()
    done = envsolve("-f", "tensorflow", "--gpu", "8.6", "--no-cache", "--format", "explicit")
    assert done.code == 3
    assert done.err.startswith("error: channel-unreachable\n"), done.err


@pytest.mark.thorough
def test_offline_uses_the_cache_or_names_what_is_missing(
    own_channel_server: ChannelServer, mirror: Mirror, envsolve: Envsolve, tmp_path: Path
) -> None:
    mirror(own_channel_server)
    words = ("-f", "tensorflow", "--gpu", "8.6", "--format", "explicit", "--cache-dir", str(tmp_path / "cache"))
    before = envsolve(*words, "--offline")
    assert before.code == 3
    assert before.err.startswith("error: offline\n")
    online = envsolve(*words)
    requests = len(own_channel_server.requests)
    offline = envsolve(*words, "--offline")
    assert (offline.code, offline.out) == (0, online.out)
    assert len(own_channel_server.requests) == requests
    assert envsolve(*words, "--refresh").out == online.out
    assert len(own_channel_server.requests) > requests


@pytest.mark.thorough
def test_sharded_repodata_gives_the_same_lock(
    channel_server: ChannelServer, mirror: Mirror, envsolve: Envsolve
) -> None:
    words = ("-f", "tensorflow", "--gpu", "8.6", "--format", "explicit", "--no-cache")
    mirror(channel_server)
    plain = envsolve(*words)
    with ChannelServer(sharded=True) as server:
        mirror(server)
        sharded = envsolve(*words)
        assert server.count("*/shards/*") > 0
        assert server.count("*/repodata.json*") == 0
    assert (sharded.code, sharded.out) == (0, plain.out)


@pytest.mark.thorough
def test_the_cache_commands_include_the_channels(envsolve: Envsolve, mirrored: Path, tmp_path: Path) -> None:
    place = ("--cache-dir", str(tmp_path / "cache"))
    assert envsolve("-f", "tensorflow", "--gpu", "8.6", "--format", "explicit", *place).code == 0
    size = json.loads(envsolve("cache", "size", "--json", *place).out)
    assert size["bytes"] > 100_000
    assert envsolve("cache", "clear", *place).code == 0
    assert json.loads(envsolve("cache", "size", "--json", *place).out)["files"] == 0


def test_a_framework_for_another_machine_or_python_is_left_out(
    envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    requirements = tmp_path / "requirements.in"
    requirements.write_text("torch; sys_platform == 'win32'\ntensorflow; python_version < '3.11'\ntqdm\n")
    words = (
        "-r",
        str(requirements),
        "--gpu",
        "8.6",
        "--python",
        "3.12",
        "--platform",
        "linux-64",
        "--format",
        "explicit",
    )
    done = envsolve(*words, "--cache-dir", str(cache))
    assert done.code == 0, done.err
    names = [file.rpartition("-")[0].rpartition("-")[0] for file in files_in(done.out)]
    assert "tqdm" in names
    assert not {"pytorch", "tensorflow"} & set(names)
    assert done.err == (
        'note: tensorflow is left out: its marker is python_version < "3.11", and the lock is for Python 3.12\n'
    )


def test_hashes_of_a_wheel_cannot_apply_to_a_conda_build(
    envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    requirements = tmp_path / "requirements.in"
    requirements.write_text("tensorflow==2.19.1 --hash=sha256:00\n")
    words = ("-r", str(requirements), "--gpu", "8.6", "--source", "conda-forge", "--format", "explicit")
    done = envsolve(*words, "--cache-dir", str(cache))
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(
        "error: hash-mismatch\n  conda installs tensorflow, and the required hashes are those of a wheel"
    ), done.err
    assert "hint: remove the hashes of tensorflow" in done.err
