"""The entry point: choose the command, and turn every failure into three parts on stderr and an exit code."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from envsolve.cli.interrupts import came
from envsolve.cli.options import SeveralMistakes
from envsolve.cli.output import TO_A_PLACE, deliver, forget_stdout, output_failed
from envsolve.cli.report import note, report
from envsolve.cli.variables import PREFIX, unknown_variables
from envsolve.errors import EnvsolveError, Hint, OutsideError, UsageError
from envsolve.model.prose import sentence_list

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_INTERRUPTED = 130
_PIPE_CLOSED = 0
_TOO_LONG = "for integer string conversion"
"""Python's message for a number with thousands of digits, which packaging accepts as a version everywhere."""
_VERSION_WORDS = frozenset({"--version", "-v", "--verbose"})
_COMMANDS = (
    "solve",
    "init",
    "lock",
    "add",
    "remove",
    "create",
    "sync",
    "run",
    "export",
    "capture",
    "validate",
    "doctor",
    "explain",
    "detect",
    "status",
    "diff",
    "fleet",
    "matrix",
    "site",
    "mcp",
    "cache",
    "completion",
)

_GROUPS = ("fleet", "matrix", "cache")
"""Commands with subcommands."""
_MODULES = {"add": "edit", "remove": "edit"}
"""The module of a command, if it is not the module of its name."""
_OF_OTHER_TOOLS = {
    "install": ("to add a package to the project and its locks, use add", "envsolve add PACKAGE"),
    "uninstall": ("to drop a package from the project and its locks, use remove", "envsolve remove PACKAGE"),
    "rm": ("to drop a package from the project and its locks, use remove", "envsolve remove PACKAGE"),
    "help": ("to list the commands, use --help", "envsolve --help"),
    "update": ("to lock newer versions, use lock -U", "envsolve lock -U"),
    "upgrade": ("to lock newer versions, use lock -U", "envsolve lock -U"),
    "compile": ("to write the locks of the project, use lock", "envsolve lock"),
    "shell": ("to run a program in the environment of the project, use run", "envsolve run -- bash"),
    "activate": ("to run a program in the environment of the project, use run", "envsolve run -- bash"),
    "list": ("to list frameworks and their builds, use matrix list", "envsolve matrix list"),
    "info": ("to see the driver and the GPUs of this machine, use detect", "envsolve detect"),
    "freeze": ("to lock what is installed in an environment, use capture", "envsolve capture"),
    "new": ("to start a project, use init", "envsolve init --framework pytorch"),
    "test": ("to run kernels in an environment, use validate", "envsolve validate"),
}
"""Commands of conda, pip, uv and the like, each with its counterpart here."""
_NEAR, _NEARLY = 0.75, 0.82
"""The similarity of two words; the second is that of a command with one letter omitted or added."""
_ELSEWHERE = {
    ("validate", "--gpu"): Hint(
        "--gpu describes a target for solve and lock; --device selects the GPU to test",
        "envsolve validate --device cuda:0",
    ),
    ("status", "--prefix"): Hint("status checks files; doctor checks an environment", "envsolve doctor --prefix DIR"),
}
"""Options that only other commands have, each with its counterpart here."""


class LazyGroup(click.Group):
    """A group that imports a command when it is used, and takes a line without a command for ``solve``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the help text."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, from the module of that name."""
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(import_module(f"envsolve.cli.{_MODULES.get(cmd_name, cmd_name)}"), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands; at the beginning of an option also the options of ``solve``, the default command."""
        items = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return items
        solve = self.get_command(ctx, "solve")
        assert solve is not None
        with solve.make_context("solve", [], parent=ctx, resilient_parsing=True) as context:
            items += solve.shell_complete(context, incomplete)
        return list({item.value: item for item in items}.values())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put ``solve`` before a line without a command, and ``--version``, which ends the parsing, after ``-v``."""
        if "--version" in args and _VERSION_WORDS.issuperset(args):
            args = sorted(args, key="--version".__eq__)
        elif args and args[0] not in (*_COMMANDS, "--help", "--version", "-h"):
            if not ctx.resilient_parsing:
                _refuse_unknown_command(args)
            args = ["solve", *args]
        return super().parse_args(ctx, args)


def _refuse_unknown_command(args: Sequence[str]) -> None:
    """Raise UsageError if the first word is neither an option nor recognisably a requirement.

    A framework, a file or a format in the same line makes it a requirement, unless it is nearly a command.
    """
    first, rest = args[0], args[1:]
    if first.startswith("-"):
        return
    is_beside = _says_what_it_is_for(rest)
    meant = _meant_command(first, _NEARLY if is_beside else _NEAR, rest if is_beside else ())
    if is_beside and meant is None:
        return
    hints = [_meant_requirement(args) if meant is None else meant]
    if is_beside:
        hints.append(Hint("if it is a package, name it last", shlex.join(["envsolve", *rest, first])))
    message = f"unknown command {first!r}"
    if not first.isalpha():
        message = f"{first!r} is no command, and a requirement needs --framework, -r, --format or -o beside it"
    raise UsageError("usage", message, hints=tuple(hints))


def _meant_command(word: str, cutoff: float, rest: Sequence[str]) -> Hint | None:
    """The command that ``word`` means, with the rest of the line; None if it is not even nearly one."""
    import difflib

    from envsolve.frameworks import framework_of_word

    name = word.lower()
    if name in _OF_OTHER_TOOLS:
        return Hint(*_OF_OTHER_TOOLS[name])
    if not word.isalpha() or framework_of_word(name) is not None:
        return None
    close = difflib.get_close_matches(name, _COMMANDS, n=1, cutoff=cutoff)
    text = "commands are in lower case" if name in close else f"did you mean {close[0]}?" if close else ""
    return Hint(text, shlex.join(["envsolve", close[0], *rest])) if close else None


def _meant_requirement(args: Sequence[str]) -> Hint:
    """How to request what the first of ``args`` names, if that is known."""
    import difflib

    from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORKS, framework_of_word

    first, rest = args[0], args[1:]
    name = first.lower()
    if not first.isalpha():
        is_file = first.endswith((".txt", ".in", ".toml", ".yml", ".yaml"))
        words = ["--format", "pylock", *(("-r",) if is_file else ()), *args]
        return Hint("lock what is in the file" if is_file else "lock it alone", shlex.join(["envsolve", *words]))
    if framework_of_word(name) is not None:
        return Hint(f"did you mean --framework {name}?", shlex.join(["envsolve", "--framework", *args]))
    if near := difflib.get_close_matches(name, (*FRAMEWORKS, *DEPENDENT_FRAMEWORKS), n=1, cutoff=_NEAR):
        return Hint(f"did you mean --framework {near[0]}?", shlex.join(["envsolve", "--framework", near[0], *rest]))
    return Hint("list the commands", "envsolve --help")


def _says_what_it_is_for(words: Sequence[str]) -> bool:
    """Whether an option or its variable names frameworks, files or a format, so that a bare word is a requirement."""
    short = ("-f", "-r", "-o")
    long = ("--framework", "--requirement", "--format", "--output")
    variables = ("ENVSOLVE_" + it.removeprefix("--").upper() for it in long)
    named = any(it.startswith(short) or it.partition("=")[0] in long for it in words)
    return named or any(map(os.environ.get, variables))


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
    """Run one command line and return its exit code. No error prints a traceback.

    With ENVSOLVE_DEBUG set an internal error is raised.
    """
    as_json = _wants_json(arguments)
    try:
        code = _answer(arguments or [_without_arguments()])
        _note_unknown_variables(arguments)
        return code
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
        code = report(known or _internal(error), arguments, _command_in(arguments), as_json=as_json)
        _note_unknown_variables(arguments)
        return code


def _command_in(arguments: Sequence[str]) -> str:
    """The words of the command in a line, as in its help."""
    name = arguments[0] if arguments and arguments[0] in _COMMANDS else "solve"
    is_of_group = name in _GROUPS and arguments[1:] and arguments[1].isalpha()
    return f"{name} {arguments[1]}" if is_of_group else name


def _note_unknown_variables(arguments: Sequence[str]) -> None:
    if any(it.startswith(PREFIX) for it in os.environ) and not {"-q", "--quiet"}.intersection(arguments):
        for it in unknown_variables(os.environ, cli):
            note(it, quiet=False)


def _interrupted() -> int:
    click.echo("interrupted", err=True)
    return _INTERRUPTED


def _without_arguments() -> str:
    """The main job if a variable names a framework, as with any other option; otherwise the help."""
    return "solve" if os.environ.get("ENVSOLVE_FRAMEWORK") else "--help"


def _as_error(error: Exception) -> EnvsolveError | None:
    """The error to show for ``error``; None if it is an internal one."""
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
    except OSError as error:  # click's own printing of help and version; everything else uses deliver
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
    """Whether an error has to be JSON too; known before parsing, since parsing may be what fails."""
    if "--json" in arguments or os.environ.get("ENVSOLVE_JSON", "").lower() in ("1", "true", "yes", "on", "t", "y"):
        return True
    return any(_last_value(arguments, option) == "json" for option in ("--format", "--output-format"))


def _last_value(arguments: Sequence[str], option: str) -> str:
    """The value of an option as typed, or else of its variable."""
    prefix = f"{option}="
    values = [it.removeprefix(prefix) for it in arguments if it.startswith(prefix)]
    values += [value for name, value in pairwise(arguments) if name == option]
    return values[-1] if values else os.environ.get("ENVSOLVE_" + option.strip("-").replace("-", "_").upper(), "")


def _usage_error(error: click.ClickException) -> UsageError:
    hints = []
    if isinstance(error, click.NoSuchOption):
        elsewhere = _ELSEWHERE.get((error.ctx.info_name or "" if error.ctx else "", error.option_name))
        meant = sorted(error.possibilities or ())
        if elsewhere or meant:
            hints.append(elsewhere or Hint(f"did you mean {sentence_list(meant, 'or')}?"))
    mistakes = error.mistakes if isinstance(error, SeveralMistakes) else (error,)
    for it in mistakes:
        if isinstance(it, click.BadParameter) and _is_from_environment(it):
            it.param_hint = it.param.envvar if it.param is not None else None
    causes = tuple(map(_text_of, mistakes)) if len(mistakes) > 1 else ()
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx is not None else "envsolve"
    hints.append(Hint("list all options", f"{command} --help"))
    return UsageError("usage", _text_of(error), causes, tuple(hints))


def _text_of(error: click.ClickException) -> str:
    text = error.message if isinstance(error, click.NoSuchOption) else error.format_message()
    return text.rstrip(".")


def _is_from_environment(error: click.BadParameter) -> bool:
    """Whether the invalid value is from a variable and not from an option."""
    if error.ctx is None or error.param is None or not isinstance(error.param.envvar, str):
        return False
    return error.ctx.get_parameter_source(error.param.name or "") is ParameterSource.ENVIRONMENT
