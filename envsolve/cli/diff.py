"""``envsolve diff``: the differences between two locks, first for machines, then for each package."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli import known_values
from envsolve.cli.lock import project_option, spelled
from envsolve.cli.options import (
    Command,
    FileName,
    Member,
    Parsed,
    matrix_of,
    matrix_option,
    option,
    output_options,
    require_not_typed,
)
from envsolve.cli.output import deliver, json_text
from envsolve.cli.output_formats import Case, Item, Level, Outcome, output_format, output_format_options, rendered
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.lock_format import PLATFORM
from envsolve.model.words import member_of

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.status.lock_diff import Breaking, LockDiff
    from envsolve.app.status.lock_summary import Summary
    from envsolve.app.status.revisions import Version

_FIELDS = {
    "driver_floor": "driver floor",
    "compute_capabilities": "compute capabilities",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "python": "Python",
}
_SERIOUS = ("driver-floor", "capability", "cuda-major")


def _kinds(text: str) -> tuple[str, ...]:
    """The kinds of differences in a comma-separated list. Raises ValueError for an unknown one."""
    from envsolve.app.status.lock_diff import Kind

    return tuple(member_of(Kind)(it.strip()).value for it in text.split(",") if it.strip())


@click.command(cls=Command, short_help="Compare two locks: driver, GPUs, CUDA, Python, packages.")
@click.argument("old", metavar="OLD", type=FileName("file"))
@click.argument("new", metavar="[NEW]", required=False, type=FileName("file"))
@option(
    "--fail-on",
    "fail_on",
    multiple=True,
    metavar="KINDS",
    type=Parsed("kinds", _kinds),
    shell_complete=known_values.differences,
    help=(
        "Exit 1 for these differences: driver-floor (a newer driver is needed), capability (some GPUs are lost), "
        "cuda-major, framework-major, python. Separated by commas or repeated; also if a file does not say."
    ),
)
@option(
    "--platform",
    "platforms",
    multiple=True,
    type=Member("name", Platform),
    help="Compare on this platform. Repeatable; default: those that the locks name, else this machine's.",
)
@project_option
@output_format_options
@matrix_option
@output_options
def diff(**options: Any) -> int:
    """Compare two locks: first what the change means for drivers and GPUs, then the packages.

    OLD and NEW are files that envsolve reads, also of uv, Poetry, PDM, pixi and conda-lock. Each may be in a git
    revision: HEAD~1:uv.lock. A revision alone means the same file there. Without NEW, the file on the disk is compared
    and, if OLD is a revision alone, every lock of the project (--project).

    \b
    Examples:
      envsolve diff HEAD~1
      envsolve diff main:uv.lock uv.lock --fail-on driver-floor,capability
    """
    from envsolve.app.status.lock_diff import diff_locks
    from envsolve.project import project_file

    matrix = matrix_of(options)
    fail_on = frozenset(kind for kinds in options["fail_on"] for kind in kinds)
    directory = Path.cwd() if options["project"] is None else project_file(options["project"]).parent
    with chdir(directory):
        found = [
            it
            for old, new in _pairs(options["old"], options["new"])
            for it in diff_locks(old, new, options["platforms"], matrix, os.environ)
        ]
    deliver(_answer(found, fail_on, output_format(options), directory), None)
    return 1 if any(_fails(it, fail_on) for each in found for it in each.breaking) else 0


def _answer(found: Sequence[LockDiff], fail_on: frozenset[str], format_name: str, directory: Path) -> str:
    text = "".join(f"{line}\n" for it in found for line in _lines(it, fail_on))
    if format_name == "text":
        return text
    if format_name == "json":
        return json_text(_document(found, fail_on))
    return rendered(Outcome("envsolve diff", tuple(_case(it, fail_on, directory) for it in found), text), format_name)


def _pairs(old: str, new: str | None) -> list[tuple[Version, Version]]:
    """The versions of files to compare. Raises UsageError if an argument names none."""
    from envsolve.app.status.revisions import Version, version_of

    before = version_of(old, os.environ)
    after = Version(None, "") if new is None else version_of(new, os.environ)
    if before.path or after.path:
        require_not_typed(("project",), "is about the locks that a project names: give only a revision")
    if before.path and after.path:
        return [(before, after)]
    if before.path and before.revision is None and new is None:
        raise UsageError("usage", f"{old} is compared with nothing: NEW is missing", hints=(_hint(old),))
    if before.path or after.path:
        return [(before, before.at(after.revision))] if before.path else [(after.at(before.revision), after)]
    files = [Version(None, name) for name in _locks_here()]
    pairs = [(it.at(before.revision), it.at(after.revision)) for it in files]
    there = [pair for pair in pairs if all(it.text(os.environ) is not None for it in pair)]
    if not there:
        names = ", ".join(it.path for it in files)
        message = f"no lock is in both versions: {names}" if files else "no lock found here"
        raise UsageError("nothing-to-compare", message, hints=(Hint("name the file", f"envsolve diff {old}:uv.lock"),))
    return there


def _hint(file: str) -> Hint:
    return Hint("compare with the last commit", f"envsolve diff HEAD {file}")


def _locks_here() -> list[str]:
    """The locks that the project names or, without a project, those with the usual names."""
    from envsolve.app.status.status import usual_files
    from envsolve.project import find_project, read_project

    file = find_project(Path.cwd())
    if file is None:
        return list(usual_files())
    project = read_project(file)
    names = dict.fromkeys(output.file for part in project.parts for output in part.outputs)
    found = (path for name in names for path in sorted(project.directory.glob(name.replace(PLATFORM, "*"))))
    return [os.path.relpath(path) for path in found]


def _fails(it: Breaking, fail_on: frozenset[str]) -> bool:
    return it.kind.value in fail_on


def _lines(diff: LockDiff, fail_on: frozenset[str]) -> Iterator[str]:
    """The differences as lines of text."""
    yield f"{diff.old} -> {diff.new} ({diff.platform})"
    unchanged = []
    for name, before, after in _facts(diff):
        if before == after:
            unchanged.append(f"{name} {after}")
        else:
            yield f"  {name}: {f'{before} -> ' if before else ''}{after}"
    if unchanged:
        yield f"  unchanged: {', '.join(unchanged)}"
    yield from (f"  unknown in {it}" for it in _unknown(diff))
    failing = dict.fromkeys(it.kind.value for it in diff.breaking if _fails(it, fail_on))
    if failing:
        yield f"  fails: {', '.join(failing)}"
    yield f"  packages: {_count_text(diff)}"
    yield from (f"    {spelled(it)}" for it in diff.changes)


def _facts(diff: LockDiff) -> Iterator[tuple[str, str, str]]:
    """What the locks need and install, as text: before and after; for compute capabilities the difference."""
    from envsolve.app.status.lock_diff import frameworks_changed

    for field, name in _FIELDS.items():
        before, after = _shown(diff.before, field), _shown(diff.after, field)
        if field == "compute_capabilities":
            words = (("lost", diff.capabilities_lost), ("gained", diff.capabilities_gained))
            before, after = "", "; ".join(f"{word} {', '.join(found)}" for word, found in words if found)
        if (before, after) not in (("none", "none"), ("unknown", "unknown"), ("", "")):
            yield name, before, after
    for framework, was, now in frameworks_changed(diff):
        yield framework, str(was or "none"), str(now or "none")
    before_size, after_size = diff.before.download_size, diff.after.download_size
    if before_size is not None and after_size is not None:
        yield "download", f"{before_size / 1e6:,.0f} MB", f"{after_size / 1e6:,.0f} MB"


def _unknown(diff: LockDiff) -> Iterator[str]:
    """The facts on GPUs and drivers that a file lacks, with the reason."""
    from envsolve.app.status.lock_summary import OF_GPU

    for version, summary in ((diff.old, diff.before), (diff.new, diff.after)):
        reasons: dict[str, list[str]] = {}
        for field in OF_GPU:
            if field in summary.unknown:
                reasons.setdefault(summary.unknown[field], []).append(_FIELDS[field])
        for reason, names in reasons.items():
            if names != [_FIELDS["cudnn"]]:  # many locks with ranges leave it open
                yield f"{version}: {', '.join(names)} ({reason})"


def _shown(summary: Summary, field: str) -> str:
    value = getattr(summary, field)
    return str(value) if value is not None else "unknown" if field in summary.unknown else "none"


def _count_text(diff: LockDiff) -> str:
    counts = {
        "added": sum(it.before is None for it in diff.changes),
        "removed": sum(it.after is None for it in diff.changes),
        "changed": sum(None not in (it.before, it.after) for it in diff.changes),
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "none changed"


def _case(diff: LockDiff, fail_on: frozenset[str], directory: Path) -> Case:
    file = None if diff.new.revision is not None else os.path.relpath(directory / diff.new.path)
    items = [
        Item(
            Level.ERROR if _fails(it, fail_on) else Level.WARNING if it.kind in _SERIOUS else Level.NOTE,
            it.kind.value,
            f"{diff.new} ({diff.platform}): {it.text}",
            it.fix,
            file,
            diff.lines.get(it.package or ""),
        )
        for it in diff.breaking
    ]
    return Case(f"{diff.old} -> {diff.new} ({diff.platform})", tuple(items), f"packages: {_count_text(diff)}")


def _document(found: Sequence[LockDiff], fail_on: frozenset[str]) -> documents.Diff:
    ok = not any(_fails(it, fail_on) for each in found for it in each.breaking)
    return {"schema_version": 1, "ok": ok, "diffs": [_data(it, fail_on) for it in found]}


def _data(diff: LockDiff, fail_on: frozenset[str]) -> documents.FileDiff:
    return {
        "old": str(diff.old),
        "new": str(diff.new),
        "platform": diff.platform.value,
        "before": diff.before.as_json(),
        "after": diff.after.as_json(),
        "capabilities_lost": list(diff.capabilities_lost),
        "capabilities_gained": list(diff.capabilities_gained),
        "breaking": [
            {
                "kind": it.kind.value,
                "text": it.text,
                "fix": it.fix or None,
                "known": it.is_known,
                "fails": _fails(it, fail_on),
                "package": it.package,
                "line": diff.lines.get(it.package or ""),
            }
            for it in diff.breaking
        ],
        "packages": [it.as_json() for it in diff.changes],
    }
