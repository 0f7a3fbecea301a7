"""``-o`` overwrites what envsolve wrote; any other file stays, unless ``--force`` is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.locked import pins_in
from tests.cli.locking import Locking, assert_in_three_parts
from tests.cli.test_several import host
from tests.conda.conftest import Mirror, channel_server, mirror, mirrored, own_channel_server
from tests.conftest import Envsolve, Result
from tests.lockfile.formats import EXAMPLES

__all__ = ["Mirror", "channel_server", "mirror", "mirrored", "own_channel_server"]

STACK = ("-f", "pytorch", "--gpu", "8.6")
MINE = {it.file: it.foreign for it in EXAMPLES.values()}


def assert_refused(done: Result, path: Path, text: str) -> None:
    assert (done.code, done.out) == (2, ""), done.err
    assert done.err.startswith("error: not-a-lock\n"), done.err
    assert "hint: use --force to overwrite it\n" in done.err
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", MINE)
def test_solve_refuses_before_it_searches(name: str, locking: Locking, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(MINE[name], encoding="utf-8")
    done = locking.envsolve(*STACK, "--index-url", locking.url, "--cache-dir", "cache", "-o", name)
    assert_refused(done, path, MINE[name])
    assert_in_three_parts(done.err)
    assert locking.index.requests == []


@pytest.mark.parametrize("name", ["environment.yml", "pixi.toml", "answer.json"])
def test_an_answer_replaces_an_earlier_answer(name: str, envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / name
    assert envsolve(*STACK, "--gpu", "7.5", "-o", str(path)).code == 0
    before = path.read_text(encoding="utf-8")
    assert envsolve(*STACK, "-o", str(path)).code == 0
    assert path.read_text(encoding="utf-8") != before


@pytest.mark.parametrize("name", ["environment.yml", "pixi.toml", "answer.json"])
def test_force_replaces_anything(name: str, envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(MINE[name], encoding="utf-8")
    done = envsolve(*STACK, "--force", "-o", str(path))
    assert done.code == 0, done.err
    assert "pytorch" in path.read_text(encoding="utf-8")
    assert "--force" not in path.read_text(encoding="utf-8")


def test_the_locked_policy_ignores_a_file_that_is_no_answer(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(MINE["answer.json"])
    assert envsolve(*STACK, "--prefer", "locked", "--force", "-o", str(path)).code == 0


def test_questions_do_not_check_the_output_file(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_text(MINE["environment.yml"])
    done = envsolve(*STACK, "--why", "cuda", "-o", str(path))
    assert (done.code, path.read_text()) == (0, MINE["environment.yml"])


def test_with_one_file_per_platform_all_of_them_are_checked(envsolve: Envsolve, tmp_path: Path) -> None:
    both = ("--platform", "linux-64", "--platform", "win-64")
    output = ("-o", str(tmp_path / "{platform}.yml"))
    mine = tmp_path / "win-64.yml"
    mine.write_text(MINE["environment.yml"])
    assert_refused(envsolve(*STACK, *both, *output), mine, MINE["environment.yml"])
    assert not (tmp_path / "linux-64.yml").exists()
    assert envsolve(*STACK, "--platform", "linux-64", *output).code == 0
    assert envsolve("-f", "pytorch", "--host", host("rtx-3090-535.183.01"), *output).code == 0
    (tmp_path / "linux-aarch64.yml").write_text(MINE["environment.yml"])
    on_hosts = envsolve("-f", "pytorch", "--host", host("gh200-575.57.08"), *output)
    assert_refused(on_hosts, tmp_path / "linux-aarch64.yml", MINE["environment.yml"])


def test_the_pins_of_a_file_replaced_by_force_are_preserved(locking: Locking) -> None:
    locking.output.write_text("alpha==1.0\npandas\n")
    assert_refused(locking("-o", str(locking.output)), locking.output, "alpha==1.0\npandas\n")
    assert locking("--force", "-o", str(locking.output)).code == 0
    assert pins_in(locking.output.read_text()) == {"alpha": "1.0", "beta": "2.0"}


@pytest.mark.thorough
def test_a_conda_lock_only_replaces_an_unreadable_file_with_force(
    envsolve: Envsolve, mirrored: Path, tmp_path: Path
) -> None:
    path = tmp_path / "conda-lock.yml"
    path.write_text(MINE["conda-lock.yml"])
    words = ("-f", "tensorflow", "--gpu", "8.6", "--cache-dir", str(tmp_path / "cache"), "-o", str(path))
    assert_refused(envsolve(*words), path, MINE["conda-lock.yml"])
    done = envsolve(*words, "--force")
    assert done.code == 0, done.err
    assert path.read_text().startswith("# Made by envsolve ")


def test_a_file_of_another_kind_is_not_overwritten_whatever_it_contains(envsolve: Envsolve, tmp_path: Path) -> None:
    for name in ("notes.md", "train.py"):
        path = tmp_path / name
        path.write_text("my notes\n")
        assert_refused(envsolve(*STACK, "-o", str(path)), path, "my notes\n")


def test_export_refuses_and_replaces_like_solve(envsolve: Envsolve, tmp_path: Path) -> None:
    lock, path = tmp_path / "pylock.toml", tmp_path / "requirements.txt"
    lock.write_text(
        'lock-version = "1.0"\ncreated-by = "me"\n[[packages]]\nname = "alpha"\nversion = "1.0"\n'
        f'wheels = [{{ name = "alpha-1.0-py3-none-any.whl", url = "https://index.example.org/alpha-1.0-py3-none-any.whl"'
        f', hashes = {{ sha256 = "{"0" * 64}" }} }}]\n'
    )
    path.write_text("torch>=2\n")
    assert_refused(envsolve("export", str(tmp_path / "nowhere.txt"), "-o", str(path)), path, "torch>=2\n")
    words = ("export", str(lock), "-o", str(path), "--no-cache")
    assert_refused(envsolve(*words), path, "torch>=2\n")
    assert envsolve(*words, "--force").code == 0
    assert pins_in(path.read_text()) == {"alpha": "1.0"}
    assert envsolve(*words).code == 0


def test_an_export_for_each_platform_checks_each_file(envsolve: Envsolve, tmp_path: Path) -> None:
    lock, mine = tmp_path / "explicit.txt", tmp_path / "linux-64.yml"
    lock.write_text(f"@EXPLICIT\nhttps://conda.example.org/main/linux-64/bzip2-1.0.8-h4bc722e_7.conda#{'0' * 32}\n")
    mine.write_text(MINE["environment.yml"])
    words = ("export", str(lock), "--format", "environment", "-o", str(tmp_path / "{platform}.yml"))
    assert_refused(envsolve(*words), mine, MINE["environment.yml"])
    assert envsolve(*words, "--force").code == 0
    assert "bzip2=1.0.8=h4bc722e_7" in mine.read_text()


def test_capture_refuses_before_it_reads_the_environment(envsolve: Envsolve, tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    path.write_text("torch>=2\n")
    words = ("capture", "--prefix", str(tmp_path / "nowhere"), "-o", str(path))
    assert_refused(envsolve(*words), path, "torch>=2\n")
    assert not envsolve(*words, "--force").err.startswith("error: not-a-lock")


@pytest.mark.parametrize("command", [("-f", "pytorch", "--gpu", "8.6"), ("capture", "--prefix", "nowhere")])
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x.toml", "cannot infer a format from the name of x.toml"),
        ("x.lock", "cannot infer a format from the name of x.lock"),
        ("uv.lock", "uv.lock is a lock of uv"),
        ("pixi.lock", "pixi.lock is a lock of pixi"),
    ],
)
def test_a_name_shared_by_several_formats_is_not_an_answer(
    command: tuple[str, ...], name: str, says: str, envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = envsolve(*command, "-o", name)
    assert (done.code, done.err.splitlines()[0]) == (2, "error: unknown-format")
    assert says in done.err
    assert list(tmp_path.iterdir()) == []
