"""A constraints file: the versions that an installer must not replace, whatever else it is asked to install.

pip and uv read it with ``-c`` (https://pip.pypa.io/en/stable/user_guide/#constraints-files). It has no hashes, as
constraints with hashes would forbid everything that is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.lockfile.text_file import clean

FORMAT = "constraints"


def write(lines: Iterable[str], origin: str) -> str:
    """The text for ``lines``, each a package in one version; ``origin`` says in words what they are of.

    A version keeps its local part: ``torch==2.8.0a0+5228986c39.nv25.6`` is met by that build alone.
    """
    head = f"# Made by envsolve from {clean(origin)}. To install more beside these:\n#   pip install -c FILE PACKAGE\n"
    return head + "".join(f"{line}\n" for line in sorted(set(lines)))
