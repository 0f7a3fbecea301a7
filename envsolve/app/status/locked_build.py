"""Finds out which build of a version a file installs, from its other contents.

The wheels of JAX and TensorFlow have the same version for every CUDA and for the CPU. The packages next to them, or the
extras that install those, decide which build it is. If several builds remain, what envsolve recorded decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from envsolve.frameworks import FRAMEWORKS, Framework
from envsolve.lockfile.lock import Stack
from envsolve.model.names import normalized
from envsolve.model.release import CudaLibraries, Release
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.bounds import cuda_major_of

_CUDA_EXTRA = re.compile(r"cuda(\d\d)?(?:-[a-z]+)?")
_EXTRAS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*\[([A-Za-z0-9._,\s-]+)\]")
_COMMENT = re.compile(r"(?:^|\s)#.*$", re.MULTILINE)


class Beside(NamedTuple):
    """The packages in a file with their versions, "" if open, and the extras by project."""

    versions: Mapping[str, str]
    extras: Mapping[str, frozenset[str]]


def extras_in(text: str) -> dict[str, frozenset[str]]:
    """The extras in the requirements of ``text``, by project; names are normalized."""
    found: dict[str, frozenset[str]] = {}
    for name, extras in _EXTRAS.findall(_COMMENT.sub("", text)):
        named = frozenset(normalized(it.strip()) for it in extras.split(","))
        found[normalized(name)] = found.get(normalized(name), frozenset()) | named
    return found


def installed_of(rows: tuple[Release, ...], beside: Beside, recorded: Stack | None) -> tuple[Release, ...]:
    """The builds in ``rows``, all of one framework version, that the file may install; all if nothing decides."""
    known = FRAMEWORKS.get(rows[0].framework) if rows else None
    if known is not None and known.gpu_packages is not None and not known.has_gpu_code(rows[0].package):
        left = tuple(_of_parts(rows, beside, known)) or rows
    else:
        left = tuple(_of_libraries(rows, beside)) or rows
    return recorded_in(left, recorded) or left


def recorded_in(rows: Iterable[Release], recorded: Stack | None) -> tuple[Release, ...]:
    """The builds in ``rows`` that envsolve recorded in a file; none if another tool wrote it."""
    frameworks = () if recorded is None else recorded.frameworks
    named = {(it.framework, it.version, it.source, it.build) for it in frameworks}
    return tuple(it for it in rows if (it.framework, str(it.version), it.source.value, it.build) in named)


def _of_parts(rows: Iterable[Release], beside: Beside, known: Framework) -> Iterator[Release]:
    """Builds of a framework such as JAX, whose wheel is for every CUDA; its plugin packages are for one."""
    named = (cuda_major_of(name) for name in beside.versions if known.has_gpu_code(name))
    plugins = {it for it in named if it is not None}
    of_parts = (parsed_version(version) for name, version in beside.versions.items() if known.is_beside(name))
    local = next((it.local for it in of_parts if it is not None and it.local), None)
    for row in rows:
        major = None if row.cuda is None else row.cuda.major
        cuda_extras = [it for name in beside.extras.get(row.package, ()) if (it := _CUDA_EXTRA.fullmatch(name))]
        majors = {int(found[1]) for found in cuda_extras if found[1]}
        if plugins:
            fits = major in plugins
        elif local is not None:
            fits = row.build == local
        elif cuda_extras:
            fits = major in majors if majors else major is not None
        else:
            fits = major is None
        if fits:
            yield row


def _of_libraries(rows: Iterable[Release], beside: Beside) -> Iterator[Release]:
    """Builds that require their CUDA libraries as packages, if these packages are in the file; or else the others."""
    rows = tuple(rows)
    if {row.cuda_libraries for row in rows} != {CudaLibraries.DEPENDENCIES, CudaLibraries.NONE}:
        return
    extras = frozenset(it for row in rows for it in beside.extras.get(row.package, ()))
    brought = [row for row in rows if row.cudnn_package in beside.versions or extras & set(row.extras)]
    yield from brought or (row for row in rows if row.cuda_libraries is CudaLibraries.NONE)
