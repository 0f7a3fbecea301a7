"""Read the wheels of a release remotely, over the connection that locks use, and cache what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from packaging.version import Version

from envsolve.errors import OutsideError
from envsolve.index.fetch import Fetcher
from envsolve.index.one_index import Shelf, file_address
from envsolve.index.page import Project
from envsolve.index.store import decoded, encoded
from envsolve.index.wheel_member import BrokenArchiveError, RemoteWheel
from envsolve.model.package import PackageFile
from envsolve.releases.errors import ReleaseError
from envsolve.releases.reader import Observation, Reader
from envsolve.releases.wheels import WheelFile, wheel_files

_BUCKET = "releases"
_LARGEST_TEXT = 1 << 22
_LARGEST_CONTENT = 1 << 28
SMALL = 1_000_000
"""The compressed size in bytes up to which a member counts as a small file of a wheel."""


class RemoteRelease:
    """A wheel that is open for reading, see OpenWheel.

    With ``largest``, members of more bytes are treated as missing.
    """

    def __init__(self, file: WheelFile, wheel: RemoteWheel, largest: int | None = None) -> None:
        self.file = file
        self.read: list[str] = []
        self.members = [name for name, size in wheel.members.items() if largest is None or size <= largest]
        self._wheel = wheel

    def find(self, ending: str) -> str | None:
        """See OpenWheel."""
        return min((name for name in self.members if name.endswith(ending)), key=len, default=None)

    def may_read_deep(self) -> bool:
        """Never: only releases older than any that is read here have no small file with the facts."""
        return False

    def text(self, ending: str) -> str | None:
        """See OpenWheel."""
        member = self.find(ending)
        if member is None:
            return None
        self.read.append(member)
        with errors_of(self.file, member):
            return self._wheel.content(member, _LARGEST_TEXT).decode("utf-8", "replace")

    def content(self, member: str) -> bytes:
        """See OpenWheel."""
        self.read.append(member)
        with errors_of(self.file, member):
            return self._wheel.content(member, _LARGEST_CONTENT)

    def chunks(self, member: str) -> Iterator[bytes]:
        """See OpenWheel."""
        self.read.append(member)
        with errors_of(self.file, member):
            yield from self._wheel.chunks(member)


class Observations:
    """Reads wheels with ``reader`` and caches the results on ``shelf``. Nothing is fetched if ``offline``.

    ``largest`` is as in RemoteRelease. ``progress`` is called with the name of each file that is fetched.
    """

    def __init__(
        self,
        reader: Reader,
        fetcher: Fetcher,
        shelf: Shelf,
        *,
        offline: bool,
        largest: int | None = None,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._reader, self._fetcher, self._shelf = reader, fetcher, shelf
        self._offline, self._largest, self._progress = offline, largest, progress

    def read(self, file: WheelFile) -> Observation:
        """Return what is in a wheel.

        Raises ReleaseError if it cannot be read, or has values that the reader does not know.
        """
        keys = [f"{self._reader.edition} {largest} {file.sha256}" for largest in dict.fromkeys((None, self._largest))]
        for key in keys if file.sha256 else ():
            cached = decoded(self._shelf.read(_BUCKET, key), Observation)
            if cached is not None:
                return cached
        if self._offline:
            raise ReleaseError(f"{file.filename} is not cached, and --offline is set")
        self._progress(file.filename)
        hashes = () if file.sha256 is None else (("sha256", file.sha256),)
        with errors_of(file), RemoteWheel(self._fetcher, PackageFile(file.filename, file.url, hashes)) as opened:
            wheel = RemoteRelease(file, opened, self._largest)
            try:
                seen = self._reader.observe(wheel)
            except (ValueError, LookupError) as error:
                raise ReleaseError(f"{file.filename}: {error}") from error
        seen["read"] = list(dict.fromkeys(wheel.read))
        if file.sha256:
            self._shelf.write(_BUCKET, keys[-1], encoded(seen))
        return seen


def wheels_of(project: Project) -> Iterator[WheelFile]:
    """Yield an index's wheels of ``project`` that are not yanked. Raises OutsideError for an invalid address."""
    for position in range(len(project.versions)):
        for raw in project.files(position):
            file = PackageFile._make(raw)
            if file.is_wheel and file.yanked is None:
                sha256 = dict(file.hashes).get("sha256")
                yield from wheel_files(project.name, file.name, file_address(project, raw), sha256)


def days_of(project: Project) -> dict[str, str]:
    """Return the day (UTC) on which the first file of each version was uploaded, if the index has it."""
    days: dict[str, str] = {}
    for position, version in enumerate(project.versions):
        moments = (PackageFile._make(raw).upload_time for raw in project.files(position))
        found = sorted(day for moment in moments if moment and (day := _day(moment)))
        if found:
            days[str(Version(version))] = found[0]
    return days


def _day(moment: str) -> str | None:
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return found.astimezone(UTC).date().isoformat() if found.tzinfo else found.date().isoformat()


@contextmanager
def errors_of(file: WheelFile, member: str = "") -> Iterator[None]:
    """Turn errors about a wheel, or a member of it, into a ReleaseError that names it."""
    what = f"{file.filename}: {member}" if member else file.filename
    try:
        yield
    except BrokenArchiveError as error:
        raise ReleaseError(f"{what} cannot be read: {error}") from error
    except OutsideError as error:
        raise ReleaseError(f"{what} cannot be read: {error.message}") from error
