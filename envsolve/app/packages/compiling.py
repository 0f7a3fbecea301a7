"""Commands that compile a source distribution with kernels for a stack, from ``data/builds/kernels.toml``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.errors import Hint
from envsolve.index.build_bounds import builds_document
from envsolve.matrix.torch_symbols import FRAMEWORK
from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.solution import Solution
from envsolve.model.versions import CudaVersion

_TARGETS = {Platform.LINUX_64: "x86_64-linux", Platform.LINUX_AARCH64: "sbsa-linux"}
"""The directory of the CUDA headers in conda-forge's packages (build.sh of its cuda-cudart-feedstock). Windows has no
entry: what a build needs there is not known."""
_FIRST_WITH_NVCC = 13
"""The first CUDA with nvcc in NVIDIA's wheels: nvidia-cuda-nvcc-cu12 12.8.93 has only ptxas, 13.0.88 has nvcc."""
_FIRST_OF_CONDA = 12
"""The first CUDA major version of conda-forge's cuda-nvcc."""


HOW_TO_COMPILE = "how-to-compile"
"""The code of the steps, in hints and notes."""


class Kernels(NamedTuple):
    """How to compile the source distributions of a package. The file documents the keys."""

    package: str
    versions: SpecifierSet
    needs: tuple[str, ...]
    archs: str = ""
    digits: bool = False
    targets: tuple[CodeTarget, ...] = ()
    environment: Mapping[str, str] = {}
    expect: str = ""

    def targets_for(self, gpus: Iterable[ComputeCapability]) -> list[str] | None:
        """The GPU architectures to compile for; None if the source has no code for one of ``gpus``."""
        code = DeviceCode(self.targets)
        found = [code.machine_code_for(gpu) if self.targets else CodeTarget(gpu) for gpu in gpus]
        targets = sorted({it for it in found if it is not None})
        return None if None in found else [str(it).replace(".", "") if self.digits else str(it) for it in targets]


@cache
def kernels() -> tuple[Kernels, ...]:
    """All known entries."""
    return tuple(
        Kernels(
            it["package"],
            SpecifierSet(it["versions"]),
            tuple(it["needs"]),
            it.get("archs", ""),
            it.get("digits", False),
            tuple(map(CodeTarget.parse, it.get("targets", ()))),
            it.get("environment", {}),
            it.get("expect", ""),
        )
        for it in builds_document("kernels.toml")["kernels"]
    )


def how_to_compile(name: str, version: str, solution: Solution) -> Iterator[Hint]:
    """How to compile a version of a package for the GPUs of a stack: two steps; none if unknown."""
    known = next((it for it in kernels() if it.package == name and it.versions.contains(version)), None)
    torch = next((it.release for it in solution.choices if it.release.framework == FRAMEWORK), None)
    cuda = torch.cuda if torch is not None and torch.source.is_wheel else None
    gpus, platform = solution.problem.gpus, solution.problem.platform
    if known is None or cuda is None or cuda.major < _FIRST_OF_CONDA or not gpus or platform not in _TARGETS:
        return
    targets = known.targets_for(gpus)
    if targets is None:
        return
    needs = shlex.join(known.needs)
    install, home = _of_wheels(cuda) if cuda.major >= _FIRST_WITH_NVCC else _of_conda(cuda, _TARGETS[platform])
    on = ", ".join(map(str, sorted(set(gpus))))
    yield Hint(
        f"to compile {name} {version} for compute capability {on}, install nvcc of CUDA {cuda} beside g++ and PyTorch",
        f"{install} {needs}",
        HOW_TO_COMPILE,
    )
    variables = {**known.environment, **({known.archs: ";".join(targets)} if known.archs else {})}
    given = "".join(f"{key}={shlex.quote(value)} " for key, value in variables.items())
    yield Hint(
        f"then build it{f': {known.expect}' if known.expect else ''}",
        f"{home} && {given}pip install --no-build-isolation {name}=={version}",
        HOW_TO_COMPILE,
    )


def cpu_by_default(name: str, version: str, solution: Solution) -> Note | None:
    """A note if a source distribution is built only for the CPU unless variables are set; None otherwise."""
    for it in builds_document("kernels.toml")["cpu-by-default"]:
        if solution.toolkit is not None and name == it["package"] and SpecifierSet(it["versions"]).contains(version):
            variables = " ".join(f"{key}={shlex.quote(value)}" for key, value in it["environment"].items())
            text = (
                f"{name} {version} is built for the CPU alone: for the GPU, install nvcc of CUDA "
                f"{solution.toolkit.version} and set {variables} for the installation"
            )
            return Note("source-for-cpu", text).about(name=name, version=version, environment=variables)
    return None


def _of_wheels(cuda: CudaVersion) -> tuple[str, str]:
    """The commands that install nvcc and set CUDA_HOME.

    The linker needs libcudart.so, a name that the wheels lack. PyTorch may require a newer nvidia-cuda-cccl than this
    CUDA; that one stays.
    """
    folder = """"$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"""
    home = f"""export CUDA_HOME={folder}/nvidia/cu{cuda.major}\""""
    link = f'ln -sf libcudart.so.{cuda.major} "$CUDA_HOME/lib/libcudart.so"'
    return f"pip install 'cuda-toolkit[nvcc]=={cuda}.*' nvidia-cuda-cccl", f"{home} && {link}"


def _of_conda(cuda: CudaVersion, target: str) -> tuple[str, str]:
    home = f"$PWD/cuda-{cuda}"
    install = f"conda create -p ./cuda-{cuda} -c conda-forge cuda-version={cuda} cuda-nvcc cuda-libraries-dev"
    return f"{install} && pip install", f'export CUDA_HOME="{home}" CPATH="{home}/targets/{target}/include"'
