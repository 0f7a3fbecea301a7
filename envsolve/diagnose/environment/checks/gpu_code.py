"""Whether frameworks and the libraries they load have code for the GPUs of the machine, or were built for the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.scene import Scene
from envsolve.frameworks import FRAMEWORKS, Framework
from envsolve.model.capability import ComputeCapability, DeviceCode
from envsolve.model.finding import Finding, Severity
from envsolve.model.prose import sentence_list
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import Installed

_FAILS = {
    "cublas": "matrix products",
    "cublasLt": "matrix products",
    "cudnn_ops": "convolutions and normalization",
    "cudnn_ops_infer": "convolutions and normalization",
    "cudnn_cnn": "convolutions",
    "cudnn_cnn_infer": "convolutions",
    "cudnn_engines_precompiled": "convolutions",
    "nccl": "communication between GPUs",
}
"""What fails if a component has no code for a GPU. Others contain little, or compile at run time."""
_MANY_GPUS = frozenset({"nccl"})
"""Libraries that only programs on several GPUs use."""


def code_in_libraries(scene: Scene) -> Iterator[Finding]:
    """Frameworks and libraries they load whose files have no code for a GPU; each GPU is judged separately."""
    for build in scene.builds:
        own = scene.code_in(build.framework.files(*build.framework.libraries.code))
        for gpu in scene.capabilities:
            bare = {file: code for file, code in own.items() if code.runs_as(gpu) is None}
            if bare:
                yield _no_code(build, gpu, next(iter(bare)).name, bare.values(), (), scene)
                continue
            compiled = {file: code for file, code in own.items() if code.machine_code_for(gpu) is None}
            if compiled:
                path, code = next(iter(compiled.items()))
                yield scene.finding(
                    "ptx-only",
                    (f"{file}: {code}" for file, code in compiled.items()),
                    about=build.framework,
                    capability=gpu,
                    path=path.name,
                    ptx=code.ptx_for(gpu),
                )
            yield from _in_loaded(build, scene.loads.found.get(build.name, {}), gpu, scene)


def code_of_builds(scene: Scene) -> Iterator[Finding]:
    """Frameworks whose own files contain no code for a GPU, by the conda prefix or else by the matrix."""
    for build in scene.builds:
        if scene.code_in(build.framework.files(*build.framework.libraries.code)):
            continue
        code, sources = _known_code(build, scene)
        for gpu in scene.capabilities if code is not None else ():
            if code is not None and code.runs_as(gpu) is None:
                yield _no_code(build, gpu, build.label, [code], sources, scene)


def _known_code(build: Build, scene: Scene) -> tuple[DeviceCode | None, tuple[str, ...]]:
    """The code of a build and its sources: its file in the prefix, or else the rows of the matrix if these agree."""
    in_prefix = scene.code_in(tuple(scene.inventory.prefix / name for name in build.framework.framework.conda_code))
    if in_prefix:
        return next(iter(in_prefix.values())), ()
    known = {release.code for release in build.releases if release.cuda is not None}
    code = known.pop() if len(known) == 1 and build.cuda_version is not None else DeviceCode(())
    return (code, build.references) if code.sass or code.ptx else (None, ())


def _in_loaded(build: Build, loaded: Mapping[str, str], gpu: ComputeCapability, scene: Scene) -> Iterator[Finding]:
    for name, path in loaded.items():
        component = component_of(name)
        fails = _FAILS.get(component or "")
        code = scene.code_of(path) if fails is not None else DeviceCode(())
        if (code.sass or code.ptx) and code.runs_as(gpu) is None:
            yield scene.finding(
                "library-without-code-for-gpu",
                (f"{Path(path)}: {code}",),
                about=build.framework,
                severity=Severity.WARNING if component in _MANY_GPUS else Severity.ERROR,
                capability=gpu,
                library=name,
                covered=str(code),
                fails=fails,
            )


def _no_code(
    build: Build,
    gpu: ComputeCapability,
    where: str,
    codes: Iterable[DeviceCode],
    sources: Iterable[str],
    scene: Scene,
) -> Finding:
    names = dict.fromkeys(it.name or "a GPU" for it in scene.host.gpus if it.compute_capability == gpu)
    covered = tuple(dict.fromkeys(map(str, codes)))
    return scene.finding(
        "no-code-for-gpu",
        (f"GPU: {' and '.join(names)} ({gpu})", f"{build.label}: {'; '.join(covered)}"),
        about=build,
        sources=sources,
        capability=gpu,
        path=where,
        covered=covered[0],
    )


def cpu_builds(scene: Scene) -> Iterator[Finding]:
    """Frameworks without CUDA, on a machine that has a GPU."""
    there = {it.name: it for it in scene.files.frameworks}
    for known in FRAMEWORKS.values() if scene.has_gpu else ():
        shows = _shows_cpu(known, there.get(known.name), scene) if scene.files.is_wanted(known.name) else None
        if shows is not None:
            facts = {"framework": known.title, "name": known.name}
            dependency = scene.packages.cpu_dependency(known)
            evidence = () if dependency is None else (f"{sentence_list(dependency[1])} requires {dependency[0]}",)
            severity = None if dependency is None else Severity.INFO
            yield scene.finding(
                "cpu-build", [shows, *evidence], about=known.name, severity=severity, gpu_is_here=True, **facts
            )


def _shows_cpu(known: Framework, there: Installed | None, scene: Scene) -> str | None:
    """The evidence that this is a CPU build; None for any other. ``there`` is None if its module is missing."""
    if there is not None:
        if there.says_no_gpu is not None:
            return there.says_no_gpu
        if any("cuda" in file.name for file in there.files(*known.libraries.code)):
            return None
    installed = scene.inventory.distributions
    present = next((it for it in installed if known.is_installed_as(it.name)), None)
    records = (scene.conda.by_name.get(name) for name in known.conda_builds) if there or present else ()
    build = next((it.build for it in records if it is not None), "")
    if re.match(r"(cpu|mkl)", build):
        return f"the build of the conda package is {build}"
    if present is None or known.gpu_packages is None or "cuda" in build:
        return None
    if any(known.has_gpu_code(it.name, it.version) for it in installed):
        return None
    return f"{present.name} {present.version} is installed, and no package with its GPU code"
