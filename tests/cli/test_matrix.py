"""Queries of the matrix: what is listed, what is shown next to a row, and which data is used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envsolve.frameworks import FRAMEWORKS
from tests.conftest import Envsolve
from tests.matrix.tiny import tiny_matrix

SNAPSHOT = Path(__file__).parents[1] / "snapshots" / "matrix-show.txt"
CONTRACT = (
    *("framework", "version", "source", "platform", "build", "package", "pythons", "cuda", "cudnn"),
    *("compute_capabilities", "ptx", "minimum_driver", "full_driver", "evidence"),
)
pytestmark = pytest.mark.usefixtures("shipped_matrix_is_read_once")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A directory with a tiny matrix."""
    directory = tmp_path / "matrix"
    directory.mkdir()
    tiny_matrix(directory)
    return directory


def listed(envsolve: Envsolve, *arguments: str) -> list[dict[str, Any]]:
    """The builds in the output of a list."""
    result = envsolve("matrix", "list", *arguments, "--json")
    assert result.code == 0, result.err
    rows: list[dict[str, Any]] = json.loads(result.out)["releases"]
    return rows


def test_the_overview_counts_builds_by_source_and_those_read_from_wheels(envsolve: Envsolve) -> None:
    answer = json.loads(envsolve("matrix", "list", "--json").out)
    assert [row["framework"] for row in answer["frameworks"]] == sorted(FRAMEWORKS)
    assert answer["matrix_date"] >= "2026-11-20"
    for row in answer["frameworks"]:
        assert sum(row["sources"].values()) == row["builds"] >= row["wheels_read"] > 0
    lines = envsolve("matrix", "list").out.splitlines()
    assert lines[0].split()[:3] == ["framework", "versions", "builds"]
    assert len(lines) == 1 + len(FRAMEWORKS)


def before(major: int, row: dict[str, Any]) -> bool:
    return int(row["cuda"].partition(".")[0]) < major


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "holds"),
    [
        (["--cuda", "12.*"], lambda row: row["cuda"].startswith("12.")),
        (
            ["--cuda", "<13", "-f", "torch"],
            lambda row: before(13, row) and row["framework"] == "pytorch",
        ),
        (["--cuda", "11.8"], lambda row: row["cuda"] == "11.8"),
        (["--python", "3.11"], lambda row: "3.11" in row["pythons"]),
        (["--python", ">=3.14"], lambda row: {"3.14", "3.15"} & set(row["pythons"])),
        (["--source", "pypi", "--source", "pytorch"], lambda row: row["source"] in ("pypi", "pytorch")),
        (["--platform", "win-64"], lambda row: row["platform"] == "win-64"),
        (["-f", "jax", "-f", "tf>=2.20"], lambda row: row["framework"] in ("jax", "tensorflow")),
        (["--gpu", "none"], lambda row: row["cuda"] is None),
        (["--gpu", "8.6"], lambda row: row["runs_as"]["8.6"]),
        (["--gpu", "GTX 1080 Ti", "--gpu", "12.0"], lambda row: set(row["runs_as"]) == {"6.1", "12.0"}),
        (["--driver", "535.183.01", "--platform", "linux-64"], lambda row: before(13, row)),
    ],
)
def test_a_filter_selects_matching_builds(arguments: list[str], holds: Any, envsolve: Envsolve) -> None:
    rows = listed(envsolve, *arguments)
    assert rows
    assert all(holds(row) for row in rows)


def test_a_list_is_also_a_page_with_the_evidence_of_each_build(envsolve: Envsolve) -> None:
    arguments = ("matrix", "list", "-f", "pytorch==2.14.1", "--cuda", "12.6")
    page, lines = envsolve(*arguments, "--output-format", "html").out, envsolve(*arguments).out.splitlines()[1:]
    rows = page[page.index("<tbody>") :].split("<tr>")[1:]
    assert len([it for it in lines if it.startswith("pytorch")]) == len(rows)
    assert all("<details><summary>sources</summary>" in it for it in rows)
    assert "https://" in rows[0] or ".whl" in rows[0]
    assert '<th scope="row">pytorch</th><td>2.14.1</td>' in rows[0]


def test_the_overview_is_also_a_page(envsolve: Envsolve) -> None:
    page = envsolve("matrix", "list", "--output-format", "html").out
    listed = json.loads(envsolve("matrix", "list", "--output-format", "json").out)["frameworks"]
    assert page.count('<th scope="row">') == len(listed)
    assert all(f'<th scope="row">{it["framework"]}</th>' in page for it in listed)


@pytest.mark.thorough
def test_all_builds_are_listed_by_framework_with_the_newest_first(envsolve: Envsolve) -> None:
    rows = listed(envsolve, *(word for name in sorted(FRAMEWORKS) for word in ("-f", name)))
    overview = json.loads(envsolve("matrix", "list", "--json").out)["frameworks"]
    assert len(rows) == sum(row["builds"] for row in overview)
    assert [row["framework"] for row in rows] == sorted(row["framework"] for row in rows)
    assert rows[0]["version"] == overview[0]["newest"]


def test_a_driver_runs_machine_code_from_the_floor_and_ptx_only_with_full_support(
    envsolve: Envsolve, own: Path
) -> None:
    arguments = ("-f", "thing==2.0", "--gpu", "A100", "--matrix", str(own), "--driver")
    (row,) = listed(envsolve, *arguments, "525.60.13")
    assert row["runs_as"] == {"8.0": "sm_80"}
    tiny_matrix(own, "thing", 'sass = ["8.0", "9.0", "12.0f"]\nptx = ["12.0"]', 'sass = ["9.0"]\nptx = ["7.5"]')
    assert envsolve("matrix", "list", *arguments, "525.60.13").code == 1
    (row,) = listed(envsolve, *arguments, "575.51.03")
    assert row["runs_as"] == {"8.0": "compute_75"}


def test_a_list_has_no_duplicate_lines(envsolve: Envsolve) -> None:
    lines = envsolve("matrix", "list", "-f", "tensorflow", "--gpu", "RTX 3090").out.splitlines()
    assert len(lines) == len(set(lines)) > 10


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ["--gpu", "K80", "--driver", "535.183.01"],
        ["--gpu", "12.0", "-f", "tensorflow==2.10.*"],
        ["--gpu", "V100", "--cuda", "13.*"],
        ["--cuda", "12.7"],
    ],
)
def test_no_match_is_a_clear_refusal(arguments: list[str], envsolve: Envsolve) -> None:
    result = envsolve("matrix", "list", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: no-such-build\n")
    assert "\nhint: " in result.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "--gpu", "RTX 3900"], "unknown-gpu"),
        (["list", "--gpu", "none", "--driver", "580"], "contradictory-options"),
        (["list", "--gpu", "8.7", "--platform", "win-64"], "gpu-not-on-platform"),
        (["list", "--source", "warez"], "usage"),
        (["list", "-f", "pytroch"], "unknown-framework"),
        (["show", "cuda", "--gpu", "8.6"], "contradictory-options"),
        (["show", "cuda>>12"], "invalid-framework"),
        (["show", "cuda12"], "invalid-framework"),
        (["show", "cuda 12"], "invalid-framework"),
        (["show", "cudnn9"], "invalid-framework"),
        (["show", "cudnn-9"], "invalid-framework"),
        (["show", "cuda[x]==12"], "invalid-framework"),
    ],
)
def test_invalid_arguments_are_a_usage_error(arguments: list[str], code: str, envsolve: Envsolve) -> None:
    result = envsolve("matrix", *arguments)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {code}\n")


@pytest.mark.thorough
def test_variables_for_requests_do_not_filter_the_list(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = envsolve("matrix", "list").out
    monkeypatch.setenv("ENVSOLVE_GPU", "RTX 3090")
    monkeypatch.setenv("ENVSOLVE_CUDA", "12.*")
    monkeypatch.setenv("UV_CUDA_DRIVER_VERSION", "470.256.02")
    assert envsolve("matrix", "list").out == whole
    assert any(row["cuda"] >= "13" for row in listed(envsolve, "--gpu", "8.6"))


@pytest.mark.thorough
def test_the_machine_can_be_a_filter(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "12.4")
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA_ARCH", "8.6")
    rows = listed(envsolve, "--gpu", "auto", "-f", "pytorch")
    assert {row["cuda"].partition(".")[0] for row in rows} == {"11", "12"}
    assert len({row["platform"] for row in rows}) == 1


def test_show_prints_the_contract_and_the_rest(envsolve: Envsolve, own: Path) -> None:
    answer = json.loads(envsolve("matrix", "show", "thg", "--json", "--matrix", str(own)).out)
    newest, other, cpu = answer["releases"]
    assert tuple(newest)[: len(CONTRACT)] == CONTRACT
    assert newest["evidence"] == [{"kind": "project-docs", "reference": "a page", "seen": "2026-11-19"}]
    assert newest["companions"] == {"thingvision": "==2.1"}
    assert (newest["constraints"], newest["inferred"], newest["note"]) == (["numpy<2"], ["glibc"], "a note")
    assert (newest["glibc"], newest["cuda_requires"], newest["cudnn_requires"]) == ("2.28", "==12.9", "==9.10.2.21")
    assert (other["minimum_driver"], other["full_driver"]) == ("452.39", "522.06")
    assert [entry["reason"] for entry in other["known_bad"]] == ["It does not import."]
    assert (cpu["cuda"], cpu["minimum_driver"], cpu["known_bad"]) == (None, None, [])
    assert [entry["because"] for entry in answer["disagreements"]] == ["the wheel decides"]
    assert answer["matrix_date"] == "2026-11-20"


def test_show_accepts_the_filters_of_list(envsolve: Envsolve) -> None:
    rows = json.loads(envsolve("matrix", "show", "torch==2.14.1", "--gpu", "6.1", "--json").out)["releases"]
    assert rows
    assert {row["build"] for row in rows} == {"cu126"}


def test_the_text_page_equals_the_recorded_one(envsolve: Envsolve, own: Path) -> None:
    text = envsolve("matrix", "show", "thing", "--matrix", str(own)).out
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


def test_each_evidence_is_printed_once(envsolve: Envsolve) -> None:
    text = envsolve("matrix", "show", "pytorch==2.14.*").out
    evidence = text.partition("\nEvidence\n")[2].splitlines()
    references = [line.partition(": ")[2] for line in evidence]
    assert references
    assert len(references) == len(set(references))


@pytest.mark.parametrize(
    ("requested", "versions"),
    [
        ("cuda==12.6", ["12.6"]),
        ("CUDA ==12.6.3", ["12.6"]),
        ("cuda ==12,>12.7", ["12.9", "12.8"]),
        ("cuda>=12.9,<13.1", ["13.0", "12.9"]),
    ],
)
def test_toolkits_are_shown_with_their_drivers(requested: str, versions: list[str], envsolve: Envsolve) -> None:
    rows = json.loads(envsolve("matrix", "show", requested, "--json").out)["toolkits"]
    assert [row["version"] for row in rows] == versions
    assert all(set(row["minimum_driver"]) == {"linux", "windows"} and row["evidence"] for row in rows)
    assert "Linux driver" in envsolve("matrix", "show", requested).out


@pytest.mark.parametrize("table", ["cuda", "cudnn"])
def test_a_bare_number_means_every_version_that_starts_with_it(table: str, envsolve: Envsolve) -> None:
    major = {"cuda": "12", "cudnn": "9"}[table]
    whole = envsolve("matrix", "show", f"{table}=={major}").out
    assert len(whole.splitlines()) > 5
    assert whole == envsolve("matrix", "show", f"{table}=={major}.*").out


@pytest.mark.parametrize(
    ("requested", "majors"), [("cudnn==9.10.2", [12, 11]), ("cudnn==9.10.2.21", [12, 11]), ("cudnn==9.12.*", [13, 12])]
)
def test_cudnn_releases_are_shown_with_the_gpus_they_support(
    requested: str, majors: list[int], envsolve: Envsolve
) -> None:
    rows = json.loads(envsolve("matrix", "show", requested, "--json").out)["cudnn"]
    assert sorted((row["cuda_major"] for row in rows), reverse=True) == majors
    assert all(row["compute_capabilities"] and row["evidence"] for row in rows)
    assert "machine code" in envsolve("matrix", "show", requested).out


@pytest.mark.parametrize("requested", ["cuda==12.7", "cudnn==1.0", "tensorflow==1.12"])
def test_a_missing_version_is_a_clear_refusal(requested: str, envsolve: Envsolve) -> None:
    result = envsolve("matrix", "show", requested)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: no-such-release\n")


def test_a_valid_matrix_passes_its_check(envsolve: Envsolve, own: Path) -> None:
    result = envsolve("matrix", "check", "--matrix", str(own))
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("the compatibility matrix of 2026-11-20 satisfies all ")
    answer = json.loads(envsolve("matrix", "check", "--json", "--matrix", str(own)).out)
    assert answer["ok"] is True
    assert answer["matrix_date"] == "2026-11-20"
    assert all(set(law) == {"law", "says", "violations"} and law["violations"] == [] for law in answer["laws"])


def test_a_broken_law_is_reported_with_every_row(envsolve: Envsolve, own: Path) -> None:
    tiny_matrix(own, "thing", '["3.9", "3.10"]', '["3.10", "3.9"]')
    result = envsolve("matrix", "check", "--matrix", str(own))
    assert result.code == 1
    assert result.out == (
        "thing.toml: release 2.0 (pypi, cuda12, linux-64): pythons (3.10, 3.9) are not in ascending order, each once\n"
    )
    assert result.err.startswith("error: matrix-breaks-laws\n")
    assert "(pythons-are-listed-once-and-in-order: 1)" in result.err
    data = envsolve("matrix", "check", "--json", "--matrix", str(own))
    answer = json.loads(data.out)
    assert (data.code, data.err, answer["ok"]) == (1, "", False)
    assert [law["law"] for law in answer["laws"] if law["violations"]] == ["pythons-are-listed-once-and-in-order"]


def test_an_unreadable_matrix_is_a_usage_error_of_check(envsolve: Envsolve, own: Path) -> None:
    tiny_matrix(own, "thing", 'pythons = ["3.9", "3.10"]', "pythons = [")
    result = envsolve("matrix", "check", "--matrix", str(own))
    assert (result.code, result.out) == (2, "")
    assert "cause: thing.toml: " in result.err


def test_mistakes_are_also_in_json(envsolve: Envsolve, own: Path) -> None:
    tiny_matrix(own, "thing", 'version = "2.0"', 'version = "two"')
    (own / "pci_ids.toml").write_text("schema_version = 1\n[device]\nx = 1\n", encoding="utf-8")
    result = envsolve("matrix", "check", "--json", "--matrix", str(own))
    assert result.code == 2
    error = json.loads(result.out)["error"]
    assert (error["code"], error["conflict"]) == ("matrix-invalid", [])
    assert error["mistakes"] == [
        "thing.toml: release[1].version: 'two' is not a version",
        "pci_ids.toml: device.x: is not a device id of four hex digits in lower case",
        "pci_ids.toml: device.x: must be a table",
    ]
    assert [line.removeprefix("cause: ") for line in result.err.splitlines() if line.startswith("cause: ")] == (
        error["mistakes"]
    )


@pytest.mark.parametrize("command", [("check",), ("list",), ("show", "thing")])
def test_a_broken_matrix_is_reported_with_how_to_fix_it(
    command: tuple[str, ...], envsolve: Envsolve, own: Path
) -> None:
    tiny_matrix(own, "thing", 'version = "2.0"', 'version = "two"')
    result = envsolve("matrix", *command, "--matrix", str(own))
    assert result.code == 2
    assert "hint: fix the keys listed above" in result.err
    assert "solve --help" not in result.err


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("matrix", "list"), "hint: redirect standard output to a disk"),
        (("matrix", "check"), "hint: redirect standard output to a disk"),
        (("--version",), "hint: redirect standard output to a disk"),
        (("detect",), "hint: write to a file with -o"),
        (("-f", "jax", "--gpu", "8.6"), "hint: write to a file with -o"),
    ],
)
def test_an_unprintable_answer_suggests_an_output_that_works(command: tuple[str, ...], hint: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "envsolve", *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 3
    assert done.stderr.startswith("error: output-failed\n")
    assert hint in done.stderr


def test_a_listing_for_a_machine_without_a_gpu_says_so(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    result = envsolve("matrix", "list", "--gpu", "auto", "-f", "jax", "--platform", "linux-64")
    assert result.code == 0
    assert "no CUDA: these are the CPU builds\n" in result.err
    assert "environment" not in result.err
    assert "this is a CPU environment" in envsolve("-f", "jax", "--platform", "linux-64").err


COMMANDS = [
    ("-f", "thing", "--gpu", "8.0", "--platform", "linux-64", "--source", "pypi"),
    ("solve", "-f", "thing", "--gpu", "none", "--platform", "osx-arm64", "--source", "pypi"),
    ("matrix", "list"),
    ("matrix", "list", "--gpu", "A100"),
    ("matrix", "show", "thing"),
    ("matrix", "check"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_reads_the_given_matrix(
    command: tuple[str, ...], envsolve: Envsolve, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_option = envsolve(*command, "--matrix", str(own))
    assert by_option.code == 0, by_option.err
    monkeypatch.setenv("ENVSOLVE_MATRIX", str(own))
    assert envsolve(*command) == by_option


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_matrix_for_a_newer_envsolve_is_refused_with_that_reason(
    command: tuple[str, ...], envsolve: Envsolve, own: Path
) -> None:
    for file in own.glob("*.toml"):
        file.write_text(file.read_text(encoding="utf-8").replace("schema_version = 1", "schema_version = 2"))
    result = envsolve(*command, "--matrix", str(own))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: matrix-too-new\n  the compatibility matrix has schema ")
    assert "the compatibility matrix has schema 2" in result.err
    assert "\nhint: upgrade envsolve" in result.err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_directory_without_a_matrix_is_refused(command: tuple[str, ...], envsolve: Envsolve, tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "nowhere", Path(__file__)):
        result = envsolve(*command, "--matrix", str(directory))
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("error: matrix-unreadable\n")
        assert "every file of the matrix" in result.err


@pytest.mark.parametrize("command", [("list", "--gpu", "A100"), ("show", "thing"), ("show", "cuda"), ("check",)])
@pytest.mark.parametrize("line", ['updated = "2026-11-20"\n', "schema_version = 1\n"])
def test_a_file_without_its_date_or_format_is_one_clear_error(
    command: tuple[str, ...], line: str, envsolve: Envsolve, own: Path
) -> None:
    tiny_matrix(own, "cuda", line, "")
    result = envsolve("matrix", *command, "--matrix", str(own))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: matrix-invalid\n")
    assert f"cause: cuda.toml: {line.partition(' ')[0]}: " in result.err


@pytest.mark.parametrize("file", ["cuda", "cudnn", "gpus", "libraries", "pci_ids"])
def test_a_missing_file_is_named(file: str, envsolve: Envsolve, own: Path) -> None:
    (own / f"{file}.toml").unlink()
    result = envsolve("matrix", "check", "--matrix", str(own))
    assert (result.code, result.out) == (2, "")
    assert f"{file}.toml cannot be read" in result.err


def test_an_environment_from_another_matrix_says_so_without_its_path(envsolve: Envsolve, own: Path) -> None:
    text = envsolve(*COMMANDS[0], "--matrix", str(own)).out
    assert "from the compatibility matrix of 2026-11-20 with rows that are not shipped:\n" in text
    assert str(own) not in text
    data = json.loads(envsolve(*COMMANDS[0], "--matrix", str(own), "--json").out)
    assert (data["own_matrix"], data["matrix_date"]) == (True, "2026-11-20")
    assert "with rows that are not shipped" not in envsolve("-f", "jax", "--gpu", "none").out


def test_colour_in_tables_respects_the_option(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in envsolve("matrix", "list").out
    assert "\x1b[1m" in envsolve("matrix", "list", "--color", "always").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1m" in envsolve("matrix", "list", "--color", "auto").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in envsolve("matrix", "list").out


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("width", "below"), [(64, ("in every row", "a wider terminal also shows")), (80, ("in every row",)), (160, ())]
)
def test_a_table_on_a_terminal_has_its_width(width: int, below: tuple[str, ...]) -> None:
    text = on_a_terminal(width, "matrix", "list", "-f", "pytorch==2.14.1", "--gpu", "8.6")
    lines = text.splitlines()
    assert "\x1b[1m" in text
    assert "─" * 40 in text
    assert max(len(line) for line in lines if "\x1b" not in line) <= width
    assert any("linux-64" in line and "cu126" in line for line in lines)
    assert [it for it in ("in every row", "a wider terminal also shows") if f"({it}" in text] == list(below)


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(("width", "drawn"), [(10, False), (20, False), (30, True)])
def test_a_terminal_too_narrow_for_a_table_gets_a_list_for_each_row(width: int, drawn: bool) -> None:
    text = on_a_terminal(width, "matrix", "list")
    assert ("─" in text) is drawn
    assert bool(re.search(r"^framework +onnxruntime\r$", text, re.MULTILINE)) is not drawn


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_a_terminal_without_unicode_gets_plain_columns() -> None:
    text = on_a_terminal(80, "matrix", "list", encoding="ascii")
    assert re.search(r"framework +versions", text)
    assert text.isascii()


def on_a_terminal(width: int, *arguments: str, encoding: str = "utf-8") -> str:
    """The output of envsolve on a terminal of ``width`` columns."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR", "FORCE_COLOR")}
    environ = inherited | {"TERM": "xterm", "PYTHONIOENCODING": encoding}
    command = [sys.executable, "-m", "envsolve", *arguments]
    done = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ)
    os.close(theirs)
    output = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    os.close(ours)
    assert done.wait(timeout=60) == 0
    return output.decode()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [("list",), ("list", "--gpu", "8.6"), ("show", "jax==0.7.0"), ("show", "cuda==12.6"), ("show", "cudnn==9")],
)
def test_a_table_has_a_note_with_the_date_of_the_matrix(command: tuple[str, ...], envsolve: Envsolve) -> None:
    result = envsolve("matrix", *command)
    assert re.fullmatch(r"note: from the compatibility matrix of \d{4}-\d\d-\d\d\n", result.err.splitlines(True)[-1])
    assert "compatibility matrix of" not in result.out
    assert envsolve("matrix", *command, "-q").err == ""
