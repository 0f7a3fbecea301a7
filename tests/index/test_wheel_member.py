"""Large members of a wheel that is read remotely."""

from __future__ import annotations

import pytest

from envsolve.index.http import HttpFetcher
from envsolve.index.wheel_member import BrokenArchiveError, RemoteWheel, with_digest
from envsolve.model.package import PackageFile
from tests.index.packages import wheel
from tests.index.server import IndexServer
from tests.scripts.wheels import noise

MEGABYTE = 1 << 20
NOISE = noise(9 * MEGABYTE)


@pytest.fixture
def built(index: IndexServer) -> PackageFile:
    made = wheel("thing", "1.0", members={"thing/large.so": NOISE, "thing/small.so": b"small", "z.so": NOISE})
    index.add("thing", [made])
    url = f"{index.url}/files/thing/{made.name}"
    return PackageFile(made.name, url, (("sha256", made.sha256 or ""),), made.size)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_large_member_is_read_in_pieces(index: IndexServer, built: PackageFile, *, ranges: bool) -> None:
    index.ranges = ranges
    fetcher = HttpFetcher(retries=0)
    with RemoteWheel(fetcher, built) as thing:
        assert thing.members["thing/small.so"] < 100
        assert b"".join(thing.chunks("thing/large.so")) == NOISE
        assert b"".join(thing.chunks("thing/small.so")) == b"small"
    fetcher.close()
    assert index.count("*.whl") == (3 if ranges else 1)  # its end, and two pieces


@pytest.mark.parametrize("ranges", [True, False])
def test_a_digest_covers_the_whole_file_and_its_size_is_known_first(
    index: IndexServer, built: PackageFile, *, ranges: bool
) -> None:
    index.ranges = ranges
    fetcher = HttpFetcher(retries=0)
    progress: list[tuple[int, int]] = []
    found = with_digest(fetcher, built._replace(hashes=(), size=None), lambda *it: progress.append(it))
    fetcher.close()
    assert found == built
    assert progress[0] == (0, built.size)
    assert 0 < progress[1][0] < (built.size or 0)


def test_a_server_that_stops_in_the_middle_is_an_error(index: IndexServer, built: PackageFile) -> None:
    fetcher = HttpFetcher(retries=0)
    with RemoteWheel(fetcher, built) as thing:
        pieces = thing.chunks("thing/large.so")
        next(pieces)
        index.fault("*.whl", body=b"something else")
        with pytest.raises(BrokenArchiveError):
            list(pieces)
    fetcher.close()
