"""Jupyter's kernels: those whose Python is gone, and those in this environment that start another's.

The documentation of jupyter_core describes where kernels are searched (``jupyter --paths``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, json_value
from envsolve.boundary.reading import fault_of, is_directory, lies_in, names_of, text_of
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding

SYSTEM = (Path("/usr/local/share/jupyter"), Path("/usr/share/jupyter"))
_LONGEST = 64 * 1024
_MOST = 100
"""The number of kernels in one directory that are examined."""


class Kernel(NamedTuple):
    """A kernel for Python: its folder, the program it starts, and whether it is in the environment itself."""

    folder: Path
    program: str
    is_own: bool

    @property
    def name(self) -> str:
        """Its name in Jupyter."""
        return self.folder.name

    @property
    def file(self) -> Path:
        """The file that describes it."""
        return self.folder / "kernel.json"

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts of findings about it."""
        return {"kernel": self.name, "path": str(self.file), "program": self.program}


def kernels(scene: Scene) -> Iterator[Finding]:
    """One finding for each kernel whose program is gone, or that is in this environment and starts another's."""
    for kernel in _kernels(scene):
        if not Path(kernel.program).is_absolute():  # the Python that Jupyter itself runs on
            continue
        fault = fault_of(Path(kernel.program))
        seen = f"{kernel.file}: argv[0] is {kernel.program}"
        if fault is not None:
            evidence = (seen, f"{kernel.program} {fault}")
            yield scene.finding("notebook-kernel-broken", evidence, about=kernel, reason=fault)
        elif (
            kernel.is_own
            and Path(kernel.program).name.startswith("python")
            and not lies_in(Path(kernel.program), scene.inventory.prefix)
        ):
            yield scene.finding("notebook-kernel-elsewhere", (seen,), about=kernel)


def _kernels(scene: Scene) -> Iterator[Kernel]:
    own = scene.inventory.prefix / "share/jupyter" if scene.inventory.owns_prefix else None
    for directory in dict.fromkeys(_directories(scene)):
        for name in names_of(directory / "kernels")[:_MOST]:
            folder = directory / "kernels" / name
            program = _program(folder / "kernel.json")
            if program is not None:
                yield Kernel(folder, program, directory == own)


def _directories(scene: Scene) -> Iterator[Path]:
    environ = scene.shell
    yield from (Path(entry) for entry in environ.get("JUPYTER_PATH", "").split(os.pathsep) if entry)
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if environ.get("JUPYTER_DATA_DIR"):
        yield Path(environ["JUPYTER_DATA_DIR"])
    elif environ.get("APPDATA") and scene.platform.is_windows:
        yield Path(environ["APPDATA"], "jupyter")
    elif home:
        yield from (Path(home, ".local/share/jupyter"), Path(home, "Library/Jupyter"))
    yield scene.inventory.prefix / "share/jupyter"
    yield from SYSTEM


def _program(file: Path) -> str | None:
    """The program that a Python kernel starts; None for another language, and for a file of another kind."""
    try:
        spec = json_value(text_of(file, _LONGEST) or "null") if is_directory(file.parent) else None
    except FileError:
        return None
    if not isinstance(spec, dict) or str(spec.get("language", "python")).casefold() != "python":
        return None
    command = spec.get("argv")
    return command[0] if isinstance(command, list) and command and isinstance(command[0], str) else None
