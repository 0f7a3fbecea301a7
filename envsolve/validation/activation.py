"""Activate an environment for its probes: libraries find their files, and packages get their variables.

An environment is tested as its user runs it, so one that is not active is activated for its probes only: its programs
come first on PATH, and the variables (conda-meta/state) and scripts (etc/conda/activate.d) of a conda prefix are
applied.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.answers import Answer, ProgramRunner
from envsolve.boundary.files import FileError, json_value, read_bytes
from envsolve.boundary.programs import find_program, is_variable
from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding, Severity
from envsolve.model.note import Note
from envsolve.validation.inventory import Inventory

IS_WINDOWS = os.name == "nt"
SCRIPTS = "etc/conda/activate.d"
STATE = "conda-meta/state"
SECONDS = 10.0
"""Time limit for the scripts of all packages together."""
_LONGEST_STATE = 1024 * 1024
_UNSET = "***unset***"
"""The value of a variable that conda does not set (CONDA_ENV_VARS_UNSET_VAR in conda.base.constants)."""
_SOURCE_ALL = """
readonly envsolve_answer="$1"
for envsolve_script in "$CONDA_PREFIX"/etc/conda/activate.d/*.sh; do
    printf '%s\\0' "$envsolve_script" >> "$envsolve_answer"
    . "$envsolve_script"
done
exec "$0" -I -S -c '
import json, os, sys
with open(sys.argv[1], "a") as file:
    json.dump(dict(os.environ), file)
' "$envsolve_answer"
"""
"""The shell writes the name of each script before it runs it; envsolve's own Python writes the variables at the end."""
_OF_THE_SHELL = ("_", "SHLVL", "PWD", "OLDPWD")
_LONGEST_NAME, _LONGEST_LINE, _LINES = 80, 300, 3
_SEARCHED = ("PYTHONPATH", "LD_LIBRARY_PATH")


class Activation(NamedTuple):
    """The variables of the environment's programs, and what is wrong with its files or scripts."""

    environ: dict[str, str]
    findings: tuple[Finding, ...] = ()

    @property
    def notes(self) -> tuple[Note, ...]:
        """A reminder for all other results if the activation failed."""
        text = "the environment was examined without all that activating it sets"
        return (Note("not-activated", text),) if self.findings else ()


def activated(environ: Mapping[str, str], inventory: Inventory) -> Activation:
    """``environ`` after activating the environment; unchanged if it is active.

    Directories relative to the current one become absolute, since probes run in another one.
    """
    found = {**environ, **{name: _in_full(environ[name]) for name in _SEARCHED if environ.get(name)}}
    variable = "CONDA_PREFIX" if inventory.is_conda else "VIRTUAL_ENV"
    prefix = inventory.prefix
    if not inventory.owns_prefix or (environ.get(variable) and Path(environ[variable]) == prefix):
        return Activation(found)
    found[variable] = os.fspath(prefix)
    found.pop("VIRTUAL_ENV" if inventory.is_conda else "CONDA_PREFIX", None)
    programs = [os.fspath(directory) for directory in _program_directories(prefix, conda=inventory.is_conda)]
    others = [entry for entry in environ.get("PATH", "").split(os.pathsep) if entry and entry not in programs]
    found["PATH"] = os.pathsep.join([*programs, *others])
    if not inventory.is_conda:
        return Activation(found)
    variables, malformed_state = _variables(prefix)
    left, failed = _with_scripts({**found, **variables}, prefix)
    return Activation(left, (*malformed_state, *failed))


def _in_full(path: str) -> str:
    """A list of directories with absolute entries; an empty one is the current directory (ld.so(8), sys.path)."""
    return os.pathsep.join(os.fspath(Path(entry).absolute()) for entry in path.split(os.pathsep))


def _program_directories(prefix: Path, *, conda: bool) -> tuple[Path, ...]:
    """The directories that activation puts first on PATH; on Windows they have conda's DLLs (conda's activator)."""
    if not IS_WINDOWS:
        return (prefix / "bin",)
    if not conda:
        return (prefix / "Scripts",)
    return (prefix, *(prefix / "Library" / name for name in ("mingw-w64/bin", "usr/bin", "bin")), prefix / "Scripts")


def _variables(prefix: Path) -> Activation:
    """The variables of ``conda env config vars``, except those that the system does not accept."""
    path = prefix / STATE
    try:
        content = read_bytes(path, _LONGEST_STATE)
        if content is None:
            return Activation({})
        state = json_value(content)
        variables = state.get("env_vars", {}) if isinstance(state, dict) else None
        if not isinstance(variables, dict):
            raise FileError("it is no object with the variables in env_vars")
    except FileError as error:
        return Activation({}, (_malformed_state(prefix, error.reason),))
    right = {name: value for name, value in variables.items() if is_variable(name, value)}
    wrong = [repr(name)[:_LONGEST_NAME] for name in variables if name not in right]
    findings = [_malformed_state(prefix, f"no variable can be set as it says: {wrong[0]}")] if wrong else []
    return Activation({name: value for name, value in right.items() if value != _UNSET}, tuple(findings))


def _malformed_state(prefix: Path, reason: str) -> Finding:
    reason = f"{reason}. conda sets the variables in it when the environment is activated"
    return malformed(prefix / STATE, reason, "conda-state")


def _with_scripts(environ: dict[str, str], prefix: Path) -> Activation:
    """The variables after the packages' scripts, which are written for bash. Scripts for cmd.exe are not run."""
    if IS_WINDOWS or not any((prefix / SCRIPTS).glob("*.sh")):
        return Activation(environ)
    shell = find_program("bash", os.environ) or find_program("sh", os.environ) or "/bin/sh"
    try:
        with ProgramRunner() as runner:
            answer = runner.answer([shell, "-c", _SOURCE_ALL, sys.executable], environ, SECONDS)
    except OSError as error:
        return Activation(environ, (_failed(prefix / SCRIPTS, f"{shell} cannot be run: {error.strerror}"),))
    names, _, left = answer.content.rpartition(b"\0")
    script = Path(os.fsdecode(next(filter(None, reversed(names.split(b"\0"))), os.fsencode(prefix / SCRIPTS))))
    try:
        variables = json_value(left) if left else None
    except FileError:
        variables = None
    if not isinstance(variables, dict) or not all(is_variable(*it) for it in variables.items()):
        return Activation(environ, (_failed(script, _how(answer), answer.tail),))
    return Activation({name: value for name, value in variables.items() if name not in _OF_THE_SHELL})


def _how(answer: Answer) -> str:
    """How the scripts ended, as a sentence about the last one that ran."""
    if answer.fault:
        return f"What it left cannot be read: {answer.fault}"
    if answer.ending.timeout is not None:
        return f"It was stopped: all scripts together have {answer.ending.timeout:g} seconds"
    return (answer.ending.crash or f"It ended the shell with exit code {answer.ending.exit_code}").rstrip(".")


def _failed(script: Path, how: str, tail: str = "") -> Finding:
    lines = [line.strip()[:_LONGEST_LINE] for line in tail.splitlines() if line.strip()]
    evidence = (str(script), *lines[-_LINES:])
    return make_finding("activation-failed", evidence, about="activation", path=script, reason=how)


def malformed(path: Path, reason: str, of: str = "", *, directory: Path | None = None) -> Finding:
    """The finding that the file at ``path`` is malformed.

    ``reason`` is a sentence without its full stop. ``of`` selects the fix: ``conda-state``, ``conda-package``,
    ``conda-history`` or ``venv``. ``directory`` has to be removed instead of the file, if given.
    """
    return make_finding(
        "file-malformed",
        [str(path)],
        about=path.name,
        severity=Severity.ERROR if of == "conda-state" else None,
        path=path,
        reason=reason,
        of=of,
        directory=directory,
        path_typed=shlex.quote(str(path)),
    )
