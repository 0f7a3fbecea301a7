"""Reads lists of nodes of any kind into one inventory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from envsolve.errors import UsageError
from envsolve.fleet.inventory import read_inventory
from envsolve.fleet.node import Node
from envsolve.fleet.site import Site, read_site
from envsolve.matrix.load import Matrix
from envsolve.model.note import Note

_FEW = 5


def imported(files: Sequence[str], site_file: str | None, matrix: Matrix) -> tuple[list[Node], list[Note]]:
    """The nodes of all ``files``, completed from a site map, and notes on what is still unknown.

    Earlier files take precedence over later ones. Raises UsageError if a list cannot be read or has unknown GPUs.
    """
    nodes: dict[str, Node] = {}
    for it in (it for file in files for it in read_inventory(file)):
        nodes[it.name] = _both(nodes[it.name], it) if it.name in nodes else it
    site = Site() if site_file is None else read_site(site_file)
    unused = list(_unused(site, nodes.values()))
    found = site.completed(nodes.values(), matrix.gpus.find)
    if not any(it.host.gpus for it in found):
        raise UsageError("no-gpu", f"none of {len(found)} nodes has an NVIDIA GPU")
    return found, [*unused, *_unknown(found)]


def _both(one: Node, other: Node) -> Node:
    """A node that combines two lists: Slurm has partitions, nvidia-smi has the driver."""
    first, second = (one, other) if one.host.gpus else (other, one)
    host = first.host._replace(
        driver=first.host.driver or second.host.driver,
        glibc=first.host.glibc or second.host.glibc,
        origin={**second.host.origin, **first.host.origin},
    )
    exact = second.host.gpus if _is_exact(second) and not _is_exact(first) else first.host.gpus
    return Node(one.name, host._replace(gpus=exact), tuple(dict.fromkeys((*one.groups, *other.groups))))


def _is_exact(node: Node) -> bool:
    """Whether its GPUs are named by the driver and not by the site."""
    return any(gpu.compute_capability is not None or " " in (gpu.name or "") for gpu in node.host.gpus)


def _unused(site: Site, nodes: Iterable[Node]) -> Iterator[Note]:
    import difflib

    for table, key, known in site.unused(nodes):
        close = difflib.get_close_matches(key, known, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        what = "GPU" if table == "gpus" else "node or group"
        text = f"{site.file}: [{table}] {key!r} is no {what} of the list{meant}"
        yield Note("site-key-unused", text).about(table=table, key=key)


def _unknown(nodes: Sequence[Node]) -> Iterator[Note]:
    bare = [it.name for it in nodes if not it.host.gpus]
    if bare:
        yield Note("no-gpu", f"{_counted(bare)} without an NVIDIA GPU: no stack is solved for them").about(
            count=len(bare)
        )
    unsaid = [it.name for it in nodes if it.host.gpus and it.host.driver is None and it.host.driver_cuda is None]
    if unsaid:
        text = (
            f"the driver of {_counted(unsaid)} is not known: add a [driver] table to the site map, or any driver counts"
        )
        yield Note("driver-unknown", text).about(count=len(unsaid))


def _counted(names: Sequence[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{len(names)} node{'s' if len(names) > 1 else ''} ({', '.join(names[:_FEW])}{more})"
