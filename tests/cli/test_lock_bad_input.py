"""Mistyped, misplaced and oddly saved requirements: a lock if they are valid, otherwise one clear error."""

from __future__ import annotations

import io
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.locked import pins_in
from tests.cli.worlds import releases
from tests.conftest import Envsolve, Result
from tests.index.packages import sdist, wheel
from tests.index.server import IndexServer

TARGET = ("--python", "3.11.7", "--platform", "linux-64", "--no-cache", "--format", "requirements")


def lock(envsolve: Envsolve, world: IndexServer, *arguments: str) -> Result:
    where = ("--index-url", world.index_url) if "--index-url" not in arguments else ()
    return envsolve(*TARGET, *where, "--gpu", "8.6", *arguments)


@pytest.fixture(autouse=True)
def _packages(world: IndexServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = "2025-01-01T00:00:00Z"
    world.add("pandas", [wheel("pandas", version, upload_time=old) for version in ("1.5.3", "2.2.0", "3.0.0")])
    world.add("only-source", [sdist("only-source", "1.0", static=False)])
    world.add("for-later", [wheel("for-later", "1.0", requires_python=">=3.12")])
    monkeypatch.chdir(tmp_path)


class Bad(NamedTuple):
    """Requirements on the command line, the exit status, and the code and text of the error."""

    arguments: tuple[str, ...]
    exit: int
    code: str
    says: str


BAD = [
    Bad(("pandas==",), 2, "requirement-invalid", "'pandas=='"),
    Bad(("pandas=2.2.0",), 2, "requirement-invalid", "'pandas=2.2.0'"),
    Bad(("pandas,numpy",), 2, "requirement-invalid", "'pandas,numpy'"),
    Bad(("pandas>2,<1",), 2, "requirement-invalid", "'pandas>2,<1' contradicts itself: no version meets it"),
    Bad(("-f", "pytorch>2,<1"), 2, "invalid-framework", "'pytorch>2,<1' contradicts itself: no version meets it"),
    Bad(("pandas 2",), 2, "requirement-invalid", "a name with versions"),
    Bad(("",), 2, "requirement-invalid", "a name with versions"),
    Bad(("pandas; bogus == 'x'",), 2, "requirement-invalid", "is not a requirement: Expected a marker"),
    Bad(("./local/path",), 2, "direct-reference-invalid", "there is no folder ./local/path"),
    Bad((".",), 2, "direct-reference-invalid", "no pyproject.toml"),
    Bad(("./2.zip",), 2, "direct-reference-invalid", "has no package name: write 'NAME @ ./2.zip'"),
    Bad(("pandas-2.2.0.tar.gz",), 3, "file-not-there", "pandas @ file:///"),
    Bad(("https://example.org/main.zip",), 2, "direct-reference-invalid", "has no package name"),
    Bad(("git+https://",), 2, "direct-reference-invalid", "is not the URL of a git repository"),
    Bad(("torch @ git+https://example.org/torch@a..b",), 2, "direct-reference-invalid", "not the name of a branch"),
    Bad(("x @ https://example.org/x",), 2, "direct-reference-invalid", "neither a wheel nor a .tar.gz"),
    Bad(("-f", "pandas>2"), 2, "unknown-framework", "known: "),
    Bad(("pandas", "--exclude-newer", "garbage"), 2, "usage", "2026-11-20"),
    Bad(("pandas", "-P", ""), 2, "usage", "-P"),
    Bad(("pandas", "-c", "limits.txt"), 2, "contradictory-options", "--constraint limits.txt"),
    Bad(("pandas", "-P", "pandas<3"), 2, "usage", "not a package name"),
    Bad(("pandas", "--why", "torch"), 2, "contradictory-options", "omit --format"),
    Bad(("pandas", "--source", "conda-forge"), 2, "contradictory-options", "--format environment"),
    Bad(("pandas", "--platform", "osx-arm64"), 2, "several-platforms", "'requirements.{platform}.txt'"),
    Bad(("pandas", "--python", ">=4"), 2, "python-not-supported", ">=4"),
    Bad(("pandas", "--index-url", "packages"), 2, "url-invalid", "'packages' is not an http or https URL"),
    Bad(("pandas", "--index-url", "::1"), 2, "url-invalid", "'::1' is not"),
    Bad(("pandas", "--extra-index-url", "packages"), 2, "url-invalid", "'packages' is not"),
    Bad(("-r", "missing.in"), 2, "requirements-unreadable", "missing.in"),
    Bad(("-r", "."), 2, "requirements-unreadable", "cannot read ."),
    Bad(
        ("-r", "sub/pyproject.toml"), 2, "requirements-unreadable", "hint: request the project by its folder: ./sub, or"
    ),
    Bad(("--constraint", "missing.txt", "pandas"), 2, "requirements-unreadable", "missing.txt"),
    Bad(("pandas>3",), 1, "version-not-found", "has pandas 1.5.3 to 3.0.0"),
    Bad(("pandas>=2", "pandas<2"), 1, "packages-conflict", "the command line requires pandas<2"),
    Bad(("pandas", "--exclude-newer", "2024-01-01"), 1, "no-wheel", "uploaded after the exclude-newer date"),
    Bad(("only-source",), 1, "needs-build", "--allow-builds"),
    Bad(
        ("for-later",), 1, "no-wheel", "for-later cannot be installed on Python 3.11.7 on linux-64: it does not support"
    ),
    Bad(("pnadas",), 1, "package-not-found", "check the spelling"),
    Bad(("pytorch>=2", "pandas"), 1, "package-not-found", "envsolve --framework 'pytorch>=2' --python 3.11.7"),
    Bad(("pytorch", "pytorch-lightning"), 1, "package-not-found", "--format requirements pytorch-lightning\n"),
    Bad(("tensorflow-gpu",), 1, "package-not-found", "envsolve --framework tensorflow --python 3.11.7"),
    Bad(("-f", "pytorch", "tensorflow-gpu==2.10.0"), 1, "package-not-found", "pytorch --framework tensorflow==2.10.0"),
    Bad(("-f", "pytorch==2.5.1", "pytorch>=2"), 1, "package-not-found", "--framework 'pytorch==2.5.1,>=2'"),
    Bad(("pytorch-cuda==12.1", "tf==0.6"), 1, "package-not-found", "--framework pytorch and --framework tensorflow\n"),
    Bad(("--cuda", "12.8", "cupy-cuda13x"), 2, "contradictory-options", "request different versions of CUDA"),
    Bad(("pandas", "--offline"), 3, "not-cached", "without --offline"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("bad", BAD, ids=lambda it: " ".join(it.arguments) or "nothing")
def test_it_is_one_error_that_says_what_to_do(bad: Bad, envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, *bad.arguments)
    assert result.err.startswith(f"error: {bad.code}\n  ")
    assert (result.code, result.err.count("error:")) == (bad.exit, 1)
    assert bad.says in result.err
    assert "\ncause: " in result.err
    assert "\nhint: " in result.err
    assert "Traceback" not in result.err
    if "--json" not in bad.arguments:
        assert result.out == ""


BAD_FILES = {
    "-e .": (
        "direct-reference-invalid",
        "requirements.in:1: '-e .': no pyproject.toml, setup.cfg or setup.py in . states",
    ),
    "--pre": ("requirements-invalid", "requirements.in:1: envsolve does not know the option --pre"),
    "numpy\n--editable=../mine": ("direct-reference-invalid", "there is no folder ../mine"),
    "-r requirements.in": ("requirements-circular", "requirements.in includes requirements.in"),
    "-r nowhere.in": ("requirements-unreadable", "nowhere.in"),
    "-r": ("requirements-invalid", "-r names nothing"),
    "-c https://example.org/constraints.txt": ("requirements-invalid", "is a URL"),
    "--extra-index-url": ("requirements-invalid", "names nothing"),
    "git+https://token:secret@": ("direct-reference-invalid", "not the URL of a git repository"),
    "pandas>=2 --hash=sha256:00": ("requirement-invalid", "requirements.in:1: 'pandas>=2' has hashes"),
    "pandas==2.2.0 --hash=00": ("requirements-invalid", "requirements.in:1: --hash takes"),
    "../mine": ("direct-reference-invalid", "requirements.in:1: '../mine'"),
    "pandas two": ("requirement-invalid", "requirements.in:1: 'pandas two'"),
    "${ABSENT_NAME}": ("requirement-invalid", "${ABSENT_NAME}"),
    "pandas\0": ("requirement-invalid", "pandas"),
}


@pytest.mark.parametrize("requirement", ["pytorch==2.6; python_version<'3.14'", "pytorch-cuda==12.1", "tf==0.6"])
def test_no_command_replaces_a_name_if_it_would_say_something_else(
    requirement: str, envsolve: Envsolve, world: IndexServer
) -> None:
    """A framework has no marker, and the version is that of CUDA, or of another project."""
    refused = lock(envsolve, world, requirement)
    assert re.search("hint: request the framework with --framework [a-z]+\n$", refused.err), refused.err


@pytest.mark.thorough
@pytest.mark.parametrize("text", BAD_FILES)
def test_an_unlockable_file_is_named(text: str, envsolve: Envsolve, world: IndexServer) -> None:
    Path("requirements.in").write_text(f"{text}\n", encoding="utf-8")
    result = lock(envsolve, world, "-r", "requirements.in")
    code, says = BAD_FILES[text]
    assert (result.code, result.out, world.requests) == (2, "", [])
    assert result.err.startswith(f"error: {code}\n  ")
    assert says in result.err
    assert "secret" not in result.err


def test_the_first_of_many_mistakes_are_enough(envsolve: Envsolve, world: IndexServer) -> None:
    Path("uv.lock").write_text("".join(f"[[package{it}]]\n" for it in range(30)), encoding="utf-8")
    result = lock(envsolve, world, "-r", "uv.lock")
    assert result.err.startswith("error: requirements-invalid\n  30 requirements cannot be read\n")
    assert "cause: uv.lock:10: " in result.err
    assert "cause: uv.lock:11: " not in result.err
    assert "cause: and 20 more\n" in result.err


def test_a_file_in_another_encoding_is_named(envsolve: Envsolve, world: IndexServer) -> None:
    Path("requirements.in").write_bytes("pandas # é".encode("latin-1"))
    result = lock(envsolve, world, "-r", "requirements.in")
    assert (result.code, result.out) == (2, "")
    assert "cannot read requirements.in: it is not UTF-8" in result.err
    assert "hint: save it as UTF-8 text" in result.err


def test_the_suggested_name_of_a_lock_for_each_platform_suits_the_format(envsolve: Envsolve) -> None:
    result = envsolve("pandas", "--platform", "linux-64", "--platform", "osx-arm64", "-o", "pylock.toml")
    assert result.err.endswith("hint: write one file for each: -o 'pylock.{platform}.toml'\n")


def test_a_missing_directory_is_noticed_before_the_search(envsolve: Envsolve, world: IndexServer) -> None:
    result = envsolve("pandas", "--index-url", world.index_url, "-o", "absent/requirements.txt")
    assert (result.code, result.out, world.requests) == (2, "", [])
    assert "absent/requirements.txt cannot be written: its directory does not exist" in result.err
    result = envsolve("-f", "pytorch", "--gpu", "none", "--force", "-o", "absent/environment.yml")
    assert (result.code, "its directory does not exist" in result.err) == (2, True)


GOOD_FILES = {
    "a byte order mark and Windows' line ends": ("\ufeffpandas<3\r\nnumpy\r\n", {"pandas": "2.2.0", "numpy": "2.4.6"}),
    "comments and continued lines": ("# all\npandas \\\n  >=2, \\\n  <3  # old\n", {"pandas": "2.2.0"}),
    "another file and constraints": (
        "-r sub/more.in\n-c sub/constraints.txt\n",
        {"pandas": "1.5.3", "numpy": "1.26.4"},
    ),
    "options for an installer": ("--prefer-binary\n--only-binary :all:\npandas\n", {"pandas": "3.0.0"}),
    "a variable": ("${WANTED_NAME}>=3\n", {"pandas": "3.0.0"}),
    "nothing": ("\n# nothing yet\n", {}),
    "what is for another Python": ("Pandas>=2,<3 ; python_version < '3.9'\nnumpy\n", {"numpy": "2.4.6"}),
    "spellings of one name": ("PANDAS\nPandas>=2\npandas<3\n", {"pandas": "2.2.0"}),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", GOOD_FILES)
def test_a_file_is_read_like_pip_reads_it(
    name: str, envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANTED_NAME", "pandas")
    Path("sub").mkdir()
    Path("sub", "more.in").write_text("pandas\n", encoding="utf-8")
    Path("sub", "constraints.txt").write_text("pandas<2\nnumpy<2\n", encoding="utf-8")
    text, expected = GOOD_FILES[name]
    Path("requirements.in").write_text(text, encoding="utf-8", newline="")
    result = lock(envsolve, world, "-r", "requirements.in")
    assert result.code == 0, result.err
    assert pins_in(result.out) == expected


def test_requirements_can_come_from_standard_input(
    envsolve: Envsolve, world: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("pandas<2\n"))
    assert pins_in(lock(envsolve, world, "-r", "-").out)["pandas"] == "1.5.3"


def test_an_index_in_a_file_applies_unless_an_option_names_one(envsolve: Envsolve, world: IndexServer) -> None:
    other = world.index("/other/simple/")
    other.add("pandas", releases("pandas", ["4.0.0"]))
    Path("requirements.in").write_text(f"--index-url {other.index_url}\npandas\n", encoding="utf-8")
    result = envsolve("-r", "requirements.in", *TARGET, "--gpu", "8.6")
    assert pins_in(result.out) == {"pandas": "4.0.0"}
    assert f"\n--index-url {other.index_url.rstrip('/')}\n" in result.out
    assert pins_in(lock(envsolve, world, "-r", "requirements.in").out) == {"pandas": "3.0.0"}


def test_upgrading_an_absent_package_changes_nothing(envsolve: Envsolve, world: IndexServer) -> None:
    assert pins_in(lock(envsolve, world, "pandas", "-P", "numpy").out) == {"pandas": "3.0.0"}


def test_a_lock_does_not_overwrite_its_requirements(envsolve: Envsolve, world: IndexServer, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("pandas\n")
    result = lock(envsolve, world, "-r", "requirements.txt", "-o", str(requirements))
    assert (result.code, result.out, requirements.read_text()) == (2, "", "pandas\n")
    assert result.err.startswith("error: contradictory-options\n")


def test_a_constraint_that_leaves_versions_without_a_wheel_is_named(envsolve: Envsolve, world: IndexServer) -> None:
    """The package has a wheel for this Python, but not in the versions that the constraint allows."""
    world.add("base", [wheel("base", "1.0", tags="cp310-cp310-any"), wheel("base", "2.0")])
    world.add("app", [wheel("app", f"{number}.0", [f"base>={number / 4}"]) for number in range(1, 6)])
    Path("limits.txt").write_text("base<2\n", encoding="utf-8")
    result = lock(envsolve, world, "app", "--constraint", "limits.txt")
    assert result.code == 1
    assert result.err.startswith(
        "error: no-wheel\n  base 1.0 cannot be installed on Python 3.11.7 on linux-64: it has no"
    )
    assert "cause: -c limits.txt limits base to <2\n" in result.err


def test_contradictory_requirements_become_one_in_the_suggested_command(envsolve: Envsolve, world: IndexServer) -> None:
    result = lock(envsolve, world, "pandas>=3", "numpy", "pandas<3")
    (hint,) = re.findall("hint: pandas 3.0.0 would fit\n  envsolve (.*)\n", result.err)
    assert shlex.split(hint)[-2:] == ["pandas==3.0.0", "numpy"]
    assert pins_in(envsolve(*shlex.split(hint)).out)["pandas"] == "3.0.0"


def test_the_nearest_python_with_wheels_is_suggested(envsolve: Envsolve, world: IndexServer) -> None:
    pythons = ("38", "310", "313")
    world.add("early", [wheel("early", "1.0", tags=f"cp{it}-cp{it}-manylinux_2_17_x86_64") for it in pythons])
    target = ("--platform", "linux-64", "--format", "requirements", "--index-url", world.index_url)
    result = envsolve("early", "--gpu", "none", *target)
    assert result.code == 1
    (hint,) = re.findall("hint: early 1.0 can be installed on Python 3.10\n  envsolve (.*)\n", result.err)
    assert pins_in(envsolve(*shlex.split(hint)).out) == {"early": "1.0"}
    world.add("torch", [wheel("torch", "2.8.0", tags="cp312-cp312-manylinux_2_28_x86_64")])
    result = envsolve("-f", "pytorch==2.8.0", "early", "--gpu", "8.6", "--source", "pypi", *target)
    assert result.err.endswith("hint: try another version of the package\n")


def test_an_empty_file_is_reported(envsolve: Envsolve, world: IndexServer) -> None:
    Path("empty.in").write_text("# nothing yet\n")
    Path("full.in").write_text("pandas\n")
    Path("index.in").write_text(f"--index-url {world.index_url}\n")
    done = lock(envsolve, world, "-r", "empty.in", "-r", "full.in", "-r", "index.in")
    assert done.code == 0, done.err
    assert set(pins_in(done.out)) == {"pandas"}
    assert done.err.count("has no requirements") == 1
    assert "note: empty.in has no requirements\n" in done.err
    done = envsolve("-f", "pytorch", "-r", "empty.in", "--gpu", "8.6", "--platform", "linux-64")
    assert (done.code, done.err.count("note: empty.in has no requirements\n")) == (0, 1)


@pytest.mark.parametrize("line", ["--find-links https://example.org/whl.html", "-f wheels", "-f=wheels"])
def test_a_page_of_links_in_a_file_is_ignored_with_a_note(line: str, envsolve: Envsolve, world: IndexServer) -> None:
    Path("requirements.in").write_text(f"numpy\n{line}\n", encoding="utf-8")
    done = lock(envsolve, world, "-r", "requirements.in")
    assert (done.code, list(pins_in(done.out))) == (0, ["numpy"]), done.err
    assert "note: --find-links in requirements.in:2 is ignored\n" in done.err
