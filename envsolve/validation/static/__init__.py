"""What can be known of an environment without a GPU and without running it: from its files and the loader's rules."""

from envsolve.validation.static.examination import StaticReport, examine

__all__ = ["StaticReport", "examine"]
