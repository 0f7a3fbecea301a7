"""Variables with envsolve's prefix that are set and not used: most likely misspelled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from envsolve.model.note import Note

PREFIX = "ENVSOLVE_"
_OF_NO_OPTION = (
    "ENVSOLVE_CACHE_SIZE",
    "ENVSOLVE_COMPLETE",
    "ENVSOLVE_DATA_DIR",
    "ENVSOLVE_DEBUG",
    "ENVSOLVE_PROBE_TIMEOUT",
    "ENVSOLVE_UPDATE_SNAPSHOTS",
    "ENVSOLVE_URL",
)
_OF_TESTS = "ENVSOLVE_TEST_"
_OF_ENVIRONMENTS = "ENVSOLVE_OLD_"
"""The prefix of variables of an activated environment."""


def unknown_variables(names: Iterable[str], commands: click.Group) -> Iterator[Note]:
    """A note for each of ``names`` with envsolve's prefix that no option of ``commands`` reads."""
    own = [it for it in names if it.startswith(PREFIX) and not it.startswith((_OF_TESTS, _OF_ENVIRONMENTS))]
    if not set(own).difference(_OF_NO_OPTION):
        return
    from difflib import get_close_matches

    known = {*_OF_NO_OPTION, *_variables(commands, click.Context(commands))}
    for name in sorted(set(own) - known):
        close = get_close_matches(name, known, n=1)
        meant = f"; did you mean {close[0]}?" if close else ""
        yield Note("unknown-variable", f"the variable {name} is set, but envsolve has no option of that name{meant}")


def _variables(command: click.Command, context: click.Context) -> Iterator[str]:
    """The variables of the options of ``command`` and its subcommands."""
    yield from (it.envvar for it in command.params if isinstance(it.envvar, str))
    if isinstance(command, click.Group):
        below = (command.get_command(context, name) for name in command.list_commands(context))
        for it in filter(None, below):
            yield from _variables(it, context)
