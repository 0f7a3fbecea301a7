"""What of a lock would be built, which runs the code of packages: refused here, whatever an installer would do with it.

Installers get the packages in a lock and where these are, and no option of the file
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
"""In an address, where pip and uv put the value of a variable in its place."""


def refuse_builds(path: Path, lock: Lock) -> None:
    """Raise UsageError ``build-refused`` if the lock at ``path`` has a package built, or may have it."""
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
    """Raise UsageError ``lock-not-exact`` if a lock with this text names variables of the machine in an address.

    They may be secrets, and what a lock names must not depend on the machine. A pylock.toml has no variables (PEP 751),
    and what looks like one is a part of an address.
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
    """What a lock records of the versions of what builds require.

    Only ranges of versions count: a lock that someone hands over has no address and no option for an installer here.
    """
    for text in () if lock.made is None else lock.made.option(BUILD_CONSTRAINTS):
        with suppress(InvalidRequirement):
            requirement = Requirement(text)
            if requirement.url is None:
                yield str(requirement)
