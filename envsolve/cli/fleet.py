"""``envsolve fleet``: one environment for many machines, or the fewest, and a validation on each of them."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.fleet_engines import engine_of, json_in, manifest_of, require_options_of_launcher
from envsolve.cli.fleet_plan import count_text, few, plan_json, plan_outcome, plan_text
from envsolve.cli.interrupts import interruptible
from envsolve.cli.options import (
    Command,
    FileName,
    dry_run_option,
    matrix_of,
    matrix_option,
    option,
    output_option,
    output_options,
)
from envsolve.cli.output import deliver, json_text
from envsolve.cli.output_formats import (
    Case,
    Item,
    Level,
    Outcome,
    output_format,
    output_format_options,
    rendered,
)
from envsolve.cli.report import note_each
from envsolve.cli.solve_options import options_of_solve
from envsolve.errors import Hint, UsageError
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.fleet.drift import OnNodes
    from envsolve.app.fleet.proof import Answer

_LISTS = FileName("file")


class _Seconds(click.FloatRange):
    """A range of seconds that excludes NaN, which compares as inside of every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Fail for NaN like for a number that is too small."""
        seconds = super().convert(value, param, ctx)
        return self.fail(f"{value} is not a number of seconds", param, ctx) if math.isnan(seconds) else float(seconds)


_nodes_argument = click.argument("nodes", metavar="NODES", type=_LISTS)


@click.group()
def fleet() -> None:
    """Plan and validate environments for the nodes of a cluster."""


@fleet.command("import", cls=Command, short_help="Make a list of nodes from the output of cluster tools.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=_LISTS)
@option("--map", "site", metavar="FILE", type=_LISTS, help="What the site calls its GPUs, and drivers by partition.")
@output_option
@dry_run_option
@option("--json", "as_json", is_flag=True, help="Print JSON, which is the default.")
@matrix_option
@output_options
def import_(**options: Any) -> int:
    """Make the list of nodes that --host and the other commands of fleet read, as JSON.

    FILE is the output of `scontrol show node` or `sinfo -N -o '%N %G %P'`, of nvidia-smi on one or many nodes, of
    `kubectl get nodes -o json`, of dcgm-exporter or of Ray, or a host file. Several files complete each other.

    \b
    Examples:
      scontrol show node > nodes.txt; envsolve fleet import nodes.txt --map fleet.toml -o nodes.json
      pdsh -w n[1-9] nvidia-smi -q -x > smi.txt; envsolve fleet import smi.txt -o nodes.json
    """
    from envsolve.app.fleet.importing import imported
    from envsolve.fleet.inventory import inventory_as_json

    found, notes = imported(options["files"], options["site"], matrix_of(options))
    deliver(json_text(inventory_as_json(found)), options["output"])
    note_each(notes, options)
    return 0


@fleet.command("plan", cls=Command, short_help="Find the fewest environments that serve all nodes.")
@_nodes_argument
@options_of_solve(("frameworks", "python", "cuda", "sources", "prefer", "channels", "format_name"))
@output_format_options
@matrix_option
@output_options
def plan_(**options: Any) -> int:
    """Find one environment for all nodes, or the fewest, and what newer drivers would give; exit 1 if a node has none.

    \b
    Examples:
      envsolve fleet plan nodes.json -f pytorch
      envsolve fleet plan nodes.json -f 'jax>=0.7' --source pypi --output-format markdown
    """
    from envsolve.app.fleet.plan import plan
    from envsolve.app.solve.solving import framework_requests
    from envsolve.frameworks import split_dependent

    matrix = matrix_of(options)
    named, dependent = split_dependent(options["frameworks"])
    if dependent:
        words = [word for it in options["frameworks"] for word in ("-f", it)]
        words += ["--host", options["nodes"], *(word for it in options["sources"] for word in ("--source", str(it)))]
        hint = Hint("lock it for all nodes", shlex.join(["envsolve", *words, "--format", "requirements"]))
        raise UsageError("needs-a-lock", f"a plan has frameworks alone, and {dependent[0]} is a package", hints=(hint,))
    requested = framework_requests(named, matrix)
    if not requested:
        raise UsageError("no-framework", "which framework?", hints=(Hint("name one: --framework pytorch"),))
    request = Request(
        frameworks=requested,
        hosts=(options["nodes"],),
        python=options["python"],
        cuda=options["cuda"],
        sources=options["sources"],
        channels=options["channels"],
        prefer=options["prefer"],
        format=options["format_name"] or "environment",
    )
    found = plan(request, matrix, os.environ)
    return _deliver(options, found.ok, plan_text(found), plan_json(found), plan_outcome(found))


@fleet.command("status", cls=Command, short_help="Say what changed, and which locks no longer run on which nodes.")
@_nodes_argument
@click.argument("locks", nargs=-1, metavar="[LOCK]...", type=_LISTS)
@option("--was", metavar="FILE", type=_LISTS, help="The list of nodes of the time when the locks were made.")
@output_format_options
@matrix_option
@output_options
def status_(**options: Any) -> int:
    """Say what changed between two lists of nodes, and on which nodes locks run; exit 1 if one does not run on a node.

    \b
    Example:
      envsolve fleet status today.json --was nodes.json pylock.toml
    """
    from envsolve.app.fleet.drift import changes, locks_on
    from envsolve.app.status.status import files_to_check

    if options["locks"]:
        files_to_check(options["locks"])
    was, now = options["was"], options["nodes"]
    found = [] if was is None else changes(was, now)
    locks = locks_on(options["locks"], was, now, matrix_of(options), os.environ)
    shown = [f"{it.node}: {it.what} {it.was or '(new)'} -> {it.now or '(gone)'}" for it in found]
    lines = [*shown, *map(_lock_line, locks)]
    ok = not any(it.is_broken for it in locks)
    data: documents.FleetStatus = {
        "schema_version": 1,
        "ok": ok,
        "changes": [{"node": it.node, "what": it.what, "was": it.was, "now": it.now} for it in found],
        "locks": [
            {
                "path": it.now.path,
                "nodes": list(it.nodes),
                "status": it.now.verdict.value,
                "was": None if it.was is None else it.was.verdict.value,
                "reasons": [reason.text for reason in it.now.reasons],
            }
            for it in locks
        ],
    }
    items = [Item(Level.NOTE, "node-changed", it) for it in shown]
    cases = [Case("nodes", tuple(items)), *map(_lock_case, locks)]
    return _deliver(options, ok, "".join(f"{it}\n" for it in lines), data, Outcome("fleet status", tuple(cases)))


@fleet.command("validate", cls=Command, short_help="Run `envsolve validate` on every node.")
@_nodes_argument
@option("--prefix", metavar="DIR", type=FileName("directory"), help="The environment, as the nodes see it.")
@option(
    "--launcher",
    metavar="COMMAND",
    required=True,
    help="How a command runs on a node: slurm, kubernetes, ray, or words such as 'ssh {node} {command}' or "
    "'srun -w {node} -G {gpus}'.",
)
@option(
    "--ray-python",
    metavar="EXE",
    type=FileName("file"),
    help="For ray: a Python with the Ray of the cluster; default: that of --prefix, else python.",
)
@option("--jobs", metavar="N", type=click.IntRange(1, 1000), default=16, show_default=True, help="Nodes at a time.")
@option("--timeout", metavar="SECONDS", type=_Seconds(1, 86400), default=900, help="For each node.")
@option("--again", metavar="FILE", type=_LISTS, help="An earlier report: run only on nodes that did not pass.")
@option("--envsolve", "program", metavar="COMMAND", help="envsolve on the nodes; default: the one that runs here.")
@option(
    "--image",
    "images",
    metavar="[NAME=]IMAGE",
    multiple=True,
    help="For kubernetes: the image with the environment. Repeatable with the NAME of a node or a group.",
)
@option("--kubectl", metavar="COMMAND", help="kubectl and its options: 'kubectl --context gpu -n ml'.")
@option("--manifest", metavar="FILE", type=_LISTS, help="Only write the Jobs for kubernetes to FILE; - is stdout.")
@option("--applied", metavar="FILE", type=_LISTS, help="Collect the results of the Jobs in FILE, which you created.")
@option("--no-progress", is_flag=True, help="Do not show progress.")
@output_format_options
@matrix_option
@output_options
def validate_(**options: Any) -> int:
    """Run `envsolve validate` on every node, through Slurm, Kubernetes, Ray, ssh or another launcher.

    A node that does not answer in time, or has another driver than its list says, is named. Save the result with --json
    for `fleet report` and --again.

    \b
    Examples:
      envsolve fleet validate nodes.json --prefix /shared/env --launcher slurm --json > report.json
      envsolve fleet validate nodes.json --prefix /shared/env --launcher 'ssh {node} {command}'
      envsolve fleet validate nodes.json --launcher kubernetes --image registry.example.com/env:1
    """
    from envsolve.app.fleet.proof import State
    from envsolve.cli.progress import Progress
    from envsolve.fleet.inventory import nodes_of

    require_options_of_launcher(options)
    earlier = {} if options["again"] is None else {it.node: it for it in _report(options["again"])}
    done = {name: it for name, it in earlier.items() if it.state is State.PASSED}
    nodes = [node for _, node in nodes_of(options["nodes"])]
    to_do = [it for it in nodes if it.name not in done]
    if options["manifest"] is not None:
        deliver(json_text(manifest_of(options, to_do)), options["manifest"])
        return 0
    if not to_do:
        return _deliver_report([done[it.name] for it in nodes], options)
    engine = engine_of(options, to_do)
    progress = Progress.of(options, "validating")
    answers = engine.prove(to_do, os.environ, progress.show)
    with interruptible(), closing(answers), progress:
        for it in answers:
            done[it.node] = it
    return _deliver_report([done[it.name] for it in nodes], options)


@fleet.command("report", cls=Command, short_help="Show a saved report of fleet validate.")
@click.argument("report", metavar="REPORT", type=_LISTS)
@output_format_options
@output_options
def report_(**options: Any) -> int:
    """Show what `envsolve fleet validate --json` printed, in any format; exit 1 if a node did not pass.

    \b
    Example:
      envsolve fleet report report.json --output-format junit
    """
    return _deliver_report(_report(options["report"]), options)


def _deliver(options: dict[str, Any], ok: bool, text: str, data: object, outcome: Outcome) -> int:
    format_name = output_format(options)
    if format_name == "json":
        text = json_text(data)
    elif format_name != "text":
        text = rendered(outcome, format_name)
    deliver(text, None)
    return 0 if ok else 1


def _lock_line(it: OnNodes) -> str:
    if it.now.verdict.value == "no-framework":
        return f"{it.now.path} has nothing that depends on GPU or driver"
    is_turned = it.is_new and it.was is not None
    word = (
        ("no longer runs" if is_turned else "does not run") if it.is_broken else ("now runs" if is_turned else "runs")
    )
    why = "".join(f"\n  because: {reason.text}" for reason in it.now.reasons)
    return f"{it.now.path} {word} on {count_text(it.nodes)}: {few(it.nodes)}{why}"


def _lock_case(it: OnNodes) -> Case:
    level = Level.ERROR if it.is_broken else Level.NOTE
    return Case(f"{it.now.path} on {few(it.nodes)}", (Item(level, it.now.verdict.value, _lock_line(it)),))


def _report(file: str) -> list[Answer]:
    from envsolve.app.fleet.proof import answers_in

    return answers_in(json_in(file, "report-unreadable"))


def _deliver_report(answers: Sequence[Answer], options: dict[str, Any]) -> int:
    from envsolve.app.fleet.proof import State

    passed = [it for it in answers if it.state is State.PASSED]
    others = [it for it in answers if it.state is not State.PASSED]
    lines = [f"{len(passed)} of {count_text(answers)} passed"]
    lines += [f"{it.node}: {it.state}{_why(it)}" for it in others]
    lines += [f"{it.node}: differs from the list of nodes: {', '.join(it.differs)}" for it in answers if it.differs]
    data: documents.FleetReport = {
        "schema_version": 1,
        "ok": not others,
        "nodes": [it.as_json() for it in answers],
    }
    outcome = Outcome("fleet validate", tuple(map(_answer_case, answers)))
    return _deliver(options, not others, "".join(f"{it}\n" for it in lines), data, outcome)


def _why(it: Answer) -> str:
    findings = [] if it.report is None else [finding["title"] for finding in it.report.get("findings", ())]
    reasons = "; ".join(filter(None, (it.why, *findings)))
    return f", {reasons}" if reasons else ""


def _answer_case(it: Answer) -> Case:
    from envsolve.app.fleet.proof import State

    items = [
        Item(Level.WARNING, "differs-from-list", f"{it.node} differs from the list of nodes: {text}")
        for text in it.differs
    ]
    if it.state is not State.PASSED:
        items.append(Item(Level.ERROR, it.state.value, f"{it.node}: {it.state}{_why(it)}"))
    return Case(it.node, tuple(items), it.state.value, it.seconds)
