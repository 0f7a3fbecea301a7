"""Rules on conda: packages that no channel has, or not any more, and requests that cannot be met."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting, parsed_version
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.named import is_of_gpus, known, listed, merged

PYTORCH_CUDA = ("11.6", "11.7", "11.8", "12.1", "12.4")
"""The versions of the metapackage pytorch-cuda (records of the channel pytorch, PyTorch's previous-versions page)."""

_LAST_CUDATOOLKIT = Version("11.8")
_FIRST_PYTORCH_CUDA = Version("11.6")
_OLDEST_KEPT = Version("9.2")
_LAST_PYTORCH = Version("2.5.1")
_LINES_BELOW = 25
"""How far below its heading conda's list of packages that are not available is looked for."""


def package_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Packages that conda does not find; only those of CUDA and of frameworks are spoken of."""
    wanted = dict.fromkeys(_named(sightings)) | dict.fromkeys(_below(case, sightings))
    subdir = _subdir(case)
    narrow = case.told("conda_narrow")
    if narrow is not None and (names := [name for name, _ in wanted if is_of_gpus(name)]):
        yield Diagnosis((Cause("conda-32-bit", {"subdir": narrow, "package": listed(names)}),), sightings)
        return
    for name, version in wanted:
        if is_of_gpus(name):
            yield Diagnosis((_of_package(name, version, subdir),), sightings)


def _subdir(case: Case) -> str | None:
    """The platform that conda names, before the one that the rest of the text tells of."""
    mac = next((it for it in case.every("platform") if it.startswith("osx-")), None)
    return mac or (case.platform.value if case.platform is not None else None)


def _named(sightings: tuple[Sighting, ...]) -> Iterator[tuple[str, str]]:
    """Packages with versions in the lines themselves; each that others need, of which solvers list many, once."""
    seen: set[str] = set()
    for it in sightings:
        name = it.get("package") or it.get("requested")
        if name and it.get("needed"):
            if name in seen:
                continue
            seen.add(name)
        if name:
            version = it.get("version") or it.get("requested_version") or ""
            yield name, _plain(version)


def _below(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[tuple[str, str]]:
    """Packages in the list that follows a heading."""
    headings = [it.number for it in sightings if not (it.get("package") or it.get("requested"))]
    for clue in case.clues.get("conda_wanted", ()):
        if any(heading <= clue.number <= heading + _LINES_BELOW for heading in headings):
            name, *rest = re.split(r"\s*[=<>~!]{1,2}\s*", clue.value, maxsplit=1)
            yield name.strip(), _plain(rest[0] if rest else "")


def _plain(version: str) -> str:
    """``11.7`` of ``=11.7.*=h0``, ``11.7**`` and the like."""
    match = re.search(r"\d+(?:\.\d+)*", version)
    return match[0] if match else ""


def _of_package(name: str, version: str, subdir: str | None) -> Cause:
    release = parsed_version(version)
    short = ".".join(version.split(".")[:2])
    fields = known(package=name, wanted_version=short if name != "pytorch" else version, index=short.replace(".", ""))
    if subdir in ("osx-64", "osx-arm64") and re.match(r"cuda|cudnn|nccl|pytorch-cuda|nvidia", name):
        return Cause("conda-no-cuda-for-platform", {**fields, "subdir": subdir, "platform_name": "macOS"})
    if name == "cudatoolkit" and release is not None:
        return Cause(_of_cudatoolkit(release), fields)
    if name == "pytorch-cuda" and release is not None and short not in PYTORCH_CUDA:
        return Cause("conda-pytorch-cuda-never", fields, Remedy(frameworks=("pytorch",)))
    if name == "pytorch" and release is not None and release > _LAST_PYTORCH:
        return Cause("conda-pytorch-channel-ended", fields, Remedy(frameworks=(f"pytorch=={version}.*",)))
    return Cause("conda-package-missing", fields)


def _of_cudatoolkit(release: Version) -> str:
    if Version(".".join(map(str, release.release[:2]))) > _LAST_CUDATOOLKIT:
        return "conda-cudatoolkit-ended"
    if release >= _FIRST_PYTORCH_CUDA:
        return "conda-pytorch-cuda"
    return "conda-cudatoolkit-old" if release < _OLDEST_KEPT else "conda-cudatoolkit-missing"


def unsatisfiable(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Requests that conda cannot meet; told where nothing more is, and where it is about GPU packages."""
    missing = case.of("conda-package-missing")
    needed_only = bool(missing) and all(it.get("needed") for it in missing)
    if case.saw("conda-cuda") or (missing and not (needed_only and not tuple(package_missing(case, missing)))):
        return
    needy, subdir = merged(sightings).get("package", ""), _subdir(case)
    if subdir in ("osx-64", "osx-arm64") and needy.startswith(("pytorch-cuda", "cuda")):
        yield Diagnosis((_of_package("pytorch-cuda", "", subdir),), sightings)
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
