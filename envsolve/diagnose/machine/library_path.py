"""LD_LIBRARY_PATH and PATH: the directories that come in front of an environment's own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.machine.libraries import Library, component, is_of_driver, libraries_in
from envsolve.diagnose.machine.library_variable import without
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.loader import LIBRARY_PATH
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding, Severity

_MOST_NAMED = 40
_LIBRARY_DIRECTORIES = ("lib", "lib64")


def check_entries(survey: Survey) -> Iterator[Finding]:
    """Entries of LD_LIBRARY_PATH that mean the current directory: whatever lies there is loaded."""
    relative = [entry for entry in survey.library_path if not survey.files.is_absolute(entry)]
    relative = [entry for entry in relative if not entry.startswith("$")]
    if not relative:
        return
    problems = [it.problem for it in survey.host.readings if it.problem is not None]
    seen = [it.text for it in problems if it.code == Trouble.LIBRARY_IN_CURRENT_DIRECTORY]
    value = survey.environ[LIBRARY_PATH]
    what = "an empty entry" if relative == [""] else "entries that are not absolute" + _named(relative)
    yield Finding(
        "library-path-empty-entry",
        f"{LIBRARY_PATH} leads to the current directory",
        Severity.WARNING,
        f"{LIBRARY_PATH} holds {what}: the loader looks in the current directory, so that another library is loaded "
        "depending on where a program is started. An empty entry comes from a colon at its beginning or end.",
        "Write it without: append with ${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}.",
        (f"export {LIBRARY_PATH}={':'.join(it for it in survey.library_path if it.startswith('/'))}",),
        (f"{LIBRARY_PATH}={value}", *seen),
    )


def check_libraries(survey: Survey) -> Iterator[Finding]:
    """CUDA libraries of the machine on LD_LIBRARY_PATH, or on PATH of Windows."""
    found = [it for it in libraries_on_path(survey) if not _is_of_environment(survey, it)]
    if not found:
        return
    variable = "PATH" if survey.platform.is_windows else LIBRARY_PATH
    where = tuple(dict.fromkeys(survey.files.parent(it.path) for it in found))
    fix, commands = _remedy(survey, where)
    yield Finding(
        "cuda-on-library-path",
        f"{variable} leads to CUDA libraries of the machine",
        Severity.INFO if survey.platform.is_windows else Severity.WARNING,
        f"{variable} names {', '.join(where)} with {_components(found)}. {_effect(survey)}",
        fix,
        commands,
        (*map(str, found[:_MOST_NAMED]), *_rest(found)),
    )


def check_missing(survey: Survey) -> Iterator[Finding]:
    """Directories for CUDA on LD_LIBRARY_PATH that are not there."""
    missing = [it for it in survey.library_directories if _is_for_cuda(it) and not survey.files.is_directory(it)]
    missing = [it for it in missing if it not in survey.files.gaps]
    if missing and not survey.platform.is_windows:
        yield Finding(
            "library-path-missing-directory",
            f"{LIBRARY_PATH} names a directory that is not there",
            Severity.INFO,
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} on {LIBRARY_PATH} and not there: the loader "
            "passes over it.",
            "Correct it where a toolkit was removed or its version changed.",
            (),
            (f"{LIBRARY_PATH}={survey.environ[LIBRARY_PATH]}",),
        )


def check_program_path(survey: Survey) -> Iterator[Finding]:
    """Directories of libraries on PATH, where Linux looks for programs only."""
    if not survey.is_linux:
        return
    candidates = (it.rstrip("/") for it in survey.program_path)
    directories = [it for it in candidates if it.rpartition("/")[2] in _LIBRARY_DIRECTORIES]
    found = [it for directory in directories for it in libraries_in(survey.files, directory, "PATH")]
    loaded = [it for it in found if survey.files.parent(it.path) not in survey.library_directories]
    if loaded:
        where = ", ".join(dict.fromkeys(survey.files.parent(it.path) for it in loaded))
        yield Finding(
            "libraries-on-program-path",
            "CUDA libraries are on PATH, where the loader does not look",
            Severity.WARNING,
            f"{where} is on PATH, and holds libraries. On Linux PATH is for programs: libraries are found through "
            f"{LIBRARY_PATH} or the loader's cache.",
            f"Put the directory `bin` beside it on PATH, and this one on {LIBRARY_PATH} where a program needs it; "
            "environments of conda and of pip need neither.",
            (),
            tuple(map(str, loaded[:_MOST_NAMED])),
        )


def check_preload(survey: Survey) -> Iterator[Finding]:
    """CUDA libraries that LD_PRELOAD puts into every program."""
    value = survey.environ.get("LD_PRELOAD", "") if survey.is_linux else ""
    named = [it for it in value.replace(":", " ").split() if component(it.rpartition("/")[2]) is not None]
    if named:
        yield Finding(
            "preloaded-library",
            "LD_PRELOAD puts CUDA libraries into every program",
            Severity.WARNING,
            f"LD_PRELOAD names {', '.join(named)}: every program gets them first, whichever its environment brings.",
            "Unset it, and set it for the one program that needs it.",
            survey.unset("LD_PRELOAD"),
            (f"LD_PRELOAD={value}",),
            about="LD_PRELOAD",
        )


def libraries_on_path(survey: Survey) -> tuple[Library, ...]:
    """The CUDA libraries that LD_LIBRARY_PATH, or PATH of Windows, leads to."""
    origin = "PATH" if survey.platform.is_windows else LIBRARY_PATH
    directories = survey.library_directories if survey.is_linux or survey.platform.is_windows else ()
    found = (it for directory in directories for it in libraries_in(survey.files, directory, origin))
    return tuple(it for it in found if not is_of_driver(it.name))


def _is_of_environment(survey: Survey, library: Library) -> bool:
    directory = survey.files.parent(library.path)
    prefixes = (prefix.rstrip("/\\") for prefix in survey.of_environments)
    return any(directory == it or directory.startswith((f"{it}/", f"{it}\\")) for it in prefixes)


def _effect(survey: Survey) -> str:
    if survey.platform.is_windows:
        return (
            "Python 3.8 and newer do not look on PATH for the libraries of a package, but programs do, and libraries "
            "that a package opens by name."
        )
    return (
        "The loader takes libraries from there before those that an environment brings (except where a library asks "
        "for its own with DT_RPATH, as PyTorch's do), and two versions get mixed."
    )


def _remedy(survey: Survey, where: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    if survey.platform.is_windows:
        return "Where a program loads the wrong library, take these directories out of PATH.", ()
    cut = without(survey.environ[LIBRARY_PATH], survey.driver_directory, lambda entry: entry.rstrip("/") in where)
    if cut.keeps is None:
        start = f"Start programs of an environment without {LIBRARY_PATH}"
        return f"{start}, and take its line out of the shell's start files.", cut.commands
    if cut.commands:
        out = f"Take {' and '.join(where)} out of {LIBRARY_PATH}"
        return f"{out}, and keep {cut.keeps}, by which alone the driver's library is found.", cut.commands
    until = f"Leave {LIBRARY_PATH} as long as {cut.keeps} is the only way to the driver's library"
    return f"{until}; where a file of /etc/ld.so.conf.d has it and ldconfig has run, unset the variable.", ()


def _components(found: list[Library]) -> str:
    versions: dict[str, list[str]] = {}
    for it in found:
        versions.setdefault(component(it.name) or it.name, []).append(it.version or "")
    named = (f"{name} {' and '.join(filter(None, sorted(set(it))))}".strip() for name, it in sorted(versions.items()))
    return ", ".join(named)


def _rest(found: list[Library]) -> tuple[str, ...]:
    return (f"and {len(found) - _MOST_NAMED} more",) if len(found) > _MOST_NAMED else ()


def _is_for_cuda(directory: str) -> bool:
    """Whether somebody meant a toolkit by it; images of CUDA name their compatibility package in any case."""
    return re.search(r"cuda(?!.*/compat)|cudnn", directory, re.IGNORECASE) is not None


def _named(entries: list[str]) -> str:
    named = [it for it in entries if it]
    return f" ({', '.join(named)})" if named else ""
