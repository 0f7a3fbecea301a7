"""The values that parameters are known to take, for completion: words of the request, and what the matrix names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import Policy

if TYPE_CHECKING:
    from envsolve.matrix import Matrix

    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType

Values = Callable[[click.Context, str], Iterable[str]]
"""What a parameter may be, given the line before it and what was typed of it: those that begin so, or all."""

_LEFT_OUT = ("nvidia", "geforce", "tesla")
"""What people leave out at the front of a product's name, as :class:`~envsolve.matrix.GpuNames` has it."""


class Known(_ParamType):
    """A value of which some are known; any other is as good, and the command judges it."""

    name = "known"

    def __init__(self, values: Values) -> None:
        self._values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The known values that begin with what was typed, in any case."""
        typed = incomplete.casefold()
        found = dict.fromkeys(self._values(ctx, incomplete))
        return [CompletionItem(value) for value in found if value.casefold().startswith(typed)]


def type_of_known(parameter: click.Parameter, command: str) -> click.ParamType[Any] | None:
    """The type that completes ``parameter`` of ``command``; None where it has one, or nothing is known of it."""
    if isinstance(parameter.type, click.Choice) or getattr(parameter, "is_flag", False):
        return None
    metavar = str(parameter.metavar or "").strip("[].")
    if metavar in _PATHS:
        return click.Path(file_okay=_PATHS[metavar])
    if (command, parameter.name) in _OF_COMMANDS:
        return _OF_COMMANDS[command, parameter.name]
    values = _VALUES.get(str(parameter.name))
    return None if values is None or metavar == "INDEX" else Known(values)


def _matrix(ctx: click.Context) -> Matrix:
    from envsolve.matrix import Matrix, find_matrix

    directory = ctx.params.get("matrix_directory")
    return Matrix(Path(directory) if directory else find_matrix())


def _frameworks(ctx: click.Context, typed: str) -> Iterable[str]:  # noqa: ARG001
    return _matrix(ctx).framework_names


def _tables(ctx: click.Context, typed: str) -> Iterable[str]:
    return (*_frameworks(ctx, typed), "cuda", "cudnn")


def _facts(ctx: click.Context, typed: str) -> Iterable[str]:
    return (*_tables(ctx, typed), "python", "driver")


def _toolkits(ctx: click.Context, typed: str) -> Iterable[str]:  # noqa: ARG001
    return (str(toolkit.version) for toolkit in _matrix(ctx).cuda.toolkits)


def _gpus(ctx: click.Context, typed: str) -> Iterator[str]:
    from envsolve.matrix.names import gpu_rows

    yield "auto"
    if ctx.command.name != "explain":
        yield "none"
    rows = gpu_rows(_matrix(ctx).document("gpus"))
    capabilities = {str(row.get("capability")) for row in rows}
    yield from sorted(capabilities, key=lambda text: [int(part) for part in text.split(".")])
    names = (spelled_as_typed(str(row.get("name")), typed) for row in rows)
    yield from sorted({name for name in names if name is not None})


def spelled_as_typed(name: str, typed: str) -> str | None:
    """The shortest way to write a product that begins with what was ``typed``; None where it does not.

    ``RTX 3`` is the beginning of ``RTX 3090``, and ``NVIDIA GeForce RTX 3`` that of the name the driver gives.
    """
    return next((it for it in _spellings(name) if it.casefold().startswith(typed.casefold())), None)


def _spellings(name: str) -> list[str]:
    words = name.removeprefix("NVIDIA ").split(" ")
    spellings = [" ".join(("NVIDIA", *words)), " ".join(words)]
    while len(words) > 1 and words[0].casefold() in _LEFT_OUT:
        words = words[1:]
        spellings.append(" ".join(words))
    return spellings[::-1]


def _formats(ctx: click.Context, typed: str) -> Iterable[str]:  # noqa: ARG001
    from envsolve.lock import CONDA_FORMATS, FORMATS, PYTHON_FORMATS, VENV_FORMATS

    of_locks = (*VENV_FORMATS, *CONDA_FORMATS)
    known = {"create": of_locks, "capture": of_locks, "export": (*of_locks, "environment")}
    return known.get(str(ctx.command.name), (*FORMATS, *PYTHON_FORMATS, *CONDA_FORMATS))


def _channels(ctx: click.Context, typed: str) -> Iterable[str]:  # noqa: ARG001
    return (source.channel for source in Source if source.channel is not None)


_PATHS = {"FILE": True, "EXE": True, "TEXT|FILE|-": True, "DIR": False}
"""Placeholders of paths, and whether a path may be a file."""
_OF_COMMANDS: dict[tuple[str, str | None], click.ParamType[Any]] = {
    ("create", "prefix"): click.Path(file_okay=False),
    ("show", "what"): Known(_tables),
}
_VALUES: dict[str, Values] = {
    "frameworks": _frameworks,
    "gpus": _gpus,
    "cuda": _toolkits,
    "platform": lambda *_: Platform,
    "platforms": lambda *_: Platform,
    "sources": lambda *_: Source,
    "prefer": lambda *_: Policy,
    "format_name": _formats,
    "channels": _channels,
    "why": _facts,
}
"""By the names that parameters have in every command."""
