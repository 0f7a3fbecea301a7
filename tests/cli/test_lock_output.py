"""Where a lock is written and what is preserved of the existing one."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import tomli

from envsolve import __version__
from tests.cli.locked import pins_in
from tests.cli.worlds import releases
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
TARGET = ("--python", "3.11.7", "--platform", "linux-64", "--no-cache", "--gpu", "8.6")


def lock(envsolve: Envsolve, world: IndexServer, *arguments: str) -> Result:
    return envsolve(*arguments, *TARGET, "--index-url", world.index_url, "--pytorch-index-url", f"{world.url}/whl")


def written(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize(("format_name", "file"), [("requirements", "gpu.requirements.txt"), ("pylock", "gpu.toml")])
def test_the_whole_lock_of_a_gpu_is_the_recorded_one(
    format_name: str, file: str, envsolve: Envsolve, world: IndexServer
) -> None:
    arguments = ("torch", "torchvision", "--driver", "535.183.01", "--format", format_name)
    text = lock(envsolve, world, *arguments).out
    stable = text.replace(world.url, "https://index.example.org").replace(__version__, "VERSION")
    stable = re.sub(
        r"\b[0-9a-f]{64}\b", "SHA256", re.sub(r"size = \d+", "size = 0", stable)
    )  # zlib decides on the bytes
    path = SNAPSHOTS / f"pylock.lock-{file}" if format_name == "pylock" else SNAPSHOTS / f"lock-{file}"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(stable, encoding="utf-8")
    assert stable == path.read_text(encoding="utf-8")
    assert lock(envsolve, world, *arguments).out == text


def test_a_dash_is_standard_output_and_no_file(
    envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = lock(envsolve, world, "numpy", "--format", "requirements", "-o", "-")
    assert (result.code, pins_in(result.out)) == (0, {"numpy": "2.4.6"})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "is_toml"),
    [("requirements.txt", False), ("pylock.toml", True), ("pylock.gpu.toml", True), ("locks.d.txt", False)],
)
def test_the_name_of_the_file_decides_on_the_format(
    name: str, is_toml: bool, envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    result = lock(envsolve, world, "numpy", "-o", str(tmp_path / name))
    assert (result.code, result.out) == (0, "")
    text = written(tmp_path / name)
    if is_toml:
        assert [it["version"] for it in tomli.loads(text)["packages"]] == ["2.4.6"]
    else:
        assert pins_in(text) == {"numpy": "2.4.6"}


class TestALockThatIsThere:
    """``alpha`` and ``beta`` were locked at 1.0, and 2.0 was released since."""

    @pytest.fixture(params=["requirements.txt", "pylock.toml"])
    def path(self, request: pytest.FixtureRequest, envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> Path:
        path = tmp_path / str(request.param)
        world.add("alpha", [wheel("alpha", "1.0", ["beta"])])
        world.add("beta", releases("beta", ["1.0"]))
        assert lock(envsolve, world, "alpha", "-o", str(path)).code == 0
        world.add("alpha", [wheel("alpha", "2.0", ["beta"])])
        world.add("beta", releases("beta", ["2.0"]))
        return path

    def pins(self, path: Path) -> dict[str, str]:
        if path.suffix == ".toml":
            return {it["name"]: it["version"] for it in tomli.loads(written(path))["packages"]}
        return pins_in(written(path))

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("options", "alpha", "beta"),
        [
            ((), "1.0", "1.0"),
            (("-U",), "2.0", "2.0"),
            (("-P", "alpha"), "2.0", "1.0"),
            (("-P", "Beta"), "1.0", "2.0"),
            (("-P", "alpha", "-P", "beta"), "2.0", "2.0"),
            (("alpha>1",), "2.0", "1.0"),
            (("beta==2.*",), "1.0", "2.0"),
        ],
    )
    def test_changes_as_little_as_requested(
        self, options: tuple[str, ...], alpha: str, beta: str, path: Path, envsolve: Envsolve, world: IndexServer
    ) -> None:
        result = lock(envsolve, world, "alpha", *options, "-o", str(path))
        assert result.code == 0, result.err
        assert self.pins(path) == {"alpha": alpha, "beta": beta}

    @pytest.mark.thorough
    def test_an_upgrade_of_a_package_that_it_lacks_is_reported(
        self, path: Path, envsolve: Envsolve, world: IndexServer
    ) -> None:
        result = lock(envsolve, world, "alpha", "-P", "alpah", "-P", "Beta", "-o", str(path))
        assert (result.code, result.err.count("-P")) == (0, 1)
        assert "note: -P alpah: not in any lock\n" in result.err

    @pytest.mark.thorough
    def test_the_command_is_repeatable(self, path: Path, envsolve: Envsolve, world: IndexServer) -> None:
        before = path.read_bytes()
        assert lock(envsolve, world, "alpha", "-o", str(path)).code == 0
        assert path.read_bytes() == before

    @pytest.mark.thorough
    @pytest.mark.parametrize("wanted", ["nothere", "beta==9", "alpha=="])
    def test_stays_if_the_command_fails(self, wanted: str, path: Path, envsolve: Envsolve, world: IndexServer) -> None:
        before = path.read_bytes()
        result = lock(envsolve, world, "alpha", wanted, "-o", str(path))
        assert result.code in (1, 2)
        assert path.read_bytes() == before
        assert [it.name for it in path.parent.iterdir()] == [path.name]

    def test_stays_if_the_index_fails(self, path: Path, envsolve: Envsolve, world: IndexServer) -> None:
        before = path.read_bytes()
        world.fault("/simple/beta/", status=403)
        assert lock(envsolve, world, "alpha", "-U", "-o", str(path)).code == 3
        assert path.read_bytes() == before


@pytest.mark.thorough
@pytest.mark.parametrize("output", [(), ("-o", "requirements.txt"), ("--json",)])
def test_an_upgrade_without_a_lock_is_reported(
    output: tuple[str, ...], envsolve: Envsolve, world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = lock(envsolve, world, "numpy", "-P", "numpy", "--format", "requirements", *output)
    assert result.code == 0
    assert "note: -P numpy has no effect: there is no existing lock whose versions are kept\n" in result.err


@pytest.mark.thorough
@pytest.mark.parametrize("upgrade", [("-U",), ("-P", "torch"), ("-P", "PyTorch")])
def test_a_locked_stack_stays_until_upgraded(
    upgrade: tuple[str, ...], envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    path = tmp_path / "requirements.txt"
    assert lock(envsolve, world, "-f", "pytorch==2.8.0", "-o", str(path), "--source", "pypi").code == 0
    assert lock(envsolve, world, "-f", "pytorch", "-o", str(path), "--source", "pypi").code == 0
    assert pins_in(written(path))["torch"] == "2.8.0"
    assert lock(envsolve, world, "-f", "pytorch", *upgrade, "-o", str(path), "--source", "pypi").code == 0
    assert pins_in(written(path))["torch"] == "2.15.0"


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [
        ("-f", "pytorch>=99"),
        ("-f", "pytorch", "--gpu", "GTX 1080", "--cuda", ">=13"),
        ("-f", "jax>=0.7", "--cuda", "<12"),
    ],
)
def test_a_suggested_version_is_the_newest_that_fits_despite_an_existing_lock(
    arguments: tuple[str, ...], envsolve: Envsolve, world: IndexServer, tmp_path: Path
) -> None:
    path = tmp_path / "requirements.txt"
    assert lock(envsolve, world, "-f", "pytorch==2.8.0", "-o", str(path), "--source", "pypi").code == 0
    beside = lock(envsolve, world, *arguments, "-o", str(path))
    alone = lock(envsolve, world, *arguments, "-o", str(tmp_path / "other.txt"))
    assert (beside.code, beside.err) == (1, alone.err)
    assert "hint:" in beside.err


def test_each_platform_gets_a_file_of_its_own(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    for platform in ("win_amd64", "manylinux_2_28_x86_64"):
        world.add("native", releases("native", ["1.0"], tags=f"cp311-cp311-{platform}"))
    result = lock(
        envsolve, world, "native", "--platform", "win-64", "--format", "pylock", "-o", f"{tmp_path}/pylock.{{platform}}"
    )
    assert result.code == 0, result.err
    assert {it.name for it in tmp_path.iterdir()} == {"pylock.win-64", "pylock.linux-64"}
    assert "win_amd64" in written(tmp_path / "pylock.win-64")
    assert "win_amd64" not in written(tmp_path / "pylock.linux-64")


def test_two_platforms_do_not_fit_on_standard_output(envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, "numpy", "--platform", "win-64", "--format", "requirements")
    assert (result.code, result.out, world.requests) == (2, "", [])
    assert result.err.startswith("error: several-platforms\n")
