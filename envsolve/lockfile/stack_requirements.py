"""A stack as requirements for pip that are not a lock: the frameworks and limits that keep their CUDA consistent.

It is what the ``pip:`` section of an environment.yml would contain, for an environment without conda.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.header import commented, made_by, made_for_lines
from envsolve.lockfile.requirements_txt import index_options
from envsolve.lockfile.stack import lock_of


def stack_requirements(answer: Answer, commands: Sequence[str]) -> str:
    """Return the content of the file, for a stack of only wheels. ``commands`` apply it."""
    return "".join(f"{line}\n" for line in _lines(answer, commands))


def _lines(answer: Answer, commands: Sequence[str]) -> Iterator[str]:
    lock = lock_of(answer, sets_library_path=True)
    yield from made_by(answer.envsolve_version, answer.command, answer.matrix_date, own_matrix=answer.own_matrix)
    yield from made_for_lines(lock)
    yield f"# Resolved for: Python {lock.python}"
    yield "# To apply it:"
    yield from (f"#   {command}" for command in commands)
    yield from lock.remarks
    yield from index_options(lock)
    for requested in lock.requested:
        if requested.by_pip:
            yield commented(requested.spec, requested.reason)
