"""The runner, the reduction of findings, and the inventory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.machine import examination, examine_machine, nearest_the_cause
from envsolve.diagnose.machine.examination import CHECKS
from envsolve.diagnose.machine.nearest import nearer
from envsolve.diagnose.machine.survey import Survey
from envsolve.errors import MatrixError
from envsolve.findings.catalogue import shipped
from envsolve.matrix import Matrix
from envsolve.model.finding import Finding, Severity
from tests.diagnose.machine.recorded import (
    MULTIARCH,
    TOOLKIT,
    WORKING,
    Case,
    Content,
    examined,
    library,
    survey_of,
)


def finding(identifier: str, severity: Severity = Severity.ERROR, **changes: object) -> Finding:
    made = Finding(identifier, identifier, severity, "It is so.", "Do it.")
    return made._replace(**changes)  # type: ignore[arg-type]  # fields by name


def ids(findings: tuple[Finding, ...]) -> list[str]:
    return [it.id for it in findings]


def test_a_failing_check_does_not_affect_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale_file(survey: Survey) -> Iterator[Finding]:
        yield finding("told-before")
        raise OSError(116, "Stale file handle", "/nfs/lib")

    def broken(survey: Survey) -> Iterator[Finding]:
        raise KeyError("surprise")

    def sound(survey: Survey) -> Iterator[Finding]:
        yield finding("sound")

    checks = (("the network disk", stale_file), ("a broken check", broken), ("a sound one", sound))
    monkeypatch.setattr(examination, "CHECKS", checks)
    findings = examine_machine(survey_of(tmp_path, Case())).findings
    assert ids(findings) == ["told-before", "sound", "check-not-made", "check-not-made"]
    assert [(it.severity, it.title) for it in findings[2:]] == [
        (Severity.INFO, "The network disk could not be checked"),
        (Severity.INFO, "A broken check could not be checked"),
    ]
    assert [it.evidence for it in findings[2:]] == [
        ("OSError: [Errno 116] Stale file handle: '/nfs/lib'",),
        ("KeyError: 'surprise'",),
    ]


def test_a_matrix_that_cannot_be_read_is_no_finding(tmp_path: Path) -> None:
    survey = survey_of(tmp_path, Case())
    survey.matrix = Matrix(tmp_path / "nowhere")
    with pytest.raises(MatrixError):
        examine_machine(survey)


def test_every_check_has_a_subject_of_its_own() -> None:
    assert len(dict(CHECKS)) == len({check for _, check in CHECKS}) == len(CHECKS)


def test_the_cause_stays_and_its_symptoms_go() -> None:
    given_findings = (finding("driver-library-missing"), finding("no-driver"), finding("launch-blocking"))
    assert ids(nearest_the_cause(given_findings)) == ["no-driver", "launch-blocking"]


def test_a_precise_finding_replaces_a_general_one() -> None:
    coarse = finding("cuda-on-library-path", Severity.WARNING)
    assert ids(nearest_the_cause((coarse, finding("library-path-unused", Severity.INFO)))) == ["library-path-unused"]


def test_a_hint_explains_no_error() -> None:
    given_findings = (finding("gpu-reserved-for-virtual-machine", Severity.INFO), finding("no-device"))
    assert ids(nearest_the_cause(given_findings)) == ["no-device", "gpu-reserved-for-virtual-machine"]


def test_a_damaged_file_explains_the_driver_only_where_it_is_the_drivers() -> None:
    other = finding("library-empty", evidence=("/x/libcudnn.so.9 is empty",))
    own = finding("library-empty", evidence=("/x/libcuda.so.1 is empty",))
    unusable = finding("driver-library-unusable")
    assert ids(nearest_the_cause((other, unusable))) == ["library-empty", "driver-library-unusable"]
    assert ids(nearest_the_cause((own, unusable))) == ["library-empty"]


def test_two_of_one_id_become_one_with_all_evidence() -> None:
    warned = finding("x", Severity.WARNING, evidence=("a", "b"), cause="From afar.")
    sure = finding("x", evidence=("b", "c"), cause="From near.")
    (joined,) = nearest_the_cause((warned, sure))
    assert (joined.severity, joined.cause, joined.evidence) == (Severity.ERROR, "From near.", ("a", "b", "c"))


def test_findings_about_different_things_stay_apart() -> None:
    assert len(nearest_the_cause((finding("x", about="pytorch"), finding("x", about="jax")))) == 2


EXPLAINED = {name: it.explains for name, it in nearer().items()}


def test_every_finding_in_the_table_exists() -> None:
    catalogue = shipped()
    known = {catalogue.entry(name).finding for name in catalogue}
    named = {name for first, it in nearer().items() for name in (first, *it.explains, *it.settles)}
    assert named <= known


def test_no_two_findings_explain_one_another() -> None:
    """Or both would be dropped, and the fault with them."""
    order = TopologicalSorter({name: set(explained) for name, explained in EXPLAINED.items()})
    assert set(EXPLAINED) <= set(order.static_order())


@given(st.lists(st.sampled_from([*EXPLAINED, *(it for ids in EXPLAINED.values() for it in ids)]), min_size=1))
def test_some_finding_always_remains(names: list[str]) -> None:
    remaining = nearest_the_cause(map(finding, names))
    assert remaining
    assert nearest_the_cause(remaining) == remaining


def test_the_most_severe_come_first(tmp_path: Path) -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "", "CUDA_LAUNCH_BLOCKING": "1", "CUDA_MODULE_LOADING": "EAGER"}
    findings = examined(tmp_path, Case(environ=environ, readings=WORKING)).findings
    assert [it.severity.value for it in findings] == ["error", "warning", "info"]


def test_bytes_that_are_no_text_become_escapes(tmp_path: Path) -> None:
    report = examined(tmp_path, Case(environ={"CUDA_HOME": "/opt/\udcff"}))
    text = json.dumps([[it.as_json() for it in report.findings], dict(report.inventory)], ensure_ascii=False)
    assert text.encode().decode() == text
    assert "\\udcff" in text


def test_the_inventory_is_json_and_shows_no_other_variable(tmp_path: Path) -> None:
    environ = {
        "LD_LIBRARY_PATH": "/opt/cuda/lib64",
        "CUDA_VISIBLE_DEVICES": "0",
        "CONDA_PREFIX": "/opt/conda",
        "HF_TOKEN": "hf_secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }
    files: dict[str, Content] = {
        "opt/cuda/lib64/libcudart.so.12.4.127": library("libcudart"),
        "opt/cuda/lib64/libcudart.so.12@": "libcudart.so.12.4.127",
        "opt/cuda/lib64/libcudart.so@": "libcudart.so.12",
        "opt/cuda/lib64/libcudnn.so.9": library("libcudnn"),
        "opt/cuda/lib64/libc.so": library("libc"),
        "opt/cuda/lib64/stubs/libcuda.so": library("libcuda"),
    }
    report = examined(tmp_path, Case(files, environ=environ))
    text = json.dumps(report.inventory)
    assert "secret" not in text + str(report.findings)
    assert report.inventory["variables"] == dict(list(environ.items())[:3])
    assert report.inventory["libraries"] == [
        {"name": "libcuda.so.1", "path": f"/{MULTIARCH}/libcuda.so.1", "version": "580.65.06", "origin": "ld.so.cache"},
        {
            "name": "libnvidia-ml.so.1",
            "path": f"/{MULTIARCH}/libnvidia-ml.so.1",
            "version": "580.65.06",
            "origin": "ld.so.cache",
        },
        {
            "name": "libcudart.so.12",
            "path": "/opt/cuda/lib64/libcudart.so.12",
            "version": "12.4.127",
            "origin": "LD_LIBRARY_PATH",
        },
        {
            "name": "libcudnn.so.9",
            "path": "/opt/cuda/lib64/libcudnn.so.9",
            "version": None,
            "origin": "LD_LIBRARY_PATH",
        },
    ]
    assert report.inventory["toolkits"] == [
        {"path": f"/{TOOLKIT}", "version": "12.4.1", "origin": "/usr/local"},
        {"path": "/opt/cuda", "version": "12.4", "origin": "/opt"},
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"version.json": '{"cuda": {"version": "12.4.1"}}'}, "12.4.1"),
        ({"version.txt": "CUDA Version 10.2.89\n"}, "10.2.89"),
        ({"include/cuda.h": "#ifndef X\n#define CUDA_VERSION 11080\n"}, "11.8"),
        ({"targets/x86_64-linux/include/cuda.h": "#define CUDA_VERSION 12060\n"}, "12.6"),
        ({"version.json": "{", "version.txt": "CUDA Version 10.2.89\n"}, "10.2.89"),
        ({"version.json": '{"cuda": {"version": "new"}}'}, None),
        ({"bin/nvcc.profile": "TOP = ."}, None),
        ({"lib64/libcudart.so.12.4.127": "", "lib64/libcudart.so.12@": "libcudart.so.12.4.127"}, "12.4"),
    ],
)
def test_a_toolkit_says_its_version(files: dict[str, Content], version: str | None, tmp_path: Path) -> None:
    files = {"version.json": None, "lib64/libcudart.so.12.4.1": None, "lib64/libcudart.so.12@": None, **files}
    case = Case({f"{TOOLKIT}/{name}": text for name, text in files.items()})
    assert examined(tmp_path, case).inventory["toolkits"] == [
        {"path": f"/{TOOLKIT}", "version": version, "origin": "/usr/local"}
    ]
