"""The pages: the selector, and one for each GPU, driver branch, framework, release and finding."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from packaging.version import Version

from envsolve.findings.catalogue import shipped
from envsolve.findings.entry import Entry
from envsolve.findings.template import Sentence, filled
from envsolve.model.release import Architecture, DriverBranch, Release
from envsolve.model.versions import DriverVersion
from envsolve.site import tables
from envsolve.site.data import Answers
from envsolve.site.document import MANAGERS, document_of
from envsolve.site.html import Html, asset, joined, page, slug, tag
from envsolve.site.machines import PLATFORMS, GpuKind

_GAP = "…"


def pages(answers: Answers) -> Iterator[tuple[str, str]]:
    """Every page with its address in the directory of the site."""
    yield "index.html", _index(answers)
    yield "timeline.html", _timeline(answers)
    yield "extensions.html", _extensions(answers)
    yield "errors.html", _errors()
    yield "gpus.html", _gpus(answers)
    for kind in answers.kinds:
        for name in kind.products:
            yield f"gpu/{slug(name)}.html", _gpu(name, kind, answers)
    for branch in answers.matrix.cuda.branches:
        yield f"driver/{branch.branch}.html", _driver(branch, answers)
    for name in answers.frameworks:
        yield f"framework/{name}.html", _framework(name, answers)
        releases = answers.matrix.framework(name, None).releases
        for version in sorted({it.version for it in releases}):
            yield f"framework/{name}/{version}.html", _release(name, version, answers)
    for identifier, entries in _findings().items():
        yield f"error/{identifier}.html", _error(identifier, entries)


def _index(answers: Answers) -> str:
    document = document_of(answers)
    names = [*(f"framework/{name}" for name in answers.frameworks), "gpus", "timeline", "extensions", "errors"]
    links = (joined((tag("a", name.rpartition("/")[2], href=f"{name}.html"), " ")) for name in names)
    about = f"Answers of envsolve {document['version']} from the compatibility matrix of {document['matrix_date']}"
    body = [
        tag("h1", "Which CUDA stack runs on my GPU?"),
        _selector(answers),
        tag("p", id="status", role="status"),
        tag("section", id="answer", aria_label="Answer"),
        tag("noscript", "The selector needs JavaScript. The tables below do without."),
        tag("h2", "What runs where"),
        tag("nav", *links, aria_label="Tables"),
        tag("p", f"{about}, digest {document['digest'][:12]}. This page asks no server.", class_="source"),
    ]
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    return page("CUDA stacks for your GPU", body, up="", script=asset("app.js"), data=data)


def _selector(answers: Answers) -> Html:
    """The form; the script fills in the products and the state."""
    smi = tag("textarea", id="smi", rows=4, aria_label="Output of nvidia-smi")
    return tag(
        "form",
        _field(
            "GPU or compute capability",
            "gpu",
            tag("datalist", id="products"),
            tag("label", tag("input", type="checkbox", id="cpu"), " No GPU (CPU)"),
            tag("span", id="family", hidden=True),
            list="products",
        ),
        _field(
            "NVIDIA driver, if known",
            "driver",
            tag("details", tag("summary", "Paste what nvidia-smi prints"), smi),
        ),
        _choices("Frameworks", "checkbox", "framework", answers.frameworks),
        _choices("Platform", "radio", "platform", PLATFORMS),
        _choices("Installed by", "radio", "manager", [it.name for it in MANAGERS]),
        id="selector",
    )


def _field(legend: str, name: str, *below: Html, **attributes: str) -> Html:
    field = tag("input", type="text", id=name, name=name, autocomplete="off", **attributes)
    return tag("fieldset", tag("legend", tag("label", legend, for_=name)), field, *below)


def _choices(legend: str, kind: str, name: str, values: Iterable[str]) -> Html:
    boxes = (tag("label", tag("input", type=kind, name=name, value=it), f" {it}") for it in values)
    return tag("fieldset", tag("legend", legend), *boxes)


def _timeline(answers: Answers) -> str:
    matrix = answers.matrix
    body = [
        tag("h1", "Timeline"),
        tables.lives_picture(matrix),
        tables.branches_table(matrix, ""),
        tables.toolkits_table(matrix),
        tables.dropped_by_frameworks(matrix),
    ]
    return page("Timeline of drivers, toolkits and frameworks", body, up="")


def _extensions(answers: Answers) -> str:
    title, popovers = "Extension packages", tables.Popovers()
    return page(title, [tag("h1", title), tables.extensions_table(answers.matrix, popovers), popovers.all()], up="")


def _gpus(answers: Answers) -> str:
    rows = [
        (tag("a", name, href=f"gpu/{slug(name)}.html"), kind.capability, life.name if life else "")
        for kind in answers.kinds
        for life in [answers.matrix.cuda.life_of(kind.capability)]
        for name in kind.products
    ]
    return page("GPUs", [tag("h1", "GPUs"), tables.table("Products", ("GPU", "capability", "generation"), rows)], up="")


def _gpu(name: str, kind: GpuKind, answers: Answers) -> str:
    life = answers.matrix.cuda.life_of(kind.capability)
    assert life is not None
    cells = tables.Cells(answers, "../")
    body = [
        tag("h1", name),
        tag("p", f"{life.name}, compute capability {kind.capability}. {_drivers_of(life)}"),
        tables.table(
            "Newest release that runs, with a driver that is new enough",
            ("framework", *PLATFORMS),
            ((it, *(cells.newest(it, kind, None, on, name) for on in PLATFORMS)) for it in answers.frameworks),
        ),
        tables.LEGEND,
        tag("h2", "Sources"),
        tables.evidence_list(life.evidence),
        cells.popovers.all(),
    ]
    return page(name, body)


def _drivers_of(life: Architecture) -> str:
    if life.is_jetson:
        return "Its driver comes with JetPack."
    first = f"R{life.first_branch}" if life.first_branch else "the oldest"
    return (
        f"NVIDIA drivers from {first} to {'today' if life.last_branch is None else f'R{life.last_branch}, its last'}."
    )


def _driver(branch: DriverBranch, answers: Answers) -> str:
    driver, names, cells = DriverVersion.parse(str(branch.branch)), answers.frameworks, tables.Cells(answers, "../")
    rows = [
        (
            f"{kind.capability} {life.name}",
            *(cells.newest(it, kind, driver) for it in names),
        )
        for kind, life in tables.separate_gpus(answers.kinds, answers.matrix)
    ]
    header = ("compute capability", *names)
    body = [
        tag("h1", f"NVIDIA driver R{branch.branch}"),
        tag("p", f"It supports CUDA {branch.cuda} in full, and older ones."),
        tables.table(f"Newest release that runs with R{branch.branch} on {PLATFORMS[0]}", header, rows),
        tables.LEGEND,
        tag("h2", "Sources"),
        tables.evidence_list(branch.evidence),
        cells.popovers.all(),
    ]
    return page(f"NVIDIA driver R{branch.branch}", body)


def _framework(name: str, answers: Answers) -> str:
    cells = tables.Cells(answers, "../")
    body = [
        tag("h1", name),
        tables.LEGEND,
        tables.grid(name, answers, cells),
        tables.releases_table(name, answers.matrix),
        cells.popovers.all(),
    ]
    return page(f"{name}: drivers, CUDA and GPUs", body)


def _release(name: str, version: Version, answers: Answers) -> str:
    whole = answers.matrix.framework(name, None)
    builds = [it for it in whole.releases if it.version == version]
    known_bad = [it for it in whole.known_bad if any(it.covers(build) for build in builds)]
    header = ("source", "platform", "build", "Python", "CUDA", "cuDNN", "machine code", "PTX")
    body = [
        tag("h1", f"{name} {version}"),
        tag("p", f"Released on {builds[0].released or 'an unknown day'}."),
        tables.table(f"Builds of {name} {version}", header, map(_build, builds)),
        *(tag("p", it.reason) for it in known_bad),
        tag("h2", "Sources"),
        tables.evidence_list(item for every in (builds, known_bad) for it in every for item in it.evidence),
    ]
    return page(f"{name} {version}", body, up="../../")


def _build(it: Release) -> tuple[object, ...]:
    cudnn = it.cudnn or it.cudnn_requires or ""
    code = (", ".join(map(str, targets)) for targets in (it.code.sass, it.code.ptx))
    return it.source, it.platform, it.build, ", ".join(it.pythons), it.cuda or "CPU", cudnn, *code


def _findings() -> dict[str, list[Entry]]:
    """The entries of each finding, by its public id."""
    found: dict[str, list[Entry]] = {}
    for name in shipped():
        entry = shipped().entry(name)
        found.setdefault(entry.finding, []).append(entry)
    return dict(sorted(found.items()))


def _errors() -> str:
    rows = [
        (tag("a", identifier, href=f"error/{identifier}.html"), tag("td", _text(entries[0].title[-1]), class_="text"))
        for identifier, entries in _findings().items()
    ]
    return page(
        "Errors", [tag("h1", "Errors"), tables.table("Findings of envsolve", ("id", "what it says"), rows)], up=""
    )


def _error(identifier: str, entries: list[Entry]) -> str:
    body: list[Html] = [tag("h1", identifier)]
    for entry in entries:
        body.append(tag("h2", _text(entry.title[-1])))
        for title, sentences in (("Cause", entry.cause), ("Fix", entry.fix), ("More", entry.more)):
            if sentences:
                body += [tag("h3", title), tag("ul", *(tag("li", _text(it)) for it in sentences))]
        commands = [text for it in entry.commands if _GAP not in (text := _text(it))]
        body += [tag("pre", tag("code", it), tabindex="0") for it in commands]
    return page(identifier, body)


def _text(sentence: Sentence) -> str:
    """A sentence without a case: a gap for each fact that has no other words."""
    return filled(sentence.text, lambda name: _GAP if f"{{{name}}}" in sentence.text else None)
