"""``fleet.toml``: what a site calls its GPUs, and what the list of its nodes does not say.

.. code-block:: toml

    [gpus]
    a100 = "NVIDIA A100-SXM4-80GB"      # a product, or a compute capability
    "1g.10gb" = "9.0"

    [driver]                            # by node or group; * is for all others
    gpu2 = "550.54.15"
    "*" = "535.183.01"

    [glibc]
    "*" = "2.28"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from envsolve.boundary.files import FileError, decoded, read_argument, toml_document
from envsolve.errors import Hint, UsageError
from envsolve.fleet.node import UNNAMED, Node
from envsolve.matrix.names import GpuModel
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu
from envsolve.model.versions import DriverVersion, LibcVersion

T = TypeVar("T")

_LONGEST = 1 << 20
_EVERY = "*"
_TABLES = ("gpus", "driver", "glibc")


class Site(NamedTuple):
    """The content of ``file``: GPUs by the site's names, drivers and C libraries by node or group."""

    file: str = ""
    gpus: Mapping[str, str] = {}
    driver: Mapping[str, DriverVersion] = {}
    glibc: Mapping[str, LibcVersion] = {}

    def completed(self, nodes: Iterable[Node], find: Callable[[str], GpuModel]) -> list[Node]:
        """``nodes`` with products, compute capabilities, drivers and C libraries; ``find`` looks up a product.

        A list of nodes takes precedence over this file. Raises UsageError with every unknown GPU.
        """
        strange: dict[str, tuple[str, UsageError]] = {}
        made = [self._completed(it, find, strange) for it in nodes]
        if strange:
            raise _unknown(strange, self.file)
        return made

    def unused(self, nodes: Iterable[Node]) -> Iterator[tuple[str, str, frozenset[str]]]:
        """Each unused table and key of this file, with the names in ``nodes`` that it could be."""
        listed = list(nodes)
        gpus = frozenset(gpu.name for it in listed for gpu in it.host.gpus if gpu.name is not None)
        places = frozenset(name for it in listed for name in (it.name, *it.groups)) | {_EVERY}
        for table, keys, known in (
            ("gpus", self.gpus, gpus),
            ("driver", self.driver, places),
            ("glibc", self.glibc, places),
        ):
            yield from ((table, it, known) for it in keys if it not in known)

    def _completed(
        self, node: Node, find: Callable[[str], GpuModel], strange: dict[str, tuple[str, UsageError]]
    ) -> Node:
        gpus = []
        for gpu in node.host.gpus:
            try:
                gpus.append(self._known(gpu, find))
            except UsageError as error:
                strange.setdefault(str(gpu.name), (node.name, error))
        origin = dict(node.host.origin)
        driver, glibc = node.host.driver, node.host.glibc
        if driver is None and node.host.gpus and (driver := _of(node, self.driver)) is not None:
            origin["driver"] = self.file
        if glibc is None and (glibc := _of(node, self.glibc)) is not None:
            origin["glibc"] = self.file
        return node._replace(host=node.host._replace(gpus=tuple(gpus), driver=driver, glibc=glibc, origin=origin))

    def _known(self, gpu: Gpu, find: Callable[[str], GpuModel]) -> Gpu:
        if gpu.compute_capability is not None or gpu.name is None:
            return gpu
        meant = self.gpus.get(gpu.name, gpu.name)
        if meant == UNNAMED:
            raise UsageError("unknown-gpu", "the list does not name the product of its GPUs")
        try:
            return gpu._replace(compute_capability=ComputeCapability.parse(meant))
        except ValueError:
            model = find(meant)
            return gpu._replace(name=model.name, compute_capability=model.capabilities[0])


def read_site(file: str) -> Site:
    """The site in ``file``. Raises UsageError with the invalid key."""
    try:
        content = read_argument(file, _LONGEST)
        if content is None:
            raise FileError("there is no such file")
        document = toml_document(decoded(content))
    except FileError as error:
        raise UsageError("site-unreadable", f"cannot read {file}: {error.reason}") from None
    for key in document:
        if key not in _TABLES:
            raise UsageError("site-unreadable", f"{file}: {key!r} is not one of {', '.join(_TABLES)}")
    driver = dict(_each(document, "driver", DriverVersion.parse, file))
    glibc = dict(_each(document, "glibc", LibcVersion.parse, file))
    return Site(Path(file).name, dict(_each(document, "gpus", str, file)), driver, glibc)


def _each(document: Mapping[str, Any], key: str, parse: Callable[[str], T], file: str) -> Iterator[tuple[str, T]]:
    table = document.get(key, {})
    if not isinstance(table, dict):
        raise UsageError("site-unreadable", f"{file}: {key!r} must be a table")
    for name, value in table.items():
        try:
            if not isinstance(value, str):
                raise ValueError(f"must be a text, not {value!r}")
            yield name, parse(value)
        except ValueError as error:
            raise UsageError("site-unreadable", f"{file}: {key}.{name}: {error}") from None


def _of(node: Node, table: Mapping[str, T]) -> T | None:
    """The value for a node: its own, that of its first group that has one, or that for all others."""
    return next((table[it] for it in (node.name, *node.groups, _EVERY) if it in table), None)


def _unknown(strange: Mapping[str, tuple[str, UsageError]], file: str) -> UsageError:
    names = ", ".join(map(repr, strange))
    causes = tuple(
        f"{name!r} (node {node}): {error.message}" + "".join(f"; {it.text}" for it in error.hints[:1])
        for name, (node, error) in strange.items()
    )
    lines = " and ".join(f'{json.dumps(name, ensure_ascii=False)} = "PRODUCT"' for name in strange)
    hint = Hint(f"add to the table [gpus] of {file or 'a site map (--map fleet.toml)'}: {lines}")
    return UsageError("unknown-gpu", f"GPUs are not known by the names of the list: {names}", causes, (hint,))
