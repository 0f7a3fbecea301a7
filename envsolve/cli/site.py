"""``envsolve site``: write the compatibility matrix and every answer of the solver as static pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from envsolve.cli.options import FileName, color_option, matrix_directory, matrix_option, option, quiet_option
from envsolve.cli.output import deliver
from envsolve.cli.progress import Progress


@click.command(short_help="Write a static site with every answer.")
@click.argument("directory", metavar="DIR", type=FileName("directory"))
@option(
    "--together",
    type=click.Choice(("1", "2", "3")),
    default="3",
    show_default=True,
    help="How many frameworks the selector answers for at once. Fewer are found in less time.",
)
@matrix_option
@option("--no-progress", is_flag=True, help="Do not show progress.")
@quiet_option
@color_option
def site(directory: str, **options: Any) -> None:
    """Write a site into DIR: a selector with the answer for every GPU, driver and framework, and tables.

    Its pages are files that need no server and no network: open DIR/index.html. All answers are computed first, which
    takes a quarter of an hour on two processors.
    """
    from envsolve.site.build import build_site

    with Progress.of(options, "answering") as progress:
        count = build_site(
            Path(directory),
            matrix_directory(options),
            int(options["together"]),
            lambda done, all_: progress.show(f"{done} of {all_} parts"),
        )
    deliver(f"wrote {count} pages to {directory}\n", None)
