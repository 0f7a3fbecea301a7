"""Refuse locks that need builds, which run the code of packages, whatever an installer would do.

Installers get the packages in a lock and their addresses, and no option of the file
(:func:`~envsolve.create.wheels.wheel_file`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from envsolve.errors import Hint, UsageError
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.options import BUILD_CONSTRAINTS
from envsolve.lockfile.text_file import shown
from envsolve.model.requirement_line import contents_of

_VARIABLE = re.compile(r"://\S*?\$\{([A-Za-z0-9_]+)\}")
"""A variable in an address, which pip and uv replace by its value."""


def refuse_builds(path: Path, lock: Lock) -> None:
    """Raise UsageError ``build-refused`` if the lock at ``path`` builds a package, or may build one."""
    for pin in lock.pins:
        named = [file for file in pin.files if file.name]
        if named and not any(file.is_wheel for file in named):
            what = (
                f"{shown(named[0].url)} is not a wheel" if pin.index_url is None else f"it has no wheel for {pin.name}"
            )
            allow = (
                "or allow the builds, which run the packages' code: --allow-builds, in a project allow-builds = true"
            )
            hints = (Hint("lock again with wheels only"), Hint(allow))
            raise UsageError("build-refused", f"{path} requires building packages: {what}", hints=hints)


def refuse_variables(path: Path, text: str) -> None:
    """Raise UsageError ``lock-not-exact`` if a lock with this text has variables of the machine in an address.

    They may be secrets, and the content of a lock must not depend on the machine. A pylock.toml has no variables (PEP
    751); what looks like one is a part of an address.
    """
    found = next((it for line in contents_of(text) if (it := _VARIABLE.search(line)) is not None), None)
    if found is None:
        return
    hints = (
        Hint("replace it by its value; put user name and password of an index into netrc or a keyring"),
        Hint("or remove the index from the lock, and give it with --index-url"),
    )
    cause = ("its value on this machine would be sent to a URL in the lock",)
    raise UsageError("lock-not-exact", f"{path} uses the environment variable {found[1]}", cause, hints)


def recorded_build_constraints(lock: Lock) -> Iterator[str]:
    """The versions for build requirements that a lock records.

    Only ranges of versions are used: a lock from someone else must not set an address or an installer's option here.
    """
    for text in () if lock.made is None else lock.made.option(BUILD_CONSTRAINTS):
        with suppress(InvalidRequirement):
            requirement = Requirement(text)
            if requirement.url is None:
                yield str(requirement)
