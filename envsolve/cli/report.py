"""Errors as text (stderr) and as data (stdout, with --json)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from envsolve.boundary.display import escaped, one_line
from envsolve.boundary.secrets import without_secrets
from envsolve.cli.output import printable
from envsolve.errors import EnvsolveError, Hint, MatrixError, UnsolvableError
from envsolve.model.fact import Fact
from envsolve.model.note import Note

if TYPE_CHECKING:
    from envsolve import documents

_LONGEST = 200
_OF_OTHERS = ("ENVSOLVE_DEBUG", "ENVSOLVE_TEST_", "ENVSOLVE_UPDATE_SNAPSHOTS", "ENVSOLVE_URL")
"""Variables that are not options: those from which jobs and images install envsolve, and those of the tests."""
_MEND = Hint("fix the keys listed above. README.md in that directory documents each key")


class Palette:
    """Whether stderr is coloured: by ``--color``, by NO_COLOR and FORCE_COLOR, or if it is a terminal."""

    choice: str = "auto"

    @classmethod
    def wanted(cls) -> bool | None:
        """The value for click: None lets the terminal decide."""
        if cls.choice != "auto":
            return cls.choice == "always"
        if os.environ.get("NO_COLOR"):
            return False
        return True if os.environ.get("FORCE_COLOR") else None


class Detail:
    """Whether ``-v`` requests the source of each fact."""

    sources: bool = False


def _document(error: EnvsolveError) -> documents.Failure:
    return {"schema_version": 1, "error": error.as_json()}


def report(error: EnvsolveError, arguments: Sequence[str], command: str, *, as_json: bool) -> int:
    """Print ``error`` of ``command`` in its three parts and return its exit code."""
    ask = Hint("list all options", f"envsolve {command} --help")
    error.hints = error.hints or (_MEND if isinstance(error, MatrixError) else ask,)
    if as_json:
        import json

        click.echo(printable(escaped(json.dumps(_document(error), indent=2, ensure_ascii=False))))
    _say("error:", "red", error.code, _shown(error.message))
    for cause in _causes(error) or (_shown(f"you typed: {_typed(arguments)}"),):
        _say("cause:", "yellow", cause)
    if isinstance(error, UnsolvableError) and error.matrix_date is not None:
        _say("note:", "cyan", f"based on the compatibility matrix of {error.matrix_date}")
    for hint in error.hints:
        _say("hint:", "green", hint.text, hint.command)
    return error.exit_code


def _typed(arguments: Sequence[str]) -> str:
    """The command line, after the variables that set options.

    Addresses in variables are left out: they may contain a token, and the user did not type them here.
    """
    set_ = ((name, value) for name, value in sorted(os.environ.items()) if _sets_option(name))
    variables = (f"{name}={'...' if '://' in value else shlex.quote(value)}" for name, value in set_)
    return " ".join((*variables, shlex.join(["envsolve", *map(without_secrets, arguments)])))


def _sets_option(name: str) -> bool:
    return name.startswith("ENVSOLVE_") and not name.startswith(_OF_OTHERS)


def _causes(error: EnvsolveError) -> Sequence[str]:
    """The causes of the error besides its message, with ``-v`` each fact with its source."""
    if not Detail.sources or not error.conflict:
        return [it for it in error.cause if it.removesuffix(".") not in error.message]
    steps = [(step.requirement, step.source or step.because) for step in error.conflict]
    return [text if source in text else f"{text} [{source}]" for text, source in steps]


def note(it: Note | str, *, quiet: bool) -> None:
    """Print one note on stderr, with its command below."""
    if not quiet:
        noted = it if isinstance(it, Note) else Note("", it)
        _say("note:", "cyan", noted.text, noted.command)


def note_each(notes: Iterable[Note | str], options: Mapping[str, Any]) -> None:
    """Print notes, unless -q is among ``options``."""
    for it in notes:
        note(it, quiet=options["quiet"])


def note_facts(facts: Iterable[Fact], options: Mapping[str, Any]) -> None:
    """Print the facts that led to an answer, with -v."""
    if options["verbose"]:
        note_each((f"{it.text} [{it.source}]" for it in facts), options)


def _say(word: str, colour: str, text: str, below: str | None = None) -> None:
    """Print ``text`` after ``word``, and ``below`` on a separate line: each is one line, whatever it contains.

    Some of it is from outside, and must not form a line such as ``hint:`` of its own.
    """
    styled = click.style(word, fg=colour, bold=word == "error:")
    lines = [f"{styled} {one_line(text)}", *([] if below is None else [f"  {one_line(below)}"])]
    click.echo("\n".join(lines), err=True, color=Palette.wanted())


def _shown(text: str) -> str:
    """``text`` without the middle of a very long argument, most likely pasted by mistake."""
    text = without_secrets(text)
    return text if len(text) <= 4 * _LONGEST else f"{text[: 2 * _LONGEST]} ... {text[-_LONGEST:]}"
