"""The command line: where data goes, which messages appear, and what start-up imports."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import Envsolve

HEAVY = ("requests", "urllib3", "yaml", "rattler", "pynvml", "rich", "conda_lock", "platformdirs", "tomllib")


def test_data_goes_to_stdout_and_notes_to_stderr(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "GTX 1080 Ti", "--driver", "580.65.06")
    assert yaml.safe_load(result.out)["name"] == "pytorch-cuda12"
    assert result.err.startswith("note: ")
    assert envsolve("-q", "-f", "pytorch", "--gpu", "6.1", "--driver", "580.65.06").err == ""


def test_verbose_shows_sources_of_facts(envsolve: Envsolve) -> None:
    result = envsolve("-v", "-f", "pytorch", "--gpu", "8.6", "--driver", "580.65.06")
    assert "conda-forge/pytorch-cpu-feedstock" in result.err


def test_solve_is_the_default_command(envsolve: Envsolve) -> None:
    words = ("-f", "jax", "--gpu", "8.6", "--driver", "580.65.06")
    assert envsolve(*words).out == envsolve("solve", *words).out


def test_output_is_written_in_the_format_of_its_name(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    result = envsolve("-f", "jax", "--gpu", "8.6", "--driver", "580.65.06", "-o", str(path))
    assert (result.code, result.out) == (0, "")
    assert json.loads(path.read_text(encoding="utf-8"))["frameworks"][0]["framework"] == "jax"
    assert (path.stat().st_mode & 0o777) == (0o666 & ~_umask())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "x.txt", "--format", "json"), "x.txt gets the format json, although its name says requirements"),
        (
            ("-o", "x.foo"),
            "the name x.foo has no known format: it is written as an environment.yml (--format chooses another)",
        ),
        (("-o", "x.foo", "--format", "json"), ""),
        (("-o", "x.yml"), ""),
        (("-o", "-"), ""),
    ],
)
def test_a_misleading_file_name_is_noted(
    words: tuple[str, ...], message: str, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = envsolve("-f", "onnxruntime", "--gpu", "none", "--source", "pypi", *words)
    assert done.err == (f"note: {message}\n" if message else "")


def test_a_dash_means_standard_output(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("-f", "jax", "--gpu", "8.6", "--driver", "580.65.06")
    result = envsolve(*words, "-o", "-")
    assert (result.code, yaml.safe_load(result.out)) == (0, yaml.safe_load(envsolve(*words).out))
    assert list(tmp_path.iterdir()) == []


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("alias", ["tf", "TensorFlow", "tensorflow"])
def test_frameworks_have_aliases(alias: str, envsolve: Envsolve) -> None:
    assert "tensorflow" in envsolve("-f", alias, "--gpu", "none").out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("variables", "arguments", "origin", "cuda"),
    [
        ({"UV_CUDA_DRIVER_VERSION": "535.183.01"}, ["--gpu", "8.6"], {"driver": "UV_CUDA_DRIVER_VERSION"}, 12),
        ({"CONDA_OVERRIDE_CUDA": "12.4"}, ["--gpu", "8.6"], {"driver_cuda": "CONDA_OVERRIDE_CUDA"}, 12),
        ({"CONDA_OVERRIDE_CUDA": "11.8"}, ["--gpu", "8.6"], {"driver_cuda": "CONDA_OVERRIDE_CUDA"}, 11),
        (
            {"UV_CUDA_DRIVER_VERSION": "535.183.01"},
            ["--gpu", "8.6", "--driver", "580.65.06"],
            {"driver": "--driver"},
            13,
        ),
        ({"ENVSOLVE_DRIVER": "535.183.01", "ENVSOLVE_GPU": "RTX 3090"}, [], {"driver": "--driver"}, 12),
        ({"ENVSOLVE_FRAMEWORK": "pytorch", "ENVSOLVE_GPU": "RTX 3090;GTX 1080 Ti"}, [], {"gpus": "--gpu"}, 12),
    ],
)
def test_variables_of_other_tools_and_our_own_are_honoured_and_named(
    variables: dict[str, str],
    arguments: list[str],
    origin: dict[str, str],
    cuda: int,
    envsolve: Envsolve,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    framework = [] if "ENVSOLVE_FRAMEWORK" in variables else ["-f", "pytorch"]
    result = envsolve(*framework, *arguments, "--format", "json")
    answer = json.loads(result.out)
    assert answer["cuda"].startswith(f"{cuda}.")
    assert answer["host"]["origin"].items() >= origin.items()


def test_an_empty_conda_override_means_no_cuda(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    result = envsolve("-f", "pytorch", "--gpu", "auto", "--format", "json")
    assert json.loads(result.out)["cuda"] is None


def test_matrix_show_prints_the_contract(envsolve: Envsolve) -> None:
    releases = json.loads(envsolve("matrix", "show", "tensorflow==2.10.*", "--json").out)["releases"]
    windows = next(row for row in releases if row["platform"] == "win-64" and row["cuda"] is not None)
    assert windows["cuda"] == "11.2"
    assert windows["cudnn"].startswith("8.1")
    assert windows["minimum_driver"] == "452.39"
    assert {"version", "source", "build", "package", "pythons", "compute_capabilities", "ptx", "full_driver"} <= set(
        windows
    )
    assert all(entry["kind"] and entry["reference"] for entry in windows["evidence"])


def child(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    """Envsolve in its own process."""
    command = [sys.executable, "-m", "envsolve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["solve", "--help"],
        ["-f", "tensorflow", "--gpu", "8.6", "--driver", "580.65.06"],
        ["matrix", "list"],
        ["matrix", "show", "jax==0.12.*"],
        ["export", "tests/snapshots/pylock.python-lock-plain.toml", "--format", "requirements"],
        ["explain", "ImportError: libcudnn.so.8: cannot open shared object file"],
    ],
)
def test_startup_imports_nothing_heavy(arguments: list[str]) -> None:
    script = (
        "import sys\nfrom envsolve.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "envsolve.cli.main" in loaded
    assert loaded.isdisjoint(HEAVY)
    assert loaded.isdisjoint({"envsolve.matrix.laws", "envsolve.diagnose.environment.examination"})


@pytest.mark.thorough
def test_a_closed_pipe_is_not_an_error() -> None:
    command = f"{sys.executable} -m envsolve matrix show pytorch | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.thorough
@pytest.mark.parametrize("arguments", ["-f pytorch --gpu 8.6", "--help", "detect --json", "matrix show jax"])
@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_unprintable_answer_is_an_outside_error(redirection: str, arguments: str) -> None:
    command = f"{sys.executable} -m envsolve {arguments} {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_framework_named_twice_must_match_both_ranges(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch>=2.7", "-f", "torch<2.9", "--gpu", "8.6", "--format", "json")
    (framework,) = json.loads(result.out)["frameworks"]
    assert framework["version"].startswith("2.8")


def test_credentials_in_urls_are_left_out(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "-c", "https://user:secret@conda.example.org/conda-forge")
    assert "https://conda.example.org/conda-forge" in yaml.safe_load(result.out)["channels"]
    assert "secret" not in result.out + result.err
    assert "are not written" in result.err


@pytest.mark.parametrize("channel", ["[a", "@foo", "*x", "yes", "a'b", "{b}", "x:", "#c"])
def test_any_channel_name_is_a_string_in_the_file(channel: str, envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "-c", channel)
    assert yaml.safe_load(result.out)["channels"][0] == channel


def test_python_may_be_requested_with_its_patch(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--python", ">=3.11.5,<3.12")
    assert yaml.safe_load(result.out)["dependencies"][0] == "python=3.11.*,<3.12,>=3.11.5"


@pytest.mark.parametrize(("choice", "coloured"), [("always", True), ("never", False)])
def test_errors_and_notes_respect_the_colour_option(choice: str, coloured: bool, envsolve: Envsolve) -> None:
    for arguments in (["-f", "nothing"], ["-f", "pytorch", "--gpu", "6.1", "--driver", "580.65.06"]):
        assert ("\x1b[" in envsolve("--color", choice, *arguments).err) is coloured
    envsolve("--color", "auto", "-f", "nothing")


def test_envsolve_without_arguments_prints_its_help(envsolve: Envsolve) -> None:
    result = envsolve()
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Usage: envsolve")


def test_a_framework_in_a_variable_is_a_request(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSOLVE_FRAMEWORK", "jax")
    monkeypatch.setenv("ENVSOLVE_GPU", "none")
    assert yaml.safe_load(envsolve().out)["name"] == "jax-cpu"


@pytest.mark.thorough
def test_a_suggestion_for_a_host_file_works_without_it(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    old = {"schema_version": 1, "platform": "linux-64", "driver": "535.129.03", "glibc": "2.12"}
    path.write_text(json.dumps(old | {"gpus": [{"compute_capability": "8.6"}]}), encoding="utf-8")
    refused = json.loads(envsolve("-f", "pytorch", "--host", str(path), "--format", "json").out)["error"]
    (way_out,) = refused["hints"]
    answer = json.loads(envsolve(*shlex.split(way_out["command"])[1:]).out)
    stack = f"{answer['frameworks'][0]['framework']} {answer['frameworks'][0]['version']}"
    assert way_out["text"].startswith(stack)
    assert refused["code"] == "glibc-too-old"


def test_a_suggestion_with_fewer_gpus_keeps_the_driver_of_the_host_file(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    gpus = [{"compute_capability": "6.1"}, {"compute_capability": "12.0"}]
    host = {"schema_version": 1, "platform": "linux-64", "driver": "580.65.06", "gpus": gpus}
    path.write_text(json.dumps(host), encoding="utf-8")
    refused = json.loads(envsolve("-f", "pytorch==2.14.1", "--host", str(path), "--format", "json").out)["error"]
    alone = [hint["command"] for hint in refused["hints"] if hint["text"].startswith("only for")]
    drivers = [json.loads(envsolve(*shlex.split(command)[1:]).out)["host"]["driver"] for command in alone]
    assert drivers == ["580.65.06", "580.65.06"]


@pytest.mark.thorough
def test_help_and_version_are_printed() -> None:
    assert "--framework" in child("solve", "--help").stdout
    version = child("--version").stdout
    assert re.fullmatch(r"envsolve, version \S+, with the compatibility matrix of \d{4}-\d\d-\d\d\n", version)


def test_a_refusal_notes_the_date_of_the_matrix(envsolve: Envsolve) -> None:
    request = ["-f", "pytorch==2.15.*", "--gpu", "8.6", "--driver", "550.54.14"]
    refused = envsolve(*request)
    assert re.search(r"^note: based on the compatibility matrix of \d{4}-\d\d-\d\d$", refused.err, re.MULTILINE)
    error = json.loads(envsolve(*request, "--format", "json").out)["error"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", error["matrix_date"])
