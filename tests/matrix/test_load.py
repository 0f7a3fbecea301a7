"""Loading: all mistakes together with file and key, and nothing dropped silently."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path

import pytest

from envsolve.boundary.document import Document, TomlFile
from envsolve.errors import MatrixError
from envsolve.matrix import Matrix, find_matrix
from envsolve.matrix.load import PLATFORM_TABLES
from envsolve.model.host import Platform
from tests.matrix.tiny import tiny_matrix

SOUND = """\
schema_version = 1
updated = "2026-11-20"
framework = "thing"

[evidence.docs]
kind = "project-docs"
reference = "a page"
seen = "2026-11-20"

[[release]]
version = "1.0"
source = "pypi"
platform = "linux-64"
build = "cuda12"
package = "thing"
pythons = ["3.12"]
cuda = "12.6"
cuda_requires = "==12.6"
cuda_libraries = "bundled"
cudnn_requires = "==9.10.2.21"
sass = ["8.0"]
evidence = ["docs"]
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The shipped platform tables, and one small framework."""
    copy = tmp_path / "matrix"
    copy.mkdir()
    (copy / "thing.toml").write_text(SOUND, encoding="utf-8")
    for name in PLATFORM_TABLES:
        shutil.copy(find_matrix() / f"{name}.toml", copy)
    return copy


def mistakes(directory: Path, text: str) -> list[str]:
    (directory / "thing.toml").write_text(text, encoding="utf-8")
    table = Matrix(directory)
    try:
        table.framework("thing", None)
    except MatrixError as error:
        return list(error.cause)
    return []


def test_a_valid_file_has_no_mistakes(directory: Path) -> None:
    assert mistakes(directory, SOUND) == []


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('version = "1.0"', 'version = "one"', "release[1].version"),
        ('version = "1.0"', 'version = "1.0+cu1"', "release[1].version"),
        ('sass = ["8.0"]', 'sass = ["8.0"]\nby_hand = "cudnn"', "release[1].by_hand"),
        ('framework = "thing"', 'framework = "thing"\naliases = "thg"', "aliases"),
        ('framework = "thing"', 'framework = "thing"\naliases = [1]', "aliases"),
        ('framework = "thing"', 'framework = "thing"\naliases = [""]', "aliases"),
        ('source = "pypi"', 'source = "warez"', "release[1].source"),
        ('platform = "linux-64"', 'platform = "linux"', "release[1].platform"),
        ('pythons = ["3.12"]', "pythons = []", "release[1].pythons"),
        ('pythons = ["3.12"]', 'pythons = ["three"]', "release[1].pythons"),
        ('cuda = "12.6"', 'cuda = "cudart64_110.dll"', "release[1].cuda"),
        ('cuda_requires = "==12.6"', 'cuda_requires = "==11.8"', "release[1].cuda_requires"),
        ('cuda_libraries = "bundled"', 'cuda_libraries = "somewhere"', "release[1].cuda_libraries"),
        ('sass = ["8.0"]', 'sass = ["sm_80"]', "release[1].sass"),
        ('sass = ["8.0"]\n', "", "release[1].sass"),
        ('sass = ["8.0"]', 'sass = ["8.0"]\njit = { "9.0" = "12.6" }', "release[1].jit"),
        ('sass = ["8.0"]', 'sass = ["8.0"]\njit = { "8.0" = "new" }', "release[1].jit"),
        (
            'cuda_libraries = "bundled"\ncudnn_requires = "==9.10.2.21"\n',
            'cuda_libraries = "none"\n',
            "release[1].cudnn_requires",
        ),
        ('package = "thing"', 'package = "thing"\nwheel = "thing.whl"', "release[1].wheel"),
        ('package = "thing"', 'package = "thing"\nwheel = "thing-1.1-{python}-any.whl"', "release[1].wheel"),
        ('evidence = ["docs"]', "evidence = []", "release[1].evidence"),
        ('evidence = ["docs"]', 'evidence = ["rumour"]', "release[1].evidence"),
        ('evidence = ["docs"]\n', "", "release[1].evidence"),
        ('build = "cuda12"', 'build = "cuda12"\nbuidl = "x"', "release[1].buidl"),
        ('kind = "project-docs"', 'kind = "forum"', "evidence.docs.kind"),
        ('seen = "2026-11-20"', 'seen = "yesterday"', "evidence.docs.seen"),
        (
            "[[release]]",
            '[[dates]]\nreleased = { "1.0" = "2026" }\nevidence = ["docs"]\n\n[[release]]',
            "dates[1].released",
        ),
        (
            "[[release]]",
            '[[dates]]\nreleased = { "one" = "2026-11-20" }\nevidence = ["docs"]\n\n[[release]]',
            "dates[1].released",
        ),
        ("[[release]]", '[[dates]]\nreleased = { "1.0" = "2026-11-20" }\n\n[[release]]', "dates[1].evidence"),
        ("schema_version = 1", "schema_version = 0", "schema_version"),
        ('updated = "2026-11-20"', "updated = 3", "updated"),
    ],
)
def test_a_mistake_is_reported_with_file_and_key(directory: Path, old: str, new: str, key: str) -> None:
    assert old in SOUND
    found = mistakes(directory, SOUND.replace(old, new, 1))
    assert any(line.startswith(f"thing.toml: {key}: ") for line in found), found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("cuda_components", 'cuda = "12.6"', 'cuda = "12.7"', "is not a release of CUDA 12.7"),
        ("cuda_components", 'nvidia-cublas-cu12 = "==', 'nvidia-cublas-cu12 = "<', "components"),
        ("cuda_components", "[[patch]]", "[[path]]", "is not a table or key"),
        ("pci_ids", '"1b06" = ', '"1b6" = ', "device.1b6: is not a device id"),
        ("pci_ids", '"1b06" = ', '"1B06" = ', "device.1B06: is not a device id"),
        ("pci_ids", '"1b06" = ', '"1bg6" = ', "device.1bg6: is not a device id"),
        (
            "packages",
            'requires = ["torch>=2.11"]\nevidence = ["torchaudio',
            'evidence = ["torchaudio',
            "[1]: says nothing",
        ),
        ("packages", 'cuda = "==13.*"', 'cuda = "13"', ".cuda: '13' is not a version specifier"),
        ("packages", 'cuda = "==13.*"', 'with_cuda = "==13.*"', ".with_cuda: is about code: sass must be there"),
        ("packages", 'cuda = "==13.*"', 'platforms = ["linux"]', ".platforms"),
        ("packages", 'requires = ["torch>=2.11"]', 'requires = [">=2.11"]', "build[1].requires"),
        ("packages", '"torchaudio"', '"Torch_Audio"', "build[1].package: must be the normalized name, torch-audio"),
        ("packages", 'evidence = ["torchaudio-metadata"', 'evidence = ["a-rumour"', "build[1].evidence"),
        ("cudnn", 'cuda = ["12.0"', 'cuda = ["11.0"', "CUDA 11.0 is not of major 12"),
    ],
)
def test_a_mistake_in_a_platform_table_is_reported(
    directory: Path, file: str, old: str, new: str, message: str
) -> None:
    path = directory / f"{file}.toml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    found = Matrix(directory).check()
    assert any(line.startswith(f"{file}.toml: ") and message in line for line in found), found


@pytest.mark.parametrize(("key", "old", "new"), [("linux", "575.51.03", "525.60.12"), ("windows", "576.02", "528.32")])
def test_a_full_driver_older_than_the_floor_is_a_mistake(key: str, old: str, new: str, tmp_path: Path) -> None:
    (mistake,) = tiny_matrix(tmp_path, "cuda", f'{key}_full = "{old}"', f'{key}_full = "{new}"').check()
    assert mistake.startswith(f"cuda.toml: toolkit[1].{key}_full: {new} is older than the floor ")


def test_all_mistakes_of_all_files_are_reported_at_once(directory: Path) -> None:
    text = SOUND.replace('version = "1.0"', 'version = "one"').replace('sass = ["8.0"]', 'sass = ["x"]')
    (directory / "thing.toml").write_text(text, encoding="utf-8")
    cuda = (directory / "cuda.toml").read_text(encoding="utf-8")
    (directory / "cuda.toml").write_text(cuda.replace('linux_floor = "', 'linux_floor = "x', 2), encoding="utf-8")
    (directory / "cudnn.toml").write_text("not = toml = at all", encoding="utf-8")
    found = Matrix(directory).check()
    assert sum(line.startswith("thing.toml") for line in found) >= 1
    assert sum(line.startswith("cuda.toml: toolkit") for line in found) == 2
    assert sum(line.startswith("cudnn.toml") for line in found) == 1


def test_loading_refuses_a_file_with_mistakes(directory: Path) -> None:
    (directory / "thing.toml").write_text(SOUND.replace('evidence = ["docs"]', "evidence = []"), encoding="utf-8")
    with pytest.raises(MatrixError, match="mistake"):
        Matrix(directory).framework("thing", Platform.LINUX_64)


def test_only_the_rows_of_the_platform_are_read(directory: Path) -> None:
    (directory / "thing.toml").write_text(SOUND, encoding="utf-8")
    matrix = Matrix(directory)
    assert len(matrix.framework("thing", Platform.LINUX_64).releases) == 1
    assert matrix.framework("thing", Platform.WIN_64).releases == ()


def test_a_missing_matrix_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="no compatibility matrix"):
        Matrix(tmp_path / "nowhere").framework_names  # noqa: B018


@pytest.mark.parametrize("file", ["thing", "gpus"])
def test_a_matrix_in_a_newer_form_is_refused_as_such(directory: Path, file: str) -> None:
    (directory / "thing.toml").write_text(SOUND, encoding="utf-8")
    text = (directory / f"{file}.toml").read_text(encoding="utf-8")
    (directory / f"{file}.toml").write_text(text.replace("schema_version = 1", "schema_version = 2"), encoding="utf-8")
    with pytest.raises(MatrixError, match="and this envsolve reads schema 1") as refused:
        Matrix(directory).check()
    assert refused.value.cause == (f"{file}.toml: schema_version: is 2",)
    assert "upgrade envsolve" in refused.value.hints[0].text


def read(path: Path) -> Document:
    return TomlFile(path, cached=True).content()


def test_the_cached_form_follows_its_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    source = tmp_path / "some.toml"
    source.write_text("a = 1\n", encoding="utf-8")
    assert read(source) == {"a": 1}
    files = list((tmp_path / "__pycache__").iterdir())
    assert len(files) == 1
    assert read(source) == {"a": 1}
    source.write_text("a = 2\n", encoding="utf-8")
    os.utime(source, ns=(1, 1))
    assert read(source) == {"a": 2}


@pytest.mark.parametrize("rubbish", [b"", b"\x00", b"not pickle at all", pickle.dumps(("another key", 1))])
def test_a_damaged_cache_is_rebuilt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rubbish: bytes) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    source = tmp_path / "some.toml"
    source.write_text("a = 1\n", encoding="utf-8")
    read(source)
    for path in (tmp_path / "__pycache__").iterdir():
        path.write_bytes(rubbish)
    assert read(source) == {"a": 1}


def test_a_custom_directory_is_only_read_from_its_toml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    shutil.copytree(find_matrix(), tmp_path / "own", ignore=shutil.ignore_patterns("__pycache__"))
    Matrix(tmp_path / "own").framework("tensorflow", Platform.LINUX_64)
    assert not (tmp_path / "own" / "__pycache__").exists()


READ: dict[str, Callable[[Matrix], object]] = {
    **{it: partial(Matrix.framework, name=it, platform=Platform.LINUX_64) for it in Matrix().framework_names},
    **{it: attrgetter(it) for it in ("cuda", "cudnn", "components", "pci_ids", "places")},
    "a package": partial(Matrix.build_facts, package="flash-attn"),
    "every platform": partial(Matrix.framework, name="jax", platform=None),
}


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the shipped matrix that counts as the shipped one, and that may be cached beside its files."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    own = tmp_path / "data"
    shutil.copytree(find_matrix(), own, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("envsolve.matrix.load.find_matrix", lambda: own)
    return own


def unreadable(directory: Path) -> None:
    """Destroy every file so that it looks unchanged: whatever reads it now fails."""
    for source in directory.rglob("*.toml"):
        facts = source.stat()
        source.write_bytes(b"?" * facts.st_size)
        os.utime(source, ns=(facts.st_mtime_ns, facts.st_mtime_ns))


@pytest.mark.thorough
def test_cached_rows_are_those_of_the_file(shipped: Path) -> None:
    read = {name: it(Matrix(shipped)) for name, it in READ.items()}
    unreadable(shipped)
    assert {name: it(Matrix(shipped)) for name, it in READ.items()} == read


def test_cached_rows_of_a_changed_file_are_not_used(shipped: Path) -> None:
    Matrix(shipped).framework("jax", Platform.LINUX_64)
    unreadable(shipped)
    os.utime(shipped / "jax.toml", ns=(1, 1))
    with pytest.raises(MatrixError, match="not TOML"):
        Matrix(shipped).framework("jax", Platform.LINUX_64)


def test_cached_rows_of_other_code_are_not_used(shipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Matrix(shipped).document("jax")
    Matrix(shipped).framework("jax", Platform.LINUX_64)
    monkeypatch.setattr("envsolve.matrix.load._code_state", lambda: "another one")
    monkeypatch.setattr("envsolve.matrix.load.read_framework", lambda *_, **__: "read again")
    table: object = Matrix(shipped).framework("jax", Platform.LINUX_64)
    assert table == "read again"


WITHOUT_CUDNN = SOUND.replace('framework = "thing"\n', 'framework = "thing"\nuses_cudnn = false\n').replace(
    'cuda_libraries = "bundled"\ncudnn_requires = "==9.10.2.21"\n', 'cuda_libraries = "dependencies"\n'
)


def test_every_build_of_a_version_has_its_date(matrix: Matrix) -> None:
    builds = matrix.framework("pytorch", Platform.LINUX_64).releases
    assert {it.released for it in builds if str(it.version) == "2.3.0"} == {"2024-04-24"}
    assert {it.released for it in builds if str(it.version) == "1.8.2"} == {None}


def test_a_framework_may_run_without_cudnn(directory: Path) -> None:
    assert mistakes(directory, WITHOUT_CUDNN) == []


def test_a_framework_without_cudnn_has_no_rows_that_require_it(directory: Path) -> None:
    toml = WITHOUT_CUDNN.replace('sass = ["8.0"]', 'cudnn_requires = ">=9"\nsass = ["8.0"]')
    assert any("uses_cudnn" in found for found in mistakes(directory, toml))


def test_an_unstated_cudnn_does_not_mean_a_framework_without_cudnn(directory: Path) -> None:
    silent = WITHOUT_CUDNN.replace("uses_cudnn = false\n", "")
    assert any("release[1].cudnn_requires" in found for found in mistakes(directory, silent))


def test_whether_cudnn_is_used_is_true_or_false(directory: Path) -> None:
    assert any("uses_cudnn" in found for found in mistakes(directory, WITHOUT_CUDNN.replace("false", '"no"')))


@pytest.mark.parametrize("how", ["by a variable", "by the folder"])
def test_if_the_toml_directory_is_read_only_the_form_is_cached_in_the_users_cache(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", how == "by a variable")
    monkeypatch.setattr("envsolve.boundary.document.cache_directory", lambda: tmp_path / "cache")
    source = tmp_path / "installed" / "some.toml"
    source.parent.mkdir()
    source.write_text("a = 1\n", encoding="utf-8")
    if how == "by the folder":
        (source.parent / "__pycache__").write_text("a file in the way", encoding="utf-8")
    assert read(source) == {"a": 1}
    (cached,) = (tmp_path / "cache").rglob("*.pickle")
    made = source.stat().st_mtime_ns
    source.write_bytes(b"?" * source.stat().st_size)
    os.utime(source, ns=(made, made))
    assert read(source) == {"a": 1}
    cached.write_bytes(b"rubbish")
    with pytest.raises(MatrixError, match="not TOML"):
        read(source)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_a_cache_that_others_may_write_to_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr("envsolve.boundary.document.cache_directory", lambda: tmp_path / "cache")
    source = tmp_path / "some.toml"
    source.write_text("a = 1\n", encoding="utf-8")
    read(source)
    (cached,) = (tmp_path / "cache").rglob("*.pickle")
    cached.write_bytes(cached.read_bytes().replace(b"K\x01", b"K\x02"))  # the number 1 becomes 2
    assert read(source) == {"a": 2}
    cached.parent.chmod(0o777)
    assert read(source) == {"a": 1}


def test_a_user_without_a_home_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setattr("envsolve.boundary.document.cache_directory", lambda: None)
    source = tmp_path / "some.toml"
    source.write_text("a = 1\n", encoding="utf-8")
    assert [read(source) for _ in range(2)] == [{"a": 1}, {"a": 1}]


@pytest.mark.thorough
def test_content_read_before_a_change_is_not_cached_for_the_changed_file(shipped: Path) -> None:
    matrix = Matrix(shipped)
    matrix.document("jax")
    source = shipped / "jax.toml"
    source.write_text(
        source.read_text(encoding="utf-8").replace('version = "0.12.0.1"', 'version = "0.12.0.9"'), "utf-8"
    )
    matrix.framework("jax", Platform.LINUX_64)
    newest = max(release.version for release in Matrix(shipped).framework("jax", Platform.LINUX_64).releases)
    assert str(newest) == "0.12.0.9"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("a = " + "9" * 5000, "it is not TOML: Exceeds the limit"),
        ("a = " + "[" * 5000, "it is nested too deep"),
        ("a", "it is not TOML"),
    ],
    ids=["digits", "brackets", "syntax"],
)
def test_malformed_toml_is_reported(content: str, reason: str, tmp_path: Path) -> None:
    source = tmp_path / "some.toml"
    source.write_text(content, encoding="utf-8")
    with pytest.raises(MatrixError) as caught:
        read(source)
    assert caught.value.cause[0].startswith(f"some.toml: {reason}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has neither FIFOs nor /dev/zero")
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero"])
def test_an_irregular_file_is_not_read(kind: str, tmp_path: Path) -> None:
    source = tmp_path / "some.toml"
    if kind == "fifo":
        os.mkfifo(source)
    else:
        source.symlink_to(kind)
    with pytest.raises(MatrixError, match="it is a pipe or a device"):
        read(source)
