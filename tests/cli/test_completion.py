"""What Tab completes: words of commands, options and the matrix, through click and in a real bash."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete

from envsolve.cli.known_values import spelled_as_typed
from envsolve.cli.main import cli
from envsolve.errors import UsageError
from envsolve.matrix import GpuNames, Matrix
from envsolve.matrix.names import gpu_rows
from envsolve.model.host import Platform
from envsolve.model.lock_format import CREATE_FORMATS
from envsolve.model.release import Source
from envsolve.model.request import Policy
from tests.cli.test_command_line import HEAVY
from tests.conftest import Envsolve

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None or sys.platform == "win32", reason="needs bash")


def items(line: str) -> list[CompletionItem[str]]:
    """The completions of the last word of a line; a line that ends with a space ends with an empty word."""
    *before, last = shlex.split(line + "''" if line.endswith(" ") else line)
    return ShellComplete(cli, {}, "envsolve", "_ENVSOLVE_COMPLETE").get_completions(before[1:], last)


def values(line: str) -> list[str]:
    """The values alone."""
    return [item.value for item in items(line)]


def test_a_line_starts_with_a_command(envsolve: Envsolve) -> None:
    shown = values("envsolve ")
    assert {"solve", "create", "matrix", "completion"} <= set(shown)
    assert shown == cli.list_commands(click.Context(cli))
    assert values("envsolve mat") == ["matrix"]
    assert all(item.help for item in items("envsolve "))


def test_a_line_without_a_command_completes_options_of_solve() -> None:
    assert values("envsolve --fr") == values("envsolve solve --fr") == ["--framework"]
    assert values("envsolve --vers") == ["--version"]
    assert values("envsolve -q --fr") == ["--framework"]
    everything = values("envsolve -")
    assert len(everything) == len(set(everything))
    assert {"--version", "--gpu", "--help"} <= set(everything)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("envsolve --platform ", list(Platform)),
        ("envsolve matrix list --platform w", ["win-64"]),
        ("envsolve --source ", list(Source)),
        ("envsolve --prefer ", list(Policy)),
        ("envsolve --format c", ["conda-lock"]),
        ("envsolve create here --format ", list(CREATE_FORMATS)),
        ("envsolve -f py", ["pytorch"]),
        ("envsolve -f jax --framework=tens", ["tensorflow"]),
        ("envsolve explain -f tens", ["tensorflow"]),
        ("envsolve explain --toolkit 11.8", ["11.8"]),
        ("envsolve explain --built-cuda 11.8", ["11.8"]),
        ("envsolve matrix show cud", ["cuda", "cudnn"]),
        ("envsolve --why dr", ["driver"]),
        ("envsolve --cuda 11.", ["11.8"]),
        ("envsolve --color ", ["auto", "always", "never"]),
        ("envsolve validate --device c", ["cpu", "cuda", "cuda:0"]),
        ("envsolve cache cl", ["clear"]),
        ("envsolve completion ", ["bash", "zsh", "fish"]),
        ("envsolve nothing-known --and ", []),
    ],
)
def test_values_are_those_that_exist(line: str, expected: list[str]) -> None:
    found = values(line)
    assert found == expected if line != "envsolve --cuda 11." else set(expected) <= set(found)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--gpu 'RTX 309", ["RTX 3090", "RTX 3090 Ti"]),
        ("--gpu 'rtx 309", ["RTX 3090", "RTX 3090 Ti"]),
        ("--gpu 'GeForce RTX 309", ["GeForce RTX 3090", "GeForce RTX 3090 Ti"]),
        ("--gpu 'NVIDIA GeForce RTX 309", ["NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090 Ti"]),
        ("--gpu 12.", ["12.0", "12.1"]),
        ("--gpu no", ["none"]),
        ("explain --gpu no", []),
    ],
)
def test_a_gpu_may_be_written_informally(line: str, expected: list[str]) -> None:
    assert values(f"envsolve {line}'" if "'" in line else f"envsolve {line}") == expected


def test_a_shortened_name_means_the_same_gpu(matrix: Matrix) -> None:
    gpus = matrix.gpus
    for row in gpu_rows(matrix.document("gpus")):
        name = str(row["name"])
        shortened = spelled_as_typed(name, "")
        assert shortened is not None
        assert capability(gpus, shortened) == capability(gpus, name)


def capability(gpus: GpuNames, name: str) -> object:
    """The meaning of a name, or the reason why it has none."""
    try:
        return gpus.find(name).capabilities
    except UsageError as error:
        return error.code


def test_a_matrix_on_the_line_is_the_one_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "onlyone.toml").write_text("", "utf-8")
    assert values(f"envsolve --matrix {tmp_path} -f ") == ["onlyone"]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("envsolve --host ", "file"),
        ("envsolve -o ", "file"),
        ("envsolve --matrix ", "dir"),
        ("envsolve create ", "dir"),
        ("envsolve create --lock ", "file"),
        ("envsolve doctor --prefix ", "dir"),
        ("envsolve validate --python ", "file"),
        ("envsolve status ", "file"),
        ("envsolve explain ", "file"),
    ],
)
def test_files_and_directories_are_completed_by_the_shell(line: str, kind: str) -> None:
    assert [item.type for item in items(line)] == [kind]


FREE = {
    "exclude",
    *(
        "allow_builds",
        "burn",
        "command",
        "driver",
        "editables",
        "environment",
        "exclude_newer",
        "extra_index_urls",
        "glibc",
    ),
    *(
        "images",
        "index_url",
        "jobs",
        "kubectl",
        "launcher",
        "overrides",
        "program",
        "python",
        "pytorch_index_url",
        "requirements",
        "timeout",
        "upgraded",
        "why_not",
        "words",
    ),
}
"""Versions, addresses, numbers, days, commands and requirements: which no list has."""


def test_every_parameter_with_a_value_is_completed_or_free() -> None:
    unknown = [
        (command.name, it.name)
        for command in all_commands(cli)
        for it in command.params
        if not getattr(it, "is_flag", False)
        and not getattr(it, "count", False)
        and not getattr(it, "hidden", False)
        and it.name not in FREE
        and it.metavar != "INDEX"
        and not it.shell_complete(click.Context(command), "")
    ]
    assert unknown == [], "complete these, or add them to FREE where any value is as good"


def all_commands(group: click.Group) -> Iterator[click.Command]:
    """The commands of a group and of those below it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from all_commands(command)


@pytest.mark.thorough
@pytest.mark.parametrize("words", ["", "--fr", "--gpu RTX", "matrix show py"])
def test_completion_imports_nothing_heavy(words: str) -> None:
    script = (
        "import sys\nfrom envsolve.cli import main\n"
        "try:\n    main([])\nexcept SystemExit:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    given = {"COMP_WORDS": f"envsolve {words}", "COMP_CWORD": str(max(1, len(words.split())))}
    environ = os.environ | given | {"_ENVSOLVE_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stderr.split())
    assert done.stdout.startswith("plain,")
    assert loaded.isdisjoint(HEAVY)
    assert not [it for it in loaded if it.startswith(("envsolve.resolve.", "envsolve.app.", "envsolve.index"))]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_goes_to_stdout(shell: str, envsolve: Envsolve) -> None:
    result = envsolve("completion", shell)
    assert (result.code, result.err) == (0, "")
    assert f"_ENVSOLVE_COMPLETE={shell}_complete" in result.out


def test_an_unknown_shell_is_an_error(envsolve: Envsolve) -> None:
    result = envsolve("completion", "tcsh")
    assert (result.code, result.out) == (2, "")
    assert "'bash', 'zsh', 'fish'" in result.err


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with the program envsolve, as on a PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    program = directory / "envsolve"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m envsolve "$@"\n', "utf-8")
    program.chmod(0o755)
    return directory


def environment(programs: Path) -> dict[str, str]:
    """The variables for a shell that has envsolve on its PATH."""
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {name: value for name, value in os.environ.items() if not name.startswith("ENVSOLVE_")} | {"PATH": path}


@pytest.mark.thorough
@needs_bash
@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        ("envsolve --framew", "envsolve --framework "),
        ('envsolve --gpu "RTX 3090 T', 'envsolve --gpu "RTX 3090 Ti" '),
        ("envsolve --gpu 'rtx 3090 t", "envsolve --gpu 'RTX 3090 Ti' "),
        ("envsolve --framework py", "envsolve --framework pytorch "),
        ("envsolve --matrix /nowhere -f py", "envsolve --matrix /nowhere -f py"),
        ("envsolve create here --host ho", "envsolve create here --host host.json "),
    ],
)
def test_tab_completion_works_in_an_interactive_bash(typed: str, becomes: str, programs: Path, tmp_path: Path) -> None:
    (tmp_path / "host.json").touch()
    assert line_after_tab(typed, environment(programs), tmp_path) == becomes


def line_after_tab(typed: str, environ: dict[str, str], directory: Path) -> str:
    """The line as bash has it after Tab; a key bound by the test writes it into a file."""
    completed, setup = directory / "line", directory / "setup"
    lines = (
        'eval "$(envsolve completion bash)"',
        f"tell() {{ printf '%s|' \"$READLINE_LINE\" > {shlex.quote(str(completed))}; }}",
        "bind -x '\"\\C-g\": tell'",
        "PS1=ready",
    )
    setup.write_text("\n".join(lines), "utf-8")
    environ = environ | {"TERM": "dumb", "INPUTRC": os.devnull}
    terminal, its_end = os.openpty()
    command = [str(BASH), "--noprofile", "--rcfile", str(setup), "-i"]
    shell = subprocess.Popen(
        command, stdin=its_end, stdout=its_end, stderr=its_end, env=environ, cwd=directory, start_new_session=True
    )
    os.close(its_end)
    try:
        read_until(terminal, lambda text: "ready" in text)
        os.write(terminal, f"{typed}\t\x07".encode())
        read_until(terminal, lambda _: completed.exists() and completed.read_text("utf-8").endswith("|"))
    finally:
        os.close(terminal)
        shell.kill()
        shell.wait()
    return completed.read_text("utf-8").removesuffix("|")


def read_until(terminal: int, is_there: Callable[[str], bool]) -> None:
    """Read the output of the shell until a condition holds."""
    seen, end = "", time.monotonic() + 30
    while not is_there(seen):
        assert time.monotonic() < end, seen
        if select.select([terminal], [], [], 0.05)[0]:
            seen += os.read(terminal, 4096).decode("utf-8", "replace")
