"""The DLLs that a Windows library needs: at once (imports) and later (delay-loaded)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.binary.unreadable import Damage, UnreadableLibraryError, unreadable
from envsolve.boundary.files import open_regular

if TYPE_CHECKING:
    from pefile import PE

_MACHINES = {0x14C: "x86", 0x8664: "x86-64", 0xAA64: "arm64"}


class Dll(NamedTuple):
    """The imports of a DLL, in order and as written; ``machine`` is x86-64, arm64 or x86."""

    path: Path
    machine: str
    imports: tuple[str, ...]
    delayed: tuple[str, ...]


def read_dll(path: Path) -> Dll:
    """The DLL at ``path``. Raises UnreadableLibraryError, also if its sections extend beyond the file."""
    with opened_dll(path) as dll:
        size = len(dll.__data__)
        whole = max((it.PointerToRawData + it.SizeOfRawData for it in dll.sections), default=0)
        if size < whole:
            detail = f"ends after {size} bytes, but its tables require {whole}"
            raise UnreadableLibraryError(path, Damage.TRUNCATED, detail)
        directories = ("IMAGE_DIRECTORY_ENTRY_IMPORT", "IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT")
        import pefile

        dll.parse_data_directories(directories=[pefile.DIRECTORY_ENTRY[name] for name in directories])
        machine = dll.FILE_HEADER.Machine
        return Dll(
            path=path,
            machine=_MACHINES.get(machine, f"{machine:#x}"),
            imports=_names(getattr(dll, "DIRECTORY_ENTRY_IMPORT", ())),
            delayed=_names(getattr(dll, "DIRECTORY_ENTRY_DELAY_IMPORT", ())),
        )


@contextmanager
def opened_dll(path: Path) -> Iterator[PE]:
    """The headers of the DLL at ``path``, mapped and not read. Raises UnreadableLibraryError."""
    import pefile

    try:
        with open_regular(path) as file:
            head = file.read(2)
        if not head:
            raise UnreadableLibraryError(path, Damage.EMPTY, "is empty")
        if head != b"MZ":
            raise UnreadableLibraryError(path, Damage.NO_LIBRARY, f"is not a library: it begins with {head!r}")
        dll = pefile.PE(str(path), fast_load=True)
    except OSError as error:
        raise unreadable(path, error) from error
    except pefile.PEFormatError as error:
        raise UnreadableLibraryError(path, Damage.TRUNCATED, f"has incomplete headers: {error.value}") from error
    try:
        yield dll
    except (pefile.PEFormatError, struct.error) as error:
        raise UnreadableLibraryError(path, Damage.TRUNCATED, f"its tables cannot be read: {error}") from error
    finally:
        dll.close()


def _names(entries: Iterable[object]) -> tuple[str, ...]:
    return tuple(getattr(entry, "dll").decode("ascii", "replace") for entry in entries)  # noqa: B009 - made by pefile
