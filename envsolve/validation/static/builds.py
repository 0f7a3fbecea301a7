"""What an installed framework was built for, read from the files in which it says so, without importing it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envsolve.validation.static.installed import Installed

_IN_A_PATH = re.compile(r"_cuda(\d\d)")
_VERSION = re.compile(r"\d+(?:\.\d+)?")


def built_cuda(framework: Installed) -> str | None:
    """The CUDA it was built for: ``12.5``, or ``12`` if only the major is known; None for a CPU build or unknown."""
    built = framework.framework.built
    if built.cuda is None:
        paths = (str(file.relative_to(framework.directory)) for file in framework.files(built.file))
        named = (_IN_A_PATH.search(path) for path in paths)
        return next((match[1] for match in named if match is not None), None)
    version = _account(framework).get(built.cuda)
    match = _VERSION.match(version) if isinstance(version, str) else None
    return None if match is None else match[0]


def built_cudnn(framework: Installed) -> str | None:
    """The major of the cuDNN it was built for; None where it does not say."""
    version = str(_account(framework).get(framework.framework.built.cudnn or "", ""))
    return version.partition(".")[0] or None


def built_version(framework: Installed) -> str | None:
    """Its version as the module itself has it, with the build; None where it does not say."""
    version = _account(framework).get(framework.framework.built.version or "")
    return version if isinstance(version, str) else None


def says_no_gpu(framework: Installed) -> str | None:
    """Where it says that it was built without GPUs; None where it does not."""
    built, account = framework.framework.built, _account(framework)
    names = [name for name in built.gpu if name in account]
    if not names or any(account[name] not in (None, False, "False") for name in names):
        return None
    return f"{built.file} says {names[0]} = {account[names[0]]!r}"


def _account(framework: Installed) -> Mapping[str, object]:
    """Its own account of its build; empty where it has none that can be read."""
    assigned = framework.assigned(framework.framework.built.file)
    nested = (value for value in assigned.values() if isinstance(value, dict))
    return {**assigned, **{name: value for table in nested for name, value in table.items()}}
