"""Several platforms and hosts on the command line: which files are written, and what an error says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.conftest import Envsolve

HOSTS = Path(__file__).parents[1] / "hosts"
BOTH = ("--platform", "linux-64", "--platform", "win-64")


def host(name: str) -> str:
    return str(HOSTS / f"{name}.json")


def test_each_platform_gets_its_file(envsolve: Envsolve, tmp_path: Path) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", *BOTH, "-o", str(tmp_path / "environment.{platform}.yml"))
    assert (result.code, result.out) == (0, "")
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["environment.linux-64.yml", "environment.win-64.yml"]
    packages = []
    for name in written:
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert f"# For: {name.split('.')[1]}, " in text
        assert "--platform linux-64 --platform win-64" in text
        specs = yaml.safe_load(text)["dependencies"]
        packages.append(next(spec.split("=")[1] for spec in specs if str(spec).startswith("pytorch=")))
    assert packages[0] == packages[1]


def test_the_name_of_a_single_file_also_gets_its_platform(envsolve: Envsolve, tmp_path: Path) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--platform", "win-64", "-o", str(tmp_path / "{platform}.yml"))
    assert result.code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["win-64.yml"]


def test_json_has_all_platforms(envsolve: Envsolve) -> None:
    answer = json.loads(envsolve("-f", "tensorflow", "--gpu", "8.6", *BOTH, "--json").out)
    assert [part["host"]["platform"] for part in answer["platforms"]] == ["linux-64", "win-64"]
    assert {part["frameworks"][0]["version"] for part in answer["platforms"]} == {"2.10.1"}
    assert answer["host"] == answer["platforms"][0]["host"]
    assert answer["frameworks"] == answer["platforms"][0]["frameworks"]


def test_host_files_of_several_platforms_are_solved_together(envsolve: Envsolve) -> None:
    files = ("--host", host("rtx-3090-535.183.01"), "--host", host("windows-566.36"), "--host", host("v100-580.65.06"))
    answer = json.loads(envsolve("-f", "pytorch", *files, "--json").out)
    assert [part["host"]["platform"] for part in answer["platforms"]] == ["linux-64", "win-64"]
    linux, windows = answer["platforms"]
    assert linux["frameworks"][0]["version"] == windows["frameworks"][0]["version"]
    assert linux["frameworks"][0]["runs_as"].keys() == {"7.0", "8.6"}


def test_a_suggestion_keeps_all_platforms_on_which_it_works(envsolve: Envsolve) -> None:
    """TensorFlow 2.4 has GPU builds for Windows, the newest does not."""
    refused = envsolve("-f", "tensorflow==2.3", "--gpu", "8.6", *BOTH, "--format", "json")
    hints = json.loads(refused.out)["error"]["hints"]
    nearest, newest = (it["command"] for it in hints)
    assert " --platform linux-64 --platform win-64 " in nearest
    assert " --platform linux-64 --format" in newest
    for command in (nearest, newest):
        done = envsolve(*command.split()[1:])
        assert done.code == 0, done.err
    of_lock = envsolve("-f", "tensorflow==2.3", "--gpu", "8.6", *BOTH, "-o", "pylock.{platform}.toml")
    assert nearest.replace("json", "pylock") in of_lock.err


@pytest.mark.thorough
def test_differences_between_platforms_are_reported(envsolve: Envsolve, tmp_path: Path) -> None:
    files = ("--host", host("rtx-5090-570.195.03"), "--host", host("windows-566.36"))
    result = envsolve("-f", "tensorflow", *files, "-o", str(tmp_path / "{platform}.yml"))
    assert result.code == 0
    assert "note: tensorflow is " in result.err
    assert "no version fits on all of these platforms" in result.err


def test_a_platform_without_a_stack_is_named_and_nothing_is_written(envsolve: Envsolve, tmp_path: Path) -> None:
    result = envsolve("-f", "jax", "--gpu", "8.6", *BOTH, "-o", str(tmp_path / "{platform}.yml"))
    assert result.code == 1
    assert result.err.startswith("error: no-gpu-build\n  win-64: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", ["missing/{platform}.yml", "{platform}/environment.yml"])
def test_no_file_is_replaced_before_all_are_written(bad: str, envsolve: Envsolve, tmp_path: Path) -> None:
    (tmp_path / "linux-64").mkdir()
    old = tmp_path / "linux-64" / "environment.yml"
    old.write_text("# Made by envsolve 0.1.0:\n", encoding="utf-8")
    result = envsolve("-f", "pytorch", "--gpu", "8.6", *BOTH, "-o", str(tmp_path / bad))
    assert result.code == 2
    assert result.err.startswith("error: output-not-writable")
    assert old.read_text(encoding="utf-8") == "# Made by envsolve 0.1.0:\n"
    assert [path.name for path in tmp_path.rglob("*")] == ["linux-64", "environment.yml"]


def test_a_platform_without_a_host_file_is_refused(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--host", host("rtx-3090-535.183.01"), *BOTH, "--json")
    assert result.code == 2
    assert "--platform win-64 has no machine" in result.err


def test_a_host_file_of_another_platform_is_refused(envsolve: Envsolve) -> None:
    files = ("--host", host("rtx-3090-535.183.01"), "--host", host("gh200-575.57.08"))
    result = envsolve("-f", "pytorch", *files, *BOTH, "--json")
    assert result.code == 2
    assert "contradicts the host file, which is for linux-aarch64" in result.err


def test_one_host_of_each_kind_is_named(envsolve: Envsolve, tmp_path: Path) -> None:
    text = Path(host("rtx-3090-535.183.01")).read_text(encoding="utf-8")
    files = []
    for number in range(12):
        path = tmp_path / f"{number}.json"
        path.write_text(text.replace("535.183.01", f"535.{170 + number}.01"), encoding="utf-8")
        files += ["--host", str(path)]
    result = envsolve("-f", "pytorch", *files)
    header = result.out.splitlines()[1]
    assert header.count("--host") == 1
    assert header.endswith("# and 11 more hosts like these")
    hosts = json.loads(envsolve("-f", "pytorch", *files, "--json").out)["hosts"]
    assert [len(entry["files"]) for entry in hosts] == [1] * 12


@pytest.mark.thorough
def test_a_split_names_a_command_for_each_group(envsolve: Envsolve) -> None:
    files = ("--host", host("k80-470.256.02"), "--host", host("rtx-5090-570.195.03"), "--host", host("v100-580.65.06"))
    error = json.loads(envsolve("-f", "pytorch", *files, "--json").out)["error"]
    assert error["code"] == "hosts-need-several-stacks"
    assert [len(group["hosts"]) for group in error["groups"]] == [2, 1]
    for group in error["groups"]:
        words = group["command"].split()[1:]
        answer = json.loads(envsolve(*words).out)
        assert [it["version"] in group["frameworks"][0] for it in answer["frameworks"]] == [True]


def test_sources_of_a_chain_are_shown_on_request_and_always_in_json(envsolve: Envsolve) -> None:
    request = ("-f", "pytorch==2.15.*", "--gpu", "8.9", "--driver", "550.163.01")
    quiet, verbose = envsolve(*request).err, envsolve(*request, "-v").err
    assert "cause: CUDA 13.2 needs NVIDIA driver 580.65.06 or newer\n" in quiet
    assert "cause: CUDA 13.2 needs NVIDIA driver 580.65.06 or newer [NVIDIA CUDA Toolkit 13.2" in verbose
    assert "cause: this machine has driver 550.163.01 (from --driver)\n" in verbose
    error = json.loads(envsolve(*request, "--json").out)["error"]
    assert [step["requirement"] in quiet for step in error["conflict"]] == [True] * 3
    assert error["conflict"][1]["source"].startswith("NVIDIA CUDA Toolkit 13.2")
    assert error["constraints"] == ["pytorch==2.15.*", "driver 550.163.01"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--prefer", "locked"), "nothing-to-keep", "-o"),
        (("--prefer", "locked", "-o", "-"), "nothing-to-keep", "-o"),
        (("--prefer", "newest"), "usage", "widest-gpu"),
    ],
)
def test_a_contradictory_policy_is_refused(
    arguments: tuple[str, ...], code: str, says: str, envsolve: Envsolve
) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", *arguments)
    assert result.code == 2
    assert result.err.startswith(f"error: {code}\n")
    assert says in result.err


@pytest.mark.thorough
def test_the_policy_is_in_the_recorded_command(envsolve: Envsolve) -> None:
    out = envsolve("-f", "pytorch", "--gpu", "8.6", "--prefer", "widest-gpu").out
    assert "#   envsolve --framework pytorch --gpu 8.6 --prefer widest-gpu\n" in out


def test_a_suggestion_works_for_all_hosts_or_names_those_it_works_for(envsolve: Envsolve) -> None:
    hosts = [host(name) for name in ("v100-580.65.06", "k80-470.256.02", "rtx-5090-570.195.03")]
    result = envsolve("-f", "pytorch==2.9.*", *(word for name in hosts for word in ("--host", name)))
    assert result.code == 1
    assert f"hint: for {hosts[1]} alone: the newest pytorch that fits is 2.3.1" in result.err
    assert f"envsolve --framework pytorch==2.3.1 --host {hosts[1]}\n" in result.err
    result = envsolve("-f", "pytorch==2.9.*", "--host", hosts[0], "--host", hosts[1])
    assert "alone" not in result.err
    assert f"envsolve --framework pytorch==2.3.1 --host {hosts[0]} --host {hosts[1]}\n" in result.err


def test_an_unrequested_python_is_not_reported_as_requested(envsolve: Envsolve, tmp_path: Path) -> None:
    frameworks = ("-f", "tensorflow", "-f", "pytorch", "-f", "jax")
    for more in (("-f", "pytorch"), frameworks):
        output = str(tmp_path / "{platform}.yml")
        assert envsolve(*more, "--gpu", "none", *BOTH, "--platform", "osx-arm64", "-o", output).code == 0
        for path in tmp_path.iterdir():
            assert "was requested" not in path.read_text(encoding="utf-8")


def test_a_question_does_not_change_the_file_of_the_answer(envsolve: Envsolve, tmp_path: Path) -> None:
    output = tmp_path / "environment.yml"
    assert envsolve("-f", "pytorch==2.10.*", "--gpu", "8.6", "-o", str(output)).code == 0
    before = output.read_bytes()
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--prefer", "locked", "-o", str(output), "--why", "pytorch")
    assert result.out.startswith("pytorch is pytorch 2.10.0 ")
    assert output.read_bytes() == before


def test_an_unknown_cuda_is_reported_once(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "--cuda", "99")
    assert result.err.startswith("error: cuda-excluded\n  no toolkit of the requested CUDA is known: ")
    assert result.err.count("cause: CUDA 99 was requested") == 1


def test_the_help_spells_the_default_policy_as_an_option(envsolve: Envsolve) -> None:
    assert "[default: newest-framework]" in " ".join(envsolve("solve", "--help").out.split())


def test_hosts_with_and_without_gpus_are_distinguished(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--host", host("no-gpu"), "--host", host("rtx-3090-535.183.01"))
    assert result.code == 2
    assert result.err.startswith("error: hosts-differ\n")
    assert "no-gpu.json of the 2 hosts have no NVIDIA GPU" in result.err
    commands = [line.split()[1:] for line in result.err.splitlines() if line.startswith("  envsolve ")]
    assert [envsolve(*words).code for words in commands] == [0, 0]


def test_notes_name_their_platform(envsolve: Envsolve, tmp_path: Path) -> None:
    files = ("--host", host("no-gpu"), "--host", host("windows-566.36"))
    result = envsolve("-f", "pytorch", *files, "-o", str(tmp_path / "{platform}.yml"))
    assert result.code == 0
    assert "note: linux-64: no NVIDIA GPU was found: this is a CPU environment" in result.err


def test_a_mac_gets_no_advice_to_name_a_gpu(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--platform", "osx-arm64")
    assert (result.code, result.err) == (0, "note: CUDA does not exist for osx-arm64: this is a CPU environment\n")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("request_", "rest"),
    [
        (("-f", "pytorch", "-f", "tensorflow", "--gpu", "9.0", "--platform", "linux-aarch64"), "pytorch"),
        (("-f", "pytorch", "-f", "paddlepaddle", "--gpu", "12.0", "--driver", "570.26"), "pytorch"),
    ],
)
def test_a_framework_without_a_build_for_a_platform_can_be_excluded(
    request_: tuple[str, ...], rest: str, envsolve: Envsolve
) -> None:
    error = json.loads(envsolve(*request_, "--json").out)["error"]
    (hint,) = [hint for hint in error["hints"] if "use a separate environment" in hint["text"]]
    assert f"--framework {rest} " in hint["command"]
    assert envsolve(*hint["command"].split()[1:]).code == 0


@pytest.mark.parametrize(("gpu", "is_noted"), [("8.6", True), ("none", False)])
def test_packages_left_to_pip_are_reported_if_wheels_bring_cuda(gpu: str, is_noted: bool, envsolve: Envsolve) -> None:
    result = envsolve("-f", "tensorflow", "-f", "jax", "--gpu", gpu, "--source", "pypi")
    assert result.code == 0
    assert ("NCCL" in result.err) is is_noted


@pytest.mark.thorough
def test_windows_numbers_are_left_out_next_to_linux_in_any_order(envsolve: Envsolve) -> None:
    names = ("rtx-3090-535.183.01", "wsl2-566.36")
    for first, second in (names, names[::-1]):
        answer = json.loads(envsolve("-f", "pytorch", "--host", host(first), "--host", host(second), "--json").out)
        assert answer["minimum_driver"] == "525.60.13"
    alone = json.loads(envsolve("-f", "pytorch", "--host", host("wsl2-566.36"), "--cuda", "12", "--json").out)
    assert alone["minimum_driver"] == "528.33"
