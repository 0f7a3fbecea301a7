"""Reading of options: every argument becomes a value, or one clear error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from envsolve.cli.report import Detail, Palette
from envsolve.errors import Hint, UsageError
from envsolve.model.words import member_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from envsolve.app.request.network import Network
    from envsolve.matrix import Matrix

    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


_MISTAKES = "envsolve.mistakes"
TYPED = "envsolve.typed"
"""The key of a context for the arguments after the name of the command."""
_SECTIONS = {
    "Requirements": (
        *("frameworks", "requirement_files", "editables", "constraint_files", "overrides", "build_constraint_files"),
        *("exclude_newer", "pre", "allow_builds", "extensions", "audit", "upgrade", "upgraded"),
    ),
    "Target": ("python", "gpus", "driver", "glibc", "cuda", "hosts", "platforms"),
    "Sources and indexes": ("sources", "prefer", "channels", "index_url", "extra_index_urls", "pytorch_index_url"),
    "Options": (),
    "Network and cache": ("offline", "refresh", "cache_dir", "no_cache"),
    "Messages": ("no_progress", "quiet", "verbose", "color"),
}
"""The sections in the help of a long command; options without a section are in ``Options``."""
_LONG = 20
"""The number of options from which a command is long."""


class Command(click.Command):
    """A command that reads all of its options first, and then reports all invalid ones.

    Its help shows a long list of options in sections.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, a long list in sections."""
        shown = [it for it in self.get_params(ctx) if not isinstance(it, click.Argument) and it.get_help_record(ctx)]
        section_of = {name: title for title, names in _SECTIONS.items() for name in names}
        for title in _SECTIONS if len(shown) >= _LONG else ():
            rows = [it.get_help_record(ctx) for it in shown if section_of.get(str(it.name), "Options") == title]
            if rows:
                with formatter.section(title):
                    formatter.write_dl([row for row in rows if row is not None])
        if len(shown) < _LONG:
            super().format_options(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the line. Raises SeveralMistakes, or the only mistake itself."""
        ctx.meta[TYPED] = tuple(args)
        mistakes: list[click.BadParameter] = ctx.meta.setdefault(_MISTAKES, [])
        rest = super().parse_args(ctx, args)
        if len(mistakes) > 1:
            raise SeveralMistakes(mistakes, ctx)
        if mistakes:
            raise mistakes[0]
        return rest


class SeveralMistakes(click.UsageError):
    """More than one invalid option."""

    def __init__(self, mistakes: Sequence[click.BadParameter], ctx: click.Context) -> None:
        super().__init__(f"{len(mistakes)} options cannot be read", ctx)
        self.mistakes = tuple(mistakes)


class Parsed(_ParamType):
    """An option parsed by a function that raises ValueError with a sentence for the user.

    ``splitter`` separates several values in an environment variable, since product names contain spaces.
    """

    envvar_list_splitter = ";"

    def __init__(self, name: str, parse: Callable[[str], object]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Parse a string; values that are already parsed pass."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            mistake = click.BadParameter(str(error), ctx, param)
            if ctx is None or not isinstance(ctx.command, Command):
                raise mistake from None
            ctx.meta[_MISTAKES].append(mistake)
            return None


def file_name(text: str) -> str:
    """``text`` unchanged; ValueError if it is empty."""
    if not text:
        raise ValueError("a file name cannot be empty")
    return text


class FileName(Parsed):
    """The name of a file or a directory, which must not be empty; the shell completes it."""

    def __init__(self, name: Literal["file", "directory"], parse: Callable[[str], str] = file_name) -> None:
        super().__init__(name, parse)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The shell's own completion of files or of directories."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir" if self.name == "directory" else "file")]


class Member(Parsed):
    """A member of an enumeration."""

    def __init__(self, name: str, members: type[StrEnum]) -> None:
        super().__init__(name, member_of(members))
        self._members = members

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The members that begin with what was typed."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(it.value) for it in self._members if it.startswith(incomplete)]


def option(*names: str, **attributes: Any) -> Decorator:
    """A click option that ENVSOLVE_<OPTION> may also set, whatever its parameter is called."""
    spelled = next(name for name in names if name.startswith("--"))
    variable = "ENVSOLVE_" + spelled.removeprefix("--").replace("-", "_").upper()
    return click.option(*names, envvar=variable, **attributes)


def stacked(*decorators: Decorator) -> Decorator:
    """Several decorators as one, the first shown first."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def _use_colour(context: click.Context, parameter: click.Parameter, choice: str) -> str:  # noqa: ARG001
    Palette.choice = choice
    return choice


def _remember_detail(context: click.Context, parameter: click.Parameter, count: int) -> int:  # noqa: ARG001
    Detail.sources = count > 0
    return count


def package_name(text: str) -> str:
    """``text`` unchanged; ValueError if it is no name of a package, e.g. because a version follows."""
    from envsolve.model.names import is_name

    if not is_name(text):
        raise ValueError(f"{text!r} is not a package name such as 'numpy'; put versions into the requirements")
    return text


def require_not_typed(names: Iterable[str], why: str, hints: tuple[Hint, ...] = ()) -> None:
    """Raise UsageError if one of the options ``names`` is on the command line, which excludes it."""
    context = click.get_current_context()
    for parameter in context.command.params:
        is_typed = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and is_typed:
            raise UsageError("contradictory-options", f"{max(parameter.opts, key=len)} {why}", hints=hints)


matrix_option = option(
    "--matrix",
    "matrix_directory",
    metavar="DIR",
    type=FileName("directory"),
    help="Use the compatibility matrix in DIR instead of the shipped one.",
)


output_option = option(
    "-o", "--output", type=FileName("file"), metavar="FILE", help="Write to FILE (atomically) instead of stdout."
)

dry_run_option = option(
    "--dry-run", is_flag=True, help="Write nothing; say which files would be new, changed or unchanged."
)
"""Respected where files are written (envsolve.cli.output)."""


def matrix_directory(options: Mapping[str, Any]) -> Path | None:
    """The directory of --matrix, in any working directory; None for the shipped matrix."""
    directory = options["matrix_directory"]
    return None if directory is None else Path(directory).absolute()


def matrix_of(options: Mapping[str, Any]) -> Matrix:
    """The compatibility matrix of --matrix, by default the shipped one."""
    from envsolve.matrix import Matrix

    return Matrix(matrix_directory(options))


def require_one_environment(options: Mapping[str, Any]) -> None:
    """Raise UsageError if both options for an environment are given."""
    if options["prefix"] is not None and options["python"] is not None:
        raise UsageError("contradictory-options", "--prefix and --python both select the environment: give only one")


def network_of(options: Mapping[str, Any]) -> Network:
    """The network settings of the command, in any working directory."""
    from envsolve.app.request.network import Network

    cache = options["cache_dir"]
    absolute = None if cache is None else str(Path(cache).absolute())
    return Network(options["offline"], options["refresh"], absolute, options["no_cache"])


environment_options = stacked(
    click.option("--prefix", metavar="DIR", type=FileName("directory"), help="The environment's directory."),
    click.option(
        "--python",
        metavar="EXE",
        type=FileName("file"),
        help="The environment's interpreter. Default: that of the active environment.",
    ),
)
"""The environment to examine."""

quiet_option = option("-q", "--quiet", is_flag=True, help="Only print errors.")
verbose_option = option(
    "-v", "--verbose", count=True, is_eager=True, callback=_remember_detail, help="Show the source of each fact."
)
color_option = option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    is_eager=True,
    expose_value=False,
    callback=_use_colour,
    help="Colour on stderr and in tables; respects NO_COLOR and FORCE_COLOR.",
)

output_options = stacked(quiet_option, verbose_option, color_option)
"""The options of every command."""
