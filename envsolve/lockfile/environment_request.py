"""An environment.yml as a request, read by ``-r``: what an environment has to contain, for one platform.

The pins in such a file are read as a lock by :mod:`envsolve.lockfile.environment_yml`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import UsageError
from envsolve.index.requirement_file import PIP_SECTION, FileRequirements, read_pip_section
from envsolve.lockfile.environment_yml import LONGEST, Entries, channels_in, notes_on, read_entries, variables_in
from envsolve.lockfile.lock import MAIN, RequestedSpec
from envsolve.lockfile.text_file import clean, shown
from envsolve.lockfile.yaml_document import items_of, line_of, scalar_of
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec

if TYPE_CHECKING:
    from yaml import Node

_NO = ("false", "no", "off", "n")


class EnvironmentFile(NamedTuple):
    """What an environment.yml requires on one platform, without credentials.

    ``requested`` are the match specs, spelled as in :mod:`envsolve.model.match_spec`, then the requirements of ``pip``.
    ``channels`` are in their order, without ``nodefaults``, with names of variables as written. ``variables`` are set
    in the environment. ``notes`` are sentences about what was left out. ``logins`` are the channels with a login, each
    with its address as written, which is used only for requests to the channel.
    """

    channels: tuple[str, ...]
    requested: tuple[RequestedSpec, ...]
    pip: FileRequirements = FileRequirements()
    variables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    logins: tuple[tuple[str, str], ...] = ()


def read_environment(path: Path, platform: Platform, text: str | None = None) -> EnvironmentFile:
    """Return what the environment.yml at ``path`` requires on ``platform``. With ``text`` the file is not read.

    Raises UsageError ``environment-invalid`` with the line that cannot be read.
    """
    try:
        written = read_text(path, LONGEST) if text is None else text
        if written is None:
            raise FileError("there is no such file")
        return _environment(path, read_entries(written, platform))
    except FileError as error:
        raise UsageError("environment-invalid", f"{error.at(path)}: {error.reason}") from None


def _environment(path: Path, entries: Entries) -> EnvironmentFile:
    table = entries.table
    category = _text(table, "category") or MAIN
    channels, left_out, logins = channels_in(entries)
    pip = _repositories(table) + read_pip_section(entries.pip, path)
    wheels = dict.fromkeys(it.text for it in pip.requirements if it.origin.startswith(PIP_SECTION))
    specs = dict.fromkeys(_spec(text, line) for text, line in entries.conda)
    reason = f"{path.name} requires it"
    requested = [RequestedSpec(spec, reason, category) for spec in specs]
    if wheels and not any(parse_match_spec(spec).name == "pip" for spec in specs):
        requested.append(RequestedSpec("pip", f"{path.name} has requirements that it installs", category))
    return EnvironmentFile(
        channels,
        (*requested, *(RequestedSpec(requirement, reason, category, by_pip=True) for requirement in wheels)),
        pip,
        variables_in(entries),
        (*left_out, *_other_platforms(table), *notes_on(entries)),
        logins,
    )


def _spec(text: str, line: int) -> str:
    try:
        return str(parse_match_spec(text))
    except ValueError as error:
        raise FileError(f"{shown(text)} is not a conda requirement: {clean(str(error))}", line) from None


def _repositories(table: dict[str, Node]) -> FileRequirements:
    """conda-lock's own keys for package indexes."""
    node = table.get("pip-repositories")
    items = [] if node is None else items_of(node, "pip-repositories")
    urls = [without_secrets(scalar_of(item, "an index")) for item in items]
    alone = urls[:1] if _text(table, "allow-pypi-requests").lower() in _NO else []
    return FileRequirements(index_url=next(iter(alone), None), extra_index_urls=tuple(urls[len(alone) :]))


def _text(table: dict[str, Node], key: str) -> str:
    return scalar_of(table[key], key) if key in table else ""


def _other_platforms(table: dict[str, Node]) -> Iterator[str]:
    """A note for each platform that envsolve does not support."""
    for item in items_of(table["platforms"], "platforms") if "platforms" in table else ():
        name = scalar_of(item, "a platform")
        if name and name not in tuple(Platform):
            yield f"line {line_of(item)}: envsolve makes no lock for the platform {shown(name)}"
