"""An environment.yml of single builds becomes a plan: channels say where these builds are, and what digests they have.

Nothing is chosen: each package is named with version and build, or the file is refused as one that has to be solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.app.targets import target_of
from envsolve.app.virtual_packages import virtual_packages
from envsolve.boundary.files import FileError, read_text
from envsolve.boundary.secrets import without_secrets
from envsolve.create.plan import Kind, Plan, WheelFile
from envsolve.create.refusals import not_exact
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.lockfile.conda_header import facts_on_top
from envsolve.lockfile.environment_file import LONGEST, Entries, EnvironmentFile, read_entries, read_environment
from envsolve.lockfile.text_file import clean
from envsolve.matrix.load import Matrix
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.note import Note
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.conda.session import Session

_CONDA_FORGE = "conda-forge"


def exact_plan(
    path: Path,
    platform: Platform,
    matrix: Matrix,
    session: Callable[[], AbstractContextManager[Session]],
    environ: Mapping[str, str],
) -> Plan:
    """The plan of the environment.yml at ``path``.

    Raises UsageError ``lock-not-exact`` where it leaves something open, ``environment-invalid`` where it cannot be
    read, UnsolvableError where the channels have not these builds, OutsideError where one does not answer.
    """
    text = _text(path)
    file, entries = read_environment(path, platform, text), read_entries(text, platform)
    specs = tuple(_specs(path, entries))
    facts = facts_on_top(text)
    assumed = _virtual_packages(facts, platform, matrix, environ)
    packages = _found(path, file, specs, platform, assumed, session)
    return Plan(
        Kind.CONDA,
        "environment.yml",
        without_secrets(text),
        conda=packages,
        wheels=_wheels(path, entries),
        variables=file.variables,
        facts=None if facts is None else {**facts, "platform": platform.value},
        notes=tuple(Note("environment-file", text) for text in file.notes),
    )


def _text(path: Path) -> str:
    try:
        return read_text(path, LONGEST) or ""
    except FileError as error:
        raise UsageError("lock-unreadable", f"cannot read {error.at(path)}: {error.reason}") from None


def _specs(path: Path, entries: Entries) -> Iterator[str]:
    for entry, _ in entries.conda:
        spec = parse_match_spec(entry)
        if not spec.exact_version or not spec.build or "*" in spec.build:
            raise _open(path, f"{clean(entry)} is not one build")
        yield f"{f'{spec.channel}::' if spec.channel else ''}{spec.name} =={spec.exact_version} {spec.build}"


def _found(
    path: Path,
    file: EnvironmentFile,
    specs: tuple[str, ...],
    platform: Platform,
    assumed: tuple[VirtualPackage, ...],
    session: Callable[[], AbstractContextManager[Session]],
) -> tuple[CondaPackage, ...]:
    from envsolve.conda.session import CondaConflict, Question

    logins = dict(file.logins)
    channels = tuple(logins.get(name, name) for name in file.channels) or (_CONDA_FORGE,)
    try:
        with session() as opened:
            packages = opened.solve(Question(channels, platform, specs, assumed))
    except CondaConflict as conflict:
        raise UnsolvableError(
            "builds-not-found",
            f"the channels of {path} have not all of its builds, or these do not go together",
            tuple(clean(line) for line in conflict.text.splitlines()[:4] if line.strip()),
            (Hint("solve it anew without the builds, as a request", f"envsolve create PREFIX -r {path}"),),
        ) from None
    if len(packages) != len(specs):
        named = {spec.rpartition("::")[2].partition(" ")[0] for spec in specs}
        raise _open(path, f"it leaves out {next(it.name for it in packages if it.name not in named)}, which they need")
    return packages


def _virtual_packages(
    facts: Mapping[str, object] | None, platform: Platform, matrix: Matrix, environ: Mapping[str, str]
) -> tuple[VirtualPackage, ...]:
    """What the file was solved for where it says so, else this machine with whatever driver the builds may want."""
    recorded = (facts or {}).get("virtual_packages")
    if isinstance(recorded, list):
        parts = (str(it).partition("=") for it in recorded)
        split = ((name, *rest.partition("=")) for name, _, rest in parts)
        return tuple(VirtualPackage(name, version or "0", build or "0") for name, version, _, build in split)
    target = target_of(Request((), gpus=("none",), platforms=(platform,)), matrix, environ)
    return virtual_packages(target.problem._replace(cpu=False), None, (), matrix.cuda, environ)


def _wheels(path: Path, entries: Entries) -> WheelFile | None:
    lines = [" ".join(entry.split()) for entry, _ in entries.pip]
    bare = next((line for line in lines if not line.startswith("-") and "--hash=" not in line), None)
    if bare is not None:
        raise _open(path, f"{clean(bare)} of its pip section has no hash")
    if not lines:
        return None
    names_index = any(line.startswith(("-i", "--index-url")) for line in lines)
    return WheelFile("requirements.txt", "".join(f"{line}\n" for line in lines), names_index=names_index)


def _open(path: Path, why: str) -> UsageError:
    return not_exact(path, why, f"envsolve create PREFIX -r {path}")
