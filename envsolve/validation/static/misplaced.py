"""Libraries that come from the wrong place: by LD_LIBRARY_PATH from elsewhere, of two majors, or the driver's stub."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from envsolve.binary.elf import read_library
from envsolve.binary.lookup import Rule
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.report import Owner
from envsolve.validation.static.builds import built_cuda
from envsolve.validation.static.installed import is_of_driver
from envsolve.validation.static.loading import Loading
from envsolve.validation.static.scene import Scene, plain, same

_NUMBER = re.compile(r"\.so\.(\d+)")
_STUBS = "stubs"


def foreign(scene: Scene) -> Iterator[Finding]:
    """CUDA's libraries that LD_LIBRARY_PATH takes from elsewhere."""
    for loading, without in zip(scene.loadings, scene.without_path, strict=True):
        instead = dict(without.found())
        for name, path in loading.found():
            library = scene.files.located(name, path)
            own = instead.get(name) or (str(scene.files.own[name]) if name in scene.files.own else None)
            if library.owner is Owner.SYSTEM and own is not None and not same(path, own):
                by_path = any(it.path == path and it.rule is Rule.LIBRARY_PATH for it in loading.lookups)
                if by_path:
                    yield _foreign(name, path, own, loading, scene)


def two_majors(scene: Scene) -> Iterator[Finding]:
    """Components of which the frameworks would load two majors; worse where one framework does by itself."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for loading in scene.loadings:
        for name, path in loading.found():
            component, number = component_of(name), _NUMBER.search(name)
            if component is not None and number is not None and not is_of_driver(name):
                found[component.partition("_")[0]][number[1]].setdefault(loading.title, path)
    for component, majors in found.items():
        if len(majors) > 1:
            yield _two_majors(component, majors)


def stubs(scene: Scene) -> Iterator[Finding]:
    """The toolkit's stand-in for libcuda, found before the driver's or in LD_LIBRARY_PATH."""
    taken = {path for loading in scene.loadings for name, path in loading.found() if is_of_driver(name)}
    stub = sorted(path for path in taken if _STUBS in Path(os.path.realpath(path)).parts)
    if stub:
        yield _stub(Severity.ERROR, stub, "is what programs get for the driver's library: every call of it fails")
        return
    directories = (Path(it) for it in re.split("[:;]", scene.library_path or "") if it)
    lying = [
        str(file)
        for it in directories
        if _STUBS in Path(os.path.realpath(it)).parts
        for file in sorted(it.glob("libcuda.so*"))
    ]
    if lying:
        yield _stub(
            Severity.WARNING, lying, "is in LD_LIBRARY_PATH, where a program may take it for the driver's library"
        )


def cuda_major(path: str, names: LibraryNames) -> str | None:
    """The major of CUDA that a file belongs to, where names tell it: its own, or those of what it needs or lies with.

    libcusolver.so.11 is of CUDA 11 and of CUDA 12. It needs a libcublas that is of one of them, and a directory of a
    toolkit holds the libraries of one toolkit.
    """
    own = names.cuda_majors(Path(path).name)
    if len(own) == 1:
        return next(iter(own))
    place = Path(os.path.realpath(path))
    others = [file.name for file in place.parent.glob("lib*.so.*")]
    with suppress(UnreadableLibraryError):
        others += read_library(place, truncated=True).needed
    told = {next(iter(majors)) for name in others if len(majors := names.cuda_majors(name)) == 1}
    told = told & own if own else told
    return next(iter(told)) if len(told) == 1 else None


def _foreign(name: str, path: str, own: str, loading: Loading, scene: Scene) -> Finding:
    theirs = cuda_major(path, scene.names)
    ours = cuda_major(own, scene.names) or (built_cuda(loading.framework) or "").partition(".")[0] or None
    other = theirs is not None and ours is not None and theirs != ours
    return Finding(
        "foreign-library",
        f"LD_LIBRARY_PATH changes where {name} comes from",
        Severity.ERROR if other else Severity.WARNING,
        f"{loading.title} would load {plain(path)} instead of {plain(own)}"
        + (f", which is of CUDA {theirs} and not of CUDA {ours}" if other else "")
        + ": LD_LIBRARY_PATH leads the loader away from the environment's own file",
        f"take {Path(path).parent} out of LD_LIBRARY_PATH before starting programs of this environment",
        ("unset LD_LIBRARY_PATH",),
        (f"LD_LIBRARY_PATH={scene.library_path}", f"{plain(path)} by LD_LIBRARY_PATH", f"{plain(own)} without it"),
        about=name,
    )


def _two_majors(component: str, majors: dict[str, dict[str, str]]) -> Finding:
    titles = [set(by) for by in majors.values()]
    alone = sorted(set.intersection(*titles))
    said = [f"{title}: {plain(path)}" for by in majors.values() for title, path in by.items()]
    who = (
        f"{' and '.join(alone)} would load both, and handles and memory of one are unknown to the other"
        if alone
        else "frameworks that are used in one process would not share memory or handles, and one of them may fail"
    )
    return Finding(
        "two-cuda-majors",
        f"the frameworks load {component} in the versions {' and '.join(sorted(majors, key=int))}",
        Severity.ERROR if alone else Severity.WARNING,
        f"{component} would come in {len(majors)} major versions: {who}",
        "make the environment again with one CUDA major for all frameworks, as envsolve's locks have it",
        evidence=tuple(said),
        about=component,
    )


def _stub(severity: Severity, paths: Iterable[str], what: str) -> Finding:
    listed = tuple(paths)
    return Finding(
        "stub-driver-library",
        "a stub of the driver's library is in the way",
        severity,
        f"{listed[0]}, which the CUDA toolkit has for linking alone, {what}",
        "take the stubs directory out of LD_LIBRARY_PATH",
        ("unset LD_LIBRARY_PATH",),
        listed,
        about="libcuda",
    )
