"""The doctor's findings as Markdown to paste into an issue, without names of users and machines."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from envsolve import __version__
from envsolve.boundary.redaction import redaction
from envsolve.cli.finding_text import printable
from envsolve.diagnose.environment.families import is_of_gpu_stacks

if TYPE_CHECKING:
    from envsolve.app.environment.doctoring import Diagnosed
    from envsolve.model.finding import Finding

_PREFIX = "ENV"
"""The placeholder for the directory of the environment."""


def markdown_report(diagnosed: Diagnosed, environ: Mapping[str, str]) -> str:
    """The whole report; it is the same for the same machine and environment."""
    prefix = str(diagnosed.inventory.get("prefix") or "")
    clean = redaction(environ, [platform.node()], {prefix: _PREFIX} if diagnosed.scene.inventory.owns_prefix else {})
    lines = [
        "## envsolve doctor",
        "",
        *_facts(diagnosed, clean),
        "",
        "### Findings",
        "",
        *(line for finding in diagnosed.findings for line in _finding(finding, clean)),
        *(() if diagnosed.findings else ("None.", "")),
        *_listed("Packages", list(_packages(diagnosed))),
        *_listed("Variables", [clean(it) for it in _variables(diagnosed)]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _facts(diagnosed: Diagnosed, clean: Callable[[str], str]) -> Iterator[str]:
    host = diagnosed.host
    gpus = (f"{it.count} x {it.name or 'unnamed'} ({it.compute_capability or 'unknown'})" for it in host.gpus)
    cuda = "" if host.driver_cuda is None else f" (CUDA {host.driver_cuda})"
    kind = "conda" if diagnosed.environment.is_conda else "venv" if diagnosed.scene.inventory.owns_prefix else "system"
    rows = (
        ("envsolve", __version__),
        ("platform", f"{host.platform.value}{', WSL' if host.wsl else ''}"),
        ("glibc", "unknown" if host.glibc is None else str(host.glibc)),
        ("NVIDIA driver", f"{host.driver}{cuda}" if host.driver is not None else "none"),
        ("GPU", ", ".join(gpus) or "none"),
        ("Python", f"{diagnosed.environment.python or 'unknown'} ({kind})"),
        ("frameworks", ", ".join(f"{name} {version}" for name, version in diagnosed.frameworks) or "none"),
    )
    yield from ("| | |", "|---|---|")
    yield from (f"| {name} | {_cell(clean(value))} |" for name, value in rows)


def _finding(finding: Finding, clean: Callable[[str], str]) -> Iterator[str]:
    yield f"#### {finding.severity.value}: {finding.id}"
    yield ""
    yield f"**{_plain(clean(finding.title))}**"
    yield ""
    yield _plain(clean(finding.cause))
    if finding.evidence:
        yield from ("", *_block(clean(line) for line in finding.evidence))
    yield ""


def _listed(title: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield from ("<details>", f"<summary>{title}</summary>", "", *_block(rows), "", "</details>", "")


def _block(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a code block, none of which can end the block."""
    yield from ("```text", *(printable(line).replace("```", "'''") for line in lines), "```")


def _packages(diagnosed: Diagnosed) -> Iterator[str]:
    """The packages of GPU stacks; names of other packages may be private."""
    for kind in ("packages", "conda"):
        rows = diagnosed.inventory.get(kind)
        for row in rows if isinstance(rows, list) else ():
            if is_of_gpu_stacks(str(row["name"])):
                by = row.get("installer") or row.get("build") or ""
                yield f"{row['name']} {row['version']} {by}".rstrip()


def _variables(diagnosed: Diagnosed) -> Iterator[str]:
    variables = diagnosed.inventory.get("variables")
    for name, value in variables.items() if isinstance(variables, dict) else ():
        yield f"{name}={value}"


def _cell(text: str) -> str:
    return _plain(text).replace("|", r"\|")


def _plain(text: str) -> str:
    """``text`` on one line, without the beginning of a tag."""
    return printable(text).replace("<", "&lt;")
