"""The questions of ``envsolve init`` on a terminal; each has an option, which skips the question."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from envsolve.cli.report import note
from envsolve.errors import EnvsolveError
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORKS, split_dependent
from envsolve.model.capability import ComputeCapability
from envsolve.model.lock_format import SOLVED_FORMATS, format_for_file
from envsolve.model.note import Note
from envsolve.model.request import parse_versions, versions_text
from envsolve.model.words import gpu_name

if TYPE_CHECKING:
    from envsolve.matrix import Matrix

T = TypeVar("T")

_NEWEST = "newest"
_OUTPUTS = "pylock.toml, requirements.txt, environment.yml, conda-lock.yml, ..."


def can_ask(options: Mapping[str, Any]) -> bool:
    """Whether a person can answer: not in a pipe, in CI or with -q."""
    on_terminal = all(it is not None and it.isatty() for it in (sys.stdin, sys.stderr))
    return on_terminal and not options["quiet"] and not os.environ.get("CI")


def answers(options: Mapping[str, Any], matrix: Matrix) -> dict[str, Any]:
    """``options`` with answers for what a project needs and they lack.

    Raises click.Abort at the end of the input and for Ctrl-C.
    """
    found = dict(options)
    known = ", ".join((*matrix.framework_names, *DEPENDENT_FRAMEWORKS))
    found["frameworks"] = _ask(f"Frameworks ({known})", next(iter(FRAMEWORKS)), lambda text: _frameworks(text, matrix))
    if not (options["gpus"] or options["hosts"] or options["driver"]):
        what = f"GPUs (auto: {_gpus_here(matrix)}; none; 'RTX 3090'; 8.6)"
        found["gpus"] = _ask(what, "auto", lambda text: _gpus(text, matrix))
    if options["python"] is None:
        found["python"] = _ask("Python (3.12, '>=3.10')", _NEWEST, _python)
    if not options["outputs"]:
        found["outputs"] = _ask(f"Lock files ({_OUTPUTS})", "pylock.toml", _outputs)
    text = "the same without questions"
    note(Note("same-command", text, shlex.join(["envsolve", "init", *_words(found, options)])), quiet=False)
    return found


def _ask(text: str, default: str, parse: Callable[[str], T]) -> T:
    """The answer; an invalid one repeats the question."""

    def parsed(answer: str) -> T:
        try:
            return parse(answer)
        except EnvsolveError as error:
            raise click.BadParameter("; ".join((error.message, *(it.text for it in error.hints)))) from None
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return click.prompt(text, default=default, value_proc=parsed, err=True)


def _frameworks(text: str, matrix: Matrix) -> tuple[str, ...]:
    from envsolve.app.solve.solving import framework_requests

    found = tuple(filter(None, re.split(r",?\s+", text.strip().rstrip(","))))
    framework_requests(split_dependent(found)[0], matrix)
    return found


def _gpus(text: str, matrix: Matrix) -> tuple[str, ...]:
    found = tuple(gpu_name(it.strip()) for it in re.split("[,;]", text) if it.strip())
    for it in found:
        if it not in ("auto", "none") and not _is_capability(it):
            matrix.gpus.find(it)
    return found


def _is_capability(text: str) -> bool:
    try:
        ComputeCapability.parse(text)
    except ValueError:
        return False
    return True


def _gpus_here(matrix: Matrix) -> str:
    from envsolve.app.request.hosts import detected_host

    host = detected_host(matrix, os.environ, thorough=False)
    return ", ".join(it.name or f"a GPU of {it.compute_capability}" for it in host.gpus) or "no GPU found here"


def _python(text: str) -> object:
    return None if text.strip().lower() == _NEWEST else parse_versions(text.strip())


def _outputs(text: str) -> tuple[str, ...]:
    found = tuple(it.strip() for it in text.split(",") if it.strip())
    unknown = next((it for it in found if format_for_file(PurePath(it)) not in SOLVED_FORMATS), None)
    if unknown is not None:
        raise ValueError(f"envsolve knows no lock of the name {unknown}: one of {_OUTPUTS}")
    return found


def _words(found: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[str]:
    """The options that give the answers without questions, after those that were typed."""
    from envsolve.cli.options import TYPED

    yield from click.get_current_context().meta[TYPED]
    for name, word in (("frameworks", "-f"), ("gpus", "--gpu"), ("outputs", "-o")):
        if found[name] != options[name]:
            yield from (part for it in found[name] for part in (word, it))
    if found["python"] is not options["python"]:
        yield from ("--python", versions_text(found["python"]))
