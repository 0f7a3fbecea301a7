"""The documentation shows the current output of envsolve: every transcript in docs is run again, by a shell.

The machine is the fake driver's, the package indexes are those of tests/cli/worlds.py on the loopback interface. With
ENVSOLVE_UPDATE_SNAPSHOTS set the pages are brought up to date instead.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from envsolve.cli.main import cli
from tests.cli.transcripts import Block, blocks, fenced_again
from tests.fake_driver.builder import Device, FakeDriver
from tests.index.server import IndexServer
from tests.json_documents import require_documented

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
WITH_TRANSCRIPTS = [name for name, path in PAGES.items() if "```console" in path.read_text(encoding="utf-8")]
NOT_RUN = 15
"""Blocks that say why they are not run. Another one is a decision: count it here."""
MACHINE = "NVIDIA GeForce RTX 3090, 8.6, driver 535.183.01, CUDA 12.2"
_MACHINE = re.compile(r"(?P<name>.+), (?P<capability>[\d.]+), driver (?P<driver>[\d.]+), CUDA (?P<cuda>[\d.]+)")
MIRROR = "https://mirror.example.org"
PROGRAM = """\
import sys
import distlib.index
from envsolve.model import release
distlib.index.DEFAULT_INDEX = {url!r} + "/pypi"
release.PYTORCH_INDEX = {whl!r}
from envsolve.cli import main
sys.argv[0] = "envsolve"
main(sys.argv[1:])
"""
_C_LIBRARY = re.compile(r'^(glibc: +|  "glibc": ")\d+\.\d+', re.MULTILINE)
_OF_PACKAGES = re.compile(r'(?<=packages_digest = "sha256:)[0-9a-f]{64}')
"""It covers the addresses of files, and those of this index have its port."""
_ON_THE_BUS = re.compile(r"(?<=  asked pci: )\d+(?= GPUs)")


class Reader:
    """Follows the steps of a page in a separate directory."""

    def __init__(self, directory: Path, driver: FakeDriver, world: IndexServer) -> None:
        self.project = directory / "project"
        self.project.mkdir()
        self._home, self._driver, self._url = directory, driver, world.url
        self._whl = f"{world.url.replace('127.0.0.1', 'localhost')}/whl"  # distinguished from a mirror that is named
        program = directory / "bin" / "envsolve"
        program.parent.mkdir()
        code = shlex.quote(PROGRAM.format(url=world.url, whl=self._whl + "/"))
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -c {code} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        self.machine = MACHINE

    def answer(self, command: str) -> list[str]:
        """The lines on a terminal, without facts of this machine."""
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace(MIRROR, self._url)],
            cwd=self.project,
            env=self._environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stdout, done.stdout
        return self._as_shown(done.stdout).splitlines()

    def write(self, name: str, lines: tuple[str, ...]) -> None:
        """A file of the project, as the page has it."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines).replace(MIRROR, self._url), encoding="utf-8")

    def _environ(self) -> dict[str, str]:
        found = _MACHINE.fullmatch(self.machine)
        if found is None:
            assert self.machine == "no GPU", self.machine
            environ = self._driver.environ(parts=(), devices=())
        else:
            device = Device(found["name"], found["capability"], 24576)
            environ = self._driver.environ(driver=found["driver"], cuda=found["cuda"], devices=[device])
        path = os.pathsep.join([str(self._home / "bin"), environ["PATH"], "/usr/bin", "/bin"])
        return environ | {
            "PATH": path,
            "HOME": str(self._home),
            "XDG_CACHE_HOME": str(self._home / "caches" / self.machine),  # nothing shows that a fake driver was changed
            "PIP_CONFIG_FILE": os.devnull,
            "LC_ALL": "C.UTF-8",
        }

    def _as_shown(self, text: str) -> str:
        text = text.replace(self._whl, "https://download.pytorch.org/whl").replace(self._url, MIRROR)
        text = _C_LIBRARY.sub(r"\g<1>2.39", text.replace(str(self._home), "/home/user"))
        text = _OF_PACKAGES.sub("e9ed684ff3e82341a40c0d5524f2195ef553ec34b328bb9c37eaaa3de8f42e74", text)
        return _ON_THE_BUS.sub("0", text)


@pytest.fixture
def reader(tmp_path: Path, fake_driver: FakeDriver, world: IndexServer) -> Reader:
    return Reader(tmp_path, fake_driver, world)


def run_again(text: str, reader: Reader) -> str:
    """A page with every transcript updated."""
    lines = text.splitlines()
    again: list[str] = []
    done = 0
    for block in blocks(text):
        again += lines[done : block.begin]
        again += _block_again(block, reader)
        done = block.end
    return "\n".join((*again, *lines[done:])) + "\n"


def _block_again(block: Block, reader: Reader) -> list[str]:
    reader.machine = block.says("machine") or reader.machine
    name = block.says("file")
    if name is not None:
        reader.write(name, block.lines)
    if block.language != "console" or block.says("not run") is not None:
        return list(block.lines)
    return fenced_again(block.lines, reader.answer)


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or Path("/proc/driver/nvidia").exists(),
    reason="the pages show answers for linux-64, and a driver of this machine would be seen beside the fake one",
)
@pytest.mark.thorough
@pytest.mark.parametrize("name", WITH_TRANSCRIPTS)
def test_every_transcript_is_up_to_date(name: str, reader: Reader) -> None:
    text = PAGES[name].read_text(encoding="utf-8")
    today = run_again(text, reader)
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        PAGES[name].write_text(today, encoding="utf-8")
    assert today == PAGES[name].read_text(encoding="utf-8")


def test_the_overview_for_agents_links_to_pages() -> None:
    links = re.findall(r"\]\((.*?)\)", (DOCS / "llms.txt").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if f"{link.removesuffix('/')}.md" not in PAGES or not link.endswith("/")] == []


def transcripts() -> Iterator[tuple[str, Block]]:
    for name in WITH_TRANSCRIPTS:
        for block in blocks(PAGES[name].read_text(encoding="utf-8")):
            if block.language == "console":
                yield name, block


def test_commands_that_are_not_run_are_marked_with_a_reason() -> None:
    reasons = [(name, block.says("not run")) for name, block in transcripts() if block.says("not run")]
    assert len(reasons) == NOT_RUN, reasons


def test_every_console_block_starts_with_a_command() -> None:
    assert [name for name, block in transcripts() if not block.lines or not block.lines[0].startswith("$ ")] == []


_COMMAND = re.compile(
    r"^(?: {4}|\$ | {4}\$ )(envsolve (?:-|[a-z]+\b).*)|`(envsolve (?:-|[a-z]+\b)[^`]*)`", re.MULTILINE
)
_END = re.compile(r" *;| +(?:[>|#]|\\\||&&|2>|< )")


def shown_commands() -> Iterator[tuple[str, str]]:
    """Every command of envsolve in a block or between backticks of any page, including those that are not run."""
    for name, path in {**PAGES, "../README.md": DOCS.parent / "README.md"}.items():
        for indented, quoted in _COMMAND.findall(path.read_text(encoding="utf-8")):
            yield name, _END.split(" ".join((indented or quoted).removesuffix("\\").split()))[0]


@pytest.mark.thorough
@pytest.mark.parametrize(("page", "command"), sorted(set(shown_commands())))
def test_every_command_in_the_docs_is_valid(page: str, command: str) -> None:
    """Its arguments are parsed, and nothing is done."""
    _, *words = shlex.split(command)
    if "..." in words or words[0] in ("--help", "--version"):
        return
    context = click.Context(cli, info_name="envsolve")
    name, *rest = words if words[0] in cli.list_commands(context) else ["solve", *words]
    found = cli.get_command(context, name)
    while isinstance(found, click.Group) and rest:
        name, *rest = rest
        found = found.get_command(context, name)
    assert found is not None
    if rest or not isinstance(found, click.Group):
        # in a sentence a command may go without its argument, and what only prints ends the command
        with contextlib.suppress(click.MissingParameter, click.exceptions.Exit):
            found.make_context(name, rest, parent=context)


SHOWN_JSON = [
    (part.partition("\n")[0], text)
    for _, block in transcripts()
    for part in "\n".join(block.lines).removeprefix("$ ").split("\n$ ")
    for text in re.findall(r"^\{\n.*?^\}$", part, re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize(("command", "text"), SHOWN_JSON, ids=[command for command, _ in SHOWN_JSON])
def test_json_in_the_docs_matches_its_schema(command: str, text: str) -> None:
    require_documented(["--json", *shlex.split(command)[1:]], text)


def test_the_docs_show_json() -> None:
    assert len(SHOWN_JSON) >= 9
