"""``envsolve explain`` from the user's view: texts, files and pipes in, findings out."""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from tests.conftest import Envsolve
from tests.diagnose.symptom_logs import symptom_logs
from tests.laws import examples

NO_KERNEL = (
    "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible with the current PyTorch installation.\n"
    "The current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90."
)
CUDART = (
    "Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file"
)


class _Stdin(io.TextIOWrapper):
    """Standard input with bytes that is not a terminal."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")


def test_a_text_is_explained(envsolve: Envsolve) -> None:
    done = envsolve("explain", CUDART)
    assert done.code == 0
    assert done.out.startswith("error: cuda-library-missing\n")
    assert "of CUDA 11" in done.out
    assert f"seen: {CUDART}" in done.out
    assert done.err == ""


def test_the_contract_of_the_json(envsolve: Envsolve) -> None:
    (finding,) = json.loads(envsolve("explain", "--json", CUDART).out)["findings"]
    assert {"id", "title", "severity", "in_scope", "cause", "fix", "commands", "evidence"} <= set(finding)
    assert finding["severity"] == "error"
    assert finding["in_scope"] is True
    assert finding["evidence"] == [CUDART]
    assert finding["sources"]


PTXAS = "jax: ptxas too old"


@pytest.mark.thorough
def test_a_version_that_only_the_local_lock_names_is_used(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("explain", "--gpu", "V100", "--platform", "linux-64")
    without = envsolve(*words, PTXAS)
    assert (without.err, "cu12>=12.9" in without.out) == ("", False)
    Path("uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "demo"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "jax" }]\n[[package]]\nname = "jax"\nversion = "0.10.2"\n'
        'source = { registry = "https://packages.example/simple" }\n'
        f'wheels = [{{ url = "https://packages.example/jax-0.10.2-py3-none-any.whl", hash = "sha256:{"a" * 64}" }}]\n'
    )
    found = envsolve(*words, PTXAS)
    assert found.err == "note: the text names no version of jax: 0.10.2 is what uv.lock in this directory has\n"
    assert found.out == envsolve(*words, "-f", "jax==0.10.2", PTXAS).out
    assert "cu12>=12.9" in found.out
    of_here = f'  File "{tmp_path}/.venv/lib/python3.11/site-packages/jax/x.py", line 1\n{PTXAS}'
    assert "uv.lock" in envsolve(*words, of_here).err
    for others in (
        (*words, f"jax==0.4.30\n{PTXAS}"),
        (*words, "-f", "jax==0.4.30", PTXAS),
        (*words, CUDART),
        (*words, f'  File "/home/user/other/.venv/lib/python3.11/site-packages/jax/x.py", line 1\n{PTXAS}'),
    ):
        assert "uv.lock" not in envsolve(*others).err, others
    Path("uv.lock").write_text("no lock")
    assert envsolve(*words, PTXAS).out == without.out


def test_ptxas_must_match_the_cuda_of_the_build_and_know_the_gpu(envsolve: Envsolve) -> None:
    old = envsolve("explain", "--gpu", "V100", "-f", "jax==0.10.2", "ptxas too old").out
    assert "pip install -U 'nvidia-cuda-nvcc-cu12>=12.9'" in old
    toolkit = envsolve("explain", "--gpu", "V100", "-f", "jax==0.10.2", "ptxas too old", "/usr/local/cuda-12.1/bin").out
    assert "export PATH=/usr/local/cuda-12.9/bin:$PATH" in toolkit
    assert "ptxas of CUDA 12.8 or newer" in envsolve("explain", "--gpu", "RTX 5090", "ptxas too old").out


@pytest.mark.parametrize("name", ["train.log", "no suffix"])
def test_a_file_is_read(envsolve: Envsolve, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(f"epoch 1\n{CUDART}\n")
    assert envsolve("explain", str(path)).out.startswith("error: cuda-library-missing\n")


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_standard_input_is_read(
    envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr(sys, "stdin", _Stdin(CUDART.encode()))
    assert envsolve("explain", *arguments).out.startswith("error: cuda-library-missing\n")


def test_words_split_by_the_shell_are_one_text(envsolve: Envsolve) -> None:
    assert envsolve("explain", *CUDART.split()).out.startswith("error: cuda-library-missing\n")


@pytest.mark.thorough
@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-le", "utf-16-be"])
def test_a_log_written_by_powershell_is_read(envsolve: Envsolve, tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(f"epoch 1\r\n{CUDART}\r\n".encode(encoding))
    assert envsolve("explain", str(path)).out.startswith("error: cuda-library-missing\n")


def test_the_command_of_a_finding_is_solved_for_the_gpu_in_the_text(envsolve: Envsolve) -> None:
    found = json.loads(envsolve("explain", "--json", NO_KERNEL).out)["findings"][0]
    (command,) = [it for it in found["commands"] if it.startswith("envsolve --framework")]
    assert "--gpu 12.0" in command
    assert "The solver has checked this environment: pytorch" in found["more"]
    assert envsolve(*shlex.split(command)[1:]).code == 0


def test_a_refusal_of_the_solver_is_not_in_a_fix_that_has_commands(envsolve: Envsolve) -> None:
    text = "cudaErrorNoKernelImageForDevice paddlepaddle-gpu 3.0.0 RTX 5090"
    found = json.loads(envsolve("explain", "--json", text).out)["findings"][0]
    assert "packages/stable/cu129" in found["commands"][0]
    assert "No environment fits" not in found["fix"]
    assert "No environment fits" in found["more"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("system", "command"),
    [
        ("Ubuntu 24.04", "sudo apt-get update && sudo apt-get install -y nvidia-container-toolkit"),
        ("Rocky Linux 9", "sudo dnf install -y nvidia-container-toolkit"),
        ("Fedora 41", "sudo dnf install -y nvidia-container-toolkit"),
        ("Arch Linux", "sudo pacman -S nvidia-container-toolkit"),
    ],
)
def test_the_container_toolkit_is_installed_as_the_distribution_of_the_text_does(
    system: str, command: str, envsolve: Envsolve
) -> None:
    text = 'could not select device driver "" with capabilities: [[gpu]]'
    commands = json.loads(envsolve("explain", "--json", f"{system}\n{text}").out)["findings"][0]["commands"]
    assert [it for it in commands if "install -y" in it or "pacman" in it] == [command]


def test_a_version_with_only_ptx_for_the_gpu_is_not_recommended(envsolve: Envsolve) -> None:
    text = f"torch 2.5.1\n{NO_KERNEL}"
    assert "compute_90" in envsolve("-f", "pytorch==2.5.*", "--gpu", "12.0", "--platform", "linux-64").out
    commands = json.loads(envsolve("explain", "--json", "--platform", "linux-64", text).out)["findings"][0]["commands"]
    assert [it for it in commands if it.startswith("envsolve --framework pytorch --gpu 12.0")]


def test_options_improve_the_answer(envsolve: Envsolve) -> None:
    text = "CUDA driver version is insufficient for CUDA runtime version"
    bare = envsolve("explain", text).out
    sharp = envsolve("explain", "-f", "pytorch==2.11.0", "--gpu", "RTX 3090", "--driver", "535.183.01", text).out
    assert bare != sharp
    assert "535.183.01" in sharp
    assert "--driver 535.183.01 --gpu 8.6" in sharp


def test_a_host_file_also_improves_it(envsolve: Envsolve, tmp_path: Path) -> None:
    host = tmp_path / "host.json"
    host.write_text(
        json.dumps(
            {
                "schema_version": 1,
                "platform": "linux-64",
                "driver": "535.183.01",
                "driver_cuda": "12.2",
                "glibc": "2.35",
                "gpus": [{"name": "NVIDIA GeForce RTX 3090", "compute_capability": "8.6", "count": 1}],
                "origin": {},
            }
        )
    )
    done = envsolve("explain", "--host", str(host), "-f", "pytorch", "no kernel image is available for execution")
    assert "--gpu 8.6" in done.out


def test_only_the_first_cause_is_explained_in_full_without_verbose(envsolve: Envsolve) -> None:
    text = "CUDA error: no kernel image is available for execution on the device"
    short, full = envsolve("explain", text).out, envsolve("explain", "-v", text).out
    others = [it for it in short.splitlines() if it.startswith("or: ")]
    assert others == [it for it in full.splitlines() if it.startswith("or: ")]
    assert any("cuobjdump --list-elf" in it for it in others)
    assert "  fix: " not in short
    assert full.count("  fix: ") == len(others)
    sure = "The NVIDIA driver on your system is too old (found version 11040)"
    assert "\nor: " not in envsolve("explain", sure).out


def test_json_has_the_confidence_and_the_lines_that_were_read(envsolve: Envsolve) -> None:
    (sure,) = json.loads(envsolve("explain", "--json", NO_KERNEL).out)["findings"]
    assert sure["confidence"] == "high"
    assert sure["facts"]["capability"] == "12.0"
    (open_,) = json.loads(envsolve("explain", "--json", "no CUDA-capable device is detected").out)["findings"]
    assert open_["confidence"] == "low"
    assert open_["possible_causes"][0]["title"] == open_["title"]


def test_a_newer_given_driver_needs_no_update(envsolve: Envsolve) -> None:
    text = "The NVIDIA driver on your system is too old (found version 11040)"
    assert (
        "fix: Update the NVIDIA driver to 525.60.13 or newer, or install a build for CUDA 11.8 or older"
        in envsolve("explain", text).out
    )
    beside = envsolve("explain", text, "--driver", "610").out
    assert "fix: Make the program use driver 610: " in beside
    assert "Update the NVIDIA driver" not in beside
    assert "CUDA 11.8 or older" not in beside
    assert "remove old copies of libcuda" in beside
    on_windows = envsolve("explain", text, "--driver", "610", "--platform", "win-64").out
    assert "remove old copies of libcuda" not in on_windows


@pytest.mark.parametrize(
    ("capability", "says"),
    [
        ("12.0", "fix: Update the NVIDIA driver to branch R570 or newer."),
        ("3.5", "fix: Install a build for CUDA 11.8 or older. No newer driver supports this GPU."),
    ],
)
def test_a_driver_that_the_gpu_does_not_have_is_not_recommended(capability: str, says: str, envsolve: Envsolve) -> None:
    text = "The NVIDIA driver on your system is too old (found version 11040)"
    output = envsolve("explain", text, "--gpu", capability, "--driver", "525").out
    assert says in output
    assert "Make the program use" not in output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("begins", "what"),
    [
        (b"\x7fELF\x02\x01\x01\0", "a program or a library"),
        (b"MZ\x90\0", "a program or a library"),
        (b"\xcf\xfa\xed\xfe\x07\0", "a program or a library"),
        (b"\xca\xfe\xba\xbe\0\0", "a program or a library"),
        (b"PK\x03\x04\x14\0", "an archive"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"BZh91AY&SY\xe8", "compressed"),
        (b"\xfd7zXZ\0", "compressed"),
        (b"\x28\xb5\x2f\xfd", "compressed"),
        (b"\x89PNG\r\n", "a picture"),
        (b"\xff\xd8\xff\xe0", "a picture"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3", "a PDF file"),
    ],
)
def test_a_binary_file_is_refused(begins: bytes, what: str, envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "failure.log"
    file.write_bytes(begins + b" P4 T4 sm_61")
    done = envsolve("explain", str(file))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: log-unreadable\n  {file} is {what}, not a text\n")


def test_a_binary_on_standard_input_is_refused_too(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = io.BufferedReader(io.BytesIO(b"\x89PNG\r\n P4 T4 sm_61"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(picture))
    done = envsolve("explain", "-")
    assert (done.code, done.out) == (2, "")
    assert "  standard input is a picture, not a text\n" in done.err


@pytest.mark.parametrize("begins", ["MZ-node7: ", "BZh: ", "%PDF "])
def test_a_log_that_starts_like_a_program_is_read(begins: str, envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "failure.log"
    file.write_text(f"{begins}naïve\nCUDA error: no kernel image is available for execution on the device\n", "utf-8")
    assert "no-code-for-gpu" in envsolve("explain", str(file)).out


def test_the_name_of_a_missing_file_is_read_as_text(envsolve: Envsolve) -> None:
    done = envsolve("explain", "logs/train.lgo")
    assert (done.code, done.err) == (1, "note: there is no file logs/train.lgo: it was read as text\n")
    for text in ("sm_120", "train.lgo failed", "RuntimeError:", "torch.cuda.OutOfMemoryError"):
        assert "there is no file" not in envsolve("explain", text).err


def test_an_unknown_text_is_not_explained(envsolve: Envsolve) -> None:
    done = envsolve("explain", "ValueError: the moon is full, and torch 2.4.0 is installed")
    assert done.code == 1
    assert done.out.startswith("no known GPU environment error found in this text")
    assert "recognised: PyTorch 2.4.0" in done.out
    assert "collect: " in done.out
    data = json.loads(envsolve("explain", "--json", "the moon is full").out)
    assert data["findings"] == []
    assert data["collect"]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("PyTorch is not using my GPU", 'torch.zeros(1).cuda()"`, whose last lines decide'),
        ("uv sync, and then PyTorch is not using my GPU", 'torch.zeros(1).cuda()"`, whose last lines decide'),
        ("onnxruntime runs on CPU instead of GPU", 'ort.get_available_providers())"`, whose last lines decide'),
        ("jax is slow", "jax.devices('cuda'))\"`, whose last lines decide"),
        ("vllm crashes on startup", 'torch.zeros(1).cuda()"`, whose last lines decide'),
        ("ComfyUI crashes with RTX 5090", "on, not only the last line"),
    ],
)
def test_an_answer_to_words_ends_with_the_command_that_decides(envsolve: Envsolve, text: str, end: str) -> None:
    last = envsolve("explain", text).out.splitlines()[-1]
    assert last.startswith("to find out more, collect: ")
    assert last.endswith(end)
    assert ("uv run python" in last) == text.startswith("uv")


def test_a_line_of_a_program_needs_no_further_command(envsolve: Envsolve) -> None:
    data = json.loads(envsolve("explain", "--json", "AssertionError: Torch not compiled with CUDA enabled").out)
    assert data["findings"]
    assert data["collect"] == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("no-such-file.log",), "log-unreadable"),
        ((".",), "log-unreadable"),
        (("--gpu", "RTX 9999", "text"), "unknown-gpu"),
        (("--host", "host.json", "--gpu", "8.6", "text"), "contradictory-options"),
        (("--host", "no-such-host.json", "text"), "host-file-unreadable"),
        (("-f", "no-framework-at-all", "text"), "unknown-framework"),
        (("--driver", "x", "text"), "usage"),
        (("--python", "abc", "text"), "usage"),
        (("--built-cuda", "x", "text"), "usage"),
        (("--toolkit", "x", "text"), "usage"),
        (("--cuda", "12.4", "text"), "ambiguous-cuda"),
        (("--gpu", "none", "text"), "usage"),
        (("--matrix", "no-such-directory", "text"), "matrix-unreadable"),
        (("--prefix", "no-such-directory", "text"), "no-environment"),
    ],
)
def test_an_unreadable_input_is_one_clear_error(envsolve: Envsolve, arguments: tuple[str, ...], code: str) -> None:
    done = envsolve("explain", *arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {code}\n")


def test_a_terminal_without_a_text_gets_a_hint(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = _Stdin(b"")
    monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert envsolve("explain").err.startswith("error: nothing-to-explain\n")


def test_escape_sequences_of_a_log_never_reach_the_terminal(envsolve: Envsolve) -> None:
    text = f"\x1b]0;title\x07\x1b[31m\x9b31m{CUDART}\x1b[0m \x1b[2J\u202e\u200b\x08 end"
    for arguments in ((), ("--json",)):
        done = envsolve("explain", *arguments, text)
        assert done.code == 0
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", done.out)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "secret",
    ["hf_abcdefghijklmnopqrstuvwxyz0123456789", "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB", "s3cr3t-pa55word"],
)
def test_secrets_of_a_log_are_masked(envsolve: Envsolve, secret: str) -> None:
    line = f"{CUDART} while fetching https://user:{secret}@example.org/simple?token={secret} HF_TOKEN={secret}"
    for arguments in ((), ("--json",), ("-v",)):
        done = envsolve("explain", *arguments, line)
        assert done.code == 0
        assert secret not in done.out
        assert "***" in done.out


@pytest.mark.thorough
@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_arbitrary_bytes_never_crash_it(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    for garbage in (content, content + b"\n" + CUDART.encode() + b"\n" + content):
        monkeypatch.setattr(sys, "stdin", _Stdin(garbage))
        done = envsolve("explain", "-")
        assert done.code in (0, 1)
        assert "internal-error" not in done.err


@pytest.mark.thorough
def test_every_suggested_command_is_solvable(envsolve: Envsolve) -> None:
    """The releases of vLLM and SGLang are on an index, so their commands are solved for PyTorch alone."""
    advised = {
        command
        for log in symptom_logs()
        for finding in log.explained().findings
        for command in finding.commands
        if command.startswith("envsolve --framework") and "--gpu auto" not in command
    }
    assert advised
    solved = {re.sub(rf"--framework ({'|'.join(DEPENDENT_FRAMEWORKS)})\b", "--framework pytorch", it) for it in advised}
    assert {command for command in sorted(solved) if envsolve(*shlex.split(command)[1:]).code != 0} == set()
