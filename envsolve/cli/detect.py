"""``envsolve detect``: the driver and GPUs of this machine, as text or as the host file that ``--host`` reads."""

from __future__ import annotations

import os
from typing import Any

import click

from envsolve.cli.options import matrix_of, matrix_option, option, output_option, output_options
from envsolve.cli.output import deliver, json_text
from envsolve.cli.report import note_each
from envsolve.model.host import Host


@click.command(short_help="Print the driver and the GPUs of this machine.")
@option("--json", "as_json", is_flag=True, help="Print the host file that --host reads.")
@output_option
@matrix_option
@output_options
def detect(**options: Any) -> int:
    """Print the driver and GPUs of this machine, and the source of each fact. Exits 0 with and without a GPU.

    \b
    Examples:
      envsolve detect
      envsolve detect --json -o node1.json
    """
    from envsolve.app.request.hosts import detected_host
    from envsolve.host.host_file import host_as_json

    host = detected_host(matrix_of(options), os.environ, thorough=True)
    as_json = options["as_json"] or str(options["output"]).endswith(".json")
    text = json_text(host_as_json(host)) if as_json else _table(host)
    deliver(text, options["output"])
    if as_json:
        note_each(host.notes, options)
    return 0


def _table(host: Host) -> str:
    rows = [
        ("platform", host.platform.value, host.origin.get("platform", "")),
        ("status", host.status.value, ""),
        ("driver", str(host.driver or "none"), host.origin.get("driver", "")),
        ("driver CUDA", str(host.driver_cuda or "none"), host.origin.get("driver_cuda", "")),
        ("glibc", str(host.glibc or "none"), host.origin.get("glibc", "")),
    ]
    for gpu in host.gpus:
        count = f"{gpu.count} x " if gpu.count > 1 else ""
        capability = f"compute capability {gpu.compute_capability or 'unknown'}"
        mig = ", MIG" if gpu.mig else ""
        rows.append(("GPU", f"{count}{gpu.name or 'unnamed'} ({capability}{mig})", host.origin.get("gpus", "")))
    lines = [f"{name + ':':<13} {value}" + (f"  [{origin}]" if origin else "") for name, value, origin in rows]
    lines += [f"note:         {text}" for text in host.notes]
    lines += [_reading(host, number) for number in range(len(host.readings))]
    return "".join(f"{line}\n" for line in lines)


def _reading(host: Host, number: int) -> str:
    reading = host.readings[number]
    facts = [f"driver {reading.driver}"] if reading.driver is not None else []
    facts += [f"CUDA {reading.driver_cuda}"] if reading.driver_cuda is not None else []
    if reading.gpus is not None:
        count = sum(gpu.count for gpu in reading.gpus)
        facts.append("1 GPU" if count == 1 else f"{count} GPUs")
    facts += [reading.problem.text] if reading.problem is not None else []
    return f"  source {reading.source}: {', '.join(facts) or 'no result'}"
