"""What a pixi.toml asks for, in the keys of a project: its default environment, conda's packages and pip's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.app.conda_asked import FRAMEWORK_PACKAGES, TOOLKITS
from envsolve.app.lock_frameworks import FRAMEWORK_OF
from envsolve.errors import UsageError
from envsolve.model.host import Platform
from envsolve.model.names import normalized

_BARE = re.compile(r"\d+(?:\.\d+)*\Z")
_NO_PACKAGE = frozenset({"pip", "setuptools", "wheel"})

Values = dict[str, object]


def values_of_pixi(path: Path) -> tuple[Values, tuple[str, ...]]:
    """The keys, as TOML has them, and what to tell of what they cannot say.

    Raises UsageError ``file-unreadable``.
    """
    import tomli

    try:
        document = tomli.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise UsageError("file-unreadable", f"cannot read {path}: {error}") from None
    values: Values = dict(_of_workspace(document))
    asked: dict[str, list[str]] = {"frameworks": [], "requirements": []}
    notes = []
    for name, version in _packages(document):
        specifier = _specifier(version)
        if specifier is None:
            notes.append(f"{path.name} asks for {name} in a way that no key says, which is left out")
        elif name == "python" or name in TOOLKITS:
            values |= {"python" if name == "python" else "cuda": specifier} if specifier else {}
        elif name not in _NO_PACKAGE:
            framework = FRAMEWORK_PACKAGES.get(name) or FRAMEWORK_OF.get(normalized(name))
            asked["requirements" if framework is None else "frameworks"].append(f"{framework or name}{specifier}")
    values |= {key: list(dict.fromkeys(found)) for key, found in asked.items() if found}
    return {**values, "outputs": ["conda-lock.yml"]}, tuple(notes)


def _of_workspace(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    workspace = _table(document.get("workspace") or document.get("project"))
    for key in ("channels", "platforms"):
        listed = [it for it in workspace.get(key, ()) if isinstance(it, str)]
        known = listed if key == "channels" else [it for it in listed if it in list(Platform)]
        if known:
            yield key, known


def _packages(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The packages of the default environment, conda's and pip's, with their version as pixi.toml has it."""
    for key in ("dependencies", "pypi-dependencies"):
        for name, asked in _table(document.get(key)).items():
            yield name, asked.get("version") if isinstance(asked, dict) else asked


def _specifier(version: object) -> str | None:
    """A version as pixi has it in the words of requirements; None for what has none, such as a path or an address."""
    if not isinstance(version, str):
        return None
    text = version.strip().replace(" ", "")
    if text in ("", "*"):
        return ""
    bare = _BARE.match(text) is not None or (text.endswith(".*") and _BARE.match(text[:-2]) is not None)
    try:
        return str(SpecifierSet(f"=={text}" if bare else text))
    except InvalidSpecifier:
        return None


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
