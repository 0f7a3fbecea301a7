"""Libraries of the driver that misbehave when they are loaded or queried do no further harm."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from envsolve.host.child import Ended
from envsolve.host.library import reading_of
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from tests.fake_driver.builder import Device, FakeDriver
from tests.host.child_detection import REPOSITORY, ran

pytestmark = pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="this machine has a real driver")
LIBRARIES = ("libnvidia-ml", "libcuda")
DETECT = ("detect", "--json")
SOLVE = ("-f", "pytorch", "--json")
COMMANDS = pytest.mark.parametrize("command", [DETECT, SOLVE], ids=["detect", "solve"])

LOADING = {
    "crash": "died with signal 11",
    "abort": "died with signal 6",
    "exit": "ended the process that queried it, with exit code 0",
    "hang": "did not answer in time",
    "answer": "sent an unreadable result",
    "print": None,
    "close": None,
}
"""What FAKE_NV_LOAD has the libraries do, and the words for it; None where they answer all the same."""


@pytest.mark.thorough
@COMMANDS
@pytest.mark.parametrize("what", LOADING)
def test_a_library_that_misbehaves_during_loading_is_one_failed_source(
    what: str, command: tuple[str, ...], fake_driver: FakeDriver, tmp_path: Path
) -> None:
    found = ran(fake_driver.environ(parts=LIBRARIES, FAKE_NV_LOAD=what), tmp_path, *command)
    answer, words = json.loads(found.out), LOADING[what]
    if words is None:
        assert (answer if command == DETECT else answer["host"])["gpus"][0]["name"] == "NVIDIA GeForce GTX 1080 Ti"
    else:
        assert f"NVML {words}" in found.err or f"queried NVML {words}" in found.err
        assert answer.get("status") == "driver-broken" or answer["error"]["code"] == "gpu-not-identified"


@pytest.mark.thorough
@pytest.mark.parametrize("length", [64, 4096, 12_000])
def test_a_truncated_library_is_one_failed_source(length: int, fake_driver: FakeDriver, tmp_path: Path) -> None:
    """The loader itself crashes on a file that ends before its code does (SIGBUS)."""
    environ = fake_driver.environ(parts=LIBRARIES)
    for part in LIBRARIES:
        whole = fake_driver.library(part)
        (tmp_path / whole.name).write_bytes(whole.read_bytes()[:length])
    found = ran(environ | {"LD_LIBRARY_PATH": str(tmp_path)}, tmp_path, *DETECT)
    assert json.loads(found.out)["status"] == "driver-broken"


@pytest.mark.thorough
@COMMANDS
def test_output_of_a_library_is_discarded(command: tuple[str, ...], fake_driver: FakeDriver, tmp_path: Path) -> None:
    found = ran(fake_driver.environ(FAKE_NV_PRINT="nvmlInitWithFlags,cuInit"), tmp_path, *command)
    assert found.code == 0
    assert "NVIDIA GeForce GTX 1080 Ti" in found.out


@pytest.mark.thorough
@COMMANDS
def test_a_library_that_takes_all_memory_is_stopped(
    command: tuple[str, ...], fake_driver: FakeDriver, tmp_path: Path
) -> None:
    calls = "nvmlInitWithFlags,cuInit"
    environ = fake_driver.environ(parts=LIBRARIES, FAKE_NV_ALLOCATE=calls, ENVSOLVE_PROBE_TIMEOUT="30")
    found = ran(environ, tmp_path, *command)
    assert json.loads(found.out)
    assert "NVML took too much memory and was stopped" in found.err


SCRIPT = """
import json, os, sys, threading
from pathlib import Path
from envsolve.host.detection import examine
from envsolve.host.host_file import host_as_json
from envsolve.host.machine import Machine
from envsolve.model.host import Platform
if sys.argv[1] == "threads":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
kept = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT)
os.set_inheritable(kept, True)
machine = Machine(Platform.LINUX_64, dict(os.environ), Path(sys.argv[3]))
print(json.dumps(host_as_json(examine(machine))))
"""


@pytest.mark.thorough
@pytest.mark.parametrize("what", ["", *LOADING])
@pytest.mark.parametrize("process", ["alone", "threads"])
def test_a_fork_and_a_new_interpreter_are_protected_alike(
    process: str, what: str, fake_driver: FakeDriver, tree: Path, tmp_path: Path
) -> None:
    """A process with threads does not fork."""
    record = tmp_path / "kept"
    finished = subprocess.run(
        [sys.executable, "-c", SCRIPT, process, str(record), str(tree)],
        env={
            **fake_driver.environ(parts=LIBRARIES, CUDA_VISIBLE_DEVICES="-1"),
            "FAKE_NV_LOAD": what,
            "ENVSOLVE_PROBE_TIMEOUT": "2",
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert finished.stderr == ""
    assert record.read_bytes() == b""
    host = json.loads(finished.stdout)
    words = LOADING.get(what)
    assert {reading["source"]: bool(reading["gpus"]) for reading in host["readings"][:1]} == {"nvml": words is None}
    libcuda = next(reading for reading in host["readings"] if reading["source"] == "libcuda")
    assert bool(libcuda["gpus"]) == (words is None)
    assert words is None or words in libcuda["problem"]["text"]


ANSWERS = {
    b"": Trouble.CRASH,
    b"[1]\n": Trouble.PROBE_FAILED,
    b"GARBAGE\n": Trouble.PROBE_FAILED,
    b"[" * 100_000: Trouble.PROBE_FAILED,
    b"\xff\n": Trouble.PROBE_FAILED,
    b'{"driver_cuda": ' + b"9" * 5000 + b"}\n": Trouble.PROBE_FAILED,
    b'{"driver_cuda": true}\n': Trouble.PROBE_FAILED,
    b'{"driver": "one"}\n': Trouble.UNREADABLE_ANSWER,
    b'{"gpus": [["T4", 7, 5, 1]]}\n': Trouble.PROBE_FAILED,
    b'{"gpus": [["T4", "7", 5, 1, false]]}\n': Trouble.PROBE_FAILED,
    b'{"problem": ["made-up", "text", 1]}\n': Trouble.PROBE_FAILED,
    b'{"problem": ["other-error", "text"]}\n': Trouble.PROBE_FAILED,
    b'{"problem": ["no-device", "no CUDA device", 100]}\n': Trouble.NO_DEVICE,
}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer[:30].decode("latin-1"))
def test_any_answer_of_a_child_is_a_reading(answer: bytes) -> None:
    problem = reading_of(Ended(answer, 0), Source.LIBCUDA).problem
    assert problem is not None
    assert problem.code == ANSWERS[answer]


def test_impossible_numbers_of_gpus_are_rejected() -> None:
    gpus = reading_of(Ended(b'{"gpus": [["T4", 1000, -5, 99999999999999999999, false]]}\n', 0), Source.NVML).gpus
    assert gpus is not None
    assert (gpus[0].name, gpus[0].compute_capability, gpus[0].memory_mib) == ("T4", None, None)


@pytest.mark.thorough
@pytest.mark.parametrize("source", ["libnvidia-ml", "libcuda"])
def test_a_name_reported_by_a_library_cannot_control_the_terminal(
    source: str, fake_driver: FakeDriver, tmp_path: Path
) -> None:
    device = Device("RED\x1b]0\x07 \u202e", "8.6")
    found = ran(fake_driver.environ(parts=[source], devices=[device]), tmp_path, *DETECT)
    assert json.loads(found.out)["gpus"][0]["name"] == r"RED\u001b]0\u0007 \u202e"
