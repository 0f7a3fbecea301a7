"""The matrix as text: tables, and below them the evidence for the rows and known problems."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from envsolve.app.matrix.matrix import Overview, ReadHere, Shown
from envsolve.app.solve.builds import Build
from envsolve.cli.table import heading, table
from envsolve.model.fact import Evidence
from envsolve.model.release import CudnnRelease, Disagreement, KnownBad, PlatformLimit, Release, Source, Toolkit

_NAMED_ROWS = 4
BUILD_HEADER = (
    *("framework", "version", "source", "platform", "build", "Python", "CUDA", "cuDNN", "driver", "for PTX"),
    *("machine code", "PTX", "runs as", "fails", "evidence"),
)


class References:
    """Numbers for evidence, in the order of its first use."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._items: list[Evidence] = []

    def to(self, items: Iterable[Evidence]) -> str:
        """The numbers of ``items`` for a cell: ``1,4``."""
        return ",".join(str(self._number(item)) for item in items)

    def section(self) -> str:
        """Every piece of evidence with its kind and date, each once."""
        lines = [f"  [{number}] {item.kind}, {item.seen}: {item.reference}\n" for number, item in self._numbered()]
        return heading("Evidence") + "".join(lines)

    def _number(self, item: Evidence) -> int:
        key = (item.kind, item.reference)
        if key not in self._numbers:
            self._items.append(item)
        return self._numbers.setdefault(key, len(self._numbers) + 1)

    def _numbered(self) -> Iterator[tuple[int, Evidence]]:
        return iter(enumerate(self._items, 1))


def overview_page(entries: Sequence[Overview], here: Sequence[ReadHere]) -> str:
    """One line for each framework, and below them one for each build that was read on this machine."""
    header, rows, sources = overview_table(entries)
    text = table(header, rows, sources)
    return text + _section("Read on this machine", read_here_lines(here))


def read_here_lines(here: Sequence[ReadHere]) -> list[str]:
    """One line for each build that was read on this machine."""
    return [f"{it.release} ({it.build}), {it.seen}" for it in here]


def overview_table(entries: Sequence[Overview]) -> tuple[list[str], list[list[str]], list[Source]]:
    """The header, one row for each framework, and the columns of sources."""
    sources = [source for source in Source if any(source in entry.sources for entry in entries)]
    rows = [
        [entry.framework, f"{entry.oldest} to {entry.newest}", str(entry.builds)]
        + [str(entry.sources.get(source, "")) for source in sources]
        + [str(entry.wheels_read)]
        for entry in entries
    ]
    return ["framework", "versions", "builds", *sources, "from wheels"], rows, sources


def builds_page(builds: Sequence[Build]) -> str:
    """One line for each build, of any framework."""
    return table(BUILD_HEADER, [(*cells, "") for cells in builds_table(builds)])


def builds_table(builds: Sequence[Build]) -> dict[tuple[str, ...], Build]:
    """The cells of each build before its evidence; equal ones of another package are omitted."""
    rows: dict[tuple[str, ...], Build] = {}
    for it in builds:
        rows.setdefault((it.release.framework, *_cells(it)), it)
    return rows


def shown_page(shown: Shown) -> str:
    """The builds of one framework and everything that is known about them."""
    references = References()
    rows = [["", *_cells(build), references.to(build.release.evidence)] for build in shown.builds]
    releases = [build.release for build in shown.builds]
    text = table(BUILD_HEADER, rows)
    text += _section("Known to fail", [_known_bad(entry, references) for entry in shown.known_bad])
    text += _section("No GPU build", [_limit(entry, references) for entry in shown.platform_limits])
    text += _section("Where sources disagree", [_disagreement(entry, references) for entry in shown.disagreements])
    text += _section(
        "Inferred, not read from the package itself", _grouped(releases, lambda it: ", ".join(it.inferred))
    )
    text += _section("Notes", _grouped(releases, lambda it: it.note))
    return text + references.section()


def toolkits_page(toolkits: Sequence[Toolkit]) -> str:
    """CUDA toolkits with their drivers."""
    references = References()
    header = ("CUDA", "Linux driver", "in full", "Windows driver", "in full", "compiles for", "evidence")
    rows = [
        (
            *(str(toolkit.version), str(toolkit.linux_floor), str(toolkit.linux_full or "")),
            *(str(toolkit.windows_floor), str(toolkit.windows_full or "")),
            *(_listed(toolkit.compiles_for), references.to(toolkit.evidence)),
        )
        for toolkit in toolkits
    ]
    return table(header, rows) + references.section()


def cudnn_page(releases: Sequence[CudnnRelease]) -> str:
    """CuDNN releases with the GPUs that they support."""
    references = References()
    header = ("cuDNN", "CUDA", "oldest", "newest", "machine code", "PTX", "PyPI", "conda-forge", "evidence")
    rows = [
        (
            *(str(release.version), str(release.cuda_major), str(release.oldest), str(release.newest)),
            *(("", "") if release.code is None else (_listed(release.code.sass), _listed(release.code.ptx))),
            *("yes" if release.on_pypi else "", _listed(release.conda_platforms), references.to(release.evidence)),
        )
        for release in releases
    ]
    return table(header, rows) + references.section()


def _cells(build: Build) -> list[str]:
    """The cells of a build between its framework and its evidence."""
    release, toolkit = build.release, build.toolkit
    windows = release.platform.is_windows
    served = dict.fromkeys(build.runs_as.values())
    return [
        *(str(release.version), release.source.value, release.platform.value, release.build),
        python_span(release.pythons),
        "" if release.cuda is None else str(release.cuda),
        str(release.cudnn or release.cudnn_requires or ""),
        "" if toolkit is None else str(toolkit.floor(windows=windows)),
        "" if toolkit is None or not release.code.ptx else str(toolkit.full(windows=windows) or "unknown"),
        *(_listed(release.code.sass), _listed(release.code.ptx), ",".join(served)),
        ",".join(_where(entry) for entry in build.known_bad),
    ]


def _where(entry: KnownBad) -> str:
    return f"on {'/'.join(map(str, entry.capabilities))}" if entry.capabilities else "yes"


def _known_bad(entry: KnownBad, references: References) -> str:
    return f"{_selection(entry)}: {entry.reason} [{references.to(entry.evidence)}]"


def _limit(entry: PlatformLimit, references: References) -> str:
    return f"{entry.platform}, {entry.versions}: {entry.reason} {entry.instead} [{references.to(entry.evidence)}]"


def _disagreement(entry: Disagreement, references: References) -> str:
    sides = f"the rows follow {entry.used}, against {entry.rejected}: {entry.because}"
    return f"{entry.about}: {sides} [{references.to(entry.evidence)}]"


def _selection(entry: KnownBad) -> str:
    on = f"compute capability {', '.join(map(str, entry.capabilities))}" if entry.capabilities else ""
    chosen = [str(entry.versions), *entry.sources, *entry.builds, *entry.platforms, on]
    return ", ".join(str(word) for word in chosen if word)


def _section(title: str, lines: Sequence[str]) -> str:
    return heading(title) + "".join(f"  {line}\n" for line in lines) if lines else ""


def _grouped(releases: Sequence[Release], text_of: Callable[[Release], str]) -> list[str]:
    """Facts that several builds share, each once, after the names of the builds."""
    groups: dict[Hashable, list[Release]] = {}
    for release in releases:
        if text_of(release):
            groups.setdefault(text_of(release), []).append(release)
    return [f"{_named(rows)}: {text}" for text, rows in groups.items()]


def _named(releases: Sequence[Release]) -> str:
    """The builds by version, source, build and platform; the first few of many."""
    names = [f"{it.version} {it.source} {it.build} {it.platform}" for it in releases]
    more = len(names) - _NAMED_ROWS
    return ", ".join(names[:_NAMED_ROWS]) + (f" and {more} more" if more > 0 else "")


def python_span(pythons: Sequence[str]) -> str:
    """``3.9-3.12``, with a comma where minors are left out."""
    spans: list[list[str]] = []
    for python in pythons:
        major, _, minor = python.partition(".")
        if spans and spans[-1][-1] == f"{major}.{int(minor) - 1}":
            spans[-1] = [spans[-1][0], python]
        else:
            spans.append([python])
    return ",".join("-".join(span) for span in spans)


def _listed(values: Iterable[object]) -> str:
    return ",".join(map(str, values))
