"""``envsolve matrix``: look into the compatibility matrix and check it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.options import matrix_option, option
from envsolve.cli.output import deliver
from envsolve.errors import MatrixError

if TYPE_CHECKING:
    from envsolve.matrix.load import Matrix


@click.group()
def matrix() -> None:
    """Look into the compatibility matrix."""


@matrix.command("list")
@option("--json", "as_json", is_flag=True, help="Print JSON.")
@matrix_option
def list_frameworks(as_json: bool, matrix_directory: str | None) -> None:
    """List the frameworks and how far their releases go."""
    from envsolve.app.matrix import overview

    rows = overview(_matrix(matrix_directory))
    if as_json:
        deliver(json.dumps({"frameworks": rows}, indent=2) + "\n", None)
        return
    lines = [f"{row['framework']:<12} {row['oldest']} to {row['newest']}, {row['builds']} builds\n" for row in rows]
    deliver("".join(lines), None)


@matrix.command()
@click.argument("framework", metavar="FRAMEWORK[==VERSION]")
@option("--json", "as_json", is_flag=True, help="Print JSON, with the evidence of every row.")
@matrix_option
def show(framework: str, as_json: bool, matrix_directory: str | None) -> None:
    """Show every known build of a framework: CUDA, cuDNN, Python, driver and GPUs."""
    from envsolve.app.matrix import releases_of

    rows = releases_of(framework, _matrix(matrix_directory))
    if as_json:
        deliver(json.dumps({"releases": rows}, indent=2, ensure_ascii=False) + "\n", None)
        return
    deliver("".join(f"{_line(row)}\n" for row in rows), None)


@matrix.command()
@matrix_option
def check(matrix_directory: str | None) -> None:
    """Check every file of the matrix and report all mistakes at once."""
    found = _matrix(matrix_directory).check()
    if found:
        count = f"{len(found)} mistakes" if len(found) > 1 else "a mistake"
        raise MatrixError("matrix-invalid", f"the compatibility matrix holds {count}", tuple(found))
    deliver("the compatibility matrix is sound\n", None)


def _matrix(directory: str | None) -> Matrix:
    from envsolve.matrix import Matrix, find_matrix

    return Matrix(Path(directory) if directory else find_matrix())


def _line(row: dict[str, Any]) -> str:
    cuda = (
        f"CUDA {row['cuda']}, cuDNN {row['cudnn'] or 'any'}, driver {row['minimum_driver']}" if row["cuda"] else "CPU"
    )
    code = ", ".join([*row["compute_capabilities"], *(f"{target}+PTX" for target in row["ptx"])])
    pythons = f"Python {row['pythons'][0]} to {row['pythons'][-1]}"
    where = f"{row['version']:<9} {row['source']:<11} {row['platform']:<13} {row['build']:<8}"
    return f"{where} {cuda}, {pythons}" + (f", GPUs {code}" if code else "")
