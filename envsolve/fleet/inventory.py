"""Lists of nodes: the output of cluster tools, and envsolve's own file that is made from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsolve.boundary.files import FileError, decoded, json_value, read_argument
from envsolve.errors import Hint, UsageError
from envsolve.fleet import kubernetes, metrics, ray, slurm, smi
from envsolve.fleet.cloud import machine_of
from envsolve.fleet.node import Node, each
from envsolve.host.host_file import host_as_json, host_of, read_host_file

if TYPE_CHECKING:
    from envsolve import documents

_LONGEST = 1 << 28
"""Bytes; 10,000 Kubernetes nodes take about 200 MB."""
_OF_JSON: tuple[Callable[[object], list[Node] | None], ...] = (
    kubernetes.nodes_of_json,
    slurm.nodes_of_json,
    metrics.nodes_of_json,
    ray.nodes_of_json,
)
_KINDS = (
    "scontrol show node (text or --json), sinfo -N -o '%N %G %P'",
    "nvidia-smi -q -x or --query-gpu=name,compute_cap,driver_version --format=csv, of one node, by pdsh or Ansible",
    "kubectl get nodes -o json",
    "metrics of dcgm-exporter",
    "json.dumps(ray.nodes())",
    "envsolve detect --json, envsolve fleet import",
)


def inventory_as_json(nodes: Iterable[Node]) -> documents.Inventory:
    """The file that ``--host`` reads: host files, each with the name and the groups of its node."""
    return {"schema_version": 1, "nodes": list(map(_row, nodes))}


def _row(node: Node) -> documents.Node:
    host = host_as_json(node.host)
    return {
        "name": node.name,
        "groups": list(node.groups),
        "platform": host["platform"],
        "driver": host["driver"],
        "driver_cuda": host["driver_cuda"],
        "glibc": host["glibc"],
        "gpus": host["gpus"],
        "origin": host["origin"],
        "status": host["status"],
        "wsl": host["wsl"],
        "notes": host["notes"],
    }


def read_inventory(file: str) -> list[Node]:
    """The nodes in ``file``, whatever tool wrote it; a host file is one node. Raises UsageError for anything else."""
    try:
        found = _nodes(_text(file), file)
    except FileError as error:
        raise UsageError("inventory-unreadable", f"cannot read {file}: {error.reason}") from None
    if not found:
        hints = (Hint(f"these are read: {'; '.join(_KINDS)}"),)
        raise UsageError("inventory-unreadable", f"{file} is no list of nodes that envsolve knows", hints=hints)
    return found


def nodes_named(argument: str) -> list[tuple[str, Node]]:
    """The machines in a value of ``--host``: a host file, a list of nodes, FILE:NODE, or CLOUD:TYPE.

    The names are in that form too; nodes without a GPU are left out unless they are named. Raises UsageError if the
    file cannot be read or the node does not exist.
    """
    if (machine := machine_of(argument)) is not None:
        return [(argument, machine)]
    file, name = _file_and_node(argument)
    nodes = _listed(file)
    if nodes is None:
        return [(argument, Node(Path(file).stem, read_host_file(Path(argument))))]
    if not name:
        found = [(f"{file}:{name}", it) for name, it in nodes.items() if it.host.gpus]
        if not found:
            hints = (Hint(f"for a CPU environment name a node: {file}:{next(iter(nodes))}"),)
            raise UsageError("no-gpu", f"{file} lists no node with an NVIDIA GPU", hints=hints)
        return found
    if name not in nodes:
        raise UsageError("unknown-node", f"{file} lists no node {name!r}")
    return [(argument, nodes[name])]


def nodes_of(argument: str) -> list[tuple[str, Node]]:
    """The machines in a list of nodes, as in :func:`nodes_named`. Raises the errors of :func:`read_inventory`."""
    file, _ = _file_and_node(argument)
    if _listed(file) is None and machine_of(argument) is None:  # a host file, or not readable
        read_inventory(file)
    return nodes_named(argument)


def _file_and_node(argument: str) -> tuple[str, str]:
    """The two parts of FILE:NODE; the node is "" if it is only a file. Both may contain colons, like host:9400."""
    if os.path.exists(argument):  # noqa: PTH110 - it never raises
        return argument, ""
    file, _, name = argument.rpartition(":")
    there = file
    while there and not os.path.exists(there):  # noqa: PTH110
        there = there.rpartition(":")[0]
    if there:
        return there, argument[len(there) + 1 :]
    return (file, name) if file else (argument, "")


def together(names: Sequence[str]) -> list[str]:
    """``names`` from :func:`nodes_named`, with FILE in place of all its nodes."""
    here = set(names)
    found: dict[str, None] = {}
    for name in names:
        file, node_name = _file_and_node(name)
        nodes = _listed(file) if node_name else None
        whole = nodes is not None and all(f"{file}:{it}" in here for it, node in nodes.items() if node.host.gpus)
        found[file if whole else name] = None
    return list(found)


def _listed(file: str) -> dict[str, Node] | None:
    """The nodes in ``file`` by name; None if it is a host file, or no list."""
    try:
        stat = Path(file).stat()
    except (OSError, ValueError):
        return None
    return _nodes_by_name(file, stat.st_mtime_ns, stat.st_size)


@cache
def _nodes_by_name(file: str, *_: int) -> dict[str, Node] | None:
    """The nodes, read once: 10,000 nodes may be named one by one."""
    try:
        text = _text(file)
        nodes = None if _is_host_file(text) else _nodes(text, file)
    except FileError:
        return None
    return {it.name: it for it in nodes} if nodes else None


def _text(file: str) -> str:
    content = read_argument(file, _LONGEST)
    if content is None:
        raise FileError("there is no such file")
    return decoded(content)


def _is_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def _is_host_file(text: str) -> bool:
    data = json_value(text) if _is_json(text) else None
    return isinstance(data, dict) and "platform" in data


def _nodes(text: str, file: str) -> list[Node] | None:
    """The nodes in a text; None if its form is unknown. Raises FileError; UsageError if it is damaged."""
    try:
        return _of_json(json_value(text), file) if _is_json(text) else _of_text(text, file)
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # it differs from what its tool writes
        raise FileError("it begins like a list of nodes, but then is none") from error


def _of_text(text: str, file: str) -> list[Node] | None:
    return slurm.nodes_of_text(text) or metrics.nodes_of_text(text) or smi.nodes_of_text(text, Path(file).stem)


def _of_json(data: object, file: str) -> list[Node] | None:
    if isinstance(data, dict) and "schema_version" in data:
        return list(_own(data, file))
    return next((found for reader in _OF_JSON if (found := reader(data)) is not None), None)


def _own(data: dict[str, object], file: str) -> Iterator[Node]:
    """The nodes of an inventory; a host file is a single node."""
    rows = data.get("nodes")
    if not isinstance(rows, list):
        yield Node(Path(file).stem, host_of(data, Path(file)))
        return
    names: set[str] = set()
    for number, (row, name, groups) in enumerate(each(rows, _row_parts, "nodes")):
        place = f"nodes[{number}]."
        if name in names:
            raise UsageError("inventory-unreadable", f"{file}: {place}name is {name!r} a second time")
        names.add(name)
        host = host_of({**row, "schema_version": data["schema_version"]}, Path(file), place)
        yield Node(name, host, groups)


def _row_parts(row: dict[str, Any]) -> tuple[dict[str, Any], str, tuple[str, ...]]:
    return row, str(row["name"]), tuple(map(str, row.get("groups") or ()))
