"""The environment part of ``envsolve doctor``: what breaks GPU stacks in an environment, read from its files."""

from envsolve.diagnose.environment.examination import CHECKS, examine_environment
from envsolve.diagnose.environment.found import FoundEnvironment, find_environment
from envsolve.diagnose.environment.from_files import inventory_from_files
from envsolve.diagnose.environment.scene import Scene

__all__ = [
    "CHECKS",
    "FoundEnvironment",
    "Scene",
    "examine_environment",
    "find_environment",
    "inventory_from_files",
]
