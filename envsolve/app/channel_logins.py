"""Addresses of channels with what opens them: a lock has them bare, and packages are fetched with the login."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from envsolve.app.conda_asked import is_environment_file
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.condarc import Condarc, read_condarc
from envsolve.host.machine import this_platform
from envsolve.lockfile.environment_request import read_environment


def channel_logins(
    channels: Sequence[str], files: Sequence[str], environ: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Each address that holds a login or a token, bare and as it is: of ``channels``, files of -r and conda's settings.

    Raises UsageError for a file that cannot be read.
    """
    home = environ.get("HOME") or environ.get("USERPROFILE")
    condarc = read_condarc(environ, Path(home) if home else None)
    found = dict.fromkeys((*_of_settings(condarc), *channels, *_of_files(files)))
    addresses = condarc.addresses_of(found, this_platform())
    return tuple((without_secrets(it), it) for it in addresses if without_secrets(it) != it)


def _of_settings(condarc: Condarc) -> Iterator[str]:
    yield from (f"{base.rstrip('/')}/{name}" for name, base in condarc.custom)
    yield from (condarc.alias,) if condarc.alias else ()
    yield from condarc.defaults or ()


def _of_files(files: Sequence[str]) -> Iterator[str]:
    for name in files:
        if is_environment_file(name):
            yield from (address for _, address in read_environment(Path(name), this_platform()).logins)
