"""Report every second how much a running program has written, how fast and for how long.

On Linux this is what the kernel counts for the process and those that it starts. Installers unpack while they download,
so the number grows with the download, up to the unpacked size. Other systems do not count it; there only the time is
reported.
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
    """Report to ``progress`` how far the program ``pid`` is with what it is ``doing``, until the block is left."""
    ended, started = Event(), monotonic()

    def report() -> None:
        before = 0
        while not ended.wait(1):
            written = max(before, _written_by(pid))  # programs that have ended are no longer counted
            amount = f", {size_text(written)} written, {size_text(written - before)}/s" if written else ""
            before = written
            progress(f"{doing}{amount}, {monotonic() - started:.0f} s")

    progress(doing)
    thread = Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def packages_text(sizes: Sequence[int | None]) -> str:
    """``3 packages of 2.1 GB``, from their sizes in bytes; without the total if one is unknown."""
    known = [it for it in sizes if it is not None]
    size = f" of {size_text(sum(known))}" if known and len(known) == len(sizes) else ""
    return f"{len(sizes)} package{'' if len(sizes) == 1 else 's'}{size}"


def _written_by(pid: int) -> int:
    """Bytes written by the program and by those that it started; 0 if they are not counted."""
    folder = Path("/proc") / str(pid)
    try:
        lines = (folder / "io").read_text().splitlines()
        children = (folder / "task" / str(pid) / "children").read_text().split()
    except OSError:
        return 0
    own = sum(int(it.removeprefix(_WRITTEN)) for it in lines if it.startswith(_WRITTEN))
    return own + sum(_written_by(int(it)) for it in children)
