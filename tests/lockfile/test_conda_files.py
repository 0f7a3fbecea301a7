"""The content of an existing file in any of the four formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.errors import UsageError
from envsolve.lockfile.facts import facts_of
from envsolve.lockfile.lock import Lock, Made, Stack, bare_files
from envsolve.lockfile.reading import format_at, lock_at
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from tests.laws import examples
from tests.lockfile.written_yaml import documents

_FOLDER = Path(__file__).parent / "conda_files"
_SNAPSHOTS = Path(__file__).parent.parent / "snapshots"
_Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> _Write:
    def written(text: str) -> Path:
        path = tmp_path / "whatever.lock"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def _conda(locked: Lock | None) -> list[tuple[str, str, str]]:
    assert locked is not None
    return [(package.name, package.version, package.build) for package in locked.conda]


def _pip(locked: Lock | None) -> list[tuple[str, str]]:
    assert locked is not None
    return [(pin.name, pin.version) for pin in locked.pins]


@pytest.mark.parametrize("text", ["", " \n\n", None])
def test_missing_and_empty_files_have_no_packages(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "conda-lock.yml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert lock_at(path, Platform.LINUX_64) is None


def test_only_pinned_versions_of_an_environment_are_read(write: _Write) -> None:
    path = write(
        """\
        dependencies:
          - python=3.12.11=h9e4cc4f_0_cpython
          - numpy==1.26.4
          - scipy=1.11.3
          - pillow 10.0.0 py311_0
          - conda-forge/linux-64::pytorch=2.13.0=cuda126*
          - tzdata[version=2024a]
          - cudnn>=9.1,<10
          - libcublas=12.*
          - cuda-version 12.6|12.8
          - ca-certificates
          - own[extra]
          - pywin32==306  # [win]
          - pip:
            - torch==2.14.0+cu126
            - Typing_Extensions == 4.12.2 --hash=sha256:aa --hash=sha256:bb
            - rich>=13
            - colorama==0.4.6 ; sys_platform == 'win32'
            - -e .
            - --index-url https://127.0.0.1/simple
        """
    )
    locked = lock_at(path, Platform.LINUX_64)
    assert locked is not None
    assert locked.made is None
    assert _conda(locked) == [
        ("numpy", "1.26.4", ""),
        ("pillow", "10.0.0", "py311_0"),
        ("python", "3.12.11", "h9e4cc4f_0_cpython"),
        ("pytorch", "2.13.0", "cuda126*"),
        ("scipy", "1.11.3", ""),
        ("tzdata", "2024a", ""),
    ]
    assert (locked.conda[3].channel, locked.conda[3].subdir) == ("conda-forge", "linux-64")
    assert locked.pins == (
        Pin("torch", "2.14.0+cu126", (), index := "https://127.0.0.1/simple"),
        Pin("typing-extensions", "4.12.2", bare_files(["sha256:aa", "sha256:bb"]), index),
    )
    assert locked.default_index == index
    of_conda = [it.name for it in locked.open if it.of_conda]
    assert of_conda == ["cudnn", "libcublas", "cuda-version", "ca-certificates", None]
    assert [it.name for it in locked.open if not it.of_conda] == ["rich", None]


def test_a_conda_lock_has_the_packages_for_the_platform() -> None:
    locked = lock_at(_FOLDER / "conda-lock.yml", Platform.LINUX_64)
    assert locked is not None
    assert _conda(locked) == [
        ("_libgcc_mutex", "0.1", "conda_forge"),
        ("python", "3.11.9", "hb806964_0_cpython"),
        ("tzdata", "2024a", "h0c530f3_0"),
    ]
    assert _pip(locked) == [("typing-extensions", "4.12.2")]
    assert facts_of(locked) == {}
    assert lock_at(_FOLDER / "conda-lock.yml", Platform.OSX_64) is None


def test_an_explicit_file_has_no_packages_for_another_platform() -> None:
    locked = lock_at(_FOLDER / "explicit.txt", Platform.LINUX_64)
    assert locked is not None
    names = ["_libgcc_mutex", "libstdcxx-devel_linux-64", "tzdata", "wheel", "x264"]
    assert [name for name, _, _ in _conda(locked)] == names
    assert _pip(locked) == [("pyparsing", "3.1.2"), ("rich", "13.7.1"), ("typing-extensions", "4.12.2")]
    assert lock_at(_FOLDER / "explicit.txt", Platform.WIN_64) is None


@pytest.mark.parametrize(
    ("version", "platform", "conda", "pip"),
    [
        (4, Platform.LINUX_64, ["bzip2", "tzdata"], ["click", "rich"]),
        (6, Platform.LINUX_64, ["_openmp_mutex", "python", "tzdata"], ["rich"]),
        (6, Platform.WIN_64, ["tzdata"], []),
        (7, Platform.LINUX_64, ["python"], ["numpy", "requests"]),
    ],
)
def test_a_pixi_lock_has_the_default_environment(
    version: int, platform: Platform, conda: list[str], pip: list[str]
) -> None:
    locked = lock_at(_FOLDER / f"pixi-{version}.lock", platform)
    assert locked is not None
    assert [name for name, _, _ in _conda(locked)] == conda
    assert [name for name, _ in _pip(locked)] == pip


def test_the_default_environment_of_a_pixi_lock_need_not_be_the_first(write: _Write) -> None:
    packages = {name: f"{{conda: 'https://127.0.0.1/own/noarch/{name}-1-0.conda'}}" for name in ("a", "b")}
    path = write(f"""\
version: 6
environments:
  a: {{packages: {{linux-64: [{packages["a"]}]}}}}
  default: {{packages: {{linux-64: [{packages["b"]}]}}}}
packages: [{packages["a"]}, {packages["b"]}]
""")
    assert _conda(lock_at(path, Platform.LINUX_64)) == [("b", "1", "0")]


def test_a_pixi_lock_without_a_default_environment_has_its_first(write: _Write) -> None:
    package = "{conda: 'https://127.0.0.1/own/noarch/a-1-0.conda'}"
    path = write(f"""\
version: 7
platforms: [{{name: gpu, subdir: linux-64}}]
environments:
  b: {{packages: {{gpu: [{package}]}}}}
packages: [{package}]
""")
    assert _conda(lock_at(path, Platform.LINUX_64)) == [("a", "1", "0")]


def test_the_format_does_not_depend_on_the_name() -> None:
    for name, kind in (
        ("environment.yml", "environment"),
        ("conda-lock.yml", "conda-lock"),
        ("explicit.txt", "explicit"),
        ("pixi-5.lock", "pixi.lock"),
    ):
        assert format_at(_FOLDER / name) == kind


@pytest.mark.parametrize("text", ["  dependencies: [a==1]", "{dependencies: [a==1]}", '{"dependencies": ["a==1"]}'])
def test_an_environment_in_another_style_of_yaml_is_recognised(text: str, write: _Write) -> None:
    assert _conda(lock_at(write(text), Platform.LINUX_64)) == [("a", "1", "")]


def test_the_facts_in_the_metadata_of_a_conda_lock_are_read_back(write: _Write) -> None:
    path = write("""\
version: 1
metadata:
  content_hash: {linux-64: abc, win-64: def}
  platforms: [linux-64, win-64]
  custom_metadata:
    envsolve.schema_version: '1'
    envsolve.envsolve_version: 0.2.0
    envsolve.own_matrix: 'true'
    envsolve.command: envsolve -f tensorflow
    envsolve.linux-64.minimum_driver: 525.60.13
    envsolve.linux-64.request: '["python=3.12", "tensorflow"]'
    envsolve.linux-64.frameworks: '[{"framework": "tensorflow"}]'
    envsolve.linux-64.virtual_packages: '["__cuda'
    other.tool: 'yes'
package: []
""")
    locked = lock_at(path, Platform.LINUX_64)
    assert locked is not None
    assert facts_of(locked) == {
        "schema_version": 1,
        "envsolve_version": "0.2.0",
        "own_matrix": True,
        "command": "envsolve -f tensorflow",
        "platform": "linux-64",
        "request": ["python=3.12", "tensorflow"],
        "options": {},
        "minimum_driver": "525.60.13",
        "compute_capabilities": [],
    }
    windows = lock_at(path, Platform.WIN_64)
    assert windows is not None
    assert facts_of(windows) == {
        "schema_version": 1,
        "envsolve_version": "0.2.0",
        "own_matrix": True,
        "command": "envsolve -f tensorflow",
        "options": {},
        "platform": "win-64",
    }


_HEADER = """\
# Made by envsolve 0.2.0 from the compatibility matrix of 2026-11-20 that --matrix gave:
#   envsolve -f tensorflow --gpu 8.6 --format explicit
# For: linux-64, NVIDIA GeForce RTX 3090 (8.6)
# Needs: NVIDIA driver 525.60.13 or newer
# Resolved for: Python 3.12.11, __cuda=12.2, __glibc=2.35
"""


@pytest.mark.parametrize("rest", ["@EXPLICIT\nhttps://127.0.0.1/own/linux-64/a-1-0.conda\n", "dependencies: []\n"])
def test_the_facts_in_the_header_of_a_file_are_read_back(rest: str, write: _Write) -> None:
    locked = lock_at(write(f"{_HEADER}{rest}"), Platform.LINUX_64)
    assert locked is not None
    assert locked.made == Made("0.2.0", "envsolve -f tensorflow --gpu 8.6 --format explicit", None, "2026-11-20", True)
    machines = "NVIDIA GeForce RTX 3090 (8.6)"
    assert locked.stack == Stack((), ("8.6",), "525.60.13", machines=machines)
    assert list(map(str, locked.virtual_packages)) == ["__cuda=12.2", "__glibc=2.35"]
    assert locked.glibc == "2.35"


def test_a_shorter_header_is_read_too(write: _Write) -> None:
    header = "# Made by envsolve 0.2.0:\n# For: osx-64\n# Resolved for: no virtual package\n"
    locked = lock_at(write(f"{header}dependencies: []\n"), Platform.LINUX_64)
    assert locked is not None
    assert locked.made == Made("0.2.0", request=None)
    assert (locked.stack, locked.virtual_packages, locked.glibc) == (None, (), None)


def test_an_environment_written_by_envsolve_is_read_completely() -> None:
    path = _SNAPSHOTS / "pytorch-channel.yml"
    locked = lock_at(path, Platform.LINUX_64)
    assert locked is not None
    assert locked.made is not None
    assert path.read_text("utf-8").splitlines()[0].endswith(f" matrix of {locked.made.matrix_date}:")
    assert {"python", "pytorch", "pytorch-cuda"} <= {name for name, _, _ in _conda(locked)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[project]\nname = 'a'\n", "it is not an environment.yml, conda-lock.yml, pixi.lock or explicit file"),
        ('{"packages": []}', "it is not an environment.yml"),
        ("dependencies: [a\n", ":2: it is not valid YAML"),
        ("version: 2\npackage: []\n", "it is version '2' of the format"),
        ("version: 3\nenvironments: {}\n", "it is version '3' of the format of pixi.lock"),
    ],
)
def test_an_unknown_format_is_refused_with_a_hint(text: str, message: str, write: _Write) -> None:
    with pytest.raises(UsageError) as refused:
        lock_at(write(text), Platform.LINUX_64)
    assert refused.value.code == "held-unreadable"
    assert message in refused.value.message
    assert "lock again" in refused.value.hints[0].text


_FILES = [_FOLDER / name for name in ("environment.yml", "conda-lock.yml", "pixi-5.lock", "pixi-7.lock")]


@settings(max_examples=examples(60))
@given(st.binary() | st.one_of(*map(documents, _FILES)).map(str.encode))
def test_reading_raises_no_other_errors(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "whatever.lock"
    path.write_bytes(content)
    try:
        locked = lock_at(path, Platform.LINUX_64)
    except UsageError as error:
        texts = [error.message]
    else:
        texts = (
            []
            if locked is None
            else [f"{it.name} {it.version} {it.build} {it.url} {it.channel}" for it in locked.conda]
        )
    assert all(map(str.isprintable, texts))
    assert "secret" not in "".join(texts)
