"""Libraries that a framework needs and does not find: where they were searched, and what installs them.

Among them is the C++ runtime of Visual Studio, which Windows does not include. Python includes vcruntime140.dll.
msvcp140.dll and, for code of Visual Studio 2019 and newer, vcruntime140_1.dll come with the redistributable package,
with conda's vc14_runtime, or with the framework (onnxruntime itself looks for all three,
``onnxruntime/capi/onnxruntime_validation.py``).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.version import Version

from envsolve.binary.dll_search import DllLookup
from envsolve.binary.lookup import Lookup, Rule
from envsolve.boundary.reading import names_of
from envsolve.diagnose.environment.families import component_in
from envsolve.diagnose.environment.loads import Loading
from envsolve.diagnose.environment.scene import Scene
from envsolve.frameworks import Preload
from envsolve.lockfile.wheels import requirements_of
from envsolve.model.finding import Finding, Severity
from envsolve.validation.installed import Installed, is_of_driver

_ID = "library-missing"
_NEEDED = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll")


def missing_libraries(scene: Scene) -> Iterator[Finding]:
    """Libraries that the loader does not find: one finding for each framework, and one for what a variable hides."""
    for loading, without in zip(scene.loads.with_path, scene.loads.without_path, strict=True):
        known = loading.framework.libraries
        needed = {it.name: it for it in loading.lookups if _is_missing(it, loading, scene)}
        own = [name for name in needed if name in scene.files.own]
        if known.preload is Preload.REQUESTED and own:
            evidence = (f"{name} is {scene.files.own[name]}" for name in own)
            call = loading.framework.framework.preload_call
            yield scene.finding(
                "preload-needed", evidence, about=loading.framework, severity=Severity.INFO, preload=call
            )
        if known.preload is not Preload.NEVER:
            needed = {name: it for name, it in needed.items() if name not in own}
        found_without = {name for name, _ in without.found()}
        hidden = [lookup for name, lookup in needed.items() if name in found_without]
        absent = [lookup for name, lookup in needed.items() if name not in found_without]
        if hidden:
            yield scene.finding(
                _ID,
                (f"LD_LIBRARY_PATH={scene.loads.library_path}", *_looked_in(hidden[0])),
                about=loading.framework,
                severity=_severity(scene, fails=_fails(hidden, loading)),
                library=_first(hidden),
                needs=tuple(_needs(hidden)),
                hidden=True,
                **scene.loads.facts_where_driver_stays(_by_variable(loading)),
            )
        if absent:
            yield _missing(absent, loading, scene)


def missing_dlls(scene: Scene) -> Iterator[Finding]:
    """DLLs that Windows does not find, one finding for each."""
    for framework, lookups in scene.loads.dlls:
        missing = {it.name: it for it in lookups if it.path is None and it.failure is None}
        for lookup in missing.values() if scene.for_gpu or framework.libraries.on_import else ():
            own = any(it.lower() == lookup.name.lower() for it in scene.files.own)
            if not is_of_driver(lookup.name) and not (own and framework.libraries.preload is not Preload.NEVER):
                yield _missing_dll(framework, lookup, scene)


def _is_missing(lookup: Lookup, loading: Loading, scene: Scene) -> bool:
    """Whether its absence is a fault: a driver library has another finding, and without a GPU few are used."""
    if lookup.path is not None or lookup.failure is not None or is_of_driver(lookup.name):
        return False
    prefix = scene.inventory.prefix
    places = ("", *(it for _, it in lookup.looked_in if it and Path(it).is_relative_to(prefix)))
    if any(Path(place, lookup.name).is_symlink() for place in places):  # a broken link counts as damaged
        return False
    return lookup.name not in loading.optional and (scene.for_gpu or lookup.name in loading.on_import)


def _missing(lookups: Sequence[Lookup], loading: Loading, scene: Scene) -> Finding:
    requesters = dict.fromkeys(os.path.normpath(lookup.requester or "") for lookup in lookups)
    evidence = (*(f"requested by {it}" for it in requesters), *_looked_in(lookups[0]))
    by_extra = _of_extra(loading.framework, evidence, scene)
    if by_extra is not None:
        return by_extra
    by_packages: dict[tuple[str, ...], list[str]] = defaultdict(list)
    conda, major = scene.inventory.is_conda, loading.framework.built_cuda_major
    for lookup in lookups:
        by_packages[scene.names.packages(lookup.name, conda=conda, cuda_major=major)].append(lookup.name)
    return scene.finding(
        _ID,
        evidence,
        about=loading.framework,
        severity=_severity(scene, fails=_fails(lookups, loading)),
        library=_first(lookups),
        needs=tuple(_needs(lookups)),
        packages=tuple(" or ".join(choice) for choice in by_packages if choice),
        packages_typed=" ".join(choice[0] for choice in by_packages if choice),
        install=_install(scene),
        others=tuple(by_packages.get((), ())),
    )


def _of_extra(framework: Installed, evidence: Sequence[str], scene: Scene) -> Finding | None:
    """The finding if an extra of the framework installs the missing libraries, such as TensorFlow's and-cuda."""
    build = next(it for it in scene.builds if it.name == framework.name)
    release = build.releases[0] if build.conda is None and build.releases else None
    if release is None or not release.extras or any(map(component_in, scene.packages.by_name)):
        return None
    requirement, *_ = requirements_of(release, Version(scene.inventory.python or "3"))
    return scene.finding(
        "library-missing-of-extra",
        evidence,
        about=build,
        severity=_severity(scene, fails=False),
        extra=release.extras[0],
        requirement=requirement,
    )


def _missing_dll(framework: Installed, lookup: DllLookup, scene: Scene) -> Finding:
    packages = scene.names.packages(lookup.name, conda=scene.inventory.is_conda)
    on_path = lookup.on_path[0] if lookup.on_path else None
    evidence = (
        f"requested by {lookup.requester}",
        *(f"looked in {directory} ({rule.value})" for rule, directory in lookup.looked_in),
        *(f"in PATH only: {path}" for path in lookup.on_path),
    )
    by_extra = _of_extra(framework, evidence, scene)
    if by_extra is not None:
        return by_extra
    return scene.finding(
        _ID,
        evidence,
        about=framework,
        severity=_severity(scene, fails=framework.libraries.on_import),
        library=lookup.name,
        needs=f"{lookup.requester.name} needs {lookup.name}",
        packages=" or ".join(packages),
        packages_typed=packages[0] if packages else None,
        install=_install(scene),
        others=() if packages else (lookup.name,),
        on_path=on_path,
        directory=None if on_path is None else repr(str(on_path.parent)),
    )


def _fails(lookups: Sequence[Lookup], loading: Loading) -> bool:
    """Whether the import itself needs one of them."""
    return any(it.name in loading.on_import for it in lookups)


def _severity(scene: Scene, *, fails: bool) -> Severity | None:
    """Less than an error for what only a GPU needs, if there is none; ``fails`` says whether the import fails."""
    return None if scene.has_gpu or fails else Severity.WARNING


def _install(scene: Scene) -> str:
    return "conda install -c conda-forge" if scene.inventory.is_conda else "pip install"


def _by_variable(loading: Loading) -> Iterator[str]:
    """The directories of LD_LIBRARY_PATH that libraries of the framework come from."""
    for it in loading.lookups:
        if it.path is not None and it.rule is Rule.LIBRARY_PATH and not is_of_driver(it.name):
            yield os.path.dirname(it.path)  # noqa: PTH120 - as the loader wrote it


def _needs(lookups: Sequence[Lookup]) -> Iterator[str]:
    by_requester: dict[str, list[str]] = defaultdict(list)
    for lookup in lookups:
        by_requester[Path(lookup.requester or "").name].append(lookup.name)
    for requester, names in by_requester.items():
        yield f"{requester} needs {', '.join(names)}"


def _first(lookups: Sequence[Lookup]) -> str:
    return lookups[0].name + (f" and {len(lookups) - 1} more" if len(lookups) > 1 else "")


def _looked_in(lookup: Lookup) -> Iterator[str]:
    for rule, directory in dict.fromkeys(lookup.looked_in):
        yield f"looked in {directory or 'the current directory'} ({rule.value})"


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
