"""Rules on packages that conda does not find: not for this system, not any more, never, or in another channel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy
from envsolve.diagnose.rules.named import about_gpus, is_of_gpus, known, listed
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.versions import parsed_version

PYTORCH_CUDA = ("11.6", "11.7", "11.8", "12.1", "12.4")
"""The versions of the metapackage pytorch-cuda (records of the channel pytorch, PyTorch's previous-versions page)."""

_LAST_CUDATOOLKIT = Version("11.8")
_FIRST_PYTORCH_CUDA = Version("11.6")
_OLDEST_KEPT = Version("9.2")
_LAST_PYTORCH = Version("2.5.1")
_LINES_BELOW = 25
"""How far below its heading conda's list of packages that are not available is looked for."""
_LINES_OF_A_FILE = 300
"""The same for the list of a whole exported environment."""
_MOST_NAMED = 4


def package_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Packages that conda does not find: a file of another system or time as a whole, else each package for GPUs."""
    wanted = dict.fromkeys(_named(sightings)) | dict.fromkeys(_below(case, sightings))
    ours = [(name, version) for name, version in wanted if is_of_gpus(name) or name.startswith("cudatoolkit")]
    narrow = case.told("conda_narrow")
    if narrow is not None and ours:
        names = listed([name for name, _ in ours])
        yield Diagnosis((Cause("conda-32-bit", {"subdir": narrow, "package": names}),), sightings)
        return
    subdir = subdir_of(case)
    of_file = tuple(_of_file(case, sightings, subdir))
    if of_file:
        yield Diagnosis(of_file, sightings)
    causes = [_of_package(name, version, subdir) for name, version in ours]
    if of_file:
        causes = [it for it in causes if it.explanation not in _WHERE_TO_LOOK]
    elif subdir == Platform.LINUX_AARCH64.value and any(it.explanation in _WHERE_TO_LOOK for it in causes):
        yield Diagnosis((_on_arm(case, ours),), sightings)
        causes = [it for it in causes if it.explanation not in _WHERE_TO_LOOK]
    elif not ours and (first := _first(case, sightings)) is not None:
        causes = [Cause("conda-package-missing", {"package": first})]
    yield from (Diagnosis((cause,), sightings) for cause in causes)


_WHERE_TO_LOOK = ("conda-package-missing", "conda-cudatoolkit-missing", "conda-pytorch-cuda")
"""Explanations that name another channel, which has nothing for another system or time either."""


def subdir_of(case: Case) -> str | None:
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
    for value in _listed_below(case, sightings, "conda_wanted", _LINES_BELOW):
        name, *rest = re.split(r"\s*[=<>~!]{1,2}\s*", value, maxsplit=1)
        yield name.strip(), _plain(rest[0] if rest else "")


def _listed_below(case: Case, sightings: tuple[Sighting, ...], fact: str, lines: int) -> list[str]:
    """What a list under a heading tells of ``fact``."""
    headings = [it.number for it in sightings if not (it.get("package") or it.get("requested"))]
    clues = case.clues.get(fact, ())
    return [it.value for it in clues if any(start <= it.number <= start + lines for start in headings)]


def _first(case: Case, sightings: tuple[Sighting, ...]) -> str | None:
    """The first package of a list, where a project for GPUs asks for it."""
    first = next((it.get("first") for it in sightings if it.get("first")), None)
    return first if about_gpus(case) else None


def _plain(version: str) -> str:
    """``11.7`` of ``=11.7.*=h0``, ``11.7**`` and the like."""
    match = re.search(r"\d+(?:\.\d+)*", version)
    return match[0] if match else ""


# A whole environment file


_SYSTEMS = {
    "linux-64": "Linux",
    "linux-aarch64": "Linux on ARM",
    "win-64": "Windows",
    "osx-64": "macOS",
    "osx-arm64": "macOS on Apple silicon",
}
_OF_MACS = re.compile(r".*_osx-|python\.app|pyobjc")
_OF_WINDOWS = re.compile(
    r".*_win-|vs2015|vc(14_runtime)?$|ucrt|wincert|win_inet|pywin|(py)?winpty|m2w64|msys2", re.IGNORECASE
)


def _of_file(case: Case, sightings: tuple[Sighting, ...], subdir: str | None) -> Iterator[Cause]:
    """Why the packages of an exported environment are missing: made on another system, before 2018, or elsewhere."""
    names = list(dict.fromkeys(_listed_below(case, sightings, "conda_of_system", _LINES_OF_A_FILE)))
    system = _system_of(names) if names else None
    foreign = listed(names[:_MOST_NAMED])
    if system is not None and subdir != system:
        here = _SYSTEMS.get(subdir or "")
        fields = known(foreign=foreign, made_on=_SYSTEMS[system], here=here, subdir=subdir)
        yield Cause("conda-file-of-other-system", fields)
        if subdir is not None:
            return
    old = _listed_below(case, sightings, "conda_old_build", _LINES_OF_A_FILE)
    if old:
        package = re.sub(r"=+", "=", old[0]).rpartition("=")[0]
        yield Cause("conda-free-channel", {"old_builds": listed(old[:_MOST_NAMED]), "old_package": package})
    elif system is not None:
        yield Cause("conda-exact-builds", known(foreign=foreign, subdir=subdir))


def _system_of(names: Sequence[str]) -> str:
    """The platform for which conda has these packages alone."""
    suffix = next((match[0] for name in names if (match := re.search(r"(?:linux|osx|win)-\w+$", name))), None)
    if suffix in _SYSTEMS:
        return suffix
    if any(_OF_MACS.match(name) for name in names):
        return "osx-64"
    return "win-64" if any(_OF_WINDOWS.match(name) for name in names) else "linux-64"


def _on_arm(case: Case, wanted: Sequence[tuple[str, str]]) -> Cause:
    """Packages that were built for x86_64 in the version that is asked, and the first PyTorch with CUDA for ARM."""
    releases = case.knowledge.all_releases("pytorch", Platform.LINUX_AARCH64)
    first = min((it.version for it in releases if it.source is Source.CONDA_FORGE and it.cuda), default=None)
    names = listed([name for name, _ in wanted])
    asked = listed([" ".join(filter(None, it)) for it in wanted])
    fields = known(packages=names, package=wanted[0][0], asked=asked, arm_torch=None if first is None else str(first))
    return Cause("conda-missing-on-arm", fields, Remedy(frameworks=("pytorch",)) if "pytorch" in names else None)


# One package


_NOT_ON_WINDOWS = (
    (
        re.compile(r"cudatoolkit-dev"),
        (
            "conda-forge's cudatoolkit-dev only fetches NVIDIA's installer, and many of its versions, 11.3.1 among "
            "them, exist for Linux alone."
        ),
        (
            "Install NVIDIA's CUDA Toolkit {version} for Windows, or take its parts from NVIDIA's channel (for 11.3.1: "
            "conda install -c nvidia/label/cuda-11.3.1 cuda), and delete cudatoolkit-dev from the file."
        ),
    ),
    (
        re.compile(r"cudf[\w-]*|cuml|cugraph|cuspatial|rapids[\w-]*|dask-cud[\w-]*"),
        "RAPIDS is built for Linux alone.",
        "On Windows RAPIDS runs in WSL2 only.",
    ),
)
"""Packages for Linux alone, why, and what to do in their place (their recipes, RAPIDS' installation guide)."""


def _of_package(name: str, version: str, subdir: str | None) -> Cause:
    release = parsed_version(version)
    short = ".".join(version.split(".")[:2])
    fields = known(package=name, wanted_version=short if name != "pytorch" else version, index=short.replace(".", ""))
    if subdir in ("osx-64", "osx-arm64") and re.match(r"cuda|cudnn|nccl|pytorch-cuda|nvidia", name):
        return Cause("conda-no-cuda-for-platform", {**fields, "subdir": subdir, "platform_name": "macOS"})
    if subdir == Platform.WIN_64.value and (missing := _not_on_windows(name, version)) is not None:
        return missing
    if name == "cudatoolkit" and release is not None:
        return Cause(_of_cudatoolkit(release), fields)
    if name == "pytorch-cuda" and release is not None and short not in PYTORCH_CUDA:
        return Cause("conda-pytorch-cuda-never", fields, Remedy(frameworks=("pytorch",)))
    if name == "pytorch" and release is not None and release > _LAST_PYTORCH:
        return Cause("conda-pytorch-channel-ended", fields, Remedy(frameworks=(f"pytorch=={version}.*",)))
    return Cause("conda-package-missing", fields)


def _not_on_windows(name: str, version: str) -> Cause | None:
    for pattern, why, instead in _NOT_ON_WINDOWS:
        if pattern.fullmatch(name):
            words = instead.format(version=version).replace("  ", " ")
            told = version and f" {version}"
            fields = known(package=name, version_words=told, why_not_windows=why, instead_on_windows=words)
            return Cause("conda-not-on-windows", fields)
    return None


def of_pytorch_cuda(subdir: str | None) -> Cause:
    """The metapackage pytorch-cuda, whatever its version."""
    return _of_package("pytorch-cuda", "", subdir)


def _of_cudatoolkit(release: Version) -> str:
    if Version(".".join(map(str, release.release[:2]))) > _LAST_CUDATOOLKIT:
        return "conda-cudatoolkit-ended"
    if release >= _FIRST_PYTORCH_CUDA:
        return "conda-pytorch-cuda"
    return "conda-cudatoolkit-old" if release < _OLDEST_KEPT else "conda-cudatoolkit-missing"
