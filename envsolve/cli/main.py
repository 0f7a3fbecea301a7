"""The entry point: pick the command, turn every failure into three parts on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise

import click

from envsolve import __version__
from envsolve.cli.report import report
from envsolve.errors import EnvsolveError, Hint, UsageError

_INTERRUPTED = 130
_PLANNED = ("init", "lock", "status", "create", "validate", "doctor", "explain")
_PIPE_CLOSED = 0


_COMMANDS = ("solve", "detect", "matrix")


class LazyGroup(click.Group):
    """A group that imports a command when it is used, and takes a line that names none for ``solve``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the help text."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from the module of that name."""
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(f"envsolve.cli.{cmd_name}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``solve`` in front of a line that names no command."""
        if args and args[0] not in (*_COMMANDS, "--help", "--version", "-h"):
            if args[0] in _PLANNED:
                raise UsageError("command-not-supported", f"this version of envsolve has no command {args[0]!r}")
            args = ["solve", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=LazyGroup,
    name="envsolve",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Without a command, `solve` is meant: envsolve --framework tensorflow --gpu auto > environment.yml",
)
@click.version_option(__version__, prog_name="envsolve")
def cli() -> None:
    """CUDA stacks that run on the GPU and the driver you have."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; nothing but KeyboardInterrupt's cousin SystemExit passes."""
    as_json = "--json" in arguments or "json" in _formats(arguments)
    try:
        code = cli.main(arguments, prog_name="envsolve", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except EnvsolveError as error:
        return report(error, as_json=as_json)
    except click.ClickException as error:
        return report(_usage_error(error), as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED


def _formats(arguments: Sequence[str]) -> list[str]:
    joined = [argument.removeprefix("--format=") for argument in arguments if argument.startswith("--format=")]
    return joined + [value for option, value in pairwise(arguments) if option == "--format"]


def _usage_error(error: click.ClickException) -> UsageError:
    hints = []
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        hints.append(Hint(f"did you mean {' or '.join(sorted(error.possibilities))}?"))
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "envsolve"
    hints.append(Hint("see all options", f"{command} --help"))
    return UsageError("usage", error.format_message().rstrip("."), hints=tuple(hints))
