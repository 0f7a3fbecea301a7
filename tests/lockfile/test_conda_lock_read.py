"""conda-lock.yml as several tools write it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.boundary.files import FileError
from envsolve.errors import UsageError
from envsolve.lockfile.conda_lock_yml import read
from envsolve.lockfile.lock import Lock, Open
from envsolve.lockfile.reading import lock_at
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.package import PackageFile, Pin
from tests.lockfile.written_yaml import documents

_SAMPLE = Path(__file__).parent / "conda_files/conda-lock.yml"
_CONDA_FORGE = "https://conda.anaconda.org/conda-forge"
_MUTEX = CondaPackage(
    *("_libgcc_mutex", "0.1", "conda_forge", "linux-64"),
    f"{_CONDA_FORGE}/linux-64/_libgcc_mutex-0.1-conda_forge.tar.bz2",
    "d7c89558ba9fa0495403155b64376d81",
    "fe51de6107f9edc7aa4f786a70f4a883943bc9d39b3bb7307c04c41410990726",
    channel=_CONDA_FORGE,
)
_PYTHON = CondaPackage(
    *("python", "3.11.9", "hb806964_0_cpython", "linux-64"),
    f"{_CONDA_FORGE}/linux-64/python-3.11.9-hb806964_0_cpython.conda",
    "ac68acfa8b558ed406c75e98d3428d7b",
    "177f33a1fb8d3476b38f73c37b42f01c0b014fa0e039a701fd9f83d83aae6d40",
    depends=("__glibc >=2.17,<3.0.a0", "_libgcc_mutex 0.1 conda_forge", "tzdata"),
    channel=_CONDA_FORGE,
)
_TZDATA = CondaPackage(
    *("tzdata", "2024a", "h0c530f3_0", "noarch", f"{_CONDA_FORGE}/noarch/tzdata-2024a-h0c530f3_0.conda"),
    "161081fc7cec0bfda0d86d7cb595f8d8",
    channel=_CONDA_FORGE,
)
_OWN_TZDATA = _TZDATA._replace(
    url="https://127.0.0.1/own/noarch/tzdata-2024a-h0c530f3_0.conda", channel="https://127.0.0.1/own"
)
_WHEEL = Pin(
    *("typing-extensions", "4.12.2"),
    (
        PackageFile(
            "typing_extensions-4.12.2-py3-none-any.whl",
            "https://127.0.0.1/files/typing_extensions-4.12.2-py3-none-any.whl",
            (("sha256", "04e5ca0351e0f3f85c6853954072df659d0d13fac324d0072316b67d7794700d"),),
        ),
    ),
    None,
)
_OWN = Open("'own 1.0.dev3' is from a folder or a repository, which no other lock format supports", "own")


def test_a_file_of_conda_lock_is_read() -> None:
    shared = Lock((), channels=("https://127.0.0.1/own", "conda-forge"), sources=("environment.yml",))
    assert read(_SAMPLE.read_text("utf-8")) == (
        shared._replace(
            platform="linux-64", python="3.11.9", conda=(_MUTEX, _PYTHON, _OWN_TZDATA), pins=(_WHEEL,), open=(_OWN,)
        ),
        shared._replace(platform="osx-arm64"),
        shared._replace(platform="win-64", conda=(_TZDATA,)),
    )


def test_optional_packages_have_their_categories() -> None:
    entry = "name: a, version: '1', manager: {}, platform: linux-64, url: 'https://127.0.0.1/{}', category: {}"
    conda, wheel = ("conda", "own/linux-64/a-1-0.conda"), ("pip", "a-1-py3-none-any.whl")
    entries = [(*conda, "docs"), (*conda, "dev"), (*wheel, "dev"), (*wheel, "main")]
    (lock,) = read(f"package: [{', '.join(f'{{{entry.format(*it)}}}' for it in entries)}]")
    assert [it.categories for it in lock.conda] == [("dev", "docs")]
    assert [it.categories for it in lock.pins] == [()]
    assert lock.categories == ("dev", "docs")


@pytest.mark.parametrize(
    ("entry", "package"),
    [
        (
            "{name: a, version: 1.10, url: 'file:///opt/own/noarch/a-1.10-h1_0.conda'}",
            CondaPackage(
                *("a", "1.10", "h1_0", "noarch", "file:///opt/own/noarch/a-1.10-h1_0.conda"), channel="file:///opt/own"
            ),
        ),
        (
            "{name: A, version: 2024-01-01, build: own_1, url: /a, hash: {md5: abc}, dependencies: {b: null, c: 1.10}}",
            CondaPackage("a", "2024-01-01", "own_1", "", "/a", depends=("b", "c 1.10")),
        ),
    ],
)
def test_fields_that_are_not_needed_may_be_missing(entry: str, package: CondaPackage) -> None:
    (lock,) = read(f"package: [{entry[:-1]}, platform: win-64}}]")
    assert lock.conda == (package,)


def test_a_wheel_is_recognised_under_both_names_of_its_manager() -> None:
    entry = "{name: a, version: '1', manager: pypi, platform: linux-64, url: 'https://127.0.0.1/a-1-py3-none-any.whl'}"
    (lock,) = read(f"package: [{entry}]")
    assert [pin.name for pin in lock.pins] == ["a"]
    assert lock.conda == ()


_PACKAGE = "name: a\nversion: '1'\nmanager: conda\nplatform: linux-64\nurl: https://127.0.0.1/own/linux-64/a-1-0.conda"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "it is not a mapping"),
        ("metadata: {}", "it has no list of packages"),
        ("version: 2\npackage: []", "it is version '2' of the format, and envsolve reads version 1"),
        ("package: {}", "its list of packages is not a list"),
        ("package: [a]", "package 1 is not a mapping"),
        ("package: []\nmetadata: []", "its metadata is not a mapping"),
        ("package: []\nmetadata: {channels: a}", "its list of channels is not a list"),
        ("package: []\nmetadata: {channels: [{}]}", "the address of a channel is missing"),
        ("package: []\nmetadata: {platforms: [[]]}", "a platform is not one line"),
        (_PACKAGE.replace("name: a", "name:"), "the name of package 1 is missing"),
        (_PACKAGE.replace("name: a", 'name: "a\\nb"'), "the name of package 1 is not one line"),
        (_PACKAGE.replace("name: a", "name: '- a'"), "'- a' is not a valid conda package"),
        (_PACKAGE.replace("'1'", "1 2"), "'a' is not a valid conda package"),
        (_PACKAGE.replace("'1'", "[1]"), "the version of package 1 is not one line"),
        (_PACKAGE.replace("url: https://127.0.0.1/", "url: https://127.0.0.1/ b/"), "'a' is not a valid conda package"),
        (_PACKAGE.replace("127.0.0.1/", f"127.0.0.1/{'own/' * 600}"), "'a' is not a valid conda package"),
        (_PACKAGE.replace("platform: linux-64", "platform:"), "the platform of package 1 is missing"),
        (f"{_PACKAGE}\nbuild: 'a b'", "'a' is not a valid conda package"),
        (f"{_PACKAGE}\nhash: abc", "the hashes of package 1 is not a mapping"),
        (f"{_PACKAGE}\ndependencies: [b]", "the list of what package 1 depends on is not a mapping"),
        (f"{_PACKAGE}\ndependencies: {{b: [c]}}", "what is required of 'b' is not one line"),
        (f'{_PACKAGE}\ndependencies: {{"b\\nc": ""}}', "'a' is not a valid conda package"),
        (_PACKAGE.replace("conda\n", "pip\n").replace("name: a", "name: -a"), "'-a' is not a valid pip package"),
    ],
)
def test_a_file_that_is_no_conda_lock_is_refused(text: str, message: str) -> None:
    whole = text if "manager" not in text else f"package:\n- {dedent(text).replace(chr(10), chr(10) + '  ')}\n"
    with pytest.raises(FileError) as refused:
        read(whole)
    assert message in refused.value.reason


def test_an_unreadable_file_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "conda-lock.yml"
    path.write_text("package: [a\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"conda-lock\.yml:2: it is not valid YAML") as refused:
        lock_at(path, Platform.LINUX_64)
    assert refused.value.code == "held-unreadable"


@given(documents(_SAMPLE) | st.text())
def test_reading_raises_no_other_errors_and_returns_no_credentials(text: str) -> None:
    try:
        locks = read(text)
    except FileError as error:
        texts = [error.reason]
    else:
        conda = [package for lock in locks for package in lock.conda]
        pins = [pin for lock in locks for pin in lock.pins]
        texts = [f"{it.name} {it.version} {it.url} {it.channel}" for it in conda]
        texts += [*(f"{it.name} {it.version} {it.files[0].url}" for it in pins)]
        texts += [*(channel for lock in locks for channel in lock.channels)]
    assert all(map(str.isprintable, texts))
    assert "secret" not in "".join(texts)
