"""The C++ runtime of Visual Studio, which frameworks on Windows are linked to and Windows does not include.

Python includes vcruntime140.dll. msvcp140.dll and, for code of Visual Studio 2019 and newer, vcruntime140_1.dll come
with the redistributable package, with conda's vc14_runtime, or with the framework (onnxruntime itself looks for all
three, ``onnxruntime/capi/onnxruntime_validation.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from envsolve.diagnose.environment.reading import names_of
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding

_NEEDED = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll")


def visual_c_runtime(scene: Scene) -> Iterator[Finding]:
    """One finding if a part of the runtime is neither beside Python, nor beside a framework, nor in the system."""
    if not scene.platform.is_windows or not scene.files.frameworks:
        return
    root = scene.environ.get("SystemRoot") or scene.environ.get("WINDIR") or r"C:\Windows"
    shared = (
        Path(root, "System32"),
        scene.inventory.executable.parent,
        scene.inventory.prefix,
        scene.inventory.prefix / "Library/bin",
    )
    shared_names = {name.casefold() for directory in shared for name in names_of(directory)}
    for framework in scene.files.frameworks:
        own = {
            name.casefold()
            for root in framework.files(*framework.libraries.dll_roots)
            for name in names_of(root.parent)
        }
        lacking = [name for name in _NEEDED if name not in shared_names | own]
        if lacking:
            yield scene.finding(
                "visual-c-runtime-missing",
                [f"looked in {directory}" for directory in shared],
                about=framework,
                libraries=", ".join(lacking),
            )
