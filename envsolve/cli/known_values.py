"""The known values of options, for completion: words of the request, and names in the matrix.

Each of these is a ``shell_complete`` of click. Other values are possible, and the command checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import click

from envsolve.errors import EnvsolveError

if TYPE_CHECKING:
    from envsolve.matrix import Matrix

Completer = Callable[[click.Context, click.Parameter, str], list[str]]

_LEFT_OUT = ("nvidia", "geforce", "tesla")
"""Prefixes of product names that people omit; :class:`~envsolve.matrix.GpuNames` has the same."""


def _known(values: Callable[[click.Context, str], Iterable[str]]) -> Completer:
    """Those of ``values`` that begin with what was typed, in any case; none if the matrix cannot be read."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001
        try:
            found = dict.fromkeys(values(ctx, incomplete))
        except EnvsolveError:
            return []  # a message would appear in the middle of the command line
        return [value for value in found if value.casefold().startswith(incomplete.casefold())]

    return complete


def _matrix(ctx: click.Context) -> Matrix:
    from envsolve.matrix import Matrix

    directory = ctx.params.get("matrix_directory")
    return Matrix(directory)


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
    """The shortest spelling of a product that begins with what was ``typed``; None if there is none.

    ``RTX 3`` is the beginning of ``RTX 3090``, and ``NVIDIA GeForce RTX 3`` that of the name in the driver.
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
    from envsolve.model.lock_format import CAPTURE_FORMATS, CREATE_FORMATS, EXPORT_FORMATS, SOLVED_FORMATS

    known = {"create": CREATE_FORMATS, "capture": CAPTURE_FORMATS, "export": EXPORT_FORMATS}
    return known.get(str(ctx.command.name), SOLVED_FORMATS)


def _channels(ctx: click.Context, typed: str) -> Iterable[str]:  # noqa: ARG001
    from envsolve.model.release import Source

    return (source.channel for source in Source if source.channel is not None)


def _differences(ctx: click.Context, typed: str) -> Iterator[str]:  # noqa: ARG001
    """The kinds of differences that ``diff`` may fail on, each after those that are already typed."""
    from envsolve.app.status.lock_diff import Kind

    before = typed.rpartition(",")[0]
    given = before.split(",")
    yield from (f"{before},{kind}".removeprefix(",") for kind in Kind if kind not in given)


def _frameworks(ctx: click.Context, typed: str) -> Iterable[str]:  # noqa: ARG001
    from envsolve.frameworks import DEPENDENT_FRAMEWORKS

    names = _matrix(ctx).framework_names
    return (*names, *(it.name for it in DEPENDENT_FRAMEWORKS.values() if it.on in names))


frameworks = _known(_frameworks)
builds = _known(lambda ctx, _: _matrix(ctx).framework_names)
tables = _known(lambda ctx, _: (*_matrix(ctx).framework_names, "cuda", "cudnn"))
facts = _known(lambda ctx, _: (*_matrix(ctx).framework_names, "cuda", "cudnn", "python", "driver"))
toolkits = _known(lambda ctx, _: (str(toolkit.version) for toolkit in _matrix(ctx).cuda.toolkits))
gpus = _known(_gpus)
devices = _known(lambda _ctx, _typed: ("auto", "cpu", "cuda", "cuda:0"))
formats = _known(_formats)
channels = _known(_channels)

differences = _known(_differences)
