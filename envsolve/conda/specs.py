"""Versions as conda writes them and as packaging does: each reads most of the other's, and means the same by it.

https://docs.conda.io/projects/conda/en/stable/user-guide/concepts/pkg-specs.html and the specification of version
specifiers (PEP 440). What has no counterpart is left to who understands it.
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet

_SPEC = re.compile(r"(?:.*::)?([A-Za-z0-9_][A-Za-z0-9_.-]*)\s*(.*)\Z", re.DOTALL)
_IN_BRACKETS = re.compile(r"""version\s*=\s*(["'])(.*?)\1""")
_BUILD = re.compile(r"(?<=[\w.*])=(?!=)")
_RELEASE = re.compile(r"\d+(\.\d+)*\Z")


def split_spec(spec: str) -> tuple[str, str]:
    """The name in a match spec and its versions, "" where any will do; build and channel are left out.

    ``pytorch=2.5=cuda*`` is ``("pytorch", "=2.5")``. A text that is no match spec has the name "".
    """
    found = _SPEC.match(spec.strip())
    if found is None:
        return "", ""
    name, rest = found.groups()
    versions, bracket, inside = rest.partition("[")
    if bracket and (named := _IN_BRACKETS.search(inside)) is not None:
        return name, named[2]
    first, *build = versions.split() or [""]
    return name, first if build else _without_build(first)


def _without_build(versions: str) -> str:
    """``=2.5=cuda*`` without its build, which a single sign of equality begins that ends a version."""
    return _BUILD.split(versions, maxsplit=1)[0]


def specifier_of(versions: str) -> SpecifierSet | None:
    """The specifier that admits what ``versions`` of conda admit; None where none does, as of ``1.2|1.4``."""
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
    """The versions of conda that admit what ``specifier`` of packaging admits, "" where any will do.

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
