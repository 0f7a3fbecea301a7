"""Environments created through the command line from an index and a channel that may fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.locking import OF_OTHERS, assert_in_three_parts
from tests.conda.packages import MINOR, PLACEHOLDER, package, python_package
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

_STEERING = ("VIRTUAL_ENV", "CONDA_PREFIX", "CONDARC", "CONDA_CHANNEL_ALIAS", "RATTLER_HOME", "RATTLER_AUTH_FILE")
_SYSTEM = ("/usr/bin", "/bin")
"""Where programs are beside the Python that runs the tests."""
WHEELS = ("--python", MINOR, "--gpu", "none")


class Creating:
    """Runs ``envsolve create`` in ``directory``, which has all caches and other state.

    The index has alpha, which requires beta; the channel, in the place of conda-forge, a Python and two packages.
    """

    def __init__(self, envsolve: Envsolve, index: IndexServer, channel: ChannelServer, directory: Path) -> None:
        self.envsolve, self.index, self.channel, self.directory = envsolve, index, channel, directory
        self.prefix = directory / "env"

    def __call__(self, *words: str) -> Result:
        """``envsolve create`` in this process."""
        return self.envsolve("create", *words, "--cache-dir", "cache", "--no-validate")

    def request(self, *words: str) -> Result:
        """A venv with alpha and beta at ``env``."""
        return self(*self.words(*words))

    def words(self, *words: str) -> list[str]:
        """The arguments that :meth:`request` passes to ``create``."""
        return ["env", "alpha", *WHEELS, "--index-url", self.index.index_url, *words]

    def lock(self, name: str, *words: str) -> str:
        """A lock of ``words`` in the file ``name``, in the format of its name."""
        common = ("--gpu", "none", "--index-url", self.index.index_url, "--cache-dir", "cache")
        done = self.envsolve(*words, *common, "-o", name)
        assert done.code == 0, done.err
        return name

    def start(self, *words: str) -> subprocess.Popen[str]:
        """``envsolve create`` in its own process."""
        command = [sys.executable, "-m", "envsolve", "create", *words, "--cache-dir", "cache", "--no-validate"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.directory)

    def refused(self, code: str, *words: str, exit_code: int) -> Result:
        """The result of a refused command, which changes nothing in the directory."""
        before = tree(self.prefix)
        done = self(*words)
        assert done.code == exit_code, done.err + done.out
        assert done.out == ""
        assert done.err.startswith(f"error: {code}\n") or f"\nerror: {code}\n" in done.err, done.err
        assert_in_three_parts(done.err[done.err.index("error:") :])
        assert tree(self.prefix) == before
        return done

    def record(self) -> dict[str, Any]:
        """The record of the environment."""
        found: dict[str, Any] = json.loads((self.prefix / ".envsolve.json").read_text())
        return found

    def installed(self) -> dict[str, str]:
        """The wheels in the environment, as its own Python lists them."""
        program = (
            "import json, importlib.metadata as m; print(json.dumps({d.name: d.version for d in m.distributions()}))"
        )
        return json.loads(self.python(program))  # type: ignore[no-any-return]

    def python(self, program: str) -> str:
        """The output of the environment's Python."""
        command = [str(self.prefix / "bin" / "python"), "-I", "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def tree(path: Path) -> dict[str, bytes | None] | None:
    """The files below a directory with their contents; None without the directory."""
    if not path.is_dir():
        return None
    return {
        str(it.relative_to(path)): it.read_bytes() if it.is_file() and not it.is_symlink() else None
        for it in path.rglob("*")
    }


@contextmanager
def creating_in(envsolve: Envsolve, directory: Path, patch: pytest.MonkeyPatch) -> Iterator[Creating]:
    """A Creating with its own servers until the block ends."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy") or name in (*OF_OTHERS, *_STEERING):
            patch.delenv(name)
    for name, value in _settings(directory).items():
        patch.setenv(name, value)
    scratch = directory / "scratch"  # what a command that is killed leaves there goes with the test
    scratch.mkdir()
    patch.setenv("TMPDIR", str(scratch))
    patch.chdir(directory)
    with IndexServer(recorded=False) as index, ChannelServer(recorded=False) as channel:
        _fill(index, channel)
        config = directory / "config" / "rattler" / "config.toml"
        config.parent.mkdir(parents=True)
        rows = (f"{json.dumps(url)} = {json.dumps(mirrors)}\n" for url, mirrors in channel.mirrors.items())
        config.write_text(f"[mirrors]\n{''.join(rows)}", "utf-8")
        yield Creating(envsolve, index, channel, directory)


def _settings(directory: Path) -> Mapping[str, str]:
    return {
        "HOME": str(directory / "home"),
        "XDG_CONFIG_HOME": str(directory / "config"),
        "XDG_STATE_HOME": str(directory / "state"),
        "RATTLER_CACHE_DIR": str(directory / "rattler"),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_HTTP_RETRIES": "0",
        "UV_PYTHON_DOWNLOADS": "never",
        "PATH": os.pathsep.join((str(Path(sys.executable).resolve().parent), *_SYSTEM)),
    }


def _fill(index: IndexServer, channel: ChannelServer) -> None:
    index.add("alpha", [wheel("alpha", "1.0", ["beta"])])
    index.add("beta", [wheel("beta", "1.0"), wheel("beta", "2.0")])
    script = f"#!{PLACEHOLDER}/bin/python\nimport sys; print(sys.prefix)\n"
    channel.channel("conda-forge").add(
        python_package(),
        package("gamma", "1.0", {"site-packages/gamma.py": b"NAME = 'gamma'\n"}, ["python"], noarch="python"),
        package("delta", "1.0", {"bin/delta": script.encode()}, ["python"]),
        package("pip", "26.0", {}, ["python"]),
    )
