#!/usr/bin/env python3
"""Read the kernels in the wheels of packages, and write data/compat_matrix/extensions.

    .venv-test/bin/python scripts/refresh_extensions.py                     every package of extensions.toml
    .venv-test/bin/python scripts/refresh_extensions.py warp-lang torchao   these

Results are cached, so that an interrupted run resumes. See docs/updating-the-matrix.md.
"""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path

import click
import tomli

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from envsolve.matrix.load import Matrix  # noqa: E402
from envsolve.model.versions import CudaVersion  # noqa: E402
from envsolve.releases.wheels import Listing  # noqa: E402
from scripts.matrix_refresh.cache import write_whole  # noqa: E402
from scripts.matrix_refresh.credentials import endpoint_of  # noqa: E402
from scripts.matrix_refresh.errors import RefreshError  # noqa: E402
from scripts.matrix_refresh.extensions import Observer, extensions_in, rows_of, toml_of  # noqa: E402
from scripts.matrix_refresh.index import Index  # noqa: E402
from scripts.matrix_refresh.observation import Observations  # noqa: E402
from scripts.matrix_refresh.settings import default_cache, default_endpoint, places  # noqa: E402
from scripts.matrix_refresh.wheel import new_session  # noqa: E402

LIST = ROOT / "scripts" / "matrix_refresh" / "extensions.toml"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("packages", nargs=-1, metavar="[PACKAGE]...")
@places
@click.option("--offline", is_flag=True, help="Use the cache alone.")
def refresh(
    packages: tuple[str, ...],
    matrix: Path,
    index_url: str | None,
    cache_dir: Path | None,
    offline: bool,
) -> None:
    """Bring data/compat_matrix/extensions up to what was shipped; exit 1 if a package could not be read."""
    known = extensions_in(tomli.loads(LIST.read_text(encoding="utf-8")))
    unknown = sorted(set(packages) - set(known))
    if unknown:
        raise click.UsageError(f"{', '.join(unknown)} is not in {LIST.name}")
    cache, session = cache_dir or default_cache(), new_session()
    endpoint = endpoint_of(index_url or default_endpoint())
    session.auth = endpoint.auth
    index = Index(endpoint.url, cache, session, offline=offline)
    today = dt.datetime.now(dt.UTC).date()
    failed = False

    known_here = Matrix(matrix)

    def toolkits() -> list[CudaVersion]:
        return [it.version for it in known_here.cuda.toolkits]

    for package in packages or known:
        extension = known[package]
        observations = Observations(cache, extension.edition, Observer(extension), session, offline=offline)
        try:
            shelf, released = Listing(index.wheels(package)), index.released(package)
            rows = rows_of(
                extension,
                shelf,
                released,
                observations.read,
                today=today,
                toolkits=toolkits,
                torch_for=known_here.torch_for,
            )
            write_whole(matrix / "extensions" / f"{package}.toml", toml_of(extension, rows, today.isoformat()))
        except RefreshError as error:
            failed = True
            click.echo(f"{package}: {error}", err=True)
            continue
        count = len({version for row in rows for version in row.versions})
        megabytes = observations.transferred / 1e6
        click.echo(f"{package}: {count} releases, {observations.wheels_read} wheels read, {megabytes:,.0f} MB")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    refresh()
