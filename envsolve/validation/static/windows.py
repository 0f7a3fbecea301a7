"""Which DLLs the frameworks would load on Windows, and what is wrong with where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from envsolve.binary.dll_search import DllLookup, DllSearch
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.findings.catalogue import make_finding
from envsolve.frameworks import Preload
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.finding import Finding
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.static.damage import damaged
from envsolve.validation.static.installed import Files, Installed, is_of_driver
from envsolve.validation.static.loading import Shadowed


def examine_loading(
    files: Files, names: LibraryNames, environ: Mapping[str, str], *, has_gpu: bool
) -> tuple[dict[str, dict[str, str]], list[Finding], list[Shadowed]]:
    """By framework the file of each CUDA library, the findings, and the copies not taken."""
    loaded: dict[str, dict[str, str]] = {}
    findings = list(damaged(files.libraries, files, None))
    shadowed: list[Shadowed] = []
    for framework in files.frameworks:
        lookups = list(_lookups(framework, files, environ))
        loaded[framework.name] = {
            it.name: str(it.path) for it in lookups if it.path is not None and component_of(it.name) is not None
        }
        shadowed += [Shadowed(it.name, str(it.path), tuple(map(str, it.shadowed))) for it in lookups if it.shadowed]
        failed = [it.failure.path for it in lookups if it.failure is not None]
        findings += damaged(failed, files, None)
        if has_gpu or framework.libraries.on_import:
            findings += _missing(framework, lookups, files, names)
    return loaded, findings, shadowed


def _lookups(framework: Installed, files: Files, environ: Mapping[str, str]) -> Iterator[DllLookup]:
    """What the DLLs of a framework ask for, now and later, in a process of its own."""
    known = framework.libraries
    windows = Path(environ.get("SystemRoot") or environ.get("WINDIR") or r"C:\Windows")
    search = DllSearch(
        program=files.inventory.executable.parent,
        system=windows / "System32",
        added=[it for pattern in known.dll_directories for it in sorted(framework.directory.glob(pattern))],
        path=[Path(it) for it in environ.get("PATH", "").split(";") if it],
    )
    for root in framework.files(*known.dll_roots):
        try:
            yield from search.open(root, delayed=True)
        except UnreadableLibraryError as error:
            yield DllLookup(root.name, root, None, None, failure=error)


def _missing(framework: Installed, lookups: list[DllLookup], files: Files, names: LibraryNames) -> Iterator[Finding]:
    for name, lookup in {it.name: it for it in lookups if it.path is None and it.failure is None}.items():
        own = any(it.lower() == name.lower() for it in files.own)
        if is_of_driver(name) or (own and framework.libraries.preload is not Preload.NEVER):
            continue
        yield _not_found(framework, lookup, names, conda=files.inventory.is_conda)


def _not_found(framework: Installed, lookup: DllLookup, names: LibraryNames, *, conda: bool) -> Finding:
    packages = names.packages(lookup.name, conda=conda)
    on_path = lookup.on_path[0] if lookup.on_path else None
    return make_finding(
        "library-missing",
        (
            f"asked for by {lookup.requester}",
            *(f"looked in {directory} ({rule.value})" for rule, directory in lookup.looked_in),
            *(f"in PATH only: {path}" for path in lookup.on_path),
        ),
        about=framework.name,
        title=framework.title,
        library=lookup.name,
        needs=f"{lookup.requester.name} needs {lookup.name}",
        packages=" or ".join(packages),
        packages_typed=packages[0] if packages else None,
        install="conda install -c conda-forge" if conda else "pip install",
        others=() if packages else (lookup.name,),
        on_path=on_path,
        directory=None if on_path is None else repr(str(on_path.parent)),
    )
