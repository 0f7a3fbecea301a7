"""Files of a checkout that are not regular, lead outside or never end: one clear error at once, and nothing is lost.

The commands run in processes of their own with bounded memory, so that what would take all of it ends.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.index.store import Store
from tests.conftest import Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has neither FIFOs nor /dev/zero")

PROJECT = """\
[tool.envsolve]
requirements = ["alpha"]
python = "3.12.4"
gpus = ["none"]
platforms = ["linux-64"]
index-url = "{url}"
outputs = ["pylock.toml"]
"""
MEMORY = 2 << 30
PATIENCE = 20.0
"""Seconds; what waits for ever takes longer, on a slow machine too."""


class Checkout:
    """A project in a directory next to others, and the commands in it."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory, self.outside = directory / "project", directory / "outside"
        self.directory.mkdir()
        self.outside.mkdir()
        self._text = PROJECT.format(url=url)
        self.write("pyproject.toml", self._text)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text, encoding="utf-8")
        return path

    def say(self, more: str) -> None:
        self.write("pyproject.toml", self._text + more)

    def __call__(self, *words: str, stdin: int = subprocess.DEVNULL) -> Result:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("ENVSOLVE_", "PIP_", "UV_"))
        }
        environ = {**inherited, "PIP_CONFIG_FILE": os.devnull, "HOME": str(self.outside.parent)}
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "envsolve", *words],
            cwd=self.directory,
            env=environ,
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        )
        assert time.monotonic() - started < PATIENCE
        assert "Traceback" not in done.stderr
        assert "internal-error" not in done.stderr
        return Result(done.returncode, done.stdout, done.stderr)

    def refused(self, *words: str) -> str:
        done = self(*words)
        assert (done.code, done.out) == (2, ""), done.err
        return done.err


@pytest.fixture(scope="module")
def index() -> Iterator[IndexServer]:
    with IndexServer(recorded=False) as server:
        server.add("alpha", [wheel("alpha", "1.0")])
        yield server


@pytest.fixture
def checkout(tmp_path: Path, index: IndexServer) -> Checkout:
    return Checkout(tmp_path, index.index_url)


def put(kind: str, path: Path) -> None:
    """A file of a kind that cannot be read to its end."""
    match kind:
        case "zero":
            path.symlink_to("/dev/zero")
        case "fifo":
            os.mkfifo(path)
        case _:
            path.symlink_to("/dev/urandom")


KINDS = pytest.mark.parametrize("kind", ["zero", "fifo", "random"])


@pytest.mark.thorough
@KINDS
@pytest.mark.parametrize("key", ["requirement-files", "constraint-files", "hosts"])
def test_a_file_that_a_project_names(key: str, kind: str, checkout: Checkout) -> None:
    put(kind, checkout.directory / "named")
    text = checkout.directory.joinpath("pyproject.toml").read_text(encoding="utf-8")
    checkout.write("pyproject.toml", text.replace('gpus = ["none"]\n', "") if key == "hosts" else text)
    with (checkout.directory / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f'{key} = ["named"]\n')
    assert "named is not a regular file" in checkout.refused("lock")


@pytest.mark.thorough
@KINDS
def test_the_project_file_itself(kind: str, checkout: Checkout) -> None:
    path = checkout.directory / "pyproject.toml"
    path.unlink()
    put(kind, path)
    assert "pyproject.toml: it is a pipe or a device" in checkout.refused("lock")


@pytest.mark.thorough
@KINDS
def test_the_lock_that_is_there(kind: str, checkout: Checkout) -> None:
    put(kind, checkout.directory / "pylock.toml")
    checkout.refused("lock")
    checkout.refused("lock", "--check")
    checkout.refused("lock", "--force")


@pytest.mark.thorough
@KINDS
def test_a_file_that_another_requirements_file_includes(kind: str, checkout: Checkout) -> None:
    put(kind, checkout.directory / "more.in")
    checkout.write("asked.in", "-r more.in\n")
    checkout.say('requirement-files = ["asked.in"]\n')
    assert "more.in: it is a pipe or a device" in checkout.refused("lock")


@pytest.mark.thorough
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
@pytest.mark.parametrize(
    "words", [("solve", "-f", "pytorch", "--host"), ("solve", "--format", "pylock", "-r"), ("explain",), ("status",)]
)
def test_a_device_on_the_command_line(words: tuple[str, ...], device: str, checkout: Checkout) -> None:
    done = checkout(*words, device)
    assert done.code in (1, 2)
    assert "device" in done.err or "is not a regular file" in done.err


@pytest.mark.thorough
def test_requirements_files_that_include_each_other_many_times_are_read_once(checkout: Checkout) -> None:
    for number in range(19):
        checkout.write(f"{number}.in", f"-r {number + 1}.in\n" * 4)
    checkout.write("19.in", "alpha\n")
    checkout.say('requirement-files = ["0.in"]\n')
    assert checkout("lock").code == 0


@pytest.mark.thorough
def test_a_file_used_as_requirement_and_constraint_is_both(checkout: Checkout) -> None:
    checkout.write("a.in", "-c b.in\n-r b.in\n")
    checkout.write("b.in", "alpha\n")
    checkout.say('requirement-files = ["a.in"]\n')
    assert checkout("lock").code == 0
    assert "-r b.in" in (checkout.directory / "pylock.toml").read_text(encoding="utf-8")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[tool.envsolve]\nrequirements = " + "9" * 100_000, id="digits"),
        pytest.param("[tool.envsolve]\nrequirements = " + "[" * 100_000, id="brackets"),
        pytest.param("[tool.envsolve]\n" + "".join(f"k{it} = 1\n" for it in range(100_000)), id="keys"),
        pytest.param("[tool.envsolve]\n#" + "x" * (5 << 20), id="length"),
    ],
)
def test_a_project_file_that_is_no_sensible_toml(text: str, checkout: Checkout) -> None:
    checkout.write("pyproject.toml", text)
    assert len(checkout.refused("lock")) < 10_000


NINES = "9" * 5000
"""More digits than Python reads as a number, and packaging as a version."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("solve", "-f", f"pytorch=={NINES}", "--gpu", "8.6", "--driver", "580.65.06"),
        ("solve", "-f", "pytorch", "--python", f">={NINES}", "--gpu", "8.6", "--driver", "580.65.06"),
        ("solve", f"alpha=={NINES}", "--gpu", "none", "--format", "pylock"),
    ],
)
def test_a_version_with_thousands_of_digits_is_refused(words: tuple[str, ...], checkout: Checkout) -> None:
    assert len(checkout.refused(*words)) < 3000


@pytest.mark.thorough
def test_a_lock_with_a_version_of_thousands_of_digits_is_read(checkout: Checkout) -> None:
    package = f'[[package]]\nname = "alpha"\nversion = "{NINES}"\ngroups = ["default"]\n'
    checkout.write("pdm.lock", f'[metadata]\nlock_version = "4.5.0"\ngroups = ["default"]\n{package}')
    assert checkout("status", "pdm.lock").code in (0, 1, 2)


@pytest.mark.thorough
def test_an_output_with_a_name_that_no_system_takes(checkout: Checkout) -> None:
    checkout.write("pyproject.toml", f'[tool.envsolve]\nrequirements = ["alpha"]\noutputs = ["{"x" * 5000}.txt"]\n')
    message = checkout.refused("lock")
    assert "File name too long" in message
    assert "output-failed" not in message


OURS = "# Made by envsolve 0.1.0:\nnothing = 1\n"


@pytest.mark.thorough
@pytest.mark.parametrize("words", [("lock",), ("lock", "--force")])
@pytest.mark.parametrize("there", [True, False])
def test_an_output_that_is_a_link_out_of_the_project(there: bool, words: tuple[str, ...], checkout: Checkout) -> None:
    target = checkout.outside / "pylock.toml"
    if there:
        target.write_text(OURS, encoding="utf-8")
    (checkout.directory / "pylock.toml").symlink_to(target)
    assert "pylock.toml was not written: pylock.toml is a link" in checkout.refused(*words)
    assert (target.read_text(encoding="utf-8") if target.exists() else None) == (OURS if there else None)


@pytest.mark.thorough
def test_an_output_below_a_link_out_of_the_project(checkout: Checkout) -> None:
    (checkout.directory / "locks").symlink_to(checkout.outside)
    text = (checkout.directory / "pyproject.toml").read_text(encoding="utf-8")
    checkout.write("pyproject.toml", text.replace('"pylock.toml"', '"locks/pylock.toml"'))
    assert "locks/pylock.toml was not written: locks is a link" in checkout.refused("lock")
    assert list(checkout.outside.iterdir()) == []


@pytest.mark.thorough
def test_init_writes_through_no_link_either(checkout: Checkout) -> None:
    (checkout.directory / "pyproject.toml").unlink()
    (checkout.directory / ".github").symlink_to(checkout.outside)
    arguments = ("-f", "pytorch", "--gpu", "8.6", "--driver", "580.65.06", "-o", "environment.yml")
    assert ".github is a link" in checkout.refused("init", *arguments, "--ci", "github")
    assert list(checkout.outside.iterdir()) == []
    assert not (checkout.directory / "pyproject.toml").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("text", ["numpy\n", "# notes\n", "numpy==2.1.3\n"])
def test_output_does_not_replace_a_file_that_envsolve_did_not_write(
    text: str, checkout: Checkout, index: IndexServer
) -> None:
    path = checkout.write("requirements.txt", text)
    words = ("solve", "alpha", "--gpu", "none", "--python", "3.12", "--index-url", index.index_url)
    assert checkout.refused(*words, "-o", "requirements.txt").startswith("error: not-a-lock\n")
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.thorough
def test_a_requirements_file_with_many_spellings_is_read_once(checkout: Checkout) -> None:
    (checkout.directory / "here").symlink_to(".")
    (checkout.directory / "folder").mkdir()
    for number in range(18):
        places = ("", "here/", "folder/../", "here/here/")
        checkout.write(f"{number}.in", "".join(f"-r {it}{number + 1}.in\n" for it in places))
    checkout.write("18.in", "alpha\n")
    checkout.say('requirement-files = ["0.in"]\n')
    assert checkout("lock").code == 0


@pytest.mark.thorough
def test_a_requirements_file_that_includes_itself_by_another_name_is_refused(checkout: Checkout) -> None:
    (checkout.directory / "here").symlink_to(".")
    checkout.write("a.in", "-r here/a.in\nalpha\n")
    checkout.say('requirement-files = ["a.in"]\n')
    assert "a file cannot include itself" in checkout.refused("lock")


@pytest.mark.thorough
@pytest.mark.parametrize("key", ["requirement-files", "constraint-files", "hosts"])
def test_a_project_does_not_read_standard_input(key: str, checkout: Checkout) -> None:
    text = checkout.directory.joinpath("pyproject.toml").read_text(encoding="utf-8")
    checkout.write("pyproject.toml", text.replace('gpus = ["none"]\n', "") if key == "hosts" else text)
    with (checkout.directory / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write(f'{key} = ["-"]\n')
    assert "- is standard input, but a project needs files" in checkout.refused("lock")


@pytest.mark.thorough
@KINDS
@pytest.mark.parametrize("part", ["index.html", "alpha-1.0-py3-none-any.whl"])
def test_an_index_in_a_folder_of_the_checkout(part: str, kind: str, checkout: Checkout) -> None:
    folder = checkout.directory / "simple/alpha"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text('<a href="alpha-1.0-py3-none-any.whl">alpha-1.0-py3-none-any.whl</a>')
    (folder / part).unlink(missing_ok=True)
    put(kind, folder / part)
    words = ("solve", "alpha", "--gpu", "none", "--format", "pylock", "--index-url", folder.parent.as_uri())
    done = checkout(*words)
    assert (done.code, done.out) == (3, "")
    assert "it is a pipe or a device" in done.err


@pytest.mark.thorough
@KINDS
@pytest.mark.parametrize("name", ["uv.toml", "envsolve.toml", "requirements.in", "environment.yml", "uv.lock"])
def test_a_file_that_is_looked_for_in_the_checkout(name: str, kind: str, checkout: Checkout) -> None:
    put(kind, checkout.directory / name)
    for words in (("lock",), ("status",), ("init", "--dry-run", "-f", "pytorch", "--gpu", "none")):
        checkout(*words)


@pytest.mark.thorough
@KINDS
def test_certificates_that_a_variable_names(
    kind: str, checkout: Checkout, index: IndexServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(kind, checkout.outside / "ca.pem")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(checkout.outside / "ca.pem"))
    url = index.index_url.replace("http:", "https:")
    words = ("solve", "alpha", "--gpu", "none", "--format", "pylock", "--index-url", url)
    assert "it is a pipe or a device" in checkout.refused(*words)


@pytest.mark.thorough
def test_a_huge_cached_index_page_is_not_loaded(checkout: Checkout, index: IndexServer) -> None:
    words = ("lock", "--cache-dir", str(checkout.outside))
    assert checkout(*words).code == 0
    path = checkout.directory / "pylock.toml"
    right = path.read_text(encoding="utf-8")
    path.unlink()
    found = b"(" * 1000  # lists of 700 million values, as Python's marshal reads it
    Store(checkout.outside).write("projects", f"{index.index_url}alpha/", found)
    assert checkout(*words).code == 0
    assert path.read_text(encoding="utf-8") == right


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words",
    [
        ("explain",),
        ("explain", "-"),
        ("solve", "-r", "-", "--gpu", "none", "--format", "pylock"),
        ("solve", "-f", "pytorch", "--host", "-"),
    ],
)
def test_a_device_in_the_place_of_standard_input(words: tuple[str, ...], checkout: Checkout) -> None:
    with Path("/dev/zero").open("rb") as device:
        done = checkout(*words, stdin=device.fileno())
    assert (done.code, done.out) == (2, "")
    assert "it is a device, not a file" in done.err
