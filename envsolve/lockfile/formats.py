"""The formats envsolve writes, by name and by file name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import PurePath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.answer import Answer
from envsolve.model.host import Platform

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock

FORMATS = ("environment", "json", "pixi")
"""Formats of a stack: its frameworks, and what they need said of them."""

VENV_FORMATS = ("requirements", "pylock")
"""Formats of a Python lock that an environment is created from."""
IMAGE_FORMATS = ("dockerfile", "apptainer")
"""Formats of a Python lock that an image is built from."""
PYTHON_FORMATS = (*VENV_FORMATS, *IMAGE_FORMATS)
"""Formats of a Python lock: everything that pip or uv installs, pinned and hashed."""
CONDA_FORMATS = ("conda-lock", "explicit")
"""Formats of a conda lock: every package with its address and digest."""

_BY_SUFFIX = {".yml": "environment", ".yaml": "environment", ".json": "json", ".txt": "requirements"}
_SEVERAL_FORMATS = {
    ".lock": Hint("set the format, for example with --format explicit"),
    ".toml": Hint("name it pylock.toml, pylock.NAME.toml or pixi.toml, or use --format pylock or --format pixi"),
}
"""Suffixes that files of several formats have, none of them an environment.yml or requirements."""

_TOOLS = {"uv.lock": "uv", "poetry.lock": "Poetry", "pdm.lock": "PDM", "pixi.lock": "pixi"}

_DOCKERFILES = ("dockerfile", "containerfile")
_BESIDE_DOCKERFILES = (".dockerignore", ".lock")
"""What is beside a Dockerfile, and called after it."""

_ONLY_LINUX = {
    "dockerfile": "NVIDIA's container toolkit supports only Linux containers (on Windows, in WSL2)",
    "apptainer": "Apptainer runs only on Linux (on Windows, in WSL2)",
}
"""Why an image of a format is for Linux."""

_OF_SEVERAL = ("json", "pixi", "conda-lock")
"""Formats that hold several platforms in one file."""
_MODULES = {
    "requirements": "requirements_txt",
    "pylock": "pylock_toml",
    "dockerfile": "dockerfile",
    "apptainer": "apptainer",
    "conda-lock": "conda_lock_yml",
    "explicit": "explicit",
    "environment": "environment_yml",
    "pixi": "pixi_toml",
    "json": "json_answer",
    "pixi.lock": "pixi_lock",
    "uv.lock": "uv_lock",
    "poetry.lock": "poetry_lock",
    "pdm.lock": "pdm_lock",
}
"""The module of each format, one of which is loaded."""


def write(answers: Sequence[Answer], format_name: str) -> Iterator[tuple[Platform, str]]:
    """The contents of the files in ``format_name``, which must be one of FORMATS, each with the platform it is for."""
    files = [answers] if format_name in _OF_SEVERAL else [[answer] for answer in answers]
    for group in files:
        yield group[0].solution.problem.platform, without_secrets(_stack_text(group, format_name))


def stack_lock(answer: Answer, format_name: str) -> Lock:
    """What a file with ``answer`` in ``format_name``, one of FORMATS, is read back as."""
    if format_name == "json":
        from envsolve.lockfile import json_answer

        return json_answer.lock_of(answer)
    from envsolve.lockfile.stack import lock_of

    return lock_of(answer, sets_library_path=format_name == "pixi").restricted_to(format_name)


def _stack_text(answers: Sequence[Answer], format_name: str) -> str:
    if format_name == "json":
        from envsolve.lockfile import json_answer

        return json_answer.write(answers)
    from envsolve.lockfile.stack import lock_of

    locks = [lock_of(answer, sets_library_path=format_name == "pixi") for answer in answers]
    return write_locks(locks, format_name)


def load_conda_writers() -> None:
    """Import what :func:`write_conda_lock` needs, for whoever has to wait anyway."""
    for format_name in (*CONDA_FORMATS, "environment"):
        module_of(format_name)


def write_conda_lock(locks: Sequence[Lock], format_name: str) -> Iterator[tuple[Platform, str]]:
    """The contents of the files in ``format_name``, each with the platform it is for: conda-lock.yml holds them all.

    ``format_name`` is one of CONDA_FORMATS or ``environment``, which stands for one with exact builds. Raises
    OutsideError for a package without a digest.
    """
    for group in [locks] if format_name in _OF_SEVERAL else [[lock] for lock in locks]:
        yield Platform(group[0].platform), without_secrets(write_locks(group, format_name))


def write_python_lock(lock: Lock, format_name: str, answer: Answer | None = None) -> str:
    """The content of the file in ``format_name``, one of PYTHON_FORMATS; ``answer`` has the stack that shaped it.

    Raises OutsideError for a pin without hash; UsageError and UnsolvableError where an image cannot hold the lock.
    """
    if format_name not in IMAGE_FORMATS:
        return without_secrets(write_locks([lock], format_name))
    from envsolve.lockfile.restriction import require_sources

    require_sources(lock.addresses, format_name)
    write: Callable[[Lock, Answer | None], str] = module_of(format_name).write
    return without_secrets(write(lock, answer))


def write_locks(locks: Sequence[Lock], format_name: str) -> str:
    """The content of a file with ``locks``: one, but for conda-lock.yml and pixi.toml, which hold several platforms.

    Raises UsageError where the format cannot have a package, OutsideError as the writer of the format does.
    """
    from envsolve.lockfile.restriction import require_sources

    for lock in locks:
        require_sources(lock.addresses, format_name)
    write: Callable[[Any], str] = module_of(format_name).write
    return write(locks if format_name in _OF_SEVERAL else locks[0])


def module_of(format_name: str) -> ModuleType:
    """The module with ``read`` and ``write`` for a format, or with ``read`` alone."""
    return import_module(f"envsolve.lockfile.{_MODULES[format_name]}")


def tool_of(path: PurePath) -> str | None:
    """The tool that a file of this name is the lock of, which envsolve reads and does not write; None for others."""
    return _TOOLS.get(path.name.casefold())


def is_project_lock(path: PurePath) -> bool:
    """Whether a file of this name is the lock of a project of Python packages: uv.lock, poetry.lock or pdm.lock."""
    return tool_of(path) not in (None, "pixi")


def is_dockerfile(name: str) -> bool:
    """Whether a file is called as docker and podman expect: ``Dockerfile``, ``gpu.Dockerfile``, ``Dockerfile.gpu``."""
    folded = name.casefold()
    if folded.endswith(_BESIDE_DOCKERFILES):
        return False
    return any(folded == it or folded.endswith(f".{it}") or folded.startswith(f"{it}.") for it in _DOCKERFILES)


def is_definition_file(name: str) -> bool:
    """Whether a file is called as for Apptainer and Singularity: ``env.def``, ``Singularity``, ``Singularity.gpu``."""
    folded = name.casefold()
    return folded.endswith(".def") or (f"{folded}.".startswith("singularity.") and not folded.endswith(".lock"))


def require_platforms(platforms: Iterable[Platform], format_name: str) -> None:
    """Raise UsageError for a platform that the format cannot be for."""
    other = next((it for it in platforms if it not in (Platform.LINUX_64, Platform.LINUX_AARCH64)), None)
    if format_name in IMAGE_FORMATS and other is not None:
        raise UsageError(
            "platform-not-supported",
            f"an image is for Linux, but the request is for {other}",
            (_ONLY_LINUX[format_name],),
            (Hint("choose Linux: --platform linux-64 or linux-aarch64"),),
        )


def format_for_file(path: PurePath) -> str | None:
    """The format that a file name stands for, or None where it says nothing."""
    name = path.name.casefold()
    if name.startswith("pylock.") and name.endswith(".toml"):
        return "pylock"
    if name.endswith(("conda-lock.yml", "conda-lock.yaml")):
        return "conda-lock"
    if name == "pixi.toml":
        return "pixi"
    if (name.startswith("conda") and name.endswith(".lock")) or name.startswith("explicit"):
        return "explicit"
    return _image_format(name) or _BY_SUFFIX.get(path.suffix.casefold())


def _image_format(name: str) -> str | None:
    if is_dockerfile(name):
        return "dockerfile"
    return "apptainer" if is_definition_file(name) else None


def format_of_name(path: PurePath) -> str | None:
    """As :func:`format_for_file`, for a file that is to be written.

    Raises UsageError for the lock of another tool, and for a name that says no more than that it is some lock or some
    TOML.
    """
    found = format_for_file(path)
    tool = tool_of(path)
    if tool is not None:
        instead = "the manifest, and have pixi lock it: -o pixi.toml" if tool == "pixi" else "a lock: -o pylock.toml"
        raise UsageError(
            "unknown-format",
            f"{path} is a lock of {tool}: envsolve can read it, but not write it",
            hints=(Hint(f"write {instead}"),),
        )
    hint = _SEVERAL_FORMATS.get(path.suffix.casefold())
    if found is None and hint is not None:
        raise UsageError("unknown-format", f"cannot infer a format from the name of {path}", hints=(hint,))
    return found
