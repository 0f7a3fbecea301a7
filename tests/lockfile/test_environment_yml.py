"""Exact environment files: the bytes, that conda's readers accept each spec, and that they are read back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from envsolve.app.lock.existing_locks import versions_in
from envsolve.lockfile import environment_yml
from envsolve.lockfile.lock import Lock, RequestedSpec
from envsolve.lockfile.reading import lock_in
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from tests.laws import examples
from tests.lockfile.conda_locks import CHANNEL, WHEELS, conda_locks, package, plain, two_platforms
from tests.lockfile.judges import rattler
from tests.lockfile.locks import CUDA_INDEX, INDEX

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def read(lock: Lock) -> Mapping[str, Any]:
    """The file for the first platform, parsed as YAML."""
    document: Mapping[str, Any] = yaml.safe_load(environment_yml.write(lock))
    return document


def specs(lock: Lock) -> list[str]:
    """What it requires of conda."""
    return [spec for spec in read(lock)["dependencies"] if isinstance(spec, str)]


@pytest.mark.parametrize(("number", "platform"), [(0, "linux-64"), (1, "win-64")])
def test_the_output_equals_the_recorded_one(number: int, platform: str, matrix: Matrix) -> None:
    text = environment_yml.write(two_platforms(matrix)[number])
    path = SNAPSHOTS / f"tensorflow.{platform}.exact.yml"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_channel_of_a_package_is_named_if_there_are_several() -> None:
    mirror = "https://example.org/conda-forge"
    locked = (package("tzdata"), package("openssl", channel=mirror), package("packaging", channel=f"{CHANNEL}/"))
    assert specs(plain(*locked))[0] == "openssl=3.5.7=h35e630c_1"
    several = plain(*locked, channels=("conda-forge", f"{mirror}/", "nvidia"))
    assert specs(several) == [
        f"{mirror}::openssl=3.5.7=h35e630c_1",
        "conda-forge::packaging=25.0=pyh29332c3_1",
        "conda-forge::tzdata=2025b=h78e105d_0",
    ]
    assert read(several)["channels"] == ["conda-forge", f"{mirror}/", "nvidia"]


def test_rattler_reads_each_spec_as_one_build() -> None:
    mirror = "https://example.org/conda-forge"
    locked = (package("python_abi"), package("openssl", channel=mirror))
    answer = "[[it.name.normalized, str(it.version), it.build] for it in map(MatchSpec, asked)]"
    read_back = rattler(answer, [*specs(plain(*locked)), *specs(plain(*locked, channels=("conda-forge", mirror)))])
    assert read_back == [["openssl", "==3.5.7", "h35e630c_1"], ["python_abi", "==3.12", "8_cp312"]] * 2


def test_pip_gets_the_location_of_the_wheels() -> None:
    lines = read(plain(package("tzdata"), pip=WHEELS))["dependencies"][-1]["pip"]
    assert lines[0] == f"--extra-index-url {CUDA_INDEX}"
    assert lines[1] == f"numpy==1.26.4 --hash=sha256:{'2' * 64}"
    read_back = read(plain(package("tzdata"), pip=WHEELS, default_is_plain=False))["dependencies"][-1]["pip"]
    assert read_back[:2] == [f"--index-url {INDEX}", f"--extra-index-url {CUDA_INDEX}"]


def test_a_direct_reference_is_preserved() -> None:
    wheel = WHEELS[1]._replace(index_url=None)
    lines = read(plain(package("tzdata"), pip=(wheel,)))["dependencies"][-1]["pip"]
    assert lines == [f"numpy @ {wheel.files[0].url} --hash=sha256:{'2' * 64}"]


def test_the_stack_is_read_back(matrix: Matrix) -> None:
    linux, windows = two_platforms(matrix)
    name = PurePath("environment.yml")
    text = environment_yml.write(linux._replace(channels=("conda-forge", "nvidia")))
    locked = versions_in(lock_in(name, text, Platform.LINUX_64))
    assert (locked.python, locked.cuda) == ("3.12", "12.9")
    assert ("tensorflow", "2.19.1", "cuda128py312hae5ec6b_251") in locked.packages
    locked = versions_in(lock_in(name, environment_yml.write(windows), Platform.WIN_64))
    assert ("tensorflow", "2.10.1", "cuda11*") in locked.packages


@settings(max_examples=examples(40))
@given(conda_locks())
def test_arbitrary_text_in_a_lock_is_preserved(lock: Lock) -> None:
    document = read(lock)
    assert {*document} == {"name", "channels", "dependencies"} | ({"variables"} if lock.variables else set())
    names = [spec.rpartition("::")[2].partition("=")[0] for spec in specs(lock)]
    assert sorted(names) == sorted(it.name for it in lock.conda)
    assert len(document["channels"]) == len(lock.channels)
    assert len(document.get("variables", {})) == len(lock.variables)


def test_a_reason_stays_on_its_line() -> None:
    requested = RequestedSpec("tzdata", "because\n  - evil=1\u2028- evil")
    assert specs(plain(package("tzdata"), requested=(requested,))) == ["tzdata=2025b=h78e105d_0"]


@pytest.mark.parametrize("empty", ["variables:", "variables: null", "variables: {}"])
def test_variables_may_be_empty(empty: str) -> None:
    assert environment_yml.read(f"dependencies: [python=3.12]\n{empty}\n", Platform.LINUX_64).variables == ()
