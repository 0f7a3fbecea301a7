"""A lock made through the command line from an index that may go wrong, and what must be true of every failure.

The index of a :class:`Locking` knows ``alpha``, whose newest version requires ``beta``. :attr:`Locking.right` is their
lock, made before anything is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, wheel
from tests.index.server import IndexServer

FORMAT = ("--format", "requirements")
TARGET = ("--gpu", "none", "--python", "3.12", "--platform", "linux-64")
OLD = "# Made by envsolve\nwhat-was-there-before\n"
OF_OTHERS = ("NETRC", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""Variables beside pip's, uv's and those of proxies that would change how an index is asked."""


class Locking:
    """Runs ``envsolve alpha`` against ``index`` with a cache of its own, to standard output or to a file."""

    def __init__(self, envsolve: Envsolve, index: IndexServer, directory: Path) -> None:
        self.envsolve, self.index = envsolve, index
        self.cache = directory / "cache"
        self.output = directory / "requirements.txt"
        self.url = index.index_url
        index.add("alpha", alpha())
        index.add("beta", beta())

    def __call__(self, *arguments: str, asked: str = "alpha") -> Result:
        """One lock on standard output, from the cache that all locks of a test share."""
        return self.envsolve(*self.line(*arguments, asked=asked))

    def line(self, *arguments: str, asked: str = "alpha") -> list[str]:
        """The words of the command line."""
        return [asked, *FORMAT, *TARGET, "--index-url", self.url, "--cache-dir", str(self.cache), *arguments]

    @property
    def right(self) -> str:
        """The lock as it should be, whatever is cached."""
        done = self("--no-cache")
        assert done.code == 0, done.err
        return done.out

    def refused(self, *, code: int = 3) -> Result:
        """What the command says where it must fail: in three parts, on stderr alone, with the old file as it was."""
        self.output.write_text(OLD)
        done = self("-o", str(self.output))
        assert done.code == code, done.err + done.out
        assert done.out == ""
        assert_in_three_parts(done.err)
        assert self.output.read_text() == OLD
        assert not [path for path in self.output.parent.iterdir() if path.name.startswith(".envsolve-")]
        return done

    def pins(self, *arguments: str) -> dict[str, str]:
        """Names and versions of a lock that is made."""
        done = self(*arguments)
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
        return pins_of(done.out)


def pins_of(text: str) -> dict[str, str]:
    """Names and versions in the text of a lock."""
    lines = (line.partition(" ")[0] for line in text.splitlines() if "==" in line and line[0].isalnum())
    return dict(line.split("==") for line in lines)


def assert_in_three_parts(text: str) -> None:
    """Every part once or more, in this order, and no traceback."""
    said = [word for line in text.splitlines() for word in ("error:", "cause:", "hint:") if line.startswith(word)]
    assert said == sorted(said, key=("error:", "cause:", "hint:").index), text
    assert set(said) == {"error:", "cause:", "hint:"}, text
    assert said.count("error:") == 1
    assert "Traceback" not in text
    assert "internal-error" not in text


def alpha() -> list[IndexFile]:
    """Two versions that require beta."""
    return [wheel("alpha", "1.0", ["beta"]), wheel("alpha", "2.0", ["beta>=1"])]


def beta() -> list[IndexFile]:
    """Two versions without requirements."""
    return [wheel("beta", "1.0"), wheel("beta", "2.0")]


@contextmanager
def locking_in(
    envsolve: Envsolve, directory: Path, patch: pytest.MonkeyPatch, *, ranges: bool = True
) -> Iterator[Locking]:
    """A Locking with a server of its own until the block is left; ``ranges`` says whether that gives parts of files.

    ``patch`` is the test's own: two that take turns would put back what the other one set.
    """
    undisturbed(patch, directory)
    with IndexServer(recorded=False, ranges=ranges) as index:
        yield Locking(envsolve, index, directory)


def undisturbed(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """No index, login, proxy or patience of whoever runs the tests, and one more try where we have three."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy") or name in OF_OTHERS:
            patch.delenv(name)
    patch.setenv("HOME", str(directory))
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("UV_HTTP_RETRIES", "1")
    patch.chdir(directory)
