"""Reads requirements that give an address before the search, as each of them allows exactly one version."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from envsolve.app.packages.lock_indexes import Connection
from envsolve.app.packages.requirements import Requirements, require_sources_in, with_names
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import EnvsolveError, Refused
from envsolve.index.requirement_file import place_of
from envsolve.model.names import normalized
from envsolve.model.need import Need
from envsolve.model.reference import as_typed, named, parse_reference


def with_direct(
    wanted: Requirements,
    connection: Connection,
    format_name: str,
    holds: Callable[[str], bool],
    commits: Mapping[str, str],
) -> Requirements:
    """``requirements`` with the metadata at their addresses, and at the addresses that these require.

    ``holds`` says whether a marker holds on any target; other requirements are not read. ``commits`` has the addresses
    in an existing lock that stay, by the address of the requirement. Raises UsageError if a file in ``format_name``
    cannot contain a requirement, or if the address has another project; OutsideError if it cannot be read.
    """
    waiting = [need for need, _ in (*wanted.needs, *wanted.constraints) if need.url and holds(need.marker)]
    if not waiting:
        return wanted
    require_sources_in(wanted, format_name)
    direct = dict(wanted.direct)
    while waiting:
        need = waiting.pop()
        url = named(need.url)
        if url in direct:
            continue
        requested = parse_reference(need.url)
        commit = commits.get(without_secrets(url))
        found = requested if commit is None else parse_reference(commit)._replace(is_named=requested.is_named)
        try:
            read = connection.direct.read(need.name, found)
        except EnvsolveError as error:
            error.refused = tuple(_refused(need, origin, error) for it, origin in wanted.needs if it == need)
            raise
        direct[url] = read._replace(requested=without_secrets(requested.url))
        required = () if read.metadata is None else read.metadata.requires or ()
        waiting += [it for it in required if it.url and (it.for_extra in need.extras or holds(it.marker))]

    def name_of(need: Need) -> str:
        read = direct.get(named(need.url))
        return need.name if read is None or read.metadata is None else normalized(read.metadata.name)

    return with_names(wanted, name_of)._replace(direct=direct)


def _refused(need: Need, origin: str, error: EnvsolveError) -> Refused:
    """The refused requirement ``need``; ``error`` says why its address cannot be read."""
    called = () if need.name in error.message else (need.name,)
    why = ": ".join((*called, error.message, *error.cause))
    return Refused(need.name, place_of(origin, as_typed(named(need.url)), need.name), why)
