"""Whatever a file from outside contains, envsolve ends with an answer or with one clear error.

`scripts/test -m fuzz` draws new examples each time, for a bounded time; a failure prints the example to run again.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import tomli
import tomlkit
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from envsolve.cli.main import run
from envsolve.create.reading import plan_of
from envsolve.errors import EnvsolveError
from envsolve.host.nvidia_smi import FIELDS, header_facts, rows
from envsolve.index.metadata import read_metadata
from envsolve.model.host import Platform
from envsolve.model.lock_format import is_project_lock
from tests.fuzz.damage import TEXTS, damaged, noisy

pytestmark = pytest.mark.fuzz

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "golden" / "0.1.0"
LOCKS = sorted(
    (
        *(path for path in GOLDEN.iterdir() if path.name not in ("expected.toml", "host.json", "record.json")),
        *(ROOT / "lockfile" / "project_locks").glob("*/*.lock"),
    )
)
PROJECT = {
    "project": {"name": "demo", "dependencies": ["numpy>=1.20"], "requires-python": ">=3.10"},
    "tool": {
        "envsolve": {
            "frameworks": ["pytorch>=2.5"],
            "python": ">=3.11",
            "gpus": ["RTX 3090"],
            "driver": "580.65.06",
            "requirements": ["numpy"],
            "requirement-files": ["requirements.in"],
            "outputs": ["environment.yml", "pylock.toml"],
            "targets": {"desk": {"gpus": ["8.6"]}, "cluster": {"hosts": ["host.json"], "outputs": ["cluster.yml"]}},
        }
    },
}
METADATA = (
    b"Metadata-Version: 2.4\nName: demo\nVersion: 1.0\nRequires-Python: >=3.9\nProvides-Extra: gpu\n"
    b'Requires-Dist: numpy<3,>=1.20; python_version >= "3.9" and extra == "gpu"\n'
    b"Requires-Dist: torch @ https://example.org/torch.whl#sha256=0a\n\nText\n"
)
SMI = (
    b"| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14    CUDA Version: 12.4      |\n"
    b"NVIDIA GeForce RTX 3090, 8.6, 24576, [N/A]\n"
)

fuzz = settings(
    max_examples=600,
    deadline=5000,  # milliseconds: nothing may hang, whatever is in it
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


def check(*words: str) -> None:
    """Run a command line; it must end with one of the exit codes of the contract, without an internal error."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run([*words])
    assert code in (0, 1, 2, 3)
    assert "internal-error" not in err.getvalue(), err.getvalue()
    assert "Traceback" not in out.getvalue() + err.getvalue()
    for line in err.getvalue().splitlines():
        assert line.isprintable(), line
    is_stale = code == 1 and "--check" in words and err.getvalue().startswith("note: ")
    if code and not is_stale:
        assert re.match(r"error: [a-z-]+\n  \S", err.getvalue()) or out.getvalue(), err.getvalue()


def check_in_a_folder(name: str, content: bytes, command: Callable[[Path], tuple[str, ...]]) -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory, name)
        path.write_bytes(content)
        check(*command(path))


def as_toml(document: Any) -> bytes:
    """``document`` as TOML, with false for null, and without the lone surrogates that TOML cannot hold."""
    return tomlkit.dumps(_without_null(document)).encode("utf-8", "replace")


def _without_null(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_null(value) for key, value in node.items()}
    if isinstance(node, list):
        return list(map(_without_null, node))
    return False if node is None else node


def lock_of_a_project(path: Path) -> tuple[str, ...]:
    (path.parent / "requirements.in").write_text("numpy\n")
    (path.parent / "host.json").write_bytes((GOLDEN / "host.json").read_bytes())
    cache = str(path.parent / "cache")
    return ("lock", "--check", "--offline", "--no-progress", "--cache-dir", cache, "--project", str(path.parent))


@fuzz
@given(damaged(PROJECT).map(as_toml))
def test_a_project_with_arbitrary_values(content: bytes) -> None:
    check_in_a_folder("pyproject.toml", content, lock_of_a_project)


@fuzz
@given(noisy(as_toml(PROJECT)))
@example(b"[tool.envsolve]\nrequirements=" + b"9" * 5000)
@example(b"[tool.envsolve]\nrequirements=" + b"[" * 5000)
def test_a_project_with_noise_in_it(content: bytes) -> None:
    check_in_a_folder("pyproject.toml", content, lock_of_a_project)


def solve_for_a_host(path: Path) -> tuple[str, ...]:
    return ("solve", "-f", "pytorch", "--host", str(path), "--format", "json")


@fuzz
@given(st.sampled_from(sorted((ROOT / "hosts").glob("*.json"))).flatmap(lambda it: damaged(json.loads(it.read_text()))))
def test_a_host_file_with_arbitrary_values(document: Any) -> None:
    check_in_a_folder("host.json", json.dumps(document).encode(), solve_for_a_host)


@fuzz
@given(noisy((GOLDEN / "host.json").read_bytes()))
def test_a_host_file_with_noise_in_it(content: bytes) -> None:
    check_in_a_folder("host.json", content, solve_for_a_host)


def damaged_lock(path: Path) -> st.SearchStrategy[bytes]:
    """The lock at ``path`` with changed values if its format has values, otherwise with noise in it."""
    content = path.read_bytes()
    strategies = [noisy(content)]
    if path.suffix == ".toml" or is_project_lock(path):
        strategies.append(damaged(tomli.loads(content.decode())).map(as_toml))
    elif path.suffix == ".json":
        strategies.append(damaged(json.loads(content)).map(lambda it: json.dumps(it).encode()))
    elif path.suffix == ".yml":
        strategies.append(damaged(yaml.safe_load(content)).map(lambda it: yaml.safe_dump(it).encode()))
    return st.one_of(strategies)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda it: f"{it.parent.name}/{it.name}")
def test_a_damaged_lock_is_read_or_refused(lock: Path) -> None:
    @settings(fuzz, max_examples=200)
    @given(damaged_lock(lock))
    def check_lock(content: bytes) -> None:
        check_in_a_folder(lock.name, content, lambda path: ("status", str(path)))
        check_in_a_folder(
            lock.name, content, lambda path: ("export", str(path), "--format", "requirements", "--offline")
        )
        with TemporaryDirectory() as directory:
            path = Path(directory, lock.name)
            path.write_bytes(content)
            with suppress(EnvsolveError):
                plan_of(path, Platform.LINUX_64)

    check_lock()


@fuzz
@given(noisy(METADATA))
def test_metadata_of_a_wheel(content: bytes) -> None:
    with suppress(ValueError):
        read_metadata(content)


@fuzz
@given(noisy(SMI), TEXTS)
def test_output_of_nvidia_smi(content: bytes, name: str) -> None:
    text = content.decode("utf-8", "replace")
    header_facts(text)
    for gpu in rows(f"{text}\n{name}, 8.6, 24576, Enabled", FIELDS):
        assert gpu.name is None or gpu.name
