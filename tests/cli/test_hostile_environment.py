"""Malicious environments: each command ends soon, with an answer or one error that names the culprit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.index.packages import core_metadata, wheel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the environments are those of Linux")
SOON = 30.0
SLEEPS = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
FLOODS = "import os\nwhile True: os.write(1, bytes(1 << 20))"
LEAVES_A_CHILD = "import os, time\nif os.fork() == 0: time.sleep(45)"
LIES = """
import os, sys
if sys.orig_argv[1].endswith("run.py") and sys.orig_argv[2] != "inventory":
    with open(sys.orig_argv[-1], "w") as file:
        print({answer!r}, file=file)
    os._exit(0)
"""
DEEP = "[" * 100_000
NAMED = "Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n"
VALIDATE, DOCTOR, CAPTURE = ("validate", "--device", "cpu"), ("doctor",), ("capture",)


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def output(self) -> str:
        return self.out + self.err


class Environment:
    """A virtual environment with alpha 1.0, and an index in a folder that has it."""

    def __init__(self, root: Path) -> None:
        self.root, self.prefix = root, root / "env"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.prefix)], check=True)
        (self.site,) = self.prefix.glob("lib/python*/site-packages")
        self.python = self.prefix / "bin/python"
        made = wheel("alpha", "1.0")
        assert made.content is not None
        page = root / "simple/alpha/index.html"
        page.parent.mkdir(parents=True)
        (page.parent / made.name).write_bytes(made.content)
        page.write_text(f'<a href="{made.name}#sha256={sha256(made.content).hexdigest()}">{made.name}</a>')
        self.write("alpha-1.0.dist-info/METADATA", core_metadata("alpha", "1.0"))
        self.write("alpha-1.0.dist-info/RECORD", "alpha-1.0.dist-info/METADATA,,\n")

    def write(self, path: str, content: str | bytes) -> Path:
        """A file of a package, or of the prefix where ``path`` begins with a slash."""
        place = self.prefix / path[1:] if path.startswith("/") else self.site / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    def program(self, text: str) -> None:
        """Replace the interpreter by a shell script."""
        self.python.unlink()
        self.python.write_text(f"#!/bin/sh\n{text}\n")
        self.python.chmod(0o755)

    def state(self, content: str) -> Path:
        """Make it a conda prefix with these variables."""
        return self.write("/conda-meta/state", content)

    def run(self, *words: str) -> Ran:
        """Run a command on it, which must end soon and without an internal error."""
        where = ["--index-url", (self.root / "simple").as_uri()] if words[0] == "capture" else []
        command = [sys.executable, "-m", "envsolve", *words, "--prefix", str(self.prefix), *where]
        environ = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
        environ["ENVSOLVE_CACHE_DIR"] = str(self.root / "cache")
        started = time.monotonic()
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=4 * SOON)
        assert time.monotonic() - started < SOON
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert "internal" not in ran.err, ran.err
        assert "Traceback" not in ran.err, ran.err
        return ran


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


@pytest.mark.thorough
def test_an_intact_environment_is_captured(environment: Environment) -> None:
    ran = environment.run(*CAPTURE)
    assert ran.code == 0, ran.err
    assert "alpha==1.0" in ran.out


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "code"), [(CAPTURE, 1), (VALIDATE, 3)])
@pytest.mark.parametrize("hangs", [pytest.param(SLEEPS, marks=pytest.mark.thorough), FLOODS], ids=["sleeps", "floods"])
def test_a_python_that_fails_early_is_named(
    environment: Environment, command: tuple[str, ...], code: int, hangs: str
) -> None:
    environment.write("sitecustomize.py", hangs)
    ran = environment.run(*command)
    assert (ran.code, ran.out) == (code, "")
    assert str(environment.prefix) in ran.err
    if command == VALIDATE:
        why = "did not answer within 20 seconds" if hangs == SLEEPS else "printed more than 64 MiB instead of an answer"
        assert f"{environment.python} {why}" in ran.err


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "code"), [(CAPTURE, 1), (VALIDATE, 3)])
def test_endless_output_of_a_replaced_python_is_stopped(
    environment: Environment, command: tuple[str, ...], code: int
) -> None:
    environment.program("exec cat /dev/zero")
    ran = environment.run(*command)
    assert (ran.code, ran.out) == (code, "")
    assert str(environment.prefix) in ran.err
    assert len(ran.err) < 10_000


@pytest.mark.thorough
@pytest.mark.parametrize(
    "noise", ["import os; os.write(1, bytes(100_000))", "print('[1, 2]')", LEAVES_A_CHILD], ids=["nul", "json", "child"]
)
def test_extra_output_of_python_is_ignored(environment: Environment, noise: str) -> None:
    environment.write("sitecustomize.py", noise)
    ran = environment.run(*CAPTURE)
    assert ran.code == 0, ran.err
    assert "alpha==1.0" in ran.out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("direct_url.json", DEEP),
        ("direct_url.json", "[]"),
        ("METADATA", "Name: ../../../etc/passwd\nVersion: 1.0\n"),
        ("METADATA", f"{NAMED}Requires-Dist: \x1b[2Jtorch\n"),
        ("METADATA", NAMED.encode() + b"Author: Jos\xe9\n"),
        ("METADATA", NAMED.replace("1.0", "9" * 5000)),
        ("METADATA", f"{NAMED}Requires-Dist: torch>={'9' * 5000}\n"),
    ],
    ids=["deep", "shape", "path", "escapes", "bytes", "digits", "required-digits"],
)
def test_malformed_metadata_is_named_by_every_command(
    environment: Environment, file: str, content: str | bytes
) -> None:
    path = environment.write(f"alpha-1.0.dist-info/{file}", content)
    ran = environment.run(*CAPTURE)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: packages-not-captured\n")
    assert f"{path} is malformed: " in ran.err
    for command in (DOCTOR, VALIDATE):
        assert f"{path} is malformed" in environment.run(*command).out


@pytest.mark.thorough
@pytest.mark.parametrize("command", [VALIDATE, DOCTOR, CAPTURE])
def test_deeply_nested_variables_are_named(environment: Environment, command: tuple[str, ...]) -> None:
    path = environment.state(DEEP)
    ran = environment.run(*command)
    assert ran.code == 1
    assert f"{path} is malformed" in ran.output


@pytest.mark.thorough
@pytest.mark.parametrize(
    "variables",
    [r'{"A\u0000B": "1"}', '{"A=B": "1"}', '{"": "1"}', r'{"A": "1\u0000"}', r'{"A": "\ud800"}'],
    ids=["nul", "equals", "empty", "value", "surrogate"],
)
def test_variables_that_no_system_accepts_are_named(environment: Environment, variables: str) -> None:
    path = environment.state(f'{{"env_vars": {variables}}}')
    ran = environment.run(*VALIDATE)
    assert ran.code == 1
    assert f"{path} is malformed" in ran.out


@pytest.mark.parametrize("command", [VALIDATE, DOCTOR, CAPTURE])
@pytest.mark.thorough  # the scripts get ten seconds; tests/validation/test_activation.py gives them one
@pytest.mark.parametrize("script", ["sleep 1000", "trap '' TERM; while :; do :; done"], ids=["sleeps", "spins"])
def test_an_endless_script_is_named(environment: Environment, command: tuple[str, ...], script: str) -> None:
    environment.state('{"env_vars": {}}')
    environment.write("/etc/conda/activate.d/first.sh", "export FIRST=1")
    path = environment.write("/etc/conda/activate.d/second.sh", script)
    ran = environment.run(*command)
    assert ran.code == 1
    assert f"The activation script {path} does not run to its end" in ran.output


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("device", "answer"),
    [
        ("cpu", '{"result": {"operations": [3]}}'),
        ("cpu", '{"result": {"operations": [{"name": "matmul"}]}}'),
        ("cpu", '{"note": {"loaded": [3]}}'),
        ("cpu", '{"note": {"loaded": 3}}'),
        ("cuda", '{"result": {"devices": 3}}'),
        ("cuda", '{"result": {"error": {"stage": "cuInit"}}}'),
        ("cuda", '{"result": {"devices": [{"index": 0}]}}'),
    ],
)
def test_a_nonsensical_answer_to_a_probe_names_the_interpreter(
    environment: Environment, device: str, answer: str
) -> None:
    environment.write("torch-2.8.0.dist-info/METADATA", "Name: torch\nVersion: 2.8.0\n")
    environment.write("sitecustomize.py", LIES.format(answer=answer))
    ran = environment.run("validate", "--device", device)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("error: python-not-usable\n")
    assert str(environment.prefix / "bin") in ran.err
