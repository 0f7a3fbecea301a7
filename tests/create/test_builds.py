"""Nothing is built without permission, however a lock requests it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pip._internal.req.req_file import _decode_req_file, preprocess

from envsolve.create.builds import recorded_build_constraints, refuse_builds, refuse_variables
from envsolve.create.reading import plan_of
from envsolve.create.wheels import wheel_file
from envsolve.errors import UsageError
from envsolve.lockfile.lock import Lock, Made
from envsolve.model.host import Platform
from envsolve.model.requirement_line import as_lines, contents_of

HASH = f"--hash=sha256:{'0' * 64}"
PYLOCK = 'lock-version = "1.0"\ncreated-by = "test"\n'
WHEEL = f'{{ name = "own-1-py3-none-any.whl", url = "https://i/own.whl", hashes = {{ sha256 = "{"0" * 64}" }} }}'
HASHES = f'hashes = {{ sha256 = "{"0" * 64}" }}'

REFUSED = {
    "a source archive by its address": (f"own @ https://i/own-1.tar.gz {HASH}", "build-refused"),
    "an archive with a wheel in its query": (f"own @ https://i/own.zip?x=.whl {HASH}", "build-refused"),
    "a branch that is called as a wheel": (f"own @ git+https://i/own@x.whl {HASH}", "lock-not-exact"),
    "an address without a name": (f"https://i/own-1.tar.gz {HASH}", "lock-not-exact"),
    "a directory": (f"./own {HASH}", "lock-not-exact"),
    "a file beside it": (f"own-1.tar.gz {HASH}", "lock-not-exact"),
    "a wheel beside it": (f"./wheels/own-1-py3-none-any.whl {HASH}", "lock-not-exact"),
    "a variable": (f"${{OWN}} {HASH}", "lock-not-exact"),
    "an option for all": (f"--no-binary :all:\nalpha==1 {HASH}", "lock-not-exact"),
    "an option by its first letters": (f"--no-bin own\nown==1 {HASH}", "lock-not-exact"),
    "an option behind a comment": (f"# head \\\n--no-binary :all:\nalpha==1 {HASH}", "lock-not-exact"),
    "an option behind a form feed in a comment": (f"# head\f--no-binary :all:\nalpha==1 {HASH}", "lock-not-exact"),
    "an option behind another end of a line": (f"# head\u2028--no-binary :all:\nalpha==1 {HASH}", "lock-not-exact"),
    "an option behind a requirement": (f"own==1 \\\n  {HASH} --config-settings=a=b", "lock-not-exact"),
    "a range": (f"alpha>=1 {HASH}", "lock-not-exact"),
}


def installer_input(text: str, folder: Path, name: str = "requirements.txt") -> str:
    """The input of uv for a lock with this text."""
    path = folder / name
    path.write_text(text, "utf-8")
    lock = plan_of(path, Platform.LINUX_64).lock
    refuse_builds(path, lock)
    return wheel_file(lock, reads_pylock=False).text


@pytest.mark.thorough
@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_requirements_that_may_be_built_are_refused(text: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        installer_input(f"{text}\n", tmp_path)
    assert raised.value.code == code


def test_pins_and_wheels_are_accepted(tmp_path: Path) -> None:
    assert installer_input(
        "# a head -- with dashes\n"
        "--index-url https://i/simple\n--extra-index-url=https://j/simple\n-f https://k/links.html\n"
        f"alpha==1.0+cu126 ; python_version < '3.13' \\\n    {HASH} \\\n    {HASH}  # via beta\n"
        f"delta==1\t{HASH}\n"
        f"gamma[extra] == 2.0 {HASH}\n"
        f"own @ https://i/own-1%2Bcpu-py3-none-any.whl#subdirectory=x {HASH}\n",
        tmp_path,
    ).splitlines() == [
        *("--index-url https://i/simple", "--extra-index-url https://j/simple", "--find-links https://k/links.html"),
        f"alpha==1.0+cu126 ; python_version < '3.13' {HASH}",
        f"delta==1 {HASH}",
        f"gamma==2.0 {HASH}",
        f"own @ https://i/own-1%2Bcpu-py3-none-any.whl#subdirectory=x {HASH}",
    ]


@pytest.mark.parametrize("option", ["--pre", "--only-binary=:none:", "--trusted-host i", "--prefer-binary"])
def test_options_of_the_file_are_not_passed_to_the_installer(option: str, tmp_path: Path) -> None:
    assert installer_input(f"{option}\nalpha==1 {HASH}\n", tmp_path) == f"alpha==1 {HASH}\n"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (f'archive = {{ url = "https://i/own-1.zip", {HASHES} }}', "build-refused"),
        ('directory = { path = "own" }', "build-refused"),
        (f'vcs = {{ type = "git", url = "https://i/own", commit-id = "{"0" * 40}" }}', "build-refused"),
        (f'version = "1"\nsdist = {{ url = "https://i/own-1.tar.gz", {HASHES} }}', "build-refused"),
    ],
)
def test_packages_of_a_pylock_that_may_be_built_are_refused(entry: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        installer_input(f'{PYLOCK}[[packages]]\nname = "own"\n{entry}\n', tmp_path, "pylock.toml")
    assert raised.value.code == code


def test_wheels_of_a_pylock_are_accepted(tmp_path: Path) -> None:
    sdist = f'{{ url = "https://i/own-1.tar.gz", {HASHES} }}'
    installer_input(
        f'{PYLOCK}[[packages]]\nname = "own"\nversion = "1"\nsdist = {sdist}\nwheels = [{WHEEL}]\n'
        f'[[packages]]\nname = "other"\narchive = {{ url = "https://i/other-1-py3-none-any.whl", {HASHES} }}\n',
        tmp_path,
        "pylock.toml",
    )


@pytest.mark.parametrize(
    "text",
    [
        f"--index-url https://i/${{TOKEN}}/simple\nalpha==1 {HASH}\n",
        f"alpha @ https://${{TOKEN}}@i/alpha-1-py3-none-any.whl {HASH}\n",
    ],
)
def test_variables_of_the_machine_are_not_sent_to_an_address(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_variables(Path("requirements.txt"), text)
    assert raised.value.code == "lock-not-exact"
    assert "TOKEN" in str(raised.value)


def test_a_variable_in_a_comment_is_ignored() -> None:
    text = f"# made with https://i/${{TOKEN}}\nalpha==1 {HASH}  # https://i/${{TOKEN}}\n"
    refuse_variables(Path("requirements.txt"), text)


def test_a_variable_in_a_pylock_is_escaped_for_pip(tmp_path: Path) -> None:
    text = f'{PYLOCK}[[packages]]\nname = "own"\nversion = "1"\nindex = "https://i/${{TOKEN}}"\nwheels = [{WHEEL}]\n'
    assert "--index-url https://i/%24%7BTOKEN%7D\n" in installer_input(text, tmp_path, "pylock.toml")


pieces = st.sampled_from(
    [
        "\\",
        "\n",
        "\r\n",
        "\r",
        "\f",
        "\x1c",
        "\x85",
        "\u2028",
        " ",
        "\t",
        "#",
        "# coding: utf-7",
        "-",
        "--pre",
        "+AAo-",
        "a",
        "==1",
    ]
)


@given(st.lists(pieces, max_size=12).map("".join))
@example("\\ \n--pre")
def test_pip_reads_only_the_lines_that_were_checked(text: str) -> None:
    judged = [*contents_of(text)]
    content = as_lines(judged).encode()
    assert [line for _, line in preprocess(_decode_req_file(content, "requirements.txt"))] == judged


def test_recorded_build_constraints_only_allow_version_ranges() -> None:
    constraints = (
        "setuptools<82",
        "cython @ https://i/cython.whl",
        "-r /etc/passwd",
        "--index-url https://i",
        "a<1\n-e .",
    )
    made = Made("", "", options=(("build-constraints", constraints),))
    assert list(recorded_build_constraints(Lock((), "linux-64", "3.12.0", made=made))) == ["setuptools<82"]
    assert list(recorded_build_constraints(Lock((), "linux-64", "3.12.0"))) == []
