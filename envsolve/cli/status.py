"""``envsolve status``: whether environments and locks on disk run on this machine, or on one that is named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.lock import project_option
from envsolve.cli.options import (
    Command,
    FileName,
    Member,
    matrix_of,
    matrix_option,
    option,
    output_options,
    require_not_typed,
)
from envsolve.cli.output import deliver, deliver_json
from envsolve.cli.output_formats import Case, Item, Level, Outcome, output_format, output_format_options, rendered
from envsolve.cli.report import note, note_each
from envsolve.cli.solve_options import options_of_solve
from envsolve.errors import UsageError
from envsolve.model.host import Platform
from envsolve.model.lock_format import PLATFORM
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.status.status import FileStatus
    from envsolve.matrix import Matrix
    from envsolve.project import Project

_WORDS = {
    "fits": "runs here",
    "does-not-run": "does not run here",
    "cpu-only": "runs without the GPU",
    "unknown": "unknown",
    "stale": "does not match the project",
    "missing": "is missing",
    "unreadable": "cannot be read",
    "no-framework": "has nothing that depends on GPU or driver",
}
_LOCKED_AGAIN = ("does-not-run", "cpu-only", "stale", "missing")
"""Problems that `envsolve lock` may fix in a project."""
_WORDS_OF_PROJECT = {"fits": "fits", "does-not-run": "does not run on the machines of the project"}
"""A project names its machines, which need not be this one."""


@click.command(cls=Command, short_help="Check which environment files and locks run here.")
@click.argument("files", nargs=-1, metavar="[FILE]...", type=FileName("file"))
@project_option
@options_of_solve(("gpus", "driver", "hosts"))
@option("--platform", type=Member("name", Platform), help="The machine's platform; default: this one's.")
@output_format_options
@matrix_option
@output_options
def status(**options: Any) -> int:
    """Check which environment files and locks run on this machine; exit 1 if one does not.

    Without FILE, checks the files of the project in [tool.envsolve]: whether they run on its machines and match its
    requirements. Without a project, checks files with the usual names in the current directory.

    \b
    Examples:
      envsolve status
      envsolve status pylock.toml --gpu V100 --driver 535.183.01
    """
    from envsolve.app.status.status import files_to_check, status_of

    matrix = matrix_of(options)
    project = _project(options) if _is_about_project(options) else None
    if project is not None:
        return _of_project(project, matrix, options)
    require_not_typed(("project",), "is about the files and the machines that a project names: leave out others")
    files = files_to_check(options["files"])
    request = Request(
        frameworks=(),
        gpus=("none",) if set(options["gpus"]) == {"none"} else options["gpus"],
        driver=options["driver"],
        hosts=options["hosts"],
        platforms=() if options["platform"] is None else (options["platform"],),
    )
    by_itself = len(options["files"]) == 1
    found = status_of(files, request, matrix, os.environ, by_itself=by_itself)
    code = _deliver(found, options)
    if any(map(_of_machines_of_project, found)) and _is_about_project({**options, "files": ()}):
        note("`envsolve status` without a file uses the machines of the project", quiet=options["quiet"])
    return code


def _deliver(found: list[FileStatus], options: dict[str, Any], project: Project | None = None) -> int:
    from envsolve.app.status.results import Status

    result = Status(tuple(found))
    format_name, of_project = output_format(options), project is not None
    if format_name == "json":
        deliver_json(result.as_json())
    elif format_name == "text":
        deliver(_text(found, of_project=of_project), None)
    else:
        cases = tuple(_case(it, project) for it in found)
        deliver(rendered(Outcome("envsolve status", cases, _text(found, of_project=of_project)), format_name), None)
    note_each(dict.fromkeys(each for status in found for each in status.notes), options)
    return 0 if result.ok else 1


def _is_about_project(options: dict[str, Any]) -> bool:
    """Whether neither files nor a machine are named, which a project would name."""
    named = ("files", "gpus", "driver", "hosts", "platform")
    return not any(options[name] for name in named)


def _project(options: Mapping[str, Any]) -> Path | None:
    """The file of the project that is named, or of the one around the current directory, if any."""
    from envsolve.project import find_project, project_file

    return project_file(options["project"]) if options["project"] else find_project(Path.cwd())


def _of_machines_of_project(it: FileStatus) -> bool:
    """Whether a file of unknown status is an output of the project here."""
    from envsolve.project import find_project, read_project

    if it.verdict.value != "unknown":
        return False
    try:
        file = find_project(Path.cwd())
        project = None if file is None else read_project(file)
    except UsageError:
        return False  # `envsolve lock` reports mistakes in the project
    outputs = () if project is None else (output.file for part in project.parts for output in part.outputs)
    here = Path(it.path).absolute()
    return project is not None and any(
        project.directory / name.replace(PLATFORM, it.platform) == here for name in outputs
    )


def _of_project(file: Path, matrix: Matrix, options: dict[str, Any]) -> int:
    """Check the files of the project, with names relative to its directory."""
    from envsolve.app.project.project_status import project_status
    from envsolve.project import read_project

    project = read_project(file)
    with chdir(project.directory):
        found = project_status(project, matrix, os.environ)
    return _deliver(found, options, project)


def _text(found: list[FileStatus], *, of_project: bool) -> str:
    words = _WORDS_OF_PROJECT if of_project else _WORDS
    lines = []
    for it in found:
        lines.append(f"{it.path} ({it.platform}): {words.get(it.verdict, _WORDS[it.verdict])}")
        lines += [f"  {build}" for build in it.builds]
        lines += [f"  needs: {needs}" for needs in _needs(it)]
        lines += [f"  because: {reason.text}" for reason in it.reasons]
        lines += [f"  newer: {text}" for text in it.newer]
    return "".join(f"{line}\n" for line in lines)


def _needs(it: FileStatus) -> Iterator[str]:
    """The known requirements of another tool's lock on a machine."""
    needs = it.needs
    if needs is None:
        return
    known = [f"NVIDIA driver {needs.driver_floor} or newer"] if needs.driver_floor else []
    known += [f"CUDA {needs.cuda}"] if needs.cuda else []
    known += [f"compute capability {', '.join(needs.compute_capabilities)}"] if needs.compute_capabilities else []
    if known:
        yield "; ".join(known)


def _case(it: FileStatus, project: Project | None) -> Case:
    """A file that was checked. Problems are shown at its framework, a missing file where it is named."""
    from envsolve.cli.places import output_place, package_place

    words = (_WORDS_OF_PROJECT if project is not None else {}).get(it.verdict, _WORDS[it.verdict])
    path = it.path if project is None else os.path.relpath(project.directory / it.path)
    if it.verdict.value == "missing" and project is not None:
        file, line = output_place(project)
    else:
        names = () if it.stack is None else tuple(package.name for package in it.stack.named)
        file, line = package_place(path, names)
    name = f"{path} ({it.platform})"
    items = []
    if not it.verdict.is_good:
        because = "\n".join(f"because: {reason.text}" for reason in it.reasons)
        fix = "Run `envsolve lock`." if project is not None and it.verdict.value in _LOCKED_AGAIN else ""
        items = [Item(Level.ERROR, it.verdict.value, f"{name}: {words}", fix, file, line, because)]
    items += [Item(Level.NOTE, "newer-release", f"{name}: {text}", "", file, line) for text in it.newer]
    return Case(name, tuple(items), ", ".join((words, *it.builds)))
