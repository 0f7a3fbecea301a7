"""``envsolve matrix``: show the compatibility matrix and check it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli import known_values
from envsolve.cli.options import (
    Member,
    Parsed,
    color_option,
    matrix_of,
    matrix_option,
    network_of,
    option,
    quiet_option,
    stacked,
)
from envsolve.cli.output import deliver, deliver_json
from envsolve.cli.progress import Progress
from envsolve.cli.report import Palette, note, note_each, report
from envsolve.cli.solve_options import HOW_TO_FETCH, INDEXES, options_of_solve
from envsolve.errors import Hint, OutsideError, UnsolvableError, UsageError
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import parse_cuda_versions, parse_versions
from envsolve.model.versions import DriverVersion
from envsolve.model.words import gpu_name

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.specifiers import SpecifierSet

    from envsolve import documents
    from envsolve.app.matrix.matrix_update import Updated, UpdateRequest
    from envsolve.app.solve.builds import Filters
    from envsolve.matrix.load import Matrix

filter_options = stacked(
    click.option(
        "--cuda",
        type=Parsed("spec", parse_cuda_versions),
        shell_complete=known_values.toolkits,
        help="Builds compiled with this CUDA: '12.*', '<13', 11.8.",
    ),
    click.option(
        "--gpu",
        "gpus",
        multiple=True,
        type=Parsed("gpu", gpu_name),
        shell_complete=known_values.gpus,
        help=(
            "Builds that run on it by machine code or PTX: a product ('RTX 3090'), a compute "
            "capability (8.6), auto (this machine's) or none (CPU builds). Repeatable: on all of them."
        ),
    ),
    click.option(
        "--driver",
        type=Parsed("version", DriverVersion.parse),
        help=(
            "Builds that run on this NVIDIA driver; a --gpu that needs PTX requires a driver with full support. "
            "Compared with the minimum for the system of each build."
        ),
    ),
    click.option("--python", type=Parsed("spec", parse_versions), help="Builds for this Python: 3.11, '>=3.10'."),
    click.option(
        "--source",
        "sources",
        multiple=True,
        type=Member("name", Source),
        help=f"{', '.join(Source)}. Repeatable: any of them.",
    ),
    click.option(
        "--platform",
        "platforms",
        multiple=True,
        type=Member("name", Platform),
        help=f"{', '.join(Platform)}. Repeatable: any of them; default: all, whatever machine this is.",
    ),
)
"""Filters for a list of builds. Not set by ENVSOLVE_<OPTION>: those describe the requested environment."""

json_option = option("--json", "as_json", is_flag=True, help="Print JSON.")
common_options = stacked(json_option, matrix_option, quiet_option, color_option)


@click.group()
def matrix() -> None:
    """Query the compatibility matrix."""


@matrix.command("list", short_help="List the known releases, or the builds that match.")
@click.option(
    "-f",
    "--framework",
    "frameworks",
    multiple=True,
    type=Parsed("spec", str),
    shell_complete=known_values.builds,
    help="Builds of this framework, with versions if you like: 'pytorch>=2.5'. Repeatable: any of them.",
)
@filter_options
@click.option(
    "--output-format",
    type=click.Choice(("text", "json", "html")),
    help="Print it for people (text, the default; html) or programs.",
)
@common_options
def list_builds(**options: Any) -> None:
    """List the frameworks and how far their releases go; with a filter, the builds it means."""
    from envsolve.app.matrix.matrix import matrix_date, overview, read_here
    from envsolve.app.matrix.matrix_rows import build_row, overview_row
    from envsolve.app.solve.builds import Filters, find_builds
    from envsolve.cli import matrix_page
    from envsolve.cli.output_formats import output_format

    data, filters = matrix_of(options), _filters(options, frameworks=options["frameworks"])
    date, format_name = matrix_date(data, (*data.framework_names, "cuda")), output_format(options)
    if filters == Filters():
        entries, here = overview(data), read_here(data)
        if format_name == "html":
            from envsolve.cli.html_reports import overview_page

            header, lines, _ = matrix_page.overview_table(entries)
            deliver(overview_page(header, lines, matrix_page.read_here_lines(here), date), None)
        elif format_name == "json":
            rows = [overview_row(it) for it in entries]
            listed: documents.Overview = {"schema_version": 1, "frameworks": rows, "matrix_date": date}
            if here:
                listed["read_here"] = [{"release": it.release, "build": it.build, "seen": it.seen} for it in here]
            deliver_json(listed)
        else:
            _deliver_page(matrix_page.overview_page(entries, here), date, options)
        note_each(data.notes, options)
        return
    found = find_builds(filters, data, os.environ)
    if format_name == "html":
        from envsolve.cli.html_reports import builds_page

        rows_of_builds = matrix_page.builds_table(found.builds).items()
        deliver(builds_page(matrix_page.BUILD_HEADER[:-1], rows_of_builds, date), None)
    elif format_name == "json":
        releases = [build_row(build) for build in found.builds]
        document: documents.Matrix = {"schema_version": 1, "releases": releases, "matrix_date": date}
        deliver_json(document)
    else:
        _deliver_page(matrix_page.builds_page(found.builds), date, options)
    note_each((*found.notes, *data.notes), options)


@matrix.command(short_help="Show every build of a framework with its evidence, or the table of cuda or cudnn.")
@click.argument("what", metavar="FRAMEWORK[==VERSION]", shell_complete=known_values.tables)
@filter_options
@common_options
def show(what: str, **options: Any) -> None:
    """Show every known build of a framework: Python, CUDA, cuDNN, driver and GPUs, and the evidence for each row.

    `cuda` and `cudnn` in place of a framework show the toolkits with their drivers, and the cuDNN releases with the
    GPUs they serve; they take versions (cuda==12.6, 'cudnn>=9') and no filters. cuda==12 means every 12.x, and
    cudnn==9.10 every 9.10.x.
    """
    from envsolve.app.matrix.matrix import matrix_date, platform_table
    from envsolve.app.matrix.matrix import show as shown_builds
    from envsolve.app.matrix.matrix_rows import build_row, disagreement_row, platform_limit_row
    from envsolve.cli.matrix_page import shown_page

    data, filters = matrix_of(options), _filters(options)
    named = platform_table(what)
    if named is not None:
        _show_platform_table(*named, filters, data, options)
        return
    shown = shown_builds(what, filters, data, os.environ)
    date = matrix_date(data, (shown.found.tables[0].name, "cuda"))
    if options["as_json"]:
        document: documents.Matrix = {
            "schema_version": 1,
            "releases": [build_row(build) for build in shown.builds],
            "platform_limits": [platform_limit_row(limit) for limit in shown.platform_limits],
            "disagreements": [disagreement_row(entry) for entry in shown.disagreements],
            "matrix_date": date,
        }
        deliver_json(document)
    else:
        _deliver_page(shown_page(shown), date, options)
    note_each((*shown.found.notes, *data.notes), options)


@matrix.command(short_help="Check the files of the matrix against their rules and laws.")
@common_options
def check(**options: Any) -> int:
    """Check every file of the matrix against its rules and laws, and report all violations.

    Exits 1 if a law is broken, and 2 if a file cannot be read.
    """
    from envsolve.app.matrix.matrix import check as judged
    from envsolve.app.matrix.matrix import matrix_date

    data = matrix_of(options)
    progress = Progress.of(options, "checking")
    progress.show("the compatibility matrix")
    with progress:
        verdicts = judged(data)
    broken = [verdict for verdict in verdicts if verdict.violations]
    if options["as_json"]:
        document: documents.MatrixCheck = {
            "schema_version": 1,
            "ok": not broken,
            "laws": [{"law": it.law, "says": it.says, "violations": list(it.violations)} for it in verdicts],
            "matrix_date": matrix_date(data),
        }
        deliver_json(document)
        return 1 if broken else 0
    if not broken:
        text = f"the compatibility matrix of {matrix_date(data)} satisfies all {len(verdicts)} laws\n"
        deliver(text, None)
        return 0
    found = [violation for verdict in broken for violation in verdict.violations]
    deliver("".join(f"{violation}\n" for violation in found), None)
    places = "one place" if len(found) == 1 else f"{len(found)} places"
    error = UnsolvableError(
        "matrix-breaks-laws",
        f"the compatibility matrix violates {len(broken)} of {len(verdicts)} laws, in {places}",
        cause=tuple(f"{verdict.says} ({verdict.law}: {len(verdict.violations)})" for verdict in broken),
        hints=(Hint("fix the rows listed on stdout. README.md in their directory has the rules"),),
    )
    return report(error, (), "matrix", as_json=False)


@matrix.command(short_help="Read releases that the matrix does not have yet from package indexes.")
@click.argument("names", metavar="[PACKAGE]...", nargs=-1, shell_complete=known_values.builds)
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 if the matrix lacks a release.")
@click.option("--clear", "clears", is_flag=True, help="Remove everything that was read here.")
@options_of_solve((*INDEXES, *HOW_TO_FETCH))
@common_options
def update(names: tuple[str, ...], **options: Any) -> int:
    """Read releases that the matrix does not have yet from package indexes, and store them for this user.

    Without PACKAGE: all frameworks, and the packages with GPU kernels that the matrix covers. With PACKAGE: these
    frameworks or packages, any of the index. The wheels are read, not installed: machine code, CUDA, cuDNN, Python.
    Later commands use them in addition to the shipped matrix, whose builds come first. They are stored in
    ENVSOLVE_DATA_DIR (default: envsolve in the user's data directory); --clear removes them.

    Exits 3 if a release could not be read; the others are stored.
    """
    from envsolve.app.matrix.matrix_update import look_for_new
    from envsolve.app.matrix.overlay_files import clear, directory_here, require_writable, write

    _refuse_contradictions(names, options)
    directory = directory_here()
    if options["clears"]:
        there = clear(directory)
        deliver(f"removed {directory}\n" if there else f"nothing to remove: {directory} does not exist\n", None)
        return 0
    if not options["only_check"]:
        require_writable(directory)
    data = matrix_of(options)
    with Progress.of(options, "reading") as progress:
        found = look_for_new(_update_request(names, options, progress), data, os.environ)
    set_aside = () if options["only_check"] else write(found.files, directory)
    _deliver_found(found, directory, options)
    replaced = {it.fields["file"] for it in set_aside}
    ignored = (it for it in data.notes if it.fields.get("file") not in replaced)
    note_each((*found.notes, *set_aside, *ignored), options)
    if found.failures:
        count = "a release" if len(found.failures) == 1 else f"{len(found.failures)} releases"
        hint = Hint("run the command again to read them")
        error = OutsideError("releases-unread", f"{count} could not be read", found.failures, (hint,))
        return error.exit_code if options["as_json"] else report(error, (), "matrix", as_json=False)
    return 1 if options["only_check"] and not found.matrix_is_complete else 0


def _refuse_contradictions(names: tuple[str, ...], options: dict[str, Any]) -> None:
    if options["clears"] and (names or options["only_check"]):
        message = "--clear removes everything that was read here, and takes no PACKAGE and no --check"
        raise UsageError("contradictory-options", message)
    if options["matrix_directory"] and not options["only_check"]:
        message = "what is read here counts beside the shipped matrix, not beside that of --matrix"
        raise UsageError("contradictory-options", message, hints=(Hint("omit --matrix, or use --check"),))


def _update_request(names: tuple[str, ...], options: dict[str, Any], progress: Progress) -> UpdateRequest:
    from envsolve.app.matrix.matrix_update import UpdateRequest

    return UpdateRequest(
        names,
        options["index_url"],
        options["extra_index_urls"],
        options["pytorch_index_url"],
        network_of(options),
        progress.show,
    )


def _deliver_found(found: Updated, directory: Path, options: dict[str, Any]) -> None:
    from envsolve.app.matrix.matrix_update import shown

    if options["as_json"]:
        document: documents.MatrixUpdate = {
            "schema_version": 1,
            "new": [{"file": f"{it.file}.toml", **it.row} for it in found.new],
            "directory": None if options["only_check"] else str(directory),
            "notes": [it.as_json() for it in found.notes],
            "failures": list(found.failures),
        }
        deliver_json(document)
        return
    if not found.new:
        deliver("no new releases\n", None)
        return
    deliver("".join(f"{line}\n" for line in shown(found.new)), None)
    if not options["only_check"]:
        note(f"kept in {directory}", quiet=options["quiet"])


def _show_platform_table(
    name: str, versions: SpecifierSet, filters: Filters, data: Matrix, options: dict[str, Any]
) -> None:
    from envsolve.app.matrix.matrix import cudnn_releases, matrix_date, toolkits
    from envsolve.app.matrix.matrix_rows import cudnn_row, toolkit_row
    from envsolve.app.solve.builds import Filters
    from envsolve.cli.matrix_page import cudnn_page, toolkits_page

    if filters != Filters():
        raise UsageError(
            "contradictory-options",
            f"matrix show {name} takes versions only: the filters are for framework builds",
            hints=(Hint("list the builds for a GPU or a driver", "envsolve matrix list --gpu 'RTX 3090'"),),
        )
    date = matrix_date(data, (name,))
    if name == "cuda":
        known = toolkits(versions, data)
        rows = [toolkit_row(row) for row in known]
        document: documents.Toolkits | documents.Cudnn = {"schema_version": 1, "toolkits": rows, "matrix_date": date}
        text = "" if options["as_json"] else toolkits_page(known)
    else:
        released = cudnn_releases(versions, data)
        document = {"schema_version": 1, "cudnn": [cudnn_row(row) for row in released], "matrix_date": date}
        text = "" if options["as_json"] else cudnn_page(released)
    if options["as_json"]:
        deliver_json(document)
    else:
        _deliver_page(text, date, options)


def _filters(options: dict[str, Any], *, frameworks: tuple[str, ...] = ()) -> Filters:
    from envsolve.app.solve.builds import Filters

    return Filters(
        frameworks=frameworks,
        cuda=options["cuda"],
        python=options["python"],
        gpus=options["gpus"],
        driver=options["driver"],
        sources=options["sources"],
        platforms=options["platforms"],
    )


def _deliver_page(text: str, date: str, options: dict[str, Any]) -> None:
    """Print a table on stdout, and its date on stderr, where it is not between the rows."""
    deliver(text, None, color=Palette.wanted())
    note(f"from the compatibility matrix of {date}", quiet=options["quiet"])
