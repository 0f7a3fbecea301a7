"""The solver of conda packages in its own process, with its cache and the user's conda settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.app.request.network import Network
from envsolve.boundary.secrets import without_secrets
from envsolve.boundary.user_directories import cache_directory
from envsolve.host.machine import this_platform
from envsolve.model.host import Platform

if TYPE_CHECKING:
    from envsolve.conda.condarc import Condarc
    from envsolve.conda.session import Session


@contextmanager
def conda_session(
    network: Network, channels: Sequence[str], platforms: Sequence[Platform], environ: Mapping[str, str]
) -> Iterator[Session]:
    """A session that starts reading ``channels`` for ``platforms`` while the rest is still being imported."""
    from envsolve.conda.session import Session, Settings
    from envsolve.lockfile.conda_specs import with_conda_forge

    mode = "offline" if network.offline else "refresh" if network.refresh else ""
    with _cache(network) as directory, Session(Settings(directory, mode, _condarc(environ))) as session:
        for platform in platforms:
            session.prepare(with_conda_forge(tuple(channels)), platform)
        yield session


def _condarc(environ: Mapping[str, str]) -> Condarc:
    from envsolve.conda.condarc import read_condarc

    home = environ.get("HOME") or environ.get("USERPROFILE")
    return read_condarc(environ, Path(home) if home else None)


@contextmanager
def _cache(network: Network) -> Iterator[str]:
    """The directory for the lists of packages: in the cache, or a temporary one."""
    directory = Path(network.cache_directory) if network.cache_directory else cache_directory()
    if directory is not None and not network.no_cache:
        from envsolve.conda.repodata_cache import FOLDER

        yield str(directory.absolute() / FOLDER)
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="envsolve-", ignore_cleanup_errors=True) as scratch:
        yield scratch


def channel_logins(
    channels: Sequence[str], files: Sequence[str], environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Each address with a login or a token, without and with it: from ``channels``, files of -r and conda's settings.

    Raises UsageError if a file cannot be read.
    """
    condarc = _condarc(environ)
    found = dict.fromkeys((*_of_settings(condarc), *channels, *_of_files(files)))
    addresses = condarc.addresses_of(found, this_platform())
    return tuple((without_secrets(it), it) for it in addresses if without_secrets(it) != it)


def _of_settings(condarc: Condarc) -> Iterator[str]:
    yield from (f"{base.rstrip('/')}/{name}" for name, base in condarc.custom)
    yield from (condarc.alias,) if condarc.alias else ()
    yield from condarc.defaults or ()


def _of_files(files: Sequence[str]) -> Iterator[str]:
    from envsolve.app.packages.conda_requirements import is_environment_file
    from envsolve.lockfile.environment_request import read_environment

    for name in files:
        if is_environment_file(name):
            yield from (address for _, address in read_environment(Path(name), this_platform()).logins)
