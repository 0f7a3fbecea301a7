"""Conda and pip in one prefix: the same library from both, or one that has written over the other's package.

A process loads whichever copy it finds first, and one framework runs on the other's cuDNN or NCCL
(pytorch/pytorch#186591, tensorflow/hub#884).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from envsolve.diagnose.environment.conda_meta import CondaPackage
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.reading import is_file, real, shown
from envsolve.diagnose.environment.remedies import quoted, solve
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.words import listed
from envsolve.model.finding import Finding, Severity
from envsolve.model.names import normalized
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.static.installed import is_of_driver

_CLASH = "conda-pip-clash"
_SHOWN = 8


def libraries_of_both(scene: Scene) -> Iterator[Finding]:
    """CUDA's libraries that lie in the prefix, as conda's do, and in the packages that pip installed."""
    if not scene.inventory.is_conda:
        return
    copies: dict[str, dict[str, Path]] = defaultdict(dict)
    for file in scene.files.libraries:
        owner = scene.owners.of(file)
        if owner is not None and not is_of_driver(file.name) and is_file(file):
            copies[file.name].setdefault(owner.by, file)
    twice = {name: by for name, by in copies.items() if len(by) > 1 and real(by["conda"]) != real(by["pip"])}
    components: dict[str, dict[str, dict[str, Path]]] = defaultdict(dict)
    for name, by in twice.items():
        components[(component_of(name) or name).partition("_")[0]][name] = by
    for component, names in components.items():
        yield _twice(component, names, scene)


def overwritten_packages(scene: Scene) -> Iterator[Finding]:
    """Python packages that conda lists as its own and that pip has replaced."""
    if not scene.inventory.is_conda:
        return
    replaced = []
    for folder, record in scene.conda.distributions.items():
        directory = scene.inventory.prefix / folder
        name = normalized(directory.name.partition("-")[0])
        package = scene.packages.by_name.get(name)
        if package is not None and package.location == directory.parent and _is_of_pip(package, directory):
            replaced.append((record, package))
    matter = [(record, package) for record, package in replaced if is_of_gpu_stacks(package.name)]
    others = [it for it in replaced if it not in matter]
    if matter:
        yield _replaced(matter, Severity.WARNING, scene)
    if others:
        yield _replaced(others, Severity.INFO, scene)


def _is_of_pip(package: Package, of_conda: Path) -> bool:
    """Whether the metadata that is there now is not what conda brought."""
    if package.folder != of_conda:
        return package.is_wheel and not package.is_of_conda
    return package.installer in ("pip", "uv")


def _twice(component: str, names: dict[str, dict[str, Path]], scene: Scene) -> Finding:
    by = next(iter(names.values()))
    versions = {owner: str(scene.owners.version_of(path) or "") for owner, path in by.items()}
    loaded = _loaded(set(names), scene)
    differ = len(set(versions.values())) > 1 or "" in versions.values()
    said = ", ".join(
        f"{path} ({versions[owner] or 'of a version that nothing tells'}, {owner})" for owner, path in by.items()
    )
    return Finding(
        _CLASH,
        f"{component} is there twice, from conda and from pip",
        Severity.WARNING if differ else Severity.INFO,
        f"{' and '.join(names)} {'lies' if len(names) == 1 else 'lie'} in the prefix and among pip's packages: {said}"
        + ("; " + "; ".join(loaded) if loaded else "")
        + ". Which one a program gets depends on what it loads first",
        "let one of them bring CUDA: uninstall pip's packages of NVIDIA, or install the frameworks without conda's",
        solve((build.name for build in scene.builds), "--gpu auto", "--source conda-forge > environment.yml"),
        tuple(str(path) for paths in names.values() for path in paths.values())[:_SHOWN],
        about=component,
    )


def _loaded(names: set[str], scene: Scene) -> list[str]:
    """Which copy each framework would load."""
    return [
        f"{loading.title} would load {shown(path)}"
        for loading in scene.loads.with_path
        for name, path in loading.found()
        if name in names
    ][:3]


def _replaced(pairs: list[tuple[CondaPackage, Package]], severity: Severity, scene: Scene) -> Finding:
    names = [package.name for _, package in pairs]
    record, package = pairs[0]
    more = f" and {len(pairs) - 1} more packages" if len(pairs) > 1 else ""
    of_conda = " ".join(dict.fromkeys(it.name for it, _ in pairs))
    return Finding(
        _CLASH,
        f"pip has replaced conda's {listed(names)}",
        severity,
        f"conda has installed {record.label}, and {package.label} of {package.installer or 'another installer'} lies "
        f"in its place{more}: conda still counts on its own version, and the next installation with conda writes over "
        "pip's files",
        "install each package with one of the two; where it is the framework, make the environment again",
        (f"conda install -p {quoted(scene.inventory.prefix)} --force-reinstall {of_conda}",),
        tuple(f"{record.label} of conda, {package.label} in {package.folder}" for record, package in pairs[:_SHOWN]),
        about=names[0],
    )
