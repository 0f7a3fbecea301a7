"""Count GPUs of the same kind together, for every source."""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.model.host import Gpu


def grouped(gpus: Iterable[Gpu]) -> tuple[Gpu, ...]:
    """One entry for each (name, compute capability), in order of first appearance.

    A group's memory is the smallest of its members, since a stack must fit all of them; it counts as split (MIG) if any
    member is.
    """
    groups: dict[tuple[object, object], Gpu] = {}
    for gpu in gpus:
        kind = (gpu.name, gpu.compute_capability)
        groups[kind] = _joined(groups[kind], gpu) if kind in groups else gpu
    return tuple(groups.values())


def _joined(first: Gpu, second: Gpu) -> Gpu:
    sizes = [gpu.memory_mib for gpu in (first, second) if gpu.memory_mib is not None]
    return first._replace(
        count=first.count + second.count,
        memory_mib=min(sizes, default=None),
        mig=first.mig or second.mig,
    )


def total(gpus: Iterable[Gpu]) -> int:
    """The number of GPUs in all groups."""
    return sum(gpu.count for gpu in gpus)
