"""Packages besides the frameworks in an environment.yml, a pixi.toml and JSON: named, and left to conda or pip."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml

from tests.conda.conftest import Mirror, mirror, own_channel_server
from tests.conda.records import record
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve, Result
from tests.index.server import IndexServer

__all__ = ["mirror", "own_channel_server"]
TARGET = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64")


def dependencies(done: Result) -> tuple[list[str], list[str]]:
    """What an environment.yml requires of conda and of pip besides the frameworks."""
    assert done.code == 0, done.err
    listed: list[Any] = yaml.safe_load(done.out)["dependencies"]
    pip: list[str] = next((it["pip"] for it in listed if isinstance(it, dict)), [])
    return [it for it in listed if isinstance(it, str)], pip


def _name(spec: str) -> str:
    return re.split("[ =<>]", spec)[0]


def test_conda_gets_its_own_names_and_pip_the_requirements_that_conda_cannot_express(envsolve: Envsolve) -> None:
    asked = ("numpy>=2", "opencv-python", "uvicorn[standard]", "pywin32; sys_platform == 'win32'")
    done = envsolve("-f", "pytorch", *asked, *TARGET)
    conda, pip = dependencies(done)
    assert conda[-4:] == ["libcudnn>=9.12,<10", "numpy >=2", "py-opencv", "pip"]
    assert pip == ["uvicorn[standard]"]
    assert "note: numpy >=2, py-opencv, uvicorn[standard] are not pinned: conda will choose their versions" in done.err
    assert "  envsolve --framework pytorch " in done.err
    assert "--format conda-lock" in done.err


def test_with_wheels_everything_is_a_wheel(envsolve: Envsolve) -> None:
    done = envsolve("-f", "tensorflow", "numpy>=2", *TARGET, "--source", "pypi")
    conda, pip = dependencies(done)
    assert conda == ["python=3.13", "pip"]
    assert pip[-1] == "numpy>=2"
    assert "note: numpy>=2 is not pinned: pip will choose its version" in done.err
    assert "--format requirements" in done.err


def test_a_framework_among_the_packages_is_solved(envsolve: Envsolve) -> None:
    by_option = dependencies(envsolve("-f", "pytorch>=2.5", "numpy", *TARGET))
    by_package = dependencies(envsolve("torch>=2.5", "numpy", *TARGET, "--format", "environment"))
    assert by_package == by_option


def test_a_pixi_manifest_has_them_in_its_two_tables(envsolve: Envsolve) -> None:
    done = envsolve("-f", "pytorch", "pandas>=2", "uvicorn[standard]", *TARGET, "--format", "pixi")
    assert done.code == 0, done.err
    manifest = tomli.loads(done.out)
    assert manifest["dependencies"]["pandas"] == ">=2"
    assert manifest["pypi-dependencies"] == {"uvicorn": {"version": "*", "extras": ["standard"]}}
    assert (
        "note: pandas >=2, uvicorn[standard] are not pinned: pixi will choose their versions, and a lock pins them\n"
        in done.err
    )


def test_an_environment_file_is_preserved(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    environment = "dependencies: [samtools=1.21, pytorch>=2, {pip: [rich]}]\nvariables: {OMP_NUM_THREADS: 4}\n"
    path.write_text(f"channels: [bioconda]\n{environment}")
    done = envsolve("-r", str(path), *TARGET)
    conda, pip = dependencies(done)
    assert "samtools 1.21.*" in conda or "samtools =1.21" in conda
    assert any(it.startswith("pytorch=2") for it in conda)
    assert pip == ["rich"]
    document = yaml.safe_load(done.out)
    assert "bioconda" in document["channels"]
    assert document["variables"] == {"OMP_NUM_THREADS": "4"}


def test_what_the_stack_pins_is_not_listed_again(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(
        "dependencies: [python=3.12, pytorch>=2, 'pytorch=*=*cuda*', cuda-version>=12, pip, {pip: [rich]}]\n"
    )
    done = envsolve("-r", str(path), *TARGET)
    conda, pip = dependencies(done)
    assert [_name(it) for it in conda] == ["python", "pytorch", "cuda-version", "libcudnn", "pytorch", "pip"]
    assert conda[-2] == "pytorch * *cuda*"
    assert pip == ["rich"]
    assert "pytorch * *cuda*, pip, rich are not pinned: conda" in done.err
    assert (
        f"\n  envsolve --requirement {path} --driver 580.65.06 --gpu 8.6 --platform linux-64 --format conda-lock\n"
        in done.err
    )


@pytest.mark.thorough
def test_cudatoolkit_in_a_file_is_cuda_11_in_every_format(
    envsolve: Envsolve, own_channel_server: ChannelServer, mirror: Mirror, tmp_path: Path
) -> None:
    """``cuda-version=12`` excludes the package, so conda could not create an environment with CUDA 12 and it."""
    mirror(own_channel_server)
    path = tmp_path / "environment.yml"
    path.write_text("dependencies: [python=3.11, tensorflow, cudatoolkit>=11]\n")
    words = ("-r", str(path), *TARGET, "--cache-dir", str(tmp_path / "cache"))
    note = (
        "note: cudatoolkit ends at CUDA 11.8, and environment.yml requires it: remove it to allow CUDA 12 and newer\n"
    )
    done = envsolve(*words)
    conda, _ = dependencies(done)
    assert [it for it in conda if it.startswith("cudatoolkit")] == ["cudatoolkit=11.8"]
    assert note in done.err
    locked = envsolve(*words, "--format", "conda-lock")
    versions = {it["name"]: it["version"] for it in yaml.safe_load(locked.out)["package"]}
    assert f"tensorflow={versions['tensorflow']}=" in " ".join(conda)
    assert versions["cudatoolkit"].startswith("11.8.")
    assert note in locked.err
    path.write_text("dependencies: [python=3.11, tensorflow, cudatoolkit=11.8]\n")
    assert "cudatoolkit ends" not in envsolve(*words).err


@pytest.fixture
def own_channels(
    own_channel_server: ChannelServer, mirror: Mirror, world: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> ChannelServer:
    """The channels of a test. rattler finds them, and pip's settings name an index beside them."""
    mirror(own_channel_server)
    monkeypatch.setenv("PIP_INDEX_URL", world.index_url)
    return own_channel_server


@pytest.mark.usefixtures("own_channels")
def test_a_framework_of_a_conda_file_may_be_a_wheel(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip would overwrite the framework of conda."""
    monkeypatch.chdir(tmp_path)
    Path("environment.yml").write_text("dependencies: [pytorch>=2, numpy]\n")
    words = ("-r", "environment.yml", *TARGET, "--source", "pypi")
    conda, pip = dependencies(envsolve(*words))
    assert [_name(it) for it in conda] == ["python", "numpy", "pip"]
    assert pip[0].startswith("torch==")
    network = ("--cache-dir", str(tmp_path / "cache"))
    locked = envsolve(*words, *network, "--format", "conda-lock")
    assert locked.code == 0, locked.err
    managers = {it["name"]: it["manager"] for it in yaml.safe_load(locked.out)["package"]}
    assert managers["torch"] == "pip"
    assert "pytorch" not in managers
    machine = 'gpus = ["8.6"]\ndriver = "580.65.06"\nplatforms = ["linux-64"]\nsources = ["pypi"]\n'
    project = f'{machine}requirement-files = ["environment.yml"]\noutputs = ["conda-lock.yml"]\n'
    Path("envsolve.toml").write_text(project)
    assert envsolve("lock", *network).code == 0
    done = envsolve("lock", "--check", *network)
    assert (done.code, done.err) == (0, "note: conda-lock.yml: up to date\n")
    Path("environment.yml").write_text("dependencies: ['pytorch>=99', numpy]\n")
    done = envsolve("status")
    assert (done.code, "pytorch >=99 instead of pytorch >=2, but the lock file has torch 2." in done.out) == (1, True)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("numpy", "--format", "environment"), "no-framework", "the request includes none"),
        (("-f", "pytorch", "--constraint", "limits.txt"), "requirements-not-supported", "constraints"),
        (("-f", "pytorch", "-r", "hashed.txt"), "requirements-not-supported", "hashes"),
        (("-f", "pytorch", "--override", "numpy<3"), "requirements-not-supported", "--override"),
        (("-f", "pytorch", "-r", "missing.in"), "requirements-unreadable", "missing.in"),
    ],
)
def test_requirements_that_the_format_cannot_express_suggest_a_lock(
    words: tuple[str, ...], code: str, message: str, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("limits.txt").write_text("numpy<3\n")
    Path("hashed.txt").write_text(f"numpy==2.0 --hash=sha256:{'0' * 64}\n")
    done = envsolve(*words, *TARGET)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {code}\n")
    assert message in done.err
    lock = "requirements" if "--override" in words else "conda-lock"
    assert code == "requirements-unreadable" or f"--format {lock}" in done.err


def test_a_cutoff_date_only_applies_to_the_framework(envsolve: Envsolve) -> None:
    done = envsolve("-f", "pytorch", "numpy", *TARGET, "--exclude-newer", "2024-01-31")
    conda, _ = dependencies(done)
    assert {it.partition("=")[0]: it.split("=")[1] for it in conda if "=" in it}["pytorch"] == "2.1.2"
    assert (
        "note: numpy is not pinned: conda will choose its version without --exclude-newer, and a lock pins it\n"
        in done.err
    )


@pytest.mark.thorough
def test_a_conda_package_for_one_release_of_the_framework_limits_it(
    envsolve: Envsolve, own_channels: ChannelServer, tmp_path: Path
) -> None:
    """The channel has PyTorch 2.11, and its vLLM is only for 2.10."""
    ours = own_channels.channel("ours")
    ours.add(*(record("vllm", version, ["pytorch 2.10.*"]) for version in ("0.20.0", "0.21.0")))
    words = ("-f", "vllm", "numpy", *TARGET, "-c", own_channels.url_of("ours"), "-c", "conda-forge")
    network = ("--cache-dir", str(tmp_path / "cache"))
    done = envsolve(*words, *network)
    conda, _ = dependencies(done)
    assert "vllm ==0.21.0" in conda
    assert any(it.startswith("pytorch=2.10.") for it in conda), conda
    assert "note: numpy is not pinned: conda will choose its version, and a lock pins it\n" in done.err
    none = envsolve("-f", "vllm>=0.30", *words[2:], *network)
    assert (none.code, none.out) == (1, "")
    offline = envsolve(*words, "--offline", "--cache-dir", str(tmp_path / "empty"))
    assert (offline.code, offline.out) == (3, "")


def test_json_describes_the_output_of_the_same_command(envsolve: Envsolve) -> None:
    words = ("-f", "pytorch", "numpy", *TARGET)
    document = json.loads(envsolve(*words, "--json").out)
    conda, _ = dependencies(envsolve(*words))
    (framework,) = document["frameworks"]
    assert f"pytorch={framework['version']}={framework['build']}*" in conda
    assert f"python={document['python']}" in conda
    assert document["packages"] == [{"spec": "numpy", "manager": "conda"}]
    assert "not-pinned" in [it["code"] for it in document["notes"]]
    assert envsolve(*words, "--format", "json").out == envsolve(*words, "--json").out


def test_json_has_every_note_that_is_printed(envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONDA_OVERRIDE_CUDA", "")
    for words in (("-f", "pytorch", "numpy", "--platform", "linux-64"), ("-f", "pytorch", *TARGET)):
        done = envsolve(*words, "--json")
        texts = [it["text"] for it in json.loads(done.out)["notes"]]
        assert done.err.count("note: ") == len(texts) > 0
        assert all(text in done.err for text in texts)


def test_json_describes_answers_of_other_sources(envsolve: Envsolve) -> None:
    document = json.loads(envsolve("-f", "pytorch", *TARGET, "--json").out)
    assert [it["source"] for it in document["frameworks"]] == ["conda-forge"]
    (other,) = document["alternatives"]
    assert [it["source"] for it in other["frameworks"]] == ["pypi"]
    assert other["command"].endswith("--format requirements")
    of_wheels = json.loads(envsolve("-f", "pytorch", *TARGET, "--source", "pypi", "--json").out)
    assert "conda-forge" in {
        it["source"] for alternative in of_wheels["alternatives"] for it in alternative["frameworks"]
    }


@pytest.mark.parametrize(
    ("name", "text", "words", "way"),
    [
        (
            "req.txt",
            "torch==2.15.0\n",
            ("A100", "535.129.03"),
            "2.14.1 (pytorch, CUDA 12.6): change torch==2.15.0 (-r req.txt)",
        ),
        (
            "e.yml",
            "dependencies: [pytorch=1.9]",
            ("RTX 5090", "580.65.06"),
            "(pypi, CUDA 13.2): change pytorch 1.9.* in e.yml",
        ),
        (
            "e.yml",
            "dependencies: [python=3.14, tensorflow]",
            ("8.6", "580.65.06"),
            "fits: change python 3.14.* in e.yml",
        ),
        (
            "e.yml",
            "dependencies: [pytorch, cudatoolkit]",
            ("RTX 5090", "580.65.06"),
            "fits: change cudatoolkit in e.yml",
        ),
    ],
)
def test_what_a_file_requires_is_changed_there(
    name: str,
    text: str,
    words: tuple[str, str],
    way: str,
    envsolve: Envsolve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the file a command with another version would be refused again."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    done = envsolve("-r", name, "--gpu", words[0], "--driver", words[1], "--platform", "linux-64")
    assert done.code == 1
    assert f"{way}\n" in done.err
    shown = done.err.partition(f"{way}\n")[2]
    assert not shown.startswith("  envsolve")


def test_an_error_has_the_date_of_what_is_known_about_the_framework(envsolve: Envsolve) -> None:
    words = ("--gpu", "A100", "--driver", "535.129.03", "--platform", "linux-64", "--format", "environment")
    by_option, by_package = (envsolve(*it, *words).err for it in (("-f", "torch==2.15.0"), ("torch==2.15.0", "rich")))
    (date,) = re.findall("note: based on the compatibility matrix of (.*)", by_option)
    assert f"note: based on the compatibility matrix of {date}\n" in by_package
