"""From a solution to text: one module per format, each a function from an Answer to the file's content."""

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.formats import write

__all__ = ["Answer", "write"]
