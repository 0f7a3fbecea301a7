"""The table in a lock of envsolve with the facts that the lock is based on.

The table is the same in every format. pylock.toml has it as ``[tool.envsolve]``, a requirements file and an image have
it as TOML in the comments at the top, conda-lock.yml has it as strings in its ``custom_metadata``. An explicit file and
an environment.yml have part of it in words, in the comments at the top (:mod:`envsolve.lockfile.header`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from envsolve.boundary.files import FileError, toml_document
from envsolve.lockfile.lock import Lock, LockedFramework, Made, Stack
from envsolve.lockfile.options import Options, options_in
from envsolve.lockfile.toml import Value, table_lines
from envsolve.model.versions import DriverVersion

if TYPE_CHECKING:
    from envsolve.model.conda import VirtualPackage

SCHEMA_VERSION = 1
TABLE = "[tool.envsolve]"


def facts_of(lock: Lock) -> dict[str, Value]:
    """Return the table of ``lock``, without unknown facts; empty for a lock of another tool.

    For machines it has the lowest driver and the compute capabilities, not the exact driver: a lock stays the same if a
    machine changes in ways that do not matter.
    """
    made = lock.made
    if made is None:
        return {}
    facts: dict[str, Value | None] = {
        "schema_version": SCHEMA_VERSION,
        "envsolve_version": made.envsolve_version,
        "command": made.command,
        "request": None if made.request is None else list(made.request),
        "options": {key: list(values) for key, values in made.options},
        "matrix_date": made.matrix_date,
        "own_matrix": made.own_matrix or None,
        "exclude_newer": made.exclude_newer,
        "variables": dict(lock.variables) or None,
        "platform": lock.platform or None,
        "python": lock.python or None,
        "glibc": lock.glibc,
        "virtual_packages": list(map(str, lock.virtual_packages)) or None,
        **({} if lock.stack is None else stack_facts(lock.stack)),
        "evidence": {key: list(names) for key, names in made.evidence} or None,
        "notes": list(made.notes) or None,
        "asked_digest": made.request_digest,
        "packages_digest": made.packages_digest,
    }
    return {key: fact for key, fact in facts.items() if fact is not None}


def stack_facts(stack: Stack) -> dict[str, Value | None]:
    """Return the part of the table about a stack, with None for unknown facts."""
    return {
        "minimum_driver": stack.minimum_driver,
        "compute_capabilities": list(stack.capabilities),
        "cuda": stack.cuda,
        "cudnn": stack.cudnn,
        "frameworks": [it._asdict() for it in stack.frameworks] or None,
    }


def with_facts(lock: Lock, facts: Mapping[str, object] | None, *, machines: str = "") -> Lock:
    """Return ``lock`` with the facts of a table that have the expected form.

    ``machines`` describes the machines in words.
    """
    if not isinstance(facts, Mapping) or not isinstance(facts.get("envsolve_version"), str):
        return lock
    variables = facts.get("variables")
    return lock._replace(
        platform=_text(facts, "platform") or "",
        python=_text(facts, "python") or "",
        glibc=_text(facts, "glibc"),
        stack=_stack(facts, machines),
        made=Made(
            str(facts["envsolve_version"]),
            _text(facts, "command") or "",
            texts(facts, "request") if "request" in facts else None,
            _text(facts, "matrix_date"),
            facts.get("own_matrix") is True,
            _text(facts, "exclude_newer"),
            texts(facts, "notes"),
            _text(facts, "asked_digest"),
            _text(facts, "packages_digest"),
            options_of(facts.get("options"), _text(facts, "command") or ""),
            _lists(facts.get("evidence")),
        ),
        variables=_pairs(variables) if isinstance(variables, Mapping) else (),
        virtual_packages=tuple(map(_virtual_package, texts(facts, "virtual_packages"))),
    )


def options_of(options: object, command: str) -> Options:
    """Return the options that a file records, or those in the command at the top of a file that records none."""
    if not isinstance(options, Mapping):
        return options_in(command)
    return _lists(options)


def commented(facts: Mapping[str, Value]) -> Iterator[str]:
    """Yield the table as comments; nothing for an empty one."""
    if facts:
        yield "#"
        yield f"# {TABLE}"
    for line in table_lines(facts):
        yield f"# {line}"


def in_comments(text: str) -> Mapping[str, object] | None:
    """Return the table in the comments at the top of a file, or None if there is none.

    Comments further down are ignored. Raises FileError if the comments that begin the table are not valid TOML.
    """
    lines = "\n".join(_lines(text))
    if not lines:
        return None
    try:
        return table_in(toml_document(lines))
    except FileError as error:
        raise FileError(error.reason) from None  # the line number would be that within the comments


def table_in(document: Mapping[str, Any]) -> Mapping[str, object] | None:
    """Return envsolve's table in a TOML document."""
    tool = document.get("tool")
    found = tool.get("envsolve") if isinstance(tool, Mapping) else None
    return found if isinstance(found, Mapping) else None


def texts(facts: Mapping[str, object], key: str) -> tuple[str, ...]:
    """Return the strings in the list that ``facts`` has under ``key``."""
    found = facts.get(key)
    return tuple(it for it in found if isinstance(it, str)) if isinstance(found, list | tuple) else ()


def _lines(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if not line.startswith("#"):
            return
        inside = inside or line.rstrip() == f"# {TABLE}"
        if inside:
            yield line.removeprefix("#").removeprefix(" ")


def _stack(facts: Mapping[str, object], machines: str) -> Stack | None:
    frameworks = facts.get("frameworks")
    if not isinstance(frameworks, list | tuple) and not machines:
        return None
    return Stack(
        tuple(filter(None, map(_framework, frameworks if isinstance(frameworks, list | tuple) else ()))),
        texts(facts, "compute_capabilities"),
        _driver(facts),
        _text(facts, "cuda"),
        _text(facts, "cudnn"),
        machines,
    )


def _lists(table: object) -> Options:
    return tuple((str(key), texts(table, str(key))) for key in table) if isinstance(table, Mapping) else ()


def _pairs(table: Mapping[object, object]) -> tuple[tuple[str, str], ...]:
    return tuple((key, text) for key, text in table.items() if isinstance(key, str) and isinstance(text, str))


def _virtual_package(text: str) -> VirtualPackage:
    from envsolve.model.conda import VirtualPackage

    name, _, rest = text.partition("=")
    version, _, build = rest.partition("=")
    return VirtualPackage(name, version or "0", build or "0")


def _framework(table: object) -> LockedFramework | None:
    if not isinstance(table, Mapping):
        return None
    values = [table.get(field) for field in LockedFramework._fields]
    return LockedFramework(*map(str, values)) if all(isinstance(it, str) for it in values) else None


def _driver(facts: Mapping[str, object]) -> str | None:
    """The oldest driver, or None if it is not a valid version."""
    found = _text(facts, "minimum_driver")
    try:
        return None if found is None else str(DriverVersion.parse(found))
    except ValueError:
        return None


def _text(facts: Mapping[str, object], key: str) -> str | None:
    found = facts.get(key)
    return found if isinstance(found, str) else None
