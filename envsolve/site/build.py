"""Build the site: every answer, then every page, into a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from envsolve.errors import Hint, UsageError
from envsolve.matrix.load import Matrix, find_matrix
from envsolve.site.data import Answers, all_outcomes, parts
from envsolve.site.pages import pages


def build_site(
    directory: Path, matrix_directory: Path | None, together: int, on_progress: Callable[[int, int], None]
) -> int:
    """Write the site into ``directory`` and return the number of its pages; ``on_progress`` as in all_outcomes.

    Only files of the same name are overwritten. Raises UsageError if the directory cannot be written, MatrixError if
    the matrix is invalid.
    """
    _write(directory / "index.html", "")  # before the answers, which take long
    matrix = Matrix(matrix_directory or find_matrix())
    every = parts(str(matrix.directory), matrix.framework_names, together)
    answers = Answers(matrix, all_outcomes(every, on_progress))
    count = 0
    for address, text in pages(answers):
        _write(directory / address, text)
        count += 1
    return count


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror or error}"
        raise UsageError("output-not-writable", message, hints=(Hint("choose another directory"),)) from error
