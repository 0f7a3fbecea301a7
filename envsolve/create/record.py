"""``PREFIX/.envsolve.json``: what an environment was made from, and whether it is finished.

The record is written before anything else: a directory with an unfinished record may be cleared, one without a record
belongs to someone else. The lock is beside it in a separate directory, so that the same environment can be made again.
Neither contains a time: the same lock gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from envsolve import __version__
from envsolve.boundary.files import FileError, json_value, read_bytes
from envsolve.create.plan import Kind, Plan
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.facts import facts_of

RECORD = ".envsolve.json"
LOCKS = ".envsolve"
"""The directory with the lock."""
_SCHEMA_VERSION = 1
_LONGEST = 1024 * 1024
"""Bytes of a record."""
_OF_HOST = ("platform", "glibc", "minimum_driver", "compute_capabilities", "cuda", "cudnn", "virtual_packages")
"""The facts in a lock that depend on machines."""


class State(StrEnum):
    """The state of an environment."""

    UNFINISHED = "unfinished"
    FINISHED = "finished"
    CHANGING = "changing"
    """It was finished, and is being changed to another lock."""


class Record(NamedTuple):
    """The record of an environment: its state, and what it is made from.

    ``prefix`` is the place that it was made for, which is in its files: after a copy or a move it differs. ``python``
    is the requested interpreter of a venv, "" if none was requested. ``request`` is the command that makes the
    environment again. ``passed`` says whether its last validation passed; None if there was none since the last change.
    """

    state: State
    kind: Kind
    lock_name: str
    lock_sha256: str
    python: str = ""
    request: str = ""
    prefix: str = ""
    facts: Mapping[str, object] = {}
    passed: bool | None = None

    @property
    def lock_path(self) -> str | None:
        """The file that was named as the lock; None if the lock was solved, or the command is unknown."""
        try:
            words = shlex.split(self.request)
        except ValueError:
            return None
        return next((path for word, path in pairwise(words) if word == "--lock"), None)

    def names(self, prefix: Path) -> bool:
        """Whether it is the record of an environment at ``prefix``, whatever links lead there."""
        try:
            return Path(self.prefix).is_absolute() and Path(self.prefix).samefile(prefix)
        except (OSError, ValueError):
            return False

    def is_of(self, plan: Plan) -> bool:
        """Whether it is the record of an environment that ``plan`` would make again."""
        other = record_of(plan, "", State.FINISHED)
        return all(getattr(self, it) == getattr(other, it) for it in ("state", "kind", "lock_sha256", "python"))


def record_of(plan: Plan, request: str, state: State, prefix: Path | str = "") -> Record:
    """The record of an environment at ``prefix`` that ``plan`` makes for ``request``."""
    digest = hashlib.sha256(plan.text.encode()).hexdigest()
    python = "" if plan.python is None else str(plan.python)
    return Record(state, plan.kind, plan.lock_name, digest, python, request, str(prefix), facts_of(plan.lock))


def write_record(prefix: Path, record: Record) -> None:
    """Write the record atomically. Raises OSError."""
    facts = record.facts
    host = {key: facts[key] for key in _OF_HOST if key in facts}
    content = {
        "schema_version": _SCHEMA_VERSION,
        "state": record.state,
        "kind": record.kind,
        "prefix": record.prefix,
        "envsolve_version": __version__,
        "matrix_date": facts.get("matrix_date"),
        "request": record.request,
        "python": record.python or None,
        "host": host,
        "frameworks": facts.get("frameworks", []),
        "lock": {"file": f"{LOCKS}/{record.lock_name}", "sha256": record.lock_sha256},
        "validation_passed": record.passed,
    }
    temporary = prefix / f"{RECORD}.new"
    temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")
    temporary.replace(prefix / RECORD)


def write_lock(prefix: Path, plan: Plan) -> None:
    """Write the lock of ``plan`` into its directory. Raises OSError."""
    folder = prefix / LOCKS
    folder.mkdir(exist_ok=True)
    (folder / plan.lock_name).write_text(plan.text, "utf-8", newline="\n")


def read_record(prefix: Path) -> Record | None:
    """The record of the environment at ``prefix``; None if there is none.

    Raises UsageError ``record-unreadable`` if it is broken, or from a newer envsolve.
    """
    try:
        text = read_bytes(prefix / RECORD, _LONGEST, follow=False)
        if text is None:
            return None
        content: Any = json_value(text)
        if content["schema_version"] != _SCHEMA_VERSION:
            raise _unreadable(prefix, f"it has version {content['schema_version']}, from another version of envsolve")
        return Record(
            State(content["state"]),
            Kind(content["kind"]),
            str(content["lock"]["file"]).rpartition("/")[2],
            str(content["lock"]["sha256"]),
            str(content["python"] or ""),
            str(content["request"]),
            str(content["prefix"]),
            {**content["host"], "matrix_date": content["matrix_date"], "frameworks": content["frameworks"]},
            content.get("validation_passed"),  # which older records do not have
        )
    except FileError as error:
        raise _unreadable(prefix, error.reason) from None
    except (ValueError, KeyError, TypeError):
        raise _unreadable(prefix, "envsolve did not write it") from None


def _unreadable(prefix: Path, reason: str) -> UsageError:
    message = f"cannot read {prefix / RECORD}, the record of the environment: {reason}"
    return UsageError("record-unreadable", message, hints=(Hint("choose another PREFIX, or remove the directory"),))
