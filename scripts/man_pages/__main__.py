"""``scripts/man``: write the pages, or check with ``--check`` whether they are up to date."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from scripts.man_pages.pages import pages

DIRECTORY = Path(__file__).resolve().parents[2] / "man" / "man1"
_DATE = re.compile(r'^\.TH "[^"]*" "1" "([^"]*)"', re.MULTILINE)


def stale(directory: Path, today: str) -> dict[str, str | None]:
    """The pages to write by name, None for one without a command. A page with the same text keeps its date."""
    there = {path.name: path.read_text("utf-8") for path in directory.glob("*.1")}
    dates = {name: found[1] for name, text in there.items() if (found := _DATE.search(text)) is not None}
    as_dated = pages(dates, today)
    changed = {name for name, text in as_dated.items() if there.get(name) != text}
    new = pages({name: date for name, date in dates.items() if name not in changed}, today)
    return {name: new.get(name) for name in sorted(changed | (there.keys() - new.keys()))}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", is_flag=True, help="Write nothing; exit 1 where a page is not as the commands have it.")
def main(check: bool) -> None:
    """Write the manual pages in man/man1 from the commands of envsolve."""
    changes = stale(DIRECTORY, f"{datetime.now(UTC):%Y-%m-%d}")
    for name, text in changes.items():
        click.echo(name)
        path = DIRECTORY / name
        if check:
            continue
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8", newline="\n")
    sys.exit(1 if check and changes else 0)


if __name__ == "__main__":
    main()
