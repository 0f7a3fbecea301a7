#!/usr/bin/env python3
"""Read a random sample of releases again, from the wheels themselves, and fail if the matrix differs.

    .venv-test/bin/python scripts/check_matrix.py                          five releases of every framework
    .venv-test/bin/python scripts/check_matrix.py pytorch --sample 20      twenty of one
    .venv-test/bin/python scripts/check_matrix.py --seed 7                 the same sample again

The cache is not used, and any of several wheels of a release may be read, not only the one the row was made from. See
docs/updating-the-matrix.md.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import click
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.matrix_refresh.ending import UNREADABLE, run_to_the_end  # noqa: E402
from scripts.matrix_refresh.errors import RefreshError  # noqa: E402
from scripts.matrix_refresh.index import ShuffledShelf  # noqa: E402
from scripts.matrix_refresh.report import lines_of  # noqa: E402
from scripts.matrix_refresh.run import WORKERS, Refresh, Settings  # noqa: E402
from scripts.matrix_refresh.settings import default_endpoint  # noqa: E402
from scripts.matrix_refresh.toml_file import is_of, unread_rows, without_evidence  # noqa: E402


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("frameworks", nargs=-1, metavar="[FRAMEWORK]...")
@click.option("--sample", type=click.IntRange(1), default=5, show_default=True, help="Releases of each framework.")
@click.option("--seed", type=int, help="Repeat the sample of an earlier run.")
@click.option(
    "--deep", is_flag=True, help="Also read libraries of hundreds of MB where nothing smaller holds the facts."
)
@click.option("--index-url", help="The package index to read; default: the one pip is set to.")
@click.option(
    "--matrix",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "data" / "compat_matrix",
    show_default="data/compat_matrix",
    help="The matrix to check.",
)
def check(
    frameworks: tuple[str, ...], sample: int, seed: int | None, deep: bool, index_url: str | None, matrix: Path
) -> None:
    """Read a random sample of FRAMEWORKs' releases (default: all) again and compare; exit 1 where anything differs."""
    chosen = random.randrange(1 << 32) if seed is None else seed  # noqa: S311 - a sample, no secret
    click.echo(f"seed {chosen}", err=True)
    try:
        with tempfile.TemporaryDirectory() as nowhere:
            settings = Settings(matrix, Path(nowhere), index_url or default_endpoint(), deep=deep, workers=WORKERS)
            run = Refresh(settings)
            names = frameworks or run.default_readers
            if index_url is not None:
                run.refuse_own_index(names)
            differing = [name for name in names if not _agrees(run, name, sample, chosen)]
    except RefreshError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(UNREADABLE)
    sys.exit(1 if differing else 0)


def _agrees(run: Refresh, framework: str, sample: int, seed: int) -> bool:
    """Whether the matrix and the wheels of a sample of releases agree; differences are printed.

    On an index of builds, a wheel whose version names no build is left out.
    """
    reader = run.reader(framework)
    file = run.file(reader)
    shelf = ShuffledShelf(run.wheels(reader), seed)
    versions = [it for it in run.versions(reader, shelf) if it.local or not reader.endpoints]
    chance = random.Random(f"{seed} {framework}")  # noqa: S311 - a sample, no secret
    picked = sorted(chance.sample(versions, min(sample, len(versions))), reverse=True)
    read = run.read(reader, shelf, picked, lambda text: click.echo(f"read {text}", err=True))
    if read.failures:
        raise RefreshError("; ".join(read.failures))
    differences = [
        found for row in read.rows for change in file.differences(row) if (found := without_evidence(change))
    ]
    unread = unread_rows([row for row in file.rows() if is_of(row, picked)], read.rows, reader.source)
    dated = [it for it in file.date_changes(run.released(reader)) if Version(it.field) in picked]
    agreed = f"{len(read.rows)} rows of {', '.join(map(str, reversed(picked)))} read again"
    click.echo(f"{framework}: {agreed}" + ("" if differences or unread or dated else ", all as the matrix says"))
    if differences or unread or dated:
        for line in lines_of(file.path.name, differences, unread, dated=dated):
            click.echo(line)
    return not differences and not unread and not dated


if __name__ == "__main__":
    run_to_the_end(check)
