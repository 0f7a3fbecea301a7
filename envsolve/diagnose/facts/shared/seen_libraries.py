"""What a text shows of libraries: which are missing, which CUDA and cuDNN is there, which CUDA the names are of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.facts.shared.library_names import Owner, Span, owner_of, span_of
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion, parsed_cuda

_PLACE = re.compile(r"cuda[-/\\]v?\d|compilation tools|cuda runtime version", re.IGNORECASE)
_NOT_THERE = re.compile(
    r"driver|nvidia-smi|install\b|requires?\b|built|compiled|supports?\b|needs?\b|expects?\b|download|API version",
    re.IGNORECASE,
)
"""Words beside a CUDA version by which it is not that of a toolkit on the machine."""


def library(sighting: Sighting) -> str:
    """The file that is missing; a plain stem where the text has no more."""
    return sighting.get("library") or sighting.get("stem") or ""


def reported_with_libdevice(case: Case, file_name: str) -> bool:
    """Whether it is NVVM, the compiler's library, which is reported with what the compiler misses."""
    return "nvvm" in file_name.lower() and case.saw("libdevice-missing")


def toolkits(case: Case) -> tuple[CudaVersion, ...]:
    """The CUDA toolkits on the machine: given, or in the text; not what a driver supports or a program needs."""
    if case.given.toolkit is not None and case.toolkit is not None:
        return (case.toolkit,)
    clues = (it for it in case.clues.get("toolkit", ()) if _PLACE.search(it.line) or not _NOT_THERE.search(it.line))
    found = [it for clue in clues if (it := parsed_cuda(clue.value)) is not None]
    of_conda = parsed_cuda(case.packages.get("cudatoolkit"))
    return tuple(dict.fromkeys(found)) or (() if of_conda is None else (of_conda,))


def cudnns(case: Case) -> tuple[str, ...]:
    """The versions of cuDNN on the machine, as the text says; not what a program needs."""
    clues = case.clues.get("cudnn", ())
    return tuple(dict.fromkeys(it.value for it in clues if "libcudnn" in it.line or not _NOT_THERE.search(it.line)))


def wanted_span(case: Case, sightings: Sequence[Sighting]) -> tuple[str, Span | None]:
    """The library whose name says most, and the toolkits that all the names together leave."""
    known = [(library(it), span_of(case.knowledge, library(it))) for it in sightings]
    name, span = min(known, key=lambda it: 10_000 if it[1] is None else it[1].minors)
    for _, other in known:
        if span is not None and other is not None:
            span = span.common(other) or span
    return name, span


def opened_span(case: Case) -> Span | None:
    """The toolkits that the libraries which the same program did open are of, by all their names together."""
    found: Span | None = None
    for it in case.of("library-present"):
        if not it.get("opened") or owner_of(library(it)) is not Owner.CUDA:
            continue
        span = span_of(case.knowledge, library(it))
        if span is not None:
            found = span if found is None else found.common(span) or found
    return found


def versions_built_for(case: Case, framework: str, fits: Callable[[CudaVersion], bool]) -> str | None:
    """The versions of ``framework`` whose wheels are built for a CUDA that ``fits``: ``2.5 to 2.11``."""
    platform = case.platform if case.platform is not None and case.platform.has_cuda else Platform.LINUX_64
    minors: set[tuple[int, ...]] = set()
    for release in case.knowledge.all_releases(framework, platform):
        if release.source.is_wheel and release.cuda is not None and fits(release.cuda):
            minors.add(release.version.release[:2])
    if not minors:
        return None
    first, last = (".".join(map(str, it)) for it in (min(minors), max(minors)))
    return first if first == last else f"{first} to {last}"


def whole_messages(sightings: tuple[Sighting, ...]) -> Iterator[Sighting]:
    """JAX's comparisons of libraries, each with the numbers in the lines after it."""
    for place, it in enumerate(sightings):
        if not it.get("part"):
            continue
        later: dict[str, str] = {}
        for after in sightings[place + 1 :]:
            if after.get("part"):
                break
            later |= {"found" if name == "installed" else name: value for name, value in after.fields.items()}
        yield it._replace(fields={**later, **it.fields})


_DIRECTORIES = (
    *("lib", "lib64", "bin", "Library/bin", "targets/*/lib"),
    *(f"{site}/{part}" for site in ("lib/python3*/site-packages", "Lib/site-packages") for part in
      ("nvidia/*/lib", "nvidia/*/bin", "torch/lib", "*.libs")),
)  # fmt: skip
"""Where an environment has shared libraries."""


def places_in_prefix(case: Case, name: str) -> Iterator[Path]:
    """Where a file of that name is in the environment that is given."""
    if case.given.prefix is None or not re.fullmatch(r"[\w.+-]+", name):
        return
    for directory in _DIRECTORIES:
        yield from (it for it in Path(case.given.prefix).glob(f"{directory}/{name}") if it.is_file())
