"""Commands that findings name, in one spelling."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from envsolve.diagnose.environment.metadata import Package


def solve(frameworks: Iterable[str], *options: str) -> tuple[str, ...]:
    """The command that solves these frameworks anew for this machine; none where there is no framework."""
    named = [f"-f {name}" for name in dict.fromkeys(frameworks)]
    return (" ".join(["envsolve", *named, *(options or ("--gpu auto",))]),) if named else ()


def reinstall(package: Package) -> str:
    """The command that installs a wheel again, without the cache, which may hold the same damage."""
    return f"pip install --force-reinstall --no-deps --no-cache-dir {package.name}=={package.version}"


def quoted(path: Path | str) -> str:
    """A path as a POSIX shell takes it."""
    return shlex.quote(str(path))
