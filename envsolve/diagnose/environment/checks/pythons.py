"""Whether commands reach the active environment: its Python and pip are first on PATH, its modules found first."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from envsolve.boundary.reading import is_directory, is_file, lies_in, real
from envsolve.diagnose.environment.families import is_framework, is_of_gpu_stacks
from envsolve.diagnose.environment.found import ACTIVE, stale_in
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.validation.metadata import Packages

_SHOWN = 6


def stale_activation(scene: Scene) -> Iterator[Finding]:
    """Activation variables that no longer name an environment."""
    for stale in stale_in(scene.shell, scene.inventory.prefix):
        evidence = (f"{stale.variable}={stale.path}", f"looked at: {scene.inventory.executable}")
        yield scene.finding(
            "stale-activation",
            evidence,
            about=stale.variable,
            variable=stale.variable,
            path=stale.path,
            reason=stale.fault,
            variables_typed=" ".join((stale.variable, *stale.beside)),
        )


def other_python(scene: Scene) -> Iterator[Finding]:
    """An active environment, if ``python`` starts another Python."""
    prefix = _active_prefix(scene)
    found = _on_path("python", scene) or _on_path("python3", scene)
    if prefix is None or found is None or lies_in(found, prefix):
        return
    variable = next(name for name in ACTIVE if _same(scene.shell.get(name), prefix))
    path = [entry for entry in scene.shell.get("PATH", "").split(os.pathsep) if entry]
    yield scene.finding(
        "wrong-python",
        (f"{variable}={scene.shell.get(variable, '')}", f"python is {found}", f"PATH begins with {':'.join(path[:3])}"),
        about="python",
        variable=variable,
        program=str(found),
        program_typed=shlex.quote(str(scene.inventory.executable)),
    )


def other_pip(scene: Scene) -> Iterator[Finding]:
    """An active environment with its own pip, if ``pip`` is another one."""
    prefix = _active_prefix(scene)
    found = _on_path("pip", scene)
    if prefix is None or found is None or lies_in(found, prefix):
        return
    python = _on_path("python", scene) or _on_path("python3", scene)
    if python is not None and not lies_in(python, prefix):  # the other finding covers this
        return
    has_own = _program(prefix / "bin", "pip") is not None
    severity = Severity.WARNING if has_own else None
    evidence = (f"pip is {found}",)
    yield scene.finding("wrong-pip", evidence, about="pip", severity=severity, program=str(found), has_pip=has_own)


def python_home(scene: Scene) -> Iterator[Finding]:
    """PYTHONHOME, which makes every Python use one standard library."""
    home = scene.environ.get("PYTHONHOME")
    if home:
        yield scene.finding("python-home-set", (f"PYTHONHOME={home}",), about="PYTHONHOME", path=home)


def injected_modules(scene: Scene) -> Iterator[Finding]:
    """Packages of the GPU stack that PYTHONPATH or the user's own directory adds to the environment."""
    own = {it.name: it for it in scene.packages.every if it.location.is_relative_to(scene.inventory.prefix)}
    for variable, directories in _sources(scene):
        strangers = Packages(it for it in directories if not it.is_relative_to(scene.inventory.prefix)).by_name
        matter = [package for package in strangers.values() if is_of_gpu_stacks(package.name)]
        if matter:
            taken = scene.packages.by_name.values()
            hidden = [package for package in matter if package.name in own and package in taken]
            names = [package.name for package in matter[:_SHOWN]]
            breaks = any(is_framework(package.name) or package.name.startswith("nvidia-") for package in hidden)
            yield scene.finding(
                "modules-from-elsewhere",
                (f"{package.label} in {package.location}" for package in matter),
                about=variable,
                severity=Severity.ERROR if breaks else None,
                source=variable,
                packages=tuple(names),
                packages_typed=" ".join(names),
                directories=tuple(dict.fromkeys(str(package.location) for package in matter)),
                other=hidden[0].label if hidden else None,
                other_version=own[hidden[0].name].version if hidden else None,
            )


def _active_prefix(scene: Scene) -> Path | None:
    """The prefix of the environment if it is active."""
    prefix = scene.inventory.prefix
    return prefix if any(_same(scene.shell.get(name), prefix) for name in ACTIVE) else None


def _same(value: str | None, prefix: Path) -> bool:
    return bool(value) and real(value or "") == real(prefix)


def _on_path(program: str, scene: Scene) -> Path | None:
    """The first file of that name on PATH, as the shell finds it."""
    entries = filter(None, scene.shell.get("PATH", "").split(os.pathsep))
    return next((found for it in entries if (found := _program(Path(it), program)) is not None), None)


def _program(directory: Path, name: str) -> Path | None:
    paths = (directory / name, directory / f"{name}.exe")
    return next((it for it in paths if is_file(it) and os.access(it, os.X_OK)), None)


def _sources(scene: Scene) -> Iterator[tuple[str, list[Path]]]:
    """What adds directories to the environment, and which."""
    listed = [scene.directory / entry for entry in scene.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if listed:
        yield "PYTHONPATH", [it for it in listed if is_directory(it)]
    users = [it for it in scene.inventory.search_path if _is_users(it, scene.environ)]
    if users and scene.inventory.owns_prefix:
        yield "the user's own directory", users


def _is_users(directory: Path, environ: Mapping[str, str]) -> bool:
    """Whether it is where ``pip install --user`` installs (``site.USER_SITE``)."""
    home = environ.get("HOME") or environ.get("USERPROFILE")
    bases = [environ.get("PYTHONUSERBASE"), home and f"{home}/.local", home and f"{home}/Library/Python"]
    if environ.get("APPDATA"):
        bases.append(f"{environ['APPDATA']}/Python")
    return directory.name == "site-packages" and any(base and directory.is_relative_to(base) for base in bases)
