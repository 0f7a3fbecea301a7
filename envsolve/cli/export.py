"""``envsolve export``: write an existing lock in another format, without solving again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from envsolve.cli import known_values
from envsolve.cli.options import (
    Command,
    FileName,
    Member,
    dry_run_option,
    network_of,
    option,
    output_options,
)
from envsolve.cli.output import deliver_each
from envsolve.cli.progress import Progress
from envsolve.cli.replacing import force_option, refuse_to_overwrite
from envsolve.cli.report import note_each
from envsolve.cli.solve_options import HOW_TO_FETCH, INDEXES, options_of_solve
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.formats import format_of_name
from envsolve.model.host import Platform
from envsolve.model.lock_format import EXPORT_FORMATS, PLATFORM

format_option = click.option(
    "--format",
    "format_name",
    envvar="ENVSOLVE_FORMAT",
    metavar="NAME",
    shell_complete=known_values.formats,
    help=(
        f"{', '.join(EXPORT_FORMATS[:-2])}, environment (exact builds) or constraints (for pip's and uv's -c). "
        "Default: by the file name of -o."
    ),
)
output_option = option(
    "-o",
    "--output",
    type=FileName("file"),
    metavar="FILE",
    help=f"Write to FILE instead of standard output; {PLATFORM} in it stands for each platform.",
)


@click.command(cls=Command, short_help="Write a lock in another format.")
@click.argument("file", metavar="FILE", type=FileName("file"))
@format_option
@output_option
@force_option
@dry_run_option
@option(
    "--platform",
    "platforms",
    multiple=True,
    type=Member("name", Platform),
    help="A platform of a lock of conda packages. Repeatable; default: all of them.",
)
@click.option("--environment", metavar="NAME", help="The environment of a pixi.lock; default: the one called default.")
@option("--ask-index", is_flag=True, help="Fetch URLs and hashes missing in FILE from the package indexes.")
@options_of_solve((*INDEXES, *HOW_TO_FETCH))
@output_options
def export(**options: Any) -> int:
    """Write the lock FILE in another format: the same packages, nothing solved.

    FILE is a requirements file, a pylock.toml, a uv.lock, a poetry.lock, a pdm.lock, a conda-lock.yml, an explicit file
    or a pixi.lock. What the other format cannot hold is listed on stderr. Without --ask-index no index is queried, only
    the cache is read.

    \b
    Examples:
      envsolve export pylock.toml --format requirements -o requirements.txt
      envsolve export conda-lock.yml --format explicit
    """
    from envsolve.app.environment.exporting import ExportRequest
    from envsolve.app.environment.exporting import export as exported

    output = options["output"]
    request = ExportRequest(
        path=Path(options["file"]),
        format_name=wanted_format(options["format_name"], output, EXPORT_FORMATS),
        platforms=tuple(dict.fromkeys(options["platforms"])),
        environment=options["environment"],
        from_indexes=options["ask_index"],
        indexes=index_options(options),
    )
    _require_other_file(options["file"], output)
    if not options["force"]:
        refuse_to_overwrite(output, request.platforms)
    with Progress.of(options, "exporting") as progress:
        if options["ask_index"]:
            progress.show("package indexes")
        found = exported(request, os.environ)
    platforms = [platform for platform, _ in found.texts]
    require_file_for_each(platforms, output)
    if not options["force"]:
        refuse_to_overwrite(output, platforms)
    deliver_each(found.texts, output)
    note_each(found.notes, options)
    return 0


def wanted_format(name: str | None, output: str | None, formats: tuple[str, ...]) -> str:
    """The format that is named, or that the file name of -o implies. Raises UsageError if there is none."""
    found = name or (_format_of_output(output) if output is not None else None)
    if found in formats:
        return found
    what = "no format given" if found is None else f"{found!r} is not a lock format"
    hint = Hint(f"choose one: --format {', '.join(formats)}")
    raise UsageError("format-missing" if found is None else "unknown-format", what, hints=(hint,))


def _format_of_output(output: str) -> str | None:
    is_constraints = Path(output).name.startswith("constraints") and output.endswith(".txt")
    return "constraints" if is_constraints else format_of_name(Path(output))


def index_options(options: dict[str, Any]) -> Any:
    """How the options allow querying indexes."""
    from envsolve.app.environment.exact_files import IndexOptions

    return IndexOptions(
        index_url=options["index_url"],
        extra_index_urls=tuple(options["extra_index_urls"]),
        pytorch_index_url=options["pytorch_index_url"],
        network=network_of(options),
        allow_builds=options.get("allow_builds", False),
    )


def require_file_for_each(platforms: list[str], output: str | None) -> None:
    """Raise UsageError if one file would have to contain several platforms."""
    if len(platforms) > 1 and (output is None or PLATFORM not in output):
        raise UsageError(
            "several-platforms",
            f"this format is for one platform, and the lock is for {' and '.join(platforms)}",
            hints=(Hint(f"choose one with --platform, or write one file for each: -o 'lock-{PLATFORM}.txt'"),),
        )


def _require_other_file(read: str, output: str | None) -> None:
    if output not in (None, "-") and Path(str(output)).resolve() == Path(read).resolve():
        raise UsageError(
            "contradictory-options",
            f"-o {output} is also the input file and would be overwritten",
            hints=(Hint("choose another file for -o"),),
        )
