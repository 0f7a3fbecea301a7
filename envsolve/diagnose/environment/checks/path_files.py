"""The .pth files beside packages: directories that no longer exist, lines that fail at every start."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.diagnose.environment.checks.remains import module_directories
from envsolve.diagnose.environment.from_files import LONGEST_PATH_FILE, module_lines
from envsolve.diagnose.environment.reading import bytes_of, names_of
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity

_IMPORT = re.compile(r"import\s+(\w+)\s*(?:[;,].*)?\Z")
_EDITABLE = re.compile(r"_{1,2}editable")


class _Fault(NamedTuple):
    """What is wrong with a .pth file: it is ``closed`` or ``binary``, or a directory or ``module`` is ``missing``."""

    kind: str
    severity: Severity
    value: str = ""
    editable: bool = False


def path_files(scene: Scene) -> Iterator[Finding]:
    """One finding for each .pth file that does not work."""
    for directory in module_directories(scene):
        for name in names_of(directory):
            if name.endswith(".pth") and not name.startswith("."):
                faults = list(_faults(directory / name, scene))
                if faults:
                    yield _broken(directory / name, faults, scene)


def _faults(file: Path, scene: Scene) -> Iterator[_Fault]:
    content = bytes_of(file, LONGEST_PATH_FILE)
    if content is None:
        yield _Fault("closed", Severity.INFO)
        return
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield _Fault("binary", Severity.WARNING)
        return
    for line in module_lines(file):
        if not os.path.exists(file.parent / line):  # noqa: PTH110 - never raises
            editable = _EDITABLE.match(file.name) is not None
            yield _Fault("missing", Severity.WARNING if editable else Severity.INFO, line, editable=editable)
    for line in content.decode("utf-8-sig").splitlines():
        match = _IMPORT.match(line)
        if match is not None and not _is_there(match[1], scene):
            yield _Fault("module", Severity.WARNING, match[1])


def _is_there(module: str, scene: Scene) -> bool:
    if module in sys.stdlib_module_names:
        return True
    search = scene.inventory.search_path
    return any(
        os.path.exists(directory / f"{module}.py")  # noqa: PTH110 - never raises
        or os.path.isdir(directory / module)  # noqa: PTH112 - never raises
        or any(name.startswith(f"{module}.") and name.endswith((".so", ".pyd")) for name in names_of(directory))
        for directory in search
    )


def _broken(file: Path, faults: list[_Fault], scene: Scene) -> Finding:
    first = faults[0]
    return scene.finding(
        "path-file-broken",
        [f"{file}: {it.kind}: {it.value}" if it.value else f"{file}: {it.kind}" for it in faults],
        about=file.name,
        severity=min((it.severity for it in faults), key=lambda it: it.rank),
        path=str(file),
        library=file.name,
        fault=first.kind,
        directory=first.value,
        module=first.value,
        editable=first.editable,
    )
