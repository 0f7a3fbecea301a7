"""From the TOML of a project to a :class:`~envsolve.project.project.Project`, or an error with every mistake in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from envsolve.boundary import files
from envsolve.errors import Hint, ProjectError, UsageError
from envsolve.model.own_lines import without_own_lines
from envsolve.model.request import Audit
from envsolve.project.checking import checked
from envsolve.project.lines import line_of_entry, lines_of
from envsolve.project.project import Machine, Output, Part, Project, Settings
from envsolve.project.standard_tables import Mistake

PYPROJECT, OWN_FILE = "pyproject.toml", "envsolve.toml"
TABLE = ("tool", "envsolve")
LONGEST = 4 * 1024 * 1024
"""The maximum size of a project file in bytes."""
_NEARLY = 0.87
"""The similarity of two names with a typo: one letter is missing, added, or misplaced."""
WRITE_ONE = Hint("write one", "envsolve init --framework pytorch")


def find_project(start: Path) -> Path | None:
    """Return the project file in the directory ``start``, or in the nearest one above it, or None.

    That is envsolve.toml, else a pyproject.toml with the table ``[tool.envsolve]``. Raises UsageError for one that
    cannot be read.
    """
    start = start.absolute()
    for directory in (start, *start.parents):
        if (directory / OWN_FILE).is_file():
            return directory / OWN_FILE
        other = directory / PYPROJECT
        text = text_at(other)
        if text and _table(other, parsed(other, text), text) is not None:
            return other
    return None


def project_file(directory: str | None) -> Path:
    """Return the project file in ``directory``, or in the current directory or the nearest above it.

    Raises UsageError ``no-project`` if there is none.
    """
    start = Path(directory) if directory else Path.cwd()
    if directory and not start.is_dir():
        raise UsageError("no-project", f"the directory {directory} does not exist", hints=(Hint("check the name"),))
    found = find_project(start)
    if found is None:
        raise UsageError(
            "no-project",
            f"no pyproject.toml with [tool.envsolve] and no envsolve.toml in {start} or above",
            hints=(*misspelled_table(start), WRITE_ONE),
        )
    return found


def misspelled_table(start: Path) -> tuple[Hint, ...]:
    """Return hints if a pyproject.toml in ``start`` or above has a table with nearly the right name.

    Raises UsageError for one that cannot be read.
    """
    start = start.absolute()
    paths = (it / PYPROJECT for it in (start, *start.parents))
    return next((hints for it in paths if (text := text_at(it)) and (hints := _nearly(it, parsed(it, text)))), ())


def _nearly(path: Path, document: Mapping[str, Any]) -> tuple[Hint, ...]:
    from difflib import SequenceMatcher

    tool = document.get("tool")
    tables = [name for name, value in tool.items() if isinstance(value, dict)] if isinstance(tool, dict) else []
    near = [it for it in tables if SequenceMatcher(None, it.lower(), TABLE[-1]).ratio() >= _NEARLY]
    return tuple(Hint(f"did you mean [tool.envsolve]? {path} has [tool.{name}]") for name in near[:1])


def read_project(path: Path) -> Project:
    """Return the project in ``path``.

    Raises UsageError ``project-invalid`` with every mistake, its key and its line; ``no-project`` if a pyproject.toml
    has no table ``[tool.envsolve]``; ``file-unreadable`` if the file cannot be read or is not TOML.
    """
    return project_of(path, read_text(path))


def project_of(path: Path, text: str) -> Project:
    """Return the project in ``text``, the content of ``path``. Errors are as in :func:`read_project`."""
    document = parsed(path, text)
    table = _table(path, document, text)
    if table is None:
        raise UsageError(
            "no-project",
            f"{path.name} has no table [tool.envsolve]",
            hints=(*_nearly(path, document), WRITE_ONE),
        )
    prefix = TABLE if path.name == PYPROJECT else ()
    lines = lines_of(text)
    values, mistakes = checked(table, _standard(path, text), path.parent)
    mistakes += _beside(path)
    if mistakes:
        refuse(path, [(_line_of(path, text, lines, it, prefix), it) for it in mistakes], prefix)
    key_lines = tuple((key[len(prefix) :], line) for key, line in lines.items() if key[: len(prefix)] == prefix)
    return Project(path, tuple(_parts(values, path.name)), key_lines)


def refuse_value(project: Project, key: tuple[str, ...], error: UsageError) -> NoReturn:
    """Raise ``error``, caused by the value of ``key``, with the place of that key."""
    line = _line(dict(project.lines), key)
    where = project.file.name if line is None else f"{project.file.name}:{line}"
    error.message = f"{where}: {'.'.join(key)}: {error.message}"
    raise error


def refuse(path: Path, mistakes: Sequence[tuple[int | None, Mistake]], prefix: tuple[str, ...]) -> NoReturn:
    """Raise UsageError with every mistake and its place, in the order of the file."""
    in_order = sorted(mistakes, key=lambda it: it[0] or 0)
    texts = [_mistake_text(path, line, it, prefix) for line, it in in_order]
    many = "a mistake" if len(texts) == 1 else f"{len(texts)} mistakes"
    raise ProjectError(
        "project-invalid",
        f"{path} has {many}",
        tuple(texts),
        (Hint("fix the file; list the documentation of every key", "envsolve init --keys"),),
    )


def read_text(path: Path) -> str:
    """Return the content of a project file with its line ends, without a byte order mark.

    Raises UsageError ``file-unreadable`` if it cannot be read.
    """
    text = text_at(path)
    if text is None:
        raise UsageError("file-unreadable", f"cannot read {path}: there is no such file", hints=(WRITE_ONE,))
    return text


def text_at(path: Path) -> str | None:
    """Return the same, or None if there is no file at ``path``."""
    try:
        content = files.read_bytes(path, LONGEST)
        return None if content is None else content.decode("utf-8-sig")
    except files.FileError as error:
        hint = Hint("check the permissions of the file")
        raise UsageError("file-unreadable", f"cannot read {path}: {error.reason}", hints=(hint,)) from None
    except UnicodeDecodeError:
        hint = Hint("save the file as UTF-8")
        raise UsageError("file-unreadable", f"cannot read {path}: it is not UTF-8", hints=(hint,)) from None


def parsed(path: Path, text: str) -> Mapping[str, Any]:
    """Return the tables of ``text``, the content of ``path``.

    Raises UsageError ``file-unreadable`` if it is not TOML.
    """
    try:
        return files.toml_document(text)
    except files.FileError as error:
        hint = Hint("fix the file at that place")
        raise UsageError("file-unreadable", f"cannot read {path}: {error.reason}", hints=(hint,)) from None


def _table(path: Path, document: Mapping[str, Any], text: str) -> Mapping[str, Any] | None:
    if path.name != PYPROJECT:
        return document
    tool = document.get("tool")
    found = tool.get("envsolve") if isinstance(tool, dict) else None
    if found is not None and not isinstance(found, dict):
        refuse(path, [(_line(lines_of(text), TABLE), Mistake((), "it is not a table: [tool.envsolve]"))], TABLE)
    return found


def _standard(path: Path, text: str) -> Mapping[str, Any]:
    """The file with the project's standard tables: for envsolve.toml the pyproject.toml next to it.

    What envsolve wrote into it for uv is removed, because it requires what was locked before.
    """
    other = _standard_file(path)
    return parsed(other, without_own_lines(text if other == path else read_text(other)))


def _standard_file(path: Path) -> Path:
    other = path.with_name(PYPROJECT)
    return other if other.is_file() else path


def _beside(path: Path) -> list[Mistake]:
    """A mistake if there is a second project next to an envsolve.toml, because it is unclear which one counts."""
    other = path.with_name(PYPROJECT)
    if path.name == PYPROJECT or not other.is_file():
        return []
    text = read_text(other)
    if _table(other, parsed(other, text), text) is None:
        return []
    return [Mistake((), f"{PYPROJECT} in the same directory also has [tool.envsolve]: remove one of them")]


def _line_of(
    path: Path, text: str, lines: Mapping[tuple[str, ...], int], mistake: Mistake, prefix: tuple[str, ...]
) -> int | None:
    """The line of a mistake in the project with the content ``text``, or in the file of its standard tables."""
    if mistake.entry is None:
        return _line(lines, (*prefix, *mistake.path))
    other = _standard_file(path)
    text = text if other == path else read_text(other)
    return line_of_entry(text, mistake.path, mistake.entry) or _line(lines_of(text), mistake.path)


def _mistake_text(path: Path, line: int | None, mistake: Mistake, prefix: tuple[str, ...]) -> str:
    """A mistake with its file, line and key."""
    file = path if mistake.entry is None else _standard_file(path)
    key = ".".join((*(prefix if mistake.entry is None else ()), *mistake.path))
    return ": ".join(filter(None, (f"{file.name}{'' if line is None else f':{line}'}", key, mistake.text)))


def _line(lines: Mapping[tuple[str, ...], int], key: tuple[str, ...]) -> int | None:
    """The line of a key, or of the nearest table around it."""
    for length in range(len(key), 0, -1):
        if key[:length] in lines:
            return lines[key[:length]]
    return None


def _parts(values: Mapping[str, Any], file: str) -> Iterator[Part]:
    """The parts of a project without mistakes: the shared one first, then those with their own files."""
    targets: Mapping[str, Mapping[str, Any]] = values.get("targets", {})
    common = {key: value for key, value in values.items() if key != "targets"}
    if not targets:
        yield _part("", [("", common)], common, file)
        return
    merged = {name: _merged(common, target) for name, target in targets.items()}
    shared = [(name, merged[name]) for name, target in targets.items() if "outputs" not in target]
    if shared:
        yield _part("", shared, common, file)
    for name, target in targets.items():
        if "outputs" in target:
            yield _part(name, [(name, merged[name])], merged[name], file)


def _merged(common: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    """A target's own keys over the project's. Requirements are added, and hosts replace gpus and driver."""
    merged = dict(common)
    if "hosts" in target:
        merged = {key: value for key, value in merged.items() if key not in ("gpus", "driver")}
    if "gpus" in target or "driver" in target:
        merged.pop("hosts", None)
    if "gpus" in target and "driver" not in target:
        merged.pop("driver", None)
    adding = ("requirements", "requirement-files", "constraint-files", "build-constraint-files", "overrides", "exclude")
    more = {key: (*common.get(key, ()), *target[key]) for key in adding if key in target}
    return {**merged, **target, **more}


def _part(name: str, machines: Sequence[tuple[str, Mapping[str, Any]]], keys: Mapping[str, Any], file: str) -> Part:
    own, standard = keys.get("requirements", ()), keys.get("of-project", ())
    settings = Settings(
        frameworks=keys.get("frameworks", ()),
        requirements=(*own, *standard),
        requirement_files=keys.get("requirement-files", ()),
        constraint_files=keys.get("constraint-files", ()),
        overrides=keys.get("overrides", ()),
        exclude=keys.get("exclude", ()),
        build_constraint_files=keys.get("build-constraint-files", ()),
        python=keys.get("python"),
        cuda=keys.get("cuda"),
        sources=keys.get("sources", ()),
        channels=keys.get("channels", ()),
        index_url=keys.get("index-url"),
        extra_index_urls=keys.get("extra-index-urls", ()),
        pytorch_index_url=keys.get("pytorch-index-url"),
        exclude_newer=keys.get("exclude-newer"),
        audit=keys.get("audit", Audit.AUTO),
        allow_builds=keys.get("allow-builds", False),
        pre=keys.get("pre", False),
        extensions=keys.get("extensions", False),
        uv_settings=keys.get("uv-settings", False),
        places=(*(file for _ in own), *(PYPROJECT for _ in standard)),
        names_python=keys.get("names-python", False),
        **({"prefer": keys["prefer"]} if "prefer" in keys else {}),
    )
    named = tuple(
        Machine(
            it,
            values.get("gpus", ()),
            values.get("driver"),
            values.get("glibc"),
            values.get("hosts", ()),
            values.get("platforms", ()),
        )
        for it, values in machines
    )
    outputs = tuple(Output(**it) for it in keys.get("outputs", ()))
    return Part(name, settings, named, outputs)
