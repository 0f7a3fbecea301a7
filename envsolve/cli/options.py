"""What the options read: every word becomes a value here, or one clear error."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from envsolve.model.host import Platform
from envsolve.model.release import Source

T = TypeVar("T")
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Parsed(_ParamType):
    """An option read by a function that raises ValueError with a sentence for the user.

    ``splitter`` separates several values in an environment variable: product names hold spaces.
    """

    envvar_list_splitter = ";"

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read a string; values that are read already pass."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def option(*names: str, **attributes: Any) -> Decorator:
    """A click option that ENVSOLVE_<OPTION> may also set, whatever its parameter is called."""
    spelled = next(name for name in names if name.startswith("--"))
    variable = "ENVSOLVE_" + spelled.removeprefix("--").replace("-", "_").upper()
    return click.option(*names, envvar=variable, **attributes)


def member_of(kind: type[Platform | Source]) -> Callable[[str], Platform | Source]:
    """A parser for the members of an enumeration that names them all when it is given another word."""

    def parse(text: str) -> Platform | Source:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"{text!r} is none of {', '.join(kind)}") from None

    return parse


def stacked(*decorators: Decorator) -> Decorator:
    """Several decorators as one, the first shown first."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def use_colour(context: click.Context, choice: str) -> None:
    """Colour as ``--color`` says, or as NO_COLOR and FORCE_COLOR do, or as the terminal is."""
    if choice != "auto":
        context.color = choice == "always"
    elif os.environ.get("NO_COLOR"):
        context.color = False
    elif os.environ.get("FORCE_COLOR"):
        context.color = True


matrix_option = option(
    "--matrix",
    "matrix_directory",
    metavar="DIR",
    help="Read the compatibility matrix from DIR instead of the one that envsolve ships.",
)

output_options = stacked(
    option("-q", "--quiet", is_flag=True, help="No notes on stderr; errors remain."),
    option("-v", "--verbose", count=True, help="Say where each fact comes from."),
    option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Colour on stderr; NO_COLOR and FORCE_COLOR are honoured.",
    ),
)
"""Options that every command takes."""
