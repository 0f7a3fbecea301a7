"""Unmet requirements between installed packages, as far as GPU stacks are concerned.

``pip check`` reports the same for all packages. Here the frameworks' own pairs are distinguished, since these do not
even load:

* the extensions of torchvision and torchaudio are built against one minor release of PyTorch, whose C++ interface
changes with each (pytorch/vision README, table of versions);
* jax refuses a jaxlib that is older than its minimum or newer than itself (``jax/_src/lib/__init__.py``), and jaxlib
ignores a CUDA plugin of another version (``jaxlib/plugin_support.py``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from packaging.version import Version

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.wanted import Wanted
from envsolve.frameworks import FRAMEWORKS, frameworks_among
from envsolve.model.finding import Finding, Severity
from envsolve.model.need import Need, specifier_of
from envsolve.model.versions import parsed_version
from envsolve.validation.metadata import Package

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_LOCAL = re.compile(r"cu\d+|cpu|rocm[\d.]+|xpu")


def requirements(scene: Scene) -> Iterator[Finding]:
    """Unmet requirements: a finding for each package that has some, and for each pair that must match."""
    plain: dict[str, dict[str, Wanted]] = defaultdict(dict)
    severities: dict[str, Severity] = {}
    pairs: dict[tuple[str, str], Finding] = {}
    for wanted in scene.wanted:
        if not _concerns(wanted) or not _is_unmet(wanted, scene):
            continue
        installed = scene.packages.by_name.get(wanted.need.name)
        if installed is not None and _is_pair(wanted) and _breaks(wanted, installed):
            requirer = wanted.requirer
            finding = scene.finding(
                "companion-of-other-version",
                (
                    f"{requirer.folder.name}: Requires-Dist: {wanted.need}",
                    f"{installed.folder.name} is installed",
                ),
                about=requirer,
                other=installed.name,
                other_version=installed.version,
                requirement=_text(wanted.need),
            )
            pairs.setdefault((requirer.name, wanted.need.name), finding)
        else:
            label = wanted.requirer.label
            plain[label].setdefault(_text(wanted.need), wanted)
            worst = severities.get(label, Severity.INFO)
            severities[label] = worst if wanted.assumed else Severity.WARNING
    yield from pairs.values()
    for label, unmet in plain.items():
        yield _not_met(list(unmet.values()), severities[label], scene)


def parts_of_one_version(scene: Scene) -> Iterator[Finding]:
    """Parts of a framework in a version that it does not accept, such as CUDA plugins of JAX: it runs on the CPU."""
    for known in FRAMEWORKS.values():
        for parts, taker in known.same_version.items():
            takes = scene.packages.get(taker)
            for package in scene.packages.by_name.values() if takes is not None else ():
                if takes and re.fullmatch(parts, package.name) and _numbers(package) != _numbers(takes):
                    yield scene.finding(
                        "part-of-other-version",
                        (package.folder.name, takes.folder.name),
                        about=package,
                        other=takes.name,
                        other_version=takes.version,
                        framework=known.title,
                    )


def companions_of_one_cuda(scene: Scene) -> Iterator[Finding]:
    """Companions of a framework, such as torchvision, that were built for another CUDA, or for none."""
    for build in scene.builds:
        variant = _variant(build.version)
        for name in FRAMEWORKS[build.name].built_with:
            package = scene.packages.get(name)
            if package is None or variant is None:
                continue
            other = _variant(_own_version(build, name)) or _variant(package.version)
            if other is not None and other != variant:
                evidence = (
                    f"{build.framework.framework.built.file} says {build.version}",
                    f"{package.name}: {_own_version(build, package.name) or package.version}",
                )
                yield scene.finding(
                    "companion-for-other-cuda",
                    evidence,
                    about=package,
                    framework=build.title,
                    version=build.version,
                    package_build=_spoken(other),
                    framework_build=_spoken(variant),
                )


def _concerns(wanted: Wanted) -> bool:
    """Whether the requirement matters to the GPU stack; parts that need the same version have another check."""
    if any(re.fullmatch(parts, wanted.need.name) for it in FRAMEWORKS.values() for parts in it.same_version):
        return False
    return is_of_gpu_stacks(wanted.requirer.name) or is_of_gpu_stacks(wanted.need.name)


def _is_unmet(wanted: Wanted, scene: Scene) -> bool:
    """Whether the installed version does not meet the requirement."""
    installed = scene.packages.by_name.get(wanted.need.name)
    if installed is None:
        missed = not wanted.assumed and not wanted.requirer.is_of_conda and is_of_gpu_stacks(wanted.requirer.name)
        return missed and not wanted.requirer.editable and not _stands_in(wanted.need.name, scene)
    version = parsed_version(installed.version)
    if version is None or specifier_of(wanted.need.specifier).contains(version, prereleases=True):
        return False
    of_conda = wanted.requirer.is_of_conda and installed.is_of_conda
    return not of_conda or _is_pair(wanted)  # conda's own metadata decided, and relaxes what wheels pin


def _stands_in(name: str, scene: Scene) -> bool:
    """Whether another package of the same framework is there: tensorflow-cpu meets a requirement on tensorflow."""
    there = {it.name for it in frameworks_among(scene.packages.by_name)}
    return any(it.name in there for it in frameworks_among([name]))


def _text(need: Need) -> str:
    return f"{need.name}{need.specifier}"


def _is_pair(wanted: Wanted) -> bool:
    """Whether the two must match."""
    names = wanted.requirer.name, wanted.need.name
    return any(all(map(re.fullmatch, pair, names)) for it in FRAMEWORKS.values() for pair in it.pairs.items())


def _breaks(wanted: Wanted, installed: Package) -> bool:
    """Whether the difference prevents loading; a patch release of a framework keeps its interface."""
    version = parsed_version(installed.version)
    if not frameworks_among([wanted.need.name]) or version is None:
        return True
    clauses = specifier_of(wanted.need.specifier)
    pinned = [parsed_version(it.version) for it in clauses if it.operator in ("==", "===", "~=")]
    return not any(it is not None and it.release[:2] == version.release[:2] for it in pinned)


def _numbers(package: Package) -> Version | None:
    """The release numbers of a version, which jaxlib compares."""
    match = _NUMBERS.match(package.version)
    return parsed_version(match[0]) if match is not None else None


def _variant(version: str | None) -> str | None:
    """``cu126``, ``cpu`` or the like from a local version, reduced to the major of CUDA: ``cu12``."""
    local = (version or "").partition("+")[2]
    match = _LOCAL.match(local)
    if match is None:
        return None
    return match[0][:-1] if match[0].startswith("cu") else match[0].rstrip("0123456789.")


def _own_version(build: Build, name: str) -> str | None:
    """The version in a companion's own module, which names the build also in wheels from PyPI."""
    version = build.framework.assigned(f"{name}/version.py").get("__version__")
    return version if isinstance(version, str) else None


def _spoken(variant: str) -> str:
    if variant.startswith("cu"):
        return f"CUDA {variant[2:]}"
    return {"cpu": "the CPU", "rocm": "ROCm", "xpu": "Intel GPUs"}[variant]


def _not_met(unmet: list[Wanted], severity: Severity, scene: Scene) -> Finding:
    package, first = unmet[0].requirer, unmet[0]
    installed = {it.need.name: scene.packages.get(it.need.name) for it in unmet}
    versions = {name: None if it is None else it.version for name, it in installed.items()}
    evidence = (f"{package.label}: {_text(it.need)}; installed: {versions[it.need.name] or 'none'}" for it in unmet)
    return scene.finding(
        "requirement-not-met",
        evidence,
        about=package,
        severity=severity,
        requirement=_text(first.need),
        other=first.need.name,
        other_version=versions[first.need.name],
        more_requirements=len(unmet) - 1,
        is_framework=bool(frameworks_among([package.name])),
        installer=scene.installer_of(package),
    )
