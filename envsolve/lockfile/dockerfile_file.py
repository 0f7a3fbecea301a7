"""A Dockerfile that holds a Python lock, by its name, and the requirements in it."""

from __future__ import annotations

import re

SYNTAX = "# syntax=docker/dockerfile:1"
"""The first line: a builder older than here-documents fetches one that knows them."""
END = "REQUIREMENTS"
"""The line that ends the requirements."""
_NAMES = ("dockerfile", "containerfile")
_OTHERS = (".dockerignore", ".lock")
"""What is beside a Dockerfile, and called after it."""
_REQUIREMENTS = r"""
    ^[ \t]*(?i:COPY)\s+(?:--\S+\s+)*   # --chown and the like
    <<-?(["']?)(?P<end>\w+)\1\s+\S*requirements\S*[ \t]*\n
    (?P<body>.*?)
    ^\t*(?P=end)[ \t]*$
"""


def is_dockerfile(name: str) -> bool:
    """Whether a file is called as docker and podman expect: ``Dockerfile``, ``gpu.Dockerfile``, ``Dockerfile.gpu``."""
    folded = name.casefold()
    if folded.endswith(_OTHERS):
        return False
    return any(folded == it or folded.endswith(f".{it}") or folded.startswith(f"{it}.") for it in _NAMES)


def is_of_dockerfile(name: str, text: str) -> bool:
    """Whether ``text`` is that of a Dockerfile: by its name, or by how envsolve begins one."""
    return is_dockerfile(name) or text.startswith(SYNTAX)


def requirements_in(text: str) -> str | None:
    """The requirements that a Dockerfile holds as a here-document; None where it holds none."""
    found = re.search(_REQUIREMENTS, text, re.VERBOSE | re.MULTILINE | re.DOTALL)
    return None if found is None else found["body"]
