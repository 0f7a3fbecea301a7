"""Failed requests: whether to try again, and the error after the last try."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from envsolve.errors import Hint, OutsideError

_OFFLINE = Hint("without a network, --offline uses what was fetched before")
ANOTHER_INDEX = Hint("use another index, such as a mirror, with --index-url")
_HINTS = {
    "index-unreachable": (_OFFLINE, ANOTHER_INDEX),
    "index-timeout": (Hint("on a slow network, set a longer timeout: UV_HTTP_TIMEOUT=120"), ANOTHER_INDEX),
    "index-failed": (Hint("try again in a few minutes"), ANOTHER_INDEX),
    "response-cut": (Hint("a proxy or a virus scanner may have cut the response"), ANOTHER_INDEX),
    "certificate-invalid": (
        Hint("set SSL_CERT_FILE or REQUESTS_CA_BUNDLE to a PEM file with your company's certificates"),
    ),
}
_WORDS = {
    "index-unreachable": "cannot be reached",
    "index-timeout": "did not answer in time",
    "index-failed": "could not be fetched",
    "response-cut": "arrived only in part",
    "response-unreadable": "arrived in an unreadable form",
    "response-too-large": "is too large",
    "certificate-invalid": "has a certificate that is not trusted",
}


class Failure(Exception):  # noqa: N818 - it never reaches a user, and is no error where the next try succeeds
    """One failed try: the error code, the reason in words, and whether to try again."""

    def __init__(self, code: str, reason: str, *, again: bool) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.again = again


class Tries(NamedTuple):
    """The tries of a request: the address, the proxy, and their number."""

    url: str
    proxy: str | None
    number: int


def outside_error(failure: Failure, tries: Tries) -> OutsideError:
    """The error for a user after the last try failed."""
    cause = [failure.reason]
    if tries.number > 1:
        cause.append(f"this happened {tries.number} times")
    hints = _HINTS.get(failure.code, ())
    if failure.code in {"index-unreachable", "index-timeout"}:
        hints = (*_on_proxies(tries), *hints)
    error = OutsideError(failure.code, f"{tries.url} {_WORDS[failure.code]}", tuple(cause), hints)
    error.address = tries.url
    return error


def _on_proxies(tries: Tries) -> Iterator[Hint]:
    """Hints about the proxy that was used, or the variable that sets one; none for this machine itself."""
    if tries.proxy is not None:
        yield Hint(f"the proxy {tries.proxy} is set in the environment: fix it, or add the host to NO_PROXY")
        return
    from urllib.parse import urlsplit

    parts = urlsplit(tries.url)
    host = parts.hostname or ""
    if host not in ("localhost", "::1") and not host.startswith("127."):
        yield Hint(f"behind a proxy, set {parts.scheme.upper()}_PROXY to its URL")
