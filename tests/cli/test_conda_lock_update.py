"""An existing conda lock is preserved as far as it fits: -o keeps its pins, -U and -P ignore them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envsolve.lockfile.reading import lock_at
from envsolve.model.host import Platform
from tests.conda.conftest import channel_server, mirror, mirrored
from tests.conftest import Envsolve

__all__ = ["channel_server", "mirror", "mirrored"]

_FORMATS = {
    "conda-lock.yml": (),
    "conda-linux-64.lock": (),
    "environment.yml": ("--exact",),
}
OLD, NEW = "520.61.05", "580.65.06"
Locking = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def locking(request: pytest.FixtureRequest, envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path) -> Locking:
    """Writes or updates a lock for TensorFlow and a driver, and returns its versions and builds."""
    name = str(getattr(request, "param", "conda-linux-64.lock"))
    path = tmp_path / name

    def lock(driver: str, *words: str) -> dict[str, str]:
        common = ("-f", "tensorflow", "--gpu", "8.6", "--driver", driver, "--cache-dir", str(cache))
        done = envsolve(*common, *_FORMATS[name], "-o", str(path), *words)
        assert done.code == 0, done.err
        found = lock_at(path, Platform.LINUX_64)
        assert found is not None
        return {it.name: f"{it.version} {it.build}" for it in found.conda}

    return lock


@pytest.mark.thorough
@pytest.mark.parametrize(
    "locking",
    ["conda-lock.yml", *(pytest.param(it, marks=pytest.mark.thorough) for it in _FORMATS if it != "conda-lock.yml")],
    indirect=True,
)
def test_a_newer_driver_changes_nothing_until_requested(locking: Locking) -> None:
    before = locking(OLD)
    assert before["tensorflow"].startswith("2.14.0 cuda118")
    assert locking(NEW) == before
    upgraded = locking(NEW, "-U")
    assert upgraded["tensorflow"].startswith("2.19.1 cuda128")


@pytest.mark.thorough
def test_an_older_driver_changes_only_what_must_change(locking: Locking) -> None:
    before = locking(NEW)
    after = locking(OLD)
    assert before["tensorflow"].startswith("2.19.1 cuda128")
    assert after["tensorflow"].startswith("2.14.0 cuda118")
    unchanged = {name for name, version in before.items() if after.get(name) == version}
    assert {"absl-py", "astunparse", "certifi", "six"} <= unchanged


@pytest.mark.thorough
def test_upgraded_packages_change_and_the_rest_stays(locking: Locking) -> None:
    locking(OLD)
    after = locking(NEW, "-P", "tensorflow")
    assert after["tensorflow"].startswith("2.19.1 cuda128")
    assert locking(OLD, "-P", "absl-py")["tensorflow"].startswith("2.14.0 cuda118")


@pytest.mark.thorough
def test_another_package_does_not_change_the_others(locking: Locking) -> None:
    before = locking(OLD)
    after = locking(NEW, "tqdm")
    assert "tqdm" in after
    assert {name: after.get(name) for name in before} == before


@pytest.mark.thorough
def test_an_unreadable_lock_is_an_error_and_is_not_overwritten(
    envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "conda-lock.yml"
    text = "# Made by envsolve 0.1.0:\nwhat is this?\n"
    path.write_text(text)
    done = envsolve("-f", "tensorflow", "--gpu", "8.6", "--cache-dir", str(cache), "-o", str(path))
    assert (done.code, path.read_text()) == (2, text)
    assert done.err.startswith("error: held-unreadable\n")


@pytest.mark.thorough
def test_platforms_missing_from_a_new_lock_are_reported(
    envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    words = ("-f", "pytorch", "--gpu", "none", "--cache-dir", str(cache), "-o", str(tmp_path / "conda-lock.yml"))
    both = envsolve(*words, "--platform", "linux-64", "--platform", "win-64")
    assert (both.code, "held" in both.err) == (0, False)
    one = envsolve(*words, "--platform", "linux-64")
    assert one.code == 0
    assert "no longer has win-64" in one.err


@pytest.mark.thorough
def test_a_platform_in_the_name_gives_one_lock_per_platform(
    envsolve: Envsolve, mirrored: Path, cache: Path, tmp_path: Path
) -> None:
    words = ("-f", "pytorch", "--gpu", "none", "--platform", "linux-64", "--platform", "win-64")
    done = envsolve(*words, "--cache-dir", str(cache), "-o", str(tmp_path / "{platform}.conda-lock.yml"))
    assert done.code == 0, done.err
    for platform in ("linux-64", "win-64"):
        text = (tmp_path / f"{platform}.conda-lock.yml").read_text()
        assert f"  platforms:\n  - {platform}\n  sources" in text


def test_a_lock_is_not_a_requirements_file(envsolve: Envsolve, mirrored: Path, tmp_path: Path) -> None:
    lock = Path(__file__).parents[1] / "snapshots" / "tensorflow.conda-lock.yml"
    done = envsolve("-r", str(lock), "--gpu", "none", "--format", "explicit")
    assert (done.code, done.out) == (2, "")
    assert "is a lock, and -r reads requirements" in done.err


@pytest.mark.thorough
def test_a_suggested_version_is_the_newest_that_fits_despite_an_existing_lock(
    locking: Locking, envsolve: Envsolve, cache: Path, tmp_path: Path
) -> None:
    locking(OLD)
    arguments = (
        "-f",
        "tensorflow>=99",
        "--gpu",
        "8.6",
        "--driver",
        NEW,
        "--cache-dir",
        str(cache),
        "--format",
        "explicit",
    )
    beside = envsolve(*arguments, "-o", str(tmp_path / "conda-linux-64.lock"))
    alone = envsolve(*arguments, "-o", str(tmp_path / "other.lock"))
    assert (beside.code, beside.err) == (1, alone.err)
    assert "hint: the newest tensorflow that fits is " in beside.err
