"""A pip that reads no pylock.toml is told the same files as hashed requirements."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envsolve.create.pylock import requirements_of
from envsolve.errors import UsageError

HEAD = 'lock-version = "1.0"\ncreated-by = "test"\n'
WHEEL = (
    '[[packages.wheels]]\nname = "{0}-1.0-py3-none-any.whl"\nurl = "https://i/{0}.whl"\nhashes = {{ sha256 = "{1}" }}\n'
)


def entry(name: str, *lines: str, digest: str = "0a") -> str:
    told = "".join(f"{line}\n" for line in lines)
    return f'[[packages]]\nname = "{name}"\nversion = "1.0"\n{told}' + WHEEL.format(name, digest)


def told(*entries: str) -> list[str]:
    return requirements_of(HEAD + "".join(entries), Path(sys.executable), os.environ).splitlines()


def test_pins_have_the_hashes_of_their_files_and_indexes_are_named_once() -> None:
    first, second = 'index = "https://i/simple"', 'index = "https://j/whl"'
    assert told(entry("alpha", first), entry("beta", second), entry("gamma", first)) == [
        "--index-url https://i/simple",
        "--extra-index-url https://j/whl",
        "alpha==1.0 --hash=sha256:0a",
        "beta==1.0 --hash=sha256:0a",
        "gamma==1.0 --hash=sha256:0a",
    ]


def test_what_is_for_another_interpreter_is_left_out() -> None:
    here = f"marker = \"sys_platform == '{sys.platform}' and python_version > '3.0'\""
    assert told(entry("alpha", here), entry("beta", "marker = \"python_version < '3'\"")) == [
        "alpha==1.0 --hash=sha256:0a"
    ]


def test_an_archive_is_named_by_its_address() -> None:
    archive = '{ url = "https://i/own.zip", subdirectory = "x", hashes = { sha256 = "0b" } }'
    (line,) = told(f'[[packages]]\nname = "own"\narchive = {archive}\n')
    assert line == "own @ https://i/own.zip#subdirectory=x --hash=sha256:0b"


def hostile(
    name: str = "own",
    version: str = "1.0",
    algorithm: str = "sha256",
    digest: str = "0a",
    index: str = "https://i/simple",
) -> str:
    head = f'[[packages]]\nname = "{name}"\nversion = "{version}"\nindex = "{index}"\n'
    return f'{head}[[packages.wheels]]\nurl = "https://i/own.whl"\nhashes = {{ "{algorithm}" = "{digest}" }}\n'


OPTION = "--no-binary=:all:"
BROKEN = {
    "without files": '[[packages]]\nname = "own"\n',
    "without a name": '[[packages]]\nversion = "1"\n',
    "an option in the name": hostile(name=OPTION),
    "a line in the name": hostile(name=f"own\\n{OPTION}"),
    "a line in the version": hostile(version=f"1.0\\n{OPTION}"),
    "a line in the index": hostile(index=f"https://i\\n{OPTION}"),
    "a line of another kind in the index": hostile(index=f"https://i\\u2028{OPTION}"),
    "an option for the index": hostile(index=OPTION),
    "a variable in the index": hostile(index="https://i/${TOKEN}"),
    "a line in an algorithm": hostile(algorithm=f"sha256:0a\\n{OPTION}\\n"),
    "a line in a digest": hostile(digest=f"0a\\n{OPTION}"),
    "a line in an address": (
        '[[packages]]\nname = "own"\narchive = { url = "https://i/o.whl\\n-r x", hashes = { a = "0" } }\n'
    ),
    "a line in a folder": (
        '[[packages]]\nname = "own"\narchive = '
        '{ url = "https://i/o.whl", subdirectory = "x\\n-r x", hashes = { a = "0" } }\n'
    ),
}


def test_an_entry_of_sound_words_is_no_hostile_one() -> None:
    assert told(hostile()) == ["--index-url https://i/simple", "own==1.0 --hash=sha256:0a"]


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_an_entry_that_pip_cannot_be_told_is_refused(broken: str) -> None:
    with pytest.raises(UsageError) as raised:
        told(broken)
    assert raised.value.code == "lock-unreadable"
