"""Which package indexes the user has configured, for uv or for pip: a lock asks the indexes that an install would.

Places, the first that says something first:

1. uv's environment variables: closest to the command, and written for a tool that locks
2. pip's environment variables: how containers and CI name a mirror
3. uv's configuration of the project: shared by everybody who works on it
4. uv's configuration of the user
5. pip's configuration files
6. uv's configuration of the system

A single value is that of the first place. Lists add up in this order, as uv's do, except that a PIP_* variable
replaces what pip's files say, as in pip. So a mirror that a variable names serves a project that ties one package to
another index.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from envsolve.index import pip_settings, uv_settings
from envsolve.index.configured import Configured, Machine, first

T = TypeVar("T")


class IndexSettings(NamedTuple):
    """Where packages are looked for. URLs may hold user and password, so it is never printed as a whole.

    ``index_url`` is None where none is configured: :func:`default_index` is meant. ``extra_index_urls`` are asked
    before it, in their order. ``find_links`` are pages or directories of files; with ``no_index`` they are all there
    is.
    ``package_indexes`` ties packages, by normalized name, to one index; ``package_indexes_where`` does so on targets
    that its third part, a marker, is true for. ``trusted_hosts`` need no valid certificate. ``origin`` says in words
    where the index was configured, for messages; "" where nothing is. ``find_links_origin`` says so of ``find_links``.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    origin: str = ""
    cert: str | None = None
    client_cert: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    package_indexes: tuple[tuple[str, str], ...] = ()
    package_indexes_where: tuple[tuple[str, str, str], ...] = ()
    find_links_origin: str = ""


def read_settings(
    environ: Mapping[str, str],
    home: Path | None,
    cwd: Path,
    *,
    prefix: Path | None,
    root: Path = Path("/"),
    platform: str = sys.platform,
) -> IndexSettings:
    """What is configured for a command in ``cwd``.

    ``prefix`` is the environment whose pip.conf counts. ``root`` is where the system's configuration is below.
    Raises UsageError for a file that cannot be read or understood, with its line or key; never with a value.
    """
    machine = Machine(environ, home, prefix, root, platform)
    variables = pip_settings.from_variables(machine)
    files = pip_settings.from_files(machine)
    return _merged(
        (
            *uv_settings.from_variables(environ),
            pip_settings.configured(variables),
            uv_settings.of_the_project(environ, cwd),
            uv_settings.of_the_user(machine),
            pip_settings.configured({key: said for key, said in files.items() if key not in variables}),
            uv_settings.of_the_system(machine),
        ),
        home,
    )


def default_index() -> str:
    """The index that serves where none is configured, as packaging tools know it.

    distlib states it as a constant; the simple API of an index lies beside the older one it names (PEP 503).
    """
    from urllib.parse import urljoin

    from distlib.index import DEFAULT_INDEX

    return urljoin(str(DEFAULT_INDEX), "/simple")


def _merged(places: tuple[Configured, ...], home: Path | None) -> IndexSettings:
    naming = [place for place in places if place.index_url] or [place for place in places if place.names_an_index]
    return IndexSettings(
        index_url=first(place.index_url for place in places),
        extra_index_urls=_all(place.extra_index_urls for place in places),
        find_links=_all(place.find_links for place in places),
        no_index=next((place.no_index for place in places if place.no_index is not None), False),
        origin=_short(naming[0].origin, home) if naming else "",
        cert=first(place.cert for place in places),
        client_cert=first(place.client_cert for place in places),
        trusted_hosts=_all(place.trusted_hosts for place in places),
        package_indexes=next((place.package_indexes for place in places if place.package_indexes), ()),
        package_indexes_where=next((it.package_indexes_where for it in places if it.package_indexes_where), ()),
        find_links_origin=" and ".join(
            _short(it.find_links_origin or it.origin, home) for it in places if it.find_links
        ),
    )


def _all(lists: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    """The members of all lists, each once."""
    return tuple(dict.fromkeys(each for members in lists for each in members))


def _short(origin: str, home: Path | None) -> str:
    """``origin`` with the user's home as ``~``."""
    above = f"{home}{os.sep}"
    return f"~{os.sep}{origin.removeprefix(above)}" if home is not None and origin.startswith(above) else origin
