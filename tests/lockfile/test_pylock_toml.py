"""Locks as pylock.toml: the bytes, that the standard's own reader accepts them, and that uv does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomli
from hypothesis import given, settings
from packaging.markers import default_environment
from packaging.pylock import Package, Pylock
from packaging.tags import Tag, cpython_tags

from envsolve.boundary.files import FileError
from envsolve.errors import OutsideError
from envsolve.lockfile.formats import write_python_lock
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.pylock_toml import read as read_lock
from envsolve.lockfile.pylock_toml import write as pylock_toml
from envsolve.matrix import Matrix
from envsolve.model.package import Pin
from tests.conftest import Envsolve
from tests.laws import examples
from tests.lockfile.locks import INDEX, MARKERS, PINS, file, locks, plain, rtx_3090
from tests.lockfile.real_wheels import wheel

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
HEAD = 'lock-version = "1.0"\ncreated-by = "own"\n'
WHEEL = '{ url = "https://files.example.org/own-1.0-py3-none-any.whl", hashes = { sha256 = "00" } }'
SHAPES = {
    "packages are a number": HEAD + "packages = 5\n",
    "packages are a table": HEAD + "[packages]\nname = 1\n",
    "a package is a text": HEAD + 'packages = ["own"]\n',
    "no name": HEAD + '[[packages]]\nversion = "1.0"\n',
    "a name with a space": HEAD + '[[packages]]\nname = "a b"\n',
    "no hashes": HEAD + '[[packages]]\nname = "own"\nwheels = [{ url = "u" }]\n',
    "hashes in a list": HEAD
    + f'[[packages]]\nname = "own"\nwheels = [{WHEEL.replace("{ sha256", "[{ sha256")[:-1]}] }}]\n',
    "wheels are a number": HEAD + '[[packages]]\nname = "own"\nwheels = 3\n',
    "an index that is a list": HEAD + f'[[packages]]\nname = "own"\nversion = "1"\nindex = []\nwheels = [{WHEEL}]\n',
    "no packages": HEAD,
    "another version": HEAD.replace("1.0", "9.0") + "packages = []\n",
    "a version that is none": HEAD.replace('"1.0"', "[]") + "packages = []\n",
    "no lock": "[project]\n",
    "no TOML": "packages = [",
    "too deep": "packages = " + "[" * 100_000,
    "a number of many digits": HEAD + "packages = " + "9" * 5000,
}

_MARKERS = (
    'implementation_name == "cpython" and platform_machine == "x86_64" and python_version == "3.11" '
    'and sys_platform == "linux"'
)


def read(lock: Lock) -> Pylock:
    """The result of packaging's reader, which raises for anything that the standard does not allow."""
    return Pylock.from_dict(tomli.loads(pylock_toml(lock)))


def package(lock: Lock, name: str) -> Package:
    return next(package for package in read(lock).packages if package.name == name)


@pytest.mark.parametrize("name", ["rtx-3090", "plain"])
def test_the_output_equals_the_recorded_one(name: str, matrix: Matrix) -> None:
    text = pylock_toml(rtx_3090(matrix) if name == "rtx-3090" else plain())
    path = SNAPSHOTS / f"pylock.python-lock-{name}.toml"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_order_of_the_pins_does_not_matter() -> None:
    assert pylock_toml(plain(PINS)) == pylock_toml(plain(reversed(PINS)))


def test_it_states_its_platform_and_python() -> None:
    lock = read(plain())
    assert (str(lock.requires_python), lock.created_by, str(lock.lock_version)) == (
        "==3.11.*,>=3.11.7",
        "envsolve",
        "1.0",
    )
    assert lock.environments is not None
    assert [str(marker) for marker in lock.environments] == [_MARKERS]
    assert lock.environments[0].evaluate(MARKERS)
    assert not lock.environments[0].evaluate({**MARKERS, "python_version": "3.12"})


def test_a_package_has_its_files_with_their_hashes() -> None:
    numpy = package(plain(), "numpy")
    assert (str(numpy.version), str(numpy.requires_python), numpy.index) == ("2.3.5", ">=3.11", INDEX)
    assert numpy.wheels is not None
    assert numpy.wheels[0].size == 16_900_000
    assert str(numpy.wheels[0].upload_time) == "2025-11-16 22:49:02.146210+00:00"
    assert numpy.wheels[0].hashes == {"sha256": "2" * 64}
    assert numpy.sdist is not None
    assert str(numpy.sdist.upload_time) == "2025-11-16 22:52:49+00:00"
    assert numpy.sdist.hashes == {"sha256": "3" * 64, "sha512": "4" * 128}


def test_a_package_lists_its_requirements_and_dependents() -> None:
    torch = package(plain(), "torch")
    assert torch.dependencies == [{"name": "filelock"}, {"name": "numpy"}]
    assert torch.tool == {
        "envsolve": {
            "via": ["-r requirements.in"],
            "because": ["pytorch 2.14.1 (pytorch, cu130) holds code for 8.6"],
        }
    }


@pytest.mark.parametrize(
    ("stated", "expected"), [(">=3.10,!=3.11.2", "!=3.11.2,>=3.10"), (">=2.7.*", "None"), ("", "None")]
)
def test_invalid_pythons_are_left_out(stated: str, expected: str) -> None:
    assert str(package(plain([PINS[2]._replace(requires_python=stated)]), "filelock").requires_python) == expected


def test_a_direct_reference_is_an_archive() -> None:
    own = package(plain(), "own-kernels")
    assert own.archive is not None
    assert own.archive.url == PINS[3].files[0].url
    assert (own.wheels, own.sdist, own.index, str(own.version)) == (None, None, None, "0.4")


def test_a_source_tree_has_its_folder_and_no_version() -> None:
    tree = file("main.zip")._replace(url="https://files.example.org/main.zip#egg=a&subdirectory=pkg/a")
    archive = package(plain([PINS[3]._replace(files=(tree,))]), "own-kernels")
    assert archive.archive is not None
    assert (archive.archive.url, archive.archive.subdirectory) == ("https://files.example.org/main.zip", "pkg/a")
    assert archive.version is None


def test_an_empty_lock_is_a_lock() -> None:
    assert list(read(plain([])).packages) == []


@pytest.mark.parametrize(
    "moment", ["", "yesterday", "2025-02-30T00:00:00Z", "2025-02-03T00:00:00", "0001-01-01T00:00:00+09:00"]
)
def test_an_invalid_time_is_left_out(moment: str) -> None:
    pin = PINS[2]._replace(files=(file("filelock-3.20.0-py3-none-any.whl", upload_time=moment),))
    wheels = package(plain([pin]), "filelock").wheels
    assert wheels is not None
    assert wheels[0].upload_time is None


@pytest.mark.parametrize("name", ["../filelock-3.20.0-py3-none-any.whl", "a\\b.whl", "a\nb.whl", ""])
def test_a_file_name_with_a_path_is_refused(name: str) -> None:
    with pytest.raises(OutsideError, match="unsound-package"):
        pylock_toml(plain([PINS[2]._replace(files=(file("x")._replace(name=name),))]))


def test_a_file_without_a_strong_hash_is_never_written() -> None:
    with pytest.raises(OutsideError, match="no-hash"):
        pylock_toml(plain([PINS[2]._replace(files=(file("f-1.whl", hashes=(("md5", "0" * 32),)),))]))
    with pytest.raises(OutsideError, match="no-hash"):
        pylock_toml(plain([PINS[2]._replace(files=())]))


def test_no_credentials_are_written() -> None:
    url = "https://user:secret@index.example.org/simple"
    pins = [pin._replace(index_url=pin.index_url and url, because=(f"as {url} says",)) for pin in PINS]
    lock = plain(pins, command=f"envsolve --index-url {url}", request=(f"a @ {url}",), notes=(url,))
    text = write_python_lock(lock, "pylock")
    assert "secret" not in text
    assert "user" not in text


@pytest.mark.thorough
@settings(max_examples=examples(60))
@given(locks())
def test_any_text_leaves_the_keys_intact(lock: Lock) -> None:
    document = tomli.loads(pylock_toml(lock))
    assert {"lock-version", "created-by", "packages", "tool"} <= set(document) <= set(_KEYS)
    assert set(document["tool"]) == {"envsolve"}
    read_back = Pylock.from_dict(document)
    found = [(it.name, str(it.version)) for it in read_back.packages if it.archive is None or it.version is not None]
    sdists = [pin for pin in lock.pins if pin.index_url is None and not pin.files[0].is_wheel]
    assert found == sorted((pin.name, pin.version) for pin in lock.pins if pin not in sdists)
    for locked in document["packages"]:
        assert set(locked) <= set(_PACKAGE_KEYS)
        assert set(locked.get("tool", {})) <= {"envsolve"}


_KEYS = ("lock-version", "environments", "requires-python", "created-by", "packages", "tool")
_PACKAGE_KEYS = (
    *("name", "version", "marker", "requires-python", "dependencies", "index", "archive"),
    *("sdist", "wheels", "tool"),
)


def test_the_reference_reader_selects_the_best_wheel_for_the_target() -> None:
    best = file("numpy-2.3.5-cp311-cp311-manylinux_2_27_x86_64.whl", "2")
    other = file("numpy-2.3.5-cp311-cp311-manylinux_2_17_x86_64.whl", "7")
    pin = PINS[1]._replace(files=(best, other))
    tags = list(
        cpython_tags((3, 11), platforms=["manylinux_2_35_x86_64", "manylinux_2_27_x86_64", "manylinux_2_17_x86_64"])
    )
    assert Tag("cp311", "cp311", "manylinux_2_27_x86_64") in tags
    environment = {**default_environment(), **MARKERS}
    selected = list(read(plain([pin])).select(environment=environment, tags=tags))  # type: ignore[arg-type]  # a dict
    assert [getattr(found, "name", None) for _, found in selected] == [best.name]


def uv() -> str | None:
    """The uv beside this Python, the one that the variable UV names, or the one on the path."""
    beside = Path(sys.executable).with_name("uv.exe" if os.name == "nt" else "uv")
    return str(beside) if beside.exists() else os.environ.get("UV") or shutil.which("uv")


def uv_installs(lock: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Uv, without any setting or cache of this machine, installing ``lock`` into a folder."""
    command = [str(uv()), "pip", "install", "--no-config", "--no-cache", "--preview-features", "pylock"]
    command += ["--python", sys.executable, "--target", str(into), "-r", str(lock)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.thorough
@pytest.mark.skipif(uv() is None, reason="uv is not installed here; the variable UV may name one")
def test_uv_installs_it_with_its_hashes(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    files = [wheel(folder, name, "1.0") for name in ("one-pin", "two")]
    files = [file._replace(url=f"{address}/{file.name}") for file in files]
    pins = (Pin("one-pin", "1.0", (files[0],), address, via=("two",)), Pin("two", "1.0", (files[1],), None))
    python = ".".join(map(str, sys.version_info[:3]))
    path = tmp_path / "pylock.toml"
    path.write_text(pylock_toml(plain(pins, python=python, default_index=address, indexes=())), encoding="utf-8")
    done = uv_installs(path, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "one_pin-1.0.dist-info").is_dir()
    assert (tmp_path / "site" / "two-1.0.dist-info").is_dir()
    path.write_text(path.read_text(encoding="utf-8").replace(files[1].hashes[0][1], "0" * 64), encoding="utf-8")
    refused = uv_installs(path, tmp_path / "other")
    assert refused.returncode != 0
    assert "Hash mismatch" in refused.stderr


@pytest.mark.skipif(uv() is None, reason="uv is not installed here; the variable UV may name one")
def test_uv_refuses_it_for_another_python(tmp_path: Path) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(pylock_toml(plain((), python="3.8.1")), encoding="utf-8")
    refused = uv_installs(path, tmp_path / "site")
    assert refused.returncode != 0
    assert "==3.8.*" in refused.stderr


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_another_shape_is_refused(text: str) -> None:
    with pytest.raises(FileError):
        read_lock(text)


@pytest.mark.thorough
@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("command", ["create", "export"])
def test_the_commands_state_the_format(command: str, text: str, tmp_path: Path, envsolve: Envsolve) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(text, encoding="utf-8")
    words = (
        (str(tmp_path / "env"), "--lock", str(path)) if command == "create" else (str(path), "--format", "requirements")
    )
    done = envsolve(command, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: lock-unreadable\n"), done.err
    assert not (tmp_path / "env").exists()


def test_files_of_other_tools_are_read() -> None:
    text = f'{HEAD}[[packages]]\nname = "own"\nversion = "1.0"\nwheels = [{WHEEL}]\n[tool.other]\nkey = 1\n'
    assert read_lock(text).pins[0].name == "own"
