"""``envsolve validate`` on every node, through any program that runs commands there."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from envsolve.boundary.files import FileError, json_value
from envsolve.boundary.programs import Output, end_session, start
from envsolve.errors import UsageError
from envsolve.fleet import inside
from envsolve.fleet.node import Node
from envsolve.host.gpus import total

if TYPE_CHECKING:
    from envsolve import documents

SLURM = "srun --nodes=1 --ntasks=1 --nodelist={node} --gres=gpu:{gpus} --immediate=60 --quiet"
_ON_RAY = Path(inside.__file__).with_name("on_ray.py")
LONGEST = 1 << 24
"""The most bytes that a node may print."""
_LONGEST_REASON = 300
"""The most characters shown of a launcher's output."""
_GRACE = 10
"""The seconds that a launcher has to stop what it started."""


def ray_launcher(python: str) -> str:
    """The launcher for Ray. ``python`` is an interpreter with the same Ray and Python version as the cluster."""
    return f"{shlex.join([python, str(_ON_RAY)])} {{node}} {{gpus}}"


class State(StrEnum):
    """The result of a node."""

    PASSED = "passed"
    FAILED = "failed"
    """It answered, and a probe failed."""
    NO_ANSWER = "no-answer"
    """It could not be reached, did not answer in time, or printed something else."""


class Answer(NamedTuple):
    """The result of a node. ``report`` is the JSON of ``envsolve validate``; ``why`` says why there is none.

    ``differs`` are sentences about differences between the node and its list.
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
    """The answers in the JSON of a report. Raises UsageError for other data."""
    rows = data.get("nodes") if isinstance(data, Mapping) else None
    if not isinstance(rows, list):
        raise _no_report("'nodes'")
    return [_answer_in(row, f"nodes[{number}]") for number, row in enumerate(rows)]


def _answer_in(row: object, place: str) -> Answer:
    if not isinstance(row, Mapping):
        raise _no_report(repr(place))
    for key, is_right in _COLUMNS.items():
        if key not in row or not is_right(row[key]):
            raise _no_report(repr(f"{place}.{key}"))
    known = {key: row[key] for key in _COLUMNS}
    return Answer(**{**known, "state": State(row["state"]), "differs": tuple(row["differs"])})


def _no_report(place: str) -> UsageError:
    return UsageError(
        "report-unreadable", f"this is no report of `envsolve fleet validate --json`: {place} is missing or wrong"
    )


def _is_report(data: object) -> bool:
    """Whether ``data`` has the keys of the JSON of ``envsolve validate`` that are used."""
    if not isinstance(data, Mapping) or not isinstance(data.get("ok"), bool):
        return False
    host, findings = data.get("host"), data.get("findings", [])
    return (
        isinstance(host, Mapping)
        and _is_list_of(Mapping, host.get("gpus", []))
        and all(isinstance(it.get("count", 0), int) for it in host.get("gpus", []))
        and _is_list_of(Mapping, findings)
        and all(isinstance(it.get("title"), str) for it in findings)
    )


def _is_list_of(kind: type, value: object) -> bool:
    return isinstance(value, list) and all(isinstance(it, kind) for it in value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_COLUMNS: Mapping[str, Callable[[object], bool]] = {
    "node": _is_text,
    "state": lambda value: value in list(State),
    "seconds": lambda value: isinstance(value, int | float),
    "why": _is_text,
    "differs": lambda value: _is_list_of(str, value),
    "report": lambda value: value is None or _is_report(value),
}
"""The keys of a row, with a check of their values; keys of later releases are ignored."""


def command_words(text: str, option: str) -> list[str]:
    """The words of the command in ``option``. Raises UsageError if a quotation is not closed."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError("command-unreadable", f"cannot read the command of {option}: {error}") from None


class _Running:
    """The running launchers, to stop all of them at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._is_over = False

    def start(self, words: Sequence[str], environ: Mapping[str, str], errors: int) -> subprocess.Popen[bytes] | None:
        """Start a launcher; None after the end. Raises OSError."""
        with self._lock:
            if self._is_over:
                return None
            process = start(words, environ, os.getcwd(), errors=errors)  # noqa: PTH109
            self._processes.append(process)
            return process

    def end(self) -> None:
        """Stop all launchers, first gently, and start no more."""
        with self._lock:
            self._is_over = True
        running = [it for it in self._processes if it.poll() is None]
        try:
            for it in running:
                it.terminate()
            deadline = monotonic() + _GRACE
            for it in running:
                with suppress(subprocess.TimeoutExpired):
                    it.wait(max(deadline - monotonic(), 0))
        finally:  # also when Ctrl-C is pressed again
            for it in running:
                end_session(it)


class Prover(NamedTuple):
    """Runs ``command`` on nodes, at most ``jobs`` at once and each at most ``timeout`` seconds.

    ``launcher`` runs a command on a node. In its words, {node} is the name of the node, {gpus} its number of GPUs, and
    {command} the command as one word; without {command} the words of the command follow.
    """

    launcher: str
    command: Sequence[str]
    jobs: int = 16
    timeout: float = 900.0

    def prove(
        self, nodes: Sequence[Node], environ: Mapping[str, str], shown: Callable[[str], None]
    ) -> Generator[Answer, None, None]:
        """The answer of each node as it arrives. Closing the generator stops the running launchers.

        Raises UsageError if the launcher names no node or cannot be read.
        """
        if "{node}" not in self.launcher:
            raise UsageError("launcher-without-node", f"the launcher {self.launcher!r} lacks {{node}}")
        command_words(self.launcher, "--launcher")
        running = _Running()
        with ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(self._answer, it, environ, running) for it in nodes]
            try:
                for number, future in enumerate(as_completed(futures), 1):
                    answer = future.result()
                    shown(f"{number} of {len(nodes)} nodes, {answer.node} {answer.state}")
                    yield answer
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                running.end()

    def words(self, node: Node) -> list[str]:
        """The command line for a node."""
        known = {"node": node.name, "gpus": str(total(node.host.gpus)), "command": shlex.join(self.command)}
        words = command_words(self.launcher, "--launcher")
        for name, value in known.items():
            words = [it.replace(f"{{{name}}}", value) for it in words]
        return words if "{command}" in self.launcher else [*words, *self.command]

    def _answer(self, node: Node, environ: Mapping[str, str], running: _Running) -> Answer:
        began = monotonic()
        with tempfile.TemporaryFile() as errors:
            try:
                process = running.start(self.words(node), environ, errors.fileno())
            except OSError as error:
                return Answer(node.name, State.NO_ANSWER, 0.0, f"{self.words(node)[0]}: {error.strerror}")
            if process is None:
                return Answer(node.name, State.NO_ANSWER, 0.0, "interrupted")
            output = Output(process, LONGEST)
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                _end_gently(process)
                return Answer(node.name, State.NO_ANSWER, self.timeout, f"no answer in {self.timeout:.0f} s")
            finally:
                end_session(process)
            errors.seek(0)
            errors_text = errors.read(LONGEST).decode("utf-8", "replace")
        seconds = round(monotonic() - began, 1)
        if output.flooded:
            return Answer(node.name, State.NO_ANSWER, seconds, f"it printed more than {LONGEST >> 20} MiB")
        return answer_of(node, seconds, output.content().decode("utf-8", "replace"), errors_text, process.returncode)


def answer_of(node: Node, seconds: float, printed: str, errors_text: str, code: int) -> Answer:
    """The answer of a node from the exit ``code``, stdout and stderr of `envsolve validate`.

    Its report counts, whatever the launcher did. A report without a failure does not count if the program failed.
    """
    try:
        report = json_value(printed)
    except FileError:
        report = None
    if not isinstance(report, dict) or not _is_report(report):
        return Answer(node.name, State.NO_ANSWER, seconds, f"{_reason(report, printed, errors_text)} ({_ended(code)})")
    differs = tuple(_differs(node, report["host"]))
    state, why = State.PASSED if report["ok"] else State.FAILED, ""
    if report["ok"] and code:
        state, why = State.NO_ANSWER, f"its report has no failure, but the launcher ended otherwise ({_ended(code)})"
    return Answer(node.name, state, seconds, why, differs, report)


def _reason(answer: object, printed: str, errors_text: str) -> str:
    """Why there is no report: the error of envsolve, or else the last line on stderr, or what is on stdout."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        return str(error["message"])
    lines = [line.strip() for line in errors_text.splitlines() if line.strip()]
    if lines:
        return lines[-1][:_LONGEST_REASON]
    other = printed.strip().partition("\n")[0].strip()
    return f"no report of `envsolve validate`, but {other[:_LONGEST_REASON]!r}" if other else "no output"


def _ended(code: int) -> str:
    return f"exit {code}" if code >= 0 else f"killed by signal {-code}"


def _end_gently(process: subprocess.Popen[bytes]) -> None:
    """Terminate a launcher. Killed at once, srun and ssh would leave what they started running on the node."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)


def _differs(node: Node, host: Mapping[str, Any]) -> Iterator[str]:
    listed = node.host
    if listed.driver is not None and host.get("driver") not in (None, str(listed.driver)):
        yield f"driver {host['driver']} instead of {listed.driver}"
    gpus = host.get("gpus", ())
    found = sorted({str(it.get("compute_capability")) for it in gpus})
    known = sorted(map(str, listed.capabilities))
    if not known:
        return
    if found != known:
        yield f"GPUs of compute capability {', '.join(found) or '(none)'} instead of {', '.join(known)}"
        return
    if any(it.get("mig") for it in gpus) or any(it.mig for it in listed.gpus):
        return  # a process may get one part of a GPU that is split
    counts, expected = [it.get("count") for it in gpus], total(listed.gpus)
    if None not in counts and sum(counts) != expected:
        yield f"{sum(counts)} GPU{'s' * (sum(counts) != 1)} instead of {expected}"
