"""What went wrong on the way to a server: whether to try again, and the words for it when trying is over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envsolve.errors import Hint, OutsideError

_OFFLINE = Hint("without a network, --offline uses what was fetched before")
ANOTHER_INDEX = Hint("another index, such as a mirror, is named with --index-url")
_HINTS = {
    "index-unreachable": (_OFFLINE, ANOTHER_INDEX),
    "index-timeout": (Hint("a slow network gets more seconds for each answer with UV_HTTP_TIMEOUT=120"), ANOTHER_INDEX),
    "index-failed": (Hint("a server in trouble may be well again in a few minutes"), ANOTHER_INDEX),
    "response-cut": (Hint("a proxy or a virus scanner between here and there may cut answers"), ANOTHER_INDEX),
    "certificate-invalid": (
        Hint("a company's own certificates are named with SSL_CERT_FILE or REQUESTS_CA_BUNDLE, a file in PEM form"),
    ),
}
_WORDS = {
    "index-unreachable": "cannot be reached",
    "index-timeout": "did not answer in time",
    "index-failed": "could not be fetched",
    "response-cut": "arrived in part only",
    "response-unreadable": "arrived in a form that cannot be read",
    "response-too-large": "is larger than it may be",
    "certificate-invalid": "has a certificate that is not trusted",
}


class Failure(Exception):  # noqa: N818 - it never reaches a user, and is no error where the next try succeeds
    """One try that failed: the code of the error it may end in, the reason in words, and whether to try again."""

    def __init__(self, code: str, reason: str, *, again: bool) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.again = again


class Tries(NamedTuple):
    """What was tried: where, through which proxy, and how often."""

    url: str
    proxy: str | None
    number: int


def outside_error(failure: Failure, tries: Tries) -> OutsideError:
    """The error for a user, once the last try failed."""
    cause = [failure.reason]
    if tries.number > 1:
        cause.append(f"so it went {tries.number} times")
    hints = _HINTS.get(failure.code, ())
    if failure.code in {"index-unreachable", "index-timeout"}:
        hints = (*_on_proxies(tries), *hints)
    error = OutsideError(failure.code, f"{tries.url} {_WORDS[failure.code]}", tuple(cause), hints)
    error.address = tries.url
    return error


def _on_proxies(tries: Tries) -> Iterator[Hint]:
    """The proxy that was gone through, or the variable that names one; none leads to this machine itself."""
    if tries.proxy is not None:
        yield Hint(f"the proxy {tries.proxy} is from the environment: correct it, or name the host in NO_PROXY")
        return
    from urllib.parse import urlsplit

    parts = urlsplit(tries.url)
    host = parts.hostname or ""
    if host not in ("localhost", "::1") and not host.startswith("127."):
        yield Hint(f"behind a proxy, set {parts.scheme.upper()}_PROXY to its address")
