"""Versions that installed packages require of one another and do not get, as far as GPU stacks are concerned.

``pip check`` says the same of all packages; here the frameworks' own pairs are told apart, since these do not even
load:

* the extensions of torchvision and torchaudio are built against one minor release of PyTorch, whose C++ interface
  changes with each (pytorch/vision README, table of versions);
* jax refuses a jaxlib that is older than its minimum or newer than itself (``jax/_src/lib/__init__.py``), and jaxlib
  leaves a CUDA plugin of another version unused (``jaxlib/plugin_support.py``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.version import Version

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.remedies import install, mended
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.wanted import Wanted
from envsolve.frameworks import FRAMEWORKS, Framework, frameworks_among
from envsolve.model.finding import Finding, Severity
from envsolve.model.versions import parsed_version

_COMPANION = "companion-mismatch"
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_LOCAL = re.compile(r"cu\d+|cpu|rocm[\d.]+|xpu")
_SHOWN = 8


def requirements(scene: Scene) -> Iterator[Finding]:
    """Requirements that are not met: a finding for each package that has some, and for each pair that must agree."""
    plain: dict[str, list[str]] = defaultdict(list)
    severities: dict[str, Severity] = {}
    pairs: dict[tuple[str, str], Finding] = {}
    for wanted in scene.wanted:
        unmet = _unmet(wanted, scene) if _concerns(wanted) else None
        installed = scene.packages.by_name.get(wanted.name)
        if unmet is None:
            continue
        if installed is not None and _is_pair(wanted) and _breaks(wanted, installed):
            pairs.setdefault((wanted.requirer.name, wanted.name), _pair(wanted, installed, scene))
        else:
            label = wanted.requirer.label
            plain[label] += [] if unmet in plain[label] else [unmet]
            worst = severities.get(label, Severity.INFO)
            severities[label] = worst if wanted.assumed else Severity.WARNING
    yield from pairs.values()
    for label, sentences in plain.items():
        yield _not_met(label, sentences, severities[label], scene)


def parts_of_one_version(scene: Scene) -> Iterator[Finding]:
    """Parts of a framework in another version than it takes, as CUDA plugins of JAX: it runs on the CPU."""
    for known in FRAMEWORKS.values():
        for parts, taker in known.same_version.items():
            takes = scene.packages.get(taker)
            for package in scene.packages.by_name.values() if takes is not None else ():
                if takes and re.fullmatch(parts, package.name) and _numbers(package) != _numbers(takes):
                    yield _part(known, package, takes, scene)


def companions_of_one_cuda(scene: Scene) -> Iterator[Finding]:
    """Companions of a framework, as torchvision of PyTorch, that were built for another CUDA than it, or for none."""
    for build in scene.builds:
        variant = _variant(build.version)
        for name in FRAMEWORKS[build.name].built_with:
            package = scene.packages.get(name)
            if package is None or variant is None:
                continue
            other = _variant(_told_version(build, name)) or _variant(package.version)
            if other is not None and other != variant:
                yield _variants(build, package, variant, other, scene)


def _concerns(wanted: Wanted) -> bool:
    """Whether it matters to the GPU stack who requires or what is required; parts of one version have another check."""
    if any(re.fullmatch(parts, wanted.name) for it in FRAMEWORKS.values() for parts in it.same_version):
        return False
    return is_of_gpu_stacks(wanted.requirer.name) or is_of_gpu_stacks(wanted.name)


def _unmet(wanted: Wanted, scene: Scene) -> str | None:
    """What is wanted and what is there, as a sentence; None where that is the same."""
    installed = scene.packages.by_name.get(wanted.name)
    if installed is None:
        missed = not wanted.assumed and not wanted.requirer.is_of_conda and is_of_gpu_stacks(wanted.requirer.name)
        if not missed or wanted.requirer.editable or _stands_in(wanted.name, scene):
            return None
        return f"{_said(wanted.requirement)} is required, and not installed"
    version = parsed_version(installed.version)
    if version is None or wanted.requirement.specifier.contains(version, prereleases=True):
        return None
    of_conda = wanted.requirer.is_of_conda and installed.is_of_conda
    if of_conda and not _is_pair(wanted):  # conda's own metadata decided, and relaxes what wheels pin
        return None
    return f"{_said(wanted.requirement)} is required, and {installed.version} is installed"


def _stands_in(name: str, scene: Scene) -> bool:
    """Whether another package of the same framework is there: tensorflow-cpu serves who requires tensorflow."""
    there = {it.name for it in frameworks_among(scene.packages.by_name)}
    return any(it.name in there for it in frameworks_among([name]))


def _said(requirement: Requirement) -> str:
    return f"{requirement.name}{requirement.specifier}"


def _is_pair(wanted: Wanted) -> bool:
    """Whether the two are of one mould."""
    pairs = (pair for it in FRAMEWORKS.values() for pair in it.pairs.items())
    return any(re.fullmatch(one, wanted.requirer.name) and re.fullmatch(other, wanted.name) for one, other in pairs)


def _breaks(wanted: Wanted, installed: Package) -> bool:
    """Whether the difference keeps it from loading; of a framework a patch release keeps its interface."""
    version = parsed_version(installed.version)
    if not frameworks_among([wanted.name]) or version is None:
        return True
    pinned = [parsed_version(it.version) for it in wanted.requirement.specifier if it.operator in ("==", "===", "~=")]
    return not any(it is not None and it.release[:2] == version.release[:2] for it in pinned)


def _numbers(package: Package) -> Version | None:
    """The numbers of a version, which is what jaxlib compares."""
    match = _NUMBERS.match(package.version)
    return parsed_version(match[0]) if match is not None else None


def _variant(version: str | None) -> str | None:
    """``cu126``, ``cpu`` or the like of a local version, by the major of CUDA alone: ``cu12``."""
    local = (version or "").partition("+")[2]
    match = _LOCAL.match(local)
    if match is None:
        return None
    return match[0][:-1] if match[0].startswith("cu") else match[0].rstrip("0123456789.")


def _told_version(build: Build, name: str) -> str | None:
    """The version that a companion's own module tells, which names the build in wheels of PyPI too."""
    told = build.framework.assigned(f"{name}/version.py").get("__version__")
    return told if isinstance(told, str) else None


def _pair(wanted: Wanted, installed: Package, scene: Scene) -> Finding:
    requirer = wanted.requirer
    return Finding(
        _COMPANION,
        f"{requirer.name} {requirer.version} is not for {installed.name} {installed.version}",
        Severity.ERROR,
        f"{requirer.label} was built for {_said(wanted.requirement)}, and {installed.version} is installed: they do "
        "not load together, or leave the GPU unused",
        f"install the {requirer.name} that goes with {installed.name} {installed.version}, or both anew from one lock",
        (*mended(scene), f"pip install -U {requirer.name} {installed.name}"),
        (f"{requirer.folder.name}: Requires-Dist: {wanted.requirement}", f"{installed.folder.name} is installed"),
        about=requirer.name,
    )


def _part(known: Framework, part: Package, takes: Package, scene: Scene) -> Finding:
    return Finding(
        _COMPANION,
        f"{part.name} {part.version} is not for {takes.name} {takes.version}",
        Severity.ERROR,
        f"{part.label} is installed beside {takes.label}: {takes.name} does not use it in another version than its "
        f"own, and {known.title} runs on the CPU",
        "install both in one version",
        (*mended(scene), f"pip install {part.name}=={takes.version}"),
        (f"{part.folder.name}", f"{takes.folder.name}"),
        about=part.name,
    )


def _variants(build: Build, package: Package, variant: str, other: str, scene: Scene) -> Finding:
    return Finding(
        _COMPANION,
        f"{package.name} and {build.title} are not built for the same CUDA",
        Severity.ERROR,
        f"{package.name} is a build for {_spoken(other)} and {build.label} one for {_spoken(variant)}: its "
        "operations on the GPU are not there, or it does not load",
        f"install {package.name} from the index that {build.title} was installed from",
        mended(scene),
        (
            f"{build.framework.framework.built.file} says {build.version}",
            f"{package.name}: {_told_version(build, package.name) or package.version}",
        ),
        about=package.name,
    )


def _spoken(variant: str) -> str:
    if variant.startswith("cu"):
        return f"CUDA {variant[2:]}"
    return {"cpu": "the CPU", "rocm": "ROCm", "xpu": "Intel GPUs"}[variant]


def _not_met(label: str, sentences: list[str], severity: Severity, scene: Scene) -> Finding:
    name, _, version = label.partition(" ")
    again = install(scene.packages.by_name[name], f"{name}=={version}", scene)
    more = f", and {len(sentences) - 1} more" if len(sentences) > 1 else ""
    return Finding(
        "requirement-not-met",
        f"{name} does not have the versions that it requires",
        severity,
        f"of {label}, {sentences[0]}{more}",
        "install the versions that it requires, or all anew from one lock",
        (*((frameworks_among([name]) and mended(scene)) or (again,)), "pip check"),
        tuple(f"{label}: {sentence}" for sentence in sentences[:_SHOWN]),
        about=name,
    )
