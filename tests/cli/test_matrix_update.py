"""New releases without a new envsolve: read into this user's data, or, if one is requested, inferred."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.app.matrix.matrix_update import UpdateRequest, look_for_new
from envsolve.app.matrix.overlay_files import write
from envsolve.app.request.network import Network
from envsolve.boundary.busy import locked
from envsolve.errors import OutsideError
from envsolve.matrix import Matrix
from tests.cli.locked import pins_in
from tests.cli.worlds import LINUX, fill
from tests.conftest import Envsolve, Result
from tests.index.packages import IndexFile, wheel
from tests.index.server import IndexServer
from tests.scripts.fat_binary import fat_binary
from tests.scripts.wheels import BuiltFile, jax_wheels, torch_library, torch_wheel

CUDA_13 = ("nvidia-cudnn-cu13==9.26.0.51", "nvidia-cublas<14", "typing-extensions>=4.10")
SM = "sm_75 sm_80 sm_90 sm_120 compute_120"
GPU = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64")
LOCK = (*GPU, "--python", "3.12", "--format", "requirements")


def listed(built: BuiltFile, day: str | None = "2026-11-25T10:00:00Z") -> IndexFile:
    """A built wheel as an index lists it."""
    digest = hashlib.sha256(built.content).hexdigest()
    return IndexFile(built.name, built.content, None, digest, None, len(built.content), upload_time=day)


def new_torch(version: str = "2.16.0", cuda: str = "13.0", **more: object) -> IndexFile:
    """A wheel of PyTorch with large libraries."""
    library = torch_library(SM, before=1_200_000)
    return listed(torch_wheel(version, cuda=cuda, requires=CUDA_13, library=library, **more))  # type: ignore[arg-type]


@pytest.fixture
def world() -> Iterator[IndexServer]:
    """An index with a PyTorch that is newer than the matrix."""
    with IndexServer(recorded=False) as server:
        fill(server)
        server.add("torch", [new_torch()])
        yield server


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, envsolve: Envsolve) -> Path:
    """This user's data directory; commands read the shipped matrix and the rows in it."""
    monkeypatch.setenv("ENVSOLVE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr("envsolve.matrix.Matrix", Matrix)
    return tmp_path / "data" / "matrix"


def on(world: IndexServer) -> tuple[str, ...]:
    return ("--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl", "--no-cache")


def update(envsolve: Envsolve, world: IndexServer, *arguments: str) -> Result:
    return envsolve("matrix", "update", *arguments, *on(world))


@pytest.mark.thorough
def test_a_release_is_read_and_then_available(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    result = update(envsolve, world, "torch")
    assert result.code == 0, result.err
    assert result.out == (
        "pytorch.toml:\n"
        "  + 2.16.0 pypi linux-64 cu130 torch\n"
        "      pythons 3.12, cuda 13.0, cudnn 9.26.0.51, sass 7.5 8.0 9.0 12.0, ptx 12.0\n"
    )
    assert result.err == f"note: kept in {data}\n"
    assert [it.name for it in data.iterdir()] == ["pytorch.toml"]
    solved = envsolve("-f", "torch==2.16", *GPU)
    assert solved.code == 0, solved.err
    assert solved.out.splitlines()[0].endswith(" with rows that are not shipped:")
    assert "    - torch==2.16.0 " in solved.out
    assert (
        "note: pytorch 2.16.0 (pypi, cu130) is not in the shipped matrix: it was read on this machine\n" in solved.err
    )
    again = update(envsolve, world, "torch")
    assert (again.code, again.out) == (0, "no new releases\n")


@pytest.mark.thorough
def test_a_lock_based_on_local_rows_says_so(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    assert update(envsolve, world, "torch").code == 0
    options = ("--python", "3.12", *on(world), *GPU)
    lock = envsolve("torch==2.16", "--format", "requirements", *options)
    assert lock.code == 0, lock.err
    assert pins_in(lock.out)["torch"] == "2.16.0"
    assert lock.out.splitlines()[0].endswith(" with rows that are not shipped:")
    pylock = envsolve("torch==2.16", "--format", "pylock", *options)
    assert "own_matrix = true" in pylock.out
    assert 'evidence = { read_here = ["torch"] }' in pylock.out
    older = envsolve("torch==2.15.0", "--format", "requirements", *on(world), *GPU, "--python", "3.11")
    assert older.code == 0, older.err
    assert "not shipped" not in older.out.splitlines()[0]
    answer = json.loads(envsolve("-f", "torch==2.16", *GPU, "--json").out)
    assert answer["own_matrix"] is True


@pytest.mark.thorough
def test_the_list_distinguishes_shipped_and_local_rows(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    before = envsolve("matrix", "list")
    assert "Read on this machine" not in before.out
    assert update(envsolve, world, "torch").code == 0
    shown = envsolve("matrix", "list").out
    head, _, here = shown.partition("\nRead on this machine\n")
    assert " to 2.16.0 " in next(line for line in head.splitlines() if line.startswith("pytorch"))
    (line,) = here.splitlines()
    assert line.startswith("  pytorch 2.16.0 (pypi, cu130, linux-64), 20")
    (row,) = json.loads(envsolve("matrix", "list", "-f", "torch==2.16", "--json").out)["releases"]
    assert row["read_here"] is True
    assert row["released"] == "2026-11-25"
    assert row["evidence"][0]["sha256"]


@pytest.mark.thorough
def test_update_and_list_are_also_available_in_json(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    checked = json.loads(update(envsolve, world, "torch", "--check", "--json").out)
    found = json.loads(update(envsolve, world, "torch", "--json").out)
    assert (checked["directory"], found["directory"]) == (None, str(data))
    assert [it["version"] for it in found["new"]] == ["2.16.0"]
    assert [it["file"] for it in found["new"]] == ["pytorch.toml"]
    assert found["failures"] == []
    (here,) = json.loads(envsolve("matrix", "list", "--json").out)["read_here"]
    assert (here["release"], here["build"]) == ("pytorch 2.16.0", "pypi, cu130, linux-64")


@pytest.mark.thorough
def test_a_check_reports_what_is_missing_and_writes_nothing(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    result = update(envsolve, world, "torch", "--check")
    assert result.code == 1
    assert "  + 2.16.0 pypi linux-64 cu130 torch\n" in result.out
    assert not data.exists()
    assert update(envsolve, world, "torch").code == 0
    assert update(envsolve, world, "torch", "--check").code == 0


@pytest.mark.thorough
def test_clear_removes_the_local_rows(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    assert update(envsolve, world, "torch").code == 0
    assert envsolve("matrix", "update", "--clear").out == f"removed {data}\n"
    assert not data.exists()
    assert envsolve("matrix", "update", "--clear").out == f"nothing to remove: {data} does not exist\n"
    assert envsolve("-f", "torch==2.16", *GPU, "--offline").code == 1


@pytest.mark.thorough
def test_builds_of_pytorchs_own_index_are_also_read(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    cu130 = world.index("/whl/cu130/", "pytorch")
    cu130.add("torch", [new_torch("2.16.0+cu130")])
    result = update(envsolve, world, "torch")
    assert "  + 2.16.0 pytorch linux-64 cu130 torch\n" in result.out


@pytest.mark.thorough
def test_jax_is_read_with_all_its_parts(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    for built in jax_wheels("0.99.0"):
        world.add(built.name.partition("-")[0].replace("_", "-"), [listed(built)])
    result = update(envsolve, world, "jax")
    assert result.code == 0, result.err
    assert "  + 0.99.0 pypi linux-64 cuda12 jax\n" in result.out
    assert "  + 0.99.0 pypi linux-64 cpu jax\n" in result.out


def kernels(version: str, *targets: int) -> IndexFile:
    """A wheel of warp-lang for some GPUs."""
    members = {"warp/bin/warp.so": b"\x7fELF\0libcublas.so.13\0" + fat_binary(targets)}
    return wheel("warp-lang", version, tags=f"py3-none-{LINUX}", members=members)


@pytest.mark.thorough
def test_packages_with_kernels_are_read_by_name(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    world.add("warp-lang", [kernels("99.0", 80, 90), kernels("0.1", 80)])
    result = update(envsolve, world, "warp-lang")
    assert result.code == 0, result.err
    assert result.out == "extensions/warp-lang.toml:\n  + warp-lang ==99.0\n      cuda ==13.*, sass 8.0 9.0, ptx \n"
    assert (data / "extensions" / "warp-lang.toml").is_file()
    assert "warp-lang 99.0 (pypi)" in envsolve("matrix", "list").out
    (facts,) = (it for it in Matrix().build_facts("warp-lang") if it.covers("99.0"))
    assert facts.code is not None
    assert update(envsolve, world, "warp-lang").out == "no new releases\n"
    lock = envsolve("warp-lang", "torch==2.15.0", *on(world), *GPU, "--format", "requirements", "--python", "3.11")
    assert lock.code == 0, lock.err
    assert lock.out.splitlines()[0].endswith(" with rows that are not shipped:")


def test_a_package_that_no_index_has_is_a_clear_refusal(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    result = update(envsolve, world, "no-such-thing")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: no-such-package\n  the index has no wheel of no-such-thing for linux-64\n")
    assert result.err.endswith("hint: check the name, or name the index that has it with --index-url\n")


def test_an_index_without_the_framework_is_a_note(envsolve: Envsolve, data: Path) -> None:
    with IndexServer(recorded=False) as empty:
        result = update(envsolve, empty, "torch")
    assert (result.code, result.out) == (0, "no new releases\n")
    assert result.err == "note: the index has no wheels of torch\n"


@pytest.mark.thorough
def test_a_damaged_wheel_is_named_and_the_others_are_added(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    world.add("torch", [new_torch("2.16.1")._replace(content=b"no archive")])
    result = update(envsolve, world, "torch")
    assert result.code == 3
    assert "  + 2.16.0 pypi linux-64 cu130 torch\n" in result.out
    assert "error: releases-unread\n  a release could not be read\n" in result.err
    assert "cause: pytorch 2.16.1: torch-2.16.1-cp312-cp312-manylinux_2_28_x86_64.whl cannot be read: " in result.err
    assert (data / "pytorch.toml").is_file()


@pytest.mark.thorough
def test_a_release_for_an_unknown_cuda_is_left_out_with_the_broken_law(
    envsolve: Envsolve, world: IndexServer, data: Path
) -> None:
    world.add("torch", [new_torch("2.17.0", "13.9")])
    result = update(envsolve, world, "torch")
    assert result.code == 0
    assert "2.16.0" in result.out
    assert "2.17.0" not in result.out
    assert "note: pytorch 2.17.0 is not added: " in result.err
    assert "13.9" in result.err
    assert update(envsolve, world, "torch", "--check").code == 1


@pytest.mark.thorough
def test_without_a_network_nothing_is_written(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    offline = update(envsolve, world, "torch", "--offline")
    assert offline.code == 3
    assert offline.err.startswith("error: not-cached\n")
    world.fault("/simple/torch/", status=404)
    world.fault("/whl/*", status=503)
    failed = update(envsolve, world, "torch")
    assert failed.code == 3
    assert not data.exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("schema_version = 1", "schema_version = 0", "schema_version: must be 1, not 0"),
        ("schema_version = 1", "schema_version = 2", "schema_version: is 2"),
        ('version = "2.16.0"', 'version = "two"', "release[1].version: 'two' is not a version"),
        ('package = "torch"', 'package = "torch', "pytorch.toml: "),
        ('evidence = ["torch', 'evidence = ["tarch', "which is not in [evidence]"),
    ],
)
def test_unusable_rows_are_ignored_with_one_note(
    before: str, after: str, why: str, envsolve: Envsolve, world: IndexServer, data: Path
) -> None:
    assert update(envsolve, world, "torch").code == 0
    text = (data / "pytorch.toml").read_text("utf-8")
    assert before in text
    (data / "pytorch.toml").write_text(text.replace(before, after, 1), "utf-8")
    result = envsolve("-f", "torch", *GPU)
    assert result.code == 0
    assert "2.16.0" not in result.out
    assert result.err.count("rows of pytorch that `envsolve matrix update` read are ignored: ") == 1
    assert why in result.err
    changed = (data / "pytorch.toml").read_bytes()
    updated = update(envsolve, world, "torch")
    assert updated.code == 0
    aside = data / "pytorch.toml.unusable"
    unusable = f"note: pytorch.toml could not be used, and is kept as {aside}\n"
    assert updated.err == f"note: kept in {data}\n{unusable}"
    assert aside.read_bytes() == changed
    assert "ignored" not in envsolve("-f", "torch", *GPU).err


@pytest.mark.thorough
def test_a_shipped_row_for_the_same_build_wins(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    assert update(envsolve, world, "torch").code == 0
    text = (data / "pytorch.toml").read_text("utf-8")
    text = text.replace('"2.16.0"', '"2.15.0"').replace("cu130", "cu132").replace('["3.12"]', '["3.9"]')
    (data / "pytorch.toml").write_text(text, "utf-8")
    rows = json.loads(envsolve("matrix", "list", "-f", "torch==2.15.0", "--source", "pypi", "--json").out)["releases"]
    (row,) = (it for it in rows if it["build"] == "cu132" and it["platform"] == "linux-64")
    assert "3.9" not in row["pythons"]
    assert "read_here" not in row


@pytest.mark.thorough
def test_concurrent_updates_lose_no_rows(world: IndexServer, data: Path) -> None:
    with IndexServer(recorded=False) as other:
        other.add("torch", [new_torch("2.16.1")])
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "envsolve", "matrix", "update", "torch", *on(index)],
                env=environment,
                stdout=subprocess.DEVNULL,
            )
            for index in (world, other, world)
        ]
        assert [it.wait(timeout=120) for it in running] == [0, 0, 0]
    assert [it.name for it in data.iterdir()] == ["pytorch.toml"]
    read = {str(it.version) for it in Matrix().framework("pytorch", None).releases if it.read_here}
    assert read == {"2.16.0", "2.16.1"}


@pytest.mark.thorough
def test_rows_written_by_another_update_are_preserved(world: IndexServer, data: Path) -> None:
    world.add("warp-lang", [kernels("99.0", 80)])
    request = UpdateRequest(("torch", "warp-lang"), world.index_url, pytorch_index_url=f"{world.url}/whl")
    request = request._replace(network=Network(no_cache=True))
    older = look_for_new(request, Matrix(), os.environ)
    world.add("torch", [new_torch("2.16.1")])
    world.add("warp-lang", [kernels("99.1", 80)])
    newer = look_for_new(request, Matrix(), os.environ)
    for found in (newer, older):
        assert write(found.files, data) == ()
    assert {str(it.version) for it in Matrix().framework("pytorch", None).releases if it.read_here} == {
        "2.16.0",
        "2.16.1",
    }
    assert {str(it.versions) for it in Matrix().build_facts("warp-lang") if it.read_here} == {"==99.0", "==99.1"}


def test_an_update_that_cannot_lock_the_file_says_so(
    envsolve: Envsolve, world: IndexServer, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envsolve.app.matrix.overlay_files._SECONDS", 0.1)
    data.parent.mkdir()
    with locked(data.parent, OutsideError("busy", "busy")):
        busy = update(envsolve, world, "torch")
    assert busy.code == 3
    assert busy.err.startswith(f"error: data-busy\n  another command is writing in {data}\n")
    assert world.count("/simple/torch/") == 0


@pytest.mark.thorough
def test_an_interrupted_update_stops_at_once_and_leaves_nothing_behind(world: IndexServer, data: Path) -> None:
    world.fault("/files/torch/torch-2.16.0*", times=1, stall=60, cut=True)
    command = [sys.executable, "-m", "envsolve", "matrix", "update", "torch", *on(world)]
    with subprocess.Popen(command, env={**os.environ, "NO_PROXY": "127.0.0.1"}, stderr=subprocess.PIPE) as running:
        while not world.count("/files/torch/torch-2.16.0*"):
            assert running.poll() is None
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        _, output = running.communicate(timeout=20)
    assert (running.returncode, output.decode().strip()) == (130, "interrupted")
    assert list(data.parent.iterdir()) == []


@pytest.mark.thorough
def test_an_unknown_requested_release_is_inferred_with_a_note(
    envsolve: Envsolve, world: IndexServer, data: Path
) -> None:
    result = envsolve("-f", "torch==2.16", *GPU, *on(world))
    assert result.code == 0, result.err
    assert "    - torch==2.16.0 " in result.out
    assert result.out.splitlines()[0].endswith(" with rows that are not shipped:")
    assert result.err == (
        "note: pytorch 2.16.0 (pypi, cu130) is not in the matrix yet: its machine code and PTX are inferred "
        "(as in 2.14.1 (cu130)). To read them instead:\n"
        "  envsolve matrix update pytorch\n"
    )
    assert not data.exists()
    lock = envsolve("torch==2.16", *LOCK, *on(world))
    assert lock.code == 0, lock.err
    assert pins_in(lock.out)["torch"] == "2.16.0"
    assert "envsolve matrix update pytorch\n" in lock.err


@pytest.mark.thorough
def test_only_small_files_are_read_for_it(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    assert envsolve("-f", "torch==2.16", *GPU, *on(world)).code == 0
    small = sum(world.count(path) for path in ("/files/torch/torch-2.16.0-*",))
    assert 0 < small <= 4


def test_a_release_that_no_index_has_is_refused(envsolve: Envsolve, world: IndexServer, data: Path) -> None:
    result = envsolve("-f", "torch==2.99", *GPU, *on(world), "--source", "pypi")
    assert result.code == 1
    assert result.err.startswith("error: no-such-release\n")
    assert "matrix update" not in result.err
    offline = envsolve("-f", "torch==2.99", *GPU, *on(world), "--source", "pypi", "--offline")
    assert offline.code == 1
    assert "cause: whether an index has pytorch==2.99 is not known: " in offline.err


@pytest.mark.thorough
def test_a_release_that_cannot_be_inferred_suggests_matrix_update(
    envsolve: Envsolve, world: IndexServer, data: Path
) -> None:
    world.add("torch", [new_torch("2.17.0", "11.8")])
    result = envsolve("-f", "torch==2.17", *GPU, *on(world), "--source", "pypi")
    assert result.code == 1
    assert "no release for CUDA 11 on linux-64 is known to infer its GPUs from" in result.err
    assert result.err.endswith("  envsolve matrix update pytorch\n")


@pytest.mark.thorough
def test_an_explicit_matrix_is_never_extended(
    envsolve: Envsolve, world: IndexServer, data: Path, matrix: Matrix
) -> None:
    assert update(envsolve, world, "torch").code == 0
    own = ("--matrix", str(matrix.directory))
    assert envsolve("-f", "torch==2.16", *GPU, *on(world), *own).code == 1
    refused = update(envsolve, world, "torch", *own)
    assert (refused.code, refused.out) == (2, "")


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["parent", "directory"])
def test_an_unwritable_directory_is_reported_before_any_download(
    place: str, envsolve: Envsolve, world: IndexServer, data: Path
) -> None:
    file = data.parent if place == "parent" else data
    file.parent.mkdir(exist_ok=True)
    file.write_text("", "utf-8")
    result = update(envsolve, world, "torch")
    assert result.code == 3
    assert result.err.startswith(f"error: data-failed\n  {data} cannot be written: ")
    assert result.err.endswith("hint: choose another directory with ENVSOLVE_DATA_DIR\n")
    assert world.count("/simple/torch/") == 0
    assert update(envsolve, world, "torch", "--check").code == 1, "a check writes nothing"


@pytest.mark.thorough
def test_a_project_is_locked_with_an_inferred_release(
    envsolve: Envsolve, world: IndexServer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text(
        f"""[tool.envsolve]
frameworks = ["torch==2.16"]
gpus = ["8.6"]
driver = "580.65.06"
platforms = ["linux-64"]
python = "3.12"
index-url = "{world.index_url}"
pytorch-index-url = "{world.url}/whl"
outputs = ["requirements.txt"]
""",
        "utf-8",
    )
    monkeypatch.chdir(tmp_path)
    cache = ("--cache-dir", str(tmp_path / "cache"))
    result = envsolve("lock", *cache)
    assert result.code == 0, result.err
    assert pins_in((tmp_path / "requirements.txt").read_text("utf-8"))["torch"] == "2.16.0"
    assert "envsolve matrix update pytorch\n" in result.err
    text = (tmp_path / "requirements.txt").read_text("utf-8")
    assert '# evidence = { inferred = ["torch as in 2.14.1 (cu130)"] }' in text
    assert envsolve("lock", "--check", *cache).code == 0
    unknown = envsolve("status", "requirements.txt", *GPU)
    assert "because: torch was inferred as in 2.14.1 (cu130) when it was locked: `envsolve matrix" in unknown.out
    assert update(envsolve, world, "torch").code == 0
    known = "note: torch was inferred as in 2.14.1 (cu130) when it was locked, and the matrix has it now: lock again\n"
    assert known in envsolve("status", "requirements.txt", *GPU).err
    stale = envsolve("lock", "--check", *cache)
    assert stale.code == 1
    assert "and the matrix has it now: lock again" in stale.err
    assert envsolve("lock", *cache).code == 0
    text = (tmp_path / "requirements.txt").read_text("utf-8")
    assert '# evidence = { read_here = ["torch"] }' in text
    assert envsolve("matrix", "update", "--clear").code == 0
    assert envsolve("lock", "--check", *cache).code == 0, "whoever has not these rows infers them"
    assert "torch was read on that machine when it was locked" in envsolve("status", "requirements.txt", *GPU).out


@pytest.mark.thorough
def test_without_local_rows_a_command_looks_once_and_imports_nothing(data: Path) -> None:
    script = (
        "import sys\nfrom envsolve.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: print(*sys.modules)"
    )
    command = [sys.executable, "-c", script, "-f", "jax", "--gpu", "none"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "envsolve.matrix.load" in ran.stdout
    assert not {"envsolve.matrix.overlay", "envsolve.releases", "envsolve.app.matrix.inferring"} & set(
        ran.stdout.split()
    )
