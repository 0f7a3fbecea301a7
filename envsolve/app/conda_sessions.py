"""The solver of conda packages in its own process, with its cache and the user's settings of conda."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.app.network import Network
from envsolve.boundary.user_directories import cache_directory
from envsolve.model.host import Platform

if TYPE_CHECKING:
    from envsolve.conda.session import Session


@contextmanager
def conda_session(
    network: Network, channels: Sequence[str], platforms: Sequence[Platform], environ: Mapping[str, str]
) -> Iterator[Session]:
    """A session that reads ``channels`` for ``platforms`` while the rest is still being loaded."""
    from envsolve.conda.condarc import read_condarc
    from envsolve.conda.session import Session, Settings
    from envsolve.lockfile.conda_specs import with_conda_forge

    home = environ.get("HOME") or environ.get("USERPROFILE")
    condarc = read_condarc(environ, Path(home) if home else None)
    mode = "offline" if network.offline else "refresh" if network.refresh else ""
    with _cache(network) as directory, Session(Settings(directory, mode, condarc)) as session:
        for platform in platforms:
            session.prepare(with_conda_forge(tuple(channels)), platform)
        yield session


@contextmanager
def _cache(network: Network) -> Iterator[str]:
    """The directory for what channels list: the cache's, or one that is gone afterwards."""
    directory = Path(network.cache_directory) if network.cache_directory else cache_directory()
    if directory is not None and not network.no_cache:
        from envsolve.conda.repodata_cache import FOLDER

        yield str(directory.absolute() / FOLDER)
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="envsolve-", ignore_cleanup_errors=True) as scratch:
        yield scratch
