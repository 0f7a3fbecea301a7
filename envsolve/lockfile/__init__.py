"""From a solution to text: one module per format, each a function from an Answer to the file's content."""

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.formats import (
    CONDA_FORMATS,
    FORMATS,
    PYTHON_FORMATS,
    VENV_FORMATS,
    format_for_file,
    format_of_name,
    write,
)

__all__ = [
    "CONDA_FORMATS",
    "FORMATS",
    "PYTHON_FORMATS",
    "VENV_FORMATS",
    "Answer",
    "format_for_file",
    "format_of_name",
    "write",
]
