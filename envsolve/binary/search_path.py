"""The directories in a library path, as the loader of glibc reads ``DT_RPATH``, ``DT_RUNPATH`` and LD_LIBRARY_PATH.

Rules from glibc's ``elf/dl-load.c`` (fillin_rpath, decompose_rpath, is_dst).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from envsolve.binary.loader_system import LoaderSystem

_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
"""``$ORIGIN`` and ``${ORIGIN}``; ``$ORIGINAL`` is a directory of that name."""


def expand(text: str, origin: str, system: LoaderSystem) -> str:
    """``text`` with $ORIGIN, $LIB and $PLATFORM replaced; ``origin`` is the directory of the object that holds it."""
    values = {"ORIGIN": origin, "LIB": system.lib, "PLATFORM": system.platform}
    return _TOKEN.sub(lambda match: values[match[1] or match[2]], text)


def entries(path: str, separators: str, origin: str, system: LoaderSystem) -> tuple[str, ...]:
    """The directories of a path, each once, with one slash at the end, so that a file name can be appended.

    An empty entry is the current directory and stays empty. An empty path has no entry.
    """
    if not path:
        return ()
    found = (expand(entry, origin, system) for entry in re.split(f"[{separators}]", path))
    return tuple(dict.fromkeys(f"{entry.rstrip('/')}/" if entry else "" for entry in found))


def candidates(directories: Iterable[str], name: str, system: LoaderSystem) -> Iterator[str]:
    """The files that are tried for ``name``: in each directory first those for this processor."""
    for directory in directories:
        for subdirectory in system.hwcaps:
            yield f"{directory}glibc-hwcaps/{subdirectory}/{name}"
        yield f"{directory}{name}"


def origin_of(path: str, current_directory: str) -> str:
    """The value of $ORIGIN for a file that was found as ``path``. Links are not followed."""
    return os.path.dirname(os.path.join(current_directory, path)) or "/"  # noqa: PTH118, PTH120 - keeps "..", as glibc
