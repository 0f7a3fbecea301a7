"""The process that runs py-rattler may end in any way: finished answers count, and unfinished ones are one error."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envsolve.conda.process import ENGINE, started
from envsolve.conda.session import Question, Session, Settings, not_installed
from envsolve.errors import OutsideError

_ANSWERING = """
import json, os, sys
def receive():
    line = sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(int(line))) if line.strip() else None
def send(answer):
    content = json.dumps(answer).encode()
    sys.stdout.buffer.write(b"%d\\n" % len(content) + content)
    sys.stdout.buffer.flush()
settings = receive()
"""
_QUESTION = Question(("conda-forge",), "linux-64", ("alpha",), ())
_RECORD = {
    "name": "alpha",
    "version": "1.0",
    "build": "0",
    "build_number": 0,
    "subdir": "noarch",
    "url": "http://me:hunter2@127.0.0.1/t/tk-1/chan/noarch/alpha-1.0-0.conda",
    "channel": "http://127.0.0.1/t/tk-1/chan/",
    "depends": ["beta"],
}


@contextmanager
def _session(directory: Path, program: str) -> Iterator[Session]:
    engine = directory / "engine.py"
    engine.write_text(_ANSWERING + program)
    with Session(Settings(str(directory)), engine) as session:
        yield session


def test_a_crash_after_the_answer_does_not_matter(tmp_path: Path) -> None:
    program = f"job = receive()\nsend({{'records': [{json.loads(json.dumps(_RECORD))!r}]}})\nos.abort()\n"
    with _session(tmp_path, program) as session:
        (package,) = session.solve(_QUESTION)
    assert (package.name, package.version, package.depends) == ("alpha", "1.0", ("beta",))


def test_credentials_are_not_returned(tmp_path: Path) -> None:
    with _session(tmp_path, f"receive()\nsend({{'records': [{_RECORD!r}]}})\n") as session:
        (package,) = session.solve(_QUESTION)
    assert package.url == "http://127.0.0.1/chan/noarch/alpha-1.0-0.conda"
    assert package.channel == "http://127.0.0.1/chan/"


def test_a_process_that_dies_once_is_restarted(tmp_path: Path) -> None:
    program = (
        f"mark = {str(tmp_path / 'mark')!r}\n"
        "receive()\n"
        "if not os.path.exists(mark):\n    open(mark, 'w').close()\n    os.abort()\n"
        "send({'packages': {'alpha': [['1.0', '0', []]]}})\n"
    )
    with _session(tmp_path, program) as session:
        assert session.packages(("conda-forge",), "linux-64", ("alpha",))["alpha"][0].version == "1.0"


@pytest.mark.parametrize(
    "program",
    [
        "receive()\nsys.exit('something broke')\n",
        "receive()\nsys.stderr.write('something broke')\nsys.stderr.flush()\nos.abort()\n",
        "receive()\nsys.stdout.buffer.write(b'100\\n{')\nsys.stderr.write('something broke')\n",
        "receive()\nsys.stdout.write('no number\\n')\nsys.stderr.write('something broke')\n",
    ],
)
def test_a_process_that_dies_twice_is_one_error_with_its_last_output(program: str, tmp_path: Path) -> None:
    with _session(tmp_path, program) as session, pytest.raises(OutsideError) as caught:
        session.solve(_QUESTION)
    assert caught.value.code == "conda-solver-failed"
    assert caught.value.cause == ("something broke",)


def test_a_hanging_process_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.conda.session._GRACE", 0.1)
    program = "receive()\nsend({'records': []})\nimport time\ntime.sleep(60)\n"
    with _session(tmp_path, program) as session:
        assert session.solve(_QUESTION) == ()


def test_the_engine_ends_with_its_input_at_any_moment(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, started(ENGINE) as process:
        assert process.stdin is not None
        settings = {"cache_directory": str(tmp_path), "mode": "", "channel_alias": None, "user_agent": "test"}
        channel = f"http://127.0.0.1:{server.getsockname()[1]}/slow"
        logins: dict[str, object] = {"mirrors": {}, "hosts": {}}
        job = {"kind": "prepare", "channels": [channel], "logins": logins, "platform": "linux-64", "names": ["python"]}
        for message in ({**settings, "timeout": 60, "retries": 0}, job):
            content = json.dumps(message).encode()
            process.stdin.write(b"%d\n" % len(content) + content)
            process.stdin.flush()
        connection, _ = server.accept()  # and no answer
        with connection:
            process.stdin.close()
            assert process.wait(timeout=10) == 0


def test_without_py_rattler_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("envsolve.conda.process.find_spec", lambda _: None)
    with pytest.raises(OutsideError) as caught:
        Session(Settings(str(tmp_path)))
    assert caught.value.code == "conda-extra-missing"
    assert str(caught.value.hints[0].command).endswith(" -m pip install py-rattler conda-lock")


def test_without_pip_the_hint_uses_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envsolve.boundary.programs.find_spec", lambda _: None)
    monkeypatch.setattr("sys.executable", "/opt/my tools/python")
    command = not_installed().hints[0].command
    assert command == "uv pip install --python '/opt/my tools/python' py-rattler conda-lock"


@pytest.mark.thorough
def test_only_separate_programs_import_rattler() -> None:
    package = Path(sys.modules["envsolve"].__file__ or "").parent
    importing = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(
            line.split()[:2] in (["import", "rattler"], ["from", "rattler"]) or line.strip().startswith("from rattler")
            for line in path.read_text(encoding="utf-8").splitlines()
        )
    ]
    assert sorted(importing) == ["conda/engine.py", "conda/installer.py"]
