"""environment.yml as conda, mamba and conda-lock read it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.errors import UsageError
from envsolve.index.requirement_file import FileRequirements, Line
from envsolve.lockfile.environment_request import EnvironmentFile, read_environment
from envsolve.lockfile.lock import RequestedSpec
from envsolve.model.host import Platform
from tests.lockfile.written_yaml import documents

_SAMPLE = Path(__file__).parent / "conda_files/environment.yml"
_FILE = Path("envs/environment.yml")


def _read(text: str, platform: Platform = Platform.LINUX_64) -> EnvironmentFile:
    return read_environment(_FILE, platform, text)


def _specs(file: EnvironmentFile) -> list[str]:
    return [requested.spec for requested in file.requested if not requested.by_pip]


def test_a_complete_file_is_read_for_a_platform() -> None:
    file = read_environment(_SAMPLE, Platform.LINUX_64)
    reason = "environment.yml requires it"
    conda = [
        *("python 3.11.*", "numpy >=1.26,<3", "scipy ==1.11 py311*", "pytorch >=2.3 cuda126*", "conda-forge::pillow"),
        *("gperftools", "backports", "ncurses"),
    ]
    wheels = (
        *("rich>=13", "Own @ https://127.0.0.1/own-1.0-py3-none-any.whl"),
        *("einops==0.8.0", "colorama; sys_platform == 'win32'"),
    )
    section = "the pip section of environment.yml"
    assert file == EnvironmentFile(
        ("https://127.0.0.1:8080/own", "https://127.0.0.1/team", "conda-forge", "${OWN_CHANNEL}"),
        (
            *(RequestedSpec(spec, reason, "train") for spec in conda),
            RequestedSpec("pip", "environment.yml has requirements that it installs", "train"),
            *(RequestedSpec(requirement, reason, "train", by_pip=True) for requirement in wheels),
        ),
        FileRequirements(
            (
                Line("attrs", f"-r {_SAMPLE.parent / 'requirements/more.txt'}"),
                *(Line(it, section, (("sha256", "aa"),) if it.startswith("einops") else ()) for it in wheels),
            ),
            (Line("attrs<99", f"-c {_SAMPLE.parent / 'constraints.txt'}"),),
            "https://127.0.0.1/simple",
            ("https://127.0.0.1/more",),
            ignored=(f"{_SAMPLE}:29", f"{_SAMPLE}:30"),
        ),
        (("OMP_NUM_THREADS", "010"), ("EMPTY", ""), ("OWN", "a: b")),
        (
            "line 7: the credentials for https://127.0.0.1:8080/own are left out",
            "line 8: the credentials for https://127.0.0.1/team are left out",
            "line 5: envsolve makes no lock for the platform 'linux-ppc64le'",
            "line 27: the credentials in '--index-url https://127.0.0.1/simple' are left out",
            "line 35: the credentials in 'Own @ https://127.0.0.1/own-1.0-py3-none-any.whl' are left out",
            "line 22: the selector 'py<38' is not supported: the line is included",
            "line 44: 'extra' is ignored",
        ),
        (
            ("https://127.0.0.1:8080/own", "https://user:secret@127.0.0.1:8080/own"),
            ("https://127.0.0.1/team", "https://127.0.0.1/t/secret/team"),
        ),
    )


@pytest.mark.parametrize(
    ("platform", "own"),
    [
        (Platform.LINUX_64, {"gperftools", "ncurses"}),
        (Platform.LINUX_AARCH64, {"ncurses"}),
        (Platform.OSX_64, {"libcxx", "ncurses"}),
        (Platform.OSX_ARM64, {"libcxx", "ncurses"}),
        (Platform.WIN_64, {"pywin32", "windows-only"}),
    ],
)
def test_the_requirements_depend_on_the_platform(platform: Platform, own: set[str]) -> None:
    requested = {requested.spec for requested in read_environment(_SAMPLE, platform).requested}
    everywhere = {requested.spec for other in Platform for requested in read_environment(_SAMPLE, other).requested}
    assert requested & {"gperftools", "ncurses", "libcxx", "pywin32", "windows-only"} == own
    assert everywhere - requested <= {"gperftools", "ncurses", "libcxx", "pywin32", "windows-only"}


def test_a_minimal_file_is_read() -> None:
    assert _read("dependencies:\n") == EnvironmentFile((), ())
    assert _read("dependencies: []\nchannels:\nvariables: {}\nname: ~\n") == EnvironmentFile((), ())


def test_pip_is_added_if_needed_and_not_requested() -> None:
    assert _specs(_read("dependencies: [{pip: [a]}]")) == ["pip"]
    assert _specs(_read("dependencies: [pip=24, {pip: [a]}]")) == ["pip 24.*"]
    assert _specs(_read("dependencies: [a, {pip: }]")) == ["a"]


def test_indexes_under_the_keys_of_conda_lock_are_read() -> None:
    text = "dependencies: []\npip-repositories: ['https://user:secret@127.0.0.1/a', 'https://127.0.0.1/b']\n"
    assert _read(text).pip == FileRequirements(extra_index_urls=("https://127.0.0.1/a", "https://127.0.0.1/b"))
    alone = _read(f"{text}allow-pypi-requests: false\n").pip
    assert alone == FileRequirements(index_url="https://127.0.0.1/a", extra_index_urls=("https://127.0.0.1/b",))


def test_the_last_of_several_default_indexes_counts_like_in_pip() -> None:
    file = _read("dependencies: [{pip: [-i https://127.0.0.1/a, --index-url=https://127.0.0.1/b]}]")
    assert file.pip == FileRequirements(index_url="https://127.0.0.1/b")


def test_versions_and_names_are_preserved_as_written() -> None:
    file = _read("name: 1.10\ndependencies: [python=3.10, yes, '2to3']\nvariables: {A: 1.10, B: yes, C: 2024-01-01}\n")
    assert _specs(file) == ["python 3.10.*", "yes", "2to3"]
    assert file.variables == (("A", "1.10"), ("B", "yes"), ("C", "2024-01-01"))


def test_credentials_in_variables_are_left_out() -> None:
    file = _read("dependencies: []\nvariables:\n  PIP_INDEX_URL: https://user:secret@127.0.0.1/simple\n")
    assert file.variables == (("PIP_INDEX_URL", "https://127.0.0.1/simple"),)
    assert file.notes == ("line 3: the credentials in 'https://127.0.0.1/simple' are left out",)


def test_a_file_of_windows_powershell_is_read(tmp_path: Path) -> None:
    path = tmp_path / "environment.yml"
    path.write_bytes("dependencies:\r\n  - numpy\r\n".encode("utf-16"))
    assert _specs(read_environment(path, Platform.WIN_64)) == ["numpy"]


_INVALID = [
    ("", None, "it is empty"),
    ("# nothing\n", None, "it is empty"),
    ("- numpy\n", 1, "it is not a mapping"),
    ("numpy\n", 1, "it is not a mapping"),
    ("name: a\n", None, "it has no dependencies"),
    ("dependencies: numpy\n", 1, "dependencies is not a list"),
    ("dependencies: {numpy: 1}\n", 1, "dependencies is not a list"),
    ("dependencies:\n  - a\n  - b: [c\n", 4, "it is not valid YAML"),
    ("dependencies:\n  - a\ndependencies:\n  - b\n", 3, "'dependencies' appears twice"),
    ("dependencies:\n  - a\n  - python: 3.11\n", 3, "'python' is not a section of dependencies"),
    ("dependencies:\n  - a\n  - [b]\n", 3, "a dependency is not a mapping"),
    ("dependencies:\n  - sel(py<38): a\n", 2, "the selector 'sel(py<38)' is not supported"),
    ("dependencies:\n  - sel(linux): [a]\n", 2, "sel(linux) is a list or a mapping"),
    ("dependencies:\n  - a # [win]\n  - b # [linux]\n  - b==\n", 4, "'b==' is not a conda requirement"),
    ("dependencies:\n  - torch[cuda]\n", 2, "conda has no extras"),
    ("dependencies:\n  - |\n    a\n    b\n", 2, "a dependency is not one line of ordinary text"),
    ("dependencies:\n  - a\u00a0b\n", 2, "a dependency is not one line of ordinary text"),
    ("dependencies:\n  - pip: a\n", 2, "pip is not a list"),
    ("dependencies:\n  - pip:\n      - a\n      - b: c\n", 4, "an entry of pip is a list or a mapping"),
    ("dependencies: []\nchannels: conda-forge\n", 2, "channels is not a list"),
    ("dependencies: []\nchannels:\n  - [a]\n", 3, "a channel is not a mapping"),
    ("dependencies: []\nchannels:\n  - {name: a}\n", 3, "a channel has neither a name nor a URL"),
    ("dependencies: []\nvariables: [a]\n", 2, "variables is not a mapping"),
    ("dependencies: []\nvariables:\n  A: [b]\n", 3, "the variable A is a list or a mapping"),
    ('dependencies: []\nvariables:\n  A: "b\\nc"\n', 3, "the variable A is not one line"),
    ('dependencies: []\nvariables:\n  A: "b\\0c"\n', 3, "the variable A is not one line of ordinary text"),
    ("dependencies: []\nvariables:\n  'A=B': c\n", 3, "'A=B' is not a variable name"),
    ("dependencies: []\nplatforms: linux-64\n", 2, "platforms is not a list"),
    (f"dependencies: [{'a, ' * 200_000}]\n", None, "it is longer than 512 KiB"),
    (f"a: &a [{'b, ' * 1000}]\nc: &c [{'*a, ' * 1000}]\ndependencies: [*c]\n", None, "its aliases expand to too much"),
]


@pytest.mark.parametrize(("text", "line", "message"), _INVALID, ids=[message for _, _, message in _INVALID])
def test_an_unreadable_file_is_refused_with_its_line(text: str, line: int | None, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        _read(text)
    assert refused.value.code == "environment-invalid"
    assert refused.value.message.startswith(f"{_FILE}: " if line is None else f"{_FILE}:{line}: ")
    assert message in refused.value.message
    assert "secret" not in refused.value.message
    assert refused.value.message.isprintable()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("--pre", "envsolve does not know the option --pre"),
        ("-r", "-r names nothing"),
        ("-r https://user:secret@127.0.0.1/a.txt", "-r takes a file, and https://127.0.0.1/a.txt is a URL"),
        ("-i https://127.0.0.1/a -f b", "more than one option: write each on a line of its own"),
        ("own==1 --hash=md5:aa", "--hash takes an algorithm and a digest"),
        ("own==1 --hash=sha256:", "--hash takes an algorithm and a digest"),
        ("own==1 --hash=aa", "--hash takes an algorithm and a digest"),
    ],
)
def test_an_invalid_pip_entry_is_reported_like_in_requirements(entry: str, message: str) -> None:
    file = _read(f"dependencies:\n- pip:\n  - '{entry}'\n  - --pre\n")
    (mistake, other) = file.pip.mistakes
    assert mistake.message.startswith(f"{_FILE}:3: {message}")
    assert other.message.startswith(f"{_FILE}:4: ")


@pytest.mark.parametrize(
    ("entry", "requirement"),
    [
        ("-e .", "-e ./envs"),
        ("-e.", "-e ./envs"),
        ("--editable ./own", "-e ./envs/own"),
        ("--editable=git+https://u:p@127.0.0.1/own", "-e git+https://127.0.0.1/own"),
    ],
)
def test_an_editable_project_is_a_requirement(entry: str, requirement: str) -> None:
    assert _read(f"dependencies:\n  - pip:\n    - {entry}\n").pip.requirements == (
        Line(requirement, "the pip section of environment.yml"),
    )


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_environment(tmp_path / "environment.yml", Platform.LINUX_64)


@given(st.text() | documents(_SAMPLE))
def test_reading_raises_no_other_errors_and_results_are_single_lines(text: str) -> None:
    try:
        file = _read(text)
    except UsageError as error:
        texts = [error.message]
    else:
        texts = [
            *(it.spec for it in file.requested),
            *file.channels,
            *file.notes,
            *(it for _, it in file.variables),
        ]
    assert all(map(str.isprintable, texts))
    assert "secret" not in "".join(texts)


def test_each_entry_of_a_wheel_keeps_its_hashes() -> None:
    file = _read("dependencies:\n- pip:\n  - own==1 --hash=sha256:AA --hash sha512:bb\n  - own==1 --hash=sha256:cc\n")
    assert [(it.text, it.hashes) for it in file.pip.requirements] == [
        ("own==1", (("sha256", "aa"), ("sha512", "bb"))),
        ("own==1", (("sha256", "cc"),)),
    ]
    assert [it.spec for it in file.requested if it.by_pip] == ["own==1"]
