"""The requirements of a pixi workspace as keys of a project: its default environment, packages of conda and pip.

https://pixi.prefix.dev/latest/reference/pixi_manifest documents the tables; in a pyproject.toml they are below
``tool.pixi``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envsolve.app.project.adopting_packages import (
    OF_PYTORCH,
    Packages,
    Values,
    counted,
    is_of_pytorch,
    table_of,
    texts_of,
)
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.specs import specifier_of
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.host import Platform
from envsolve.model.names import normalized

_TAKEN = ("workspace", "project", "dependencies", "pypi-dependencies", "pypi-options")
_NAMED = {
    "feature": ("feature", "features"),
    "environments": ("environment", "environments"),
    "target": ("target", "targets"),
}
"""Tables of tables, each named with its entries."""
_ABOUT = frozenset(
    (
        *("name", "version", "description", "authors", "license", "license-file", "readme", "homepage", "repository"),
        *("documentation", "requires-pixi", "preview", "channels", "platforms"),
    )
)
"""Keys of a workspace that describe it, or that become keys of the project."""
_OF_A_PACKAGE = ("version", "extras", "env-markers")


def values_of_pixi(document: Mapping[str, Any], where: str, own_name: str = "") -> tuple[Values, tuple[str, ...]]:
    """The keys, as TOML has them, and notes on what they cannot express. ``where`` is the place of ``document``.

    ``own_name`` is the name of the project in the same pyproject.toml, which pixi lists among its own dependencies.
    """
    found = Packages(where)
    workspace = table_of(document.get("workspace") or document.get("project"))
    _workspace(workspace, found)
    for name, value in table_of(document.get("dependencies")).items():
        _package(name, value, found)
    for name, value in table_of(document.get("pypi-dependencies")).items():
        if not own_name or normalized(name) != normalized(own_name):
            _package(name, value, found)
    _options(table_of(document.get("pypi-options")), found)
    for text in _left_out(document):
        found.note(text)
    return {**found.finished(), "outputs": ["conda-lock.yml"]}, found.notes


def _workspace(workspace: Mapping[str, Any], found: Packages) -> None:
    listed = workspace.get("channels")
    channels = [it.get("channel") if isinstance(it, dict) else it for it in listed] if isinstance(listed, list) else []
    if any(isinstance(it, dict) and "priority" in it for it in listed or ()):
        found.note("channel priorities are ignored: envsolve uses the order of the channels")
    listed = workspace.get("platforms")
    machines = [it if isinstance(it, dict) else {"platform": it} for it in (listed if isinstance(listed, list) else [])]
    platforms = list(dict.fromkeys(texts_of([it.get("platform", it.get("name")) for it in machines])))
    known = [it for it in platforms if it in list(Platform)]
    for key, values in (("channels", texts_of(channels)), ("platforms", known)):
        if values:
            found.values[key] = values
    others = [it for it in platforms if it not in known]
    if others:
        found.note(f"{counted(others, 'platform', 'platforms')} ignored: envsolve does not support it")
    needs = {key: it for table in machines for key, it in table.items() if key not in ("platform", "name")}
    if needs:
        found.note(f"the machines of platforms {_ignored_machine(needs)}")
    settings = [key for key in workspace if key not in _ABOUT]
    if settings:
        found.note(f"{counted(settings, 'setting', 'settings')} ignored")


def _package(name: str, value: object, found: Packages) -> None:
    table = value if isinstance(value, dict) else {"version": value}
    version = table.get("version", "*" if not {"path", "git", "url"} & set(table) else None)
    specifier = specifier_of(version.replace(" ", "")) if isinstance(version, str) else None
    if specifier is None:
        how = ", ".join(key for key in table if key != "version") or repr(version)
        found.note(f"{name} is ignored: a project has no key for this kind of requirement ({how})")
        return
    if name == "pip":
        found.note(f"{name} is ignored: every environment includes it")
    elif name == "python":
        found.bound("python", specifier)
    elif name in CUDA_PACKAGES:
        found.bound("cuda", specifier)
    else:
        found.add(name, specifier, texts_of(table.get("extras", [])), str(table.get("env-markers", "")))
    if "index" in table:
        address = without_secrets(str(table["index"]))
        adds = f'is ignored: add extra-index-urls = ["{address}"] to use it for all packages'
        found.note(f"the index of {name} {OF_PYTORCH if is_of_pytorch(address) else adds}")
    more = [key for key in table if key not in (*_OF_A_PACKAGE, "index")]
    if more:
        found.note(f"{name}: {counted(more, 'key', 'keys')} ignored")


def _options(options: Mapping[str, Any], found: Packages) -> None:
    for key, value in options.items():
        listed = texts_of(value)
        if key in ("index-url", "extra-index-urls") and listed and all("://" in it for it in listed):
            found.values[key] = value
        else:
            found.note(f"pypi-options.{key} is ignored")


def _left_out(document: Mapping[str, Any]) -> Iterator[str]:
    for key, (one, many) in _NAMED.items():
        named = table_of(document.get(key))
        if named:
            yield f"{counted(named, one, many)} ignored"
    machine = table_of(document.get("system-requirements"))
    if machine:
        yield f"system-requirements {_ignored_machine(machine)}"
    others = [key for key in document if key not in (*_TAKEN, *_NAMED, "system-requirements", "$schema")]
    if others:
        yield f"{counted(others, 'table', 'tables')} ignored"


def _ignored_machine(machine: Mapping[str, Any]) -> str:
    listed = ", ".join(f"{key} = {_as_text(value)}" for key, value in machine.items())
    return f"({listed}) are ignored: set gpus, driver and platforms instead"


def _as_text(value: object) -> str:
    table = table_of(value)
    return " ".join(f"{key} {it}" for key, it in table.items()) if table else str(value)
