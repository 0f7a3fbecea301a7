"""What of a lock would be built, which runs the code of packages: refused here, whatever an installer would do with it.

Installers are told the packages in a lock and where these are, and no option of the file
(:func:`~envsolve.create.wheels.wheel_file`).
"""

from __future__ import annotations

import re
from pathlib import Path

from envsolve.errors import Hint, UsageError
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.text_file import shown
from envsolve.model.requirement_line import contents_of

_VARIABLE = re.compile(r"://\S*?\$\{([A-Za-z0-9_]+)\}")
"""In an address, where pip and uv put the value of a variable in its place."""


def refuse_builds(path: Path, lock: Lock) -> None:
    """Raise UsageError ``build-refused`` where the lock at ``path`` has a package built, or may have it."""
    for pin in lock.pins:
        named = [file for file in pin.files if file.name]
        if named and not any(file.is_wheel for file in named):
            what = f"{shown(named[0].url)} is no wheel" if pin.index_url is None else f"{pin.name} has no wheel in it"
            hints = (
                Hint("make the lock anew with wheels alone"),
                Hint("or let packages be built, which runs their code: --allow-builds"),
            )
            raise UsageError("build-refused", f"{path} may have packages built: {what}", hints=hints)


def refuse_variables(path: Path, text: str) -> None:
    """Raise UsageError ``lock-not-exact`` where a lock with this text names variables of the machine in an address.

    They may be secrets, and what a lock names must not depend on the machine. A pylock.toml has no variables (PEP 751),
    and what looks like one is a part of an address.
    """
    found = next((it for line in contents_of(text) if (it := _VARIABLE.search(line)) is not None), None)
    if found is None:
        return
    hints = (
        Hint("write what is meant in its place; name and password of an index belong into netrc or a keyring"),
        Hint("or take the index out of the lock, and give it with --index-url"),
    )
    cause = ("its value would be sent to an address that the lock names, whatever it is on this machine",)
    raise UsageError("lock-not-exact", f"{path} names the variable {found[1]}", cause, hints)
