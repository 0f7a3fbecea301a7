"""Locks of conda packages become a plan: conda-lock.yml, explicit files, pixi.lock, each with the wheels in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.create.plan import Kind, Plan, wheel_file
from envsolve.create.refusals import not_exact, other_platform, without_hash
from envsolve.lockfile.conda_file import HeldFormat
from envsolve.lockfile.conda_header import facts_on_top
from envsolve.lockfile.conda_lock_facts import facts_in_metadata
from envsolve.lockfile.conda_lock_file import LockedPlatform, conda_lock_of
from envsolve.lockfile.explicit_file import explicit_of
from envsolve.lockfile.lock import MAIN
from envsolve.lockfile.pip_package import PipPackage
from envsolve.lockfile.pixi_lock_file import DEFAULT, PixiPlatform, pixi_lock_of
from envsolve.lockfile.yaml_document import document_of
from envsolve.model.conda import CondaPackage
from envsolve.model.host import Platform
from envsolve.model.note import Note

_UNASKED = (MAIN, "dev")
"""The categories that conda-lock installs unless it is told otherwise."""
_PIP_COMMENT = re.compile(r"# pip (\S+) @ (\S+?)#(?:(subdirectory=[^&]+)&)?(sha\d+)=([0-9a-f]+)\s*\Z")


def of_conda(kind: HeldFormat, path: Path, text: str, platform: Platform) -> Plan:
    """The plan of a file of this kind on ``platform``. Raises FileError, and UsageError as in reading.py."""
    if kind is HeldFormat.EXPLICIT:
        return _of_explicit(path, text, platform)
    if kind is HeldFormat.PIXI:
        return _of_pixi(path, text, platform)
    if kind is HeldFormat.CONDA_LOCK:
        return _of_conda_lock(path, text, platform)
    raise not_exact(path, "it names packages without addresses", f"envsolve create PREFIX -r {path}")


def _of_conda_lock(path: Path, text: str, platform: Platform) -> Plan:
    file = conda_lock_of(document_of(text))
    part = next((it for it in file.platforms if it.platform == platform), None)
    if part is None:
        raise other_platform(path, platform, [it.platform for it in file.platforms])
    conda = tuple(it.package for it in part.conda if set(it.categories) & set(_UNASKED))
    wheels = [it.package for it in part.pip if set(it.categories) & set(_UNASKED)]
    facts = facts_in_metadata(file, platform)
    variables = (facts or {}).get("variables")
    return Plan(
        Kind.CONDA,
        "conda-lock.yml",
        without_secrets(text),
        conda=_with_sha256(path, conda),
        wheels=wheel_file(_direct(path, wheel) for wheel in wheels),
        variables=tuple(variables.items()) if isinstance(variables, dict) else (),
        facts=facts,
        notes=tuple(Note("not-installed", text) for text in _left_out(part)),
    )


def _left_out(part: LockedPlatform) -> Iterator[str]:
    named = (*(it.categories for it in part.conda), *(it.categories for it in part.pip))
    categories = {name for categories in named for name in categories} - set(_UNASKED)
    if categories:
        yield f"packages that only {' and '.join(sorted(categories))} asks for are left out, as conda-lock does"


def _of_explicit(path: Path, text: str, platform: Platform) -> Plan:
    file = explicit_of(text)
    if file.platform not in (None, platform.value):
        raise other_platform(path, platform, [str(file.platform)])
    if file.unread:
        raise FileError("what stands here is no address of a conda package", file.unread[0])
    found = [it for it in map(_PIP_COMMENT.match, text.splitlines()) if it is not None]
    if len(found) != len(file.wheels) or file.unplaced:
        raise not_exact(path, "a wheel in its comments has no address with a digest")
    return Plan(
        Kind.CONDA,
        "explicit.lock",
        without_secrets(text),
        conda=_with_digests(path, file.packages),
        wheels=wheel_file(_requirement(*it.groups()) for it in found),
        facts=_with_platform(facts_on_top(text), platform),
    )


def _of_pixi(path: Path, text: str, platform: Platform) -> Plan:
    environments = sorted(pixi_lock_of(document_of(text)).environments, key=lambda it: it.name != DEFAULT)
    parts = environments[0].platforms if environments else ()
    here = [it for it in parts if it.subdir == platform]
    if not here:
        raise other_platform(path, platform, [it.subdir for it in parts])
    part: PixiPlatform = min(here, key=lambda it: it.name != platform)
    if part.sources:
        raise not_exact(path, f"{part.sources[0]} is built from source", "pixi install")
    others = [it.name for it in environments[1:]]
    note = f"of its environments this is {environments[0].name!r}; {' and '.join(others)} are left out"
    return Plan(
        Kind.CONDA,
        "pixi.lock",
        without_secrets(text),
        conda=_with_sha256(path, part.conda),
        wheels=wheel_file(_direct(path, wheel) for wheel in part.pip),
        notes=(Note("not-installed", note),) if others else (),
    )


def _direct(path: Path, wheel: PipPackage) -> str:
    url, _, fragment = wheel.url.partition("#")
    if wheel.sha256 is None:
        raise without_hash(path, f"{wheel.name} {wheel.version}".strip())
    folder = next((it for it in fragment.split("&") if it.startswith("subdirectory=")), None)
    return _requirement(wheel.name, url, folder, "sha256", wheel.sha256)


def _requirement(name: str, url: str, folder: str | None, algorithm: str, digest: str) -> str:
    return f"{name} @ {url}{f'#{folder}' if folder else ''} --hash={algorithm}:{digest}"


def _with_sha256(path: Path, packages: Sequence[CondaPackage]) -> tuple[CondaPackage, ...]:
    """The packages. Raises UsageError where one has an md5 alone, which can be forged; explicit files have no more."""
    bare = next((it for it in packages if it.sha256 is None), None)
    if bare is not None:
        raise without_hash(path, f"{bare.file_name} of a kind that cannot be forged")
    return tuple(packages)


def _with_digests(path: Path, packages: Sequence[CondaPackage]) -> tuple[CondaPackage, ...]:
    bare = next((it for it in packages if it.sha256 is None and it.md5 is None), None)
    if bare is not None:
        raise without_hash(path, bare.file_name)
    return tuple(packages)


def _with_platform(facts: object, platform: Platform) -> dict[str, object] | None:
    return {**facts, "platform": platform.value} if isinstance(facts, dict) else None
