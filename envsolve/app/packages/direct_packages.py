"""Requirements that give an address are read before all else: each is one version, which nothing can move."""

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
    """``wanted`` with what is at the addresses of its requirements, and at those that these require.

    ``holds`` says whether a marker holds on any target: what is for other ones is not read. ``commits`` are the
    addresses in an existing lock that stay, by those of the requirements they are for. Raises UsageError if a file
    in ``format_name`` cannot have one, or it is not the project that a requirement says; OutsideError where it cannot
    be read.
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
        asked = parse_reference(need.url)
        kept = commits.get(without_secrets(url))
        found = asked if kept is None else parse_reference(kept)._replace(is_named=asked.is_named)
        try:
            read = connection.direct.read(need.name, found)
        except EnvsolveError as error:
            error.refused = tuple(_refused(need, origin, error) for it, origin in wanted.needs if it == need)
            raise
        direct[url] = read._replace(requested=without_secrets(asked.url))
        required = () if read.metadata is None else read.metadata.requires or ()
        waiting += [it for it in required if it.url and (it.for_extra in need.extras or holds(it.marker))]

    def name_of(need: Need) -> str:
        read = direct.get(named(need.url))
        return need.name if read is None or read.metadata is None else normalized(read.metadata.name)

    return with_names(wanted, name_of)._replace(direct=direct)


def _refused(need: Need, origin: str, error: EnvsolveError) -> Refused:
    """The requirement ``need``, whose address cannot be read because of ``error``."""
    called = () if need.name in error.message else (need.name,)
    why = ": ".join((*called, error.message, *error.cause))
    return Refused(need.name, place_of(origin, as_typed(named(need.url)), need.name), why)
