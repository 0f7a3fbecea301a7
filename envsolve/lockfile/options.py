"""What a file records of the options that it was made with: values by the keys of a project.

An environment.yml and a pixi.toml of a stack have the command alone, on top for people, out of which they are read.
"""

from __future__ import annotations

import shlex

from envsolve.model.requester import key_of

Options = tuple[tuple[str, tuple[str, ...]], ...]
"""Values by keys; what was not given is left out."""
UNRECORDED = (
    *("--driver", "--glibc", "--gpu", "--host", "--platform", "--format"),
    *("--requirement", "--constraint", "--build-constraint"),
)
"""Options that files do not record: files record the compute capabilities, the C library and the files' contents."""
CONSTRAINTS = "constraints"
"""The key of what constraint files say."""
BUILD_CONSTRAINTS = "build-constraints"
"""The key of what files say of the versions of what builds require."""
OVERRIDES = "overrides"
"""The key of the requirements that replace all others on the same package."""
AROUND = "around"
"""The key of what a lock does not hold because the environment that it is for has it: ``torch==2.8.0a0+nv25.6``."""
_FLAGS = ("--exact", "--allow-builds", "--extensions", "--pre")
_OF_PROJECT = "envsolve lock  # "


def options_in(command: str) -> Options:
    """The options in ``command``, as recorded_command of envsolve.app writes it; none if it is broken."""
    if command.startswith(_OF_PROJECT):
        command = command.removeprefix(_OF_PROJECT).rpartition(" for ")[0]
    try:
        words = iter(shlex.split(command))
    except ValueError:  # a quote that does not end, in an edited file
        return ()
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        if word.startswith("--"):
            value = "true" if word in _FLAGS else next(words, "")
            if word not in UNRECORDED:
                found[key_of(word)] = (*found.get(key_of(word), ()), value)
    return tuple(found.items())
