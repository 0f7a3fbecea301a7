#!/usr/bin/env python3
"""Bring the compatibility matrix up to what was really shipped: read the wheels, change the TOML, print the difference.

    .venv-test/bin/python scripts/refresh_matrix.py                       every framework that the default index has
    .venv-test/bin/python scripts/refresh_matrix.py pytorch-index         the wheels on PyTorch's own index
    .venv-test/bin/python scripts/refresh_matrix.py pytorch --dry-run     only look
    .venv-test/bin/python scripts/refresh_matrix.py --offline             from the cache alone

See docs/updating-the-matrix.md.
"""

from __future__ import annotations

import datetime as dt
import sys
import time
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from envsolve.releases.reader import Reader  # noqa: E402
from envsolve.releases.wheels import Listing  # noqa: E402
from scripts.matrix_refresh.ending import UNREADABLE, run_to_the_end  # noqa: E402
from scripts.matrix_refresh.errors import RefreshError  # noqa: E402
from scripts.matrix_refresh.report import lines_of  # noqa: E402
from scripts.matrix_refresh.run import WORKERS, Refresh, Settings  # noqa: E402
from scripts.matrix_refresh.settings import default_cache, default_endpoint, places  # noqa: E402
from scripts.matrix_refresh.toml_file import unread_rows  # noqa: E402


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("frameworks", nargs=-1, metavar="[FRAMEWORK]...")
@places
@click.option("--offline", is_flag=True, help="Use the cache alone.")
@click.option("--fresh", is_flag=True, help="Read every wheel again, whatever the cache holds.")
@click.option(
    "--deep", is_flag=True, help="Also read libraries of hundreds of MB where nothing smaller holds the facts."
)
@click.option("--dry-run", is_flag=True, help="Print the difference and change nothing; exit 1 where there is one.")
@click.option("--workers", type=click.IntRange(1, 8), default=WORKERS, show_default=True, help="Wheels read at a time.")
def refresh(
    frameworks: tuple[str, ...],
    matrix: Path,
    index_url: str | None,
    cache_dir: Path | None,
    offline: bool,
    fresh: bool,
    deep: bool,
    dry_run: bool,
    workers: int,
) -> None:
    """Read what FRAMEWORKs (default: all) have on the package index and bring their files up to it.

    Exits with 1 where --dry-run finds a difference, with 3 where an index, a wheel or a file could not be read.
    """
    if fresh and offline:
        raise click.UsageError("--fresh reads every wheel, --offline reads none")
    settings = Settings(
        matrix, cache_dir or default_cache(), index_url or default_endpoint(), offline, deep, fresh, workers
    )
    failures: list[str] = []
    changed = False
    try:
        run = Refresh(settings)
        names = frameworks or run.default_readers
        if index_url is not None:
            run.refuse_own_index(names)
        for reader in [run.reader(name) for name in names]:
            different, unreadable = _refresh(run, reader, dry_run=dry_run)
            changed = changed or different
            failures += unreadable
    except RefreshError as error:
        _fail([*failures, str(error)])
    if failures:
        _fail(failures)
    sys.exit(1 if dry_run and changed else 0)


def _refresh(run: Refresh, reader: Reader, *, dry_run: bool) -> tuple[bool, tuple[str, ...]]:
    """Whether anything differs, and the wheels that could not be read.

    What was read is written although other wheels could not be: each row stands on wheels of its own, and the next run
    reads only what is missing.
    """
    started = time.monotonic()
    file = run.file(reader)
    shelf = Listing(run.wheels(reader))
    read = run.read(reader, shelf, run.versions(reader, shelf), lambda text: click.echo(f"read {text}", err=True))
    unread = unread_rows(file.rows(), read.rows, reader.source, read.failed)
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    differences = [change for row in read.rows for change in file.merge(row, today)]
    dated = file.merge_dates(run.released(reader), reader.releases_of, today)
    for line in lines_of(file.path.name, differences, unread, file.cited, dated):
        click.echo(line)
    seconds = time.monotonic() - started
    click.echo(
        f"{read.wheels_read} wheels over the network, {read.transferred / 1e6:.1f} MB, {seconds:.0f} s", err=True
    )
    changed = file.changed
    if not dry_run:
        file.write(today)
    return changed, read.failures


def _fail(messages: list[str]) -> None:
    for message in messages:
        click.echo(f"error: {message}", err=True)
    sys.exit(UNREADABLE)


if __name__ == "__main__":
    run_to_the_end(refresh)
