"""Versions as conda writes them and as packaging does: each reads most of the other's, and means the same by it.

https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/pkg-specs.html and the specification of version
specifiers (PEP 440). What has no counterpart is left to who understands it.
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

_RELEASE = re.compile(r"\d+(\.\d+)*\Z")


def specifier_of(versions: str) -> SpecifierSet | None:
    """The specifier that admits what ``versions`` of conda admit; None if none does, as of ``1.2|1.4``."""
    if versions in ("", "*", "=*"):
        return SpecifierSet()
    try:
        return SpecifierSet(",".join(_clause(part.strip()) for part in versions.split(",")))
    except InvalidSpecifier:
        return None


def _clause(part: str) -> str:
    """``3.12.*`` and ``=3.12`` are ``==3.12.*``; a bare version is that version; ``>=3.12.*`` is ``>=3.12``."""
    operator, version = re.fullmatch(r"([=<>!~]*)\s*(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
    if operator == "=":
        return f"=={version.removesuffix('*').removesuffix('.')}.*"
    if operator == "":
        ends = version.removesuffix("*").removesuffix(".")
        return f"=={ends}.*" if version.endswith("*") else f"=={version}"
    return f"{operator}{version.removesuffix('.*')}" if operator in ("<", "<=", ">", ">=") else part


def conda_versions(specifier: str) -> str:
    """The versions of conda that admit what ``specifier`` of packaging admits, "" if any will do.

    ``~=1.4.2`` is spelled out, and ``==1.4.*`` is ``1.4.*``, as strict readers want it; ``==1.4`` stays one version.
    """
    return ",".join(_of_clause(part.strip()) for part in specifier.split(",") if part.strip())


def _of_clause(part: str) -> str:
    operator, version = re.fullmatch(r"([=<>!~]*)\s*(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
    if operator == "~=" and _RELEASE.match(version):
        return f">={version},{version.rpartition('.')[0]}.*"
    if operator == "===":
        return f"=={version}"
    return version if operator == "==" and version.endswith(".*") else part
