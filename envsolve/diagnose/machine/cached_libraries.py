"""CUDA libraries in /etc/ld.so.cache, which programs without a search path of their own load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from envsolve.diagnose.machine.libraries import Library, component, file_version, is_loaded_by
from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding, Severity
from envsolve.validation.installed import is_of_driver

_ORIGIN = "ld.so.cache"
_MOST_NAMED = 40


def check_cache(survey: Survey) -> Iterator[Finding]:
    """Libraries of toolkits in the cache, and names with several files."""
    found = [it for it in cached_libraries(survey) if not is_of_driver(it.name)]
    if not found:
        return
    twice = {name: files for name, files in _by_name(survey, found).items() if len(files) > 1}
    rest = (f"and {len(found) - _MOST_NAMED} more",) if len(found) > _MOST_NAMED else ()
    yield survey.finding(
        "cuda-in-loader-cache",
        (*map(str, found[:_MOST_NAMED]), *rest),
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
