"""Default places for the refresh: pip's own settings, the user's cache directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from pypi_simple import PYPI_SIMPLE_ENDPOINT

_MATRIX = Path(__file__).parents[2] / "data" / "compat_matrix"


def places(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options for what a refresh changes, reads and keeps."""
    directory = click.Path(path_type=Path, file_okay=False)
    for option in (
        click.option("--cache-dir", type=directory, help="Where wheels' facts are kept."),
        click.option("--index-url", help="The package index to read; default: the one pip is set to."),
        click.option(
            "--matrix",
            type=directory,
            default=_MATRIX,
            help="The matrix to change.",
            show_default="data/compat_matrix",
        ),
    ):
        function = option(function)
    return function


def default_endpoint() -> str:
    """The index that pip is configured for, from its environment variable or its files, or else the public one."""
    named = os.environ.get("PIP_INDEX_URL")
    if named:
        return named
    result = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or PYPI_SIMPLE_ENDPOINT


def default_cache() -> Path:
    """``envsolve/matrix-refresh`` in the user's cache directory (XDG_CACHE_HOME, ~/.cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "envsolve" / "matrix-refresh"
