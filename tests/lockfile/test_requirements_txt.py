"""Locks as requirements files: the bytes, that pip accepts them, and that no text in them starts a line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings

from envsolve.errors import OutsideError
from envsolve.lockfile.formats import write_python_lock
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.requirements_txt import read
from envsolve.lockfile.requirements_txt import write as requirements_txt
from envsolve.matrix import Matrix
from envsolve.model.package import Pin
from tests.laws import examples
from tests.lockfile.locks import CUDA_INDEX, INDEX, PINS, file, locks, plain, rtx_3090
from tests.lockfile.real_wheels import wheel
from tests.lockfile.restriction import restricted

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What pip would install, without any setting of this machine."""
    environ = {name: locked for name, locked in os.environ.items() if not name.startswith(("PIP_", "VIRTUAL_ENV"))}
    command = [sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--dry-run"]
    return subprocess.run(
        [*command, "--ignore-installed", "--require-hashes", *arguments],
        env=environ | {"PIP_CONFIG_FILE": os.devnull},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", ["rtx-3090", "plain"])
def test_the_output_equals_the_recorded_one(name: str, matrix: Matrix) -> None:
    text = requirements_txt(rtx_3090(matrix) if name == "rtx-3090" else plain(default_is_plain=False))
    path = SNAPSHOTS / f"python-lock-{name}.requirements.txt"
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_order_of_the_pins_does_not_matter() -> None:
    assert requirements_txt(plain(PINS)) == requirements_txt(plain(reversed(PINS)))


@pytest.mark.thorough
def test_pip_takes_pins_and_direct_references_with_their_hashes(tmp_path: Path) -> None:
    pins = (
        Pin(
            "one-pin", "1.0+cu126", (wheel(tmp_path / "wheels", "one-pin", "1.0+cu126"),), INDEX, via=("two", "ends \\")
        ),
        Pin("two", "2.0", (wheel(tmp_path / "direct", "two", "2.0"),), None, because=("of a reason \\",)),
    )
    path = tmp_path / "requirements.txt"
    path.write_text(requirements_txt(plain(pins, command="envsolve \\")), encoding="utf-8")
    done = pip("--no-deps", "--no-index", "--find-links", str(tmp_path / "wheels"), "-r", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Would install one-pin-1.0+cu126 two-2.0"
    wrong = pins[0]._replace(files=(pins[0].files[0]._replace(hashes=(("sha256", "0" * 64),)),))
    path.write_text(requirements_txt(plain([wrong])), encoding="utf-8")
    assert (
        "THESE PACKAGES DO NOT MATCH THE HASHES"
        in pip("--no-deps", "--no-index", "--find-links", str(tmp_path / "wheels"), "-r", str(path)).stderr
    )


@pytest.mark.thorough
def test_the_file_tells_pip_where_the_packages_are(served: tuple[Path, str], tmp_path: Path) -> None:
    folder, address = served
    pins = []
    for index, name in (("main", "one"), ("extra", "two")):
        locked = wheel(folder / index / name, name, "1.0")
        page = f'<!DOCTYPE html><html><body><a href="{locked.name}">{locked.name}</a></body></html>'
        (folder / index / name / "index.html").write_text(page, encoding="utf-8")
        pins.append(Pin(name, "1.0", (locked,), f"{address}/{index}"))
    lock = plain(pins, default_index=f"{address}/main", indexes=(f"{address}/extra",), default_is_plain=False)
    path = tmp_path / "requirements.txt"
    path.write_text(requirements_txt(lock), encoding="utf-8")
    done = pip("-r", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Would install one-1.0 two-1.0"


def test_a_plain_default_index_is_not_named() -> None:
    assert "--index-url" not in requirements_txt(plain()).replace("--extra-index-url", "")
    assert f"\n--index-url {INDEX}\n" in requirements_txt(plain(default_is_plain=False))


@pytest.mark.parametrize("hashes", [(), (("md5", "0" * 32), ("sha1", "0" * 40)), (("sha256", "short"),)])
def test_a_file_without_a_strong_hash_is_never_written(hashes: tuple[tuple[str, str], ...]) -> None:
    pin = Pin("numpy", "2.0", (file("numpy-2.0.whl"), file("numpy-2.0.tar.gz", hashes=hashes)), INDEX)
    with pytest.raises(OutsideError) as caught:
        requirements_txt(plain([pin]))
    assert caught.value.code == "no-hash"
    assert "numpy-2.0.tar.gz" in caught.value.message
    assert caught.value.hints


def test_weak_hashes_are_left_out() -> None:
    text = requirements_txt(plain())
    assert "md5" not in text
    assert "    --hash=sha256:" + "3" * 64 + " \\\n    --hash=sha512:" + "4" * 128 + "\n" in text


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "numpy\nevil"),
        ("name", "NumPy"),
        ("name", "--index-url"),
        ("name", ""),
        ("version", "1.0 --index-url=x"),
        ("version", "1.0\n"),
        ("version", "1.0 ; evil"),
    ],
)
def test_a_name_or_version_that_could_start_a_line_is_refused(field: str, value: str) -> None:
    pin = PINS[1]._replace(name=value) if field == "name" else PINS[1]._replace(version=value)
    with pytest.raises(OutsideError) as caught:
        requirements_txt(plain([pin]))
    assert caught.value.code == "unsound-package"
    assert "\n" not in caught.value.message


def test_a_url_stays_on_its_line_and_has_no_credentials() -> None:
    hostile = "https://us 'er:sec@secret@files.example.org/a b\n--pre\\#${HOME}'\"é.whl"
    pin = PINS[3]._replace(files=(PINS[3].files[0]._replace(url=hostile),))
    lock = plain([pin], command="envsolve --index-url https://user:secret@index.example.org/simple")
    text = write_python_lock(lock, "requirements")
    assert "\nown-kernels @ https://files.example.org/a%20b%0A--pre%5C#$%7BHOME%7D%27%22%C3%A9.whl \\\n" in text
    assert "secret" not in text


@pytest.mark.parametrize("url", ["", "files/a.whl", "-r evil.txt", "https://"])
def test_an_invalid_url_is_refused(url: str) -> None:
    with pytest.raises(OutsideError, match="unsound-package"):
        requirements_txt(plain((), default_is_plain=False, default_index=url))


def test_an_annotation_names_an_index_other_than_the_default() -> None:
    text = requirements_txt(plain())
    assert text.count(f"    # from {CUDA_INDEX}\n") == 1
    assert f"# from {INDEX}" not in text


@pytest.mark.thorough
@settings(max_examples=examples(60))
@given(locks())
def test_any_text_leaves_exactly_the_pins(lock: Lock) -> None:
    text = requirements_txt(lock)
    found = read(text)
    assert not found.open
    read_back = [(pin.name, pin.version, pin.files, pin.index_url) for pin in found.pins]
    assert read_back == [(it.name, it.version, it.files, it.index_url) for it in restricted(lock, "requirements").pins]
    words = [line.split()[0] for line in text.splitlines() if line and not line.lstrip().startswith(("#", "--hash="))]
    pins = {pin.name if pin.index_url is None else f"{pin.name}=={pin.version}" for pin in lock.pins}
    allowed = pins | {"--index-url", "--extra-index-url"}
    assert set(words) <= allowed
