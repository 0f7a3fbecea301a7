"""The package indexes that the user has configured for uv or pip: a lock uses the same indexes as an installation.

Places, the first one takes precedence:

1. uv's environment variables: closest to the command, and written for a tool that locks
2. pip's environment variables: how containers and CI name a mirror
3. uv's configuration of the project: shared by everyone who works on it
4. uv's configuration of the user
5. pip's configuration files
6. uv's configuration of the system

A single value comes from the first place that sets it. Lists are joined in this order, as in uv, except that a PIP_*
variable replaces the value in pip's files, as in pip. So a mirror in a variable also works for a project that assigns
one package to another index.
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
    """The configured indexes. URLs can contain a user name and a password, so it is never printed as a whole.

    ``index_url`` is None if none is configured; :func:`default_index` applies then. ``extra_index_urls`` come before
    it, in their order. ``find_links`` are pages or directories of files; with ``no_index`` they are the only source.
    ``package_indexes`` assigns packages, by normalized name, to one index; ``package_indexes_where`` does so for
    targets that satisfy its third part, a marker. Certificates of ``trusted_hosts`` are not verified. ``origin`` names
    the place of the index setting, for messages, "" if there is none; ``find_links_origin`` that of ``find_links``.
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
    """The settings for a command in ``cwd``.

    ``prefix`` is the environment with the pip.conf to read. ``root`` is the directory above the system's configuration.
    Raises UsageError for an unreadable or invalid file, with the line or the key but never a value.
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
            pip_settings.configured({key: value for key, value in files.items() if key not in variables}),
            uv_settings.of_the_system(machine),
        ),
        home,
    )


def default_index() -> str:
    """The default index of packaging tools, for users who configured none.

    distlib has it as a constant; the simple API of an index (PEP 503) is next to the older API in that constant.
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
