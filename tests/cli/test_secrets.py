"""Credentials of an index or a channel are never printed, written to a file or cached."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve import lock
from envsolve.errors import EnvsolveError
from envsolve.model.lock_format import PYTHON_FORMATS, STACK_FORMATS, VENV_FORMATS
from tests.cli.locking import TARGET, undisturbed
from tests.conda.conftest import Mirror, mirror
from tests.conda.packages import MINOR
from tests.conda.records import record
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

__all__ = ["mirror"]

USER, PASSWORD, TOKEN, PARAMETER = "us3rn4me", "s3cr3tP4ss", "tk-t0k3nXYZ", "p4r4mXYZ"
SECRETS = (USER, PASSWORD, TOKEN, PARAMETER)
GPU = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64")
ANSWERS = ("right", "secrets in pages", "401", "404", "garbage")
WRITTEN = "written.by.hand"
"""Begins the names of files that the test itself writes, with secrets in them."""


class World:
    """An index and a channel that need a login, a token and a parameter, and a working directory."""

    def __init__(self, envsolve: Envsolve, index: IndexServer, channel: ChannelServer, directory: Path) -> None:
        self.envsolve, self.directory = envsolve, directory
        shelf = index.index(f"/team/t/{TOKEN}/simple/")
        shelf.add("alpha", [wheel("alpha", "1.0", ["beta"])])
        shelf.add("beta", [wheel("beta", "1.0")])
        index.require(USER, PASSWORD, under="/team/")
        channel.channel("own/private").add(record("gamma", "1.0"))
        channel.require_token(TOKEN, under="/own/private/")
        channel.require(USER, PASSWORD, under="/t/")
        self.index_url = self._opened(f"{index.url}/team/t/{TOKEN}/simple?token={PARAMETER}")
        self.channel = self._opened(channel.url_of("own/private", token=TOKEN))
        self.servers = index, channel

    def _opened(self, url: str) -> str:
        return url.replace("//", f"//{USER}:{PASSWORD}@")

    @property
    def indexes(self) -> tuple[str, ...]:
        more = self.index_url.replace("/simple", "/more")
        return "--index-url", self.index_url, "--extra-index-url", more, "--pytorch-index-url", more

    def answer(self, kind: str) -> None:
        """Make both servers answer everything in one way from now on."""
        index, channel = self.servers
        index.heal()
        channel.heal()
        if kind == "garbage":
            index.fault("/team/*", body=f'{{"files": ["http://u:{PASSWORD}@h/t/{TOKEN}/x"'.encode())
            channel.fault("/t/*", alter=lambda _: b"garbage")
        elif kind == "right":  # the paths of files lead from the page, as its own has the token
            index.fault(
                "*/simple/*", alter=lambda page: page.replace(f"{index.url}/team/t/{TOKEN}/".encode(), b"../../")
            )
        elif kind.isdecimal():
            index.fault("/team/*", status=int(kind))
            channel.fault("/t/*", status=int(kind))

    def __call__(self, *words: str, code: int | None = None) -> Result:
        """One command that must not print secrets; ``code`` is its exit code."""
        done = self.envsolve(*words)
        assert code in (None, done.code), done.err
        assert "Traceback" not in done.err
        assert "internal-error" not in done.err
        assert leaks(done.out + done.err) == [], done.out + done.err
        assert [path for path in self.files if leaks(read(path))] == [], words
        return done

    def write(self, text: str, name: str = WRITTEN) -> str:
        """The name of a file with ``text``."""
        (self.directory / name).write_text(text)
        return name

    @property
    def files(self) -> Iterator[Path]:
        """All files that the commands wrote."""
        found = (path for path in self.directory.rglob("*") if path.is_file() and not path.is_symlink())
        return (path for path in found if not path.name.startswith(WRITTEN))


def leaks(text: str) -> list[str]:
    return [it for it in SECRETS if it in text]


def read(path: Path) -> str:
    """The bytes of a file as text, including compressed parts."""
    content = path.read_bytes()
    start = content.find(b"\x1f\x8b\x08")  # gzip, deflated: two bytes come up by chance in what rattler keeps
    unpacked = b""
    if start >= 0:
        unpacked = zlib.decompressobj(wbits=31).decompress(content[start:])
    return (content + unpacked).decode("latin-1")


@pytest.fixture
def world(envsolve: Envsolve, mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with IndexServer(recorded=False) as index, ChannelServer() as channel:
        mirror(channel)
        undisturbed(monkeypatch, tmp_path)
        yield World(envsolve, index, channel, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("format_name", STACK_FORMATS)
def test_stacks(world: World, format_name: str, kind: str) -> None:
    world.answer(kind)
    for output in ((), ("-o", "out")):
        words = ("-f", "pytorch", *GPU, "-c", world.channel, *world.indexes, "--format", format_name, *output)
        world("solve", *words, "--cache-dir", "cache", code=0)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("format_name", [*PYTHON_FORMATS, "json"])
def test_python_locks(world: World, format_name: str, kind: str) -> None:
    world.answer(kind)
    words = ("alpha", *TARGET, *world.indexes, "--format", format_name, "--cache-dir", "cache")
    right = kind in ("right", "secrets in pages") and format_name in VENV_FORMATS
    for more in ((), ("-v",), ("--refresh",), ("-o", "out")):
        world(*words, *more, code=0 if right else None)
    for more in ((), ("--index-url", world.index_url.replace("team", "teams"))):
        world(*words, *more, "--offline", code=0 if kind == "right" and right and not more else None)
    world(*words, "--json")


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("format_name", [("conda-lock",), ("explicit",), ("environment", "--exact")])
def test_conda_locks(world: World, format_name: tuple[str, ...], kind: str) -> None:
    world.answer(kind)
    words = ("gamma", "-f", "tensorflow", "--gpu", "8.6", "-c", world.channel, "--format", *format_name)
    for more in ((), ("-v",), ("--refresh",), ("-o", "out"), ("--offline",), ("--json",)):
        right = kind in ("right", "secrets in pages") and more != ("--json",)
        world(*words, *more, "--cache-dir", "cache", code=0 if right else None)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ANSWERS)
def test_files_that_hold_secrets(world: World, kind: str) -> None:
    world.answer(kind)
    index, channel = world.index_url, world.channel
    requirements = world.write(f"--index-url {index}\n--extra-index-url {index}\nalpha\n", f"{WRITTEN}.in")
    environment = world.write(
        f"channels: ['{channel}']\ndependencies: [gamma, python=3.12, pip, {{pip: ['--index-url {index}', alpha]}}]\n"
        f"variables: {{PIP_INDEX_URL: '{index}'}}\n",
        f"{WRITTEN}.yml",
    )
    right = 0 if kind == "right" else None
    world("-r", requirements, *TARGET, "--format", "requirements", "--cache-dir", "cache", code=right)
    world("-r", environment, "--gpu", "none", "--format", "conda-lock", "--cache-dir", "cache")
    world("init", "-r", requirements, "-r", environment, "--gpu", "none", "--cache-dir", "cache", "--dry-run")
    world("init", "-r", requirements, *TARGET, *world.indexes, "--cache-dir", "cache")
    world("lock", "--cache-dir", "cache")
    world("lock", "--cache-dir", "cache", "--check", "--json")
    world("status", "--json")
    digest = f"--hash=sha256:{'0' * 64}"
    lock = world.write(
        f"--index-url {index}\nalpha==1.0 {digest}\n"
        f"own @ {index.replace('?', '/own-1.0-py3-none-any.whl?')} {digest}\n",
        f"{WRITTEN}.txt",
    )
    explicit = world.write(f"@EXPLICIT\n{channel}/linux-64/gamma-1.0-0.conda#{'0' * 32}\n", f"{WRITTEN}.lock")
    for file in (lock, explicit):
        world("status", file, "--gpu", "none")
        world("status", file, "--gpu", "none", "--json")
        for format_name in ("pylock", "requirements", "conda-lock", "explicit", "environment"):
            world("export", file, "--format", format_name, "--cache-dir", "cache", "-o", f"out-{format_name}")
        for more in ((), ("--index-url", index), ("-c", channel)):
            world("create", "env", "--lock", file, "--no-validate", "--cache-dir", "cache", *more)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ANSWERS)
def test_environments(world: World, kind: str) -> None:
    world.answer(kind)
    right = 0 if kind in ("right", "secrets in pages") else None
    words = ("alpha", "--gpu", "none", "--python", MINOR, *world.indexes[:2], "--cache-dir", "cache")
    world("create", "env", *words, "--no-validate", code=right)
    world("capture", "--prefix", "env", *world.indexes, "--cache-dir", "cache")
    world("doctor", "--prefix", "env")
    words = ("gamma", "--gpu", "none", "-c", world.channel, "--cache-dir", "cache")
    world("create", "conda", *words, "--no-validate", "--json")


def test_logs_and_the_cache(world: World) -> None:
    log = world.write(
        f"ERROR: Could not find a version that satisfies the requirement torch (from {world.index_url})\n"
        f"wandb: api key {PASSWORD * 4}\n"
        f"OSError: libcudart.so.11.0: cannot open shared object file, see {world.channel}\n"
    )
    for more in ((), ("-v",), ("--json",)):
        world("explain", log, *more)
    world("cache", "info", "--json", "--cache-dir", f"cache-{USER[:2]}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("solve", "-f", "{}", "--gpu", "8.6"),
        ("solve", "--nonsense={}"),
        ("{}",),
        ("solve", "alpha", "-c", "{}", "--format", "requirements"),
        ("status", "{}"),
        ("export", "{}", "--format", "pylock"),
        ("create", "env", "--lock", "{}"),
        ("explain", "{}"),
        ("lock", "--project", "{}"),
        ("solve", "-r", "{}", "--gpu", "none", "--format", "pylock"),
        ("solve", "alpha @ {}#sha256=0", "--gpu", "none", "--format", "pylock"),
        ("solve", "alpha", "--index-url", "{}", "--exclude-newer", "{}", "--format", "pylock"),
        ("matrix", "show", "{}"),
        ("cache", "info", "--cache-dir", "{}"),
        ("validate", "--python", "{}"),
        ("doctor", "--prefix", "{}"),
    ],
)
def test_addresses_in_the_wrong_place(world: World, words: tuple[str, ...]) -> None:
    for address in (world.index_url, world.channel, world.index_url.replace("s3cr3t", "s3c/r3?t#")):
        world(*(word.replace("{}", address) for word in words))
        world(*(word.replace("{}", address) for word in words), "--json")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kind", ["401", "404", "503", "garbage", "{path}", "javascript:x", "http://127.0.0.1:1/t/{}/x"]
)
def test_errors_of_the_python_api(world: World, kind: str) -> None:
    world.answer(kind)
    index, _ = world.servers
    if not kind.isdecimal() and kind != "garbage":
        index.fault("/team/*", redirect=kind.replace("{}", TOKEN))
    with pytest.raises(EnvsolveError) as caught:
        lock(
            requirements=["alpha"],
            format="requirements",
            python="3.12",
            gpus="none",
            index_url=world.index_url,
            no_cache=True,
        )
    error = caught.value
    assert leaks(f"{error} {error.cause} {error.hints} {error.as_json()}") == []
