"""Errors for the messages of uv, pip and venv when they fail. Imported only with what may fail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from envsolve.conda.failures import Kind, kind_of
from envsolve.create.child import Ran
from envsolve.errors import Hint, OutsideError

_SHOWN = 8
"""Lines of the tool that are shown."""
_NOISE = ("warning:", "WARNING:", "Using Python", "Looking in indexes", "[notice]")
_LABEL = re.compile(r"\A(?:error|cause|ERROR|hint): ")
"""The label of a line of a tool's output, which the command line prints itself."""


_KINDS = (
    Kind(
        ("Hash mismatch", "DO NOT MATCH THE HASHES", "hash mismatch", "Size mismatch"),
        "checksum-mismatch",
        "a package does not match the checksum in the lock",
        "do not use the downloaded file; if the index replaced it, lock again",
    ),
    Kind(
        ("marked as `--no-build`", "Building source distributions", "building source distributions"),
        "build-refused",
        "a package has no wheel for this machine and would be built from source",
        "lock again with wheels only, or allow the build, which runs the package's code: --allow-builds",
    ),
    Kind(
        (
            "all requirements must have a hash",
            "all requirements must have their versions pinned",
            "Hashes are required",
        ),
        "lock-without-hashes",
        "the lock has no hash for a package, and envsolve installs only verified files",
        "lock again with hashes",
    ),
    Kind(
        ("Couldn't parse requirement", "Invalid requirement", "TOML parse error", "Not a valid `pylock.toml`"),
        "lock-unreadable",
        "no installer can read the lock",
        "fix the line shown above, or lock again",
    ),
    Kind(
        ("No space left", "os error 28", "Disk quota", "os error 112"),
        "disk-failed",
        "not enough disk space for the packages",
        "free disk space{kept}",
    ),
    Kind(
        ("Failed to unzip", "Failed to extract", "Could not read the zip", "Invalid wheel", "unexpected end of file"),
        "package-corrupt",
        "the download of a package is incomplete or damaged",
        "try again{kept}. If you use a proxy, check its response",
    ),
    Kind(
        ("Network connectivity is disabled", "network was disabled"),
        "offline",
        "a package is not cached, and --offline is set",
        "run it once without --offline",
    ),
    Kind(
        ("401 Unauthorized", "403 Forbidden", "HTTP status client error (401", "HTTP status client error (403"),
        "index-refused",
        "access to an index denied",
        "log in with user name and password in netrc, in the URL of the index or in a keyring",
    ),
    Kind(
        ("ensurepip is not available", "No module named venv", "No module named ensurepip"),
        "venv-failed",
        "this Python cannot make virtual environments",
        "install uv, or the system package with venv (python3-venv on Debian and Ubuntu)",
    ),
)
"""Messages of the tools. ``{kept}`` in a hint says what is kept, if anything."""

KNOWN = tuple(word for kind in _KINDS for word in kind.words)
"""The words to look for while a tool runs: much more output may follow."""


def tool_failed(code: str, tool: str, ran: Ran, *, keeps: bool = False) -> OutsideError:
    """The error for a tool that failed; ``code`` is for unknown messages.

    ``keeps`` says that what it fetched is available to the next try.
    """
    text = "\n".join((*ran.marked, *ran.lines))
    found = kind_of(text, _KINDS)
    kept = "; completed downloads are reused" if keeps else ""
    if found is not None:
        hint = Hint(found.hint.format(kept=kept))
        return OutsideError(found.code, found.message, _cause(ran, found.words), (hint,))
    hint = Hint(f"try again{kept}. Use --keep to keep the unfinished environment")
    return OutsideError(code, f"{tool} ended with exit code {ran.code}", _cause(ran, ()), (hint,))


def _cause(ran: Ran, words: Sequence[str]) -> tuple[str, ...]:
    """The end of the tool's output, after the line with the known message, which may be far above."""
    lines = [line for line in ran.lines if not line.startswith(_NOISE)][-_SHOWN:]
    telling = [line for line in ran.marked if any(word in line for word in words)][:1]
    shown = lines if any(line in lines for line in telling) else [*telling, *lines[len(telling) :]]
    return tuple(_LABEL.sub("", line) for line in shown)


def no_installer(python: Path, *, offline: bool = False) -> OutsideError:
    """The error if there is no uv, and pip is missing too or cannot do it."""
    if offline:
        message = "pip cannot install offline from its cache, and uv is not installed"
    else:
        message = f"the environment has wheels, but there is neither uv nor a pip for {python} to install them"
    return OutsideError("installer-missing", message, hints=(Hint("install uv", "pip install uv"),))
