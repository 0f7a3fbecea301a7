"""One machine of a fleet, and what all lists of machines share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from envsolve.boundary.files import FileError
from envsolve.errors import UsageError
from envsolve.host.gpus import grouped
from envsolve.model.host import Gpu, GpuStatus, Host, Platform
from envsolve.model.versions import DriverVersion

T = TypeVar("T")

UNNAMED = "gpu"
"""The name of a GPU whose product the list does not have."""
_PLATFORMS = {
    "x86_64": Platform.LINUX_64,
    "amd64": Platform.LINUX_64,
    "aarch64": Platform.LINUX_AARCH64,
    "arm64": Platform.LINUX_AARCH64,
}
"""The names of processors in Slurm (`uname -m`) and Kubernetes (GOARCH)."""


class Node(NamedTuple):
    """A machine by its name in the cluster, and its ``groups``: partitions of Slurm, pools of Kubernetes."""

    name: str
    host: Host
    groups: tuple[str, ...] = ()


def each(entries: Iterable[Any], read: Callable[[Any], T], place: str) -> Iterator[T]:
    """The results of ``read`` for the entries of a JSON list at ``place``.

    Raises FileError with the entry and the problem.
    """
    for number, it in enumerate(entries):
        try:
            yield read(it)
        except KeyError as error:
            raise FileError(f"{place}[{number}] has no {error.args[0]!r}") from None
        except ValueError as error:
            raise FileError(f"{place}[{number}]: {error}") from None
        except (TypeError, AttributeError):
            raise FileError(f"{place}[{number}] has a value of another type than expected") from None


def whole_number(text: object) -> int:
    """A number from a text in a list. Raises ValueError for anything else."""
    try:
        return int(str(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def node(
    name: str,
    gpus: Iterable[Gpu],
    source: str,
    *,
    driver: str | None = None,
    processor: str | None = None,
    groups: Iterable[str] = (),
) -> Node:
    """A node in the list of ``source``; a driver that cannot be parsed counts as unknown.

    Raises UsageError for a range of nodes, and for a processor that CUDA does not support.
    """
    found = grouped(gpus)
    if "[" in name:
        raise UsageError("node-range", f"{name} is a range of nodes: list each node, as `scontrol show node` does")
    if found and processor and processor not in _PLATFORMS:
        known_ones = ", ".join(_PLATFORMS)
        raise UsageError("unknown-processor", f"node {name} has the processor {processor!r}, not one of {known_ones}")
    known = _driver(driver)
    facts: Mapping[str, object] = {"platform": processor, "gpus": found, "driver": known}
    host = Host(
        platform=_PLATFORMS.get(processor or "", Platform.LINUX_64),
        driver=known,
        gpus=found,
        status=GpuStatus.READY if found else GpuStatus.NO_HARDWARE,
        origin={key: source for key, value in facts.items() if value},
    )
    return Node(name, host, tuple(groups))


def _driver(text: str | None) -> DriverVersion | None:
    try:
        return None if text is None else DriverVersion.parse(text)
    except ValueError:
        return None
