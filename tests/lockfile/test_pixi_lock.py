"""pixi.lock in all versions of its format, compared with rattler."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.boundary.files import FileError
from envsolve.errors import UsageError
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.pixi_lock import read
from envsolve.lockfile.reading import lock_at
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.package import PackageFile, Pin
from tests.laws import examples
from tests.lockfile.pixi_judge import judge
from tests.lockfile.written_yaml import documents

_FOLDER = Path(__file__).parent / "conda_files"
_VERSIONS = (4, 5, 6, 7)
_CONDA_FORGE = "https://conda.anaconda.org/conda-forge"


def _sample(version: int) -> Path:
    return _FOLDER / f"pixi-{version}.lock"


def _read(version: int, environment: str | None = None) -> tuple[Lock, ...]:
    return read(_sample(version).read_text("utf-8"), environment)


def test_rattler_reads_the_same_packages_with_the_same_fields() -> None:
    """Of several machines of one platform the lock is for the one named like the platform."""
    for version, judged in zip(_VERSIONS, judge([_sample(version) for version in _VERSIONS]), strict=True):
        for name, platforms in judged.items():
            found = {lock.platform: _conda(lock) for lock in _read(version, name)}
            assert found == {it: sorted(conda) for it, (conda, _) in platforms.items() if it in tuple(Platform)}
            for lock in _read(version, name):
                names = sorted(package for package, _ in platforms[lock.platform][1])
                assert sorted((*map(_name, lock.pins), *_open(lock))) == names


def _conda(lock: Lock) -> list[list[object]]:
    return sorted(
        [
            *(it.name, it.version, it.build, it.build_number, it.subdir, it.url, it.md5, it.sha256, it.size),
            *(list(it.depends), list(it.constrains), it.channel),
        ]
        for it in lock.conda
    )


def _name(pin: Pin) -> str:
    return pin.name


def _open(lock: Lock) -> list[str]:
    return [it.name for it in lock.open if it.name is not None]


def test_a_file_of_version_6_is_read() -> None:
    tzdata = CondaPackage(
        *("tzdata", "2024b", "hc8b5060_0", "noarch", f"{_CONDA_FORGE}/noarch/tzdata-2024b-hc8b5060_0.conda"),
        "8ac3367aafb1cc0a068483c580af8015",
        "4fde5c3008bf5d2db82f2b50204464314cc3c91c1d953652f7bd01d9e52aefdf",
        channel="https://127.0.0.1/mirrored",
    )
    python = CondaPackage(
        *("python", "3.12.8", "h9e4cc4f_1_cpython", "linux-64"),
        f"{_CONDA_FORGE}/linux-64/python-3.12.8-h9e4cc4f_1_cpython.conda",
        "7fd2fd79436d9b473812f14e86746844",
        "3f0e0518c992d8ccfe62b189125721309836fe48a010dc424240583e157f9ff0",
        31565686,
        1,
        ("__glibc >=2.17,<3.0.a0", "tzdata"),
        ("python_abi 3.12.* *_cp312",),
        _CONDA_FORGE,
    )
    mutex = CondaPackage(
        *("_openmp_mutex", "4.5", "2_gnu", "linux-64", f"{_CONDA_FORGE}/linux-64/_openmp_mutex-4.5-2_gnu.tar.bz2"),
        "73aaf86a425cc6e73fcf236a5a46396d",
        "fbe2c5e56a653bebb982eda4876a9178aedfc2b545f25d0ce9c4c0b508253d22",
        23621,
        16,
        ("_libgcc_mutex 0.1 conda_forge", "libgomp >=7.5.0"),
        ("openmp_impl 9999",),
        _CONDA_FORGE,
    )
    digest = "4edbae314f59eb482f54e9e30bf00d33350aaa94f4bfcd4e9e3110e64d0d7222"
    address = "https://127.0.0.1/files/rich-13.7.1-py3-none-any.whl"
    file = PackageFile("rich-13.7.1-py3-none-any.whl", address, (("sha256", digest),))
    rich = Pin("rich", "13.7.1", (file,), None, requires=("pygments",))
    shared = Lock(
        (),
        default_index="https://127.0.0.1/simple",
        default_is_plain=False,
        channels=("https://127.0.0.1/own", "conda-forge"),
        left_out=("left out: environment 'docs'",),
    )
    built = Open("'../source' is built from source, which no other lock format supports")
    assert _read(6) == (
        shared._replace(
            platform="linux-64", python="3.12.8", conda=(mutex, python, tzdata), pins=(rich,), open=(built,)
        ),
        shared._replace(platform="win-64", conda=(tzdata,)),
    )
    (docs,) = _read(6, "docs")
    assert (docs.conda, docs.channels, docs.left_out) == (
        *((tzdata,), ("conda-forge",)),
        ("left out: environment 'default'",),
    )


@pytest.mark.parametrize("version", [4, 5])
def test_packages_from_an_index_and_from_a_url_are_distinguished(version: int) -> None:
    (lock,) = _read(version)
    click, rich = lock.pins
    index = None if version == 4 else "https://127.0.0.1/simple"
    assert (rich.name, rich.version, rich.index_url) == ("rich", "13.7.1", index)
    address = "https://127.0.0.1/files/click-8.1.7-py3-none-any.whl"
    assert (click.files[0].url, click.index_url) == (address, None)
    assert _open(lock) == ["own", "minimal"]


def test_with_a_page_of_links_the_index_of_a_wheel_is_unknown() -> None:
    text = _sample(5).read_text(encoding="utf-8")
    (lock,) = read(text.replace("    packages:", "    find-links: [{path: ./links}]\n    packages:"))
    assert {it.index_url for it in lock.pins} == {None}


def test_since_version_7_a_platform_has_a_name_and_a_wheel_its_index() -> None:
    linux, windows = _read(7)
    assert linux.left_out == ("left out: machine 'workstation'",)
    assert linux.open[0].reason.startswith("'own[38b8d5ef] @ ../own' is built from source")
    assert _open(linux) == ["local"]
    assert [(it.name, it.index_url) for it in linux.pins] == [
        ("numpy", "https://127.0.0.1/simple"),
        ("requests", "https://127.0.0.1/more"),
    ]
    assert (windows.platform, windows.conda, windows.pins, windows.open) == ("win-64", (), (), ())


def test_the_platform_of_noarch_packages_in_an_old_lock_is_ignored() -> None:
    url = "https://127.0.0.1/own/noarch/a-1-0.conda"
    text = f"""
        version: 4
        environments: {{default: {{channels: [], packages: {{win-64: [{{conda: "{url}"}}]}}}}}}
        packages: [{{kind: conda, name: a, version: '1', subdir: win-64, url: "{url}"}}]
    """
    (lock,) = read(text)
    assert [it.subdir for it in lock.conda] == ["noarch"]


_ENTRY = "https://127.0.0.1/own/linux-64/a-1-0.conda"
_HOLDING = f"version: 6\nenvironments: {{a: {{packages: {{linux-64: [{{conda: '{_ENTRY}'}}]}}}}}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "it is not a mapping"),
        ("environments: {}", "it is version '' of the format of pixi.lock, and envsolve reads 4 to 7"),
        ("version: 3\npackage: []", "it is version '3' of the format of pixi.lock"),
        ("version: 1000\nenvironments: {}", "it is version '1000' of the format of pixi.lock"),
        ("version: 6", "it has no environments"),
        ("version: 6\nenvironments: []", "its table of environments is not a mapping"),
        ("version: 6\nenvironments: {a: []}", "the environment 'a' is not a mapping"),
        ("version: 6\nenvironments: {a: {packages: []}}", "the packages of the environment 'a' is not a mapping"),
        ("version: 6\nenvironments: {a: {packages: {linux-64: a}}}", "a list of packages is not a list"),
        ("version: 6\nenvironments: {a: {packages: {linux-64: [a]}}}", "a package is not a mapping"),
        ("version: 6\nenvironments: {a: {packages: {linux-64: [{}]}}}", "the address of a package is missing"),
        (
            _HOLDING,
            f"an environment lists '{_ENTRY}', which is not among the packages",
        ),
        (
            f"{_HOLDING}\npackages: [{{conda: '{_ENTRY}', name: '- b'}}]",
            "'- b' is not a valid conda package",
        ),
        (
            f"{_HOLDING}\npackages: [{{conda: '{_ENTRY}', depends: b}}]",
            "depends is not a list",
        ),
        ("version: 6\nenvironments: {}\npackages: [{kind: conda}]", "the address of package 1 is missing"),
        ("version: 7\nenvironments: {}\nplatforms: [{}]", "the name of a platform is missing"),
    ],
)
def test_a_file_that_is_no_pixi_lock_is_refused(text: str, message: str) -> None:
    with pytest.raises(FileError) as refused:
        read(text)
    assert message in refused.value.reason


def test_an_unreadable_file_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "pixi.lock"
    path.write_text("version: 6\nenvironments: [a\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"pixi\.lock:3: it is not valid YAML") as refused:
        lock_at(path, Platform.LINUX_64)
    assert refused.value.code == "held-unreadable"


@settings(max_examples=examples(60))
@given(documents(_sample(4)) | documents(_sample(6)) | documents(_sample(7)) | st.text())
def test_reading_raises_no_other_errors_and_returns_no_credentials(text: str) -> None:
    try:
        locks = read(text)
    except FileError as error:
        texts = [error.reason]
    else:
        texts = [f"{it.name} {it.version} {it.url} {it.channel}" for lock in locks for it in lock.conda]
        pins = [pin for lock in locks for pin in lock.pins]
        texts += [f"{it.name} {it.version} {it.files[0].url} {it.index_url}" for it in pins]
        texts += [text for lock in locks for text in (*lock.channels, lock.default_index)]
    assert all(map(str.isprintable, texts))
    assert "secret" not in "".join(texts)
