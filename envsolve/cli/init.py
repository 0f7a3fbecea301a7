"""``envsolve init``: write a project with [tool.envsolve], and its first locks."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from envsolve.boundary.files import FileError, read_bytes, read_head
from envsolve.boundary.secrets import without_secrets
from envsolve.cli.not_lockable import all_refused
from envsolve.cli.options import (
    Command,
    FileName,
    dry_run_option,
    matrix_of,
    matrix_option,
    network_of,
    option,
    output_options,
)
from envsolve.cli.output import deliver, write_all
from envsolve.cli.progress import Progress
from envsolve.cli.report import note_each
from envsolve.cli.solve_options import HOW_TO_FETCH, REQUEST, options_of_solve
from envsolve.errors import Hint, OutsideError, UnsolvableError, UsageError
from envsolve.model.note import Note
from envsolve.model.reference import editable
from envsolve.model.request import Audit, FrameworkRequest, Policy, in_usual_order, versions_text

if TYPE_CHECKING:
    from envsolve.app.project.adopting import Adopted
    from envsolve.matrix import Matrix
    from envsolve.project import Project

_MARK = codecs.BOM_UTF8.decode("utf-8")
_CI = ("github", "gitlab")
_LONGEST_SHOWN = 16 * 1024 * 1024
"""Limit in bytes for an existing file to be shown in a diff."""
_WITH_ADDRESSES = (
    "channels",
    "extra-index-urls",
    "index-url",
    "pytorch-index-url",
    "requirements",
    "overrides",
    "exclude",
)
_INSTALLED = ("pylock.toml", ".txt", "conda-lock.yml", ".lock")
"""The suffixes of locks that `envsolve create` accepts, on any platform."""
_OF_STACKS_ALONE = (".yml", ".yaml", ".json", "pixi.toml")
_CONDA_LOCKS = ("conda-lock.yml", "conda-lock.yaml")


def _print_keys(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from envsolve.project.keys import KEYS, Scope

    for key in KEYS.values():
        where = "" if key.scope is Scope.BOTH else " (not of a target)"
        deliver(f"{key.name} = {key.example}\n    {key.meaning}{where}\n", None)
    context.exit()


def _print_schema(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from envsolve.project.json_schema import json_schema_text

    deliver(json_schema_text(), None)
    context.exit()


@click.command(cls=Command, short_help="Start a project: write [tool.envsolve] and its locks.")
@options_of_solve((*REQUEST, "platforms", "allow_builds"))
@option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    type=FileName("file"),
    help="A lock file to write; its name sets the format. Repeatable. "
    "Default: pylock.toml; conda-lock.yml for conda files.",
)
@option(
    "--exclude",
    multiple=True,
    metavar="NAME",
    help="Leave out a requirement of an imported file, by name, or by address if it has none. Repeatable.",
)
@option("--ci", type=click.Choice(_CI), help="Also write a CI job that checks the locks.")
@option("--project", metavar="DIR", type=FileName("directory"), help="The directory; default: this one.")
@option("--no-lock", is_flag=True, help="Write the project, but no locks.")
@option("--force", is_flag=True, help="Overwrite [tool.envsolve] and existing files.")
@dry_run_option
@click.option(
    "--keys",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_keys,
    help="Print the documentation of every key.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of the keys (for editors).",
)
@options_of_solve(HOW_TO_FETCH)
@matrix_option
@output_options
def init(**options: Any) -> int:
    """Write [tool.envsolve] into pyproject.toml from what is requested here, and its locks.

    Without a framework it is taken from what the directory has: environment.yml, requirements.txt, requirements.in,
    pixi.toml, conda-lock.yml or the dependencies in pyproject.toml. On a terminal, if there is none of them, init asks
    for frameworks, GPUs, Python and lock files. No file that is there is overwritten. With --dry-run the files are
    printed as a diff.

    \b
    Examples:
      envsolve init --framework pytorch transformers
      envsolve init -f jax --gpu A100 --driver 535.183.01 -o conda-lock.yml
    """
    from envsolve.app.project.project_locking import refuse_link
    from envsolve.app.solve.solving import LEFT_OUT
    from envsolve.project.reading import OWN_FILE, PYPROJECT, project_of, text_at
    from envsolve.project.writing import with_table

    directory = Path(options["project"] or ".").absolute()
    if not directory.is_dir():
        raise UsageError("no-project", f"the directory {directory} does not exist", hints=(Hint("create it first"),))
    matrix = matrix_of(options)
    file = directory / (OWN_FILE if (directory / OWN_FILE).is_file() else PYPROJECT)
    before = text_at(file) or ""
    mark = _MARK if before and read_head(file, len(codecs.BOM_UTF8)) == codecs.BOM_UTF8 else ""
    with_table(file, before, {}, replace=options["force"])  # refuses existing tables before any question
    values, adopted = _values(options, directory, matrix)

    def text_with(values: Mapping[str, object]) -> str:
        return with_table(file, before, values, replace=options["force"])

    with chdir(directory):
        requested, texts, notes = all_refused(
            lambda refused: _with_python_at_hand(file, text_with, _without(values, refused, options), options, matrix)
        )
        project, bare = project_of(file, text_with(requested)), _without_secrets(requested)
        after = text_with(bare)
        if bare != requested:
            notes = tuple(dict.fromkeys((*notes, LEFT_OUT)))
        outputs = dict.fromkeys((*texts, *(it.file for part in project.parts for it in part.outputs)))
        texts = {**_ci_file(project, options), **texts}
        existing = [name for name in texts if Path(name).exists() and not options["force"]]
        new = {file.name: f"{mark}{after}", **{name: text for name, text in texts.items() if name not in existing}}
        if options["dry_run"]:
            deliver("".join(_diff(new)), None)
        for name in new:
            refuse_link(directory, name)
        write_all([(Path(name), text) for name, text in new.items()], in_folders=True)
        unnamed = tuple(_without_framework(project))
        refused = [it for it in outputs if it not in new and _is_foreign(it)]
    left = _left(existing, refused, [it for it in existing if it in outputs and it not in refused])
    lines: tuple[Note | str, ...] = (*adopted.notes, *unnamed, *notes, *_summary_lines(new, adopted, options), *left)
    note_each(lines, options)
    return 0


def _values(options: Mapping[str, Any], directory: Path, matrix: Matrix) -> tuple[dict[str, object], Adopted]:
    """The keys to write: those that are requested here, or found in the directory, or answered by a person.

    Raises UsageError if there is no framework.
    """
    from envsolve.app.packages.conda_requirements import is_environment_file
    from envsolve.app.project.adopting import Adopted, adopted
    from envsolve.app.project.adopting_uv import left_of_pyproject, overrides_of
    from envsolve.host.machine import this_platform

    requested = dict(_requested(options))
    found = Adopted({})
    if not any(requested.get(key) for key in ("frameworks", "requirements", "requirement-files")):
        found = adopted(directory, this_platform(), matrix)
    of_conda = any(map(is_environment_file, options["requirement_files"]))
    values = {"outputs": ["conda-lock.yml" if of_conda else "pylock.toml"], **found.values, **requested}
    document = _pyproject(directory)
    if _has_dependencies(document) and not _holds_stacks_alone(values["outputs"]):
        values["project-dependencies"] = True
        if overrides := overrides_of(document):
            values.setdefault("overrides", overrides)
        files = (*found.files, "the dependencies in pyproject.toml")
        found = found._replace(files=files, notes=(*found.notes, *left_of_pyproject(document)))
    required = ("frameworks", "requirements", "requirement-files", "project-dependencies")
    if not any(values.get(key) for key in required):
        from envsolve.cli.init_questions import answers, can_ask

        if can_ask(options):
            return _values(answers(options, matrix), directory, matrix)
        raise UsageError(
            "no-framework",
            "no framework given, and none found in this directory",
            hints=(Hint("name one", "envsolve init --framework pytorch"),),
        )
    return values, found


def _requested(options: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The options from the command line or variables, as keys of a project."""
    context = click.get_current_context()
    lists = {
        "frameworks": "frameworks",
        "requirements": "requirements",
        "requirement_files": "requirement-files",
        "constraint_files": "constraint-files",
        "build_constraint_files": "build-constraint-files",
        "overrides": "overrides",
        "exclude": "exclude",
        "gpus": "gpus",
        "hosts": "hosts",
        "platforms": "platforms",
        "sources": "sources",
        "channels": "channels",
        "extra_index_urls": "extra-index-urls",
        "outputs": "outputs",
    }
    options = {**options, "requirements": (*options["requirements"], *map(editable, options["editables"]))}
    for name, key in lists.items():
        if options[name]:
            yield key, list(map(_typed, options[name]))
    if not options["gpus"] and not options["hosts"]:
        yield "gpus", "auto"
    for name in ("python", "cuda"):
        if options[name] is not None:
            yield name, versions_text(options[name])
    for name, key in (
        ("driver", "driver"),
        ("glibc", "glibc"),
        ("index_url", "index-url"),
        ("pytorch_index_url", "pytorch-index-url"),
        ("exclude_newer", "exclude-newer"),
    ):
        if options[name] is not None:
            yield key, str(options[name])
    if options["prefer"] is not Policy.NEWEST_FRAMEWORK and context.get_parameter_source("prefer") not in (
        ParameterSource.DEFAULT,
        ParameterSource.DEFAULT_MAP,
    ):
        yield "prefer", str(options["prefer"])
    if options["audit"] is not Audit.AUTO:
        yield "audit", str(options["audit"])
    flags = (("allow-builds", "allow_builds"), ("extensions", "extensions"), ("pre", "pre"))
    yield from ((key, True) for key, name in flags if options[name])


def _without_secrets(values: Mapping[str, object]) -> dict[str, object]:
    """``values`` without secrets, since a project file is shared."""
    return {key: _bare(value) if key in _WITH_ADDRESSES else value for key, value in values.items()}


def _bare(value: object) -> object:
    return list(map(_bare, value)) if isinstance(value, list) else without_secrets(str(value))


def _typed(value: object) -> str:
    """An element of a list as people write it."""
    return f"{value.framework}{in_usual_order(value.specifier)}" if isinstance(value, FrameworkRequest) else str(value)


def _pyproject(directory: Path) -> Mapping[str, Any]:
    """The pyproject.toml, whichever file the project is written to; empty if there is none."""
    from envsolve.project.reading import PYPROJECT, parsed, text_at

    path = directory / PYPROJECT
    text = text_at(path)
    return parsed(path, text) if text else {}


def _has_dependencies(document: Mapping[str, Any]) -> bool:
    project = document.get("project")
    return (
        isinstance(project, dict)
        and bool(project.get("dependencies"))
        and "dependencies" not in project.get("dynamic", ())
    )


def _without_framework(project: Project) -> Iterator[str]:
    """The note for a project without a framework; locking reports what cannot be read."""
    from envsolve.app.project.adopting import names_framework
    from envsolve.host.machine import this_platform

    try:
        named = all(names_framework(part.settings, this_platform()) for part in project.parts)
    except UsageError:
        return
    if not named:
        yield 'no framework is listed, so only package requirements count; to add one: frameworks = ["pytorch"]'


def _holds_stacks_alone(outputs: object) -> bool:
    """Whether some of the files only contain frameworks and so have no place for further requirements."""
    names = [str(it) for it in outputs] if isinstance(outputs, list) else []
    return any(it.endswith(_OF_STACKS_ALONE) and not it.endswith(_CONDA_LOCKS) for it in names)


def _locks(project: Project, options: dict[str, Any], matrix: Matrix) -> tuple[dict[str, str], tuple[Note, ...]]:
    """The locks of the project, by their names, and notes."""
    from envsolve.app.project.project_locking import ProjectLock, lock_project
    from envsolve.app.project.project_requests import require_wheels
    from envsolve.project.keys import KEYS

    parts = tuple(part._replace(typed=frozenset(KEYS)) for part in project.parts)  # no file has these values yet
    project = project._replace(parts=parts)
    if options["no_lock"]:
        require_wheels(project, matrix, os.environ)
        return {}, ()
    progress = Progress.of(options)
    progress.show("packages")
    how = ProjectLock(network_of(options), show=progress.show, counted=progress.packages, replaces=True)
    try:
        locked = lock_project(project, how, matrix, os.environ)
    except OutsideError as error:
        error.hints = (*error.hints, Hint("or write only the project, and lock later: --no-lock"))
        raise
    finally:
        progress.clear()
    return {it.path: it.text for it in locked.files}, locked.notes


def _without(values: Mapping[str, object], refused: Sequence[str], options: Mapping[str, Any]) -> Mapping[str, object]:
    """The keys, with what is ``refused`` left out too."""
    return {**values, "exclude": [*options["exclude"], *refused]} if refused else values


def _with_python_at_hand(
    file: Path,
    text_with: Callable[[Mapping[str, object]], str],
    values: Mapping[str, object],
    options: dict[str, Any],
    matrix: Matrix,
) -> tuple[Mapping[str, object], dict[str, str], tuple[Note, ...]]:
    """The keys and the locks, for a Python of this machine if the newest one is not available.

    ``text_with`` writes the keys. If the packages around the stack do not support that Python, it is not requested.
    """
    from envsolve.app.project.python_at_hand import python_at_hand
    from envsolve.project.reading import project_of

    text = text_with(values)
    found = python_at_hand(project_of(file, text), matrix, os.environ)
    if found is not None:
        bound = {**values, "python": found.python}
        advice = (
            f'set python = "{found.python}": the frameworks also support Python {found.newest}, but it is not on '
            "this machine, and there is no uv to fetch it"
        )
        try:
            texts, notes = _locks(project_of(file, text_with(bound)), options, matrix)
        except UnsolvableError:
            pass
        else:
            return bound, texts, (Note("python-at-hand", advice), *notes)
    return values, *_locks(project_of(file, text), options, matrix)


def _ci_file(project: Project, options: Mapping[str, Any]) -> dict[str, str]:
    if options["ci"] is None:
        return {}
    from envsolve.project.ci_snippet import FILES, ci_commands, ci_snippet

    outputs = [it.file for part in project.parts for it in part.outputs]
    installed = [it for it in outputs if it.endswith(_INSTALLED) and "{" not in it]
    return {FILES[options["ci"]].as_posix(): ci_snippet(options["ci"], ci_commands(installed))}


def _diff(new: Mapping[str, str]) -> Iterator[str]:
    """The changes as a unified diff."""
    for name, text in new.items():
        path = Path(name)
        try:
            there = (read_bytes(path, _LONGEST_SHOWN) or b"").decode("utf-8", "replace")
        except FileError as error:
            raise UsageError("file-unreadable", f"cannot read {path}: {error.reason}") from None
        old = name if there else "/dev/null"
        yield from unified_diff(there.splitlines(keepends=True), text.splitlines(keepends=True), old, name)


def _is_foreign(name: str) -> bool:
    """Whether `envsolve lock` refuses to overwrite the file of this name."""
    from envsolve.lockfile.own_file import refuse_to_overwrite

    try:
        refuse_to_overwrite(Path(name))
    except UsageError:
        return True
    return False


def _summary_lines(new: Mapping[str, str], adopted: Adopted, options: Mapping[str, Any]) -> Iterator[str]:
    if adopted.files:
        yield f"imported from {' and '.join(adopted.files)}"
    if options["dry_run"]:
        return
    yield f"written: {', '.join(new)}"
    if options["ci"] == "gitlab" and ".gitlab/envsolve.yml" in new:
        yield "add the job to .gitlab-ci.yml: include: .gitlab/envsolve.yml"
    if options["no_lock"]:
        yield "`envsolve lock` writes the locks"


def _left(existing: list[str], refused: list[str], locks: list[str]) -> Iterator[str]:
    """Notes on files that remain; ``refused`` are those that a lock will not overwrite."""
    if existing:
        ways = "`envsolve lock` updates locks, --force overwrites any file" if locks else "--force overwrites any"
        yield f"left as they are: {', '.join(existing)}; {ways}"
    for name in refused:
        yield (
            f"{name} was not written by envsolve, so `envsolve lock` overwrites it only with --force: name another "
            "file under outputs, and this one under requirement-files if it lists requirements"
        )
