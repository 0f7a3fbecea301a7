"""Nothing is built that was not allowed to be, by whatever way a lock asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pip._internal.req.req_file import _decode_req_file, preprocess

from envsolve.create.builds import refuse_builds, refuse_variables
from envsolve.create.plan import WheelFile
from envsolve.errors import UsageError
from envsolve.model.requirement_line import as_lines, contents_of

HASH = f"--hash=sha256:{'0' * 64}"
PYLOCK = 'lock-version = "1.0"\ncreated-by = "test"\n'
WHEEL = f'{{ name = "own-1-py3-none-any.whl", url = "https://i/own.whl", hashes = {{ sha256 = "{"0" * 64}" }} }}'

REFUSED = {
    "a source archive by its address": (f"own @ https://i/own-1.tar.gz {HASH}", "build-refused"),
    "an archive with a wheel in its query": (f"own @ https://i/own.zip?x=.whl {HASH}", "build-refused"),
    "a branch that is called as a wheel": (f"own @ git+https://i/own@x.whl {HASH}", "build-refused"),
    "an address without a name": (f"https://i/own-1.tar.gz {HASH}", "build-refused"),
    "a directory": (f"./own {HASH}", "build-refused"),
    "a file beside it": (f"own-1.tar.gz {HASH}", "lock-not-exact"),
    "a file that looks like a version": (f"own==1.0.zip {HASH}", "build-refused"),
    "a variable": (f"${{OWN}} {HASH}", "build-refused"),
    "an option for all": (f"--no-binary :all:\nalpha==1 {HASH}", "build-refused"),
    "an option that takes the other one back": (f"alpha==1 {HASH}\n--only-binary=:none:", "build-refused"),
    "an option by its first letters": (f"--no-bin own\nown==1 {HASH}", "build-refused"),
    "an option behind a comment": (f"# head \\\n--no-binary :all:\nalpha==1 {HASH}", "build-refused"),
    "an option behind a form feed in a comment": (f"# head\f--no-binary :all:\nalpha==1 {HASH}", "build-refused"),
    "an option behind another end of a line": (f"# head\u2028--no-binary :all:\nalpha==1 {HASH}", "build-refused"),
    "previews": (f"--pre\nalpha==1 {HASH}", "build-refused"),
    "an option behind a requirement": (f"own==1 \\\n  {HASH} --config-settings=a=b", "build-refused"),
    "a range": (f"alpha>=1 {HASH}", "lock-not-exact"),
}


def refuse(text: str, name: str = "requirements.txt") -> None:
    refuse_builds(Path(name), WheelFile(name, text))


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED)
def test_requirements_that_may_be_built_are_refused(text: str, code: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse(f"{text}\n")
    assert raised.value.code == code


def test_pins_and_wheels_are_not(tmp_path: Path) -> None:
    refuse(
        "# a head -- with dashes\n"
        "--index-url https://i/simple\n--extra-index-url=https://j/simple\n"
        f"alpha==1.0+cu126 ; python_version < '3.13' \\\n    {HASH} \\\n    {HASH}  # via beta\n"
        f"delta==1\t{HASH}\n"
        f"gamma[extra] == 2.0 {HASH}\n"
        f"own @ https://i/own-1%2Bcpu-py3-none-any.whl#subdirectory=x {HASH}\n"
        f"./wheels/other-1-py3-none-any.whl {HASH}\n"
    )


@pytest.mark.parametrize(
    "entry",
    [
        'archive = { url = "https://i/own-1.zip" }',
        'directory = { path = "own" }',
        'vcs = { type = "git", url = "https://i/own" }',
        'sdist = { url = "https://i/own-1.tar.gz" }',
    ],
)
def test_packages_of_a_pylock_that_may_be_built_are_refused(entry: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse(f'{PYLOCK}[[packages]]\nname = "own"\n{entry}\n', "pylock.toml")
    assert raised.value.code == "build-refused"


def test_wheels_of_a_pylock_are_not() -> None:
    refuse(
        f'{PYLOCK}[[packages]]\nname = "own"\nsdist = {{ url = "https://i/own.tar.gz" }}\nwheels = [{WHEEL}]\n'
        '[[packages]]\nname = "other"\narchive = { url = "https://i/other-1-py3-none-any.whl" }\n',
        "pylock.toml",
    )


@pytest.mark.parametrize(
    "text",
    [
        f"--index-url https://i/${{TOKEN}}/simple\nalpha==1 {HASH}\n",
        f"alpha @ https://${{TOKEN}}@i/alpha-1-py3-none-any.whl {HASH}\n",
    ],
)
def test_a_lock_sends_no_variable_of_the_machine_to_an_address(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse_variables(Path("requirements.txt"), WheelFile("requirements.txt", text))
    assert raised.value.code == "lock-not-exact"
    assert "TOKEN" in str(raised.value)


def test_a_variable_in_a_comment_is_none() -> None:
    text = f"# made with ${{TOKEN}}\nalpha==1 {HASH}  # ${{TOKEN}}\n"
    refuse_variables(Path("requirements.txt"), WheelFile("requirements.txt", text))


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
def test_pip_reads_of_the_lines_that_were_judged_no_others(text: str) -> None:
    judged = [*contents_of(text)]
    content = as_lines(judged).encode()
    assert [line for _, line in preprocess(_decode_req_file(content, "requirements.txt"))] == judged
