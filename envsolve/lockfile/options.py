"""The options recorded in a lock: values by the keys of a project.

An environment.yml and a pixi.toml of a stack only have the command, in a comment, and the options are read from it.
"""

from __future__ import annotations

import shlex

from envsolve.model.requester import key_of

Options = tuple[tuple[str, tuple[str, ...]], ...]
"""Values by key. Options that were not given are left out."""
UNRECORDED = (
    *("--driver", "--glibc", "--gpu", "--host", "--platform", "--format"),
    *("--requirement", "--constraint", "--build-constraint"),
)
"""Options that files do not record: they have the compute capabilities, the C library and the contents of files
instead."""
CONSTRAINTS = "constraints"
"""The key of the contents of constraint files."""
BUILD_CONSTRAINTS = "build-constraints"
"""The key of the constraints on the requirements of builds."""
OVERRIDES = "overrides"
"""The key of the requirements that replace all others on the same package."""
AROUND = "around"
"""The key of packages that a lock leaves out because its environment has them: ``torch==2.8.0a0+nv25.6``."""
_FLAGS = ("--exact", "--allow-builds", "--extensions", "--pre")
_OF_PROJECT = "envsolve lock  # "


def options_in(command: str) -> Options:
    """Return the options in ``command``, as recorded_command of envsolve.app writes it; none if it is invalid."""
    if command.startswith(_OF_PROJECT):
        command = command.removeprefix(_OF_PROJECT).rpartition(" for ")[0]
    try:
        words = iter(shlex.split(command))
    except ValueError:  # an unclosed quote in an edited file
        return ()
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        if word.startswith("--"):
            value = "true" if word in _FLAGS else next(words, "")
            if word not in UNRECORDED:
                found[key_of(word)] = (*found.get(key_of(word), ()), value)
    return tuple(found.items())
