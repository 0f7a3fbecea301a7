"""Writes locked versions and indexes into [tool.uv] of the project's pyproject.toml.

They come from the Python locks alone, so that `status` can check whether the file agrees with the locks.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from envsolve.app.packages.lock_indexes import settings_of
from envsolve.app.project.project_requests import FileRequest, key_of
from envsolve.app.status.locked_stack import stack_in
from envsolve.boundary.files import read_bytes
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.frameworks import framework_of_word
from envsolve.index.settings import default_index
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.options import OVERRIDES
from envsolve.lockfile.uv_project import DefaultIndex, LockedTarget, with_settings
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS, format_for_file
from envsolve.model.need import parse_need
from envsolve.model.own_lines import OWN, without_own_lines
from envsolve.model.request import Request
from envsolve.model.versions import minor_of
from envsolve.project import Part, Project
from envsolve.project.reading import LONGEST, PYPROJECT, read_text, refuse_value


class PartLock(NamedTuple):
    """A lock of a project, with its platform and the file that contains it."""

    wanted: FileRequest
    platform: Platform
    lock: Lock


class UvSettings(NamedTuple):
    """A pyproject.toml as it is and as it should be, and the command that makes uv follow it.

    ``platform`` is the first platform that it is for.
    """

    before: str
    after: str
    platform: Platform
    command: str

    @property
    def is_current(self) -> bool:
        """Whether the file agrees with the locks."""
        return self.before == self.after

    @property
    def is_removed(self) -> bool:
        """Whether the file no longer has anything of the locks."""
        return OWN not in self.after


def uv_settings(
    project: Project,
    locks: Sequence[PartLock],
    matrix: Matrix,
    environ: Mapping[str, str],
    edited: str | None = None,
) -> UvSettings | None:
    """The change to the pyproject.toml in the current directory; None if the project does not use it.

    Earlier entries are removed if they are no longer wanted. ``edited`` is the text of the file if it must be written
    in any case. Also None while a lock is missing. Raises UsageError if an entry of the user conflicts.
    """
    parts = [part for part in project.parts if part.settings.uv_settings]
    by_part: dict[str, list[PartLock]] = {}
    for part in parts:
        _require_python_lock(project, part)
        found = [it for it in locks if it.wanted.part == part and it.wanted.request.format in PYTHON_FORMATS]
        by_part[part.name] = [it for it in found if it.wanted.output == found[0].wanted.output]
    if not locks or not all(by_part.values()) or not (parts or Path(PYPROJECT).is_file()):
        return None
    mark, before = _text(edited)
    if not parts and OWN not in before:
        return None
    targets = [_target(name, found, matrix) for name, found in by_part.items()]
    first = next(iter(by_part.values()))[0] if parts else locks[0]
    settings = UvSettings(mark + before, mark + without_own_lines(before), first.platform, "uv lock")
    if not parts:
        return settings
    after = with_settings(before, targets, _default(first.wanted.request, environ))
    python = f"--python {minor_of(first.lock.python)}"
    extra = next((f" --extra {it.extra}" for it in targets if it.extra), "")
    return settings._replace(after=mark + after, command=f"uv lock && uv sync {python}{extra}")


def _text(edited: str | None) -> tuple[str, str]:
    """The byte order mark of the file, "" without one, and its text. Raises UsageError without a file."""
    file, mark = Path(PYPROJECT), codecs.BOM_UTF8.decode()
    mark = mark if (read_bytes(file, LONGEST) or b"").startswith(codecs.BOM_UTF8) else ""
    return mark, (read_text(file) if edited is None else edited).removeprefix(mark)


def _require_python_lock(project: Project, part: Part) -> None:
    formats = {it.format or format_for_file(PurePath(it.file)) for it in part.outputs}
    if formats.isdisjoint(PYTHON_FORMATS):
        message = "there is no Python lock whose versions uv could have"
        hint = Hint('add one: outputs = ["pylock.toml"]')
        refuse_value(project, key_of(part, "uv-settings"), UsageError("uv-settings-refused", message, hints=(hint,)))


def _target(name: str, found: Sequence[PartLock], matrix: Matrix) -> LockedTarget:
    locks = [it.lock for it in found]
    made = [lock.made for lock in locks if lock.made is not None]
    return LockedTarget(
        name,
        tuple(locks),
        tuple(dict.fromkeys(text for it in found for text in _requires(it, matrix))),
        tuple(dict.fromkeys(text for it in made for text in it.option(OVERRIDES))),
    )


def _requires(it: PartLock, matrix: Matrix) -> Iterator[str]:
    """The requirements without versions: a framework under the name of its wheel, with the extras of its build."""
    stack = stack_in(it.lock, PurePath(it.wanted.path(it.platform)), "", it.platform, matrix)
    made = it.lock.made
    for text in () if made is None else made.request or ():
        try:
            need = parse_need(text)
        except ValueError:
            continue  # an address without a name, which the user must give to uv
        rows = () if stack is None else stack.releases.get(framework_of_word(need.name) or "", ())
        name, extras = (rows[0].package, rows[0].extras) if rows else (need.name, need.extras)
        if not need.url:
            yield f"{name}[{','.join(sorted(extras))}]" if extras else name


def _default(request: Request, environ: Mapping[str, str]) -> DefaultIndex:
    configured = settings_of(environ).index_url or default_index()
    return DefaultIndex(without_secrets(request.index_url or configured).rstrip("/"), request.index_url is not None)
