"""One request and its answer over urllib3, and what its errors mean: the other module that knows urllib3."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from threading import Lock

from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
)

from envsolve.index.address import Address
from envsolve.index.body import read_body
from envsolve.index.connections import Connections
from envsolve.index.failures import Failure
from envsolve.index.fetch import Response


class Exchange:
    """Requests over ``connections``, counted: ``requests`` sent, and ``received`` bytes of bodies as they came."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.requests = 0
        self.received = 0
        self._counting = Lock()

    def once(self, address: Address, headers: Mapping[str, str], limit: int) -> Response:
        """What the server answers to one request, whatever its status. Raises Failure."""
        answer = None
        with self._counting:
            self.requests += 1
        try:
            answer = self.connections.send(address, headers)
            try:
                body, packed = read_body(answer, limit, self._received)
            except BaseException:
                answer.close()  # what is left of the body must not be taken for the next answer
                raise
            finally:
                answer.release_conn()
        except (HTTPError, HTTPException, OSError) as error:
            raise _failure(error, answered=answer is not None) from error
        head = {name.lower(): value for name, value in answer.headers.itermerged()}
        return Response(answer.status, head, body, address.url, packed)

    def _received(self, count: int) -> None:
        with self._counting:
            self.received += count


def _failure(error: Exception, *, answered: bool) -> Failure:
    """What an error of urllib3 means. ``answered``: the head of an answer had come."""
    chain = tuple(_chain(error))
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError):
            return Failure("certificate-invalid", link.verify_message or str(link), again=False)
    reason = _reason(chain)
    if _is_timeout(chain):
        return Failure("index-timeout", reason, again=True)
    if answered:
        return Failure("response-cut", reason, again=True)
    refused_by_proxy = "Tunnel connection failed: 4" in reason
    return Failure("index-unreachable", reason, again=not refused_by_proxy)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it was made of, as urllib3 keeps it: as its cause, or among its arguments."""
    yield error
    inner = [argument for argument in error.args if isinstance(argument, BaseException)]
    for link in [*inner, error.__cause__]:
        if link is not None:
            yield from _chain(link)
            return


def _is_timeout(chain: tuple[BaseException, ...]) -> bool:
    """urllib3 counts a connection that was refused among the time-outs."""
    return any(
        isinstance(link, (ReadTimeoutError, ConnectTimeoutError)) and not isinstance(link, NewConnectionError)
        for link in chain
    )


def _reason(chain: tuple[BaseException, ...]) -> str:
    """The innermost reason, without the addresses of objects that urllib3 puts before it."""
    proxy = "the proxy: " if any(isinstance(link, ProxyError) for link in chain) else ""
    if _is_timeout(chain):
        return f"{proxy}no byte came in time"
    if any(isinstance(link, NameResolutionError) for link in chain):
        return f"{proxy}the name of the host is not known"
    last = chain[-1]
    return proxy + ((isinstance(last, OSError) and last.strerror) or str(last) or type(last).__name__)
