"""Bad input: one clear error of three parts, exit 2, nothing on stdout, nothing written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Envsolve

HOST = {"schema_version": 1, "platform": "linux-64", "driver": "580.65.06", "gpus": [{"compute_capability": "8.6"}]}


def test_text_and_json_have_the_same_hints(envsolve: Envsolve) -> None:
    result = envsolve("matrix", "show", "pytorch==9", "--json")
    (hint,) = json.loads(result.out)["error"]["hints"]
    assert f"hint: {hint['text']}\n  {hint['command']}\n" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["-f", "pytroch"], "unknown-framework", "did you mean pytorch"),
        (
            ["-f", "numpy"],
            "unknown-framework",
            "hint: a package goes beside a framework, without -f: -f pytorch PACKAGE",
        ),
        (["-f", "keras"], "unknown-framework", "known: "),
        (["-f", "flash-attn"], "unknown-framework", "hint: a package goes beside a framework, without -f: "),
        (["-f", "pytorch[extra]"], "invalid-framework", "no URL, extra or marker"),
        (["-f", "jax[cuda12]>=0.5"], "invalid-framework", "did you mean 'jax>=0.5'? Its build is chosen for the GPU"),
        (["-f", "pytorch>>2"], "invalid-framework", "pytorch>=2.5"),
        (["-f", ""], "invalid-framework", "framework"),
        (["--gpu", "8.6"], "no-framework", "\n  envsolve --framework tensorflow --gpu 8.6\n"),
        (["solve"], "no-framework", "\n  envsolve --framework tensorflow --gpu auto\n"),
        (["-f", "pytorch=2.5"], "invalid-framework", "did you mean 'pytorch==2.5.*'?"),
        (["-f", "pytorch", "--driver", "12.4"], "usage", "12.4 is a CUDA version, and nvidia-smi prints the driver"),
        (["-f", "pytorch", "--cuda", "cu121"], "usage", "did you mean 12.1?"),
        (["-f", "pytorch", "--python", "python3.11"], "usage", "did you mean 3.11?"),
        (["-f", "pytorch", "--python", "cp312"], "usage", "did you mean 3.12?"),
        (
            ["-f", "pytorch", "--python", "3.14t"],
            "usage",
            "'3.14t' is a free-threaded Python, which envsolve does not support",
        ),
        (["-f", "pytorch", "--platform", "linux64"], "usage", "did you mean linux-64?"),
        (["-f", "pytorch", "--source", "conda"], "usage", "did you mean conda-forge?"),
        (["-f", "pytorch", "--gpu", "RX 7900 XTX"], "unknown-gpu", "is a GPU of AMD, and envsolve knows NVIDIA GPUs"),
        (["-f", "pytorch", "--gpu", "MI300X"], "unknown-gpu", "is a GPU of AMD, and envsolve knows NVIDIA GPUs"),
        (["-f", "pytorch", "--gpu", "M2 Max"], "unknown-gpu", "is a GPU of Apple, and envsolve knows NVIDIA GPUs"),
        (["-f", "pytorch", "--gpu", "RTX 3900"], "unknown-gpu", "did you mean"),
        (["-f", "pytorch", "--gpu", ""], "unknown-gpu", "compute capability"),
        (["-f", "pytorch", "--gpu", "GT 730"], "ambiguous-gpu", "2.1, 3.0, 3.5"),
        (["-f", "pytorch", "--gpu", "8.4"], "unknown-gpu", "8.6"),
        (
            ["-f", "pytorch", "--gpu", "8.65"],
            "unknown-gpu",
            "known as '8.65'\ncause: you typed: envsolve -f pytorch --gpu 8.65\nhint: give",
        ),
        (["-f", "pytorch", "--driver", "new"], "usage", "580.65.06"),
        (["-f", "pytorch", "--driver", "12.4"], "usage", "580.65.06"),
        (["-f", "pytorch", "--driver", ""], "usage", "580.65.06"),
        (["-f", "pytorch", "--python", "three"], "usage", ">=3.10,<3.13"),
        (["-f", "pytorch", "--cuda", "cudart64_110.dll"], "usage", "not a version"),
        (["-f", "pytorch", "--gpu", "8.6", "-o", "pixi.lock"], "unknown-format", "-o pixi.toml"),
        (["-f", "pytorch", "--platform", "amiga"], "usage", "linux-64"),
        (["-f", "pytorch", "--source", "warez"], "usage", "conda-forge"),
        (["-f", "pytorch", "--format", "docx"], "unknown-format", "environment"),
        (["-f", "pytorch", "-o", "uv.lock"], "unknown-format", "-o pylock.toml"),
        (["-f", "pytorch", "--format", "conda-lock", "--exact"], "contradictory-options", "--exact"),
        (["-f", "pytorch", "--format", "explicit", "--why", "cuda"], "contradictory-options", "--why"),
        (["-f", "pytorch", "-r", "environment.yml", "--format", "pylock"], "contradictory-options", "environment.yml"),
        (["-r", "/nowhere/environment.yml", "--format", "conda-lock"], "environment-invalid", "/nowhere"),
        (["-f", "pytorch", "--gpu", "none", "--gpu", "8.6"], "contradictory-options", "--gpu none"),
        (["-f", "pytorch", "--gpu", "auto", "--gpu", "8.6"], "contradictory-options", "--gpu auto"),
        (["-f", "pytorch", "--gpu", "none", "--driver", "580"], "contradictory-options", "--driver"),
        (["-f", "pytorch", "--gpu", "none", "--cuda", "12"], "contradictory-options", "--cuda"),
        (["-f", "pytorch", "--gpuu", "8.6"], "usage", "--gpu"),
        (["-r", "missing.in"], "requirements-unreadable", "cannot read missing.in"),
        (["-r", "missing.in"], "requirements-unreadable", "hint: check the name and the permissions of the file"),
        (["-f", "pytorch", "2.5"], "requirement-invalid", "'2.5' is a version: write it with its package"),
        (["validate", "--prefix", "absent"], "python-not-found", "absent is not a directory\n"),
        (["validate", "--prefix", "absent"], "python-not-found", "\n  envsolve create absent --lock pylock.toml\n"),
        (["-f", "pytorch", "--gpu", "8.6", "-c", "x\n- evil"], "usage", "control characters"),
        (["-f", "pytorch", "--gpu", "8.6", "-c", ""], "usage", "empty"),
        (["-f", "pytorch", "--gpu", "8.6", "--extra-index-url", "http://x y"], "usage", "spaces"),
        (["-f", "pytorch", "--host", ""], "usage", "cannot be empty"),
        (["-f", "pytorch", "--cuda", ""], "usage", "not a version"),
        (["-f", "pytorch", "--platform", "linux-64", "--platform", "win-64"], "several-platforms", "one platform"),
        (["-f", "pytorch", "--matrix", "/nowhere"], "matrix-unreadable", "/nowhere"),
        (["lock"], "no-project", "pyproject.toml"),
        (["statsu"], "usage", "did you mean status?"),
        (["lcok", "--check"], "usage", "did you mean lock?"),
        (["matrix", "show", "pytroch"], "unknown-framework", "did you mean pytorch"),
    ],
)
def test_it_is_one_error_that_says_what_to_do(arguments: list[str], code: str, says: str, envsolve: Envsolve) -> None:
    result = envsolve(*arguments)
    assert result.code == 2
    assert result.err.startswith(f"error: {code}\n  ")
    assert result.err.count("error:") == 1
    assert says in result.err
    assert "\ncause: " in result.err
    assert "\nhint: " in result.err
    assert "Traceback" not in result.err
    if "--json" not in arguments:
        assert result.out == ""


def test_with_json_the_error_is_data_on_stdout_too(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytroch", "--json")
    assert result.code == 2
    error = json.loads(result.out)["error"]
    assert error["code"] == "unknown-framework"
    assert error["hints"] == [{"text": "did you mean pytorch?", "command": None, "code": None}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not json", "not JSON"),
        ("[]", "JSON object"),
        (json.dumps({**HOST, "schema_version": 99}), "schema_version 99"),
        (json.dumps({**HOST, "platform": "amiga"}), "platform"),
        (json.dumps({**HOST, "driver": "new"}), "driver"),
        (json.dumps({**HOST, "gpus": [{"name": "x", "compute_capability": 8.6}]}), "gpus[0].compute_capability"),
        (json.dumps({key: value for key, value in HOST.items() if key != "platform"}), "platform"),
    ],
)
def test_a_host_file_that_cannot_be_read_names_file_and_key(
    text: str, says: str, envsolve: Envsolve, tmp_path: Path
) -> None:
    path = tmp_path / "host.json"
    path.write_text(text, encoding="utf-8")
    result = envsolve("-f", "pytorch", "--host", str(path))
    assert result.code == 2
    assert result.out == ""
    assert str(path) in result.err
    assert says in result.err


def test_a_missing_host_file_is_named(envsolve: Envsolve) -> None:
    result = envsolve("-f", "pytorch", "--host", "nowhere.json")
    assert result.code == 2
    assert "nowhere.json" in result.err


def test_hosts_and_gpus_are_exclusive(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(HOST), encoding="utf-8")
    assert "contradictory-options" in envsolve("-f", "pytorch", "--host", str(path), "--gpu", "8.6").err


@pytest.mark.parametrize("name", ["UV_CUDA_DRIVER_VERSION", "CONDA_OVERRIDE_CUDA", "CONDA_OVERRIDE_CUDA_ARCH"])
def test_a_peer_variable_that_cannot_be_read_is_named(
    name: str, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "rubbish")
    result = envsolve("-f", "pytorch")
    assert result.code == 2
    assert name in result.err


def test_a_wrong_value_in_a_variable_names_the_variable_and_not_the_option(
    envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSOLVE_DRIVER", "abc")
    assert "Invalid value for ENVSOLVE_DRIVER: 'abc' is not" in envsolve("-f", "pytorch").err
    assert "Invalid value for '--driver': 'x' is not" in envsolve("-f", "pytorch", "--driver", "x").err


def test_an_error_about_options_names_the_variables_beside_them(
    envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSOLVE_GPU", "RTX 9999")
    done = envsolve("-f", "pytorch", "--driver", "610")
    assert done.code == 2
    assert "cause: you typed: ENVSOLVE_GPU='RTX 9999' envsolve -f pytorch --driver 610\n" in done.err
    monkeypatch.setenv("ENVSOLVE_INDEX_URL", "https://user:secret@packages.example.org/simple")
    monkeypatch.setenv("ENVSOLVE_CHANNEL", "https://conda.example.org/t/secret/channel")
    done = envsolve("-f", "pytorch", "--driver", "610")
    assert "typed: ENVSOLVE_CHANNEL=... ENVSOLVE_GPU='RTX 9999' ENVSOLVE_INDEX_URL=... envsolve -f" in done.err
    assert "secret" not in done.err


@pytest.mark.parametrize("output", ["missing/..", "missing/file.yml"])
def test_an_output_that_cannot_be_a_file_is_one_clear_error(output: str, envsolve: Envsolve, tmp_path: Path) -> None:
    done = envsolve("-f", "pytorch", "--gpu", "8.6", "--driver", "610", "-o", str(tmp_path / output))
    assert (done.code, done.err.splitlines()[0]) == (2, "error: output-not-writable"), done.err
    assert envsolve("-f", "pytorch", "--gpu", "8.6", "--driver", "610", "-o", "/missing/..").code == 2


@pytest.mark.thorough
@pytest.mark.parametrize("policy", ["widest-gpu", "newest-cuda"])
def test_the_newest_compatible_version_is_the_same_for_all_policies(policy: str, envsolve: Envsolve) -> None:
    request = ("-f", "pytorch>=99", "--gpu", "8.6", "--driver", "610")
    plain, preferring = envsolve(*request).err, envsolve(*request, "--prefer", policy).err
    newest = plain.partition("hint: the newest pytorch that fits is ")[2].partition(" ")[0]
    assert newest
    assert f"hint: the newest pytorch that fits is {newest} " in preferring


def test_an_unwritable_output_is_named(envsolve: Envsolve, tmp_path: Path) -> None:
    result = envsolve("-f", "pytorch", "--gpu", "8.6", "-o", str(tmp_path / "no" / "environment.yml"))
    assert result.code == 2
    assert result.err.startswith("error: output-not-writable\n")
    assert list(tmp_path.iterdir()) == []


OURS = "# Made by envsolve 0.1.0:\nname: old\n"


def test_a_failure_leaves_the_old_file_unchanged(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(OURS, encoding="utf-8")
    result = envsolve("-f", "pytorch==2.15.*", "--gpu", "8.9", "--driver", "550.163.01", "-o", str(path))
    assert result.code == 1
    assert path.read_text(encoding="utf-8") == OURS
    assert [entry.name for entry in tmp_path.iterdir()] == ["environment.yml"]


def test_an_output_that_is_a_link_is_written_through(envsolve: Envsolve, tmp_path: Path) -> None:
    target, link = tmp_path / "real.yml", tmp_path / "link.yml"
    target.write_text(OURS, encoding="utf-8")
    link.symlink_to(target)
    assert envsolve("-f", "pytorch", "--gpu", "8.6", "-o", str(link)).code == 0
    assert link.is_symlink()
    assert "pytorch" in target.read_text(encoding="utf-8")


def test_a_device_is_written_to_and_not_replaced(envsolve: Envsolve) -> None:
    device = Path(os.devnull)
    assert envsolve("-f", "pytorch", "--gpu", "8.6", "-o", str(device)).code == 0
    assert not device.is_file()


def test_the_platform_must_match_the_host_file(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps(HOST), encoding="utf-8")
    assert "contradictory-options" in envsolve("-f", "pytorch", "--host", str(path), "--platform", "win-64").err


def test_hosts_with_and_without_gpus_are_exclusive(envsolve: Envsolve, tmp_path: Path) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps(HOST), encoding="utf-8")
    other.write_text(json.dumps({**HOST, "gpus": [], "driver": None, "status": "no-hardware"}), encoding="utf-8")
    assert "hosts-differ" in envsolve("-f", "pytorch", "--host", str(one), "--host", str(other)).err
    assert "CPU only" in envsolve("-f", "pytorch", "--host", str(other)).out


@pytest.mark.parametrize("capability", ["99.9", "8.4"])
def test_an_impossible_capability_in_a_host_file_is_refused(
    capability: str, envsolve: Envsolve, tmp_path: Path
) -> None:
    path = tmp_path / "host.json"
    path.write_text(json.dumps({**HOST, "gpus": [{"compute_capability": capability}]}), encoding="utf-8")
    result = envsolve("-f", "pytorch", "--host", str(path))
    assert (result.code, "unknown-gpu" in result.err) == (2, True)


@pytest.mark.parametrize("value", ["5.0", "cuda"])
def test_a_conda_override_that_is_no_cuda_version_is_refused(
    value: str, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", value)
    assert envsolve("-f", "pytorch", "--gpu", "8.6").code == 2


def test_all_invalid_options_are_reported_together(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVSOLVE_CUDA", "cu121")
    done = envsolve("-f", "pytorch", "--driver", "new", "--platform", "linux64", "--python", "three")
    assert done.code == 2
    assert done.err.startswith("error: usage\n  4 options cannot be read\n")
    causes = [line for line in done.err.splitlines() if line.startswith("cause: ")]
    assert [it.split("'")[1] if "'" in it.split(":")[1] else it.split()[4] for it in causes] == [
        "--driver",
        "--platform",
        "--python",
        "ENVSOLVE_CUDA:",
    ]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["update"], "envsolve lock -U"),
        (["install", "numpy"], "envsolve add PACKAGE"),
        (["stauts"], "envsolve status"),
        (["Lock"], "envsolve lock"),
        (["frobnicate"], "envsolve --help"),
        (["pytorch", "--gpu", "8.6"], "envsolve --framework pytorch --gpu 8.6"),
        (["torch"], "envsolve --framework torch"),
        (["pytroch", "--gpu", "8.6"], "envsolve --framework pytorch --gpu 8.6"),
        (["numpy>=2", "--gpu", "8.6"], "envsolve --format pylock 'numpy>=2' --gpu 8.6"),
        (["requirements.txt"], "envsolve --format pylock -r requirements.txt"),
        (["--gpu", "none", "lock"], "envsolve lock ..."),
        (["solve", "pandas"], "envsolve --format pylock pandas"),
        (["solve", "pytorch", "--gpu", "8.6"], "envsolve -f pytorch --gpu 8.6"),
    ],
)
def test_a_bare_word_is_a_command_and_not_a_package(words: list[str], hint: str, envsolve: Envsolve) -> None:
    done = envsolve(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: usage\n")
    assert done.err.endswith(f"\n  {hint}\n")


def test_a_word_with_a_framework_or_a_format_is_a_package(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    assert envsolve("numpy", "-f", "jax", "--gpu", "none").code == 0
    monkeypatch.setenv("ENVSOLVE_FRAMEWORK", "jax")
    assert envsolve("numpy", "--gpu", "none").code == 0


@pytest.mark.parametrize(
    ("word", "command"),
    [("solv", "envsolve solve -f jax --gpu none"), ("Lock", "envsolve lock -f jax --gpu none")],
)
def test_a_misspelled_command_is_not_a_package_even_with_a_framework(
    word: str, command: str, envsolve: Envsolve
) -> None:
    done = envsolve(word, "-f", "jax", "--gpu", "none")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: usage\n  unknown command '{word}'\n")
    assert f"\n  {command}\n" in done.err
    as_package = done.err.splitlines()[-1].split()
    assert as_package == ["envsolve", "-f", "jax", "--gpu", "none", word]
    solved = envsolve(*as_package[1:])
    assert (solved.code, f"- {word.lower()} " in solved.out.lower()) == (0, True)


def test_a_command_of_another_tool_is_not_a_package_even_with_a_framework(envsolve: Envsolve) -> None:
    done = envsolve("install", "-f", "jax", "--gpu", "none", "numpy")
    assert (done.code, done.out) == (2, "")
    assert "\n  envsolve add PACKAGE\n" in done.err


def test_a_package_with_a_name_like_a_command_is_a_package(envsolve: Envsolve) -> None:
    assert envsolve("locket", "-f", "jax", "--gpu", "none").code == 0


@pytest.mark.parametrize(
    ("words", "text", "command"),
    [
        (
            ("validate", "--gpu", "0"),
            "--gpu describes a target for solve and lock; --device selects the GPU to test",
            "envsolve validate --device cuda:0",
        ),
        (
            ("status", "--prefix", "env"),
            "status checks files; doctor checks an environment",
            "envsolve doctor --prefix DIR",
        ),
    ],
)
def test_an_option_of_another_command_is_explained(
    words: tuple[str, ...], text: str, command: str, envsolve: Envsolve
) -> None:
    done = envsolve(*words)
    assert done.code == 2
    assert f"\nhint: {text}\n  {command}\n" in done.err
    assert "did you mean" not in done.err.lower()


def test_listed_options_are_those_of_the_command(envsolve: Envsolve) -> None:
    done = envsolve("doctor", "--prefix", "a", "--python", "b")
    assert done.err.endswith("hint: list all options\n  envsolve doctor --help\n")


@pytest.mark.parametrize("name", ["pylock.toml", "conda-lock.yml", "environment.yml", "requirements.txt"])
def test_an_empty_lock_is_called_empty_by_every_command(
    name: str, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("\n", encoding="utf-8")
    assert envsolve("status", name).out.endswith("because: it is empty\n")
    for words in (("create", "env", "--lock", name), ("export", name, "--format", "requirements")):
        assert f"cannot read {name}: it is empty\n" in envsolve(*words).err


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a directory that nobody can write to")
def test_commands_without_an_output_file_do_not_recommend_one(envsolve: Envsolve) -> None:
    done = envsolve("init", "-f", "jax", "--gpu", "none", "--no-lock", "--project", "/proc/self")
    assert done.err.startswith("error: output-not-writable\n")
    assert done.err.endswith("hint: check the permissions of the file and of its directory\n")
