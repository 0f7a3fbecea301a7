"""Run a command on a node of Ray, on its GPUs: ``python on_ray.py NODE GPUS COMMAND...``.

Ray is found like by every driver of Ray: at RAY_ADDRESS, or running on this machine. This program prints the output of
the command and exits with its exit code. NODE is a name, host name or address in ``ray.nodes()``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from typing import Any

LONGEST = (1 << 24) + 1
"""Limit in bytes for the output of the command; envsolve refuses more than 16 MiB."""
LONGEST_ERRORS = 1 << 16
FREE_WITHIN = 60
"""Seconds in which the GPUs of the node must be free, as for Slurm (--immediate)."""
DEAD_WITHIN = 30
"""Seconds after the loss of the actor until Ray notices that its node is dead."""
NOT_STARTED = 127
"""The exit code of a shell for a missing command."""
NAMES = ("NodeName", "NodeManagerHostname", "NodeManagerAddress")


class Runner:
    """An actor: while it exists, it has the GPUs for itself. Ray ends it with this program."""

    def ready(self) -> None:
        """Return once the node has started the actor."""

    def run(self, command: list[str]) -> tuple[int, bytes, bytes]:
        """The exit code of ``command`` and its output."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
            try:
                code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors)
            except OSError as error:
                return NOT_STARTED, b"", f"{command[0]}: {error.strerror}\n".encode()
            out.seek(0)
            errors.seek(max(errors.tell() - LONGEST_ERRORS, 0))
            return code, out.read(LONGEST), errors.read()


def node_id(nodes: list[dict[str, Any]], name: str, gpus: int) -> str:
    """The ID of the node ``name``. Raises LookupError if there is none with ``gpus`` GPUs."""
    named = [it for it in nodes if name in [it.get(key) for key in NAMES]]
    alive = [it for it in named if it["Alive"]]
    if not alive:
        raise LookupError("the node is dead" if named else "Ray has no node of this name")
    if len(alive) > 1:
        raise LookupError(f"Ray has {len(alive)} nodes of this name")
    has = int(alive[0]["Resources"].get("GPU", 0))
    if has < gpus:
        raise LookupError(f"Ray has {has} GPUs on the node instead of {gpus}")
    return str(alive[0]["NodeID"])


def run_on(name: str, gpus: int, command: list[str]) -> tuple[int, bytes, bytes]:
    """Run ``command`` on the node ``name``. Raises what Ray raises, and LookupError for an unsuitable node."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    ray.init(address="auto", log_to_driver=False, logging_level="error")
    where = node_id(ray.nodes(), name, gpus)
    there = NodeAffinitySchedulingStrategy(where, soft=False)
    runner = ray.remote(Runner).options(num_cpus=0, num_gpus=gpus, scheduling_strategy=there).remote()
    try:
        ray.get(runner.ready.remote(), timeout=FREE_WITHIN)
        code, out, errors = ray.get(runner.run.remote(command))
    except ray.exceptions.GetTimeoutError:
        raise LookupError(f"Ray started nothing on its {gpus} GPUs within {FREE_WITHIN} s") from None
    except ray.exceptions.RayActorError:
        deadline = time.monotonic() + DEAD_WITHIN
        while time.monotonic() < deadline:
            if any(it["NodeID"] == where and not it["Alive"] for it in ray.nodes()):
                raise LookupError("the node died while the command ran") from None
            time.sleep(0.5)
        raise
    finally:
        ray.shutdown()  # its last output comes before the reason
    return code, out, errors


def main(name: str, gpus: str, *command: str) -> None:
    """Print the output of the command, or one line that says why it did not run."""
    os.environ["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"  # a `uv run` around envsolve must not apply to the nodes
    with os.fdopen(os.dup(1), "wb") as stdout:
        os.dup2(2, 1)  # Ray prints to stdout when a node dies
        try:
            code, out, errors = run_on(name, int(gpus), list(command))
        except Exception as error:  # noqa: BLE001 - whatever Ray raises is the reason
            sys.exit(" ".join(str(error).split()) or type(error).__name__)
        stdout.write(out)
    sys.stderr.buffer.write(errors)
    sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(*sys.argv[1:])
