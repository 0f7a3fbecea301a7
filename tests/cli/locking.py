"""A lock created through the command line from an index that may fail, and requirements for every failure.

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
"""Variables, beside those of pip, uv and proxies, that would change how an index is queried."""


class Locking:
    """Runs ``envsolve alpha`` against ``index`` with its own cache, to standard output or to a file."""

    def __init__(self, envsolve: Envsolve, index: IndexServer, directory: Path) -> None:
        self.envsolve, self.index = envsolve, index
        self.cache = directory / "cache"
        self.output = directory / "requirements.txt"
        self.url = index.index_url
        index.add("alpha", alpha())
        index.add("beta", beta())

    def __call__(self, *arguments: str, requirement: str = "alpha") -> Result:
        """One lock on standard output, from the cache that all locks of a test share."""
        return self.envsolve(*self.line(*arguments, requirement=requirement))

    def line(self, *arguments: str, requirement: str = "alpha") -> list[str]:
        """The arguments of the command line."""
        return [requirement, *FORMAT, *TARGET, "--index-url", self.url, "--cache-dir", str(self.cache), *arguments]

    @property
    def right(self) -> str:
        """The correct lock, whatever is cached."""
        done = self("--no-cache")
        assert done.code == 0, done.err
        return done.out

    def refused(self, *, code: int = 3) -> Result:
        """The output of a command that must fail: in three parts, only on stderr, with the old file unchanged."""
        self.output.write_text(OLD)
        done = self("-o", str(self.output))
        assert done.code == code, done.err + done.out
        assert done.out == ""
        assert_in_three_parts(done.err)
        assert self.output.read_text() == OLD
        assert not [path for path in self.output.parent.iterdir() if path.name.startswith(".envsolve-")]
        return done

    def pins(self, *arguments: str) -> dict[str, str]:
        """Names and versions of a new lock."""
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
    labels = [word for line in text.splitlines() for word in ("error:", "cause:", "hint:") if line.startswith(word)]
    assert labels == sorted(labels, key=("error:", "cause:", "hint:").index), text
    assert set(labels) == {"error:", "cause:", "hint:"}, text
    assert labels.count("error:") == 1
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
    """A Locking with its own server until the block ends; ``ranges`` tells whether that serves parts of files.

    ``patch`` is the test's own: two that take turns would put back what the other one set.
    """
    undisturbed(patch, directory)
    with IndexServer(recorded=False, ranges=ranges) as index:
        yield Locking(envsolve, index, directory)


def undisturbed(patch: pytest.MonkeyPatch, directory: Path) -> None:
    """No index, credentials, proxy or timeouts of the user who runs the tests, and one retry instead of three."""
    for name in os.environ:
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy") or name in OF_OTHERS:
            patch.delenv(name)
    patch.setenv("HOME", str(directory))
    patch.setenv("PIP_CONFIG_FILE", os.devnull)
    patch.setenv("UV_HTTP_RETRIES", "1")
    patch.chdir(directory)
