"""``envsolve capture``: a lock of the packages in an environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from envsolve.cli import known_values
from envsolve.cli.export import index_options, output_option, wanted_format
from envsolve.cli.interrupts import interruptible
from envsolve.cli.options import (
    Command,
    dry_run_option,
    environment_options,
    matrix_directory,
    matrix_option,
    option,
    output_options,
    require_one_environment,
)
from envsolve.cli.output import deliver_each
from envsolve.cli.replacing import refuse_to_overwrite
from envsolve.cli.report import note_each
from envsolve.cli.solve_options import HOW_TO_FETCH, INDEXES, options_of_solve
from envsolve.lockfile.formats import format_of_name
from envsolve.model.lock_format import CAPTURE_FORMATS, PLATFORM


@click.command(cls=Command, short_help="Write a lock from an installed environment.")
@environment_options
@click.option(
    "--format",
    "format_name",
    envvar="ENVSOLVE_FORMAT",
    metavar="NAME",
    shell_complete=known_values.formats,
    help=(
        f"{', '.join(CAPTURE_FORMATS)}. Default: by the file name of -o, else conda-lock for a conda environment and "
        "requirements for any other."
    ),
)
@output_option
@option(
    "--allow-missing",
    is_flag=True,
    help="Leave out packages that cannot be locked: editable, local, or not on an index.",
)
@option(
    "--allow-builds",
    is_flag=True,
    help="Allow packages that only have a source distribution. Installing them runs their code.",
)
@option(
    "--force",
    is_flag=True,
    help="Capture an environment that has errors, and overwrite the output file even if envsolve did not write it.",
)
@dry_run_option
@option("--validate", is_flag=True, help="First prove the environment by running kernels in it.")
@options_of_solve((*INDEXES, *HOW_TO_FETCH))
@matrix_option
@output_options
def capture(**options: Any) -> int:
    """Write a lock of the packages installed in a working environment.

    URLs and digests come from conda's records and, for wheels, from the package indexes. The environment is checked
    first. Packages that cannot be locked are listed.

    \b
    Examples:
      envsolve capture --prefix .venv -o pylock.toml
      envsolve capture --validate -o conda-lock.yml
    """
    from envsolve.app.environment.capturing import CaptureRequest
    from envsolve.app.environment.capturing import capture as captured
    from envsolve.cli.progress import Progress
    from envsolve.host.machine import this_platform

    require_one_environment(options)
    request = CaptureRequest(
        progress=Progress.of(options, "capturing"),
        prefix=options["prefix"],
        python=options["python"],
        format_name=_format(options["format_name"], options["output"]),
        indexes=index_options(options),
        allow_missing=options["allow_missing"],
        force=options["force"],
        validate=options["validate"],
        matrix_directory=matrix_directory(options),
    )
    if not options["force"]:
        refuse_to_overwrite(options["output"], (this_platform(),))
    with interruptible():
        found = captured(request, os.environ)
    deliver_each(found.texts, options["output"])
    note_each(found.notes, options)
    return 0


def _format(name: str | None, output: str | None) -> str | None:
    """The format that is named, or that the file name of -o implies; None if there is neither."""
    if name is None and (output is None or format_of_name(Path(output.replace(PLATFORM, ""))) is None):
        return None
    return wanted_format(name, output, CAPTURE_FORMATS)
