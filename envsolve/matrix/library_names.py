"""Which CUDA library a file name stands for, and which packages bring it, from a parsed libraries.toml.

A file name is not a CUDA version: libcusparse.so.12 is the name in CUDA 12 and in CUDA 13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple


class NamedLibrary(NamedTuple):
    """A library under one of its names: ``name`` is the matrix's, ``cuda`` the toolkit, None for what is outside it.

    ``pypi`` and ``conda`` are packages that ship it, as far as the matrix knows any.
    """

    name: str
    cuda: str | None
    pypi: tuple[str, ...]
    conda: tuple[str, ...]


class LibraryNames:
    """Looks up file names; rows are taken as they are, :mod:`envsolve.matrix.laws` judges them."""

    def __init__(self, document: Mapping[str, object]) -> None:
        rows = document.get("library")
        self._rows: Sequence[Mapping[str, object]] = rows if isinstance(rows, list) else []

    def of_file(self, file_name: str) -> tuple[NamedLibrary, ...]:
        """Every library that ``file_name`` is known as, the newest toolkit first; DLLs in any case."""
        return tuple(self._by_file.get(file_name.lower(), ()))

    def file(self, name: str, cuda: str, *, windows: bool = False) -> str | None:
        """The file name of the library ``name`` in the toolkit ``cuda``, ``12.5``, or in its newest minor, ``12``."""
        column = "windows" if windows else "linux"
        for row in self._rows:
            version = str(row.get("cuda", ""))
            if row.get("name") == name and cuda in (version, version.partition(".")[0]) and row.get(column):
                return str(row[column])
        return None

    def packages(self, file_name: str, *, conda: bool, cuda_major: str | None = None) -> tuple[str, ...]:
        """The packages that bring ``file_name``; of those for several majors the ones for ``cuda_major``, if known."""
        rows = self.of_file(file_name)
        fitting = [row for row in rows if row.cuda is not None and row.cuda.partition(".")[0] == cuda_major]
        found = dict.fromkeys(package for row in fitting or rows for package in (row.conda if conda else row.pypi))
        named = [name for name in found if cuda_major is not None and name.endswith(f"-cu{cuda_major}")]
        return tuple(named or found)

    def cuda_majors(self, file_name: str) -> frozenset[str]:
        """The majors of CUDA in which a library has this name; none for what is outside the toolkit."""
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
