"""A virtual environment at a place, made by uv, or by the venv of its Python where there is no uv.

Neither puts pip into it unless it is what installs the wheels: the lock says what is in an environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from envsolve.create.child import run
from envsolve.create.failures import tool_failed
from envsolve.create.interpreter import Found
from envsolve.create.tools import has_own_pip


def make_venv(
    prefix: Path, python: Found, uv: str | None, environ: Mapping[str, str], progress: Callable[[str], None]
) -> None:
    """Make a venv of ``python`` at ``prefix``, which is there. Raises OutsideError if the tool fails."""
    progress(f"a venv of Python {python.version}")
    if uv is not None:
        options = ("--no-config", "--no-project", "--allow-existing", "--color", "never")
        ran = run([uv, "venv", *options, "--python", python.program, str(prefix)], environ)
    else:
        bare = ["--without-pip"] if has_own_pip() else []
        ran = run([python.program, "-I", "-m", "venv", *bare, str(prefix)], environ)
    if ran.code != 0:
        raise tool_failed("venv-failed", "uv venv" if uv is not None else f"{python.program} -m venv", ran)
