"""A subset of channels with the same results for the same requests, made of a small channel."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from scripts.channel_trimmer import channels
from scripts.channel_trimmer.channels import Place
from tests.conda.records import record

ROOT = Path(__file__).parents[2]
FIRST, SECOND = Place("first", "linux-64"), Place("second", "linux-64")
WHOLE = {
    FIRST: (
        record("app", "1.0", uploaded="2025-01-01T00:00:00"),
        record("app", "2.0", ["base >=2"]),
        record("base", "1.0"),
        record("lone", "0.1"),
    ),
    SECOND: (
        *(record("base", f"{major}.0") for major in (1, 2, 3, 10)),
        record("other", "1.0", ["missing"]),
        record("odd", "1%21.0"),
    ),
    Place("first", "noarch"): (record("data", "1.0", noarch="generic"),),
    Place("second", "noarch"): (),
}
"""The base of the first channel hides those of the second if both are queried, and is in no solution."""
ROOTS = """
[machine]
linux-64 = ["__glibc 2.28"]
[lists]
more = ["data"]
[alternatives]
"*" = 1
base = {bases}
[[case]]
name = "the newest is out of reach"
channels = ["first", "second"]
specs = ["app"]
with = "more"
[[case]]
name = "the second channel alone"
channels = ["second"]
specs = ["base <10"]
[[case]]
name = "no way"
channels = ["second"]
specs = ["other"]
[[case]]
name = "as of that day"
channels = ["first"]
exclude_newer = 2025-06-01
specs = ["app"]
"""


class Ran:
    """The result of the script: its output, its files, and its outcomes for the cases."""

    def __init__(self, directory: Path, *, bases: int) -> None:
        source, target = directory / "source", directory / "target"
        target.mkdir(parents=True)
        (target / "roots.toml").write_text(ROOTS.replace("{bases}", str(bases)), "utf-8")
        whole = {place: {it.file_name: it.fields for it in packages} for place, packages in WHOLE.items()}
        list(channels.write(source, whole))
        command = [sys.executable, "scripts/trim_channel.py", str(source), "--directory", str(target)]
        self.ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
        self.output = self.ran.stdout
        self.outcomes = json.loads((target / "outcomes.json").read_text("utf-8"))
        self.records = {place: set(records) for place, records in channels.read(target).items()}
        self.bytes = {path.relative_to(target): path.read_bytes() for path in target.rglob("*.*")}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, Ran]:
    """The records that remain with this many alternatives for one of the packages."""
    return {bases: Ran(tmp_path_factory.mktemp("trimmed"), bases=bases) for bases in (0, 2)}


def _files(place: Place, *packages: str) -> set[str]:
    found = {it.file_name: it for it in WHOLE[place] if f"{it.fields['name']} {it.fields['version']}" in packages}
    assert len(found) == len(packages)
    return set(found)


@pytest.mark.thorough
def test_records_needed_by_the_cases_are_preserved_with_the_newest_versions(ran: Mapping[int, Ran]) -> None:
    records = ran[2].records
    assert records[FIRST] == _files(FIRST, "app 1.0", "app 2.0", "base 1.0")
    assert records[SECOND] == _files(SECOND, "base 3.0", "base 10.0", "base 2.0")
    assert records[Place("first", "noarch")] == {"data-1.0-0.conda"}
    assert records[Place("second", "noarch")] == set()
    assert "0 more were needed" in ran[2].output


@pytest.mark.thorough
def test_records_that_only_cause_conflicts_are_preserved_once_missed(ran: Mapping[int, Ran]) -> None:
    assert "base-1.0-0.conda" in ran[0].records[FIRST]
    assert "0 more were needed" not in ran[0].output
    assert ran[0].outcomes == ran[2].outcomes


@pytest.mark.thorough
def test_the_outcomes_list_requested_records(ran: Mapping[int, Ran]) -> None:
    outcomes = ran[0].outcomes
    first = outcomes["the newest is out of reach"]
    assert (first["records"], first["asked"]) == (
        2,
        ["first/linux-64/app-1.0-0.conda", "first/noarch/data-1.0-0.conda"],
    )
    assert outcomes["the second channel alone"]["asked"] == ["second/linux-64/base-3.0-0.conda"]
    assert "other * cannot be installed" in outcomes["no way"]["unsolvable"]
    assert outcomes["as of that day"]["records"] == 1


def test_a_record_that_no_solver_reads_is_left_out_with_a_message(ran: Mapping[int, Ran]) -> None:
    assert "left out: second/linux-64/odd-1%21.0-0.conda\n" in ran[0].output


def test_a_record_of_another_package_than_its_file_is_left_out() -> None:
    program = """
from scripts.channel_trimmer.trim import is_fit
from tests.conda.records import record
import os, sys
made = record("alpha", "2.0", build="h0_1")
print(is_fit(made.file_name, made.fields), is_fit("alpha-1.0-h0_1.conda", made.fields), flush=True)
os._exit(0)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == "True False\n"
