"""What texts mean. The cases are real: reports of users, and what the frameworks said here; each names its source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from envsolve.findings.catalogue import shipped
from envsolve.model.finding import Finding
from envsolve.validation.places import facts_of
from envsolve.validation.symptoms import WEAK, sightings, symptoms

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "cases" / "symptoms.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['source']}: {case['text'][:40]}")
def test_a_text_leads_to_its_findings_the_cause_first(case: dict[str, Any]) -> None:
    assert [it.finding for it in sightings(case["text"])] == case["findings"]


@pytest.mark.parametrize("identifier", sorted({it.finding for it in symptoms()} | WEAK))
def test_every_finding_of_the_table_is_explained(identifier: str) -> None:
    found = _found(identifier)
    assert found.id == identifier
    assert found.title
    assert found.fix
    assert "{" not in "".join((found.title, found.cause, found.fix, *found.commands))
    assert found.cause.endswith(". This is told.")
    assert found.evidence == ("a line",)
    assert found.about == "cupy"


def _found(identifier: str) -> Finding:
    facts = facts_of(None, name="cupy", framework="CuPy")
    return shipped().entry(identifier).as_finding(facts, ("This is told.",), ("a line",), about="cupy")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("The NVIDIA driver on your system is too old (found version 12080)", "The driver supports CUDA up to 12.8."),
        ("OSError: libcurand.so.10: cannot open shared object file: No such file", "It is libcurand.so.10."),
        ('OSError: [WinError 126] x. Error loading "C:\\env\\torch\\lib\\cudnn64_9.dll" or one of its dependencies.',
         "It is cudnn64_9.dll, or a library that this one needs."),
        ("Loaded runtime CuDNN library: 8.0.4 but source was compiled with: 8.1.0.  CuDNN library needs",
         "cuDNN 8.0.4 was loaded, and the build needs 8.1.0 or newer of the same major version."),
        ("kernel version 470.182.3 does not match DSO version 520.61.5 -- cannot find working devices",
         "The kernel module is 470.182.3, libcuda is 520.61.5."),
        ("libtorch.so: undefined symbol: ncclCommRegister", "The loader looks for ncclCommRegister."),
    ],
)  # fmt: skip
def test_what_a_line_holds_is_told(line: str, told: str) -> None:
    assert sightings(line)[0].told == told


def test_a_line_is_cut_down_around_what_it_says() -> None:
    line = "x" * 500 + " libcudnn.so.9: cannot open shared object file " + "y" * 500
    seen = sightings(line)[0].line
    assert "libcudnn.so.9: cannot open" in seen
    assert seen.startswith("…")
    assert seen.endswith("…")
    assert len(seen) < 310


def test_lines_that_do_no_harm_tell_of_nothing() -> None:
    assert sightings("Could not load dynamic library 'libnvinfer.so.7'; dlerror: libnvinfer.so.7: cannot open") == ()
    assert sightings("Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.") == ()
    assert sightings("") == ()


def test_colours_do_not_hide_a_text() -> None:
    assert sightings("\x1b[1;31mOSError: \x1b[mlibcublas.so.12: cannot open shared object file")[0].line.startswith(
        "OS"
    )
