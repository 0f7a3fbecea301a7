"""``envsolve validate`` on every node, through whatever runs programs there."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from enum import StrEnum
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from envsolve.boundary.files import FileError, json_value
from envsolve.boundary.programs import Output, end_session, start
from envsolve.errors import UsageError
from envsolve.fleet.node import Node
from envsolve.host.gpus import total

if TYPE_CHECKING:
    from envsolve import documents

SLURM = "srun --nodes=1 --ntasks=1 --nodelist={node} --gres=gpu:{gpus} --immediate=60 --quiet"
_LONGEST = 1 << 24
_GRACE = 10
"""Seconds that a launcher has to end what it started."""


class State(StrEnum):
    """How a node did."""

    PASSED = "passed"
    FAILED = "failed"
    """It answered, and a probe failed."""
    NO_ANSWER = "no-answer"
    """It could not be reached, did not answer in time, or said something else."""


class Answer(NamedTuple):
    """What came of a node: ``report`` is the JSON of ``envsolve validate``, ``why`` says why there is none.

    ``differs`` are sentences on what the node has and its list does not say.
    """

    node: str
    state: State
    seconds: float
    why: str = ""
    differs: tuple[str, ...] = ()
    report: Mapping[str, Any] | None = None

    def as_json(self) -> documents.NodeAnswer:
        """The row of a report on a fleet."""
        return {
            "node": self.node,
            "state": self.state.value,
            "seconds": self.seconds,
            "why": self.why,
            "differs": list(self.differs),
            "report": None if self.report is None else dict(self.report),
        }


def answers_in(data: object) -> list[Answer]:
    """The answers in the JSON of a report. Raises UsageError for anything else."""
    try:
        rows = data["nodes"]  # type: ignore[index]
        return [Answer(**{**row, "state": State(row["state"]), "differs": tuple(row["differs"])}) for row in rows]
    except (LookupError, TypeError, ValueError) as error:
        raise UsageError("report-unreadable", f"this is no report of `envsolve fleet validate`: {error}") from None


class Prover(NamedTuple):
    """Runs ``command`` on nodes, at most ``jobs`` at once and each at most ``timeout`` seconds.

    ``launcher`` runs a command on a node: {node} and {gpus} in its words stand for its name and how many GPUs it has,
    {command} for the command as one word; without that its words follow.
    """

    launcher: str
    command: Sequence[str]
    jobs: int = 16
    timeout: float = 900.0

    def prove(
        self, nodes: Sequence[Node], environ: Mapping[str, str], shown: Callable[[str], None]
    ) -> Iterator[Answer]:
        """The answer of each node as it comes. Raises UsageError for a launcher that names no node."""
        if "{node}" not in self.launcher:
            raise UsageError("launcher-without-node", f"the launcher {self.launcher!r} lacks {{node}}")
        with ThreadPoolExecutor(self.jobs) as pool:
            running = [pool.submit(self._answer, it, environ) for it in nodes]
            try:
                for number, future in enumerate(as_completed(running), 1):
                    answer = future.result()
                    shown(f"{number} of {len(nodes)} nodes, {answer.node} {answer.state}")
                    yield answer
            finally:
                pool.shutdown(cancel_futures=True)

    def words(self, node: Node) -> list[str]:
        """The command line for a node."""
        known = {"node": node.name, "gpus": str(total(node.host.gpus)), "command": shlex.join(self.command)}
        words = shlex.split(self.launcher)
        for name, value in known.items():
            words = [it.replace(f"{{{name}}}", value) for it in words]
        return words if "{command}" in self.launcher else [*words, *self.command]

    def _answer(self, node: Node, environ: Mapping[str, str]) -> Answer:
        began = monotonic()
        with tempfile.TemporaryFile() as errors:
            try:
                process = start(self.words(node), environ, os.getcwd(), errors=errors.fileno())  # noqa: PTH109
            except OSError as error:
                return Answer(node.name, State.NO_ANSWER, 0.0, f"{self.words(node)[0]}: {error.strerror}")
            output = Output(process, _LONGEST)
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                _end_gently(process)
                return Answer(node.name, State.NO_ANSWER, self.timeout, f"no answer in {self.timeout:.0f} s")
            finally:
                end_session(process)
            errors.seek(0)
            said = errors.read(_LONGEST).decode("utf-8", "replace")
        seconds = round(monotonic() - began, 1)
        try:
            report = json_value(output.content())
        except FileError:
            report = None
        if not isinstance(report, dict) or "ok" not in report:
            last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "no output")
            refused = report.get("error") if isinstance(report, dict) else None
            why = refused["message"] if isinstance(refused, dict) else last
            return Answer(node.name, State.NO_ANSWER, seconds, f"{why} (exit {process.returncode})")
        state = State.PASSED if report["ok"] else State.FAILED
        return Answer(node.name, state, seconds, differs=tuple(_differs(node, report["host"])), report=report)


def _end_gently(process: subprocess.Popen[bytes]) -> None:
    """Ask a launcher to end: killed at once, srun and ssh would leave what they started running on the node."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _differs(node: Node, host: Mapping[str, Any]) -> Iterator[str]:
    listed = node.host
    if listed.driver is not None and host.get("driver") not in (None, str(listed.driver)):
        yield f"driver {host['driver']} and not {listed.driver}"
    found = sorted({str(it.get("compute_capability")) for it in host.get("gpus", ())})
    known = sorted(map(str, listed.capabilities))
    if known and found != known:
        yield f"GPUs of compute capability {', '.join(found) or '(none)'} and not {', '.join(known)}"
