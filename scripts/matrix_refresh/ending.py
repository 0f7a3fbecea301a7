"""How a script ends if it is interrupted or its output is closed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

UNREADABLE = 3
INTERRUPTED = 130
"""128 and the number of SIGINT, as in shells."""


def run_to_the_end(command: click.Command) -> NoReturn:
    """Run ``command`` as a script and leave the process at once.

    Other threads that are still reading wheels are not waited for: a server may take a minute to answer.
    """
    try:
        code = _exit_code(command)
        sys.stdout.flush()
    except OSError as error:
        code = UNREADABLE
        _say(f"error: the output cannot be written: {error.strerror or error}")
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _exit_code(command: click.Command) -> int:
    try:
        command.main(standalone_mode=False)
    except click.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def _say(text: str) -> None:
    with suppress(OSError):
        click.echo(text, err=True)
