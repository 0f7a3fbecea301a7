"""Errors for rattler's failures to read a channel. Imported only if something went wrong.

rattler 0.28 raises one class for everything that goes wrong with a channel, so its text has to be examined. Which of a
channel's two subdirectories the text names is random, and it contains tokens of addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import EnvsolveError, Hint, OutsideError, UsageError

_ADDRESS = re.compile(r"""[a-z][a-z0-9]*://[^\s'"()<>]+""")
_SCHEME = re.compile(r"'(\w+)' is not a supported scheme")
_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3})[^)]*\)")
_INPUT = {
    "InvalidMatchSpecError": ("conda-spec-invalid", "a conda requirement is not valid"),
    "InvalidPackageNameError": ("conda-spec-invalid", "a conda package name is not valid"),
    "InvalidVersionError": ("conda-spec-invalid", "a version is not a valid conda version"),
    "InvalidChannelError": ("channel-invalid", "a channel is neither a name nor a URL"),
    "ConfigError": ("conda-settings-invalid", "the settings of rattler or pixi cannot be read"),
}
_REFUSED = (401, 403)
_OTHER_VERSION = ("ImportError", "AttributeError", "TypeError")
"""What Python raises if py-rattler lacks what the engine calls."""


class Kind(NamedTuple):
    """A kind of failure: words in a tool's output that identify it, the code, the message, the fix."""

    words: tuple[str, ...]
    code: str
    message: str
    hint: str


def kind_of(text: str, kinds: Iterable[Kind]) -> Kind | None:
    """The first of ``kinds`` whose words are in ``text``; None if there is none."""
    return next((it for it in kinds if any(word in text for word in it.words)), None)


_KINDS = (
    Kind(
        ("no usable repodata cache",),
        "offline",
        "{channel} is not cached, and --offline is set",
        "run it once without --offline",
    ),
    Kind(
        ("is not a supported scheme",),
        "channel-not-supported",
        "{channel} has a URL that rattler cannot read",
        "use a URL with https, http, file, s3 or oci",
    ),
    Kind(
        ("S3 GET request", "requests to S3"),
        "channel-unreachable",
        "{channel} does not answer",
        "set the region and the keys as for the AWS tools: AWS_REGION, AWS_PROFILE",
    ),
    Kind(
        ("could not find subdir",),
        "channel-not-found",
        "{channel} is not a conda channel: it has no packages for any platform (noarch/repodata.json)",
        "check the name, or give the full URL of the channel",
    ),
    Kind(
        ("failed to parse", "failed to extract", "Unknown frame", "did not finish", "decoding", "corrupt", "checksum"),
        "channel-corrupt",
        "{channel} did not send a valid package list",
        "try again later; if you use a proxy or a mirror, check its response",
    ),
    Kind(
        (
            "lock on the repodata cache",
            "failed to create",
            "No space",
            "Permission denied",
            "Read-only",
            "os error 20)",
        ),
        "cache-unusable",
        "the cache of conda channels cannot be used",
        "choose another directory with --cache-dir, or use --no-cache",
    ),
    Kind(
        ("error sending request", "Request failed", "timed out", "redirect", "connection", "failed to download"),
        "channel-unreachable",
        "{channel} does not answer",
        "check the network and the proxy settings, or use the cache with --offline",
    ),
)
_LINES = 4


def outside(kind: str, text: str, job: Mapping[str, Any], *, offline: bool) -> EnvsolveError:
    """The error for an exception of rattler, by the name of its class and its text."""
    lines = [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]
    shown = tuple(map(without_secrets, lines))[:_LINES]
    cause = tuple(line.removeprefix("Caused by: ") for line in shown)
    if kind in _INPUT:
        code, message = _INPUT[kind]
        return UsageError(code, message, cause, (Hint("check the spelling"),))
    if kind in _OTHER_VERSION:
        message = "this version of py-rattler, which solves conda packages, is not supported"
        hint = Hint("install a supported version", "pip install --upgrade py-rattler")
        return OutsideError("conda-solver-failed", message, cause, (hint,))
    channel = _channel_in(text, job)
    status = _STATUS.search(text)
    if status is not None and not text.startswith("could not find subdir"):
        return _of_status(int(status[1]), channel, cause)
    found = kind_of(text, _KINDS)
    if found is None:
        message = f"{'the cache of ' if offline else ''}{channel} could not be read"
        return OutsideError("channel-unreadable", message, cause, (Hint("try again, or with --no-cache"),))
    return OutsideError(found.code, found.message.format(channel=channel), cause, (Hint(found.hint),))


def _of_status(status: int, channel: str, cause: tuple[str, ...]) -> OutsideError:
    if status in _REFUSED:
        hint = Hint(
            "log in with user name and password in netrc, a token in the channel URL (/t/TOKEN/), or `pixi auth login`"
        )
        return OutsideError("channel-refused", f"access to {channel} denied (HTTP {status})", cause, (hint,))
    return OutsideError(
        "channel-failed", f"{channel} returned HTTP {status}", cause, (Hint("try again later, or use a mirror"),)
    )


def _channel_in(text: str, job: Mapping[str, Any]) -> str:
    """The channel that rattler's text names, as it was requested; all channels if it names none."""
    addresses = _ADDRESS.findall(text)
    requested = [str(channel) for channel in job.get("channels", ())]
    scheme = _SCHEME.search(text)
    for channel in requested:
        if scheme is not None and channel.startswith(f"{scheme[1]}://"):
            return f"the channel {without_secrets(channel)}"
        name = without_secrets(channel).rstrip("/").rpartition("/")[2]
        if any(f"/{name}/" in address for address in addresses):
            return f"the channel {without_secrets(channel)}"
    listed = " or ".join(map(without_secrets, requested))
    return f"the channel {listed}" if len(requested) == 1 else f"one of the channels {listed}"
