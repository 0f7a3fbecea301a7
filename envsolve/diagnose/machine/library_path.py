"""Where programs find CUDA libraries before an environment's own: in variables, and in the cache of the loader."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from envsolve.diagnose.machine.libraries import Library, component, file_version, is_loaded_by, libraries_in
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.loader import LIBRARY_PATH
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding, Severity
from envsolve.validation.installed import is_of_driver

_MOST_NAMED = 40
_LIBRARY_DIRECTORIES = ("lib", "lib64")
_ORIGIN = "ld.so.cache"


def check_entries(survey: Survey) -> Iterator[Finding]:
    """Entries of LD_LIBRARY_PATH for the current directory: libraries there are loaded."""
    relative = [entry for entry in survey.library_path if not survey.files.is_absolute(entry)]
    relative = [entry for entry in relative if not entry.startswith("$")]
    if not relative:
        return
    problems = [it.problem for it in survey.host.readings if it.problem is not None]
    seen = [it.text for it in problems if it.code == Trouble.LIBRARY_IN_CURRENT_DIRECTORY]
    yield survey.finding(
        "library-path-empty-entry",
        (f"{LIBRARY_PATH}={survey.environ[LIBRARY_PATH]}", *seen),
        entries=tuple(it for it in relative if it),
        absolute=":".join(it for it in survey.library_path if it.startswith("/")),
    )


def check_libraries(survey: Survey) -> Iterator[Finding]:
    """CUDA libraries of the machine on LD_LIBRARY_PATH, or on PATH on Windows."""
    found = [it for it in libraries_on_path(survey) if not _is_of_environment(survey, it)]
    if not found:
        return
    where = tuple(dict.fromkeys(survey.files.parent(it.path) for it in found))
    facts: dict[str, object] = {"directories": where, "libraries": _components(found)}
    facts |= {"variable": "PATH"} if survey.platform.is_windows else survey.facts_without(where)
    yield survey.finding(
        "cuda-on-library-path",
        (*map(str, found[:_MOST_NAMED]), *_rest(found)),
        severity=Severity.INFO if survey.platform.is_windows else None,
        **facts,
    )


def check_missing(survey: Survey) -> Iterator[Finding]:
    """Directories for CUDA on LD_LIBRARY_PATH that do not exist."""
    missing = [it for it in survey.library_directories if _is_for_cuda(it) and not survey.files.is_directory(it)]
    missing = [it for it in missing if it not in survey.files.gaps]
    if missing and not survey.platform.is_windows:
        evidence = (f"{LIBRARY_PATH}={survey.environ[LIBRARY_PATH]}",)
        yield survey.finding("library-path-missing-directory", evidence, directories=tuple(missing))


def check_program_path(survey: Survey) -> Iterator[Finding]:
    """Directories of libraries on PATH, where Linux only looks for programs."""
    if not survey.is_linux:
        return
    candidates = (it.rstrip("/") for it in survey.program_path)
    directories = [it for it in candidates if it.rpartition("/")[2] in _LIBRARY_DIRECTORIES]
    found = [it for directory in directories for it in libraries_in(survey.files, directory, "PATH")]
    loaded = [it for it in found if survey.files.parent(it.path) not in survey.library_directories]
    if loaded:
        where = tuple(dict.fromkeys(survey.files.parent(it.path) for it in loaded))
        evidence = map(str, loaded[:_MOST_NAMED])
        yield survey.finding("libraries-on-program-path", evidence, directories=where)


def libraries_on_path(survey: Survey) -> tuple[Library, ...]:
    """The CUDA libraries on LD_LIBRARY_PATH, or on PATH on Windows."""
    origin = "PATH" if survey.platform.is_windows else LIBRARY_PATH
    directories = survey.library_directories if survey.is_linux or survey.platform.is_windows else ()
    found = (it for directory in directories for it in libraries_in(survey.files, directory, origin))
    return tuple(it for it in found if not is_of_driver(it.name))


def _is_of_environment(survey: Survey, library: Library) -> bool:
    directory = survey.files.parent(library.path)
    prefixes = (prefix.rstrip("/\\") for prefix in survey.of_environments)
    return any(directory == it or directory.startswith((f"{it}/", f"{it}\\")) for it in prefixes)


def _components(found: list[Library]) -> str:
    versions: dict[str, list[str]] = {}
    for it in found:
        versions.setdefault(component(it.name) or it.name, []).append(it.version or "")
    named = (f"{name} {' and '.join(filter(None, sorted(set(it))))}".strip() for name, it in sorted(versions.items()))
    return ", ".join(named)


def _rest(found: list[Library]) -> tuple[str, ...]:
    return (f"and {len(found) - _MOST_NAMED} more",) if len(found) > _MOST_NAMED else ()


def _is_for_cuda(directory: str) -> bool:
    """Whether the directory is meant for a toolkit; CUDA images always list their compatibility package."""
    return re.search(r"cuda(?!.*/compat)|cudnn", directory, re.IGNORECASE) is not None


def check_cache(survey: Survey) -> Iterator[Finding]:
    """Libraries of toolkits in the cache, and names with several files."""
    found = [it for it in cached_libraries(survey) if not is_of_driver(it.name)]
    if not found:
        return
    twice = {name: files for name, files in _by_name(survey, found).items() if len(files) > 1}
    yield survey.finding(
        "cuda-in-loader-cache",
        (*map(str, found[:_MOST_NAMED]), *_rest(found)),
        severity=Severity.WARNING if twice else None,
        copies=tuple(f"{files[0]} and {len(files) - 1} more" for files in twice.values()),
    )


def check_stale(survey: Survey) -> Iterator[Finding]:
    """Entries for CUDA whose files are gone."""
    gone = [it for it in cached_libraries(survey) if not survey.files.exists(it.path)]
    gone = [it for it in gone if it.path not in survey.files.gaps]
    if gone:
        paths = tuple(it.path for it in gone[:_MOST_NAMED])
        evidence = tuple(f"{it.name}: {it.path} is not there" for it in gone[:_MOST_NAMED])
        yield survey.finding("loader-cache-stale", evidence, places=paths)


def cached_libraries(survey: Survey) -> tuple[Library, ...]:
    """The CUDA libraries in the cache, including the driver's: each file by the name it is loaded by."""
    found: dict[tuple[str, str], Library] = {}
    for name, path in sorted({(it.name, str(it.path)) for it in survey.loader.of_this_abi()}):
        if component(name) is None:
            continue
        real = survey.files.real(path)
        key = (survey.files.parent(path), real or path)
        if key not in found or is_loaded_by(name, found[key].name):
            found[key] = Library(name, path, file_version(real or path), _ORIGIN)
    return tuple(found.values())


def _by_name(survey: Survey, libraries: list[Library]) -> dict[str, list[str]]:
    """The different files of each name, the chosen one first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    taken = survey.loader.cached
    for it in sorted(libraries, key=lambda it: it.path != taken.get(it.name)):
        real = survey.files.real(it.path)
        if real is not None and real not in [survey.files.real(path) for path in found[it.name]]:
            found[it.name].append(it.path)
    return found
