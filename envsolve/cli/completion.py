"""``envsolve completion``: the script for shell completion of commands, options and values."""

from __future__ import annotations

import click

from envsolve.cli.output import deliver


@click.command(short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that has a shell complete commands, options, GPUs and frameworks.

    \b
    bash, in ~/.bashrc:  eval "$(envsolve completion bash)"
    zsh, in ~/.zshrc:    eval "$(envsolve completion zsh)"
                         after compinit; or save it as _envsolve in a directory of fpath
    fish:                envsolve completion fish > ~/.config/fish/completions/envsolve.fish
    """
    from click.shell_completion import get_completion_class

    from envsolve.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None
    deliver(kind(cli, {}, "envsolve", "_ENVSOLVE_COMPLETE").source(), None)
