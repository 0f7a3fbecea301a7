"""The result of a list of checks, of a machine or of an environment, as text that JSON and a terminal take.

Names of files and values of variables may hold bytes that are no text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from envsolve.errors import EnvsolveError
from envsolve.findings.catalogue import make_finding
from envsolve.model.finding import Finding

T = TypeVar("T")


class Report(NamedTuple):
    """The findings, the most severe first, and what was examined, ready for JSON.

    ``checks`` are the subjects of the checks, each with the ids of its findings.
    """

    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    checks: tuple[tuple[str, tuple[str, ...]], ...]


def run_checks(
    checks: Sequence[tuple[str, Callable[[T], Iterable[Finding]]]], examined: T
) -> list[tuple[str, list[Finding]]]:
    """The findings of each check by its subject; one that fails has a finding about that, and the others continue.

    Raises MatrixError if the matrix cannot be read.
    """
    return [(subject, list(_found(subject, check, examined))) for subject, check in checks]


def _found(subject: str, check: Callable[[T], Iterable[Finding]], examined: T) -> Iterator[Finding]:
    """The findings of a check, up to the point where it fails."""
    try:
        yield from check(examined)
    except EnvsolveError:
        raise
    except Exception as error:  # noqa: BLE001 - the other checks are worth more than a traceback
        yield not_made(subject, error)


def not_made(subject: str, error: Exception) -> Finding:
    """The finding about a check that failed."""
    text = f"{type(error).__name__}: {error}"
    title = subject[:1].upper() + subject[1:]
    return make_finding("check-not-made", (text,), about=subject, subject=title, reason=text)


def found_by(found: list[tuple[str, list[Finding]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The subjects of checks with the ids of their findings."""
    return tuple((subject, tuple(it.id for it in of_check)) for subject, of_check in found)


def printable(finding: Finding) -> Finding:
    """The finding with such bytes written as escapes."""
    return finding.with_texts(_text)


def printable_inventory(inventory: Mapping[str, object]) -> Mapping[str, object]:
    """The inventory with such bytes written as escapes."""
    return {name: _value(value) for name, value in inventory.items()}


def _value(value: object) -> object:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {key: _value(it) for key, it in value.items()}
    return [_value(it) for it in value] if isinstance(value, list) else value


def _text(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
