"""A pylock.toml of another shape than the specification has is one clear error, wherever it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.boundary.files import FileError
from envsolve.lockfile.pylock_document import pylock_document
from tests.conftest import Envsolve

HEAD = 'lock-version = "1.0"\ncreated-by = "own"\n'
WHEEL = '{ url = "https://files.example.org/own-1.0-py3-none-any.whl", hashes = { sha256 = "00" } }'
SHAPES = {
    "packages are a number": HEAD + "packages = 5\n",
    "packages are a table": HEAD + "[packages]\nname = 1\n",
    "a package is a text": HEAD + 'packages = ["own"]\n',
    "no name": HEAD + '[[packages]]\nversion = "1.0"\n',
    "a name with a space": HEAD + '[[packages]]\nname = "a b"\n',
    "no hashes": HEAD + '[[packages]]\nname = "own"\nwheels = [{ url = "u" }]\n',
    "hashes in a list": HEAD
    + f'[[packages]]\nname = "own"\nwheels = [{WHEEL.replace("{ sha256", "[{ sha256")[:-1]}] }}]\n',
    "wheels are a number": HEAD + '[[packages]]\nname = "own"\nwheels = 3\n',
    "an index that is a list": HEAD + f'[[packages]]\nname = "own"\nversion = "1"\nindex = []\nwheels = [{WHEEL}]\n',
    "no packages": HEAD,
    "another version": HEAD.replace("1.0", "9.0") + "packages = []\n",
    "a version that is none": HEAD.replace('"1.0"', "[]") + "packages = []\n",
    "no lock": "[project]\n",
    "no TOML": "packages = [",
    "too deep": "packages = " + "[" * 100_000,
    "a number of many digits": HEAD + "packages = " + "9" * 5000,
}


WORDS = {
    "create": lambda path, prefix: (prefix, "--lock", path),
    "export": lambda path, _: (path, "--format", "requirements"),
}


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_another_shape_is_refused(text: str) -> None:
    with pytest.raises(FileError):
        pylock_document(text)


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("command", WORDS)
def test_the_commands_say_so(command: str, text: str, tmp_path: Path, envsolve: Envsolve) -> None:
    path = tmp_path / "pylock.toml"
    path.write_text(text, encoding="utf-8")
    words = (
        (str(tmp_path / "env"), "--lock", str(path)) if command == "create" else (str(path), "--format", "requirements")
    )
    done = envsolve(command, *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: lock-unreadable\n"), done.err
    assert not (tmp_path / "env").exists()


def test_what_other_tools_write_is_read() -> None:
    text = f'{HEAD}[[packages]]\nname = "own"\nversion = "1.0"\nwheels = [{WHEEL}]\n[tool.other]\nkey = 1\n'
    assert pylock_document(text)["packages"][0]["name"] == "own"
