"""From the options of ``envsolve fleet validate`` to an engine that runs it on the nodes."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from envsolve.boundary.files import FileError, decoded, json_value, read_argument
from envsolve.errors import UsageError

if TYPE_CHECKING:
    from envsolve.app.fleet.kubernetes import Cluster
    from envsolve.app.fleet.proof import Answer, Prover
    from envsolve.fleet.node import Node

KUBERNETES = "kubernetes"
_LONGEST = 1 << 28


class Engine(Protocol):
    """Runs `envsolve validate` on nodes. Closing the generator ends what still runs."""

    def prove(
        self, nodes: Sequence[Node], environ: Mapping[str, str], shown: Callable[[str], None]
    ) -> Generator[Answer, None, None]:
        """The answer of each node as it arrives; ``shown`` gets the progress as text."""


def require_options_of_launcher(options: dict[str, Any]) -> None:
    """Raise UsageError for options of another launcher, and for contradicting ones."""
    given = [it for it in ("image", "kubectl", "manifest", "applied") if options["images" if it == "image" else it]]
    if given and options["launcher"] != KUBERNETES:
        raise UsageError("contradictory-options", f"--{given[0]} needs --launcher kubernetes")
    if options["ray_python"] and options["launcher"] != "ray":
        raise UsageError("contradictory-options", "--ray-python needs --launcher ray")
    if options["applied"] is not None and (other := next((it for it in ("manifest", "image") if it in given), None)):
        raise UsageError("contradictory-options", f"--{other} and --applied both give the Jobs: give only one")


def engine_of(options: dict[str, Any], nodes: Sequence[Node]) -> Engine:
    """The engine for ``nodes``. Raises UsageError if the options do not allow it."""
    return _cluster(options, nodes) if options["launcher"] == KUBERNETES else _prover(options)


def _prover(options: dict[str, Any]) -> Prover:
    from envsolve.app.fleet.proof import Prover

    program = _program(options) or [sys.executable, "-m", "envsolve"]
    prefix = [] if options["prefix"] is None else ["--prefix", options["prefix"]]
    command = (*program, "validate", *prefix, "--json", "-q")
    return Prover(_launcher(options), command, options["jobs"], options["timeout"])


def _program(options: dict[str, Any]) -> list[str] | None:
    from envsolve.app.fleet.proof import command_words

    return None if options["program"] is None else command_words(options["program"], "--envsolve")


def _cluster(options: dict[str, Any], nodes: Sequence[Node]) -> Cluster:
    from envsolve.app.fleet.kubernetes import Cluster
    from envsolve.app.fleet.proof import command_words

    applied = options["applied"]
    jobs = manifest_of(options, nodes) if applied is None else json_in(applied, "manifest-unreadable")
    kubectl = command_words(options["kubectl"] or "kubectl", "--kubectl")
    return Cluster(kubectl, jobs, options["jobs"], options["timeout"], created=applied is not None)


def manifest_of(options: dict[str, Any], nodes: Sequence[Node]) -> dict[str, Any]:
    """The Jobs for ``nodes``. Raises UsageError if the image or the command for envsolve is missing."""
    from envsolve.app.fleet.jobs import Template, images_of, start_in_image

    start = start_in_image(_program(options), options["prefix"], os.environ)
    run = f"envsolve-{secrets.token_hex(4)}"
    return Template(run, images_of(options["images"]), start, options["timeout"]).manifest(nodes)


def _launcher(options: dict[str, Any]) -> str:
    """The command template of the launcher. Raises UsageError if it is not a command."""
    from envsolve.app.fleet.proof import SLURM, command_words, ray_launcher

    name, python, prefix = options["launcher"], options["ray_python"], options["prefix"]
    if name == "ray":
        return ray_launcher(python or (str(Path(prefix, "bin", "python")) if prefix else "python"))
    command_words(name, "--launcher")
    return SLURM if name == "slurm" else name


def json_in(file: str, code: str) -> Any:
    """The JSON in a file. Raises UsageError with ``code`` if it cannot be read."""
    try:
        content = read_argument(file, _LONGEST)
        if content is None:
            raise FileError("there is no such file")
        return json_value(decoded(content))
    except FileError as error:
        raise UsageError(code, f"cannot read {Path(file)}: {error.reason}") from None
