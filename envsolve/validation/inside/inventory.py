"""The interpreter of the environment, without importing anything of it."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig

from .channel import Channel


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:  # noqa: ARG001 - as every probe
    """The interpreter: version, kind, prefix, and where it finds modules."""
    return {
        "implementation": platform.python_implementation(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "base_prefix": getattr(sys, "base_prefix", sys.prefix),
        "is_conda": os.path.isdir(os.path.join(sys.prefix, "conda-meta")),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "bits": 64 if sys.maxsize > 2**32 else 32,
        "search_path": [os.path.abspath(entry) for entry in sys.path if entry and os.path.isdir(entry)],
    }
