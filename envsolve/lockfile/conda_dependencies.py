"""The dependencies between the packages of a platform: by name, in installation order, and by category."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.lockfile.lock import MAIN, Lock, RequestedSpec
from envsolve.model.conda import CondaPackage
from envsolve.model.names import normalized

_SPEC = re.compile(r"\s*(?:\S+::)?([A-Za-z0-9_.-]+)\s*(.*)\Z", re.DOTALL)
"""A match spec: channel, name and the rest. Old records have no space between name and rest."""
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_PLAIN_REST = re.compile(r"([^\s\[\]]*[^\s\[\]<>=!~,|])?(?: ([^\s\[\]]+))?\Z")
"""Versions and a build, as in records. It does not match specs with brackets or with spaces after an operator."""
_ANY = ("", "*")


class Node(NamedTuple):
    """A package of a platform, by its manager (``conda`` or ``pip``) and its name."""

    manager: str
    name: str


def dependencies(package: CondaPackage) -> dict[str, str]:
    """Return what a package depends on, virtual packages included, as the rest of the match spec by name.

    The rest is, for example, ``>=1.2,<2 *cuda*`` or "". A name that a record has twice is one entry with both
    requirements.
    """
    rests: dict[str, list[str]] = {}
    for spec in package.depends:
        found = _SPEC.match(spec)
        if found is not None:
            rests.setdefault(found[1].lower(), []).append(" ".join(found[2].split()))
    return {name: _both(requested) for name, requested in sorted(rests.items())}


def installing_order(packages: Iterable[CondaPackage]) -> list[CondaPackage]:
    """Return ``packages`` such that each comes after its dependencies, otherwise by name.

    Explicit files are installed without a solver, in their order (CEP 23). A cycle is cut where it closes, and Python
    comes before pip, as in conda itself (conda/common/toposort.py).
    """
    by_name = {package.name: package for package in packages}
    placed: dict[str, CondaPackage] = {}
    begun: set[str] = set()
    waiting = sorted(by_name, reverse=True)
    while waiting:
        name = waiting[-1]
        if name in begun:
            waiting.pop()
            placed.setdefault(name, by_name[name])
            continue
        begun.add(name)
        needed = [need for need in dependencies(by_name[name]) if (name, need) != ("python", "pip")]
        waiting += [need for need in reversed(needed) if need in by_name and need not in begun]
    return list(placed.values())


def requested_packages(lock: Lock) -> Iterator[tuple[RequestedSpec, Node]]:
    """Yield each requested spec with the package that meets it. A conda package may meet a requirement of pip."""
    conda = {normalized(package.name): Node("conda", package.name) for package in lock.conda}
    pip = {pin.name for pin in lock.pins}
    for requested in lock.requested:
        found = (_REQUIREMENT if requested.by_pip else _SPEC).match(requested.spec)
        name = "" if found is None else found[1]
        wheel = normalized(name)
        by_conda = Node("conda", name.lower())
        by_pip = Node("pip", wheel) if wheel in pip else conda.get(wheel, by_conda)
        yield requested, by_pip if requested.by_pip else by_conda


def categories(lock: Lock) -> dict[Node, tuple[str, ...]]:
    """Return the categories of each package, sorted. A package in ``main`` has only that one, as in conda-lock.

    They are the package's own categories, else those of the requested specs that lead to it. A package that nothing
    leads to is in ``main`` too, so that no package is lost.
    """
    stated = {Node("conda", it.name): it.categories for it in lock.conda}
    stated |= {Node("pip", pin.name): pin.categories for pin in lock.pins}
    needs = _needs(lock)
    found: dict[Node, set[str]] = {node: set() for node in needs}
    roots: dict[str, list[Node]] = {}
    for requested, node in requested_packages(lock):
        roots.setdefault(requested.category, []).append(node)
    for category, nodes in roots.items():
        for node in _reached(nodes, needs):
            found[node].add(category)
    led = {node: (MAIN,) if MAIN in names or not names else tuple(sorted(names)) for node, names in found.items()}
    return {node: stated[node] or categories for node, categories in led.items()}


def _both(rests: Sequence[str]) -> str:
    """Several specs of one package as one; the last one, if they are more than versions and a build."""
    parts = [found for rest in rests if (found := _PLAIN_REST.match(rest)) is not None]
    if len(rests) == 1 or len(parts) < len(rests):
        return rests[-1]
    versions = list(dict.fromkeys(part[1] for part in parts if part[1] and part[1] not in _ANY))
    builds = [part[2] for part in parts if part[2] and part[2] not in _ANY]
    if len(versions) > 1:
        versions = [f"({version})" if "|" in version else version for version in versions]
    return " ".join([",".join(versions) or "*", builds[-1]]) if builds else ",".join(versions)


def _needs(lock: Lock) -> dict[Node, list[Node]]:
    """The graph of both managers: a wheel depends on a wheel or, if there is none, on the conda package."""
    conda = {normalized(package.name): Node("conda", package.name) for package in lock.conda}
    pip = {pin.name: Node("pip", pin.name) for pin in lock.pins}
    needs = {
        Node("conda", package.name): [Node("conda", name) for name in dependencies(package)] for package in lock.conda
    }
    for pin in lock.pins:
        found = (pip.get(name) or conda.get(name) for name in map(normalized, pin.requires))
        needs[pip[pin.name]] = [node for node in found if node is not None]
    return needs


def _reached(roots: Sequence[Node], needs: Mapping[Node, Sequence[Node]]) -> Iterator[Node]:
    seen: set[Node] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if node in needs and node not in seen:
            seen.add(node)
            waiting += needs[node]
            yield node
