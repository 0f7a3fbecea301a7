"""The requirements of an imported project that cannot be locked, in one error with the command that skips them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import click

from envsolve.boundary.secrets import without_secrets
from envsolve.cli.options import TYPED
from envsolve.errors import EnvsolveError, Hint, Refused, UnsolvableError, UsageError

T = TypeVar("T")


def all_refused(lock: Callable[[Sequence[str]], T]) -> T:
    """The result of ``lock``, which leaves out the requirements with the given names.

    If some requirements cannot be locked, the others are tried without them. Raises an error that names all of them, or
    an unrelated error.
    """
    refused: dict[str, Refused] = {}
    errors: list[EnvsolveError] = []
    while True:
        try:
            found = lock(tuple(refused))
        except EnvsolveError as error:
            errors.append(error)
            more = {it.name: it for it in error.refused if it.name not in refused}
            if not more:
                raise _not_lockable(refused, errors, _messages(error)) if refused else error from None
            refused |= more
        else:
            if errors:
                raise _not_lockable(refused, errors, ())
            return found


def _messages(error: EnvsolveError) -> tuple[str, ...]:
    """The messages of an error: if there are several mistakes, each by itself."""
    return (isinstance(error, UsageError) and error.cause) or (error.message,)


def _not_lockable(
    refused: Mapping[str, Refused], errors: Sequence[EnvsolveError], then: Sequence[str]
) -> EnvsolveError:
    """The error for requirements that cannot be locked, from the errors about each; ``then`` remains without them.

    It is the first error if that is complete.
    """
    typed = map(without_secrets, click.get_current_context().meta[TYPED])
    words = (word for name in refused for word in ("--exclude", name))
    leave = Hint("leave out what cannot be locked", shlex.join(("envsolve", "init", *words, *typed)))
    hints = tuple(dict.fromkeys((leave, *(hint for it in errors for hint in it.hints))))
    if len(refused) == 1 and not then:
        errors[0].hints = hints
        return errors[0]
    causes = (it.why if it.name in it.why else f"{it.name} {it.why}" for it in refused.values())
    listed = [f"{it.where}: {cause}" for it, cause in zip(refused.values(), causes, strict=True)]
    counted = "a requirement" if len(refused) == 1 else f"{len(refused)} requirements"
    return UnsolvableError(
        "requirements-not-lockable",
        f"{counted} cannot be locked",
        (*listed, *(f"and without {'it' if len(refused) == 1 else 'them'}: {it}" for it in then)),
        hints,
        refused=tuple(refused.values()),
    )
