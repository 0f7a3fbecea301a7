"""Commands for the installer, the interpreter and the shell that a text shows.

Findings name commands as everyone knows them, ``pip install NAME``. In the environment of a text there may be no pip
(uv), another Python on PATH (a portable program), or an installer that undoes what pip does (uv's projects, pixi).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from envsolve.diagnose.case import Case
from envsolve.diagnose.environment.commands import Shell
from envsolve.model.finding import Finding

_PIP = re.compile(r"pip (?:install|uninstall|list|show|check|freeze)\b")
_PIP_OF_PYTHON = re.compile(r"python -m (?=pip (?:install|uninstall|list|show|check|freeze)\b)")
"""What an environment of uv does not have, and a notebook does not run: pip as a module of the first Python on PATH."""
_PYTHON = re.compile(r"python3? -[cm] ")
_OF_PYTHON = re.compile(r"(?:python3? -[cm]|pip|envsolve) ")
"""What changes or reads an environment of Python."""
_PIP_ALONE = re.compile(r" (?:-r|-e|-y|--no-deps|--no-build-isolation|--no-binary|--target|--user|--find-links|-f)\b")
"""Options of pip that ``uv add`` does not have, or that are for once."""
_INDEX = re.compile(r" --(?:extra-)?index-url (?P<url>\S+)")
_CONDA = re.compile(r"conda (?:install|create -n \w+) (?:-y )?(?:-c conda-forge )?(?P<specs>(?!-)[^-].*)")
_CONDA_FOR_OTHERS = re.compile(r"(?P<setting>CONDA_OVERRIDE_\w+=\S+) conda (?:install|env|create)\b.*")
_QUOTED = re.compile(r"(?<!\S)'([^']*)'(?!\S)")
_ASSIGNED = re.compile(r"(\w+)=(.*)", re.DOTALL)


RESTART = "Then restart the notebook's kernel."
PACKAGED = "The program contains its own packages, which pip does not change: install a newer release of it."
OF_NIX = "Nix makes these packages, and pip does not change them: do it in their Nix expression (config.cudaSupport)."


def for_installer(finding: Finding, case: Case) -> Finding:
    """``finding`` with its commands, and those that tell its causes apart, for what ``case`` is installed with."""
    unchanged = PACKAGED if case.clue("frozen") is not None else OF_NIX if case.clue("nix") is not None else None

    def all_typed(commands: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(it for command in commands for it in typed(command, case)))

    def to_the_end(fix: str, commands: tuple[str, ...]) -> str:
        """The fix; a running notebook keeps what it has imported, and pip does not reach what is not its own."""
        if unchanged is not None and any(map(_OF_PYTHON.match, commands)):
            return f"{fix} {unchanged}"
        changed = any(it.startswith(("%pip install", "%pip uninstall")) for it in commands)
        return f"{fix} {RESTART}" if changed and "restart" not in fix.casefold() else fix

    def without_python(commands: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(it for it in commands if not (unchanged is not None and _OF_PYTHON.match(it)))

    causes = tuple(
        it._replace(
            fix=to_the_end(it.fix, all_typed(it.commands)),
            commands=without_python(all_typed(it.commands)),
            check=" && ".join(typed(it.check, case)) if it.check else "",
        )
        for it in finding.possible_causes
    )
    commands = all_typed(finding.commands)
    fix = to_the_end(finding.fix, commands)
    return finding._replace(fix=fix, commands=without_python(commands), possible_causes=causes)


def typed(command: str, case: Case) -> tuple[str, ...]:
    """``command`` as it is typed there, on Windows as several where it sets variables."""
    made = _with_installer(command, case)
    return tuple(_on_windows(made, case)) if case.windows else (made,)


def _with_installer(command: str, case: Case) -> str:
    if (portable := case.clue("portable")) is not None and case.windows:
        folder = re.sub(r"\\+", r"\\", portable)
        return _of_portable(command, rf"{folder}\python_embeded" if folder.endswith("_portable") else folder)
    if (named := case.every("program_venv")) and case.windows and not {"uv", "uv_project"} & case.clues.keys():
        folder = next((re.sub(r"\\+", r"\\", it) for it in named if "\\" in it), "venv")
        return _of_portable(command, rf"{folder}\Scripts")
    if case.clue("pixi") is not None:
        return _of_pixi(command)
    return _in_environment(command, case)


def _in_environment(command: str, case: Case) -> str:
    """A command of pip or Python for what installs into the environment, or runs in it."""
    tool, project = case.clue("uv_tool"), case.clue("uv_project") is not None
    of_uv = tool is not None or project or case.clue("uv") is not None
    if of_uv or case.clue("notebook") is not None:
        command = _PIP_OF_PYTHON.sub("", command)
    if _PYTHON.match(command):
        return _of_python(command, case)
    if not _PIP.match(command):
        return command
    if project and tool is None and command.startswith("pip install") and not _PIP_ALONE.search(command):
        return _of_uv_project(command)
    if of_uv:
        return _of_uv(command, "" if tool is None else f" --python {tool}")
    if case.clue("poetry") is not None:
        return f"poetry run {command}"
    return f"%{command}" if case.clue("notebook") is not None else command


def _of_python(command: str, case: Case) -> str:
    """A command of Python, which a project of uv or Poetry starts in its environment, and a notebook in a shell."""
    if case.clue("uv_tool") is not None:
        return f"{case.clue('uv_tool')}/bin/{command}" if not case.windows else command
    if case.clue("uv_project") is not None:
        return f"uv run {command}"
    if case.clue("poetry") is not None and case.clue("uv") is None:
        return f"poetry run {command}"
    return f"!{command}" if case.clue("notebook") is not None and case.clue("uv") is None else command


def _of_portable(command: str, folder: str) -> str:
    python = rf"{folder}\python.exe"
    python = f'"{python}"' if " " in python else python
    if _PIP.match(command):
        return f"{python} -m {command}"
    return f"{python}{command.removeprefix('python')}" if command.startswith("python -") else command


def _of_uv(command: str, options: str = "") -> str:
    _, verb, *_ = command.split(" ")
    return f"uv pip {verb}{options}{command.removeprefix(f'pip {verb}').replace(' -y ', ' ')}"


def _of_uv_project(command: str) -> str:
    """``uv add``, which notes the package and its index in the project: the next sync keeps them."""

    def index(match: re.Match[str]) -> str:
        host = match["url"].partition("://")[2].partition("/")[0]
        return f" --index {host.split('.')[-2] if '.' in host else 'extra'}={match['url']}"

    specs = command.removeprefix("pip install ").replace("--force-reinstall", "--reinstall")
    specs = re.sub(r"(?<!\S)(?:-U|--upgrade|--no-cache-dir) ", "", specs).replace("--pre ", "--prerelease allow ")
    return f"uv add {_INDEX.sub(index, specs)}"


def _of_pixi(command: str) -> str:
    if (match := _CONDA.fullmatch(command)) is not None:
        return f"pixi add {match['specs']}"
    if (match := _CONDA_FOR_OTHERS.fullmatch(command)) is not None:
        return f"{match['setting']} pixi install"
    if _PYTHON.match(command):
        return f"pixi run {command}"
    if command.startswith("pip install ") and " -" not in command.replace(" -U ", " "):
        return f"pixi add --pypi {command.removeprefix('pip install ').removeprefix('-U ')}"
    return command


def _on_windows(command: str, case: Case) -> Iterator[str]:
    """A command of a POSIX shell for that of Windows; one with paths of Windows or with variables as it is."""
    shell = Shell.POWERSHELL if case.clue("powershell") is not None else Shell.CMD
    if "$" in command or "\\" in command or "|" in command:
        # of a portable Python only the quotes are not those of Windows
        yield _QUOTED.sub(r'"\1"', command) if '"' not in command and "$" not in command else command
        return
    words = shlex.split(command) if command.count('"') % 2 == 0 and command.count("'") % 2 == 0 else []
    match words:
        case [] | ["set", *_]:
            yield command
        case ["unset", *names]:
            yield from shell.unset(names)
        case ["export", assigned] if (match := _ASSIGNED.fullmatch(assigned)) is not None:
            yield shell.set(match[1], match[2])
        case [assigned, *rest] if (match := _ASSIGNED.fullmatch(assigned)) is not None and rest:
            yield shell.set(match[1], match[2])
            yield from _on_windows(shlex.join(rest), case)
        case _:
            yield _QUOTED.sub(r'"\1"', command) if '"' not in command else command
