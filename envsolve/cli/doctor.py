"""``envsolve doctor``: check this machine and an environment for everything that breaks GPU stacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.interrupts import interruptible
from envsolve.cli.options import (
    environment_options,
    matrix_directory,
    matrix_option,
    option,
    output_option,
    output_options,
    require_one_environment,
)
from envsolve.cli.output import deliver, json_text
from envsolve.cli.output_formats import Case, Outcome, finding_item, output_format, output_format_options, rendered
from envsolve.cli.report import Palette, note_each
from envsolve.errors import Hint, UsageError

if TYPE_CHECKING:
    from envsolve.app.environment.doctoring import Diagnosed, DoctorRequest


@click.command(short_help="Check this machine and an environment for problems.")
@environment_options
@option("--fix-plan", is_flag=True, help="Print an environment that fixes the problems, instead of the findings.")
@option("--report", is_flag=True, help="Print a Markdown report without names and tokens, to paste into an issue.")
@output_format_options
@output_option
@option("--no-progress", is_flag=True, help="Do not show progress.")
@matrix_option
@output_options
def doctor(**options: Any) -> int:
    """Check driver, devices, toolkits, variables, libraries and packages; exit 1 if something is broken.

    This changes nothing and imports no framework. Use `envsolve validate` to run them.

    \b
    Examples:
      envsolve doctor --prefix .venv
      envsolve doctor --fix-plan
    """
    from envsolve.app.environment.doctoring import diagnose

    require_one_environment(options)
    if sum((options["fix_plan"], output_format(options) != "text", options["report"])) > 1:
        raise UsageError(
            "contradictory-options", "--fix-plan, --report and --output-format are different outputs: give only one"
        )
    request = _request(options)
    _leave_what_is_gone()
    with interruptible():
        diagnosed = diagnose(request, os.environ)
        if options["fix_plan"]:
            from envsolve.app.environment.fix_plan import fix_plan
            from envsolve.lockfile.own_file import refuse_to_overwrite

            file = None if options["output"] in (None, "-") else options["output"]
            if file is not None:
                refuse_to_overwrite(Path(file), Hint("choose another file name"))
            text, notes = fix_plan(diagnosed, request, os.environ, file=file)
            deliver(text, file)
            note_each((*diagnosed.notes, *notes), options)
            return 0
    deliver(_text(diagnosed, options), options["output"], color=Palette.wanted())
    note_each(diagnosed.notes, options)
    return 0 if diagnosed.ok else 1


def _text(diagnosed: Diagnosed, options: dict[str, Any]) -> str:
    if options["report"]:
        from envsolve.cli.doctor_report import markdown_report

        return markdown_report(diagnosed, os.environ)
    format_name = output_format(options)
    if format_name == "json":
        return json_text(diagnosed.result.as_json())
    if format_name != "text":
        return rendered(_as_outcome(diagnosed), format_name)
    text = _as_text(diagnosed, full=options["verbose"] > 0)
    return text if options["output"] in (None, "-") else click.unstyle(text)


def _leave_what_is_gone() -> None:
    """Change to the root if the current directory was removed: nothing can be read from there."""
    try:
        os.getcwd()  # noqa: PTH109 - as the system reports it
    except OSError:
        os.chdir("/")


def _request(options: dict[str, Any]) -> DoctorRequest:
    from envsolve.app.environment.doctoring import DoctorRequest
    from envsolve.cli.progress import Progress

    return DoctorRequest(
        prefix=options["prefix"],
        python=options["python"],
        matrix_directory=matrix_directory(options),
        progress=Progress.of(options, "checking"),
    )


def _as_outcome(diagnosed: Diagnosed) -> Outcome:
    """One case for each check, with its findings."""
    cases = tuple(Case(name, tuple(map(finding_item, found))) for name, found in diagnosed.by_check())
    return Outcome("envsolve doctor", cases, click.unstyle(_as_text(diagnosed, full=False)))


def _as_text(diagnosed: Diagnosed, *, full: bool) -> str:
    from envsolve.cli.finding_text import findings_of_check, printable

    lines = list(findings_of_check(diagnosed.findings, full=full))
    if full:
        lines += [*map(printable, _origins(diagnosed)), ""]
    return "".join(f"{line}\n" for line in (*lines, printable(_conclusion(diagnosed))))


def _origins(diagnosed: Diagnosed) -> Iterator[str]:
    """How driver, GPUs, environment and variables were found."""
    host, looked, inventory = diagnosed.host, diagnosed.environment, diagnosed.inventory
    yield f"driver: {host.driver or 'none'} [{host.origin.get('driver', 'not reported')}]"
    yield f"driver CUDA: {host.driver_cuda or 'none'} [{host.origin.get('driver_cuda', 'not reported')}]"
    for gpu in host.gpus:
        count = f"{gpu.count} x " if gpu.count > 1 else ""
        capability = gpu.compute_capability or "compute capability unknown"
        yield f"GPU: {count}{gpu.name or 'unnamed'} ({capability}) [{host.origin.get('gpus', '')}]"
    if not host.gpus:
        yield f"GPU: none [{host.origin.get('gpus', 'not reported')}]"
    yield f"environment: {inventory.get('prefix') or 'none'} [{looked.origin}]"
    yield f"Python: {looked.python or 'unknown'} [{'its interpreter' if looked.runs else 'its files'}]"
    values = inventory.get("variables")
    for name, origin in looked.variables:
        value = values.get(name) if isinstance(values, dict) and origin == "the shell" else None
        yield f"variable: {name}{'' if value is None else f'={value}'} [{origin}]"


def _conclusion(diagnosed: Diagnosed) -> str:
    counts = {
        severity: sum(it.severity == severity for it in diagnosed.findings) for severity in ("error", "warning", "info")
    }
    parts = [f"{count} {name}{'s' if count > 1 and name != 'info' else ''}" for name, count in counts.items() if count]
    where = str(diagnosed.inventory.get("prefix") or "this machine")
    whole = f"{where}: {', '.join(parts)}" if parts else f"{where}: no problems found by static checks"
    proof = diagnosed.environment.proof
    if proof is None:
        return f"{whole}; it has no Python of its own that runs, so no kernel was run"
    if not diagnosed.frameworks and not diagnosed.host.gpus:
        way = "`envsolve --framework pytorch` prints an environment for this machine"
        return f"{whole}; it has no framework to test: {way}"
    return f"{whole}; run `{proof}` to test the GPU"
