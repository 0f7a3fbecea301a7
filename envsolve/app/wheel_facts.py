"""What the wheels of an index hold of CUDA: read from their bytes, at a distance, and kept by their digest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from envsolve.binary.streamed_library import StreamedLibrary, read_stream
from envsolve.errors import OutsideError
from envsolve.index.fetch import Fetcher
from envsolve.index.kept import read_kept, written
from envsolve.index.one_index import Shelf
from envsolve.index.wheel_member import BrokenArchiveError, RemoteWheel
from envsolve.model.capability import CodeTarget, DeviceCode
from envsolve.model.package import PackageFile

_LIBRARY = re.compile(r".*\.(?:so(?:\.\d+)*|pyd|dll)", re.IGNORECASE)
_SAYS_CUDA = re.compile(r"cuda|cublas|cudnn|cufft|nvrtc|nccl|gpu|_cu1\d|-cu1\d", re.IGNORECASE)
_BUNDLED = re.compile(r"(?:^|/)(?:lib)?(?:cudart|cublas|cublasLt|nvrtc)(?:64_|[-.])[^/]*\Z")
"""A library of CUDA that is part of the wheel."""
_BUCKET = "wheel_facts"
_EDITION = 1
"""A new one where something else is read."""
_LARGEST = 4_000_000_000
"""Bytes of the libraries of a wheel, unpacked; those of PyTorch have 3 GB."""
_AT_ONCE = 4


class WheelFacts(NamedTuple):
    """What the libraries in a wheel say together.

    ``sass`` and ``ptx`` are the targets of their kernels, ``cuda`` the majors of the CUDA libraries that they load and
    that are not part of the wheel, ``linked_cuda`` that of a runtime that is part of them. ``numpy`` is the oldest
    major of NumPy that one of them was compiled with. ``unread`` are the bytes of libraries, packed, that were left
    out.
    """

    sass: tuple[str, ...] = ()
    ptx: tuple[str, ...] = ()
    cuda: tuple[int, ...] = ()
    linked_cuda: int | None = None
    numpy: int | None = None
    unread: int = 0

    @property
    def code(self) -> DeviceCode | None:
        """The kernels; None where it has none."""
        if not self.sass and not self.ptx:
            return None
        return DeviceCode(tuple(map(CodeTarget.parse, self.sass)), tuple(map(CodeTarget.parse, self.ptx)))


class Reading(NamedTuple):
    """How a wheel is read: its libraries up to ``budget`` bytes in the archive, smallest first.

    With ``named`` only those are read whose path speaks of CUDA or of a GPU.
    """

    file: PackageFile
    budget: int
    named: bool


class WheelReader:
    """Reads wheels over ``fetcher``, and keeps what they hold on ``shelf``. Nothing is fetched ``offline``."""

    def __init__(self, fetcher: Fetcher, shelf: Shelf, *, offline: bool = False) -> None:
        self._fetcher, self._shelf, self._offline = fetcher, shelf, offline

    def read(self, readings: Iterable[Reading], progress: Callable[[str], None]) -> list[WheelFacts | None]:
        """What each wheel holds; None where it cannot be read. ``progress`` hears the name of a file."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(lambda it: self._facts(it, progress), readings))

    def _facts(self, reading: Reading, progress: Callable[[str], None]) -> WheelFacts | None:
        digest = dict(reading.file.hashes).get("sha256")
        keys = [f"{_EDITION} {digest} {budget} {named}" for budget, named in _that_do_for(reading)] if digest else []
        for key in keys:
            kept = read_kept(self._shelf.read(_BUCKET, key), WheelFacts)
            if kept is not None:
                return kept
        if self._offline:
            return None
        progress(reading.file.name)
        try:
            with RemoteWheel(self._fetcher, reading.file) as wheel:
                found = facts_in(wheel.members, wheel.chunks, reading.budget, named=reading.named)
        except (BrokenArchiveError, OutsideError, ValueError):  # whoever installs it will hear of it
            return None
        if keys:
            self._shelf.write(_BUCKET, keys[0], written(found))
        return found


def _that_do_for(reading: Reading) -> Iterator[tuple[int, bool]]:
    """The ways of reading whose result answers ``reading``: itself, then the one that leaves nothing out."""
    yield reading.budget, reading.named
    yield _LARGEST, False


READ_ALL = _LARGEST
"""A budget that leaves nothing out."""


def facts_in(
    members: Mapping[str, int], chunks: Callable[[str], Iterator[bytes]], budget: int, *, named: bool = False
) -> WheelFacts:
    """What the libraries of a wheel hold; see Reading. Raises what ``chunks`` does, and ValueError for damaged code."""
    found: list[StreamedLibrary] = []
    left, unread = budget, 0
    for name in sorted(libraries_in(members), key=lambda it: (members[it], it)):
        if named and not _SAYS_CUDA.search(name):
            continue
        if members[name] > left:
            unread += members[name]
            continue
        left -= members[name]
        found.append(read_stream(chunks(name)))
    return together(found, members, unread)


def libraries_in(members: Iterable[str]) -> Iterator[str]:
    """The files of a wheel that are libraries by their names."""
    return (it for it in members if _LIBRARY.fullmatch(it))


def together(found: Sequence[StreamedLibrary], members: Iterable[str], unread: int = 0) -> WheelFacts:
    """What the libraries of a wheel say, whose files are ``members``."""
    targets = [it.code for it in found]
    bundled = any(_BUNDLED.search(it) for it in members)
    return WheelFacts(
        tuple(str(it) for it in sorted({target for code in targets for target in code.sass})),
        tuple(str(it) for it in sorted({target for code in targets for target in code.ptx})),
        () if bundled else tuple(sorted({major for it in found for major in it.cuda})),
        max((it.linked_cuda for it in found if it.linked_cuda is not None), default=None),
        min((it.numpy for it in found if it.numpy is not None), default=None),
        unread,
    )
