"""The .pth files beside packages: directories that they add and that are gone, lines that fail at every start."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from envsolve.diagnose.environment.checks.remains import module_directories
from envsolve.diagnose.environment.from_files import LONGEST_PATH_FILE, module_lines
from envsolve.diagnose.environment.reading import bytes_of, names_of
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity

_IMPORT = re.compile(r"import\s+(\w+)\s*(?:[;,].*)?\Z")
_EDITABLE = re.compile(r"_{1,2}editable")


def path_files(scene: Scene) -> Iterator[Finding]:
    """One finding for each .pth file that does not do what it is there for."""
    for directory in module_directories(scene):
        for name in names_of(directory):
            if name.endswith(".pth") and not name.startswith("."):
                faults = list(_faults(directory / name, scene))
                if faults:
                    yield _broken(directory / name, faults)


def _faults(file: Path, scene: Scene) -> Iterator[tuple[Severity, str]]:
    content = bytes_of(file, LONGEST_PATH_FILE)
    if content is None:
        yield Severity.INFO, "it cannot be read"
        return
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield Severity.WARNING, "it is not text, and Python leaves it out or stops at it"
        return
    for line in module_lines(file):
        if not os.path.exists(file.parent / line):  # noqa: PTH110 - never raises
            editable = _EDITABLE.match(file.name) is not None
            what = ", so that the package that was installed from there cannot be imported" if editable else ""
            yield Severity.WARNING if editable else Severity.INFO, f"{line} is not there{what}"
    for line in content.decode("utf-8-sig").splitlines():
        match = _IMPORT.match(line)
        if match is not None and not _is_there(match[1], scene):
            yield (
                Severity.WARNING,
                f"its line {line[:80]!r} fails at every start of Python: there is no module {match[1]}",
            )


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


def _broken(file: Path, faults: list[tuple[Severity, str]]) -> Finding:
    worst = min((severity for severity, _ in faults), key=list(Severity).index)
    return Finding(
        "path-file-broken",
        f"{file.name} leads nowhere",
        worst,
        f"{file} adds to where Python looks for modules, and {faults[0][1]}",
        "remove the file, or install again what it belongs to",
        evidence=tuple(f"{file}: {text}" for _, text in faults[:8]),
        about=file.name,
    )
