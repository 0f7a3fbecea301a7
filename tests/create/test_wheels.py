"""Wheels come only from the lock, whatever else is on the machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from envsolve.create.reading import plan_of
from envsolve.create.tools import InstallerNetwork
from envsolve.create.wheels import Wheels, _opened, install_wheels, wheel_file
from envsolve.errors import OutsideError, UsageError
from envsolve.index.settings import IndexSettings
from envsolve.lockfile import requirements_txt
from envsolve.lockfile.lock import Lock
from envsolve.model.host import Platform
from envsolve.model.package import PackageFile, Pin
from tests.cli.creating import tree
from tests.index.packages import wheel
from tests.index.server import IndexServer

MINOR = ".".join(map(str, sys.version_info[:2]))


HEAD = 'lock-version = "1.0"\ncreated-by = "test"\n'
DIGEST = "0a" * 32
OPTION = "--no-binary=:all:"
SOUND = re.compile(
    r"--(?:extra-)?index-url https://\S+|own(?:==1\.0| @ https://\S+) --hash=sha256:[0-9a-f]{64}", re.ASCII
)


def entry(
    name: str = "own",
    *lines: str,
    version: str = "1.0",
    algorithm: str = "sha256",
    digest: str = DIGEST,
    index: str = "https://i/simple",
) -> str:
    more = "".join(f"{line}\n" for line in (f'index = "{index}"', *lines))
    file = (
        f'name = "{name}-1.0-py3-none-any.whl"\nurl = "https://i/{name}.whl"\nhashes = {{ "{algorithm}" = "{digest}" }}'
    )
    return f'[[packages]]\nname = "{name}"\nversion = "{version}"\n{more}[[packages.wheels]]\n{file}\n'


def archive(fields: str) -> str:
    return f'[[packages]]\nname = "own"\narchive = {{ {fields}, hashes = {{ sha256 = "{DIGEST}" }} }}\n'


def lines_of(folder: Path, *entries: str) -> list[str]:
    """The input of a pip that cannot read pylock.toml."""
    path = folder / "pylock.toml"
    path.write_text(HEAD + "".join(entries), "utf-8")
    file = wheel_file(plan_of(path, Platform.LINUX_64).lock, reads_pylock=False)
    assert (file.name, file.names_index) == ("requirements.txt", True)
    return file.text.splitlines()


def test_for_a_pylock_pip_gets_hashes_and_each_index_once(tmp_path: Path) -> None:
    marker = "marker = \"python_version < '3'\""
    entries = (entry("alpha"), entry("beta", marker, index="https://j/whl"), entry("gamma"))
    assert lines_of(tmp_path, *entries) == [
        "--index-url https://i/simple",
        "--extra-index-url https://j/whl",
        f"alpha==1.0 --hash=sha256:{DIGEST}",
        f"beta==1.0 ; python_version < '3' --hash=sha256:{DIGEST}",
        f"gamma==1.0 --hash=sha256:{DIGEST}",
    ]


@pytest.mark.parametrize("index", ['index = "https://i/simple"', ""])
def test_for_a_pylock_uv_gets_addresses_from_any_index(index: str, tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(HEAD + entry().replace('index = "https://i/simple"', index), "utf-8")
    file = wheel_file(plan_of(path, Platform.LINUX_64).lock, reads_pylock=True)
    assert (file.name, 'url = "https://i/own.whl"' in file.text) == ("pylock.toml", True)


def test_tokens_in_addresses_of_a_lock_are_passed_to_the_installer_once_each(tmp_path: Path) -> None:
    path = tmp_path / "requirements.txt"
    hashed = f"--hash=sha256:{DIGEST}"
    lines = [f"{name} @ https://h/t/tk-1234/files/{name}-1.0-py3-none-any.whl {hashed}\n" for name in ("alpha", "beta")]
    path.write_text("".join(lines), "utf-8")
    plan = plan_of(path, Platform.LINUX_64)
    assert "tk-1234" not in plan.text
    network = InstallerNetwork(IndexSettings(), logins=tuple(address for _, address in plan.logins))
    assert _opened(wheel_file(plan.lock, reads_pylock=True).text, network) == "".join(lines)


def test_an_archive_is_passed_by_its_address(tmp_path: Path) -> None:
    (line,) = lines_of(tmp_path, archive('url = "https://i/own.zip", subdirectory = "x"'))
    assert line == f"own @ https://i/own.zip#subdirectory=x --hash=sha256:{DIGEST}"


HOSTILE = {
    "without files": '[[packages]]\nname = "own"\n',
    "without a name": '[[packages]]\nversion = "1"\n',
    "an option in the name": entry(OPTION),
    "a line in the name": entry(f"own\\n{OPTION}"),
    "a line in the version": entry(version=f"1.0\\n{OPTION}"),
    "a line in the index": entry(index=f"https://i\\n{OPTION}"),
    "a line of another kind in the index": entry(index=f"https://i\\u2028{OPTION}"),
    "an option for the index": entry(index=OPTION),
    "a variable in the index": entry(index="https://i/${TOKEN}"),
    "a line in an algorithm": entry(algorithm=f"sha256:0a\\n{OPTION}\\n"),
    "a line in a digest": entry(digest=f"0a\\n{OPTION}"),
    "a line in an address": archive('url = "https://i/o.whl\\n-r x"'),
    "a line in a folder": archive('url = "https://i/o.whl", subdirectory = "x\\n-r x"'),
}


@pytest.mark.thorough
@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_an_entry_cannot_start_a_line(hostile: str, tmp_path: Path) -> None:
    lines: list[str] = []
    with suppress(UsageError):
        lines = lines_of(tmp_path, hostile)
    assert [line for line in lines if not SOUND.fullmatch(line) or "$" in line] == []


@pytest.fixture
def index() -> Iterator[IndexServer]:
    with IndexServer(recorded=False) as server:
        yield server


def interpreter_at(prefix: Path) -> Path:
    """A Python with its own library and no pyvenv.cfg, as conda has them: its user site is enabled."""
    base, library = Path(sys.base_prefix), prefix / "lib" / f"python{MINOR}"
    (library / "site-packages").mkdir(parents=True)
    for path in Path(sysconfig.get_path("stdlib")).iterdir():
        if path.name not in ("site-packages", "dist-packages", "__pycache__"):
            (library / path.name).symlink_to(path)
    for path in (base / "lib").glob("libpython*"):
        (prefix / "lib" / path.name).symlink_to(path)
    (prefix / "bin").mkdir()
    return Path(shutil.copy(Path(sys.executable).resolve(), prefix / "bin" / "python"))


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="an interpreter is put together in another way there")
def test_pip_neither_counts_nor_changes_the_home_directory(index: IndexServer, tmp_path: Path) -> None:
    found = wheel("alpha", "1.0")
    index.add("alpha", [found])
    python, home = interpreter_at(tmp_path / "env"), tmp_path / "home"
    planted = home / ".local" / "lib" / f"python{MINOR}" / "site-packages" / "alpha-1.0.dist-info"
    planted.mkdir(parents=True)
    (planted / "METADATA").write_text("Metadata-Version: 2.1\nName: alpha\nVersion: 1.0\n")
    (planted / "RECORD").write_text("alpha-1.0.dist-info/METADATA,,\nalpha-1.0.dist-info/RECORD,,\n")
    before = tree(home / ".local")
    lock = f"--index-url {index.index_url}\nalpha==1.0 --hash=sha256:{found.sha256}\n"
    environ = {**os.environ, "HOME": str(home), "PYTHONUSERBASE": str(home / ".local")}
    environ = {name: value for name, value in environ.items() if name != "PYTHONNOUSERSITE"}
    wheels = Wheels(requirements_txt.read(lock), None, alone=False)
    install_wheels(python, wheels, InstallerNetwork(IndexSettings(), no_cache=True), environ, tmp_path, lambda _: None)
    assert tree(home / ".local") == before
    assert list((tmp_path / "env").rglob("alpha-1.0.dist-info"))


@pytest.mark.thorough
def test_a_pip_that_does_not_answer_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.create.wheels.PATIENCE", 1.0)
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexec sleep 600\n")
    python.chmod(0o755)
    wheels = Wheels(Lock(()), None, alone=False)
    started = time.monotonic()
    with pytest.raises(OutsideError):
        install_wheels(python, wheels, InstallerNetwork(IndexSettings()), os.environ, tmp_path, lambda _: None)
    assert time.monotonic() - started < 20


FILE = PackageFile("own-1.0-py3-none-any.whl", "https://i/own-1.0-py3-none-any.whl", (("sha256", DIGEST),))
COMMIT = PackageFile(f"part@{'0' * 40}", f"git+https://i/part@{'0' * 40}")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for uv")
@pytest.mark.parametrize(
    ("files", "requires_hashes"),
    [((FILE,), True), ((COMMIT,), False), ((FILE, COMMIT), False)],
    ids=["files", "a repository", "both"],
)
def test_every_file_needs_a_hash_unless_it_is_a_repository(
    files: tuple[PackageFile, ...], requires_hashes: bool, tmp_path: Path
) -> None:
    uv, scratch = tmp_path / "uv", tmp_path / "scratch"
    uv.write_text(f'#!/bin/sh\necho "$@" > "{tmp_path}/words"\n')
    uv.chmod(0o755)
    scratch.mkdir()
    pins = tuple(Pin(f"own{number}", "1.0", (file,), None) for number, file in enumerate(files))
    wheels = Wheels(Lock(pins), str(uv), alone=True, builds=True)
    network = InstallerNetwork(IndexSettings())
    install_wheels(Path(sys.executable), wheels, network, os.environ, scratch, lambda _: None)
    assert ("--require-hashes" in (tmp_path / "words").read_text().split()) is requires_hashes
