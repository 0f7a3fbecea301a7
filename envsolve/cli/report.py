"""Errors as people read them (stderr) and as programs do (stdout, with --json)."""

from __future__ import annotations

import click

from envsolve.errors import EnvsolveError


def report(error: EnvsolveError, *, as_json: bool) -> int:
    """Print ``error`` and return the exit code it ends the process with."""
    if as_json:
        import json

        click.echo(json.dumps({"error": error.as_json()}, indent=2, ensure_ascii=False))
    click.echo(f"{click.style('error:', fg='red', bold=True)} {error.code}", err=True)
    click.echo(f"  {error.message}", err=True)
    for cause in error.cause:
        click.echo(f"{click.style('cause:', fg='yellow')} {cause}", err=True)
    for hint in error.hints:
        click.echo(f"{click.style('hint:', fg='green')} {hint.text}", err=True)
        if hint.command is not None:
            click.echo(f"  {hint.command}", err=True)
    return error.exit_code


def note(text: str, *, quiet: bool) -> None:
    """Print one note on stderr."""
    if not quiet:
        click.echo(f"{click.style('note:', fg='cyan')} {text}", err=True)
