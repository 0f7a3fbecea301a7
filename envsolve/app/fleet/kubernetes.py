"""``envsolve validate`` on nodes of Kubernetes, through the user's own kubectl.

kubectl has the user's contexts, login programs and proxies, which a client library would lack, and a run needs only
four of its commands. A user needs the rights to create, list and delete Jobs, to list pods and events, and to read
their logs.
"""

from __future__ import annotations

import json
import shlex
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from envsolve.app.fleet.jobs import CONTAINER, RUN, Seen, jobs_in, seen_in
from envsolve.app.fleet.proof import LONGEST, Answer, State, answer_of
from envsolve.boundary.files import FileError, json_value
from envsolve.boundary.programs import run_program
from envsolve.errors import Hint, OutsideError
from envsolve.fleet.node import Node

_PATIENCE = 60.0
"""The timeout in seconds of a kubectl command, of repeated failures of kubectl, and of a Job beyond its own limit."""
_WITHOUT_POD = 30.0
"""The timeout in seconds of a Job without a pod, which its controller creates at once."""
_PAUSES = (0.5, 1.0, 2.0, 3.0)
"""Seconds between queries to the cluster while nothing happens."""
_LONGEST_LIST = 1 << 28
_FEW = 3
"""The most lines shown of kubectl's errors."""


class Cluster(NamedTuple):
    """Runs the Jobs of a ``manifest`` with the command ``kubectl``, at most ``jobs`` at once.

    Each node has ``timeout`` seconds. ``created`` means that the Jobs already exist in the cluster; these are not
    deleted.
    """

    kubectl: Sequence[str]
    manifest: Mapping[str, Any]
    jobs: int = 16
    timeout: float = 900.0
    created: bool = False

    def prove(
        self, nodes: Sequence[Node], environ: Mapping[str, str], shown: Callable[[str], None]
    ) -> Generator[Answer, None, None]:
        """The answer of each node as it arrives. Closing the generator deletes the Jobs that it created.

        Raises UsageError for an invalid manifest, OutsideError if not one Job can be created.
        """
        watch = _Watch(self, nodes, environ)
        try:
            for number, answer in enumerate(watch.answers(), 1):
                shown(f"{number} of {len(nodes)} nodes, {answer.node} {answer.state}")
                yield answer
        finally:
            watch.end()


class _Ended(NamedTuple):
    """The result of a kubectl command."""

    code: int
    printed: str
    errors: str

    @property
    def why(self) -> str:
        """The last line of its errors."""
        return next((it.strip() for it in reversed(self.errors.splitlines()) if it.strip()), f"exit {self.code}")


class _Open(NamedTuple):
    """A node whose Job is in the cluster, since when, and how it was last seen, if possible with its pod."""

    node: Node
    began: float
    last: Seen = Seen()


class _Watch:
    """The Jobs of a run from the first to the last answer, by name."""

    def __init__(self, cluster: Cluster, nodes: Sequence[Node], environ: Mapping[str, str]) -> None:
        self._cluster, self._environ = cluster, environ
        self._run, jobs = jobs_in(cluster.manifest)
        self._without = [it for it in nodes if it.name not in jobs]
        self._nodes = {str(jobs[it.name]["metadata"]["name"]): it for it in nodes if it.name in jobs}
        now = monotonic()
        self._open = {name: _Open(it, now) for name, it in self._nodes.items()} if cluster.created else {}
        self._to_create = [] if cluster.created else [jobs[it.name] for it in self._nodes.values()]
        self._has_created = False
        self._used: list[str] = []

    def answers(self) -> Iterator[Answer]:
        """The answers as they arrive."""
        for it in self._without:
            yield Answer(it.name, State.NO_ANSWER, 0.0, "the manifest has no Job for it")
        quiet, heard = 0, monotonic()
        while self._to_create or self._open:
            found = list(self._create())
            seen, why = self._look()
            if not why:
                heard = monotonic()
                found += filter(None, [self._answer(name, seen.get(name, Seen())) for name in list(self._open)])
            elif monotonic() - heard > _PATIENCE:
                found += [self._lost(name, f"kubectl: {why}") for name in list(self._open)]
            self._delete()
            yield from found
            quiet = 0 if found else quiet + 1
            if self._open:
                sleep(_PAUSES[min(quiet, len(_PAUSES) - 1)])

    def end(self) -> None:
        """Delete the remaining Jobs that were created."""
        if self._has_created:
            self._kubectl("delete", "jobs", self._selector, "--wait=false", "--ignore-not-found")

    @property
    def _selector(self) -> str:
        return f"--selector={RUN}={self._run}"

    def _create(self) -> Iterator[Answer]:
        """Create as many Jobs as may run now. Yields the answers of nodes whose Job cannot be created."""
        batch = self._to_create[: self._cluster.jobs - len(self._open)]
        if not batch:
            return
        del self._to_create[: len(batch)]
        is_first, self._has_created = not self._has_created, True
        with tempfile.TemporaryDirectory(prefix="envsolve-") as directory:
            for it in batch:  # not as one List, for which kubectl would fetch the whole schema of the API each time
                Path(directory, f"{it['metadata']['name']}.json").write_text(json.dumps(it), "utf-8")
            ended = self._kubectl("create", "--output=name", f"--filename={directory}")
        created = {it.rpartition("/")[2] for it in ended.printed.split()}
        if is_first and not created:
            self._has_created = False
            raise _refused(ended, self._cluster.kubectl)
        now = monotonic()
        for name in (str(it["metadata"]["name"]) for it in batch):
            if name in created:
                self._open[name] = _Open(self._nodes[name], now)
            else:
                yield Answer(self._nodes[name].name, State.NO_ANSWER, 0.0, f"its Job was not created: {ended.why}")

    def _look(self) -> tuple[Mapping[str, Seen], str]:
        """The present Jobs and pods, and the reason if they are unknown, or else ""."""
        if not self._open:
            return {}, ""
        ended = self._kubectl("get", "jobs,pods", self._selector, "--output=json", limit=_LONGEST_LIST)
        if ended.code:
            return {}, ended.why
        try:
            return seen_in(json_value(ended.printed)), ""
        except (FileError, LookupError, TypeError, AttributeError):
            return {}, "it printed no list of Jobs and pods"

    def _answer(self, name: str, seen: Seen) -> Answer | None:
        """The answer of a node; None while its Job may give one."""
        node, began, last = self._open[name]
        waited = monotonic() - began
        is_gone = seen.pod is None and last.pod is not None  # of a late Job even before its status says so
        last = last if is_gone else seen
        if seen.has_ended:
            log = self._kubectl("logs", seen.pod_name, f"--container={CONTAINER}", limit=LONGEST)
            if log.code:
                return self._lost(name, f"its log cannot be read: {log.why}")
            return self._over(name, answer_of(node, round(waited, 1), log.printed, seen.stderr, seen.code))
        if seen.is_late or waited > self._cluster.timeout + _PATIENCE:
            return self._lost(name, f"no answer in {self._cluster.timeout:.0f} s: {last.waits_for()}")
        why = seen.failure()
        if why is None and last.pod is None and not seen.is_suspended and waited > _WITHOUT_POD:
            why = f"no pod was created for it: {self._event(name)}"
        if why is None:
            self._open[name] = _Open(node, began, last)
        return None if why is None else self._lost(name, why)

    def _lost(self, name: str, why: str) -> Answer:
        """The answer of a node that gives no report."""
        node, began, _ = self._open[name]
        return self._over(name, Answer(node.name, State.NO_ANSWER, round(monotonic() - began, 1), why))

    def _over(self, name: str, answer: Answer) -> Answer:
        del self._open[name]
        self._used.append(name)
        return answer

    def _delete(self) -> None:
        """Delete the Jobs that are no longer needed: one that is stuck would block its GPUs."""
        if self._used and not self._cluster.created:
            self._kubectl("delete", "jobs", *self._used, "--wait=false", "--ignore-not-found")
        self._used.clear()

    def _event(self, name: str) -> str:
        """The last event of a Job, such as an exhausted quota."""
        about = f"--field-selector=type=Warning,involvedObject.kind=Job,involvedObject.name={name}"
        ended = self._kubectl("get", "events", about, "--output=json")
        try:
            listed: Any = json_value(ended.printed)
            return str(listed["items"][-1]["message"])
        except (FileError, LookupError, TypeError):
            return "the cluster does not say why"

    def _kubectl(self, *words: str, limit: int = 1 << 20) -> _Ended:
        """Run kubectl. It fails if it cannot be started, takes too long or prints too much."""
        line = [*self._cluster.kubectl, *words]
        with tempfile.TemporaryFile() as errors:
            try:
                found = run_program(
                    line, self._environ, _PATIENCE, limit=limit, directory=Path.cwd(), errors=errors.fileno()
                )
            except OSError as error:
                return _Ended(127, "", f"{line[0]}: {error.strerror}")
            errors.seek(0)
            text = errors.read(LONGEST).decode("utf-8", "replace")
        if found.hung:
            return _Ended(124, "", f"kubectl {words[0]} did not end in {_PATIENCE:.0f} s")
        if found.exit_code is None:
            return _Ended(1, "", f"kubectl {words[0]} printed more than {limit >> 20} MiB")
        return _Ended(found.exit_code, found.output, text)


def _refused(ended: _Ended, kubectl: Sequence[str]) -> OutsideError:
    lines = [it.strip() for it in ended.errors.splitlines() if it.strip()]
    hint = Hint("check the context and the namespace", shlex.join([*kubectl, "auth", "can-i", "create", "jobs"]))
    return OutsideError("jobs-not-created", "kubectl cannot create the Jobs", tuple(lines[-_FEW:]), (hint,))
