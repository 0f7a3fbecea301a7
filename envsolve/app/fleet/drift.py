"""The changes in a fleet, and what they mean for its locks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.app.request.targets import targets_of
from envsolve.app.status.status import FileStatus, status_of
from envsolve.fleet.inventory import nodes_of
from envsolve.fleet.node import Node
from envsolve.matrix.load import Matrix
from envsolve.model.host import Host
from envsolve.model.request import Request


class Change(NamedTuple):
    """A node that is new (``was`` is empty), was removed (``now`` is empty), or has another driver or other GPUs."""

    node: str
    what: str
    was: str
    now: str


class OnNodes(NamedTuple):
    """The status of a lock on nodes that no rule distinguishes, now and before.

    ``was`` is None for new nodes.
    """

    nodes: tuple[str, ...]
    now: FileStatus
    was: FileStatus | None

    @property
    def is_broken(self) -> bool:
        """Whether the lock does not run there now."""
        return not self.now.verdict.is_good

    @property
    def is_new(self) -> bool:
        """Whether that has changed."""
        return self.was is None or self.was.verdict.is_good == self.is_broken


def changes(was: str, now: str) -> list[Change]:
    """The differences between two lists of nodes, by node name. Raises UsageError if a file is not a list."""
    before, after = ({node.name: node for _, node in nodes_of(it)} for it in (was, now))
    return [change for name in sorted({*before, *after}) for change in _changes(before.get(name), after.get(name))]


def _changes(was: Node | None, now: Node | None) -> Iterator[Change]:
    if was is None or now is None:
        known = was or now
        assert known is not None
        shown = f"{_gpus(known.host)}, driver {known.host.driver or 'unknown'}"
        yield Change(known.name, "node", shown if was else "", shown if now else "")
        return
    for what, one, other in (
        ("driver", str(was.host.driver or "unknown"), str(now.host.driver or "unknown")),
        ("GPUs", _gpus(was.host), _gpus(now.host)),
        ("glibc", str(was.host.glibc or "unknown"), str(now.host.glibc or "unknown")),
    ):
        if one != other:
            yield Change(now.name, what, one, other)


def _gpus(host: Host) -> str:
    return ", ".join(f"{it.count} x {it.name or it.compute_capability}" for it in host.gpus) or "no GPU"


def locks_on(
    files: Sequence[str], was: str | None, now: str, matrix: Matrix, environ: Mapping[str, str]
) -> list[OnNodes]:
    """The status of each lock on each kind of node, ``now`` and before.

    Raises UsageError if a list of nodes cannot be read.
    """
    before = {} if was is None else {node.name: name for name, node in nodes_of(was)}
    after = dict(nodes_of(now))
    found = []
    for target in targets_of(Request((), hosts=(now,)), matrix, environ):
        for machine in target.problem.machines:
            names = tuple(after[it].name for it in machine.hosts)
            old = next((before[it] for it in names if it in before), None)
            for file in files:
                (status,) = status_of([file], Request((), hosts=machine.hosts[:1]), matrix, environ)
                known = None if old is None else status_of([file], Request((), hosts=(old,)), matrix, environ)[0]
                found.append(OnNodes(names, status, known))
    return found
