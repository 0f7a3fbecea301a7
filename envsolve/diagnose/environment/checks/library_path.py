"""What besides a library's own path decides what is loaded: LD_LIBRARY_PATH, LD_PRELOAD, the current directory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from envsolve.binary.lookup import Rule
from envsolve.boundary.display import listed
from envsolve.boundary.reading import is_file, names_of, placed, real, shown
from envsolve.diagnose.environment.checks.libraries import foreign
from envsolve.diagnose.environment.scene import Scene
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import is_of_driver

_SEPARATORS = re.compile(r"[ :]")


def unused_library_path(scene: Scene) -> Iterator[Finding]:
    """CUDA libraries on LD_LIBRARY_PATH that no framework here loads."""
    if scene.loads.library_path is None or not scene.loads.with_path:
        return
    toolkits = {directory: names for directory in scene.loads.directories if (names := _toolkit_names(Path(directory)))}
    lookups = [it for loading in scene.loads.with_path for it in loading.lookups if it.rule is Rule.LIBRARY_PATH]
    ended = (it.path or (it.failure.path if it.failure is not None else None) for it in lookups)
    taken = {os.path.dirname(placed(path)) for path in ended if path is not None}  # noqa: PTH120 - the loader's text
    unused = {it: names for it, names in toolkits.items() if real(it) not in taken}
    parts = {it: found for it, names in unused.items() if (found := _cudnn_parts(it, names, scene))}
    uses_cuda = next((build for build in scene.builds if build.cuda is not None), None)
    is_of_cudnn = bool(parts) and uses_cuda is not None
    meant = parts if is_of_cudnn else unused
    if not meant:
        return
    evidence = (
        f"LD_LIBRARY_PATH={scene.loads.library_path}",
        *(f"{it}: {listed(of)}" for it, of in meant.items()),
    )
    facts = {
        **scene.loads.facts_without(meant),
        "libraries": listed(name for names in meant.values() for name in names),
    }
    if is_of_cudnn:
        directory, names = next(iter(parts.items()))
        version = scene.owners.version_of(Path(directory, names[0]))
        yield scene.finding("cudnn-parts-on-library-path", evidence, about=uses_cuda, other_version=version, **facts)
    else:
        yield scene.finding("library-path-unused", evidence, about="LD_LIBRARY_PATH", **facts)


def hidden_copies(scene: Scene) -> Iterator[Finding]:
    """Further copies of loaded libraries on the search path of the loader.

    Copies on LD_LIBRARY_PATH, and those that it hides, have findings of their own.
    """
    from_elsewhere = {it.name for it in foreign(scene)}
    listed_there = {real(it) for it in scene.loads.directories}
    copies: dict[str, tuple[str, str]] = {}
    for shadowed in scene.static.shadowed:
        behind = [it for it in shadowed.copies if os.path.dirname(placed(it)) not in listed_there]  # noqa: PTH120
        if behind and shadowed.soname not in from_elsewhere and not is_of_driver(shadowed.soname):
            copies[shadowed.soname] = (shown(shadowed.path), shown(behind[0]))
    if copies:
        evidence = [f"{first} is taken, {behind} lies behind it" for first, behind in copies.values()]
        yield scene.finding("library-copies", evidence, about="libraries", libraries=listed(copies))


def preloaded_libraries(scene: Scene) -> Iterator[Finding]:
    """CUDA libraries that LD_PRELOAD loads into every program, and missing files in it."""
    entries = [entry for entry in _SEPARATORS.split(scene.environ.get("LD_PRELOAD", "")) if entry]
    if scene.platform.is_windows or not entries:
        return
    cuda = [entry for entry in entries if component_of(Path(entry).name) is not None]
    gone = [entry for entry in entries if "/" in entry and not is_file(Path(entry))]
    if gone:
        evidence = (f"LD_PRELOAD={scene.environ['LD_PRELOAD']}",)
        yield scene.finding("preloaded-file-missing", evidence, about="LD_PRELOAD", entries=tuple(gone))
    present = [entry for entry in cuda if entry not in gone]
    if present:
        built = {build.cuda_major for build in scene.builds if build.cuda_major is not None}
        others = [it for it in present if _is_of_another(it, built, scene.names)]
        yield scene.finding(
            "preloaded-library",
            (f"LD_PRELOAD={scene.environ['LD_PRELOAD']}",),
            about="LD_PRELOAD",
            severity=Severity.ERROR if others else None,
            entries=tuple(others or present),
            built_cuda=tuple(map(str, sorted(built))) if others else None,
        )


def current_directory(scene: Scene) -> Iterator[Finding]:
    """Libraries whose own search path has an empty entry, which means the current directory."""
    needing = {}
    for file in (*scene.files.libraries, *(file for it in scene.files.frameworks for file in it.own_files)):
        library = scene.loads.read(file)
        paths = (library.rpath, library.runpath) if library is not None else ()
        empty = next((path for path in paths if path is not None and _has_empty_entry(path)), None)
        if empty is not None:
            needing[file] = empty
    if needing:
        lying = _cuda_names(scene.directory)
        yield scene.finding(
            "searches-current-directory",
            (f"{file}: search path {path}" for file, path in needing.items()),
            about="current directory",
            severity=Severity.WARNING if lying else None,
            libraries=listed(file.name for file in needing),
            others=listed(lying) if lying else None,
            directory=str(scene.directory),
        )


def _has_empty_entry(path: str) -> bool:
    """Whether an entry is empty; an empty path has no entry (``fillin_rpath`` of glibc)."""
    return bool(path) and "" in path.split(":")


def _cuda_names(directory: Path) -> list[str]:
    """The names of CUDA libraries in a directory, including the driver's."""
    return [name for name in names_of(directory) if component_of(name) is not None and ".so" in name]


def _toolkit_names(directory: Path) -> list[str]:
    """The names of CUDA libraries in a directory without the driver's, which belong to no environment."""
    return [name for name in _cuda_names(directory) if not is_of_driver(name)]


def _cudnn_parts(directory: str, names: list[str], scene: Scene) -> list[str]:
    """The parts of a cuDNN that may be from another release than the environment's."""
    found = [name for name in names if (component_of(name) or "").startswith("cudnn_")]
    versions = {str(scene.owners.version_of(Path(directory, name))) for name in found}
    own = scene.packages.get(*(f"nvidia-cudnn-cu{build.cuda_major}" for build in scene.builds))
    same = own is not None and all(own.version.startswith(version) for version in versions)
    return [] if same else found


def _is_of_another(entry: str, built: set[int], names: LibraryNames) -> bool:
    majors = {int(major) for major in names.cuda_majors(Path(entry).name)}
    return bool(majors) and bool(built) and not majors & built
