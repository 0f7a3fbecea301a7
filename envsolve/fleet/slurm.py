"""Nodes as Slurm lists them: ``scontrol show node``, as text or with ``--json``, and ``sinfo -N -o '%N %G %P'``.

Slurm knows a site's own names of its GPUs, and no driver: see :mod:`envsolve.fleet.site`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from envsolve.fleet.node import UNNAMED, Node, each, node
from envsolve.model.host import Gpu

_SOURCE = "slurm"
_RECORD = re.compile(r"^NodeName=", re.MULTILINE)
_FIELD = re.compile(r"(?:^|\s)(NodeName|Arch|Gres|Partitions)=(\S+)")
_HEADER = re.compile(r"^NODELIST\s+GRES\s+PARTITION\s*$", re.MULTILINE)
_GPU = re.compile(r"(?:^|,)gpu(?::(?P<type>[^:,()]*[^\d:,()][^:,()]*))?(?::(?P<count>\d+))?(?=[,(]|$)")
"""``gpu:a100:4(S:0-3)``, ``gpu:4`` and ``gpu`` (slurm.conf, Gres): a type is never only a number."""


def nodes_of_text(text: str) -> list[Node] | None:
    """The nodes in the output of scontrol or sinfo; None if it is neither."""
    if _RECORD.search(text):
        records = (dict(_FIELD.findall(f"NodeName={it}")) for it in _RECORD.split(text)[1:])
        return list(each(records, _node_of_record, "records"))
    if _HEADER.search(text):
        rows = (line.split() for line in text.splitlines() if line.strip() and not _HEADER.match(line))
        return list(_joined(row for row in rows if len(row) == 3))  # noqa: PLR2004 - the columns
    return None


def _node_of_record(it: Mapping[str, str]) -> Node:
    return _node(it["NodeName"], it.get("Gres", ""), it.get("Partitions", ""), it.get("Arch"))


def nodes_of_json(data: object) -> list[Node] | None:
    """The nodes of ``scontrol show nodes --json``; None if ``data`` is anything else."""
    listed = data.get("nodes") if isinstance(data, Mapping) else None
    if not isinstance(listed, list) or not all(isinstance(it, Mapping) and "gres" in it for it in listed):
        return None
    return list(each(listed, _node_of_json, "nodes"))


def _node_of_json(it: Mapping[str, Any]) -> Node:
    partitions = ",".join(map(str, it.get("partitions") or ()))
    return _node(str(it["name"]), str(it["gres"]), partitions, it.get("architecture"))


def _joined(rows: Iterator[list[str]]) -> Iterator[Node]:
    """The nodes; sinfo prints a line for each partition of a node, and marks the default one with a star."""
    found: dict[str, tuple[str, list[str]]] = {}
    for name, gres, partition in rows:
        found.setdefault(name, (gres, []))[1].append(partition.rstrip("*"))
    for name, (gres, partitions) in found.items():
        yield _node(name, gres, ",".join(partitions), None)


def _node(name: str, gres: str, partitions: str, processor: str | None) -> Node:
    found = (Gpu(it["type"] or UNNAMED, None, count=int(it["count"] or 1)) for it in _GPU.finditer(gres))
    gpus = [it for it in found if it.count > 0]
    return node(name, gpus, _SOURCE, processor=processor, groups=filter(None, partitions.split(",")))
