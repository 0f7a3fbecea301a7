"""``envsolve mcp``: the read-only commands as tools for agents."""

from __future__ import annotations

from typing import Any

import click

from envsolve.boundary.programs import command_to_install
from envsolve.cli.options import Command
from envsolve.errors import Hint, OutsideError


@click.command(cls=Command, short_help="Serve the read-only commands as tools for agents.")
def mcp(**_: Any) -> int:
    """Serve detect, solve, lock, status, explain and doctor to a program that speaks the Model Context Protocol.

    The program starts this command, and the two talk over standard input and output. Nothing is installed or written.

    \b
    Example, in the configuration of an agent:
      {"mcpServers": {"envsolve": {"command": "envsolve", "args": ["mcp"]}}}
    """
    try:
        from envsolve.cli.mcp_server import server
    except ImportError:  # mcp is missing, or older than 2
        raise OutsideError(
            "mcp-extra-missing",
            "`envsolve mcp` needs the package mcp, 2.3 or newer",
            hints=(Hint("install it beside envsolve", command_to_install("mcp>=2.3")),),
        ) from None

    server().run("stdio")
    return 0
