#!/usr/bin/env python3
"""Make the conda channels that the tests are served: the part of real ones on which the tests' requests end the same.

    .venv-test/bin/python scripts/trim_channel.py DIRECTORY

DIRECTORY holds CHANNEL/SUBDIR/repodata.json.zst. Every case of roots.toml is solved by rattler on the whole and on the
part, and all must have the same records. The same channels and cases give the same bytes.
See tests/conda/channel/README.md.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.channel_trimmer import channels, summary  # noqa: E402
from scripts.channel_trimmer.cases import read_roots  # noqa: E402
from scripts.channel_trimmer.channels import Channels, Place  # noqa: E402
from scripts.channel_trimmer.trim import Trimmed, sifted, trimmed  # noqa: E402

CHANNEL = ROOT / "tests" / "conda" / "channel"
_LARGEST_FILE = 400_000
_LARGEST = 600_000
"""Bytes: what a checkout can bear of test data."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=CHANNEL,
    help="Where roots.toml lies and the subset goes.",
    show_default="tests/conda/channel",
)
def trim(source: Path, directory: Path) -> None:
    """Write the subset of the channels in SOURCE, and what the cases come to."""
    recorded = channels.read(source)
    whole = sifted(recorded)
    for place, records in recorded.items():
        for name in sorted(set(records) - set(whole[place])):
            click.echo(f"left out: {place}/{name}")
    roots = read_roots(directory / "roots.toml")
    found = trimmed(whole, roots)
    (directory / "outcomes.json").write_text(summary.as_json(roots, found.outcomes), "utf-8")
    sizes = {path: path.stat().st_size for path in channels.write(directory, found.channels)}
    _report(whole, found, sizes)
    if max(sizes.values()) > _LARGEST_FILE or sum(sizes.values()) > _LARGEST:
        raise click.ClickException("that is too much for a checkout: fewer cases, or fewer alternatives")


def _report(whole: Channels, found: Trimmed, sizes: dict[Path, int]) -> None:
    """The table of the README."""
    click.echo("| part | records | of | packages | bytes |\n|---|---|---|---|---|")
    for path, size in sizes.items():
        place = Place(path.parent.parent.name, path.parent.name)
        records = found.channels[place]
        names = {it["name"] for it in records.values()}
        click.echo(f"| {place} | {len(records):,} | {len(whole[place]):,} | {len(names)} | {size:,} |")
    solved = sum(bool(it.files) for it in found.outcomes.values())
    click.echo(f"{solved} cases with a solution, {len(found.outcomes) - solved} without, {sum(sizes.values()):,} bytes")
    click.echo(f"{found.taken} records solve cases; {found.grown} more were needed for the same solutions")


if __name__ == "__main__":
    try:
        trim()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(int(end.code or 0))  # py-rattler 0.28 crashes now and then when its interpreter ends
