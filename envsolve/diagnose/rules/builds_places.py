"""Where builds without CUDA are the rule: macOS, Linux for Arm, Jetson; and machines with a GPU of AMD."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envsolve.diagnose.case import TITLES, Case
from envsolve.diagnose.gpu_code import edge
from envsolve.diagnose.rules.code_reach import taking
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import parsed_version

FAILED_PARTS = ("library-missing", "cuda-libraries-not-found")
"""Symptoms of other subjects that say which library was not found."""


def on_macos(case: Case) -> bool:
    """Whether it plainly happened on a Mac."""
    return case.platform in {Platform.OSX_64, Platform.OSX_ARM64} or case.told("apple") is not None


def on_arm(case: Case) -> bool:
    """Whether it plainly happened on Linux for Arm."""
    unknown = case.platform is None and not case.windows and not on_macos(case)
    return case.platform is Platform.LINUX_AARCH64 or (unknown and case.told("aarch64") is not None)


def only_amd(case: Case) -> bool:
    """Whether a GPU of AMD is told and none of NVIDIA."""
    return case.saw("amd-gpu") and not case.gpus and case.driver is None


def arm_fields(case: Case, name: str) -> dict[str, str]:
    """Fields on Linux for Arm: which builds of a framework have CUDA there."""
    having = [it for it in case.knowledge.all_releases(name, Platform.LINUX_AARCH64) if it.cuda is not None]
    title = TITLES.get(name, name)
    fields = case.fields_of(name)
    machine = next((it for it in ("GB200", "GH200", "GB10") if any(it in gpu for gpu in case.gpus)), None)
    if machine is not None:
        fields["arm_machine"] = f", {machine}"
    if not having:
        fields["arm_first"] = f"No build of {title} for aarch64 in the matrix has CUDA."
        return fields
    on_index = [it for it in having if it.source is Source.PYPI]
    if on_index:
        first = edge(on_index, last=False)
        fields["arm_first"] = (
            f"{title} {first.version} is the first whose wheel for aarch64 on the Python index has CUDA."
        )
    fields["arm_take"] = _arm_take(case, name, having)
    return fields


def _arm_take(case: Case, name: str, having: Sequence[Release]) -> str:
    version = parsed_version((case.version_of(name) or "").partition("+")[0])
    own = [
        it
        for it in having
        if it.source is Source.PYTORCH and version is not None and it.version.release[:2] == version.release[:2]
    ]
    if own:
        return f"Install it from PyTorch's index for CUDA: {taking(edge(own, last=True))}."
    if name == "pytorch":
        return (
            "Install it from PyTorch's index for CUDA: `pip install torch --index-url "
            "https://download.pytorch.org/whl/cu128` (cu126 and newer, and cu130, have wheels for aarch64)."
        )
    return f"Take {taking(edge(having, last=True))}."


_JETPACKS = {
    "r32": "JetPack 4",
    "r34": "JetPack 5",
    "r35": "JetPack 5",
    "r36": "JetPack 6",
    "r38": "JetPack 7",
    "r39": "JetPack 7",
}


def jetson_words(case: Case) -> dict[str, str]:
    """Fields on a Jetson: the JetPack or L4T release that is told."""
    told = [it for it in case.every("jetson") if re.search(r"\d", it)]
    if not told:
        return {}
    release = next(
        (pack for short, pack in _JETPACKS.items() for it in told if short in it.casefold().replace(" ", "")), None
    )
    return {"jetson_told": f" ({told[0].strip()}{f', {release}' if release else ''})"}
