"""The output of nvidia-smi on one or many nodes: ``-q -x``, or ``--query-gpu`` with ``--format=csv``.

``pdsh`` and ``clush`` print the name of the node before each line, Ansible on a separate line above.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from envsolve.fleet.node import Node, node
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu

_SOURCE = "nvidia-smi"
_PREFIX = re.compile(r"([A-Za-z0-9][\w.-]*): (.*)")
_ANSIBLE = re.compile(r"(\S+) \| (?:CHANGED|SUCCESS)\b.*>>\s*")
_DRIVER = re.compile(r"\d{3}\.\d{1,3}(?:\.\d{1,2})?")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_MEMORY = re.compile(r"(\d+) MiB")


def nodes_of_text(text: str, name: str) -> list[Node] | None:
    """The nodes in the output of nvidia-smi; a node without a name is called ``name``. None for anything else."""
    found = [node for host, part in _by_host(text, name) if (node := _of_host(host, part)) is not None]
    return found or None


def _by_host(text: str, name: str) -> Iterator[tuple[str, str]]:
    """The text of each node."""
    lines = [line for line in text.splitlines() if line.strip()]
    prefixed = [_PREFIX.fullmatch(line) for line in lines]
    by_host: dict[str, list[str]] = {}
    host = name
    for line, match in zip(lines, prefixed, strict=True):
        heading = _ANSIBLE.fullmatch(line)
        if heading is not None:
            host = heading[1]
        elif match is not None and all(prefixed):
            by_host.setdefault(match[1], []).append(match[2])
        else:
            by_host.setdefault(host, []).append(line)
    for each, lines in by_host.items():
        yield each, "\n".join(lines)


def _of_host(name: str, text: str) -> Node | None:
    begin = text.find("<nvidia_smi_log>")
    return _of_csv(name, text) if begin < 0 else _of_xml(name, text[begin:])


def _of_xml(name: str, text: str) -> Node | None:
    try:
        log = ET.fromstring(text)  # noqa: S314 - without its document type there are no entities to expand
    except ET.ParseError:
        return None
    gpus = [
        Gpu(
            it.findtext("product_name"),
            None,
            memory_mib=_mebibytes(it.findtext("fb_memory_usage/total", "")),
            mig=it.findtext("mig_mode/current_mig") == "Enabled",
        )
        for it in log.iter("gpu")
    ]
    return node(name, gpus, _SOURCE, driver=log.findtext("driver_version"))


def _of_csv(name: str, text: str) -> Node | None:
    """The node for rows whose columns may have any order: name, compute_cap, driver_version, memory.total differ."""
    gpus, driver = [], None
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        drivers = [value for value in values if _DRIVER.fullmatch(value)]
        capability = next((ComputeCapability.parse(value) for value in values if _CAPABILITY.fullmatch(value)), None)
        product = next((value for value in values if re.search("[A-Za-z]", value) and not _MEMORY.fullmatch(value)), "")
        if not drivers or not product:
            continue  # the header, or a message
        driver = drivers[0]
        memory = next(filter(None, map(_mebibytes, values)), None)
        gpus.append(Gpu(product, capability, memory_mib=memory))
    return node(name, gpus, _SOURCE, driver=driver) if gpus else None


def _mebibytes(text: str) -> int | None:
    found = _MEMORY.fullmatch(text)
    return None if found is None else int(found[1]) or None
