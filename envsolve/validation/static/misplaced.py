"""Libraries that come from the wrong place: by LD_LIBRARY_PATH from elsewhere, of two majors, or the driver's stub."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from envsolve.binary.elf import read_library
from envsolve.binary.lookup import Rule
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.findings.catalogue import make_finding
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.report import Owner
from envsolve.validation.static.builds import built_cuda
from envsolve.validation.static.installed import is_of_driver
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
                    theirs = cuda_major(path, scene.names)
                    ours = (
                        cuda_major(own, scene.names) or (built_cuda(loading.framework) or "").partition(".")[0] or None
                    )
                    other = theirs is not None and ours is not None and (theirs != ours)
                    yield make_finding(
                        "foreign-library",
                        (
                            f"LD_LIBRARY_PATH={scene.library_path}",
                            f"{plain(path)} by LD_LIBRARY_PATH",
                            f"{plain(own)} without it",
                        ),
                        about=name,
                        severity=Severity.ERROR if other else Severity.WARNING,
                        library=name,
                        path=plain(path),
                        own_path=plain(own),
                        directory=Path(path).parent,
                        their_cuda=theirs if other else None,
                        own_cuda=ours if other else None,
                    )


def two_majors(scene: Scene) -> Iterator[Finding]:
    """Components of which the frameworks would load two majors; worse where one framework does by itself."""
    by_component: dict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for loading in scene.loadings:
        for name, path in loading.found():
            component, number = component_of(name), _NUMBER.search(name)
            if component is not None and number is not None and not is_of_driver(name):
                by_component[component.partition("_")[0]][number[1]].setdefault(loading.title, path)
    for component, majors in by_component.items():
        if len(majors) > 1:
            titles = [set(by) for by in majors.values()]
            alone = sorted(set.intersection(*titles))
            yield make_finding(
                "two-cuda-majors",
                (f"{title}: {plain(path)}" for by in majors.values() for title, path in by.items()),
                about=component,
                severity=Severity.ERROR if alone else Severity.WARNING,
                component=component,
                majors=tuple(sorted(majors, key=int)),
                title=tuple(alone),
                in_one_process=bool(alone),
            )


def stubs(scene: Scene) -> Iterator[Finding]:
    """The toolkit's stand-in for libcuda, found before the driver's or in LD_LIBRARY_PATH."""
    taken = {path for loading in scene.loadings for name, path in loading.found() if is_of_driver(name)}
    stub = sorted(path for path in taken if _STUBS in Path(os.path.realpath(path)).parts)
    if stub:
        yield _stub(Severity.ERROR, stub, None)
        return
    directories = (Path(it) for it in re.split("[:;]", scene.library_path or "") if it)
    lying = [
        str(file)
        for it in directories
        if _STUBS in Path(os.path.realpath(it)).parts
        for file in sorted(it.glob("libcuda.so*"))
    ]
    if lying:
        yield _stub(Severity.WARNING, lying, "is on LD_LIBRARY_PATH")


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
    sure = {next(iter(majors)) for name in others if len(majors := names.cuda_majors(name)) == 1}
    sure = sure & own if own else sure
    return next(iter(sure)) if len(sure) == 1 else None


def _stub(severity: Severity, paths: Sequence[str], use: str | None) -> Finding:
    return make_finding(
        "stub-driver-library", paths, about="libcuda", severity=severity, stub_path=paths[0], stub_use=use
    )
