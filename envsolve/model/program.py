"""Which program a name on PATH stands for, never one of the current directory: that may be somebody else's checkout.

Windows looks there first, and so does ``shutil.which``; elsewhere an empty or relative entry of PATH says the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The first program called ``name`` in the absolute entries of PATH; None where there is none."""
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        for suffix in _suffixes(environ):
            path = Path(directory, f"{name}{suffix}")
            if path.is_absolute() and os.path.isfile(path) and os.access(path, os.X_OK):  # noqa: PTH113 - never raises
                return str(path)
    return None


def _suffixes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """What may stand behind the name: on Windows the kinds of programs there are."""
    if sys.platform == "win32":
        return ("", *environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep))
    return ("",)
