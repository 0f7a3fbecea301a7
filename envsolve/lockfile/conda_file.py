"""What a file of conda packages holds that is there already, whoever wrote it and in whichever of four formats.

Which format it is, its content says: the keys at the top of a YAML document, or the line ``@EXPLICIT``. Names are not
gone by, as people call these files what they like. Only what pins a version holds anything; people edit these files, so
a range or an entry that is not understood holds nothing and is no error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.conda_lock_file import LONGEST, CondaLockFile, conda_lock_of
from envsolve.lockfile.environment_file import Entries, read_entries
from envsolve.lockfile.explicit_file import MARK, explicit_of
from envsolve.lockfile.pixi_lock_file import DEFAULT, PixiLockFile, pixi_lock_of
from envsolve.lockfile.recorded_facts import facts_in_header, facts_in_metadata
from envsolve.lockfile.requirements_txt import name_of, pin_of
from envsolve.lockfile.yaml_document import document_of, mapping
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.match_spec import MatchSpec, parse_match_spec
from envsolve.model.package import Pin

_TOP_KEY = re.compile(r"""^(["']?)(environments|package|dependencies)\1[ \t]*:""", re.MULTILINE)
_EXPLICIT = re.compile(rf"^[ \t]*{MARK}[ \t\r]*$", re.MULTILINE)
_RANGE = re.compile(r"[<>!~,|]")


class HeldFormat(StrEnum):
    """What kind of file it is."""

    ENVIRONMENT = "environment"
    CONDA_LOCK = "conda-lock"
    EXPLICIT = "explicit"
    PIXI = "pixi"


class HeldConda(NamedTuple):
    """What a file holds for one platform.

    Of an environment.yml a package has no more than name, version and build; a version may be the beginning of one, as
    in ``python=3.11``, and a build a pattern, as in ``pytorch=2.13.0=cuda126*``. ``recorded`` are the facts that
    envsolve wrote into it, by the keys of :func:`~envsolve.lockfile.facts.facts_of`; None for a foreign file.
    ``unpinned`` and ``unpinned_pip`` are the names that an environment.yml asks for in no one version, or under a
    marker.
    """

    kind: HeldFormat
    conda: tuple[CondaPackage, ...] = ()
    pip: tuple[Pin, ...] = ()
    recorded: Mapping[str, object] | None = None
    unpinned: tuple[str, ...] = ()
    unpinned_pip: tuple[str, ...] = ()


def read_held(path: Path, platform: Platform) -> HeldConda | None:
    """What the file at ``path`` holds for ``platform``; None where there is none, or nothing in it.

    Raises UsageError ``held-unreadable`` where there is one that cannot be read.
    """
    try:
        text = read_text(path, LONGEST)
        return None if text is None or not text.strip() else _held(text, platform)
    except FileError as error:
        hint = Hint("move the file away, or give -o the lock of an earlier answer")
        raise UsageError("held-unreadable", f"cannot read {error.at(path)}: {error.reason}", hints=(hint,)) from error


def kind_of(path: Path) -> HeldFormat | None:
    """Which kind the file at ``path`` is of, whatever it is called; None where it is of none or cannot be read."""
    try:
        return format_of(read_text(path, LONGEST) or "")
    except FileError:
        return None


def _held(text: str, platform: Platform) -> HeldConda:
    found = format_of(text)
    if found is HeldFormat.EXPLICIT:
        return _of_explicit(text, platform)
    if found is HeldFormat.ENVIRONMENT:
        return _of_environment(text, platform)
    if found is HeldFormat.CONDA_LOCK:
        return _of_conda_lock(conda_lock_of(document_of(text)), platform)
    return _of_pixi(pixi_lock_of(document_of(text)), platform)


def format_of(text: str) -> HeldFormat:
    """What kind of file ``text`` is of. Raises FileError where it is of none."""
    if _EXPLICIT.search(text):
        return HeldFormat.EXPLICIT
    keys = {found[2] for found in _TOP_KEY.finditer(text)} or _keys(text)
    for key, kind in (
        ("environments", HeldFormat.PIXI),
        ("package", HeldFormat.CONDA_LOCK),
        ("dependencies", HeldFormat.ENVIRONMENT),
    ):
        if key in keys:
            return kind
    raise FileError("it is no environment.yml, no conda-lock.yml, no pixi.lock and no explicit file")


def _keys(text: str) -> set[str]:
    """The keys at the top of a document that is indented or in brackets."""
    try:
        return set(mapping(document_of(text), "it"))
    except FileError:
        return set()


def _of_explicit(text: str, platform: Platform) -> HeldConda:
    file = explicit_of(text)
    recorded = facts_in_header(text)
    if file.platform not in (None, platform.value):
        return HeldConda(HeldFormat.EXPLICIT, recorded=recorded)
    return HeldConda(HeldFormat.EXPLICIT, file.packages, file.pip, recorded)


def _of_environment(text: str, platform: Platform) -> HeldConda:
    entries = read_entries(text, platform)
    required = [" ".join(entry.split()) for entry, _ in entries.pip]
    pins = {entry: pin for entry in required if (pin := pin_of(entry)) is not None and not pin.marker}
    names = (name_of(entry) for entry in required if entry not in pins)
    packages = tuple(_asked(entries))
    return HeldConda(
        HeldFormat.ENVIRONMENT,
        tuple(it for it in packages if it.version),
        tuple(pins.values()),
        facts_in_header(text),
        tuple(it.name for it in packages if not it.version),
        tuple(name for name in names if name is not None),
    )


def _asked(entries: Entries) -> Iterator[CondaPackage]:
    """What can be understood; the version is "" where it is not pinned."""
    for entry, _ in entries.conda:
        try:
            spec = parse_match_spec(entry)
        except ValueError:
            continue
        version = spec.exact_version or _beginning(entry, spec)
        yield CondaPackage(spec.name, version, spec.build, spec.subdir, "", channel=spec.channel)


def _beginning(entry: str, spec: MatchSpec) -> str:
    """What ``conda env export --no-builds`` writes, ``name=version``, which conda takes for all that begins with it."""
    version = spec.version.removesuffix(".*")
    return version if version != spec.version and "*" not in entry and not _RANGE.search(version) else ""


def _of_conda_lock(file: CondaLockFile, platform: Platform) -> HeldConda:
    part = next((part for part in file.platforms if part.platform == platform), None)
    recorded = facts_in_metadata(file, platform)
    if part is None:
        return HeldConda(HeldFormat.CONDA_LOCK, recorded=recorded)
    conda = tuple(locked.package for locked in part.conda)
    pins = (locked.package.pin for locked in part.pip)
    return HeldConda(HeldFormat.CONDA_LOCK, conda, tuple(pin for pin in pins if pin is not None), recorded)


def _of_pixi(file: PixiLockFile, platform: Platform) -> HeldConda:
    """Of the environments the default one, else the first; of several machines of a platform that of its own name."""
    environments = sorted(file.environments, key=lambda it: it.name != DEFAULT)
    parts = [part for part in environments[0].platforms if part.subdir == platform] if environments else []
    part = min(parts, key=lambda it: it.name != platform, default=None)
    if part is None:
        return HeldConda(HeldFormat.PIXI)
    pins = (package.pin for package in part.pip)
    return HeldConda(HeldFormat.PIXI, part.conda, tuple(pin for pin in pins if pin is not None))
