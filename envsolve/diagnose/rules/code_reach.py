"""Which builds have code for a GPU: the first and the last of a framework, and the toolkits that compile for it.

All is the matrix's to say; here it becomes fields of explanations.
"""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.case import TITLES, Case
from envsolve.diagnose.facts.gpu_code import (
    BLACKWELL,
    build_words,
    builds_with_code,
    edge,
    for_old_drivers,
    install_command,
    platform_for,
    runs_code_of,
)
from envsolve.model.capability import ComputeCapability
from envsolve.model.release import Release
from envsolve.model.versions import parsed_version

TOO_NEW = "gpu-too-new-for-build"
TOO_OLD = "gpu-too-old-for-build"
"""The ways in which a build cannot have code for a GPU, as explanations."""

SMI_TELLS = "nvidia-smi --query-gpu=name,compute_cap --format=csv"
"""The command that prints what the GPU is."""

_FERMI = "8.0"
"""The last toolkit for compute capability 2.x. CUDA 9.0, where the matrix begins, dropped it (release notes)."""

_TORCH_TELLS = 'python -c "import torch; print(torch.cuda.get_device_capability(), torch.cuda.get_arch_list())"'
_TENSORFLOW_TELLS = (
    "python -c \"import tensorflow as tf; print(tf.sysconfig.get_build_info()['cuda_compute_capabilities'])\"; "
    f"{SMI_TELLS}"
)

# words


def names_of(case: Case, capability: ComputeCapability) -> str:
    """``sm_86, Ampere``."""
    architecture = case.knowledge.architecture(capability)
    number = f"sm_{capability.major}{capability.minor}"
    return number if architecture is None else f"{number}, {architecture}"


def listed(items: Iterable[object]) -> str:
    """Items with commas."""
    return ", ".join(map(str, items))


def telling(case: Case) -> str:
    """The command that prints what the GPU is and what the build has."""
    if case.framework == "tensorflow":
        return _TENSORFLOW_TELLS
    return _TORCH_TELLS if case.framework in {"pytorch", None} else SMI_TELLS


def built_with(case: Case, framework: str | None = None) -> dict[str, str]:
    """What the build of a framework, by default that of the case, was made with, as a sentence."""
    about = framework or case.framework
    cuda = case.cuda_of(about)
    if cuda is None or about is None:
        return {}
    version = case.version_of(about)
    name = f"{TITLES[about]} {version}" if version else f"This {TITLES[about]}"
    return {"built_with": f"{name} was built with CUDA {cuda}."}


# toolkits and drivers


def capability_fields(case: Case, capability: ComputeCapability) -> dict[str, str]:
    """Fields on a capability: what it is called, the toolkits that compile for it, its drivers."""
    found = {
        "capability": str(capability),
        "names": names_of(case, capability),
        "sm": f"sm_{capability.major}{capability.minor}",
        "number": f"{capability.major}{capability.minor}",
    }
    found |= _toolkit_fields(case, capability)
    life = case.knowledge.matrix.cuda.life_of(capability)
    if life is not None and life.first_branch is not None and capability.major >= BLACKWELL:
        found["first_driver"] = str(life.first_branch)
    if life is not None and life.last_branch is not None:
        found["driver_limit"] = (
            f"R{life.last_branch} is the last driver branch for this GPU: do not update the driver beyond it."
        )
    return found


def _toolkit_fields(case: Case, capability: ComputeCapability) -> dict[str, str]:
    toolkits = sorted(it.version for it in case.knowledge.matrix.cuda.toolkits)
    span = case.knowledge.cuda_for(capability)
    if span is None:
        fermi = (capability.major, capability.minor) < (3, 0)
        return {"last_cuda": _FERMI, "next_cuda": str(toolkits[0])} if fermi else {}
    first, last = span
    found = {"first_cuda": str(first)}
    family = next((it for it in toolkits if runs_code_of(case, capability, it)), first)
    if family < first:
        found["family_words"] = f", whose older minors CUDA {family} already compiles for, with code that runs on it"
    if last is not None:
        found |= {"last_cuda": str(last), "next_cuda": str(next(it for it in toolkits if it > last))}
    return found


# builds


def taking(release: Release) -> str:
    """The command that installs a build."""
    return f"`{install_command(release)}`"


def reach_fields(case: Case, capability: ComputeCapability, way: str) -> dict[str, str]:
    """Which builds of the framework have code for ``capability``: the first, the last, and those of its version."""
    title = TITLES.get(case.framework or "", case.framework or "")
    having = builds_with_code(case, capability)
    if not having:
        known = case.framework in TITLES
        found = {"reaches": f"No build of {title} in the matrix has machine code for {capability}."} if known else {}
        return found | _elsewhere(case, capability, way)
    if way == TOO_NEW:
        first, example = edge(having, last=False), for_old_drivers(case, capability, having)
        so_far = "" if case.framework == "pytorch" else " known here"
        found = {
            "reaches": f"{build_words(first)} is the first {title} build{so_far} with code for {capability}.",
            "take": f"Take {build_words(first)} or a newer one, such as {build_words(example)}: {taking(example)}.",
        }
    else:
        last = edge(having, last=True)
        found = {
            "reaches": f"{build_words(last)} is the last {title} build with code for {capability}.",
            "take": f"{build_words(last)} is the newest {title} build with code for {capability}: {taking(last)}.",
        }
    return found | _of_version(case, capability) | _elsewhere(case, capability, way)


def _of_version(case: Case, capability: ComputeCapability) -> dict[str, str]:
    """Which builds of the very version have the code and which have not."""
    version = case.version_of(case.framework)
    if version is None or case.framework is None:
        return {}
    parsed = parsed_version(version)
    nightly = parsed is not None and parsed.is_prerelease
    public = parsed.base_version if nightly and parsed is not None else version.partition("+")[0]
    releases = case.knowledge.releases(case.framework, public, platform_for(case, capability))
    wheels = [it for it in releases if it.cuda is not None and it.source.is_wheel]
    having = tuple(dict.fromkeys(it.build for it in wheels if it.code.machine_code_for(capability)))
    lacking = tuple(dict.fromkeys(it.build for it in wheels if it.code.runs_as(capability) is None))
    lacking = tuple(it for it in lacking if it not in having)
    if not having or not lacking:
        return {}
    found = {
        "good_builds": f"Of the builds of {TITLES[case.framework]} {public}, {listed(having)} has code for "
        f"{capability} and {listed(lacking)} has not."
    }
    if case.framework == "pytorch":
        found["take"] = (
            f"{'Take the release' if nightly else 'Keep the version'} and change the build, to {having[0]}: "
            f"`pip install torch=={public} --index-url "
            f"https://download.pytorch.org/whl/{having[0]}`."
        )
    return found


def _with_pytorch(case: Case, capability: ComputeCapability, way: str) -> str:
    """What PyTorch needs, where nothing says whose the error is: most often it is PyTorch's."""
    having = builds_with_code(case, capability, "pytorch")
    if not having:
        return ""
    if way == TOO_NEW:
        first, example = edge(having, last=False), for_old_drivers(case, capability, having)
        return f"With PyTorch, take {build_words(first)} or newer, such as {build_words(example)}: {taking(example)}."
    last = edge(having, last=True)
    return f"With PyTorch, {build_words(last)} is the newest build that has it: {taking(last)}."


def _elsewhere(case: Case, capability: ComputeCapability, way: str) -> dict[str, str]:
    """What is known of builds that the matrix does not list."""
    if case.framework is None:
        words = _with_pytorch(case, capability, way)
    elif case.framework == "paddlepaddle":
        words = (
            "PaddlePaddle's own index has more wheels than the Python index: take one that was compiled for "
            f"{capability}; a CUDA number in its name (cu129) alone does not say so."
        )
    elif case.framework == "pytorch" and capability < (3, 5):
        words = "PyTorch before 1.0 (0.3.0) had code for 3.0; Fermi (2.x) is in no wheel at all."
    else:
        return {}
    return {"elsewhere": words} if words else {}
