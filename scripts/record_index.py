#!/usr/bin/env python3
"""Record what a list of resolutions may request from a package index, so that tests run without it.

    .venv-test/bin/python scripts/record_index.py --index-url URL          the pages and the metadata
    .venv-test/bin/python scripts/record_index.py --index-url URL --pins   also what uv resolves against that index

The same index and the same list give the same bytes. See tests/index/recorded/README.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.index_recorder import recording  # noqa: E402
from scripts.index_recorder.recording import RecordedProject  # noqa: E402
from scripts.index_recorder.source import Source  # noqa: E402
from scripts.index_recorder.trim import Measure, trimmed  # noqa: E402
from scripts.index_recorder.uv_pins import write_pins  # noqa: E402
from scripts.index_recorder.walk import Reached, read_resolutions, walk  # noqa: E402

RECORDED = ROOT / "tests" / "index" / "recorded"
_SHOWN = 6


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--index-url", required=True, help="The package index to read.")
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=RECORDED,
    help="Where resolutions.toml lies and the recording goes.",
    show_default="tests/index/recorded",
)
@click.option("--history", default=30, show_default=True, help="Releases kept of each page beside those reached.")
@click.option("--pins", is_flag=True, help="Also write uv_pins.json: what uv resolves against this index.")
def record(index_url: str, directory: Path, history: int, pins: bool) -> None:
    """Record the pages and the metadata that the resolutions may ask for."""
    source = Source(index_url)
    resolutions = read_resolutions(directory / "resolutions.toml")
    reached = walk(source, resolutions)
    written = {
        recording.write(directory, _project(source, name, reached, Measure(newest=history)))
        for name in reached.releases
    }
    recording.forget_others(directory, written)
    sizes = [path.stat().st_size for path in written]
    click.echo(f"{len(sizes)} projects, {sum(sizes) / 1e6:.2f} MB, the largest {max(sizes) / 1e6:.2f} MB")
    for name in reached.missing:
        click.echo(f"no page: {name}")
    for name, releases in sorted(reached.releases.items()):
        lacking = [str(version) for version, wheel in sorted(releases.items(), reverse=True) if wheel is None]
        if lacking:
            click.echo(f"no metadata: {name} {' '.join(lacking[:_SHOWN])}{' ...' * (len(lacking) > _SHOWN)}")
    if pins:
        write_pins(directory / "uv_pins.json", index_url, resolutions)


def _project(source: Source, name: str, reached: Reached, measure: Measure) -> RecordedProject:
    releases = reached.releases[name]
    files = tuple(it.file for it in trimmed(source.page(name), releases, measure))
    metadata = {wheel.file.name: source.metadata(wheel) or "" for wheel in releases.values() if wheel is not None}
    return RecordedProject(name, files, metadata)


if __name__ == "__main__":
    record()
