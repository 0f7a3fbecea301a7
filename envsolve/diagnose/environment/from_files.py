"""Read an environment from its files only, if its Python does not run: its packages are still examined.

A virtual environment is described by pyvenv.cfg (PEP 405), a conda prefix by conda-meta. The place of modules follows
from the layout that both share (``sysconfig`` of CPython, schemes ``posix_prefix`` and ``nt``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from envsolve.boundary.reading import is_directory, is_file, names_of, text_of
from envsolve.validation.inventory import Inventory, distributions_in

LONGEST_PATH_FILE = 64 * 1024
"""Limit in bytes for a pyvenv.cfg or a .pth file."""
_PROGRAMS = ("bin/python", "bin/python3", "python.exe", "Scripts/python.exe")
_VERSIONED = re.compile(r"python(3\.\d+t?)\Z")
_OF_CONDA = re.compile(r"python-(\d[\w.]*)-[^-]+\.json\Z")
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_MODULES = ("site-packages", "dist-packages")


def inventory_from_files(prefix: Path) -> Inventory:
    """The inventory of the environment in ``prefix``, without its interpreter; ``python`` is "" if no file says it."""
    settings = settings_of(prefix)
    is_conda = is_directory(prefix / "conda-meta")
    search_path = tuple(dict.fromkeys(_search_path(prefix, settings)))
    return Inventory(
        python=_python(prefix, settings, search_path),
        executable=program_of(prefix),
        prefix=prefix,
        search_path=search_path,
        distributions=distributions_in(search_path),
        is_conda=is_conda,
        owns_prefix=is_conda or bool(settings),
    )


def is_environment(directory: Path) -> bool:
    """Whether ``directory`` was made for Python: a virtual or conda environment, or any prefix with modules."""
    return is_marked(directory) or next(_module_directories(directory), None) is not None


def is_marked(directory: Path) -> bool:
    """Whether a file says that ``directory`` is a virtual or conda environment."""
    return is_file(directory / "pyvenv.cfg") or is_directory(directory / "conda-meta")


def settings_of(prefix: Path) -> Mapping[str, str]:
    """The settings in pyvenv.cfg, with lower-case keys; empty if there is none."""
    text = text_of(prefix / "pyvenv.cfg", LONGEST_PATH_FILE) or ""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {key.strip().casefold(): value.strip() for key, _, value in pairs}


def program_of(prefix: Path) -> Path:
    """The interpreter of a prefix: the first one that exists, or else the first broken link."""
    paths = [prefix / name for name in _PROGRAMS]
    links = (it for it in paths if os.path.islink(it))  # noqa: PTH114 - never raises
    return next((it for it in paths if is_file(it)), None) or next(links, paths[0])


def module_lines(file: Path) -> tuple[str, ...]:
    """The lines of a .pth file that name a directory: no comments, and no lines that Python executes (``site.py``)."""
    text = (text_of(file, LONGEST_PATH_FILE) or "").removeprefix("\ufeff")
    lines = (line.rstrip() for line in text.splitlines())
    return tuple(
        line for line in lines if line and "\0" not in line and not line.startswith(("#", "import ", "import\t"))
    )


def _search_path(prefix: Path, settings: Mapping[str, str]) -> Iterator[Path]:
    own = tuple(_module_directories(prefix))
    yield from own
    for directory in own:
        for name in names_of(directory):
            if name.endswith(".pth"):
                added = (directory / line for line in module_lines(directory / name))
                yield from (it for it in added if is_directory(it))
    if settings.get("include-system-site-packages", "").casefold() == "true" and settings.get("home"):
        yield from _module_directories(Path(settings["home"]).parent)


def _module_directories(prefix: Path) -> Iterator[Path]:
    """The directories of packages; if there are several Pythons, the newest first."""
    for library in ("lib", "lib64"):
        if library == "lib64" and os.path.islink(prefix / library):  # noqa: PTH114 - never raises
            continue
        versions = [match[1] for name in names_of(prefix / library) if (match := _VERSIONED.match(name))]
        for version in sorted(versions, key=_as_numbers, reverse=True):
            for modules in _MODULES:
                directory = prefix / library / f"python{version}" / modules
                if is_directory(directory):
                    yield directory
    for directory in (prefix / "Lib/site-packages", prefix / "lib/python3/dist-packages"):
        if is_directory(directory):
            yield directory


def _python(prefix: Path, settings: Mapping[str, str], search_path: tuple[Path, ...]) -> str:
    """The version, by pyvenv.cfg (venv: version, virtualenv and uv: version_info), by conda, or by a folder's name."""
    configured = (settings.get("version_info") or settings.get("version") or "").strip()
    of_conda = (match[1] for name in names_of(prefix / "conda-meta") if (match := _OF_CONDA.match(name)))
    folders = (match[1] for it in search_path if (match := _VERSIONED.match(it.parent.name)))
    for text in (configured, *of_conda, *folders):
        match = _VERSION.match(text)
        if match is not None:
            return match[0]
    return ""


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part.rstrip("t")) for part in version.split("."))
