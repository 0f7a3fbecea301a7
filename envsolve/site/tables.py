"""The tables and the picture of the site, from the matrix and the outcomes of single frameworks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from urllib.parse import urlencode

from packaging.version import Version

from envsolve.matrix.load import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence
from envsolve.model.host import Platform
from envsolve.model.release import Architecture, Release
from envsolve.model.request import in_usual_order
from envsolve.model.versions import DriverVersion
from envsolve.site.answers import Stack
from envsolve.site.data import Answers
from envsolve.site.html import Html, joined, linked, tag
from envsolve.site.machines import GpuKind

_A_YEAR, _LONG = 365, 3 * 365
_WIDTH, _LINE, _LABEL = 900, 20, 150


def table(caption: str, header: Iterable[object], rows: Iterable[Iterable[object]]) -> Html:
    """A table whose first column names its rows; a cell that is not an element becomes one."""
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *(tag("th", it, scope="col") for it in header))),
            tag("tbody", *(tag("tr", *_cells(row)) for row in rows)),
        ),
        class_="wide",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def _cells(row: Iterable[object]) -> Iterator[Html]:
    first, *rest = row
    yield tag("th", first, scope="row")
    yield from (it if isinstance(it, Html) and it.startswith("<td") else tag("td", it) for it in rest)


def evidence_list(items: Iterable[Evidence]) -> Html:
    """The evidence for rows, without duplicates."""
    each = {(it.kind, it.reference): it for it in items}.values()
    return tag("ul", *(tag("li", linked(it.reference), f" ({it.kind}, {it.seen})") for it in each), class_="source")


def separate_gpus(kinds: Sequence[GpuKind], matrix: Matrix) -> list[tuple[GpuKind, Architecture]]:
    """One kind for each capability of GPUs except Jetson modules, with its architecture, the newest first."""
    found = {kind.capability: kind for kind in kinds}
    lives = ((kind, matrix.cuda.life_of(kind.capability)) for kind in found.values())
    return [(kind, life) for kind, life in lives if life is not None and not life.is_jetson]


class Popovers:
    """The explanations of cells, without duplicates; a cell refers to one by number."""

    def __init__(self) -> None:
        self._numbers: dict[Html, int] = {}

    def button(self, content: Html, label: str) -> Html:
        """The button that opens ``content``; ``label`` names its cell."""
        number = self._numbers.setdefault(content, len(self._numbers))
        return tag("button", "?", type="button", popovertarget=f"why{number}", aria_label=label, class_="why")

    def all(self) -> Html:
        """Every text, for the end of the page. The browser opens and closes them without a script."""
        close = (
            tag("button", "Close", type="button", popovertarget=f"why{it}", popovertargetaction="hide")
            for it in self._numbers.values()
        )
        return joined(
            tag("div", content, button, id=f"why{number}", popover=True, role="dialog", aria_label="Evidence")
            for (content, number), button in zip(self._numbers.items(), close, strict=True)
        )


class Cells:
    """Cells with the release that runs on a machine; ``up`` leads to the directory of the index."""

    def __init__(self, answers: Answers, up: str) -> None:
        self._answers, self._up = answers, up
        self.popovers = Popovers()

    def newest(
        self,
        framework: str,
        kind: GpuKind,
        driver: DriverVersion | None,
        platform: Platform = Platform.LINUX_64,
        product: str = "",
    ) -> Html:
        """The newest release that runs, with pip or conda; the colour says how far it is behind the newest one."""
        manager, outcome = self._answers.newest(framework, kind, driver, platform)
        version = outcome.releases[0][0] if outcome.releases else None
        gpu = product or kind.example
        state = {"gpu": gpu, "driver": str(driver or ""), "platform": platform}
        state |= {"manager": manager, "framework": framework}

        def filled(text: str) -> str:
            return text.replace("@gpu@", gpu).replace("@driver@", str(driver))

        link = tag("a", version or "none", href=f"{self._up}index.html#{urlencode(state)}")
        reasons = (tag("li", filled(text), " ", _source(source)) for text, source in outcome.because)
        head = tag("p", outcome.releases[0][1] if isinstance(outcome, Stack) else filled(outcome.message))
        on = f"{framework} on {gpu}" + (f" with R{driver}" if driver else f" on {platform}")
        button = self.popovers.button(joined((head, tag("ul", *reasons))), f"Why: {on}")
        return tag("td", link, " ", button, class_=version and _age(self._answers.days_behind(framework, version)))


def _source(text: str) -> Html:
    return tag("span", "(", linked(text), ")", class_="source") if text else Html("")


def _age(days: int | None) -> str:
    """The class of a cell by how far its release is behind the newest one."""
    return f"age{3 if days is None else sum(days > it for it in (0, _A_YEAR, _LONG))}"


def grid(framework: str, answers: Answers, cells: Cells) -> Html:
    """The newest release for each driver branch and GPU generation, on Linux."""
    platform = Platform.LINUX_64
    gpus = separate_gpus(answers.kinds, answers.matrix)
    drivers = [DriverVersion.parse(str(branch.branch)) for branch in answers.matrix.cuda.branches]
    return table(
        f"Newest {framework} on {platform}: driver branch by compute capability",
        ("driver", *(f"{kind.capability} {life.name}" for kind, life in gpus)),
        ((f"R{it}", *(cells.newest(framework, kind, it, platform) for kind, _ in gpus)) for it in drivers),
    )


LEGEND = tag(
    "p",
    *(
        joined((tag("span", text, class_=f"family age{age}"), " "))
        for age, text in enumerate(("the newest", "up to a year older", "up to three years older", "older"))
    ),
)


def releases_table(framework: str, matrix: Matrix) -> Html:
    """What each build of a framework has for each GPU: machine code, PTX or nothing."""
    gpus = [it.capability for it in matrix.cuda.architectures]
    rows: dict[tuple[object, ...], list[str]] = {}
    for it in sorted(matrix.framework(framework, None).releases, key=lambda it: it.version, reverse=True):
        if it.cuda is not None:
            cells = (_served(it.code, gpu) for gpu in gpus)
            rows.setdefault((it.version, it.source.value, it.build, it.cuda, *cells), []).append(it.platform.value)
    return table(
        f"Builds of {framework} by CUDA and compute capability: sm is machine code, PTX is compiled by the driver",
        ("version", "source", "build", "CUDA", "platforms", *map(str, gpus)),
        (
            (tag("a", key[0], href=f"{framework}/{key[0]}.html"), *key[1:4], ", ".join(dict.fromkeys(where)), *key[4:])
            for key, where in rows.items()
        ),
    )


def _served(code: DeviceCode, gpu: ComputeCapability) -> str:
    runs_as = code.runs_as(gpu)
    return "" if runs_as is None else "PTX" if runs_as.startswith("compute") else "sm"


def extensions_table(matrix: Matrix, popovers: Popovers) -> Html:
    """The newest known versions of each package with kernels that have code for a GPU, with the evidence for them."""
    gpus = [it.capability for it in matrix.cuda.architectures]
    rows = []
    for package in (name.rpartition("/")[2] for name in matrix.extension_tables):
        known = [row for row in matrix.build_rows(package) if row.code is not None]
        if known:
            button = popovers.button(evidence_list(it for row in known for it in row.evidence), f"Sources: {package}")
            rows.append((joined((package, " ", button)), *(_newest_with_code(known, gpu) for gpu in gpus)))
    caption = "Extension packages: the newest known versions with code for each compute capability"
    return table(caption, ("package", *map(str, gpus)), rows)


def _newest_with_code(rows: Iterable[BuildFacts], gpu: ComputeCapability) -> str:
    """The versions of the first row that has code; rows of newer versions come first."""
    served = (in_usual_order(row.versions) for row in rows if row.code is not None and row.code.runs_as(gpu))
    return next(served, "")


def dropped_by_frameworks(matrix: Matrix) -> Html:
    """The GPUs that each version of a framework dropped in all of its builds, with its release date."""
    rows = []
    for name in matrix.framework_names:
        known: dict[Version, list[Release]] = {}
        for it in matrix.framework(name, None).releases:
            if it.cuda is not None:
                known.setdefault(it.version, []).append(it)
        for old, new in pairwise(sorted(known)):
            lost = sorted(_targets(known[old], matrix) - _targets(known[new], matrix))
            if lost:
                rows.append((known[new][0].released or "", name, new, ", ".join(map(str, lost))))
    return table("Frameworks", ("day", "framework", "version", "dropped"), sorted(rows, key=lambda it: it[0])[::-1])


def _targets(releases: Iterable[Release], matrix: Matrix) -> set[ComputeCapability]:
    code = [it.code for it in releases]
    return {it.capability for it in matrix.cuda.architectures if any(one.runs_as(it.capability) for one in code)}


def toolkits_table(matrix: Matrix) -> Html:
    """CUDA toolkits with their drivers, and what each added and dropped."""
    toolkits = sorted(matrix.cuda.toolkits, key=lambda it: it.version)
    before = [set(toolkits[0].compiles_for), *(set(it.compiles_for) for it in toolkits)]
    rows = [
        (it.version, it.linux_floor, it.windows_floor, _listed(now - old), _listed(old - now))
        for it, now, old in ((it, set(it.compiles_for), old) for it, old in zip(toolkits, before, strict=False))
    ]
    return table("CUDA toolkits", ("CUDA", "Linux driver", "Windows driver", "added", "dropped"), rows[::-1])


def branches_table(matrix: Matrix, up: str) -> Html:
    """Driver branches with the CUDA that they support in full, and the GPUs that the branch dropped."""
    rows = []
    for branch in matrix.cuda.branches:
        lost = [
            it
            for it in matrix.cuda.architectures
            if it.last_branch and matrix.cuda.after(it.last_branch) == branch.branch
        ]
        name = tag("a", f"R{branch.branch}", href=f"{up}driver/{branch.branch}.html")
        rows.append((name, branch.cuda, branch.first_linux or "", branch.first_windows or "", _lives(lost)))
    return table("Driver branches", ("branch", "CUDA in full", "first on Linux", "first on Windows", "dropped"), rows)


def _lives(lives: Iterable[Architecture]) -> str:
    return ", ".join(f"{it.capability} {it.name}" for it in lives)


def _listed(values: Iterable[ComputeCapability | CodeTarget]) -> str:
    return ", ".join(map(str, sorted(values)))


def lives_picture(matrix: Matrix) -> Html:
    """The first to the last driver branch for each kind of GPU, as a picture with a text for each."""
    branches = sorted(it.branch for it in matrix.cuda.branches)
    lives = [it for it in matrix.cuda.architectures if not it.is_jetson]
    step = (_WIDTH - _LABEL) / len(branches)
    parts = [
        tag("text", f"{life.capability} {life.name}", x=0, y=_LINE * row + 14)
        + tag(
            "rect",
            tag("title", f"{life.capability} {life.name}: R{life.first_branch or branches[0]} to {_last(life)}"),
            x=round(_LABEL + step * first),
            y=_LINE * row + 3,
            width=round(step * (last - first)),
            height=_LINE - 6,
        )
        for row, life in enumerate(lives)
        for first in [sum(it < (life.first_branch or 0) for it in branches)]
        for last in [sum(it <= (life.last_branch or branches[-1]) for it in branches)]
    ]
    axis = [
        tag("text", f"R{it}", x=round(_LABEL + step * at), y=_LINE * len(lives) + 16)
        for at, it in enumerate(branches)
        if at % 4 == 0
    ]
    label = "Driver branches of each kind of GPU; the table below has the same numbers"
    picture = tag(
        "svg", *map(Html, parts), *axis, viewBox=f"0 0 {_WIDTH} {_LINE * len(lives) + 20}", role="img", aria_label=label
    )
    return tag("div", picture, class_="wide", tabindex="0", role="region", aria_label=label)


def _last(life: Architecture) -> str:
    return "today" if life.last_branch is None else f"R{life.last_branch}"
