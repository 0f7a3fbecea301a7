"""The fetcher with real servers that are slow, busy, broken or malicious."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from envsolve import __version__
from envsolve.errors import OutsideError, UsageError
from envsolve.index.address import address_of
from envsolve.index.failures import Failure, Tries, outside_error
from envsolve.index.fetch import Fetcher
from envsolve.index.http import HttpFetcher
from tests.index.flaky import Answer, Flaky, flaky_proxy, flaky_server

VARIABLES = (
    *("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("UV_HTTP_TIMEOUT", "PIP_DEFAULT_TIMEOUT", "UV_HTTP_RETRIES", "PIP_RETRIES", "NETRC", "REQUEST_METHOD"),
)
SECRET = "s3cret"  # noqa: S105 - not a real one
LOGIN = f"ann:{SECRET}"
SENT_LOGIN = "Basic YW5uOnMzY3JldA=="


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No proxy, certificate or login of the machine that runs the tests."""
    proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
    for name in (*VARIABLES, *proxies):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def server() -> Iterator[Flaky]:
    with flaky_server() as running:
        yield running


@pytest.fixture
def proxy() -> Iterator[Flaky]:
    with flaky_proxy() as running:
        yield running


@pytest.fixture
def fetcher() -> Iterator[HttpFetcher]:
    made = HttpFetcher(backoff=0.01, connect_timeout=2, read_timeout=5)
    yield made
    made.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for the loopback interface with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl command to make a certificate with")
    path = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=loopback", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    command = ["openssl", "req", "-x509", *kind, *subject, "-keyout", "key.pem", "-out", "only.pem"]
    subprocess.run(command, cwd=path, check=True, capture_output=True)
    both = path / "both.pem"
    both.write_text((path / "only.pem").read_text() + (path / "key.pem").read_text())
    return both


@pytest.fixture
def secure(certificate: Path) -> Iterator[Flaky]:
    with flaky_server(certificate) as running:
        yield running


def refused(fetcher: HttpFetcher, url: str, *, limit: int = 1000) -> OutsideError:
    """The error of a fetch that must fail."""
    with pytest.raises(OutsideError) as caught:
        fetcher.fetch(url, limit=limit)
    return caught.value


def test_a_page_comes_with_its_status_headers_and_address(server: Flaky, fetcher: HttpFetcher) -> None:
    url = server.says("/simple/x/", Answer(body=b"files", headers={"ETag": '"1"', "X-Mixed": "Case"}))
    filling: Fetcher = fetcher
    response = filling.fetch(url + "#fragment", {"Accept": "text/html", "if-none-match": '"0"'})
    assert (response.status, response.body, response.url) == (200, b"files", url)
    assert (response.headers["etag"], response.headers["x-mixed"]) == ('"1"', "Case")
    sent = server.requests[0].headers
    assert sent["user-agent"] == f"envsolve/{__version__}"
    assert (sent["accept"], sent["if-none-match"]) == ("text/html", '"0"')


@pytest.mark.parametrize("status", [304, 401, 403, 404, 410, 416])
def test_a_status_about_the_file_is_an_answer(server: Flaky, fetcher: HttpFetcher, status: int) -> None:
    assert fetcher.fetch(server.says("/x", Answer(status))).status == status
    assert len(server.requests) == 1


def test_a_connection_is_reused_after_any_answer(server: Flaky, fetcher: HttpFetcher) -> None:
    for status in (200, 304, 404, 401, 206):
        fetcher.fetch(server.says("/x", Answer(status, b"" if status == 304 else b"text")))
    fetcher.fetch(server.says("/from", Answer(302, b"see there", {"Location": "/x"})))
    assert server.connections == 1


class Raw(NamedTuple):
    """A server that sends raw bytes; ``requests`` are the requests, as bytes."""

    url: str
    requests: list[bytes]


@contextmanager
def raw_server(*answers: bytes, host: str = "127.0.0.1", stays: bool = False) -> Iterator[Raw]:
    """One answer for each connection, which then closes, or ``stays`` open until the server stops."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ending = threading.Event()
    with socket.create_server((host, 0), family=family) as listening:
        named = f"[{host}]" if ":" in host else host
        raw = Raw(f"http://{named}:{listening.getsockname()[1]}/x", [])

        def serve(answer: bytes) -> None:
            with suppress(OSError), listening.accept()[0] as taken:
                raw.requests.append(taken.recv(65536))
                taken.sendall(answer)
                if stays:
                    ending.wait(10)

        threads = [threading.Thread(target=serve, args=(answer,), daemon=True) for answer in answers]
        for thread in threads:
            thread.start()
        yield raw
        ending.set()
    for thread in threads:
        thread.join(1)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_a_connection_closed_by_its_server_is_not_reused() -> None:
    fetcher = HttpFetcher(retries=0)
    with raw_server(OK, OK) as server:
        assert fetcher.fetch(server.url).body == b"ok"
        time.sleep(0.05)
        assert fetcher.fetch(server.url).body == b"ok"
    fetcher.close()


def test_data_after_an_announcement_does_not_become_the_next_answer() -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"
    fetcher = HttpFetcher(retries=0)
    with raw_server(hints, hints, stays=True) as server:
        for _ in range(2):
            with pytest.raises(OutsideError):
                fetcher.fetch(server.url)
        assert len(server.requests) == 2
    fetcher.close()


@pytest.mark.parametrize(
    ("headers", "name", "value"),
    [
        (b"Cache-Control: public\r\ncache-control: max-age=600\r\n", "cache-control", "public, max-age=600"),
        (b'ETag: "a"\r\n\t"b"\r\n', "etag", '"a" "b"'),
    ],
)
def test_headers_in_several_packets_are_combined(fetcher: HttpFetcher, headers: bytes, name: str, value: str) -> None:
    with raw_server(b"HTTP/1.1 200 OK\r\n" + headers + b"Content-Length: 0\r\n\r\n") as server:
        assert fetcher.fetch(server.url).headers[name] == value


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nokok", r"2, 4"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nok", "Read|length"),
    ],
)
def test_a_body_of_unknown_length_is_refused(answer: bytes, reason: str) -> None:
    fetcher = HttpFetcher(retries=0)
    with raw_server(answer) as server:
        assert re.search(reason, " ".join(refused(fetcher, server.url).cause))
    fetcher.close()


def test_an_index_at_an_ipv6_address_is_queried(fetcher: HttpFetcher) -> None:
    if not socket.has_ipv6:
        pytest.skip("this Python knows no IPv6")
    try:
        with raw_server(OK, host="::1") as server:
            assert fetcher.fetch(server.url).body == b"ok"
            assert f"\r\nHost: {server.url.split('/')[2]}\r\n".encode() in server.requests[0]
    except OSError:
        pytest.skip("this machine has no IPv6")


def test_closing_ends_an_answer_that_is_delimited_by_its_connection() -> None:
    fetcher = HttpFetcher(retries=0)
    with raw_server(b"HTTP/1.0 200 OK\r\n\r\nhalf of it", stays=True) as server:
        threading.Timer(0.2, fetcher.close).start()
        start = time.monotonic()
        with pytest.raises(OutsideError):
            fetcher.fetch(server.url)
        assert time.monotonic() - start < 5


def test_many_threads_share_one_fetcher(server: Flaky, fetcher: HttpFetcher) -> None:
    server.answers = {f"/{number}": [Answer(body=b"%d" % number)] for number in range(200)}
    with ThreadPoolExecutor(16) as pool:
        bodies = pool.map(lambda number: fetcher.fetch(server.url(f"/{number}")).body, range(200))
        assert [int(body) for body in bodies] == list(range(200))
    assert server.connections <= 16
    assert len(server.requests) == 200


# Bodies


def test_a_compressed_body_is_unpacked(server: Flaky, fetcher: HttpFetcher) -> None:
    packed = gzip.compress(b"a page " * 1000)
    url = server.says("/x", Answer(body=packed, headers={"Content-Encoding": "gzip"}))
    assert fetcher.fetch(url).body == b"a page " * 1000
    assert "gzip" in server.requests[0].headers["accept-encoding"]


def test_several_compressed_streams_with_padding_are_one_body(server: Flaky, fetcher: HttpFetcher) -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 20
    assert (
        fetcher.fetch(server.says("/x", Answer(body=packed, headers={"Content-Encoding": "x-gzip"}))).body == b"one two"
    )


def test_a_body_of_the_maximum_length_is_accepted(server: Flaky, fetcher: HttpFetcher) -> None:
    plain = server.says("/plain", Answer(body=b"x" * 1000))
    packed = server.says("/gz", Answer(body=gzip.compress(b"x" * 1000), headers={"Content-Encoding": "gzip"}))
    assert len(fetcher.fetch(plain, limit=1000).body) == len(fetcher.fetch(packed, limit=1000).body) == 1000


@pytest.mark.parametrize("length", ["true", None, "chunked"])
def test_a_longer_body_is_given_up(
    server: Flaky, fetcher: HttpFetcher, length: Literal["true", "chunked"] | None
) -> None:
    error = refused(fetcher, server.says("/x", Answer(body=b"x" * 1001, length=length)))
    assert (error.code, len(server.requests)) == ("response-too-large", 1)
    assert fetcher.fetch(server.says("/y", Answer(body=b"next"))).body == b"next"


@pytest.mark.thorough
def test_a_bomb_is_not_unpacked(server: Flaky, fetcher: HttpFetcher) -> None:
    import tracemalloc

    bomb = gzip.compress(b"\0" * 200_000_000, compresslevel=1)
    url = server.says("/x", Answer(body=bomb, headers={"Content-Encoding": "gzip"}))
    tracemalloc.start()
    error = refused(fetcher, url, limit=1_000_000)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.code == "response-too-large"
    assert most < 5_000_000


def test_an_unrequested_encoding_is_an_error(server: Flaky, fetcher: HttpFetcher) -> None:
    error = refused(fetcher, server.says("/x", Answer(body=b"?", headers={"Content-Encoding": "lzw"})))
    assert (error.code, len(server.requests)) == ("response-unreadable", 1)


def test_a_range_of_a_file_is_returned_unchanged(server: Flaky, fetcher: HttpFetcher) -> None:
    url = server.says("/x.whl", Answer(206, b"PK", {"Content-Range": "bytes 0-1/9"}))
    response = fetcher.fetch(url, {"Range": "bytes=0-1"})
    assert (response.status, response.body) == (206, b"PK")
    assert response.headers["content-range"] == "bytes 0-1/9"
    assert server.requests[0].headers["accept-encoding"] == "identity"


# Other tries


@pytest.mark.parametrize(
    "broken",
    [
        Answer(drop=True),
        Answer(body=b"who", length=5),
        Answer(body=b"who", length="chunked and cut"),
        Answer(body=gzip.compress(b"whole")[:-9], headers={"Content-Encoding": "gzip"}),
        Answer(body=b"no gzip", headers={"Content-Encoding": "gzip"}),
        *(Answer(status) for status in (408, 429, 500, 502, 503, 504)),
    ],
)
def test_a_temporary_failure_is_retried(server: Flaky, fetcher: HttpFetcher, broken: Answer) -> None:
    assert fetcher.fetch(server.says("/x", broken, Answer(body=b"whole"))).body == b"whole"
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("broken", "code", "reason"),
    [
        (Answer(drop=True), "index-unreachable", "closed connection without response"),
        (Answer(body=b"who", length=5), "response-cut", "2 more expected"),
        (Answer(500), "index-failed", "500 Internal Server Error"),
        (Answer(599), "index-failed", "599"),
        (Answer(418), "index-failed", "418"),
        (Answer(302), "index-failed", "302 Found"),
    ],
)
def test_a_permanent_failure_is_an_error_with_its_reason(
    server: Flaky, fetcher: HttpFetcher, broken: Answer, code: str, reason: str
) -> None:
    server.says("/x", broken)
    error = refused(fetcher, server.url("/x", login=LOGIN))
    assert error.code == code
    assert server.url("/x") in error.message
    assert reason in error.cause[0]
    assert error.hints
    assert SECRET not in f"{error.message} {error.cause} {error.hints}"


def test_it_waits_longer_between_retries(server: Flaky) -> None:
    fetcher = HttpFetcher(retries=3, backoff=0.04)
    started = time.monotonic()
    error = refused(fetcher, server.says("/x", Answer(503)))
    assert time.monotonic() - started > (0.04 + 0.08 + 0.16) / 2
    assert (len(server.requests), error.cause[1]) == (4, "this happened 4 times")
    fetcher.close()


@pytest.mark.parametrize(
    ("when", "least"),
    [
        (lambda: "1", 0.2),
        (lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True), 0.2),
        (lambda: format_datetime(datetime.now(UTC) - timedelta(seconds=60), usegmt=True), 0.0),
        (lambda: "Fri, 06 Nov 2026 10:00:00 -0000", 0.0),
        (lambda: "soon", 0.0),
    ],
)
def test_retry_after_is_respected_within_limits(server: Flaky, when: type[str], least: float) -> None:
    fetcher = HttpFetcher(backoff=0.001, longest_wait=0.2)
    url = server.says("/x", Answer(429, headers={"Retry-After": when()}), Answer(body=b"now"))
    started = time.monotonic()
    assert fetcher.fetch(url).body == b"now"
    assert least <= time.monotonic() - started < least + 0.7  # and not the second that was requested
    fetcher.close()


@pytest.mark.parametrize("stall", ["head", "body"])
def test_a_stalled_server_is_given_up(server: Flaky, stall: Literal["head", "body"]) -> None:
    fetcher = HttpFetcher(retries=1, backoff=0.01, read_timeout=0.1)
    url = server.says("/x", Answer(body=b"never", stall=stall))
    error = refused(fetcher, url)
    assert (error.code, error.cause) == ("index-timeout", ("no data arrived in time", "this happened 2 times"))
    fetcher.close()


HEAD = b"HTTP/1.1 200 OK\r\n"
DRIPS = {
    "the head": (b"", HEAD + b"X: " + b"x" * 1000),
    "the body": (HEAD + b"Content-Length: 1000\r\n\r\n", b"x" * 1000),
    "a body without an end": (HEAD + b"\r\n", b"x" * 1000),
    "chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000),
    "announcements": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", b"X: x\r\n" * 1000),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("start", "rest"), DRIPS.values(), ids=DRIPS)
def test_a_slow_server_is_given_up_after_the_deadline(start: bytes, rest: bytes) -> None:
    """The read timeout is as long: a busy machine that sends no byte for all that time gives the same error."""
    fetcher = HttpFetcher(deadline=0.5, read_timeout=0.5)

    def drip(listening: socket.socket) -> None:
        with suppress(OSError), listening.accept()[0] as taken:
            taken.recv(65536)
            taken.sendall(start)
            for position in range(len(rest)):
                taken.sendall(rest[position : position + 1])
                time.sleep(0.02)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=drip, args=(listening,), daemon=True)
        thread.start()
        started = time.monotonic()
        error = refused(fetcher, f"http://127.0.0.1:{listening.getsockname()[1]}/x")
        assert time.monotonic() - started < 4
    assert (error.code, error.cause) == ("index-timeout", ("it did not end within 0.5 s",))
    thread.join(2)
    assert not thread.is_alive()
    fetcher.close()


@pytest.mark.thorough
def test_a_large_body_may_take_longer_than_the_deadline() -> None:
    """The deadline is per MB: 8 MB within 2.4 s do not exceed it."""
    fetcher = HttpFetcher(deadline=1.5, read_timeout=1.5)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def send() -> None:
            with listening.accept()[0] as taken:
                taken.recv(65536)
                taken.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % (8 << 20))
                for _ in range(8):
                    time.sleep(0.3)
                    taken.sendall(b"x" * (1 << 20))

        threading.Thread(target=send, daemon=True).start()
        response = fetcher.fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/x")
    assert len(response.body) == 8 << 20
    fetcher.close()


def test_a_timeout_is_not_retried(server: Flaky) -> None:
    fetcher = HttpFetcher(retries=5, backoff=0.01, deadline=0.3, read_timeout=0.2)
    error = refused(fetcher, server.says("/x", Answer(stall="head")))
    assert (error.code, len(server.requests)) == ("index-timeout", 2)
    fetcher.close()


def test_waits_requested_by_a_server_total_at_most_half_a_minute() -> None:
    assert HttpFetcher()._longest_wait * 3 < 30


def test_the_timeouts_of_uv_and_pip_apply(server: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "a while")
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "0.1")
    fetcher = HttpFetcher(retries=0)
    assert refused(fetcher, server.says("/x", Answer(stall="head"))).code == "index-timeout"
    assert fetcher.notes == ["UV_HTTP_TIMEOUT is ignored: 'a while' is not a number of seconds"]
    fetcher.close()


def test_an_unreachable_server_is_an_error_with_hints(fetcher: HttpFetcher) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/simple/"
        error = refused(fetcher, url)
    assert (error.code, error.message) == ("index-unreachable", f"{url} cannot be reached")
    assert error.cause == ("Connection refused", "this happened 4 times")
    hints = " ".join(hint.text for hint in error.hints)
    assert all(word in hints for word in ("--offline", "--index-url"))


@pytest.mark.parametrize(
    ("url", "variable"),
    [
        ("https://packages.example.org/simple/", "HTTPS_PROXY"),
        ("http://packages.example.org/simple/", "HTTP_PROXY"),
        ("http://127.0.0.1:3141/simple/", None),
        ("http://localhost:3141/simple/", None),
        ("http://[::1]:3141/simple/", None),
    ],
)
def test_the_variable_of_a_proxy_is_that_of_the_scheme(url: str, variable: str | None) -> None:
    error = outside_error(Failure("index-timeout", "no data arrived in time", again=True), Tries(url, None, 1))
    hints = [it.text for it in error.hints if "proxy" in it.text]
    assert hints == ([] if variable is None else [f"behind a proxy, set {variable} to its URL"])


def test_an_unknown_host_name_is_explained_in_words() -> None:
    fetcher = HttpFetcher(retries=0)
    error = refused(fetcher, "http://nowhere.invalid/")
    assert (error.code, error.cause) == ("index-unreachable", ("the host name is unknown",))
    fetcher.close()


# The end


def test_closing_ends_a_wait_for_a_retry(server: Flaky) -> None:
    fetcher = HttpFetcher(backoff=30)
    _closed_while_fetching(fetcher, server, server.says("/x", Answer(503)))


@pytest.mark.parametrize("stall", ["head", "body"])
def test_closing_ends_a_wait_for_an_answer(server: Flaky, stall: Literal["head", "body"]) -> None:
    fetcher = HttpFetcher()
    url = server.says("/x", Answer(body=b"never", stall=stall))
    _closed_while_fetching(fetcher, server, url)


def test_closing_ends_a_wait_for_an_answer_over_https(
    secure: Flaky, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    _closed_while_fetching(HttpFetcher(), secure, secure.says("/x", Answer(stall="head")))


def _closed_while_fetching(fetcher: HttpFetcher, server: Flaky, url: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        fetching = pool.submit(refused, fetcher, url)
        while not server.requests:
            time.sleep(0.005)
        time.sleep(0.02)
        started = time.monotonic()
        fetcher.close()
        assert fetching.result(timeout=2).code == "fetch-cancelled"
        assert time.monotonic() - started < 1
    assert refused(fetcher, url).code == "fetch-cancelled"


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_an_interrupt_ends_a_wait_at_once(server: Flaky) -> None:
    url = server.says("/x", Answer(stall="head"))
    program = f"from envsolve.index.http import HttpFetcher; HttpFetcher().fetch({url!r})"
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) as process:
        while not server.requests:
            time.sleep(0.005)
        process.send_signal(2)
        _, complaint = process.communicate(timeout=5)
    assert complaint.rstrip().endswith(b"KeyboardInterrupt")


# Other addresses


def test_a_redirect_is_followed_wherever_it_leads(server: Flaky, fetcher: HttpFetcher) -> None:
    server.says("/a/x", Answer(301, headers={"Location": "../b?c=1"}))
    server.says("/b?c=1", Answer(307, headers={"Location": server.url("/d", login=LOGIN) + "#part"}))
    server.says("/d", Answer(body=b"here"))
    response = fetcher.fetch(server.url("/a/x"))
    assert (response.body, response.url) == (b"here", server.url("/d"))
    assert [request.target for request in server.requests] == ["/a/x", "/b?c=1", "/d"]
    assert len(server.requests) == 3


def test_a_redirect_loop_is_given_up(server: Flaky, fetcher: HttpFetcher) -> None:
    server.says("/a", Answer(302, headers={"Location": "/b"}))
    server.says("/b", Answer(302, headers={"Location": "/a"}))
    assert refused(fetcher, server.url("/a")).code == "redirect-loop"
    assert len(server.requests) == 2


def test_ten_redirects_are_followed_and_no_eleventh(server: Flaky, fetcher: HttpFetcher) -> None:
    for number in range(11):
        server.says(f"/{number}", Answer(302, headers={"Location": f"/{number + 1}"}))
    server.says("/11", Answer(body=b"end"))
    assert fetcher.fetch(server.url("/1")).body == b"end"
    assert refused(fetcher, server.url("/0")).code == "redirect-loop"


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "ftp://example.org/", f"http://{LOGIN}@[::1", "http://a b/"]
)
def test_a_redirect_out_of_the_web_is_an_error(server: Flaky, fetcher: HttpFetcher, location: str) -> None:
    error = refused(fetcher, server.says("/x", Answer(302, headers={"Location": location})))
    assert error.code == "redirect-invalid"
    assert SECRET not in error.message


def test_a_redirect_from_https_to_http_is_an_error(server: Flaky, secure: Flaky, certificate: Path) -> None:
    fetcher = HttpFetcher(trusted_hosts=frozenset({"127.0.0.1"}))
    url = secure.says("/x", Answer(302, headers={"Location": server.says("/y", Answer())}))
    assert refused(fetcher, url).code == "redirect-insecure"
    assert not server.requests
    fetcher.close()


def test_a_redirect_to_another_server_drops_the_login(server: Flaky, fetcher: HttpFetcher) -> None:
    with flaky_server() as other:
        other.says("/y", Answer())
        server.says("/x", Answer(302, headers={"Location": other.url("/y")}))
        fetcher.fetch(server.url("/x", login=LOGIN))
        fetcher.fetch(server.url("/x"), {"authorization": "Bearer token", "Cookie": "c", "Accept": "a"})
        assert [request.headers["authorization"] for request in server.requests] == [SENT_LOGIN, "Bearer token"]
        assert not [it for it in other.requests if {"authorization", "cookie"} & it.headers.keys()]
        assert other.requests[1].headers["accept"] == "a"


def test_a_redirect_on_one_server_keeps_the_login(server: Flaky, fetcher: HttpFetcher) -> None:
    server.says("/x", Answer(302, headers={"Location": "/y"}))
    server.says("/y", Answer())
    fetcher.fetch(server.url("/x", login=LOGIN))
    assert [request.headers["authorization"] for request in server.requests] == [SENT_LOGIN, SENT_LOGIN]


# What cannot be sent


@pytest.mark.parametrize(
    "url",
    [
        *("", "simple/", "file:///index/", "ftp://example.org/", "http://", "http:///x", "https://ann@/x"),
        *(
            "http://example.org:port/",
            "http://example.org:70000/",
            "http://[::1/",
            "http://a..b/",
            "http://exa mple.org/",
        ),
        *(
            "http://example.org/\r\nX-Evil: 1",
            "http://example.org/\x00",
            "http://example.org\t/",
            " http://example.org/",
        ),
        f"http://ann:{SECRET}/x@example.org/",
        f"http://{LOGIN}@example.org\\@example.net/",
    ],
)
def test_an_invalid_url_is_one_clear_error(fetcher: HttpFetcher, url: str) -> None:
    with pytest.raises(UsageError) as caught:
        fetcher.fetch(url)
    assert caught.value.code == "url-invalid"
    assert SECRET not in caught.value.message
    assert caught.value.message.isprintable()


@pytest.mark.parametrize(
    "header", [("X-A", "b\r\nX-Evil: 1"), ("X-A\n", "b"), ("X A", "b"), ("", "b"), ("A", "\u20ac")]
)
def test_a_header_that_would_split_the_request_is_refused(
    server: Flaky, fetcher: HttpFetcher, header: tuple[str, str]
) -> None:
    with pytest.raises(UsageError) as caught:
        fetcher.fetch(server.says("/x", Answer()), dict([header]))
    assert (caught.value.code, server.requests) == ("header-invalid", [])


def test_spaces_and_non_ascii_letters_are_percent_encoded(server: Flaky, fetcher: HttpFetcher) -> None:
    server.says("/a%20b/%C3%BC.whl?q", Answer(body=b"file"))
    assert fetcher.fetch(server.url("/a b/\u00fc.whl?q")).body == b"file"


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/%7Ea%2Fb", "/%7Ea%2Fb"),
        ("/a%zz%", "/a%25zz%25"),
        ('/"<>^|{}`', "/%22%3C%3E%5E%7C%7B%7D%60"),
        ("/[x]?y=[z]", "/%5Bx%5D?y=%5Bz%5D"),
        ("/\ud800", "/%ED%A0%80"),
        ("/a+b;c=1,2:3@4!$&'()*~_-.", "/a+b;c=1,2:3@4!$&'()*~_-."),
    ],
)
def test_invalid_characters_in_a_url_are_escaped(path: str, sent: str, server: Flaky, fetcher: HttpFetcher) -> None:
    server.says(sent, Answer(body=b"file"))
    assert fetcher.fetch(server.url(path)).body == b"file"
    assert server.requests[-1].target == sent


# Proxies


def test_a_proxy_gets_absolute_urls_and_its_own_login(
    server: Flaky, proxy: Flaky, fetcher: HttpFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url(login="p%40t:p%3Aw"))
    proxy.says(server.url("/x"), Answer(body=b"by proxy"))
    assert fetcher.fetch(server.url("/x", login=LOGIN)).body == b"by proxy"
    sent = proxy.requests[0].headers
    assert (sent["proxy-authorization"], sent["authorization"]) == ("Basic cEB0OnA6dw==", SENT_LOGIN)
    assert sent["host"] == f"127.0.0.1:{server.server_address[1]}"
    assert not server.requests


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])
def test_https_goes_through_a_tunnel_of_the_proxy(
    secure: Flaky, proxy: Flaky, certificate: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, proxy.url(login="pat:word").removeprefix("http://"))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    secure.says("/x", Answer(body=b"inside"))
    fetcher = HttpFetcher()
    assert fetcher.fetch(secure.url("/x", login=LOGIN)).body == b"inside"
    (request,) = proxy.requests
    assert (request.method, request.target) == ("CONNECT", f"127.0.0.1:{secure.server_address[1]}")
    assert request.headers["proxy-authorization"] == "Basic cGF0OndvcmQ="
    assert "authorization" not in request.headers
    assert "proxy-authorization" not in secure.requests[0].headers
    fetcher.close()


@pytest.mark.parametrize("exception", ["127.0.0.1", "example.org, 127.0.0.0/8", "*"])
def test_hosts_that_no_proxy_names_are_reached_directly(
    server: Flaky, proxy: Flaky, fetcher: HttpFetcher, monkeypatch: pytest.MonkeyPatch, exception: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy.url())
    monkeypatch.setenv("NO_PROXY", exception)
    assert fetcher.fetch(server.says("/x", Answer(body=b"direct"))).body == b"direct"
    assert not proxy.requests


def test_a_failing_proxy_is_named_without_its_login(
    proxy: Flaky, fetcher: HttpFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy.url(login=LOGIN))
    proxy.says("example.org:443", Answer(407))
    error = refused(fetcher, "https://example.org/simple/")
    assert (error.code, len(proxy.requests)) == ("index-unreachable", 1)
    assert error.cause[0].startswith("the proxy: Tunnel connection failed: 407")
    assert proxy.url() in error.hints[0].text
    assert SECRET not in f"{error.message} {error.cause} {error.hints}"


@pytest.mark.parametrize("named", ["gopher://127.0.0.1:1", f"http://{LOGIN}@127.0.0.1:port", f"http://{LOGIN}@[::1"])
def test_an_invalid_proxy_url_is_a_usage_error(
    fetcher: HttpFetcher, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", named)
    with pytest.raises(UsageError) as caught:
        fetcher.fetch("http://example.org/")
    assert caught.value.code == "invalid-environment-variable"
    assert SECRET not in caught.value.message


@pytest.mark.skipif(find_spec("socks") is not None, reason="PySocks is installed")
def test_a_socks_proxy_needs_an_extra_package(fetcher: HttpFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1080")
    with pytest.raises(UsageError) as caught:
        fetcher.fetch("http://example.org/")
    assert caught.value.hints[0].command == "pip install pysocks"


# Certificates


def test_an_untrusted_certificate_is_refused_at_once(secure: Flaky, fetcher: HttpFetcher) -> None:
    error = refused(fetcher, secure.says("/x", Answer()))
    assert (error.code, secure.connections) == ("certificate-invalid", 1)
    assert error.cause[0].startswith("self")
    assert all(name in error.hints[0].text for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"))


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT"])
def test_certificates_that_the_environment_names_are_trusted(
    secure: Flaky, fetcher: HttpFetcher, certificate: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, str(certificate))
    assert fetcher.fetch(secure.says("/x", Answer(body=b"trusted"))).body == b"trusted"


@pytest.mark.parametrize("variable", ["SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
def test_a_directory_of_certificates_is_trusted(
    secure: Flaky,
    fetcher: HttpFetcher,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
) -> None:
    command = ["openssl", "x509", "-subject_hash", "-noout", "-in", str(certificate)]
    name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / f"{name}.0").write_bytes(certificate.read_bytes())
    monkeypatch.setenv(variable, str(tmp_path))
    assert fetcher.fetch(secure.says("/x", Answer(body=b"trusted"))).body == b"trusted"


def test_missing_certificate_files_are_named(fetcher: HttpFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(UsageError) as caught:
        fetcher.fetch("https://127.0.0.1:1/")
    assert caught.value.code == "invalid-environment-variable"
    assert caught.value.message.startswith("SSL_CERT_FILE is /nowhere/ca.pem")
    assert caught.value.message.endswith("No such file or directory")


def test_a_certificate_for_another_host_is_refused(
    secure: Flaky, fetcher: HttpFetcher, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    error = refused(fetcher, secure.url("/", host="localhost"))
    assert error.code == "certificate-invalid"


def test_a_server_is_offered_the_protocol(
    secure: Flaky, fetcher: HttpFetcher, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    fetcher.fetch(secure.says("/x", Answer()))
    assert secure.requests[0].protocol == "http/1.1"


@pytest.mark.parametrize("port", ["", ":{}"])
def test_a_trusted_host_needs_no_certificate_and_no_warning(
    secure: Flaky, port: str, recwarn: pytest.WarningsRecorder
) -> None:
    fetcher = HttpFetcher(trusted_hosts=frozenset({"127.0.0.1" + port.format(secure.server_address[1])}))
    assert fetcher.fetch(secure.says("/x", Answer(body=b"unchecked"))).body == b"unchecked"
    assert not recwarn.list
    fetcher.close()


def test_a_client_certificate_is_sent_on_request(certificate: Path) -> None:
    import ssl

    fetcher = HttpFetcher(client_certificate=certificate, trusted_hosts=frozenset({"127.0.0.1"}))
    with flaky_server(certificate) as verifying:
        assert isinstance(verifying.socket, ssl.SSLSocket)
        verifying.socket.context.verify_mode = ssl.CERT_REQUIRED
        verifying.socket.context.load_verify_locations(certificate)
        assert fetcher.fetch(verifying.says("/x", Answer(body=b"known"))).body == b"known"
        fetcher.close()
        anonymous = HttpFetcher(retries=0, trusted_hosts=frozenset({"127.0.0.1"}))
        assert refused(anonymous, verifying.url("/x")).code in {"index-unreachable", "response-cut"}
        anonymous.close()


def test_an_invalid_client_certificate_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "client.pem"
    path.write_text("no certificate")
    fetcher = HttpFetcher(client_certificate=path)
    with pytest.raises(UsageError) as caught:
        fetcher.fetch("https://127.0.0.1:1/")
    assert caught.value.code == "client-certificate-unreadable"
    fetcher.close()


def test_importing_the_fetcher_loads_no_http_library() -> None:
    program = "import sys, envsolve.index.http; print(*{'urllib3', 'http.client', 'email', 'ssl'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://Packages.Example.org/simple/", "packages.example.org", 443),
        ("http://10.0.0.1:0080/", "10.0.0.1", 80),
        ("http://my_host/", "my_host", 80),
        ("http://[2001:DB8::1]:8080/", "[2001:db8::1]", 8080),
        ("https://b\u00fccher.example/", "xn--bcher-kva.example", 443),
    ],
)
def test_common_and_uncommon_urls_are_parsed_alike(url: str, host: str, port: int) -> None:
    assert address_of(url).origin == (url.partition(":")[0], host, port)
