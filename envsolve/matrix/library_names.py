"""The CUDA library of a file name, and the packages that contain it, from a parsed libraries.toml.

A file name is not a CUDA version: libcusparse.so.12 is the name in CUDA 12 and in CUDA 13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple


class NamedLibrary(NamedTuple):
    """A library under one of its file names.

    ``name`` is the matrix's, ``cuda`` the toolkit, None if it is part of none.

    ``pypi`` and ``conda`` are known packages that ship it.
    """

    name: str
    cuda: str | None
    pypi: tuple[str, ...]
    conda: tuple[str, ...]


class LibraryNames:
    """Looks up file names. Rows are not checked here: :mod:`envsolve.matrix.laws` does that."""

    def __init__(self, document: Mapping[str, object]) -> None:
        rows = document.get("library")
        self._rows: Sequence[Mapping[str, object]] = rows if isinstance(rows, list) else []

    def of_file(self, file_name: str) -> tuple[NamedLibrary, ...]:
        """Return every library with the name ``file_name``, newest toolkit first. DLL names ignore case."""
        return tuple(self._by_file.get(file_name.lower(), ()))

    def file(self, name: str, cuda: str) -> str | None:
        """Return the name of a library's file on Linux, for the toolkit ``12.5``, or ``12`` for the newest 12."""
        for row in self._rows:
            version = str(row.get("cuda", ""))
            if row.get("name") == name and cuda in (version, version.partition(".")[0]) and row.get("linux"):
                return str(row["linux"])
        return None

    def packages(self, file_name: str, *, conda: bool, cuda_major: str | None = None) -> tuple[str, ...]:
        """Return the packages with ``file_name``. If there are several majors, those for ``cuda_major`` if known."""
        rows = self.of_file(file_name)
        fitting = [row for row in rows if row.cuda is not None and row.cuda.partition(".")[0] == cuda_major]
        found = dict.fromkeys(package for row in fitting or rows for package in (row.conda if conda else row.pypi))
        named = [name for name in found if cuda_major is not None and name.endswith(f"-cu{cuda_major}")]
        return tuple(named or found)

    def cuda_majors(self, file_name: str) -> frozenset[str]:
        """Return the CUDA majors in which a library has this name; none if it is not part of the toolkit."""
        return frozenset(row.cuda.partition(".")[0] for row in self.of_file(file_name) if row.cuda is not None)

    @cached_property
    def _by_file(self) -> Mapping[str, list[NamedLibrary]]:
        found: dict[str, list[NamedLibrary]] = defaultdict(list)
        for row in self._rows:
            library = NamedLibrary(
                str(row.get("name")),
                str(row["cuda"]) if "cuda" in row else None,
                _texts(row.get("pypi")),
                _texts(row.get("conda")),
            )
            for column in ("linux", "windows"):
                if row.get(column):
                    found[str(row[column]).lower()].append(library)
        return found


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)
