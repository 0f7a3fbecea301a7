"""Results of the Python API as notebooks show them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import envsolve
from envsolve.app.status.html_table import html_table
from envsolve.app.status.results import DetectedHost, Diagnosis, Explanation, LockFiles, Status, Validation
from envsolve.app.status.status import FileStatus, Verdict
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Gpu, Host, Platform
from envsolve.model.note import Note
from envsolve.validation.report import ProbeReport, Report
from envsolve.validation.report import Status as ProbeStatus

HOSTILE = '<script>alert(1)</script> & "it"'
HOST = Host(Platform.LINUX_64)
FINDING = Finding("some-finding", HOSTILE, Severity.ERROR, HOSTILE, "fix it", ("type this",))


def tables(html: str) -> list[tuple[str, list[list[str]]]]:
    """The caption and rows of each table; raises if the HTML is not well-formed."""
    root = ET.fromstring(f"<all>{html.replace('<br>', '<br/>')}</all>")  # noqa: S314 - of this module
    return [
        (
            "".join(table[0].itertext()),
            [["\n".join(cell.itertext()) for cell in row] for row in table.iter("tr")],
        )
        for table in root
    ]


def test_a_text_table_has_a_title_a_header_and_rows() -> None:
    ((title, rows),) = tables(html_table(HOSTILE, ("a", "b"), [(HOSTILE, None), (1, "two\nlines")]))
    assert (title, rows) == (HOSTILE, [["a", "b"], [HOSTILE, ""], ["1", "two\nlines"]])


@pytest.mark.thorough
def test_an_environment_is_a_table_for_each_platform() -> None:
    made = envsolve.solve("pytorch", gpus="8.6", driver="580.65.06", platforms=["linux-64", "win-64"])
    shown = tables(made._repr_html_())
    assert [re.sub(r"[0-9.]+", "N", title) for title, _ in shown] == [
        "linux-N: Python N, CUDA N, NVIDIA driver N or newer",
        "win-N: Python N, CUDA N, NVIDIA driver N or newer",
    ]
    release = made.solutions[0].choices[0].release
    assert shown[0][1][1] == [release.package, str(release.version), release.build, release.source.value]


def test_an_environment_without_a_gpu_says_so() -> None:
    made = envsolve.solve("pytorch", gpus="none", python="3.12", platforms="linux-64")
    assert tables(made._repr_html_())[0][0] == "linux-64: Python 3.12, CPU"


def test_a_lock_is_a_table_of_its_packages() -> None:
    stack: dict[str, object] = {"host": {"platform": "linux-64"}, "python": "3.12", "cuda": None, "frameworks": []}
    text = json.dumps({**stack, "packages": [{"name": "numpy", "version": "2.3.0", "manager": "pip"}]})
    ((_, rows),) = tables(LockFiles((), (), (), text)._repr_html_())
    assert rows[1:] == [["numpy", "2.3.0", "", "pip"]]


@pytest.mark.parametrize(
    "result",
    [Diagnosis(HOST, (FINDING,), {}, (), ()), Explanation((FINDING,), (), ())],
    ids=["doctor", "explain"],
)
def test_findings_are_a_table_with_the_commands(result: Diagnosis | Explanation) -> None:
    ((title, rows),) = tables(result._repr_html_())
    assert title == "findings: 1"
    assert rows[1:] == [["error", HOSTILE, HOSTILE, "fix it\ntype this"]]


def test_a_validation_is_a_table_of_probes_and_one_of_findings() -> None:
    probe = ProbeReport("matmul", ProbeStatus.FAIL, 1.234, HOSTILE, (FINDING,))
    shown = tables(Validation(Report(Path("/python"), (probe,), ()), "cuda", HOST)._repr_html_())
    assert shown[0] == (
        "/python on cuda: not proven",
        [["probe", "status", "seconds", "detail"], ["matmul", "fail", "1.23", HOSTILE]],
    )
    assert shown[1][0] == "findings: 1"


def test_a_status_is_a_table_of_files() -> None:
    file = FileStatus("<a>.yml", "linux-64", Verdict.STALE, ("pytorch 2.9",), (Note("a", "x"), Note("b", HOSTILE)))
    ((title, rows),) = tables(Status((file,))._repr_html_())
    assert title == "ok: False"
    assert rows[1:] == [["<a>.yml", "linux-64", "stale", "pytorch 2.9", f"x\n{HOSTILE}"]]


def test_a_machine_is_a_table_of_its_facts_and_gpus() -> None:
    gpu = Gpu("<RTX>", ComputeCapability(8, 6), count=2)
    host = DetectedHost(Platform.LINUX_64, gpus=(gpu,), origin={"gpus": "nvml"})
    ((title, rows),) = tables(host._repr_html_())
    assert title == "linux-64: ready"
    assert rows[1] == ["driver", "", ""]
    assert rows[-1] == ["2 x <RTX>", "8.6", "nvml"]
