"""What uv, pip and venv say when they fail, as errors for people. Loaded only with what may fail."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from envsolve.create.child import Ran
from envsolve.errors import Hint, OutsideError

_TOLD = 8
"""Lines of the tool that are shown."""
_NOISE = ("warning:", "WARNING:", "Using Python", "Looking in indexes", "[notice]")
_LABEL = re.compile(r"\A(?:error|cause|ERROR|hint): ")
"""What a tool writes in front of a line, as the command line does itself."""


class _Kind(NamedTuple):
    words: tuple[str, ...]
    code: str
    message: str
    hint: str


_KINDS = (
    _Kind(
        ("Hash mismatch", "DO NOT MATCH THE HASHES", "hash mismatch", "Size mismatch"),
        "checksum-mismatch",
        "a package is not the file that the lock names",
        "do not use what came; if the index replaced the file, make the lock anew",
    ),
    _Kind(
        ("No space left", "os error 28", "Disk quota", "os error 112"),
        "disk-failed",
        "there is no room for the packages",
        "make room; what was fetched before is kept, and the same command goes on from there",
    ),
    _Kind(
        ("Failed to unzip", "Failed to extract", "Could not read the zip", "Invalid wheel", "unexpected end of file"),
        "package-corrupt",
        "what came for a package is no whole package",
        "try again: what was fetched before is kept; where a proxy stands between, ask it what it sends",
    ),
    _Kind(
        ("Network connectivity is disabled", "network was disabled"),
        "offline",
        "a package is not in the cache, and --offline asks nobody",
        "run it once without --offline",
    ),
    _Kind(
        ("401 Unauthorized", "403 Forbidden", "HTTP status client error (401", "HTTP status client error (403"),
        "index-refused",
        "an index does not let you in",
        "log in: name and password in netrc or in the address of the index, or a keyring",
    ),
    _Kind(
        ("ensurepip is not available", "No module named venv", "No module named ensurepip"),
        "venv-failed",
        "this Python makes no virtual environments",
        "install uv, or the part of the system's Python that has venv (python3-venv on Debian and Ubuntu)",
    ),
)


def tool_failed(code: str, tool: str, ran: Ran) -> OutsideError:
    """The error for a tool that failed; ``code`` is for what nobody knows by its words."""
    said = [line for line in ran.lines if not line.startswith(_NOISE)]
    cause = tuple(_LABEL.sub("", line) for line in said[-_TOLD:])
    text = "\n".join(ran.lines)
    found = next((it for it in _KINDS if any(word in text for word in it.words)), None)
    if found is not None:
        return OutsideError(found.code, found.message, cause, (Hint(found.hint),))
    hint = Hint("try again: what was fetched before is kept; --keep leaves the unfinished environment to look at")
    return OutsideError(code, f"{tool} ended with exit code {ran.code}", cause, (hint,))


def no_installer(python: Path, *, offline: bool = False) -> OutsideError:
    """The error where there is no uv, and pip is not there either or cannot do it."""
    if offline:
        message = "pip installs nothing offline from what it keeps, and uv is not installed"
    else:
        message = f"the environment has wheels, and neither uv nor a pip for {python} is there to install them"
    return OutsideError("installer-missing", message, hints=(Hint("install uv", "pip install uv"),))
