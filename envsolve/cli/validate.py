"""``envsolve validate``: test an environment by running kernels in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli import known_values
from envsolve.cli.interrupts import interruptible
from envsolve.cli.options import (
    Command,
    FileName,
    Parsed,
    environment_options,
    matrix_directory,
    matrix_option,
    option,
    output_options,
    require_one_environment,
)
from envsolve.cli.output import deliver, deliver_json
from envsolve.cli.output_formats import junit, output_format, output_format_options, rendered
from envsolve.cli.report import Palette, note_each
from envsolve.errors import Hint, UsageError

if TYPE_CHECKING:
    from envsolve.app.environment.validating import ValidateRequest
    from envsolve.app.status.results import Validation

_LONGEST = 7 * 24 * 3600.0
_MOST_GPUS = 1023


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(f"{text!r} is not a number of seconds up to {_LONGEST:.0f} (a week)")
    return seconds


def _report_file(text: str) -> str:
    if text in ("", "-"):
        raise ValueError("a report needs a file: the findings go to standard output")
    return text


def _device(text: str) -> tuple[str, int | None]:
    """``auto``, ``cpu`` or ``cuda``, and the index in ``cuda:INDEX``. Raises ValueError for anything else."""
    device, colon, index = text.partition(":")
    right = device in ("auto", "cpu", "cuda") and (not colon or (device == "cuda" and index.isdecimal()))
    if not right or int(index or 0) > _MOST_GPUS:
        raise ValueError(f"{text!r} is not auto, cpu, cuda, or a GPU such as cuda:1; `nvidia-smi -L` lists them")
    return device, int(index) if colon else None


@click.command(cls=Command, short_help="Test an environment by running kernels in it.")
@environment_options
@click.option(
    "-f",
    "--framework",
    "frameworks",
    multiple=True,
    metavar="NAME",
    type=Parsed("name", str),
    shell_complete=known_values.frameworks,
    help="Test only this framework. Repeatable; default: every installed one.",
)
@option(
    "--device",
    "devices",
    multiple=True,
    metavar="DEVICE",
    type=Parsed("device", _device),
    default=("auto",),
    show_default="auto",
    shell_complete=known_values.devices,
    help=(
        "What to test: auto (cuda if the environment or the machine has NVIDIA components), cpu, cuda (the first "
        "visible GPU) or cuda:N, by the index in nvidia-smi, or in CUDA_VISIBLE_DEVICES if set. cuda:N is repeatable."
    ),
)
@option("--all-gpus", is_flag=True, help="Test every visible GPU.")
@option(
    "--burn",
    metavar="SECONDS",
    type=Parsed("seconds", _seconds),
    default="0",
    help="Repeat and compare matrix products on each GPU for this time, to find unreliable hardware.",
)
@option(
    "--timeout",
    metavar="SECONDS",
    type=Parsed("seconds", _seconds),
    default=None,
    help="Time limit for each framework; default: 120, or 600 if its kernels are compiled first.",
)
@output_format_options
@option("--junit", metavar="FILE", type=FileName("file", _report_file), help="Also write a JUnit XML report to FILE.")
@option("--no-progress", is_flag=True, help="Do not show progress.")
@matrix_option
@output_options
def validate(**options: Any) -> int:
    """Test an environment: run kernels in it, compare their results, and see what was loaded.

    Exits 1 if a probe failed. Each finding says what is wrong and what to do about it.

    \b
    Examples:
      envsolve validate
      envsolve validate --prefix .venv --device cuda --json
    """
    from envsolve.app.environment.validating import validation_of

    require_one_environment(options)
    _require_one_device(options["devices"], all_gpus=options["all_gpus"])
    _require_place_for(options["junit"])
    with interruptible():
        validation = validation_of(_request(options), os.environ)
    return deliver_validation(validation, options)


def _require_one_device(devices: Sequence[tuple[str, int | None]], *, all_gpus: bool) -> None:
    """Raise UsageError if the values of --device contradict each other or --all-gpus."""
    if len({device for device, _ in devices}) > 1 or len({index is None for _, index in devices}) > 1:
        raise UsageError("contradictory-options", "only cuda:N may be repeated in --device")
    if all_gpus and devices[0] not in (("auto", None), ("cuda", None)):
        raise UsageError("contradictory-options", "--all-gpus and --device both say what to test: give only one")


def _require_place_for(report: str | None) -> None:
    """Raise UsageError for a report that cannot be written, before anything is tested."""
    if report is None:
        return
    directory = Path(report).absolute().parent
    if not directory.is_dir() or not os.access(directory, os.W_OK) or Path(report).is_dir():
        hint = Hint("choose a file for --junit in an existing, writable directory")
        raise UsageError("output-not-writable", f"{report} cannot be written", hints=(hint,))


def deliver_validation(validation: Validation, options: dict[str, Any]) -> int:
    """Print the results and write the requested report; returns the exit code."""
    from envsolve.cli.validation_text import as_outcome, as_text

    format_name = output_format(options)
    if format_name == "text":
        deliver(as_text(validation, full=options["verbose"] > 0), None, color=Palette.wanted())
    elif format_name == "json":
        deliver_json(validation.as_json())
    else:
        deliver(rendered(as_outcome(validation), format_name), None)
    if options["junit"] is not None:
        deliver(junit(as_outcome(validation)), options["junit"])
    note_each(validation.report.notes, options)
    return 0 if validation.report.ok else 1


def _request(options: dict[str, Any]) -> ValidateRequest:
    from envsolve.app.environment.validating import ValidateRequest
    from envsolve.cli.progress import Progress

    indices = tuple(dict.fromkeys(index for _, index in options["devices"] if index is not None))
    return ValidateRequest(
        prefix=options["prefix"],
        python=options["python"],
        frameworks=tuple(dict.fromkeys(options["frameworks"])),
        device=options["devices"][0][0],
        gpus="all" if options["all_gpus"] else indices or None,
        burn=options["burn"],
        timeout=options["timeout"],
        matrix_directory=matrix_directory(options),
        progress=Progress.of(options, "validating"),
    )
