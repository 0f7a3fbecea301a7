"""A command as it describes itself: what it does, how it is called, every option with its variable."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from envsolve.cli.main import cli

from .markdown import directive, escaped


def command_names() -> list[str]:
    """The commands, in the order of the help text."""
    return cli.list_commands(_main())


def commands(name: str | None = None) -> Iterator[click.Context]:
    """Each command in a context of its own: all, or the one called ``name``. A group comes before what is in it."""
    context = _main()
    for each in command_names() if name is None else [name]:
        command = cli.get_command(context, each)
        if command is None:
            raise LookupError(each)
        one = click.Context(command, info_name=each, parent=context)
        yield one
        if isinstance(command, click.Group):
            for below in command.list_commands(one):
                found = command.get_command(one, below)
                if found is not None and not found.hidden:
                    yield click.Context(found, info_name=below, parent=one)


def options(context: click.Context) -> list[click.Option]:
    """The options that the help of a command shows, without --help."""
    return [it for it in context.command.params if isinstance(it, click.Option) and not it.hidden]


def command_page(name: str) -> str:
    """What the page of a command says about it, below its title."""
    first, *below = commands(name)
    return _section(first) + "".join(f"## {it.command_path}\n\n{_section(it)}" for it in below)


def commands_list() -> str:
    """Each command with its first sentence."""
    return "".join(
        f"- [`{it.command_path}`](commands/{it.info_name}.md): {escaped(it.command.get_short_help_str(limit=1000))}\n"
        for name in command_names()
        for it in [next(commands(name))]
    )


def _main() -> click.Context:
    return click.Context(cli, info_name="envsolve", **cli.context_settings)


def _section(context: click.Context) -> str:
    usage = " ".join((context.command_path, *context.command.collect_usage_pieces(context)))
    options_of = directive("program", context.command_path) + "".join(_option(it, context) for it in options(context))
    return f"```text\n{usage}\n```\n\n{_described(context.command)}\n{options_of}"


def _described(command: click.Command) -> str:
    """The help text; blocks that click leaves as they are stay so."""
    blocks = inspect.cleandoc(command.help or "").split("\f")[0].split("\n\n")
    return "".join(
        "```text\n" + block.removeprefix("\b\n") + "\n```\n\n" if block.startswith("\b") else f"{escaped(block)}\n\n"
        for block in blocks
    )


def _option(option: click.Option, context: click.Context) -> str:
    names, text = option.get_help_record(context) or ("", "")
    variable = f"\n\nVariable: `{option.envvar}`{_several(option)}." if option.envvar else ""
    return directive("option", names.replace(" / ", ", "), escaped(text) + variable)


def _several(option: click.Option) -> str:
    if not option.multiple:
        return ""
    splitter = option.type.envvar_list_splitter
    return f"; several with `{splitter}` between them" if splitter else "; several with spaces between them"
