"""Libraries that a framework asks for and does not get: where they were looked for, and what brings them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from envsolve.binary.lookup import Lookup
from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import Preload
from envsolve.model.finding import Finding, Severity
from envsolve.validation.static.builds import built_cuda
from envsolve.validation.static.installed import is_of_driver
from envsolve.validation.static.loading import Loading
from envsolve.validation.static.scene import Scene, plain

_SHOWN = 8
"""Directories that a finding lists; the rest is counted."""


def missing(scene: Scene) -> Iterator[Finding]:
    """Libraries that the loader does not find: one finding for each framework, and one for what a variable hides."""
    for loading, without in zip(scene.loadings, scene.without_path, strict=True):
        known = loading.framework.libraries
        asked = {it.name: it for it in loading.lookups if _is_missing(it, loading, has_gpu=scene.has_gpu)}
        own = [name for name in asked if name in scene.files.own]
        if known.preload is Preload.ASKED and own:
            framework = loading.framework.framework
            yield make_finding(
                "preload-needed",
                (f"{name} is {scene.files.own[name]}" for name in own),
                about=framework.name,
                severity=Severity.INFO,
                framework=framework.title,
                preload=framework.preload_call,
            )
        if known.preload is not Preload.NEVER:
            asked = {name: it for name, it in asked.items() if name not in own}
        found_without = {name for name, _ in without.found()}
        hidden = [lookup for name, lookup in asked.items() if name in found_without]
        absent = [lookup for name, lookup in asked.items() if name not in found_without]
        if hidden:
            yield make_finding(
                "library-missing",
                (f"LD_LIBRARY_PATH={scene.library_path}", *_looked_in(hidden[0])),
                about=loading.framework.name,
                title=loading.title,
                library=_first(hidden),
                needs=tuple(_needs(hidden)),
                hidden=True,
            )
        if absent:
            yield _missing(absent, loading, scene)


def _is_missing(lookup: Lookup, loading: Loading, *, has_gpu: bool) -> bool:
    """Whether its absence is a fault: of a driver's library it is another one, and without a GPU few are used."""
    if lookup.path is not None or lookup.failure is not None or is_of_driver(lookup.name):
        return False
    if Path(lookup.name).is_symlink():  # a root that is a broken link is damaged
        return False
    return lookup.name not in loading.optional and (has_gpu or lookup.name in loading.on_import)


def _packages(name: str, loading: Loading, scene: Scene) -> tuple[str, ...]:
    major = (built_cuda(loading.framework) or "").partition(".")[0] or None
    return scene.names.packages(name, conda=scene.files.inventory.is_conda, cuda_major=major)


def _missing(lookups: Sequence[Lookup], loading: Loading, scene: Scene) -> Finding:
    by_packages: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for lookup in lookups:
        by_packages[_packages(lookup.name, loading, scene)].append(lookup.name)
    packages = [choice[0] for choice in by_packages if choice]
    requesters = dict.fromkeys(plain(lookup.requester) for lookup in lookups)
    return make_finding(
        "library-missing",
        (*(f"asked for by {it}" for it in requesters), *_looked_in(lookups[0])),
        about=loading.framework.name,
        title=loading.title,
        library=_first(lookups),
        needs=tuple(_needs(lookups)),
        packages=tuple(" or ".join(choice) for choice in by_packages if choice),
        packages_typed=" ".join(packages),
        install="conda install -c conda-forge" if scene.files.inventory.is_conda else "pip install",
        others=tuple(by_packages.get((), ())),
    )


def _needs(lookups: Sequence[Lookup]) -> Iterator[str]:
    by_requester: dict[str | None, list[str]] = defaultdict(list)
    for lookup in lookups:
        by_requester[lookup.requester].append(lookup.name)
    for requester, names in by_requester.items():
        yield f"{_file_name(requester)} needs {', '.join(names)}"


def _first(lookups: Sequence[Lookup]) -> str:
    return lookups[0].name + (f" and {len(lookups) - 1} more" if len(lookups) > 1 else "")


def _looked_in(lookup: Lookup) -> Iterator[str]:
    places = list(dict.fromkeys(lookup.looked_in))
    for rule, directory in places[:_SHOWN]:
        yield f"looked in {directory or 'the current directory'} ({rule.value})"
    if len(places) > _SHOWN:
        yield f"looked in {len(places) - _SHOWN} more"


def _file_name(path: str | None) -> str:
    return Path(path or "").name
