"""The builds of further packages, by the facts in the matrix, against the GPU and what is beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.specifiers import SpecifierSet

from envsolve.boundary.programs import named_program
from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.families import cuda_suffix
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.wanted import required_by_any
from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORKS, frameworks_among
from envsolve.matrix.tables import ComponentTable
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import DeviceCode
from envsolve.model.finding import Finding, Severity
from envsolve.model.need import Need
from envsolve.model.request import in_usual_order, versions_text
from envsolve.model.versions import parsed_version
from envsolve.resolve.closure.bounds import constraints_of
from envsolve.validation.metadata import Package

_OWN_IDS = {"numpy": "numpy-mismatch", "protobuf": "protobuf-mismatch"}
_SHOWN = 8


def packages_without_code(scene: Scene) -> Iterator[Finding]:
    """Packages whose wheels have no code for a GPU of this machine."""
    for package, facts in _known(scene):
        build = _build_beside(package, scene)
        cuda = None if build is None else build.cuda_version
        compiles = scene.host.driver_cuda
        gpu = facts.without_code_for(scene.capabilities, cuda, compiles)
        if gpu is None:
            continue
        others = (it for it in scene.matrix.build_facts(package.name, scene.platform) if it.code is not None)
        yield scene.finding(
            "package-without-code-for-gpu",
            (f"GPU: {gpu}", f"{package.label}: {facts.code or DeviceCode(())}"),
            about=package,
            severity=_severity(facts),
            sources=_sources(facts),
            capability=str(gpu),
            gpu=next(it.name for it in scene.host.gpus if it.compute_capability == gpu),
            versions=_versions(it for it in others if it.without_code_for([gpu], cuda, compiles) is None),
        )


def packages_for_other_cuda(scene: Scene) -> Iterator[Finding]:
    """Packages that load the libraries of another CUDA than that of their framework."""
    for package, facts in _known(scene):
        build = _build_beside(package, scene)
        cuda = build.cuda_version if build is not None else None
        if build is None or cuda is None or facts.cuda is None or facts.go_with(cuda):
            continue
        others = (it for it in scene.matrix.build_facts(package.name, scene.platform) if it.cuda is not None)
        yield scene.finding(
            "package-for-other-cuda",
            (f"{build.label}: CUDA {cuda}", f"{package.label}: {facts.cuda_text}"),
            about=package,
            severity=_severity(facts),
            sources=_sources(facts),
            loss=facts.loss[:1].upper() + facts.loss[1:],
            framework=build.title,
            name=build.name,
            built_cuda=str(cuda),
            package_cuda=facts.cuda_text,
            package_cuda_versions=versions_text(facts.cuda),
            versions=_versions(it for it in others if it.go_with(cuda)),
        )


def packages_that_need_others(scene: Scene) -> Iterator[Finding]:
    """Builds and packages beside versions that break them, or without what they need, if metadata do not say so."""
    for build in scene.builds:
        known = {tuple(constraints_of(release, scene.matrix.build_facts)) for release in build.releases}
        for need in known.pop() if len(known) == 1 else ():
            if scene.packages.get(need.name) is not None:
                yield from _needs(build.title, build.version or "", need, build.name, build.references, scene)
    for package, facts in _known(scene):
        if not frameworks_among([package.name]):
            for need in facts.requires:
                yield from _needs(package.name, package.version, need, package.name, _sources(facts), scene)


def missing_c_compiler(scene: Scene) -> Iterator[Finding]:
    """Triton without the C compiler that it compiles the caller of each kernel with (``triton/runtime/build.py``)."""
    triton = scene.packages.get("triton")
    names = [scene.environ["CC"]] if scene.environ.get("CC") else ["gcc", "clang"]
    if triton is None or scene.platform.is_windows or any(named_program(it, scene.environ) for it in names):
        return
    users = [it.name for it in DEPENDENT_FRAMEWORKS.values() if it.name in scene.packages.by_name]
    yield scene.finding(
        "no-c-compiler",
        (f"looked for {' and '.join(names)} on PATH",),
        about=triton,
        severity=Severity.WARNING if users else Severity.INFO,
        packages=tuple(users),
    )


def _known(scene: Scene) -> Iterator[tuple[Package, BuildFacts]]:
    """The installed wheels that the matrix has facts about."""
    there = {it.name for it in frameworks_among(scene.packages.by_name)}
    for package in scene.packages.by_name.values():
        if package.is_of_conda or parsed_version(package.version) is None:
            continue
        for facts in scene.build_facts(package):
            if facts.covers(package.version) and (not facts.beside or facts.beside in there):
                yield package, facts


def _build_beside(package: Package, scene: Scene) -> Build | None:
    """The framework whose CUDA a package uses: the one that it belongs to, or else the only one."""
    own = [it for it in scene.builds if FRAMEWORKS[it.name].is_beside(package.name)]
    builds = own or list(scene.builds)
    return builds[0] if len(builds) == 1 else None


def _needs(
    title: str, version: str, need: Need, about: str, sources: tuple[str, ...], scene: Scene
) -> Iterator[Finding]:
    package = scene.packages.get(need.name)
    installed = parsed_version(package.version) if package is not None else None
    if installed is not None and SpecifierSet(need.specifier).contains(installed, prereleases=True):
        return
    requirement = f"{title} {version} requires {need.in_words}"
    yield scene.finding(
        _OWN_IDS.get(need.name, "package-needs-another"),
        () if package is None else (f"{package.folder.name} is installed", requirement),
        about=about,
        sources=sources,
        package=title,
        version=version,
        requirement=str(need),
        other=need.name,
        installer=None if package is None else scene.installer_of(package),
        other_version=None if package is None else package.version,
    )


def _severity(facts: BuildFacts) -> Severity:
    """Less than an error if only a part of the package is affected."""
    return Severity.WARNING if facts.loss else Severity.ERROR


def _sources(facts: BuildFacts) -> tuple[str, ...]:
    return tuple(it.reference for it in facts.evidence)


def _versions(facts: Iterable[BuildFacts]) -> str | None:
    """The versions that the first fact is about, as a pip specifier: the matrix has the newest first."""
    return next((in_usual_order(it.versions) for it in facts), None)


def leftover_packages(scene: Scene) -> Iterator[Finding]:
    """Packages for another major version of CUDA than any framework here, which no package requires."""
    used = {build.cuda_major for build in scene.builds if build.cuda_major is not None}
    if not used:
        return
    required = required_by_any(scene.packages)
    left: dict[int, list[Package]] = {}
    for package in scene.packages.by_name.values():
        major = major_of(package, scene.matrix.components)
        if major is not None and major not in used and package.name not in required:
            left.setdefault(major, []).append(package)
    for major, packages in left.items():
        names = [package.name for package in packages]
        yield scene.finding(
            "leftover-cuda-packages",
            (package.label for package in packages),
            packages=tuple(names[:_SHOWN]),
            pins=" ".join(names),
            package_cuda=f"CUDA {major}",
            built_cuda=tuple(map(str, sorted(used))),
        )


def major_of(package: Package, components: ComponentTable) -> int | None:
    """The major version of CUDA that an NVIDIA package is for; since 13 some names no longer end in it."""
    suffix = cuda_suffix(package.name)
    if suffix is not None or not package.name.startswith("nvidia-"):
        return suffix
    known = any(part.package == package.name for it in components.releases for part in it.components)
    numbers = package.version.split(".")
    if not known or not numbers[0].isdecimal():
        return None
    holding = {
        it.cuda.major
        for it in components.releases
        for part in it.components
        if part.package == package.name and part.version.release[:2] == _minor(package.version)
    }
    return holding.pop() if len(holding) == 1 else None


def _minor(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
