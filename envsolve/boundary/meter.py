"""How much a running program has written, how fast and for how long, reported every second.

What an installer writes is what Linux counts for its process and those that it starts. It unpacks while it downloads,
so this grows with the download, to the unpacked size. Other systems do not count it: there only the time is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from envsolve.boundary.display import size_text

_WRITTEN = "wchar:"


@contextmanager
def metered(pid: int, doing: str, progress: Callable[[str], None]) -> Iterator[None]:
    """Tell ``progress`` how far the program ``pid`` is with what it is ``doing``, until this is left."""
    ended, started = Event(), monotonic()

    def tell() -> None:
        before = 0
        while not ended.wait(1):
            written = max(before, _written_by(pid))  # one that has ended is not counted any more
            amount = f", {size_text(written)} written, {size_text(written - before)}/s" if written else ""
            before = written
            progress(f"{doing}{amount}, {monotonic() - started:.0f} s")

    progress(doing)
    thread = Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def packages_text(sizes: Sequence[int | None]) -> str:
    """``3 packages of 2.1 GB``, from their sizes in bytes; without that where one has none."""
    known = [it for it in sizes if it is not None]
    size = f" of {size_text(sum(known))}" if known and len(known) == len(sizes) else ""
    return f"{len(sizes)} package{'' if len(sizes) == 1 else 's'}{size}"


def _written_by(pid: int) -> int:
    """Bytes that the program has written, and those that it started; 0 where nothing says so."""
    folder = Path("/proc") / str(pid)
    try:
        lines = (folder / "io").read_text().splitlines()
        children = (folder / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return 0
    own = sum(int(it.removeprefix(_WRITTEN)) for it in lines if it.startswith(_WRITTEN))
    return own + sum(_written_by(int(it)) for it in children)
