"""Packages besides the frameworks in an environment.yml, a pixi.toml and JSON: named, and left to conda or pip."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml

from tests.conda.conftest import Mirror, mirror, own_channel_server
from tests.conda.records import record
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve, Result

__all__ = ["mirror", "own_channel_server"]
TARGET = ("--gpu", "8.6", "--driver", "580.65.06", "--platform", "linux-64")


def dependencies(done: Result) -> tuple[list[str], list[str]]:
    """What an environment.yml requires of conda and of pip besides the frameworks."""
    assert done.code == 0, done.err
    listed: list[Any] = yaml.safe_load(done.out)["dependencies"]
    pip: list[str] = next((it["pip"] for it in listed if isinstance(it, dict)), [])
    return [it for it in listed if isinstance(it, str)], pip


def test_conda_gets_its_own_names_and_pip_the_requirements_that_conda_cannot_express(envsolve: Envsolve) -> None:
    requirements = ("numpy>=2", "opencv-python", "uvicorn[standard]", "pywin32; sys_platform == 'win32'")
    done = envsolve("-f", "pytorch", *requirements, *TARGET)
    conda, pip = dependencies(done)
    assert conda[-4:] == ["libcudnn>=9.12,<10", "numpy >=2", "py-opencv", "pip"]
    assert pip == ["uvicorn[standard]"]
    note = "note: conda chooses the versions of numpy >=2, py-opencv, uvicorn[standard] later: a lock pins them now"
    assert note in done.err
    assert "  envsolve --framework pytorch " in done.err
    assert "--format conda-lock" in done.err


def test_with_wheels_everything_is_a_wheel(envsolve: Envsolve) -> None:
    done = envsolve("-f", "tensorflow", "numpy>=2", *TARGET, "--source", "pypi")
    conda, pip = dependencies(done)
    assert conda == ["python=3.13", "pip"]
    assert pip[-1] == "numpy>=2"
    assert "note: pip chooses the versions" in done.err
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
    assert "note: pixi chooses the versions of pandas >=2, uvicorn[standard] later: a lock pins them now\n" in done.err


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
    assert "note: conda chooses the versions of numpy later, not by --exclude-newer: a lock pins them now\n" in done.err


def test_a_conda_package_for_one_release_of_the_framework_limits_it(
    envsolve: Envsolve, own_channel_server: ChannelServer, mirror: Mirror, tmp_path: Path
) -> None:
    """The channel has PyTorch 2.11, and its vLLM is only for 2.10."""
    mirror(own_channel_server)
    ours = own_channel_server.channel("ours")
    ours.add(*(record("vllm", version, ["pytorch 2.10.*"]) for version in ("0.20.0", "0.21.0")))
    words = ("-f", "vllm", "numpy", *TARGET, "-c", own_channel_server.url_of("ours"), "-c", "conda-forge")
    network = ("--cache-dir", str(tmp_path / "cache"))
    done = envsolve(*words, *network)
    conda, _ = dependencies(done)
    assert "vllm ==0.21.0" in conda
    assert any(it.startswith("pytorch=2.10.") for it in conda), conda
    assert "note: conda chooses the versions of numpy later: a lock pins them now\n" in done.err
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
