"""Facts on conda, mamba, micromamba and pixi: what is in no channel, which system a file is of, who excludes whom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.shared.gpu_packages import about_gpus, is_of_gpus
from envsolve.model.versions import CudaVersion, parsed_cuda, parsed_version

_LAST_PYTORCH = Version("2.5.1")
_LINES_BELOW = 25
"""How far below its heading conda's list of packages that are not available is looked for."""
_LINES_OF_A_FILE = 300
"""The same for the list of a whole exported environment."""
_MOST_NAMED = 4

# ---------------------------------------------------------------------------------------------- missing packages


class _Wanted(NamedTuple):
    """A package that conda does not find, with the plain version, ``""`` without one."""

    name: str
    version: str


def _missing(case: Case) -> tuple[_Wanted, ...]:
    """The packages for GPUs among those that are missing: in the lines themselves, and in the list that follows."""
    lines = case.of("conda-package-missing")
    every = dict.fromkeys((*_named(lines), *_below(case, lines)))
    return tuple(it for it in every if is_of_gpus(it.name) or it.name.startswith("cudatoolkit"))


def _named(lines: Lines) -> Iterator[_Wanted]:
    """Packages in the lines; each that others need, of which solvers list many versions, once."""
    seen: set[str] = set()
    for it in lines:
        name = it.get("package") or it.get("requested")
        if name and not (it.get("needed") and name in seen):
            seen.add(name)
            yield _Wanted(name, _plain(it.get("version") or it.get("requested_version") or ""))


def _below(case: Case, lines: Lines) -> Iterator[_Wanted]:
    """Packages in the list that follows a heading."""
    for value in _listed_below(case, lines, "conda_wanted", _LINES_BELOW):
        name, *rest = re.split(r"\s*[=<>~!]{1,2}\s*", value, maxsplit=1)
        yield _Wanted(name.strip(), _plain(rest[0] if rest else ""))


def _listed_below(case: Case, lines: Lines, fact: str, count: int) -> list[str]:
    headings = [it.number for it in lines if not (it.get("package") or it.get("requested"))]
    return [
        it.value for it in case.clues.get(fact, ()) if any(start <= it.number <= start + count for start in headings)
    ]


def _plain(version: str) -> str:
    """``11.7`` of ``=11.7.*=h0``, ``11.7**`` and the like."""
    match = re.search(r"\d+(?:\.\d+)*", version)
    return match[0] if match else ""


def missing_in_conda(case: Case, _lines: Lines) -> _Wanted | None:
    """The missing package that says most: CUDA's own, a PyTorch that its channel never had, the first."""
    every = _missing(case)
    ranks = (
        [it for it in every if it.name.startswith(("cudatoolkit", "pytorch-cuda")) and it.version],
        [it for it in every if it.name == "pytorch" and (parsed_version(it.version) or _LAST_PYTORCH) > _LAST_PYTORCH],
        every,
    )
    return next((found[0] for found in ranks if found), None)


def conda_package(case: Case, _lines: Lines) -> str | None:
    """The package that is missing; in a project for GPUs any package counts."""
    wanted = missing_in_conda(case, ())
    first = next((it.get("first") for it in case.of("conda-package-missing") if it.get("first")), None)
    return wanted.name if wanted is not None else first if about_gpus(case) else None


def conda_packages(case: Case, lines: Lines) -> tuple[str, ...]:
    """All missing packages for GPUs, with their versions."""
    named = tuple(" ".join(filter(None, it)) for it in _missing(case))
    return named or tuple(filter(None, (conda_package(case, lines),)))


def conda_cuda(case: Case, _lines: Lines) -> CudaVersion | None:
    """The CUDA of cudatoolkit or pytorch-cuda that is requested."""
    wanted = missing_in_conda(case, ())
    if wanted is None or wanted.name not in ("cudatoolkit", "pytorch-cuda"):
        return None
    return parsed_cuda(wanted.version)


def pip_folder(case: Case, _lines: Lines) -> str | None:
    """The folder of PyTorch's index for that CUDA: cu117."""
    wanted = missing_in_conda(case, ())
    numbers = [] if wanted is None else wanted.version.split(".")
    return f"cu{numbers[0]}{numbers[1]}" if len(numbers) > 1 else None


def pytorch_channel_ended(case: Case, _lines: Lines) -> bool:
    """Whether a PyTorch is missing that came after the last one of its own channel."""
    wanted = missing_in_conda(case, ())
    version = None if wanted is None or wanted.name != "pytorch" else parsed_version(wanted.version)
    return version is not None and version > _LAST_PYTORCH


def missing_is_said(case: Case, _lines: Lines) -> bool:
    """Whether a package that is in no channel explains the failure.

    What others need, solvers list by the dozen: such a one counts only if it is for GPUs and no need decides.
    """
    lines = case.of("conda-package-missing")
    only_needed = bool(lines) and all(it.get("needed") for it in lines)
    return bool(lines) and not (only_needed and (_decision(case) is not None or conda_package(case, lines) is None))


# ---------------------------------------------------------------------------------------------- systems and files


def made_for(case: Case, _lines: Lines) -> str | None:
    """The platform of an exported environment file: the one that conda has some of its packages for alone."""
    names = _of_one_system(case)
    suffix = next((match[0] for name in names if (match := re.search(r"(?:linux|osx|win)-\w+$", name))), None)
    if not names or suffix is not None:
        return suffix
    if any(_OF_MACS.match(name) for name in names):
        return "osx-64"
    return "win-64" if any(_OF_WINDOWS.match(name) for name in names) else "linux-64"


_OF_MACS = re.compile(r".*_osx-|python\.app|pyobjc")
_OF_WINDOWS = re.compile(
    r".*_win-|vs2015|vc(14_runtime)?$|ucrt|wincert|win_inet|pywin|(py)?winpty|m2w64|msys2", re.IGNORECASE
)


def _of_one_system(case: Case) -> list[str]:
    """The missing packages that conda has for one system alone."""
    lines = case.of("conda-package-missing")
    return list(dict.fromkeys(_listed_below(case, lines, "conda_of_system", _LINES_OF_A_FILE)))


def foreign_packages(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The packages that show where the file was made."""
    return tuple(_of_one_system(case)[:_MOST_NAMED])


def old_builds(case: Case, _lines: Lines) -> tuple[str, ...]:
    """Missing builds of before September 2017, without a hash in the build string."""
    lines = case.of("conda-package-missing")
    return tuple(_listed_below(case, lines, "conda_old_build", _LINES_OF_A_FILE)[:_MOST_NAMED])


def old_package(case: Case, lines: Lines) -> str | None:
    """The first of them without its build string."""
    builds = old_builds(case, lines)
    return re.sub(r"=+", "=", builds[0]).rpartition("=")[0] if builds else None


# ---------------------------------------------------------------------------------------------- what excludes what

_NAME = r"[a-z][\w.-]*"
_NEED = re.compile(
    rf"(?P<who>{_NAME})(?: (?P<release>\S+)(?: \| \S+)*)? (?:would require|is not installable because it requires) "
    rf"(?P<name>{_NAME}) (?P<versions>\S+)|"
    rf"(?P<old_who>{_NAME})=+(?P<old_release>\S+) -> (?P<old_name>{_NAME})\[version='(?P<old_versions>[^']+)'"
)
_REQUEST = re.compile(rf"(?P<name>{_NAME})(?P<versions> ?[=<>~!]{{0,2}}\d\S*)")


class _Versions(NamedTuple):
    """Versions of a package as a solver prints them; any of ``allowed`` serves."""

    name: str
    allowed: tuple[SpecifierSet, ...]
    text: str

    def excludes(self, other: _Versions) -> bool:
        """Whether no version is allowed by both."""
        both = [one & it for one in self.allowed for it in other.allowed]
        return bool(both) and self.name == other.name and all(it.is_unsatisfiable() for it in both)


class _Need(NamedTuple):
    """What a release needs, as the tree of a solver says."""

    who: str
    release: str
    needed: _Versions


def _versions(name: str, text: str) -> _Versions:
    found = tuple(it for part in text.strip(" ,").split("|") if (it := _specifier(part)) is not None)
    return _Versions(name, found, f"{name} {text.strip(' ,')}")


def _specifier(text: str) -> SpecifierSet | None:
    """``1.10**``, ``11.7.*``, ``=10.0`` (all that begin so), ``1.9.0`` (only that) or a range."""
    plain = text.strip()
    if re.fullmatch(r"=?\d[\w.]*\.?\*{1,2}|=\d[\w.]*", plain):
        plain = f"=={plain.strip('=*.')}.*"
    elif plain[:1].isdigit():
        plain = f"=={plain}"
    try:
        return SpecifierSet(plain)
    except ValueError:
        return None


def _decision(case: Case) -> tuple[_Need, _Versions] | None:
    """The need that decides, with the request that it excludes.

    What a tree says of packages that can be installed decides nothing: only needs after the first package count that
    is not installable.
    """
    refused = min((it.number for it in case.clues.get("conda_refused", ())), default=0)
    requests = [
        _versions(match["name"], match["versions"])
        for text in case.every("conda_requested")
        if (match := _REQUEST.match(text)) is not None
    ]
    for clue in case.clues.get("conda_needs", ()):
        match = _NEED.search(re.sub(r"[\s│├└─]+", " ", clue.value))
        if match is None or clue.number < refused:
            continue
        versions = _versions(match["name"] or match["old_name"], match["versions"] or match["old_versions"])
        need = _Need(match["who"] or match["old_who"], match["release"] or match["old_release"] or "", versions)
        asked = next((it for it in requests if need.who != it.name and versions.excludes(it)), None)
        if asked is not None:
            return need, asked
    return None


class _TreeConflict(NamedTuple):
    """Whose need decides, torchvision 0.10.0; what it is, pytorch 1.9.0; and what is requested, pytorch 1.10**."""

    who: str
    need: str
    asked: str


def tree_conflict(case: Case, _lines: Lines) -> _TreeConflict | None:
    """The need that excludes a request, by the tree of the solver."""
    found = _decision(case)
    if found is None:
        return None
    need, asked = found
    return _TreeConflict(f"{need.who} {need.release}".strip(), need.needed.text, asked.text)


def tree_companion(case: Case, _lines: Lines) -> str | None:
    """The companion for the PyTorch that is requested: torchvision 0.11.1."""
    found = _decision(case)
    if found is None or found[1].name != "pytorch":
        return None
    need, asked = found
    releases = case.knowledge.releases("pytorch", re.sub(r"^\D+|\.?\*.*", "", asked.text), case.platform)
    newest = max(releases, key=lambda it: it.version, default=None)
    version = dict(newest.companions).get(need.who) if newest is not None else None
    return version and f"{need.who} {version.removeprefix('==')}"


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
_WANTS_CUDA = re.compile(
    r"(?P<name>pytorch|torchvision|torchaudio)[- ](?P<release>\d+\.\d+)\S* (?:requires|would require)"
)
_ASKED_CUDA = re.compile(r"pytorch-cuda ?[=*]*(?P<cuda>\d+\.\d+)")


class _PytorchCuda(NamedTuple):
    """A release of PyTorch and a pytorch-cuda that it was not built for."""

    torch: str
    asked: str

    def __str__(self) -> str:
        return self.torch

    @property
    def cudas(self) -> tuple[str, ...]:
        """The pytorch-cuda that it was built for."""
        return _TORCH_CUDAS[self.torch]

    @property
    def newest(self) -> str:
        """The newest of them."""
        return self.cudas[-1]

    @property
    def others(self) -> tuple[str, ...]:
        """The releases of PyTorch that were built for the pytorch-cuda that is requested."""
        return tuple(torch for torch, cudas in _TORCH_CUDAS.items() if self.asked in cudas)


def conda_torch(case: Case, _lines: Lines) -> _PytorchCuda | None:
    """A release of PyTorch that was not built for the pytorch-cuda that is requested: 2.3."""
    texts = case.every("conda_excludes")
    wants = next(filter(None, map(_WANTS_CUDA.match, texts)), None)
    asked = next(filter(None, map(_ASKED_CUDA.match, (*texts, *case.every("conda_command_cuda")))), None)
    if wants is None or asked is None:
        return None
    release = wants["release"].replace("0.13", "1.13") if wants["name"] == "torchaudio" else wants["release"]
    torch = _TORCH_OF.get(release, release) if wants["name"] == "torchvision" else release
    return (
        _PytorchCuda(torch, asked["cuda"]) if asked["cuda"] not in _TORCH_CUDAS.get(torch, (asked["cuda"],)) else None
    )


def conda_excludes(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The lines of a solver's tree that decide, shortened."""
    return tuple(re.sub(r"[\s│├└─]+", " ", it).strip(" ,") for it in case.every("conda_excludes"))[:_MOST_NAMED]


def conda_names_gpus(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The frameworks and parts of CUDA that the text names."""
    return tuple(dict.fromkeys(map(str.lower, case.every("gpu_name"))))[:6]
