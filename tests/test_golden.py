"""Files written by earlier versions of envsolve are read by this one: tests/golden, one directory for each version."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import tomli

from envsolve import __version__
from envsolve.app.environment.exact_plan import with_addresses
from envsolve.app.packages.conda_sessions import conda_session
from envsolve.app.request.network import Network
from envsolve.create.plan import Plan
from envsolve.create.reading import plan_of
from envsolve.create.record import RECORD, read_record
from envsolve.errors import UsageError
from envsolve.host.host_file import read_host_file
from envsolve.lockfile.facts import facts_of
from envsolve.lockfile.reading import lock_at
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from tests.cli.locking import undisturbed
from tests.conda.conftest import Mirror, mirror
from tests.conda.records import record
from tests.conda.server import ChannelServer
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

__all__ = ["mirror"]

GOLDEN = Path(__file__).parent / "golden"
EXPECTED = "expected.toml"
VERSIONS = sorted(it.parent.name for it in GOLDEN.glob(f"*/{EXPECTED}"))
PYTHON_LOCKS = ("requirements.txt", "pylock.toml")
NOBODYS = re.compile(r"(?:[a-z]+\.)?example\.org|conda\.anaconda\.org")
"""Names that do not exist, and the one that stands for the loopback channels; no package index."""


class Golden(NamedTuple):
    """A file written by a version, with its expected content."""

    version: str
    name: str
    expected: Mapping[str, Any]
    machine: Mapping[str, str]

    @property
    def path(self) -> Path:
        return GOLDEN / self.version / self.name

    @property
    def platform(self) -> Platform:
        return Platform(self.expected["platform"])

    @property
    def is_python_lock(self) -> bool:
        return self.name in PYTHON_LOCKS


def of_version(version: str) -> Iterator[Golden]:
    tables = tomli.loads((GOLDEN / version / EXPECTED).read_text("utf-8"))
    machine = tables.pop("machine")
    yield from (Golden(version, name, expected, machine) for name, expected in tables.items())


ALL = [it for version in VERSIONS for it in of_version(version)]


def having(key: str) -> pytest.MarkDecorator:
    """The files whose expectations have ``key``."""
    found = [it for it in ALL if key in it.expected]
    return pytest.mark.parametrize("golden", found, ids=lambda it: f"{it.version}-{it.name}")


def called(name: str) -> pytest.MarkDecorator:
    """The files of that name."""
    return pytest.mark.parametrize("golden", [it for it in ALL if it.name == name], ids=lambda it: it.version)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No index and no settings of the user who runs the tests."""
    undisturbed(monkeypatch, tmp_path)


@pytest.fixture
def copy(golden: Golden, tmp_path: Path) -> Path:
    """The file in a writable directory."""
    return Path(shutil.copy(golden.path, tmp_path / golden.name))


def test_the_current_version_has_golden_files() -> None:
    assert __version__ in VERSIONS, "python -m tests.golden.writing, then expected.toml by hand: tests/golden/README.md"


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_has_a_description(version: str) -> None:
    there = {it.name for it in (GOLDEN / version).iterdir()} - {EXPECTED}
    assert there == {it.name for it in of_version(version)}


@pytest.mark.parametrize("golden", ALL, ids=lambda it: f"{it.version}-{it.name}")
def test_no_file_names_a_package_index(golden: Golden) -> None:
    hosts = re.findall(r"https?://([^/\s\"']+)", golden.path.read_text("utf-8"))
    assert [it for it in hosts if not NOBODYS.fullmatch(it)] == []


@pytest.mark.thorough
@having("status")
def test_status_reads_the_stack(golden: Golden, envsolve: Envsolve) -> None:
    machine = (word for key, value in golden.machine.items() for word in (f"--{key}", value))
    done = envsolve("status", str(golden.path), *machine, "--platform", golden.platform, "--json")
    (found,) = json.loads(done.out)["files"]
    assert (found["status"], found["builds"]) == (golden.expected["status"], golden.expected["builds"]), done.err


@having("recorded")
def test_pins_and_records_are_read(golden: Golden) -> None:
    lock = lock_at(golden.path, golden.platform)
    assert lock is not None
    conda = {it.name: f"{it.version} {it.build}".strip() for it in lock.conda}
    assert conda.items() >= golden.expected.get("conda", {}).items()
    assert {pin.name: pin.version for pin in lock.pins}.items() >= golden.expected.get("pip", {}).items()
    recorded = {key: str(value) for key, value in facts_of(lock).items()}
    assert recorded.items() >= golden.expected["recorded"].items()


@pytest.mark.thorough
@having("create")
def test_create_makes_a_plan_or_reports_what_is_open(golden: Golden, matrix: Matrix, mirror: Mirror) -> None:
    with ChannelServer(recorded=False) as server:
        mirror(server)
        if isinstance(golden.expected["create"], str):
            with pytest.raises(UsageError) as raised:
                planned(golden, matrix, server)
            assert raised.value.code == golden.expected["create"]
            return
        plan = planned(golden, matrix, server)
    expected = {"python": "", "conda": 0, "wheels": 0, **golden.expected["create"]}
    assert expected == {
        "kind": plan.kind,
        "python": str(plan.python or ""),
        "conda": len(plan.lock.conda),
        "wheels": len(plan.lock.pins),
    }
    assert plan.text == golden.path.read_text("utf-8")
    assert all(package.url for package in plan.lock.conda)


def planned(golden: Golden, matrix: Matrix, server: ChannelServer) -> Plan:
    """The packages installed for the file; of an exact environment the channel has only its builds."""
    plan = plan_of(golden.path, golden.platform)
    if all(package.url for package in plan.lock.conda):
        return plan
    shelf = server.channel("conda-forge", subdirs=(golden.platform, "noarch"))
    shelf.add(*(record(it.name, it.version, build=it.build, subdir=golden.platform) for it in plan.lock.conda))
    session = partial(conda_session, Network(no_cache=True), (), (), os.environ)
    return with_addresses(golden.path, plan, golden.platform, matrix, session, os.environ)


@pytest.mark.thorough
@having("stays")
def test_a_newer_answer_preserves_all_its_pins(golden: Golden, copy: Path, envsolve: Envsolve, mirror: Mirror) -> None:
    stays = golden.expected["stays"]
    if "asked_again" in golden.expected:
        machine = (word for key, value in golden.machine.items() for word in (f"--{key}", value))
        words = [*golden.expected["asked_again"], *machine, "--platform", "linux-64"]
        newest = envsolve(*words, "--format", "json")
        assert stays.items().isdisjoint(frameworks_in(newest.out).items())
        done = envsolve(*words, "--prefer", "locked", "-o", str(copy))
    elif golden.is_python_lock:
        done = locked_again(copy, stays, envsolve)
    else:
        done = solved_again(copy, stays, golden, envsolve, mirror)
    assert done.code == 0, done.err
    assert pinned(copy, golden).items() >= stays.items()


def frameworks_in(answer: str) -> dict[str, str]:
    return {name: it["version"] for it in json.loads(answer)["frameworks"] for name in (it["framework"], it["package"])}


def locked_again(path: Path, stays: Mapping[str, str], envsolve: Envsolve) -> Result:
    """The lock for a request of some of its packages, from an index that has a newer version of each."""
    with IndexServer(recorded=False) as index:
        for name, version in stays.items():
            index.add(name, [wheel(name, version), wheel(name, "9999.0")])
        target = ("--gpu", "none", "--python", "3.11.7", "--platform", "linux-64", "--no-cache")
        return envsolve(*stays, *target, "--index-url", index.index_url, "-o", str(path))


def solved_again(path: Path, stays: Mapping[str, str], golden: Golden, envsolve: Envsolve, mirror: Mirror) -> Result:
    """The same for conda packages; an exact environment has the name of one and not its format."""
    with ChannelServer(recorded=False) as server:
        mirror(server)
        shelf = server.channel("conda-forge", subdirs=(golden.platform, "noarch"))
        for name, version in stays.items():
            build = golden.expected["conda"][name].partition(" ")[2]
            shelf.add(record(name, version, build=build), record(name, "9999.0"))
        form = () if path.suffix == ".lock" or "conda-lock" in path.name else ("--exact",)
        words = (
            *(name for name in stays if name != "python"),
            "--gpu",
            "none",
            "--platform",
            golden.platform,
            "-c",
            "conda-forge",
            "--no-cache",
        )
        return envsolve(*words, *form, "--format", form_of(path), "-o", str(path))


def form_of(path: Path) -> str:
    """The value of ``--format`` for a file whose name does not give it."""
    return {".lock": "explicit", ".yml": "conda-lock" if "conda-lock" in path.name else "environment"}[path.suffix]


def pinned(path: Path, golden: Golden) -> dict[str, str]:
    """Names and versions in a file that was rewritten."""
    if path.suffix == ".json":
        return frameworks_in(path.read_text("utf-8"))
    lock = lock_at(path, golden.platform)
    assert lock is not None
    return lock.versions


@called("host.json")
def test_a_host_file_gives_the_recorded_machine(golden: Golden, envsolve: Envsolve) -> None:
    host = read_host_file(golden.path)
    assert {
        "platform": host.platform,
        "driver": str(host.driver),
        "glibc": str(host.glibc),
        "gpus": [f"{gpu.name} {gpu.compute_capability}" for gpu in host.gpus],
    } == golden.expected
    done = envsolve("-f", "pytorch", "--host", str(golden.path), "--format", "json")
    assert done.code == 0, done.err
    assert [gpu["name"] for gpu in json.loads(done.out)["host"]["gpus"]] == [gpu.name for gpu in host.gpus]


@called("record.json")
def test_an_environment_is_recognised_by_its_record_with_the_same_lock(golden: Golden, tmp_path: Path) -> None:
    expected = golden.expected
    shutil.copy(golden.path, tmp_path / RECORD)
    found = read_record(tmp_path)
    assert found is not None
    assert (found.state, found.kind, found.prefix, found.lock_name) == (
        *(expected[key] for key in ("state", "kind", "prefix", "lock")),
    )
    assert found.is_of(plan_of(golden.path.with_name(expected["lock"]), golden.platform))


@called("pixi.toml")
def test_pixi_reads_a_pixi_manifest(golden: Golden) -> None:
    dependencies = tomli.loads(golden.path.read_text("utf-8"))["dependencies"]
    versions = {name: it["version"] if isinstance(it, dict) else it for name, it in dependencies.items()}
    assert versions.items() >= golden.expected["dependencies"].items()
