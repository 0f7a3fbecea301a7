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
    <<-?(["']?)(?P<end>\w+)\1\s+\S*requirements\S*[ \t]*\r?\n
    (?P<body>.*?)
    ^\t*(?P=end)[ \t\r]*$
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
    found = _here_document(text)
    return None if found is None else found["body"]


def instructions_in(text: str) -> tuple[str, ...]:
    """The lines of the instructions in a Dockerfile, but for the requirements and comments."""
    found = _here_document(text)
    around = text if found is None else text[: found.start("body")] + text[found.end("body") :]
    lines = (line.strip() for line in around.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _here_document(text: str) -> re.Match[str] | None:
    return re.search(_REQUIREMENTS, text, re.VERBOSE | re.MULTILINE | re.DOTALL)
