"""Lock formats: one module per format, which writes a lock as text and reads it back."""

from envsolve.lockfile.answer import Answer
from envsolve.lockfile.formats import write

__all__ = ["Answer", "write"]
