"""Whether files on disk run on a machine: the files are the snapshots of all formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Envsolve

_SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
_RTX_3090 = ("--gpu", "RTX 3090", "--driver", "535.183.01")
_PASCAL = ("--gpu", "GTX 1080 Ti", "--driver", "580.65.06")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "machine", "says", "reason"),
    [
        ("tensorflow.conda-lock.yml", _RTX_3090, "fits", ""),
        ("tensorflow.linux-64.explicit.txt", _RTX_3090, "fits", ""),
        ("tensorflow.linux-64.exact.yml", _RTX_3090, "fits", ""),
        ("tensorflow-rtx-3090.yml", _RTX_3090, "fits", ""),
        ("pylock.python-lock-rtx-3090.toml", ("--gpu", "8.6", "--driver", "580.65.06"), "fits", ""),
        ("pylock.python-lock-rtx-3090.toml", _RTX_3090, "does-not-run", "CUDA 13.0 needs NVIDIA driver 580.65.06"),
        ("python-lock-rtx-3090.requirements.txt", _PASCAL, "does-not-run", "has no code for compute capability 6.1"),
        (
            "tensorflow-rtx-3090.yml",
            ("--gpu", "8.6", "--driver", "470.82"),
            "does-not-run",
            "driver 525.60.13 or newer",
        ),
        ("pytorch-wheels-cu126.yml", ("--gpu", "12.0", "--driver", "580.65.06"), "does-not-run", "12.0"),
        ("tensorflow.linux-64.exact.yml", _PASCAL, "does-not-run", "has no code for compute capability 6.1"),
        ("tensorflow-cpu.yml", _RTX_3090, "cpu-only", "runs only on the CPU"),
        ("tensorflow-cpu.yml", ("--gpu", "none"), "fits", ""),
        ("tensorflow-rtx-3090.yml", ("--gpu", "none"), "unknown", "it is for a GPU"),
        ("tensorflow.win-64.explicit.txt", _RTX_3090, "unknown", "it pins nothing for linux-64"),
    ],
)
def test_a_file_runs_on_this_machine_or_the_reason_is_reported(
    name: str, machine: tuple[str, ...], says: str, reason: str, envsolve: Envsolve
) -> None:
    done = envsolve("status", str(_SNAPSHOTS / name), *machine, "--platform", "linux-64", "--json")
    (found,) = json.loads(done.out)["files"]
    assert found["status"] == says, found
    assert done.code == (0 if says in ("fits", "no-framework") else 1)
    assert reason in " ".join(found["reasons"]), found["reasons"]
    assert bool(found["reasons"]) is bool(reason)


def test_files_with_default_names_are_found(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert envsolve("status").err.startswith("error: nothing-to-check\n")
    (tmp_path / "environment.yml").write_bytes((_SNAPSHOTS / "tensorflow-rtx-3090.yml").read_bytes())
    (tmp_path / "conda-linux-64.lock").write_bytes((_SNAPSHOTS / "tensorflow.linux-64.explicit.txt").read_bytes())
    done = envsolve("status", *_RTX_3090, "--platform", "linux-64")
    assert done.code == 0
    assert done.out == (
        "environment.yml (linux-64): runs here\n"
        "  tensorflow 2.19.1 (conda-forge, cuda128)\n"
        "conda-linux-64.lock (linux-64): runs here\n"
        "  tensorflow 2.19.1 (conda-forge, cuda128)\n"
    )


@pytest.mark.thorough
def test_a_directory_with_only_the_lock_of_another_tool_is_a_project(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in _PROJECT_LOCKS.items():
        (tmp_path / name).write_text(text)
    done = envsolve("status", *_RTX_3090, "--platform", "linux-64", "--json")
    files = json.loads(done.out)["files"]
    assert [it["path"] for it in files] == list(_PROJECT_LOCKS)
    assert {(it["needs"]["driver_floor"], it["needs"]["cuda"]) for it in files} == {("580.65.06", "13.0")}
    assert all("7.5" in it["needs"]["compute_capabilities"] for it in files)
    text = envsolve("status", *_RTX_3090, "--platform", "linux-64").out
    assert text.count("\n  needs: NVIDIA driver 580.65.06 or newer; CUDA 13.0; compute capability 7.5, 8.0,") == 3
    refused = envsolve("create", "env")
    assert (refused.code, "\n  envsolve create env --lock uv.lock\n" in refused.err) == (2, True)


def test_a_build_unknown_to_the_matrix_is_not_a_success(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "environment.yml"
    file.write_text("dependencies: [python=3.12, pytorch=2.99.1=cuda999_py312h0123456_0]\n")
    done = envsolve("status", str(file), *_RTX_3090, "--platform", "linux-64")
    assert done.code == 1
    assert "the matrix does not have pytorch 2.99.1 cuda999_py312h0123456_0" in done.out


@pytest.mark.parametrize(
    ("beside", "build"),
    [
        (
            "channels: [pytorch, defaults]\ndependencies: [python=3.8.5, cudatoolkit=11.3, {}]\n",
            "pytorch-channel, cuda113",
        ),
        ("channels: [conda-forge]\ndependencies: [python=3.8.5, cudatoolkit=11.2, {}]\n", "conda-forge, cuda112"),
        ("channels: [conda-forge]\ndependencies: [python=3.8.5, cudatoolkit=10.2, {}]\n", "conda-forge, cuda102"),
    ],
)
def test_a_handwritten_file_is_checked_with_its_cuda_and_channels(
    beside: str, build: str, envsolve: Envsolve, tmp_path: Path
) -> None:
    file = tmp_path / "environment.yml"
    file.write_text(beside.format("pytorch=1.11.0"))
    done = envsolve("status", str(file), "--gpu", "V100", "--driver", "550.54.15", "--platform", "linux-64")
    assert done.out == f"{file} (linux-64): runs here\n  pytorch 1.11.0 ({build})\n"


_LOCKED_BY_A_NEWER_ENVSOLVE = """
lock-version = "1.0"
created-by = "pip"
[[packages]]
name = "jax"
version = "99.1"
wheels = [{ url = "https://files.example.org/jax-99.1-py3-none-any.whl", hashes = { sha256 = "11" } }]
[tool.envsolve]
envsolve_version = "9.9"
compute_capabilities = []
frameworks = [{ framework = "jax", version = "99.1", package = "jax", source = "pypi", build = "cpu" }]
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "text", "is_known"),
    [
        ("requirements.txt", "onnxruntime==99.1\n", True),
        ("requirements.txt", "torch==99.1+cpu\nonnxruntime==1.20.1\n", True),
        ("environment.yml", "dependencies: [python=3.12, pytorch=99.1=cpu_generic_py312h0123456_0]\n", True),
        ("environment.yml", "dependencies: [python=3.12, pytorch=99.1=py3.12_cpu_0]\n", True),
        ("pylock.toml", _LOCKED_BY_A_NEWER_ENVSOLVE, True),
        ("requirements.txt", "torch==99.1\n", False),
        ("requirements.txt", "onnxruntime-gpu==99.1\nonnxruntime==99.1\n", False),
        ("environment.yml", "dependencies: [python=3.12, pytorch=99.1=gpu_cpuset_0]\n", False),
        ("pylock.toml", _LOCKED_BY_A_NEWER_ENVSOLVE.replace("[]", '["8.6"]'), False),
        ("pylock.toml", _LOCKED_BY_A_NEWER_ENVSOLVE.replace('version = "99.1", p', 'version = "99.2", p'), False),
    ],
)
def test_a_cpu_build_needs_no_row_of_the_matrix(
    name: str, text: str, is_known: bool, envsolve: Envsolve, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    without = envsolve("status", str(file), "--gpu", "none", "--platform", "linux-64", "--json")
    (found,) = json.loads(without.out)["files"]
    assert (found["status"], without.code) == (("fits", 0) if is_known else ("unknown", 1)), found
    beside_gpu = envsolve("status", str(file), *_RTX_3090, "--platform", "linux-64", "--json")
    (found,) = json.loads(beside_gpu.out)["files"]
    assert (found["status"], beside_gpu.code) == ("cpu-only" if is_known else "unknown", 1), found


def test_unknown_builds_are_named_without_further_facts(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("torch==99.1\nonnxruntime==1.20.1\n")
    done = envsolve("status", str(file), "--gpu", "none", "--platform", "linux-64")
    assert "because: the matrix does not have torch 99.1\n" in done.out


def test_an_older_matrix_is_a_note(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "conda-lock.yml"
    text = (_SNAPSHOTS / "tensorflow.conda-lock.yml").read_text()
    file.write_text(text.replace("envsolve.matrix_date: '", "envsolve.matrix_date: '2020-01-01' # "))
    done = envsolve("status", str(file), *_RTX_3090, "--platform", "linux-64")
    assert (done.code, "it was made with the matrix of 2020-01-01" in done.err) == (0, True)


def test_a_file_without_a_framework_runs_anywhere(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("numpy==2.4.6\n")
    done = envsolve("status", str(file), *_RTX_3090)
    assert (done.code, "has nothing that depends on GPU or driver" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("name", "text", "unpinned"),
    [
        ("environment.yml", "dependencies: [python=3.12, 'pytorch>=2', numpy]\n", "pytorch"),
        ("environment.yml", "dependencies: [python=3.12, pip, pip: ['torch[opt-einsum]']]\n", "torch"),
        ("environment.yml", "dependencies: [tensorflow]\n", "tensorflow"),
        ("requirements.txt", "numpy==2.4.6\ntorch>=2  # any\nJAX[cuda12]\n", "torch and jax"),
    ],
)
def test_an_unpinned_framework_is_not_a_success(
    name: str, text: str, unpinned: str, envsolve: Envsolve, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_text(text)
    done = envsolve("status", str(file), *_RTX_3090, "--platform", "linux-64")
    assert done.code == 1
    assert done.out.endswith(
        f"unknown\n  because: it does not pin {unpinned}: lock it to know which build it installs\n"
    )


def test_a_pinned_framework_that_does_not_run_outweighs_an_unpinned_one(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("torch==2.9.1+cu130\njax[cuda12]\n")
    done = envsolve("status", str(file), *_PASCAL, "--platform", "linux-64", "--json")
    (found,) = json.loads(done.out)["files"]
    assert found["status"] == "does-not-run"
    assert found["reasons"][-1].startswith("it does not pin jax")
    assert len(found["reasons"]) > 1


_WHEEL = f'hash = "sha256:{"a" * 64}" }}]\n'
_PROJECT_LOCKS = {
    "uv.lock": (
        'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "demo"\nsource = { virtual = "." }\n'
        'dependencies = [{ name = "torch" }]\n[[package]]\nname = "torch"\nversion = "2.9.1+cu130"\n'
        'source = { registry = "https://packages.example/simple" }\n'
        f'wheels = [{{ url = "https://packages.example/torch-2.9.1-cp312-none-any.whl", {_WHEEL}'
    ),
    "poetry.lock": (
        '[[package]]\nname = "torch"\nversion = "2.9.1+cu130"\ngroups = ["main"]\n'
        f'files = [{{ file = "torch-2.9.1-cp312-none-any.whl", {_WHEEL}'
        '[metadata]\nlock-version = "2.1"\npython-versions = ">=3.11"\n'
    ),
    "pdm.lock": (
        '[metadata]\nlock_version = "4.5.0"\nstrategy = ["inherit_metadata"]\n'
        '[[package]]\nname = "torch"\nversion = "2.9.1+cu130"\ngroups = ["default"]\n'
        f'files = [{{ file = "torch-2.9.1-cp312-none-any.whl", {_WHEEL}'
    ),
}


@pytest.mark.parametrize("name", _PROJECT_LOCKS)
def test_the_lock_of_another_tool_is_checked(name: str, envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text(_PROJECT_LOCKS[name])
    ampere = ("--gpu", "RTX 3090", "--driver", "580.65.06")
    assert envsolve("status", str(file), *ampere, "--platform", "linux-64").code == 0
    done = envsolve("status", str(file), *_PASCAL, "--platform", "linux-64", "--json")
    assert (done.code, json.loads(done.out)["files"][0]["status"]) == (1, "does-not-run")
    file.write_text("[[package")
    done = envsolve("status", str(file), *_RTX_3090)
    assert (done.code, done.err.count("it is not TOML")) == (2, 1)


def test_a_version_for_another_platform_is_ignored(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(
        "torch==2.9.1 ; sys_platform == 'darwin' or (os_name == 'nt' and python_version < '3.12')\n"
        "torch==2.9.1+cu130 ; sys_platform == 'linux' and python_version >= '3.11'\n"
    )
    for platform, source in (("linux-64", "pytorch, cu130"), ("win-64", "pypi, cpu")):
        done = envsolve("status", str(file), "--gpu", "RTX 3090", "--driver", "580.65.06", "--platform", platform)
        assert done.out.count("\n  pytorch 2.9.1 (") == 1, done.out
        assert source in done.out


@pytest.mark.parametrize("name", ["missing.yml", "."])
def test_a_missing_file_is_a_usage_error(name: str, envsolve: Envsolve) -> None:
    done = envsolve("status", name, *_RTX_3090)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: file-unreadable\n")


def test_a_lock_for_one_cuda_does_not_run_even_if_another_would(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("jax==0.10.1\njaxlib==0.10.1\njax-cuda13-plugin==0.10.1\n")
    machine = (str(file), "--gpu", "8.6", "--platform", "linux-64", "--driver")
    done = envsolve("status", *machine, "535.54")
    assert done.code == 1
    assert "because: CUDA 13.0 needs NVIDIA driver 580.65.06 or newer" in done.out
    assert "(pypi, cuda12)" not in done.out
    assert envsolve("status", *machine, "580.65.06").code == 0


def test_a_cpu_build_of_jax_is_not_for_a_gpu(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("jax==0.10.1\njaxlib==0.10.1\n")
    done = envsolve("status", str(file), "--gpu", "none", "--platform", "linux-64")
    assert (done.code, done.out.splitlines()[0]) == (0, f"{file} (linux-64): runs here")
    done = envsolve("status", str(file), *_RTX_3090, "--platform", "linux-64")
    assert (done.code, "runs without the GPU" in done.out) == (1, True)


def test_a_framework_on_the_cpu_beside_one_on_the_gpu_is_reported(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text("torch==2.9.1+cu126\nonnxruntime==1.20.1\n")
    done = envsolve("status", str(file), *_RTX_3090, "--platform", "linux-64", "--json")
    (found,) = json.loads(done.out)["files"]
    assert found["status"] == "cpu-only"
    assert found["reasons"] == ["onnxruntime 1.20.1 (pypi, cpu) runs only on the CPU, but there is an NVIDIA GPU"]


def test_a_request_for_the_cpu_has_no_advice_to_name_a_gpu(envsolve: Envsolve) -> None:
    file = str(_SNAPSHOTS / "tensorflow-rtx-3090.yml")
    done = envsolve("status", file, "--gpu", "none", "--platform", "linux-64")
    assert done.out.endswith("because: it is for a GPU, and the request is for the CPU\n")


_BROKEN = {
    "pylock.toml": "lock-version = \n",
    "conda-lock.yml": "package: [\n",
    "requirements.txt": "torch==2.9.1\n<<<<<<< HEAD\nnumpy==1.26.4\n=======\nnumpy==2.4.6\n>>>>>>> other\n",
}


@pytest.mark.parametrize("name", _BROKEN)
def test_an_unreadable_file_does_not_stop_the_others(
    name: str, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "environment.yml").write_bytes((_SNAPSHOTS / "tensorflow-rtx-3090.yml").read_bytes())
    (tmp_path / name).write_text(_BROKEN[name])
    for files in ((), ("environment.yml", name)):
        done = envsolve("status", *files, *_RTX_3090, "--platform", "linux-64", "--json")
        assert done.code == 1, done.err
        found = {it["path"]: it for it in json.loads(done.out)["files"]}
        assert found["environment.yml"]["status"] == "fits"
        assert found[name]["status"] == "unreadable"
        assert found[name]["reasons"]
        assert "cannot read" not in found[name]["reasons"][0]
    alone = envsolve("status", name, *_RTX_3090)
    assert (alone.code, alone.out) == (2, "")
    assert alone.err.startswith("error: held-unreadable\n")


def test_the_sides_of_a_merge_conflict_are_reported_with_their_lines(envsolve: Envsolve, tmp_path: Path) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(_BROKEN["requirements.txt"])
    assert f"cannot read {file}: unresolved merge conflict in line 2" in envsolve("status", str(file)).err
