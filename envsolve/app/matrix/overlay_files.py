"""The files of the rows that were read on this machine: only one command at a time writes or removes them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from envsolve.boundary.busy import locked
from envsolve.boundary.document import Document
from envsolve.boundary.files import replace_file
from envsolve.errors import Hint, OutsideError
from envsolve.matrix.load import overlay_directory
from envsolve.matrix.overlay import Overlay, opened
from envsolve.model.note import Note

Making = Callable[[Document | None], Document]
"""Makes a file from the existing one; None if there is none that can be used."""
_SECONDS = 20.0
"""The timeout in seconds for waiting for another command; writing takes at most one second."""
_ANOTHER_PLACE = Hint("choose another directory with ENVSOLVE_DATA_DIR")


def directory_here() -> Path:
    """The directory of the rows that were read on this machine. Raises OutsideError for a user without a home."""
    directory = overlay_directory()
    if directory is None:
        raise OutsideError("no-home", "there is no data directory: no home is known", hints=(_ANOTHER_PLACE,))
    return directory


def require_writable(directory: Path) -> None:
    """Raise OutsideError if no rows can be written, before reading them, which may take minutes."""
    with _one_at_a_time(directory), tempfile.TemporaryFile(dir=directory if directory.exists() else directory.parent):
        pass


def write(files: Mapping[str, Making], directory: Path) -> tuple[Note, ...]:
    """Write each of ``files`` atomically, based on the file that exists at that time.

    A file that cannot be used is renamed, with a note. Raises OutsideError if the disk fails.
    """
    from tomlkit import dumps

    notes = []
    with _one_at_a_time(directory):
        there = Overlay(opened(directory)).documents
        for name, making in files.items():
            path = directory / f"{name}.toml"
            path.parent.mkdir(parents=True, exist_ok=True)
            if name not in there and path.exists():
                aside = path.replace(path.with_suffix(".toml.unusable"))
                text = f"{path.name} could not be used, and is kept as {aside}"
                notes.append(Note("overlay-set-aside", text).about(file=f"{name}.toml"))
            replace_file(path, dumps(making(there.get(name))).encode())
    return tuple(notes)


def clear(directory: Path) -> bool:
    """Remove the rows that were read here. Returns whether there were any. Raises OutsideError if that fails."""
    try:
        directory.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _not_written(directory, error) from error
    with _one_at_a_time(directory):
        shutil.rmtree(directory)
    return True


@contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """Wait for other commands that write in ``directory``. Raises OutsideError if the disk fails."""
    hint = Hint("run the command again when it has ended")
    busy = OutsideError("data-busy", f"another command is writing in {directory}", hints=(hint,))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with locked(directory.parent, busy, _SECONDS):
            yield
    except OSError as error:
        raise _not_written(directory, error) from error


def _not_written(directory: Path, error: OSError) -> OutsideError:
    message = f"{directory} cannot be written: {error.strerror or error}"
    return OutsideError("data-failed", message, hints=(_ANOTHER_PLACE,))
