"""Why a file is no lock to install from, as errors for people."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.lock_format import tool_of

LOCKS = Hint(
    "give a conda-lock.yml, an explicit file, an environment.yml of exact builds, a pixi.lock, a pylock.toml or a "
    "requirements file with hashes"
)


def not_exact(path: Path, why: str, command: str | None = None) -> UsageError:
    """The error for a file that leaves something to be decided; ``command`` decides it."""
    hint = Hint("solve it as a request", command) if command else LOCKS
    return UsageError("lock-not-exact", f"{path} cannot be installed as a lock: {why}", hints=(hint,))


def lock_of_project(path: Path) -> UsageError:
    """The error for the lock of a project of uv, Poetry or PDM."""
    command = f"envsolve export {shlex.quote(str(path))} -o pylock.toml"
    message = f"{path} is a lock of {tool_of(path)}, which envsolve cannot install"
    return UsageError(
        "lock-not-exact", message, hints=(Hint("export it to a lock that envsolve can install", command),)
    )


def without_hash(path: Path, what: str) -> UsageError:
    """The error for a lock that has no digest of ``what``."""
    message = f"{path} has no hash for {what}, and envsolve installs only verified files"
    return UsageError("lock-without-hashes", message, hints=(Hint("lock again with hashes"),))


def other_platform(path: Path, platform: Platform, found: Sequence[str]) -> UsageError:
    """The error for a lock that is for the platforms ``found`` alone."""
    named = " and ".join(dict.fromkeys(found)) or "no platform"
    hint = Hint(f"lock for this platform too: --platform {platform}")
    return UsageError("lock-for-other-platform", f"{path} is for {named}, and this is {platform}", hints=(hint,))
