"""``--format requirements``: hashed pins that pip, uv and pip-tools install, each with what asked for it and why.

The file alone is enough: it names the indexes it needs, and the hashes of every file that the target may install.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.boundary.display import one_line
from envsolve.lockfile.python_lock import FACTS_TABLE, PythonLock, facts_of, header_lines
from envsolve.lockfile.sound_pins import sound_pins, sound_url, strong_hashes
from envsolve.lockfile.toml import table_lines
from envsolve.model.package import Closure, Pin


def requirements_txt(lock: PythonLock) -> str:
    """The content of the file, the same bytes for the same lock.

    Raises OutsideError ``no-hash`` for a file without a strong hash, ``unsound-package`` for what would break a line.
    """
    return "\n".join(_lines(lock)) + "\n"


def _lines(lock: PythonLock) -> Iterator[str]:
    yield from header_lines(lock)
    if lock.closure.indexes:
        yield "# From several indexes: uv looks into all of them with --index-strategy unsafe-best-match, pip always."
    facts = facts_of(lock)
    if facts:
        yield "#"
        yield f"# {FACTS_TABLE}"
    for line in table_lines(facts):
        yield f"# {line}"
    yield ""
    yield from requirement_lines(lock)


def requirement_lines(lock: PythonLock) -> Iterator[str]:
    """What an installer reads: the indexes and the pins. Raises OutsideError as :func:`requirements_txt`."""
    options = index_options(lock)
    if options:
        yield from options
        yield ""
    for pin in sound_pins(lock.closure.pins):
        yield from _requirement(pin, lock.closure)


def index_options(lock: PythonLock) -> tuple[str, ...]:
    """The options that name the indexes; none where an installer looks at the one it needs without being told."""
    closure = lock.closure
    options = [*([] if lock.default_is_plain else [f"--index-url {sound_url(closure.default_index)}"])]
    options += [f"--extra-index-url {sound_url(index)}" for index in closure.indexes]
    return tuple(dict.fromkeys(options))


def _requirement(pin: Pin, closure: Closure) -> Iterator[str]:
    files = pin.files if pin.index_url is not None else pin.files[:1]
    hashes = {f"{algorithm}:{digest}" for file in files for algorithm, digest in strong_hashes(pin, file)}
    asked = f"{pin.name}=={pin.version}" if pin.index_url is not None else f"{pin.name} @ {sound_url(files[0].url)}"
    marker = f" ; {one_line(pin.marker)}" if pin.marker else ""
    yield " \\\n".join([f"{asked}{marker}", *(f"    --hash={digest}" for digest in sorted(hashes))])
    yield from _via(pin)
    for reason in pin.because:
        yield f"    {one_line(f'# because: {reason}')}"
    if pin.index_url not in (None, closure.default_index):
        yield f"    # from {sound_url(pin.index_url)}"


def _via(pin: Pin) -> Iterator[str]:
    """What requires it, as pip-tools writes it: on the line where it is one, else below it."""
    named = [one_line(source) for source in sorted(pin.via)]
    if len(named) == 1:
        yield f"    # via {named[0]}"
    elif named:
        yield "    # via"
        for source in named:
            yield f"    #   {source}"
