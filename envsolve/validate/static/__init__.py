"""What can be told of an environment without a GPU and without running it: from its files and the loader's rules."""

from envsolve.validate.static.examination import StaticReport, examine

__all__ = ["StaticReport", "examine"]
