"""CUDA libraries in /etc/ld.so.cache: what programs get that have no search path of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from envsolve.diagnose.machine.libraries import Library, component, file_version, is_loaded_by, is_of_driver
from envsolve.diagnose.machine.loading import CACHE
from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding, Severity

_ORIGIN = "ld.so.cache"
_MOST_NAMED = 40


def check_cache(survey: Survey) -> Iterator[Finding]:
    """Libraries of toolkits in the cache, and several files for one name."""
    found = [it for it in cached_libraries(survey) if not is_of_driver(it.name)]
    if not found:
        return
    twice = {name: files for name, files in _by_name(survey, found).items() if len(files) > 1}
    several = "".join(f" {name} is there {len(files)} times, and {files[0]} is taken." for name, files in twice.items())
    yield Finding(
        "cuda-in-loader-cache",
        "The loader's cache holds several copies of a CUDA library" if twice else "The loader's cache holds CUDA",
        Severity.WARNING if twice else Severity.INFO,
        f"{CACHE} leads to CUDA libraries of the machine.{several} Packages that look for CUDA without a search path "
        "of their own, as ONNX Runtime and CuPy do, take them from there when their environment has none.",
        "Nothing has to be done, unless a program loads the wrong one: then take the directory out of "
        "/etc/ld.so.conf.d and run ldconfig.",
        ("ldconfig -p | grep -E 'cuda|cudnn|cublas'",),
        (
            *map(str, found[:_MOST_NAMED]),
            *((f"and {len(found) - _MOST_NAMED} more",) if len(found) > _MOST_NAMED else ()),
        ),
    )


def check_stale(survey: Survey) -> Iterator[Finding]:
    """Entries for CUDA whose files are gone."""
    gone = [it for it in cached_libraries(survey) if not survey.files.exists(it.path)]
    gone = [it for it in gone if it.path not in survey.files.gaps]
    if gone:
        yield Finding(
            "loader-cache-stale",
            "The loader's cache names libraries that are gone",
            Severity.WARNING,
            f"{CACHE} leads to {', '.join(it.path for it in gone[:_MOST_NAMED])}, which {_is(gone)} not there: "
            "something was removed or moved since ldconfig ran.",
            "Run ldconfig.",
            ("sudo ldconfig",),
            tuple(f"{it.name}: {it.path} is not there" for it in gone[:_MOST_NAMED]),
        )


def cached_libraries(survey: Survey) -> tuple[Library, ...]:
    """The CUDA libraries in the cache, the driver's too, each file by the name it is loaded by."""
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
    """For each name its different files, the one that is taken in front."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    taken = survey.loader.cached
    for it in sorted(libraries, key=lambda it: it.path != taken.get(it.name)):
        real = survey.files.real(it.path)
        if real is not None and real not in [survey.files.real(path) for path in found[it.name]]:
            found[it.name].append(it.path)
    return found


def _is(libraries: list[Library]) -> str:
    return "is" if len(libraries) == 1 else "are"
