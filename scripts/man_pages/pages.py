"""The text of each page. Names, options and their help come from the click commands: nothing is written twice."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

import click

from envsolve import __version__
from envsolve.cli.main import cli
from scripts.man_pages.roff import as_it_is, bold, entry, escaped, italic, paragraph, section

_WORD = re.compile(r"--?[A-Za-z][\w-]*")
_EXIT_STATUS = {
    "0": "Done; for commands that judge something: all is good.",
    "1": "An honest no: no stack exists, an environment is broken, nothing is known of a text.",
    "2": "A mistake in the request, or a file that cannot be read. Nothing was written.",
    "3": "The outside world failed: the network, an index, the disk, a missing tool. Nothing was written.",
    "130": "Interrupted. Nothing was written.",
}
_VARIABLES = {
    "ENVSOLVE_<OPTION>": (
        "The value of an option that is not on the command line: `ENVSOLVE_GPU` for `--gpu`. The page of each command "
        "lists those it reads."
    ),
    "ENVSOLVE_CACHE_SIZE": "Size to which `envsolve cache prune` reduces the cache; default: 1GB.",
    "ENVSOLVE_DATA_DIR": (
        "Where `envsolve matrix update` stores its results; default: envsolve in the user's data directory."
    ),
    "ENVSOLVE_PROBE_TIMEOUT": "Seconds to wait for an answer of the NVIDIA driver; default: 10, and 3 for each GPU.",
    "ENVSOLVE_DEBUG": "Raise internal errors with their traceback, for a bug report.",
    "CONDA_OVERRIDE_CUDA, CONDA_OVERRIDE_CUDA_ARCH, UV_CUDA_DRIVER_VERSION": (
        "Override the CUDA version, the compute capability and the driver of the machine, as for conda and uv."
    ),
    "NO_COLOR, FORCE_COLOR": "No colour, or colour even without a terminal.",
    "CONDA_PREFIX, VIRTUAL_ENV": "The active environment, which validate and doctor look at by default.",
}


def pages(dates: Mapping[str, str], otherwise: str) -> dict[str, str]:
    """Every page by its file name; ``dates`` are the dates of the pages, ``otherwise`` is for a page without one."""
    context = click.Context(cli, info_name="envsolve", **cli.context_settings)
    children = _children(context)
    found = {"envsolve.1": _main_page(context, children, dates.get("envsolve.1", otherwise))}
    for child in children:
        name = f"envsolve-{child.info_name}.1"
        others = [str(it.info_name) for it in children if it is not child]
        found[name] = _command_page(child, others, dates.get(name, otherwise))
    return found


def _children(context: click.Context) -> list[click.Context]:
    """The commands of a group, each in its own context; none if it is no group."""
    group = context.command
    if not isinstance(group, click.Group):
        return []
    found = [(name, group.get_command(context, name)) for name in group.list_commands(context)]
    return [click.Context(it, info_name=name, parent=context) for name, it in found if it is not None and not it.hidden]


def _main_page(context: click.Context, children: Sequence[click.Context], date: str) -> str:
    commands = (entry(rf"{bold(f'envsolve-{it.info_name}')}(1)", _first_sentence(it.command)) for it in children)
    synopsis = _usage(context, "[OPTIONS OF SOLVE]") + ".br\n" + _usage(context, "COMMAND [ARGS]...")
    return (
        _head("envsolve", date, _first_sentence(context.command))
        + section("SYNOPSIS", synopsis)
        + section("DESCRIPTION", _described(context.command) + f".PP\n{paragraph(context.command.epilog or '')}")
        + section("COMMANDS", "".join(commands))
        + section("OPTIONS", _options(context))
        + section("EXIT STATUS", "".join(entry(bold(code), text) for code, text in _EXIT_STATUS.items()))
        + section("ENVIRONMENT", "".join(entry(bold(name), text) for name, text in _VARIABLES.items()))
        + section("SEE ALSO", _see_also([str(it.info_name) for it in children]))
    )


def _command_page(context: click.Context, others: Sequence[str], date: str) -> str:
    """The page of a command; that of a group lists all of its commands."""
    command, below = context.command, _children(context)
    synopsis = ".br\n".join(_usage(it, " ".join(it.command.collect_usage_pieces(it))) for it in below or [context])
    return (
        _head(f"envsolve-{context.info_name}", date, _first_sentence(command))
        + section("SYNOPSIS", synopsis)
        + section("DESCRIPTION", _described(command))
        + section("COMMANDS", "".join(map(_subcommand, below)))
        + section("OPTIONS", "" if below else _options(context))
        + section("EXIT STATUS", paragraph("As `envsolve`(1) tells."))
        + section("ENVIRONMENT", _variables([command, *(it.command for it in below)]))
        + section("SEE ALSO", _see_also(["", *others]))
    )


def _subcommand(context: click.Context) -> str:
    return f".SS {escaped(context.command_path)}\n{_described(context.command)}{_options(context)}"


def _head(name: str, date: str, purpose: str) -> str:
    title = f'.TH "{escaped(name.upper())}" "1" "{date}" "envsolve {__version__}" "envsolve manual"\n.nh\n.ad l\n'
    generated = '.\\" Written by scripts/man from the commands: change these, and run it again.\n'
    return generated + title + section("NAME", paragraph(f"{name} - {purpose.rstrip('.')}"))


def _usage(context: click.Context, arguments: str) -> str:
    return f"{bold(context.command_path)} {_words(arguments)}\n"


def _arguments(context: click.Context) -> str:
    return " ".join(context.command.collect_usage_pieces(context))


def _words(text: str) -> str:
    """Options bold, and what stands for a value italic."""
    parts = re.split(rf"({_WORD.pattern}|[A-Z][A-Z_|-]*)", text)
    return "".join(
        (bold(part) if part.startswith("-") else italic(part)) if number % 2 else escaped(part)
        for number, part in enumerate(parts)
    )


def _first_sentence(command: click.Command) -> str:
    return command.get_short_help_str(limit=1000)


def _described(command: click.Command) -> str:
    """The help text: paragraphs, and lines after click's mark, which stay as they are."""
    text = inspect.cleandoc(command.help or "").split("\f")[0]
    blocks = (block.strip("\n") for block in text.split("\n\n"))
    shown = (
        as_it_is(block.split("\n")[1:]) if block.startswith("\b") else paragraph(" ".join(block.split("\n")))
        for block in blocks
    )
    return ".PP\n".join(shown)


def _options(context: click.Context) -> str:
    records = (parameter.get_help_record(context) for parameter in context.command.get_params(context))
    return "".join(entry(_words(names), text) for names, text in filter(None, records) if text)


def _variables(commands: Sequence[click.Command]) -> str:
    options = [it for command in commands for it in command.params if isinstance(it, click.Option)]
    read = {str(it.envvar): it for it in options if it.envvar is not None}
    return "".join(entry(bold(name), _as_option(it)) for name, it in read.items())


def _as_option(option: click.Option) -> str:
    name = next(it for it in option.opts if it.startswith("--"))
    if not option.multiple:
        return f"As `{name}`." if not option.is_flag else f"1 is `{name}`."
    splitter = option.type.envvar_list_splitter
    apart = f"with {splitter} between them" if splitter else "with spaces between them"
    return f"As `{name}`; several {apart}."


def _see_also(names: Sequence[str]) -> str:
    shown = (rf"{bold(f'envsolve-{name}' if name else 'envsolve')}(1)" for name in names)
    return ",\n".join(shown) + "\n"
