"""A constraints file: versions that an installer must not replace, whatever else it installs.

pip and uv read it with ``-c`` (https://pip.pypa.io/en/stable/user_guide/#constraints-files). It has no hashes, because
constraints with hashes would forbid all other packages.
"""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.lockfile.text_file import clean

FORMAT = "constraints"


def write(lines: Iterable[str], origin: str) -> str:
    """Return the text for ``lines``, each a package in one version. ``origin`` describes where they are from.

    A version keeps its local part: only that build meets ``torch==2.8.0a0+5228986c39.nv25.6``.
    """
    head = f"# Made by envsolve from {clean(origin)}. To install more beside these:\n#   pip install -c FILE PACKAGE\n"
    return head + "".join(f"{line}\n" for line in sorted(set(lines)))
