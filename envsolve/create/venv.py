"""Create a virtual environment with uv, or with the venv of its Python if there is no uv.

Neither installs pip unless it is needed for the wheels: the lock says what is in an environment.
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
    """Create a venv of ``python`` in the existing directory ``prefix``. Raises OutsideError if the tool fails."""
    progress(f"a venv of Python {python.version}")
    if uv is not None:
        options = ("--no-config", "--no-project", "--allow-existing", "--color", "never")
        ran = run([uv, "venv", *options, "--python", python.program, str(prefix)], environ)
    else:
        bare = ["--without-pip"] if has_own_pip() else []
        ran = run([python.program, "-I", "-m", "venv", *bare, str(prefix)], environ)
    if ran.code != 0:
        raise tool_failed("venv-failed", "uv venv" if uv is not None else f"{python.program} -m venv", ran)
