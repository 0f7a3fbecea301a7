"""The interpreter of the environment and its distributions, without importing any of them."""

from __future__ import annotations

import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator

from .channel import Channel

_FOLDER = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-py[\d.]+)?\.(dist|egg)-info$")
_HEAD = 4096
"""Characters of a metadata file that are read: name and version are at its top."""


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:  # noqa: ARG001 - as every probe
    """The interpreter (version, prefix, platform) and, for each distribution, name, version and directory."""
    search_path = [os.path.abspath(entry) for entry in sys.path if entry and os.path.isdir(entry)]
    return {
        "implementation": platform.python_implementation(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": getattr(sys, "base_prefix", sys.prefix),
        "is_conda": os.path.isdir(os.path.join(sys.prefix, "conda-meta")),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "machine": platform.machine(),
        "system": sys.platform,
        "search_path": search_path,
        "distributions": [found for directory in search_path for found in distributions(directory)],
    }


def distributions(directory: str) -> Iterator[list[str]]:
    """Name, version and directory of the distributions in ``directory``, by the metadata folders beside the modules."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        match = _FOLDER.match(name)
        if match is None:
            continue
        found = metadata(os.path.join(directory, name)) or (match.group("name"), match.group("version"))
        yield [found[0], found[1], directory]


def metadata(folder: str) -> tuple[str, str] | None:
    """Name and version from the metadata: the folder's name is an escaped form."""
    for name in ("METADATA", "PKG-INFO", ""):
        path = os.path.join(folder, name) if name else folder
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                head = file.read(_HEAD).split("\n\n", 1)[0]
        except OSError:
            continue
        fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line and line[0] not in " \t")
        if "Name" in fields and "Version" in fields:
            return fields["Name"].strip(), fields["Version"].strip()
    return None
