"""Explicit files of conda, mamba and conda-lock."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.boundary.files import FileError
from envsolve.errors import UsageError
from envsolve.lockfile.explicit import NO_ADDRESS, read
from envsolve.lockfile.lock import Lock, Open, bare_files
from envsolve.lockfile.reading import lock_at
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from tests.laws import examples

_SAMPLE = Path(__file__).parent / "conda_files/explicit.txt"
_CONDA_FORGE = "https://conda.anaconda.org/conda-forge"
_SHA256 = "7b2b69c54ec62a243eb6fba2391b5e443421608c3ae5dbff938ad33ca8db5122"


def _package(
    *fields: str, channel: str = _CONDA_FORGE, md5: str | None = None, sha256: str | None = None
) -> CondaPackage:
    name, version, build, subdir, ending = fields
    url = f"{channel}/{subdir}/{name}-{version}-{build}.{ending}"
    return CondaPackage(name, version, build, subdir, url, md5, sha256, channel=channel)


def _pin(name: str, version: str, sha256: str) -> Pin:
    return Pin(name, version, bare_files([f"sha256:{sha256}"]), "")


def test_every_kind_of_digest_is_read_and_other_lines_are_reported() -> None:
    x264 = _package(
        "x264", "1!164.3095", "h166bdaf_2", "linux-64", "tar.bz2", channel="https://127.0.0.1/own", sha256=_SHA256
    )
    devel = ("libstdcxx-devel_linux-64", "13.2.0", "h9c5ac8a_105", "linux-64", "conda")
    lock = read(_SAMPLE.read_text("utf-8"))
    assert lock.platform == "linux-64"
    assert lock.conda == (
        _package(
            *("_libgcc_mutex", "0.1", "conda_forge", "linux-64", "tar.bz2"), md5="d7c89558ba9fa0495403155b64376d81"
        ),
        _package(*devel, channel="file:///opt/t/channel"),
        _package("tzdata", "2024a", "h0c530f3_0", "noarch", "conda", sha256=_SHA256),
        _package("wheel", "0.43.0", "pyhd8ed1ab_1", "noarch", "conda"),
        x264._replace(url=x264.url.replace("!", "%21")),
    )
    assert lock.open == (
        Open(NO_ADDRESS, line=11, of_conda=True),
        Open(NO_ADDRESS, line=12, of_conda=True),
        Open("a wheel in its comments has no URL", line=15),
        Open("'own' is from a folder or a repository, which no other lock format supports", "own"),
    )


def test_wheels_in_comments_are_read_with_their_urls() -> None:
    lock = read(_SAMPLE.read_text("utf-8"))
    assert [(it.name, it.version, it.files[0].name, it.index_url) for it in lock.pins] == [
        ("pyparsing", "3.1.2", "pyparsing-3.1.2.tar.gz", None),
        ("rich", "13.7.1", "", ""),
        ("typing-extensions", "4.12.2", "typing_extensions-4.12.2-py3-none-any.whl", None),
    ]
    assert lock.pins[1] == _pin("rich", "13.7.1", "4edbae314f59eb482f54e9e30bf00d33350aaa94f4bfcd4e9e3110e64d0d7222")
    assert {it.files[0].hashes[0][0] for it in lock.pins} == {"sha256"}


@pytest.mark.parametrize(
    ("lines", "platform"),
    [
        (("# platform: win-64", "https://127.0.0.1/own/linux-64/a-1-0.conda"), "win-64"),
        (("https://127.0.0.1/own/noarch/a-1-0.conda", "https://127.0.0.1/own/osx-64/b-1-0.conda"), "osx-64"),
        (("https://127.0.0.1/own/noarch/a-1-0.conda",), ""),
        (("https://127.0.0.1/own/linux-64/a-1-0.conda", "https://127.0.0.1/own/osx-64/b-1-0.conda"), ""),
    ],
)
def test_the_platform_is_stated_or_derived_from_the_packages(lines: tuple[str, ...], platform: str) -> None:
    assert read("\n".join(("@EXPLICIT", *lines))).platform == platform


@pytest.mark.parametrize(
    ("line", "package"),
    [
        ("a-1-0.conda", CondaPackage("a", "1", "0", "", "a-1-0.conda")),
        ("./own/a-b-1.0-h1_0.tar.bz2", CondaPackage("a-b", "1.0", "h1_0", "", "./own/a-b-1.0-h1_0.tar.bz2")),
    ],
)
def test_paths_are_also_read_as_urls(line: str, package: CondaPackage) -> None:
    assert read(f"@EXPLICIT\n{line}\n").conda == (package,)


@pytest.mark.parametrize(
    "line",
    [
        "https://127.0.0.1/own/linux-64/a-1.conda",
        "https://127.0.0.1/own/linux-64/a-1-0.zip",
        "https://127.0.0.1/own/linux-64/a-1-0.conda#sha1:abc",
        "https://127.0.0.1/own/linux-64/a-1 2-0.conda",
        "https://127.0.0.1/own/linux-64/a-1-%0a.conda",
        "https://${HOST}/own/linux-64/a-1-0.conda",
        r"C:\own\win-64\a-1-0.conda",
        f"https://127.0.0.1/{'own/' * 1000}linux-64/a-1-0.conda",
    ],
)
def test_a_line_that_is_not_a_url_is_reported(line: str) -> None:
    assert read(f"@EXPLICIT\n{line}\n") == Lock((), open=(Open(NO_ADDRESS, line=2, of_conda=True),))


def test_a_file_without_its_marker_is_refused() -> None:
    with pytest.raises(FileError, match="it has no line @EXPLICIT"):
        read("# @EXPLICIT\nnumpy=1.26\n")


def test_an_oversized_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "explicit.txt"
    path.write_text(f"@EXPLICIT\n{'# a comment' * 400_000}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="longer than 4096 KiB") as refused:
        lock_at(path, Platform.LINUX_64)
    assert refused.value.code == "held-unreadable"


_PACKAGES = st.builds(
    lambda name, version, build, subdir, ending, channel, md5: _package(
        *(name, version, build, subdir, ending), channel=channel, md5=md5
    ),
    st.from_regex(r"\A[a-z0-9_][a-z0-9._-]{0,8}\Z"),
    st.from_regex(r"\A[0-9][0-9a-z._+!]{0,8}\Z"),
    st.from_regex(r"\A[0-9A-Za-z_.+]{1,8}\Z"),
    st.sampled_from(["linux-64", "noarch", "win-64"]),
    st.sampled_from(["conda", "tar.bz2"]),
    st.sampled_from(
        [_CONDA_FORGE, "https://127.0.0.1:8080/a/label/b", "file:///opt/own", "https://127.0.0.1/linux-64"]
    ),
    st.none() | st.from_regex(r"\A[0-9a-f]{32}\Z"),
)


def _name(package: CondaPackage) -> str:
    return package.name


@settings(max_examples=examples(25))
@given(st.lists(_PACKAGES, max_size=4))
def test_written_urls_are_read_back(packages: list[CondaPackage]) -> None:
    lines = [f"{package.url}#{package.md5}" if package.md5 else package.url for package in packages]
    assert read("\n".join(("# a comment", "@EXPLICIT", *lines))).conda == tuple(sorted(packages, key=_name))


@given(st.text() | st.text(st.sampled_from("https://127.0.0.1/a-1-0.conda#\n \t\x85\u2028%0aé@\\")))
def test_any_text_is_read_and_results_are_single_lines(text: str) -> None:
    lock = read(f"@EXPLICIT\n{text}\n# pip {text}")
    for package in lock.conda:
        assert all(map(str.isprintable, (package.name, package.version, package.build, package.url, package.channel)))
    assert all(pin.version.isascii() for pin in lock.pins)
