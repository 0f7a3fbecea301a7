"""A plan of environments for a cluster as text, JSON and for CI systems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from envsolve.cli.output_formats import Case, Item, Level, Outcome

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.fleet.plan import Plan, Refused, Upgrade
    from envsolve.fleet.node import Node
    from envsolve.model.solution import Solution

_FEW = 6
_FEW_GROUPS = 3
_FEW_REASONS = 3


def named(nodes: Iterable[Node]) -> str:
    """Some nodes: how many in which group, and the first few by name."""
    from envsolve.app.fleet.plan import counted

    listed = list(nodes)
    counts = sorted(((it, count) for it, count in counted(listed).items() if it), key=lambda it: (-it[1], it[0]))
    groups = ", ".join(f"{count} in {group}" for group, count in counts[:_FEW_GROUPS])
    more = f" and {len(counts) - _FEW_GROUPS} more groups" if len(counts) > _FEW_GROUPS else ""
    return f"{count_text(listed)}{f' ({groups}{more})' if groups else ''}: {few([it.name for it in listed])}"


def count_text(nodes: Sequence[object]) -> str:
    """``3 nodes``."""
    return f"{len(nodes)} node{'' if len(nodes) == 1 else 's'}"


def few(names: Sequence[str]) -> str:
    """The first few names, and the number of the others."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return f"{', '.join(names[:_FEW])}{more}"


def _stack(solution: Solution) -> str:
    builds = " with ".join(it.release.label for it in solution.choices)
    driver = "" if solution.minimum_driver is None else f", from driver {solution.minimum_driver}"
    return f"{builds}, Python {solution.python}{driver}"


def plan_text(plan: Plan) -> str:
    """The plan for people."""
    lines = _served(plan)
    for nodes, reasons in _refusals(plan):
        lines += [f"none for {named(nodes)}", *(f"   because: {it}" for it in reasons)]
    return "".join(f"{it}\n" for it in (*lines, *_with_newer_drivers(plan)))


def _refusals(plan: Plan) -> Iterator[tuple[list[Node], list[str]]]:
    """The nodes without an environment, grouped by the kind of reason."""
    by_code: dict[tuple[str, str], list[Refused]] = {}
    for it in plan.refused:
        by_code.setdefault((it.platform, it.error.code), []).append(it)
    for each in by_code.values():
        reasons = list(dict.fromkeys(it.error.message for it in each))
        more = [f"{len(reasons) - _FEW_REASONS} more reasons of this kind (--json)"] if reasons[_FEW_REASONS:] else []
        yield [node for it in each for node in it.nodes], [*reasons[:_FEW_REASONS], *more]


def _served(plan: Plan) -> list[str]:
    lines = []
    if plan.groups:
        many = f"{len(plan.groups)} environments" if len(plan.groups) > 1 else "one environment"
        total = sum(len(it.nodes) for it in plan.groups)
        lines.append(f"{many} for {total} node{'' if total == 1 else 's'}")
    for number, it in enumerate(plan.groups, 1):
        lines += [f"{number}. {_stack(it.solution)}", f"   {named(it.nodes)}", f"   {it.command}"]
    return lines


def _with_newer_drivers(plan: Plan) -> Iterator[str]:
    for upgrade in plan.upgrades:
        yield f"with newer drivers: {_upgraded(upgrade)}"
        yield from (f"   {_stack(solution)} on {count_text(nodes)}" for nodes, solution in upgrade.groups)


def _upgraded(upgrade: Upgrade) -> str:
    """Which nodes need which driver."""
    by_driver: dict[str, list[Node]] = {}
    for node, driver in upgrade.nodes:
        by_driver.setdefault(str(driver), []).append(node)
    return "; ".join(f"{driver} or newer on {named(nodes)}" for driver, nodes in by_driver.items())


def _stack_json(nodes: Iterable[Node], solution: Solution) -> documents.FleetStack:
    return {
        "nodes": [it.name for it in nodes],
        "frameworks": [
            {"framework": it.release.framework, "version": str(it.release.version), "build": it.release.label}
            for it in solution.choices
        ],
        "python": str(solution.python),
        "cuda": None if solution.toolkit is None else str(solution.toolkit.version),
        "minimum_driver": None if solution.minimum_driver is None else str(solution.minimum_driver),
    }


def plan_json(plan: Plan) -> documents.FleetPlan:
    """The plan as JSON."""
    return {
        "schema_version": 1,
        "ok": plan.ok,
        "groups": [
            {**_stack_json(it.nodes, it.solution), "platform": it.platform.value, "command": it.command}
            for it in plan.groups
        ],
        "refused": [
            {"platform": it.platform.value, "nodes": [node.name for node in it.nodes], "error": it.error.as_json()}
            for it in plan.refused
        ],
        "upgrades": [
            {
                "platform": it.platform.value,
                "drivers": [{"node": node.name, "driver": str(driver)} for node, driver in it.nodes],
                "groups": [_stack_json(nodes, solution) for nodes, solution in it.groups],
            }
            for it in plan.upgrades
        ],
    }


def plan_outcome(plan: Plan) -> Outcome:
    """The plan for CI systems, Markdown and HTML."""
    cases = [
        Case(f"environment {number}", (Item(Level.NOTE, "group", _stack(it.solution), it.command),), named(it.nodes))
        for number, it in enumerate(plan.groups, 1)
    ]
    cases += [
        Case(named(it.nodes), (Item(Level.ERROR, it.error.code, it.error.message),), "no environment")
        for it in plan.refused
    ]
    upgrades = tuple(Item(Level.NOTE, "upgrade", f"with newer drivers: {_upgraded(it)}") for it in plan.upgrades)
    cases[-1:] = [it._replace(items=(*it.items, *upgrades)) for it in cases[-1:]]
    appendix = "".join(f"{it}\n" for it in (*_served(plan), *_with_newer_drivers(plan)))
    return Outcome("fleet plan", tuple(cases), appendix)
