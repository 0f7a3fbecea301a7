"""The entry point: pick the command, turn every failure into three parts on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from envsolve.cli.interrupts import came
from envsolve.cli.output import TO_A_PLACE, deliver, forget_stdout, output_failed
from envsolve.cli.report import report
from envsolve.errors import EnvsolveError, Hint, OutsideError, UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_INTERRUPTED = 130
_PIPE_CLOSED = 0
_TOO_LONG = "for integer string conversion"
"""What Python says of a number with thousands of digits, which packaging reads as a version and refuses nowhere."""
_VERSION_WORDS = frozenset({"--version", "-v", "--verbose"})
_COMMANDS = (
    "solve",
    "init",
    "lock",
    "create",
    "export",
    "capture",
    "validate",
    "doctor",
    "explain",
    "detect",
    "status",
    "matrix",
    "cache",
    "completion",
)


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands; where an option begins, the options of ``solve`` too, which a line without a command means."""
        items = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return items
        solve = self.get_command(ctx, "solve")
        assert solve is not None
        with solve.make_context("solve", [], parent=ctx, resilient_parsing=True) as context:
            items += solve.shell_complete(context, incomplete)
        return list({item.value: item for item in items}.values())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``solve`` in front of a line that names no command; ``--version``, which ends it, goes behind ``-v``."""
        if "--version" in args and _VERSION_WORDS.issuperset(args):
            args = sorted(args, key="--version".__eq__)
        elif args and args[0] not in (*_COMMANDS, "--help", "--version", "-h"):
            _refuse_slip(args)
            args = ["solve", *args]
        return super().parse_args(ctx, args)


def _refuse_slip(args: Sequence[str]) -> None:
    """Raise UsageError where the first word is nearly a command, and nothing says that a package is meant."""
    asking = ("-f", "--framework", "-r", "--requirement", "--format", "-o", "--output")
    if not args[0].isalpha() or any(word.partition("=")[0] in asking for word in args):
        return
    import difflib

    close = difflib.get_close_matches(args[0], _COMMANDS, n=1, cutoff=0.75)
    if close:
        hint = Hint(f"did you mean {close[0]}?", f"envsolve {close[0]}")
        raise UsageError("usage", f"unknown command {args[0]!r}", hints=(hint,))


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from envsolve.cli.version import version_text

    deliver(version_text(verbose=bool(context.params.get("verbose"))), None)
    context.exit()


@click.group(
    cls=LazyGroup,
    name="envsolve",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="The default command is `solve`: envsolve --framework tensorflow --gpu auto > environment.yml",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and the date of the compatibility matrix; with -v also the tools that envsolve found.",
)
@click.option("-v", "--verbose", is_flag=True, is_eager=True, hidden=True)
def cli(verbose: bool) -> None:
    """CUDA stacks that run on the GPU and the driver you have."""


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code. Whatever goes wrong, no traceback reaches the user.

    With ENVSOLVE_DEBUG set an internal error is raised as it is.
    """
    as_json = _wants_json(arguments)
    try:
        return _answer(arguments or [_without_arguments()])
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except BrokenPipeError:
        forget_stdout()
        return _PIPE_CLOSED
    except Exception as error:
        if came():
            return _interrupted()
        known = _as_error(error)
        if known is None and os.environ.get("ENVSOLVE_DEBUG"):
            raise
        return report(known or _internal(error), arguments, as_json=as_json)


def _interrupted() -> int:
    click.echo("interrupted", err=True)
    return _INTERRUPTED


def _without_arguments() -> str:
    """The main job where the environment names a framework, as with any other option; else the help."""
    return "solve" if os.environ.get("ENVSOLVE_FRAMEWORK") else "--help"


def _as_error(error: Exception) -> EnvsolveError | None:
    """The error to show for ``error``; None where it is an internal one."""
    if isinstance(error, click.ClickException):
        return _usage_error(error)
    if isinstance(error, ValueError) and _TOO_LONG in str(error):
        message = f"a version or another number has more than {sys.get_int_max_str_digits()} digits"
        return UsageError("number-too-long", message, hints=(Hint("check the options and the files they name"),))
    if isinstance(error, OSError) and error.filename is not None:
        message = f"{os.fsdecode(error.filename)} cannot be used: {error.strerror or error}"
        return OutsideError("file-failed", message, hints=(Hint("check that it exists and that you have permission"),))
    return error if isinstance(error, EnvsolveError) else None


def _answer(arguments: list[str]) -> int:
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the rest of the process
        raise OutsideError("stdout-closed", "standard output is closed", hints=(TO_A_PLACE,))
    try:
        code = cli.main(arguments, prog_name="envsolve", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        deliver(error.format_message() + "\n", None)
        return 0
    except BrokenPipeError:
        raise
    except OSError as error:  # click's own printing of help and version: all else delivers
        if error.filename is not None:
            raise
        raise output_failed(error) from error
    return code if isinstance(code, int) else 0


def _internal(error: Exception) -> OutsideError:
    if isinstance(error, MemoryError):
        return OutsideError("out-of-memory", "envsolve ran out of memory", hints=(Hint("free memory, and try again"),))
    return OutsideError(
        "internal-error",
        f"internal error; please report it: {type(error).__name__}: {error}",
        hints=(Hint("run it again with ENVSOLVE_DEBUG=1 and report the output"),),
    )


def _wants_json(arguments: Sequence[str]) -> bool:
    """Whether an error has to be data too: known before the line is parsed, because parsing may be what fails."""
    if "--json" in arguments or os.environ.get("ENVSOLVE_JSON", "").lower() in ("1", "true", "yes", "on", "t", "y"):
        return True
    joined = [argument.removeprefix("--format=") for argument in arguments if argument.startswith("--format=")]
    given = joined + [value for option, value in pairwise(arguments) if option == "--format"]
    return "json" in (given or [os.environ.get("ENVSOLVE_FORMAT", "")])


def _usage_error(error: click.ClickException) -> UsageError:
    hints = []
    if isinstance(error, click.NoSuchOption) and error.possibilities:
        hints.append(Hint(f"did you mean {' or '.join(sorted(error.possibilities))}?"))
    if isinstance(error, click.BadParameter) and _is_from_environment(error):
        error.param_hint = error.param.envvar if error.param is not None else None
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "envsolve"
    hints.append(Hint("list all options", f"{command} --help"))
    return UsageError("usage", error.format_message().rstrip("."), hints=tuple(hints))


def _is_from_environment(error: click.BadParameter) -> bool:
    """Whether a variable holds the value that is wrong, and no option that somebody typed."""
    if error.ctx is None or error.param is None or not isinstance(error.param.envvar, str):
        return False
    return error.ctx.get_parameter_source(error.param.name or "") is ParameterSource.ENVIRONMENT
