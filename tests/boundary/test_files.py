"""Files named by others are read up to a limit, without waiting."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from envsolve.boundary import files
from envsolve.boundary.files import (
    FileError,
    decoded,
    json_value,
    open_argument,
    open_regular,
    read_argument,
    read_bytes,
    read_head,
    read_text,
    replace_file,
    toml_document,
)

LIMIT = 4096
needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes in directories")


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def reason(path: Path | str, *, follow: bool = True) -> str:
    with pytest.raises(FileError) as caught:
        read_bytes(path, LIMIT, follow=follow)
    return caught.value.reason


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "requirements.in"
    path.write_bytes(b"numpy\n")
    assert read_bytes(path, LIMIT) == b"numpy\n"
    assert read_argument(str(path), LIMIT) == b"numpy\n"


@pytest.mark.parametrize("name", ["missing", "file/below"])
def test_a_missing_file_gives_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    assert read_bytes(tmp_path / name, LIMIT) is None
    assert read_argument(str(tmp_path / name), LIMIT) is None


def test_the_size_limit_is_inclusive(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * LIMIT)
    assert read_bytes(path, LIMIT) == b"a" * LIMIT
    path.write_bytes(b"a" * (LIMIT + 1))
    assert reason(path) == "it is longer than 4 KiB"


def test_the_beginning_of_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * LIMIT + b"b" * 200_000)
    assert read_head(path, LIMIT) == b"a" * LIMIT
    assert read_head(tmp_path / "missing", LIMIT) is None
    with pytest.raises(FileError, match="directory"):
        read_head(tmp_path, LIMIT)


@needs_fifo
def test_only_a_regular_file_is_opened(tmp_path: Path, fifo: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    with open_regular(tmp_path / "file") as file:
        assert (file.read(3), file.read()) == (b"con", b"tent")
    for path in (fifo, tmp_path, tmp_path / "missing", Path("/dev/zero")):
        with pytest.raises(OSError, match=r"pipe|directory|No such file"):
            open_regular(path)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is not JSON: Expecting value"),
        (b"[" * 100_000, "it is nested too deep"),
        (b'"\xff"', "it is not UTF-8"),
        (b"1" * 5000, "it is not JSON: Exceeds the limit"),
    ],
)
def test_invalid_json_is_one_error(content: bytes, why: str) -> None:
    with pytest.raises(FileError) as caught:
        json_value(content)
    assert caught.value.reason.startswith(why)
    assert json_value(b'{"a": [1]}') == {"a": [1]}


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "directory" in reason(tmp_path)
    with pytest.raises(FileError, match="directory"):
        read_argument(str(tmp_path), LIMIT)


def test_an_impossible_file_name_is_refused() -> None:
    assert reason("a\0b") == "its name is not a valid file name"


@needs_fifo
def test_a_fifo_without_a_writer_is_refused_at_once(fifo: Path) -> None:
    assert reason(fifo) == "it is a pipe or a device, not a regular file"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
def test_a_link_to_an_endless_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/dev/zero")
    assert reason(tmp_path / "link") == "it is a pipe or a device, not a regular file"
    with pytest.raises(FileError, match="device"):
        read_argument("/dev/zero", LIMIT)


def test_the_null_device_is_an_empty_argument() -> None:
    assert read_argument(os.devnull, LIMIT) == b""


@needs_fifo
def test_a_link_is_refused_if_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "link", LIMIT) == b"content"
    assert reason(tmp_path / "link", follow=False) == "it is a link"


@needs_fifo
def test_a_pipe_that_the_user_names_is_read_to_its_end(fifo: Path) -> None:
    writer = threading.Thread(target=fifo.write_bytes, args=(b"numpy\n" * 100,))
    writer.start()
    assert read_argument(str(fifo), LIMIT) == b"numpy\n" * 100
    writer.join()


@needs_fifo
def test_a_pipe_that_no_program_writes_to_is_an_error(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OPENING", 0.1)
    with pytest.raises(FileError, match="no program writes to this pipe"):
        read_argument(str(fifo), LIMIT)
    with pytest.raises(TimeoutError, match="no program writes to this pipe"), open_argument(str(fifo)) as stream:
        stream.read()


@needs_fifo
def test_a_pipe_whose_program_is_silent_for_too_long_is_an_error(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OPENING", 0.1)
    monkeypatch.setattr(files, "SILENCE", 0.1)
    writer = os.open(fifo, os.O_RDWR)
    try:
        with pytest.raises(FileError, match=r"nothing was written to this pipe for 0\.1 seconds"):
            read_argument(str(fifo), LIMIT)
    finally:
        os.close(writer)


@needs_fifo
def test_a_slow_program_is_waited_for(fifo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "OPENING", 0.1)
    writer = os.open(fifo, os.O_RDWR)

    def write() -> None:
        os.write(writer, b"numpy")
        os.close(writer)

    timer = threading.Timer(0.4, write)
    timer.start()
    assert read_argument(str(fifo), LIMIT) == b"numpy"
    timer.join()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no device here that never ends")
def test_a_device_in_place_of_standard_input_is_refused() -> None:
    for call in (f"read_argument('-', {LIMIT})", "open_argument('-')"):
        program = f"from envsolve.boundary.files import *; {call}"
        with Path("/dev/zero").open("rb") as device:
            done = subprocess.run([sys.executable, "-c", program], stdin=device, capture_output=True, check=False)
        assert b"it is a device, not a file" in done.stderr


@needs_fifo
def test_a_pipe_is_not_read_beyond_the_limit(fifo: Path) -> None:
    program = "import sys\nwith open(sys.argv[1], 'wb') as out:\n    while True: out.write(bytes(65536))"
    writer = subprocess.Popen([sys.executable, "-c", program, str(fifo)], stderr=subprocess.DEVNULL)
    try:
        with pytest.raises(FileError, match="longer than 4 KiB"):
            read_argument(str(fifo), LIMIT)
    finally:
        writer.kill()
        writer.wait()


def test_standard_input_is_read_up_to_the_limit() -> None:
    program = f"from envsolve.boundary.files import read_argument; print(read_argument('-', {LIMIT}))"

    def answer(text: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, check=False)

    assert answer(b"numpy").stdout.strip() == b"b'numpy'"
    assert b"longer than 4 KiB" in answer(b"a" * (LIMIT + 1)).stderr


@pytest.mark.parametrize("content", [b"caf\xc3\xa9", b"\xef\xbb\xbfcaf\xc3\xa9", "café".encode("utf-16")])
def test_text_is_utf_8_or_the_utf_16_of_powershell(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "text").write_bytes(content)
    assert read_text(tmp_path / "text", LIMIT) == "café"


@pytest.mark.parametrize("content", [b"caf\xe9", b"\xff\xfea"])
def test_other_encodings_are_refused(content: bytes) -> None:
    with pytest.raises(FileError, match="not UTF-8"):
        decoded(content)


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb =\n", 2), ("a = " + "9" * 5000, None), ("a = " + "[" * 5000, None), ("a = '\x1b'", 1)]
)
def test_invalid_toml_is_an_error_on_one_line(text: str, line: int | None) -> None:
    with pytest.raises(FileError) as caught:
        toml_document(text)
    assert caught.value.reason.startswith(("it is not TOML: ", "it is nested too deep"))
    assert caught.value.reason.isprintable()
    assert caught.value.line == line


def test_toml_and_json_are_read_from_text() -> None:
    assert toml_document("[a]\nb = [1]\n") == {"a": {"b": [1]}}
    assert json_value('{"a": 1}') == json_value(b'{"a": 1}') == {"a": 1}


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match="directory"):
        replace_file(tmp_path / "directory", b"new")
    assert sorted(it.name for it in tmp_path.iterdir()) == ["directory", "file"]
