"""The environment variables that options read."""

from __future__ import annotations

from scripts.man_pages.pages import _EXIT_STATUS, _VARIABLES

from .commands import commands, options
from .markdown import escaped, table


def option_variables() -> dict[str, tuple[str, list[str]]]:
    """Each variable with its option and the commands that have it."""
    found: dict[str, tuple[str, list[str]]] = {}
    for context in commands():
        for it in options(context):
            if it.envvar:
                spelled = next(name for name in it.opts if name.startswith("--"))
                found.setdefault(str(it.envvar), (spelled, []))[1].append(
                    context.command_path.removeprefix("envsolve ")
                )
    return dict(sorted(found.items()))


def option_variables_table() -> str:
    """The table of these variables."""
    rows = ((f"`{name}`", f"`{option}`", ", ".join(names)) for name, (option, names) in option_variables().items())
    return table(("variable", "option", "commands"), rows)


def variables_table() -> str:
    """The variables that are no options, and those of other tools, as the manual page has them."""
    rows = ((f"`{name}`", escaped(text)) for name, text in _VARIABLES.items())
    return table(("variable", "meaning"), rows)


def exit_codes_table() -> str:
    """The exit codes, as the manual page has them."""
    return table(("exit code", "meaning"), ((code, escaped(text)) for code, text in _EXIT_STATUS.items()))
