"""Errors for files that are no lock to install from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform

LOCKS = Hint(
    "give a conda-lock.yml, an explicit file, an environment.yml of exact builds, a pixi.lock, a pylock.toml, a "
    "requirements file with hashes, or a uv.lock, poetry.lock or pdm.lock"
)


def not_exact(path: Path, why: str, command: str | None = None) -> UsageError:
    """The error for a file that leaves something open; ``command`` decides it."""
    hint = Hint("solve it as a request", command) if command else LOCKS
    return UsageError("lock-not-exact", f"{path} cannot be installed as a lock: {why}", hints=(hint,))


def without_hash(path: Path, what: str) -> UsageError:
    """The error for a lock that has no digest of ``what``."""
    message = f"{path} has no hash for {what}, and envsolve installs only verified files"
    return UsageError("lock-without-hashes", message, hints=(Hint("lock again with hashes"),))


def other_platform(path: Path, platform: Platform, found: Sequence[str]) -> UsageError:
    """The error for a lock that is only for the platforms ``found``."""
    named = " and ".join(dict.fromkeys(found)) or "no platform"
    hint = Hint(f"lock for this platform too: --platform {platform}")
    return UsageError("lock-for-other-platform", f"{path} is for {named}, and this is {platform}", hints=(hint,))
