"""The GPU code in files, each read once."""

from __future__ import annotations

from pathlib import Path

from envsolve.binary.library_code import read_device_code
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.diagnose.environment.reading import real
from envsolve.model.capability import DeviceCode


class Codes:
    """The device code of files; empty for unreadable ones, which have another finding."""

    def __init__(self) -> None:
        self._read: dict[str, DeviceCode] = {}

    def of(self, path: Path | str) -> DeviceCode:
        """The machine code and PTX in the file at ``path``."""
        place = real(path)
        if place not in self._read:
            try:
                self._read[place] = read_device_code(Path(place))
            except UnreadableLibraryError:
                self._read[place] = DeviceCode(())
        return self._read[place]

    def in_files(self, paths: tuple[Path, ...]) -> dict[Path, DeviceCode]:
        """Those of ``paths`` that contain device code, with it."""
        found = {path: self.of(path) for path in paths}
        return {path: code for path, code in found.items() if code.sass or code.ptx}


def listed(code: DeviceCode) -> str:
    """``7.5, 8.0 and PTX for 9.0``."""
    sass = ", ".join(map(str, code.sass))
    ptx = "PTX for " + ", ".join(map(str, code.ptx)) if code.ptx else ""
    return " and ".join(part for part in (sass, ptx) if part)
