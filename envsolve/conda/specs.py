"""Versions in the syntax of conda and of packaging: each accepts most of the other's, with the same meaning.

https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/pkg-specs.html and the specification of version
specifiers (PEP 440). What has no counterpart is left to the callers.
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

_RELEASE = re.compile(r"\d+(\.\d+)*\Z")


def specifier_of(versions: str) -> SpecifierSet | None:
    """The specifier equivalent to conda's ``versions``; None if there is none, as for ``1.2|1.4``."""
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
    """The conda versions equivalent to ``specifier`` of packaging; "" for any version.

    ``~=1.4.2`` is written out, and ``==1.4.*`` is ``1.4.*``, for strict readers; ``==1.4`` stays one version.
    """
    return ",".join(_of_clause(part.strip()) for part in specifier.split(",") if part.strip())


def _of_clause(part: str) -> str:
    operator, version = re.fullmatch(r"([=<>!~]*)\s*(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
    if operator == "~=" and _RELEASE.match(version):
        return f">={version},{version.rpartition('.')[0]}.*"
    if operator == "===":
        return f"=={version}"
    return version if operator == "==" and version.endswith(".*") else part
