"""Rules on conda: requests that cannot be met; packages that no channel has are in :mod:`.conda_missing`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.conda_missing import of_pytorch_cuda, package_missing, subdir_of
from envsolve.diagnose.rules.named import known, listed


def unsatisfiable(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Requests that conda cannot meet; told where nothing more is, and where it is about GPU packages."""
    missing = case.of("conda-package-missing")
    needed_only = bool(missing) and all(it.get("needed") for it in missing)
    if case.saw("conda-cuda") or (missing and not (needed_only and not tuple(package_missing(case, missing)))):
        return
    needy, subdir = merged(sightings).get("package", ""), subdir_of(case)
    if subdir in ("osx-64", "osx-arm64") and needy.startswith(("pytorch-cuda", "cuda")):
        yield Diagnosis((of_pytorch_cuda(subdir),), sightings)
        return
    beside = _toolkit_beside_cuda_12(case)
    if beside is not None:
        yield Diagnosis((beside,), sightings)
        return
    names = tuple(map(str.lower, case.every("gpu_name")))
    if names:
        excludes = case.every("conda_excludes")
        fields = known(
            packages=listed(names[:6]),
            glibc=merged(sightings).get("glibc"),
            excludes="; ".join(excludes[:6]),
            **_pytorch_cuda(excludes),
            rapids="RAPIDS" if any(it in ("rapids", "rapidsai", "cudf", "cuml") for it in names) else None,
        )
        yield Diagnosis((Cause("conda-unsatisfiable", fields),), sightings)


def _toolkit_beside_cuda_12(case: Case) -> Cause | None:
    """cudatoolkit, which ends with CUDA 11.8, where something is of CUDA 12 or newer."""
    asked = case.every("conda_asked")
    cuda = case.told("conda_cuda_12")
    if cuda is None or "cudatoolkit" not in asked:
        return None
    other = next((it for it in asked if it != "cudatoolkit"), None)
    return Cause("conda-toolkit-beside-cuda-12", known(cuda_12=cuda, asked_package=other))


_TORCH_CUDAS = {
    "1.13": ("11.6", "11.7"),
    "2.0": ("11.7", "11.8"),
    "2.1": ("11.8", "12.1"),
    "2.2": ("11.8", "12.1"),
    "2.3": ("11.8", "12.1"),
    "2.4": ("11.8", "12.1", "12.4"),
    "2.5": ("11.8", "12.1", "12.4"),
}
"""The pytorch-cuda of each release of PyTorch in its own channel (PyTorch's previous-versions page)."""

_TORCH_OF = {"0.14": "1.13", **{f"0.{minor + 15}": f"2.{minor}" for minor in range(6)}}
"""The PyTorch of each torchvision."""

_WANTS_CUDA = re.compile(r"(?P<name>pytorch|torchvision|torchaudio)-(?P<release>\d+\.\d+)\S* requires pytorch-cuda")
_ASKED_CUDA = re.compile(r"pytorch-cuda ?=*(?P<cuda>\d+\.\d+)")


def _pytorch_cuda(excludes: tuple[str, ...]) -> dict[str, str]:
    """The PyTorch and the pytorch-cuda that exclude each other."""
    wants = next(filter(None, map(_WANTS_CUDA.search, excludes)), None)
    asked = next((it for it in map(_ASKED_CUDA.match, excludes) if it is not None), None)
    if wants is None or asked is None:
        return {}
    release = wants["release"].replace("0.13", "1.13") if wants["name"] == "torchaudio" else wants["release"]
    line = _TORCH_OF.get(release, release) if wants["name"] == "torchvision" else release
    having = [torch for torch, cudas in _TORCH_CUDAS.items() if asked["cuda"] in cudas]
    if line not in _TORCH_CUDAS or line in having:
        return {}
    return known(
        torch_line=line,
        torch_cudas=listed(_TORCH_CUDAS[line]),
        asked_cuda=asked["cuda"],
        asked_cuda_torches=listed(having),
    )


RULES: Mapping[str, Rule] = {
    "conda-package-missing": package_missing,
    "conda-unsatisfiable": unsatisfiable,
}
