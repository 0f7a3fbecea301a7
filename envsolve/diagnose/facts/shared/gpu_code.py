"""Which builds and toolkits have code for a GPU, and what a text says of both: the base of facts on GPU code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.facts.shared.pip_commands import torch_command
from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion

BLACKWELL = 10
"""The major compute capability from which on GPUs are Blackwell."""

_NUMBER = re.compile(r"(?:sm|compute)[_ ]?(\d{2,3})[af]?|(?<![\d.])(\d{1,2}\.\d|\d{2,4})(?![\d.])", re.IGNORECASE)
_ON_ARM = {(11, 0), (12, 1)}
"""Thor and GB10, whose processors are Arm's."""


_PTX = {
    **{f"6.{minor}": cuda for minor, cuda in enumerate(("9.0", "9.1", "9.2", "10.0", "10.1", "10.2"))},
    **{f"7.{minor}": f"11.{minor}" for minor in range(9)},
    **{f"8.{minor}": f"12.{minor}" for minor in range(6)},
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    **{f"9.{minor}": f"13.{minor}" for minor in range(5)},
}
"""The CUDA that came with each version of PTX: docs.nvidia.com/cuda/parallel-thread-execution, release notes."""


# ---------------------------------------------------------------------------------------------- what a text says


def first_field(lines: Iterable[Sighting], *fields: str) -> str | None:
    """The first of ``fields`` that one of ``lines`` has."""
    return next((value for it in lines for field in fields if (value := it.get(field))), None)


def capability_from(text: str | None) -> ComputeCapability | None:
    """``12.0``, ``sm_120``, ``120``, ``120a`` or ``(12, 0)`` as a capability; None for anything else."""
    plain = re.sub(r"\s", "", text or "").strip("()").replace(",", ".").removesuffix("a").removesuffix("f")
    try:
        return ComputeCapability.parse(re.sub(r"(?<=\d\.\d)\.\d\Z", "", plain))
    except ValueError:
        return None


def targets_from(text: str | None) -> tuple[ComputeCapability, ...]:
    """Machine code in a list of architectures: ``sm_70 SM75``, ``7.5 8.0``, ``75 80``, or ``520,610`` of ggml."""
    found = [
        (match[1], match[2]) for match in _NUMBER.finditer(text or "") if not match[0].lower().startswith("compute")
    ]
    of_ggml = all(number and len(number) > 2 and number.endswith("0") and "." not in number for _, number in found)  # noqa: PLR2004
    numbers = (named or (number[:-1] if of_ggml else number) for named, number in found)
    return tuple(sorted({it for it in map(capability_from, numbers) if it is not None}))


def targets_in(case: Case, lines: Sequence[Sighting]) -> tuple[ComputeCapability, ...]:
    """What the build was compiled for, if the text lists it."""
    printed = first_field(case.of("architecture-list"), "has")
    lists = (first_field(lines, "has", "ggml"), case.clue("architectures"), printed)
    return next((targets for text in lists if (targets := targets_from(text))), ())


def capability_in(case: Case, lines: Sequence[Sighting]) -> ComputeCapability | None:
    """The compute capability of the GPU that ``lines`` name, else of the first that the case knows."""
    pair = f"{first_field(lines, 'major')}.{first_field(lines, 'minor')}"
    numbers = (
        pair,
        first_field(lines, "capability", "capability_of", "detected"),
        first_field(case.of("binary-of-gpu"), "number"),
    )
    found = [it for it in map(capability_from, numbers) if it is not None]
    found += targets_from(first_field(lines, "cc"))[:1]
    name = first_field(lines, "gpu")
    others = (
        case.capability,
        capability_from(first_field(case.of("paddle-device"), "capability")),
        None if name is None else case.knowledge.capability_of(name),
    )
    return next((it for it in (*found, *others) if it is not None), None)


# ---------------------------------------------------------------------------------------------- toolkits


def cuda_of_ptx(version: str | None) -> CudaVersion | None:
    """The CUDA that came with a version of PTX."""
    cuda = _PTX.get(version or "")
    return None if cuda is None else CudaVersion.parse(cuda)


def runs_code_of(case: Case, capability: ComputeCapability, cuda: CudaVersion) -> bool:
    """Whether ``cuda`` compiles for an older minor of the same major: code for 8.6, of CUDA 11.1, runs on 8.9."""
    toolkit = next((it for it in case.knowledge.matrix.cuda.toolkits if it.version == cuda), None)
    return toolkit is not None and any(CodeTarget(it).runs_as_machine_code(capability) for it in toolkit.compiles_for)


# ---------------------------------------------------------------------------------------------- builds


def platform_for(case: Case, capability: ComputeCapability | None) -> Platform | None:
    """The platform of the case, Arm's for GPUs that only Arm machines have."""
    return Platform.LINUX_AARCH64 if case.platform is None and capability in _ON_ARM else case.platform


def builds_with_code(case: Case, capability: ComputeCapability, framework: str | None = None) -> tuple[Release, ...]:
    """The builds of the framework that have machine code for ``capability`` and are not known to fail there."""
    name = framework or case.framework
    if name is None or name not in case.knowledge.matrix.framework_names:
        return ()
    table = case.knowledge.matrix.framework(name, platform_for(case, capability) or Platform.LINUX_64)
    bad = [it for it in table.known_bad if capability in it.capabilities]
    having = [it for it in table.releases if it.cuda is not None and it.code.machine_code_for(capability) is not None]
    return tuple(it for it in having if not any(known.covers(it) for known in bad))


def edge(releases: Sequence[Release], *, last: bool) -> Release:
    """The first or the last release; of its builds a wheel before conda's, and the one for the newest CUDA."""
    version = (max if last else min)(it.version for it in releases)
    of_it = [it for it in releases if it.version == version]
    return max(of_it, key=lambda it: (it.source.is_wheel, it.source is Source.PYTORCH, it.cuda or CudaVersion(0, 0)))


def for_old_drivers(case: Case, capability: ComputeCapability, having: Sequence[Release]) -> Release:
    """The newest of ``having`` for the CUDA major that was the first for ``capability``: older drivers run it."""
    span = case.knowledge.cuda_for(capability)
    modest = [it for it in having if span is not None and it.cuda is not None and it.cuda.major == span[0].major]
    wheels = [it for it in modest if it.source.is_wheel]
    return edge(wheels or modest or having, last=True)


class Build(NamedTuple):
    """A build as a fact: ``PyTorch 2.7.0 (cu128)``."""

    release: Release

    def __str__(self) -> str:
        it = self.release
        at = "" if it.source.is_wheel else f", {it.source}"
        return f"{TITLES.get(it.framework, it.framework)} {it.version} ({it.build}{at})"

    @property
    def name(self) -> str:
        """By its own name: cu128."""
        return self.release.build

    @property
    def command(self) -> str:
        """The command that installs it."""
        return _install_command(self.release)


def _install_command(release: Release) -> str:
    if release.source is Source.PYTORCH:
        return torch_command(release)
    if release.source.is_wheel:
        extras = f"[{','.join(release.extras)}]" if release.extras else ""
        return f"pip install '{release.package}{extras}=={release.version}'"
    return f"conda install -c {release.source.channel} '{release.package}={release.version}=*{release.build}*'"


def built_code(case: Case, capability: ComputeCapability | None) -> DeviceCode | None:
    """The code of the installed build, where its version and its CUDA or its build show which one it is."""
    codes = built_codes(case, capability)
    return next(iter(codes)) if len(codes) == 1 else None


def built_codes(case: Case, capability: ComputeCapability | None) -> set[DeviceCode]:
    """The code of every build that the installed one may be, by its version, or for want of one by its CUDA."""
    version, cuda = case.version_of(case.framework), case.built_cuda
    if case.framework is None or (version is None and cuda is None):
        return set()
    platform = platform_for(case, capability)
    if version is None:
        found = case.knowledge.all_releases(case.framework, platform)
    else:
        found = case.knowledge.releases(case.framework, version, platform)
    found = tuple(it for it in found if it.cuda is not None and cuda in {None, it.cuda})
    return {it.code for it in found if it.source.is_wheel} or {it.code for it in found}
