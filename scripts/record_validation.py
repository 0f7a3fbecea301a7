"""Validate environments on this machine and write down what was seen, as Markdown on standard output.

    python scripts/record_validation.py [--device cpu] [-f NAME] PYTHON... > docs/validation-report.md

Each PYTHON is the interpreter of an environment. Everything in the report is from `envsolve validate --json`; where
this machine has no NVIDIA GPU, it says so first.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NO_GPU = (
    "**No NVIDIA GPU was available.** Nothing below ran on one: the driver's kernel was only run against the fake\n"
    "driver of the tests, and frameworks computed on the CPU. What a real GPU says is still to be recorded, with\n"
    "`scripts/record_validation.py`."
)


def main() -> int:
    """Print the report; returns 0 if every environment passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--device", choices=["auto", "cuda", "cpu"], default="auto")
    parser.add_argument("-f", "--framework", action="append", default=[], help="only this one; can be repeated")
    given = parser.parse_args()
    answers = [validated(python, given.device, given.framework) for python in given.pythons]
    print("\n".join(report(answers)))
    return 0 if all(answer["ok"] for answer in answers) else 1


def validated(python: str, device: str, frameworks: Sequence[str]) -> dict[str, Any]:
    """The output of `envsolve validate` for an environment, on every GPU."""
    command = [sys.executable, "-m", "envsolve", "validate", "--json", "--all-gpus", "--device", device]
    command += ["--python", python, *(word for name in frameworks for word in ("-f", name))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    answer: dict[str, Any] = json.loads(done.stdout)
    if "error" in answer:
        raise SystemExit(f"{python}: {answer['error']['message']}")
    return answer


def report(answers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The lines of the report."""
    yield "# What validation was seen to do"
    yield ""
    yield from machine(answers[0]["host"])
    for answer in answers:
        yield from environment(answer)


def machine(host: Mapping[str, Any]) -> Iterator[str]:
    """The machine: its GPUs and driver, or that there is none."""
    if not host["gpus"]:
        yield _NO_GPU
    for gpu in host["gpus"]:
        yield f"- {gpu['count']} x {gpu['name']}, compute capability {gpu['compute_capability']}"
    yield ""
    driver = f"NVIDIA driver {host['driver']} (CUDA {host['driver_cuda']})" if host["driver"] else "no NVIDIA driver"
    yield f"Machine: {host['platform']}, glibc {host['glibc']}, {driver}."


def environment(answer: Mapping[str, Any]) -> Iterator[str]:
    """One environment: its probes, and the result of each operation."""
    frameworks = [probe for probe in answer["probes"] if probe.get("measured", {}).get("operations")]
    versions = (f"{it['name'].partition(' ')[0]} {it['measured']['version']}" for it in frameworks)
    named = ", ".join(dict.fromkeys(versions)) or "no framework"
    yield ""
    place = "GPU" if answer["device"] == "cuda" else "CPU"
    yield f"## {named} on the {place}: {'proven' if answer['ok'] else 'not proven'}"
    yield ""
    yield "| probe | | seconds | what was seen |"
    yield "|---|---|---|---|"
    for probe in answer["probes"]:
        yield f"| {probe['name']} | {probe['status']} | {probe['seconds']:.2f} | {cell(probe['detail'])} |"
    for probe in frameworks:
        yield from operations(probe["name"], probe["measured"])
    for finding in answer["findings"]:
        yield ""
        yield f"- {finding['severity']} `{finding['id']}`: {cell(finding['cause'])}"


def operations(name: str, measured: Mapping[str, Any]) -> Iterator[str]:
    """The operations of one framework."""
    yield ""
    yield (
        f"{name}: import {measured['import_seconds']:.2f} s, "
        f"first kernel {measured.get('first_kernel_seconds', 0):.2f} s, "
        f"built for CUDA {measured['built_cuda'] or 'none'}"
    )
    yield ""
    yield "| operation | through | | largest error | allowed | seconds |"
    yield "|---|---|---|---|---|---|"
    for it in measured["operations"]:
        verdict = "not supported" if it["ok"] is None else "right" if it["ok"] else "wrong"
        error = "" if it["max_error"] is None else f"{it['max_error']:.1e}"
        through = it["proves"] if measured["asked"] == "cuda" else "the CPU"
        yield f"| {it['name']} | {through or ''} | {verdict} | {error} | {it['tolerance']:g} | {it['seconds']:.4f} |"


def cell(text: str) -> str:
    """``text`` as one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
