"""A lock becomes a plan: conda-lock.yml, explicit file, pixi.lock, pylock.toml or hashed requirements.

Only what has a digest is installed. A file that leaves something to be decided is refused with the command that
decides it; an environment.yml of single builds has no digests, and becomes a plan elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.create.conda_reading import of_conda
from envsolve.create.plan import Kind, Plan, WheelFile
from envsolve.create.refusals import LOCKS, lock_of_project, not_exact, other_platform, without_hash
from envsolve.errors import UsageError
from envsolve.lockfile.conda_file import HeldFormat, format_of
from envsolve.lockfile.conda_lock_file import LONGEST
from envsolve.lockfile.facts import in_comments, table_in
from envsolve.lockfile.formats import is_project_lock
from envsolve.lockfile.pylock_toml import document_of as pylock_document
from envsolve.lockfile.sound_pins import STRONG
from envsolve.lockfile.text_file import shown
from envsolve.model.host import Platform
from envsolve.model.requirement_line import contents_of, hashes_of

_OTHER_FILES = re.compile(r"^\s*(?:-r|-c|-e|--requirement|--constraint|--editable)\b", re.MULTILINE)
_NAMES_INDEX = re.compile(r"^\s*(?:-i|--index-url)\b", re.MULTILINE)
_A_HASH = "--hash="


def plan_of(path: Path, platform: Platform, python: SpecifierSet | None = None) -> Plan:
    """The plan of the lock at ``path`` on ``platform``; ``python`` bounds the interpreter of a venv further.

    Raises UsageError: ``lock-unreadable`` for what is no lock, ``lock-not-exact`` for what has to be solved first,
    ``lock-without-hashes``, ``lock-for-other-platform``.
    """
    try:
        text = read_text(path, LONGEST)
        if text is None:
            raise FileError("there is no such file")
        if is_project_lock(path):
            raise lock_of_project(path)
        if path.suffix.lower() == ".toml":
            return _of_pylock(path, text, platform, python)
        kind = _kind(text)
        if kind is None:
            return _of_requirements(path, text, platform, python)
        return of_conda(kind, path, text, platform)
    except FileError as error:
        raise UsageError("lock-unreadable", f"cannot read {error.at(path)}: {error.reason}", hints=(LOCKS,)) from None


def is_environment(path: Path) -> bool:
    """Whether the file at ``path`` is an environment.yml, by its content."""
    try:
        return _kind(read_text(path, LONGEST) or "") is HeldFormat.ENVIRONMENT
    except FileError:
        return False


def _kind(text: str) -> HeldFormat | None:
    try:
        return format_of(text)
    except FileError:
        return None


def _of_pylock(path: Path, text: str, platform: Platform, python: SpecifierSet | None) -> Plan:
    document = pylock_document(text)
    _require_strong_hashes(path, document)
    facts = table_in(document)
    _require_platform(path, facts, platform)
    try:
        stated = SpecifierSet(str(document.get("requires-python", "")))
    except InvalidSpecifier:
        raise FileError("its requires-python is no range of versions") from None
    wheels = WheelFile("pylock.toml", text)
    return Plan(Kind.VENV, wheels.name, without_secrets(text), _both(stated, python), wheels=wheels, facts=facts)


def _require_strong_hashes(path: Path, document: Mapping[str, Any]) -> None:
    """Raise UsageError ``lock-without-hashes`` where a file has md5 or the like alone, which can be forged."""
    for package in document["packages"]:
        files = [*package.get("wheels", ()), *(package[it] for it in ("sdist", "archive") if it in package)]
        if any(not set(STRONG) & set(file["hashes"]) for file in files):
            raise without_hash(path, f"{package['name']} of a kind that cannot be forged")


def _of_requirements(path: Path, text: str, platform: Platform, python: SpecifierSet | None) -> Plan:
    other = _OTHER_FILES.search(text)
    if _A_HASH not in text or other is not None:
        why = "it has no hashes" if other is None else "it names other files"
        raise not_exact(path, why, f"envsolve create PREFIX -r {path}")
    for line in contents_of(text):
        algorithms = {it.partition(":")[0] for it in hashes_of(line)}
        if algorithms and not set(STRONG) & algorithms:
            raise without_hash(path, f"{shown(line.split()[0])} of a kind that cannot be forged")
    facts = in_comments(text)
    _require_platform(path, facts, platform)
    stated = str((facts or {}).get("python", ""))
    minor = ".".join(stated.split(".")[:2])
    try:
        versions = SpecifierSet(f">={stated},=={minor}.*") if stated else SpecifierSet()
    except InvalidSpecifier:
        raise FileError("the Python that it records is no version") from None
    wheels = WheelFile("requirements.txt", text, names_index=_NAMES_INDEX.search(text) is not None)
    return Plan(Kind.VENV, wheels.name, without_secrets(text), _both(versions, python), wheels=wheels, facts=facts)


def _both(stated: SpecifierSet, asked: SpecifierSet | None) -> SpecifierSet | None:
    together = stated & asked if asked is not None else stated
    return together or None


def _require_platform(path: Path, facts: object, platform: Platform) -> None:
    stated = facts.get("platform") if isinstance(facts, dict) else None
    if isinstance(stated, str) and stated != platform:
        raise other_platform(path, platform, [stated])
