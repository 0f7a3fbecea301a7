"""Facts on installers: what was requested of pip, uv or Poetry, which wheels there are of it, and who excludes whom.

pip lists only versions that have a wheel for the Python it runs with: torch from 2.2.0 on is Python 3.12, TensorFlow up
to 2.11.0 is Python 3.7. So its list shows the interpreter. What was ever published only the matrix knows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.facts.companions import companions_of
from envsolve.diagnose.facts.named import is_of_gpus
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.release import Release, Source
from envsolve.model.versions import parsed_version

Lines = tuple[Sighting, ...]

_FRAMEWORK_OF = {
    "torch": "pytorch",
    "torchvision": "pytorch",
    "torchaudio": "pytorch",
    "tensorflow": "tensorflow",
    "tensorflow-gpu": "tensorflow",
    "tensorflow-cpu": "tensorflow",
    "jax": "jax",
    "jaxlib": "jax",
    "onnxruntime": "onnxruntime",
    "onnxruntime-gpu": "onnxruntime",
    "paddlepaddle": "paddlepaddle",
    "paddlepaddle-gpu": "paddlepaddle",
}
"""The framework of the matrix whose wheels a package is, or goes with."""
_COMPANIONS = ("torchvision", "torchaudio")
_OF_CUDA = re.compile(
    r"(?:onnxruntime|tensorflow|paddlepaddle)-gpu|cupy-cuda\w+|jax-cuda1\d-\w+|nvidia-(?!ml-py|pyindex).+|.+-cu1\d"
)
"""Packages that hold code for CUDA in every wheel."""
_CUDA_BUILD = re.compile(r"cu\d{2,3}")
_PLACEHOLDER = Version("0.0.0")
_FIRST_TORCH = Version("0.4")
"""What is older on the index are placeholders without a wheel."""
_WITHOUT_VERSION = ("no-matching-distribution", "placeholder-package")
"""Symptoms whose lines may leave out the version, which the text names elsewhere."""
_LAST_INTEL_MAC = Version("2.2.2")
_LAST_TENSORFLOW_GPU = {Platform.WIN_64: Version("2.10.1")}
_LAST_ON_LINUX = Version("2.11")
_SYSTEMS = {
    Platform.LINUX_64: "Linux on x86_64",
    Platform.LINUX_AARCH64: "Linux on ARM (aarch64)",
    Platform.WIN_64: "Windows",
    Platform.OSX_64: "macOS on Intel (x86_64)",
    Platform.OSX_ARM64: "macOS on Apple silicon",
}


class _Asked(NamedTuple):
    """A package that was requested of an installer: the pinned version with its local part, and the versions it found.

    ``listed`` is None without a list, and empty for ``none``.
    """

    package: str
    version: Version | None
    listed: tuple[Version, ...] | None

    @property
    def framework(self) -> str | None:
        """The framework of the matrix that it belongs to."""
        return _FRAMEWORK_OF.get(self.package)


def _asked_for(package: str, specifier: str, versions: str | None) -> _Asked:
    """What a line of an installer names. Placeholders, such as 0.0.0.dev0, are no versions."""
    specifiers = _specifiers(specifier)
    pinned = next((it.version for it in specifiers if it.operator in ("==", "===")), None)
    pinned = pinned or next((it.version.rpartition(".")[0] for it in specifiers if it.operator == "~="), None)
    listed = None
    if versions is not None:
        found = (parsed_version(text.strip()) for text in versions.split(","))
        first = _FIRST_TORCH if normalized(package) == "torch" else _PLACEHOLDER
        listed = tuple(it for it in found if it is not None and it.release > _PLACEHOLDER.release and it >= first)
    return _Asked(normalized(package), parsed_version(pinned.removesuffix(".*")) if pinned else None, listed)


def _specifiers(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text.replace(" ", "").strip(","))
    except ValueError:
        return SpecifierSet()


def _asked(case: Case, lines: Lines) -> _Asked:
    """What the lines request, by the one with a list of versions."""
    line = next((it for it in lines if it.get("versions") is not None), lines[0])
    version = line.get("pinned") or line.get("version") or line.get("lost_version")
    specifier = line.get("specifier") or (f"=={version}" if version else "")
    asked = _asked_for(asked_package(case, lines) or "", specifier, line.get("versions"))
    known = case.version_of(asked.framework) if asked.framework is not None else None
    if asked.version is None and not asked.listed and known is not None and line.symptom in _WITHOUT_VERSION:
        return asked._replace(version=parsed_version(known.partition("+")[0]))
    return asked


# ---------------------------------------------------------------------------------------------- what was requested


def asked_package(_case: Case, lines: Lines) -> str | None:
    """The package that a line of an installer is about, by its normalized name."""
    fields = merged(lines)
    if lines[0].symptom == "placeholder-package" and fields.get("package", "pytorch") == "pytorch":
        return "torch"
    names = (fields.get(it) for it in ("package", "listed", "absent", "conda_package", "lost"))
    name = next(filter(None, names), None) or fields.get("file", "").split("-")[0]
    return normalized(name) if name else None


def asked_of_gpus(case: Case, lines: Lines) -> bool:
    """Whether it is built for CUDA, or belongs to what is."""
    return is_of_gpus(asked_package(case, lines) or "")


def for_cuda(case: Case, lines: Lines) -> bool:
    """Whether every wheel of it is one for CUDA."""
    return _is_for_cuda(asked_package(case, lines) or "")


def _is_for_cuda(package: str) -> bool:
    """Whether every wheel of ``package`` is one for CUDA."""
    return _OF_CUDA.fullmatch(package) is not None


def asked_framework(case: Case, lines: Lines) -> str | None:
    """The framework that it is, or goes with."""
    return _asked(case, lines).framework


def asked_version(case: Case, lines: Lines) -> Version | None:
    """The version that was requested, local part included: 2.4.1+cu121."""
    return _asked(case, lines).version


def asked_requirement(case: Case, lines: Lines) -> str | None:
    """The same as a requirement for envsolve, if the package is the framework itself."""
    asked = _asked(case, lines)
    own = asked.package in ("torch", "tensorflow", "jax")
    return f"{asked.framework}=={asked.version.public}" if own and asked.version is not None else None


# ---------------------------------------------------------------------------------------------- pip's list of versions


def lists_none(case: Case, lines: Lines) -> bool:
    """Whether pip's list of versions is there and empty."""
    return _asked(case, lines).listed == ()


def listed_lowest(case: Case, lines: Lines) -> str | None:
    """The oldest version in pip's list."""
    listed = _asked(case, lines).listed
    return listed[0].public if listed else None


def listed_highest(case: Case, lines: Lines) -> str | None:
    """The newest version in pip's list."""
    listed = _asked(case, lines).listed
    return listed[-1].public if listed else None


def lists_builds(case: Case, lines: Lines) -> bool:
    """Whether versions in pip's list name builds, as PyTorch's own index does."""
    return any(it.local for it in _asked(case, lines).listed or ())


def lists_version(case: Case, lines: Lines) -> bool:
    """Whether pip's list has the version that was requested, in whatever build."""
    asked = _asked(case, lines)
    return asked.version is not None and any(it.public == asked.version.public for it in asked.listed or ())


def listed_builds(case: Case, lines: Lines) -> tuple[str, ...]:
    """The builds of that version in pip's list."""
    asked = _asked(case, lines)
    same = (it for it in asked.listed or () if asked.version is not None and it.public == asked.version.public)
    return tuple(dict.fromkeys(it.local for it in same if it.local))


# ---------------------------------------------------------------------------------------------- builds of PyTorch


def published_builds(case: Case, lines: Lines) -> tuple[str, ...]:
    """The builds of the version on PyTorch's index, on whatever platform."""
    asked = _asked(case, lines)
    every = (it for platform in Platform for it in _wheels_of(case, asked, platform))
    return tuple(sorted({it.build for it in every if it.source is Source.PYTORCH}))


def asked_build(case: Case, lines: Lines) -> str | None:
    """The build that was requested: by the version's local part, or by a folder of the index without such a version."""
    asked = _asked(case, lines)
    if asked.framework != "pytorch" or asked.version is None:
        return None
    folder = None if asked.listed else case.clue("pytorch_index")
    return asked.version.local or (folder if folder and _CUDA_BUILD.fullmatch(folder) else None)


def build_exists(case: Case, lines: Lines) -> bool:
    """Whether PyTorch has published that build."""
    return asked_build(case, lines) in published_builds(case, lines)


def cuda_asked(case: Case, lines: Lines) -> bool:
    """Whether it is a build for CUDA."""
    return _CUDA_BUILD.fullmatch(asked_build(case, lines) or "") is not None


def never_built(case: Case, lines: Lines) -> bool:
    """Whether the matrix knows the builds of the version, and has none for that CUDA."""
    builds, wanted = published_builds(case, lines), asked_build(case, lines)
    return bool(builds) and cuda_asked(case, lines) and wanted not in builds


def nearest_build(case: Case, lines: Lines) -> str:
    """The build of the version for the nearest CUDA."""
    cuda = [it for it in published_builds(case, lines) if _CUDA_BUILD.fullmatch(it)]
    wanted = int((asked_build(case, lines) or "cu0")[2:])
    return min(cuda, key=lambda it: abs(int(it[2:]) - wanted), default="cpu")


def build_releases(case: Case, lines: Lines) -> str | None:
    """The releases of PyTorch that were built so: 2.1.0 to 2.5.1."""
    wanted = asked_build(case, lines)
    every = case.knowledge.all_releases("pytorch")
    having = sorted({it.version for it in every if it.source is Source.PYTORCH and it.build == wanted})
    return _span([str(it) for it in having])


# ---------------------------------------------------------------------------------------------- wheels


def _wheels_of(case: Case, asked: _Asked, platform: Platform | None = None) -> tuple[Release, ...]:
    """The wheels in the matrix of the version that is requested; those that a companion goes with."""
    if asked.framework is None or asked.version is None:
        return ()
    releases = case.knowledge.all_releases(asked.framework, platform or case.platform)
    every = [it for it in releases if it.source.is_wheel and _is_of(asked.package, it)]
    wanted = asked.version.release
    if asked.package in _COMPANIONS:
        return tuple(it for it in every if _goes_with(it, asked.package, Version(asked.version.public)))
    return tuple(it for it in every if it.version.release[: len(wanted)] == wanted)


def _is_of(package: str, release: Release) -> bool:
    """Whether a wheel of the framework counts for ``package``: one for the CPU does not for a package for CUDA."""
    return release.cuda is not None or not _is_for_cuda(package)


def _goes_with(release: Release, companion: str, version: Version) -> bool:
    return any(name == companion and SpecifierSet(text).contains(version) for name, text in release.companions)


def _pythons_of(releases: Iterable[Release]) -> tuple[str, ...]:
    """The Pythons that some of these wheels is for, in order; abi3 wheels are for newer ones as well."""
    return tuple(sorted({python for it in releases for python in it.pythons}, key=Version))


def _span(versions: Sequence[str]) -> str | None:
    """``3.7 to 3.11``, or the only one."""
    if not versions:
        return None
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"


def wheel_pythons(case: Case, lines: Lines) -> str | None:
    """The Pythons that the version has wheels for, on the platform of the case."""
    return _span(_pythons_of(_wheels_of(case, _asked(case, lines))))


def newest_pythons(case: Case, lines: Lines) -> str | None:
    """The Pythons that the newest release of the package on pip's index has wheels for."""
    return _span(_newest_pythons(case, asked_package(case, lines) or ""))


def _newest_pythons(case: Case, package: str) -> tuple[str, ...]:
    every = case.knowledge.all_releases(_FRAMEWORK_OF.get(package, ""), case.platform)
    wheels = [it for it in every if it.source is Source.PYPI and _is_of(package, it)]
    newest = max((it.version for it in wheels), default=None)
    return _pythons_of([it for it in wheels if it.version == newest])


def best_python(case: Case, lines: Lines) -> str | None:
    """The newest Python with a wheel of the version, or of the newest release."""
    asked = _asked(case, lines)
    found = _pythons_of(_wheels_of(case, asked)) or _newest_pythons(case, asked.package)
    return found[-1] if found else None


def usual_python(case: Case, lines: Lines) -> str | None:
    """A Python with a wheel of the version, before the newest one: that is most often the one that has none."""
    found = _pythons_of(_wheels_of(case, _asked(case, lines)))
    return found[-2] if len(found) > 1 else None


def interpreter(case: Case, _lines: Lines = ()) -> str | None:
    """The Python that runs, ``3.12`` of ``3.12.4``; tags of wheels (``310``) are of files and say nothing of it."""
    python = case.given.python or next((it for it in case.every("python") if "." in it), None)
    return None if python is None else ".".join(python.split(".")[:2])


def other_interpreter(case: Case, lines: Lines) -> str | None:
    """The same, unless the version has wheels for it."""
    python = interpreter(case)
    return None if python in _pythons_of(_wheels_of(case, _asked(case, lines))) else python


def listed_python(case: Case, lines: Lines) -> str | None:
    """The Python that pip's list of versions is of, if it is of one alone."""
    shown = _inferred_pythons(case, _asked(case, lines))
    return shown[0] if len(shown) == 1 else None


def _inferred_pythons(case: Case, asked: _Asked) -> tuple[str, ...]:
    """The Pythons for which pip's list would begin and end as it does: the oldest release it knows is their oldest."""
    public = sorted({Version(it.base_version) for it in asked.listed or () if not it.is_prerelease})
    if asked.framework is None or asked.package not in (asked.framework, "torch", "tensorflow-gpu") or not public:
        return ()
    return tuple(
        python
        for python, versions in _versions_by_python(case, asked).items()
        if versions[0] == public[0] and public[-1] in (*versions, versions[-1])
    )


def _versions_by_python(case: Case, asked: _Asked) -> Mapping[str, list[Version]]:
    """The releases on pip's index of what is requested, or of its framework, for each Python, in order."""
    found: dict[str, set[Version]] = defaultdict(set)
    for release in case.knowledge.all_releases(asked.framework or "", case.platform):
        if release.source in (Source.PYPI, Source.PYTORCH) and _is_of(asked.package, release):
            for python in release.pythons:
                found[python].add(release.version)
    return {python: sorted(found[python]) for python in sorted(found, key=Version)}


class _Beside(NamedTuple):
    """A Python next to those of a version, and the oldest and newest releases that pip has for it."""

    python: str
    oldest: Version
    newest: Version

    def __str__(self) -> str:
        return self.python


def _beside(case: Case, asked: _Asked, step: int) -> _Beside | None:
    table = _versions_by_python(case, asked)
    order, pythons = list(table), _pythons_of(_wheels_of(case, asked))
    if not pythons or pythons[0] not in order or pythons[-1] not in order:
        return None
    place = order.index(pythons[0] if step < 0 else pythons[-1]) + step
    if not 0 <= place < len(order):
        return None
    return _Beside(order[place], table[order[place]][0], table[order[place]][-1])


def older_python(case: Case, lines: Lines) -> _Beside | None:
    """The Python below those of the version."""
    return _beside(case, _asked(case, lines), -1)


def newer_python(case: Case, lines: Lines) -> _Beside | None:
    """The Python above those of the version."""
    return _beside(case, _asked(case, lines), 1)


# ---------------------------------------------------------------------------------------------- versions and systems


def unreleased(case: Case, lines: Lines) -> bool:
    """Whether a version that the matrix does not have lies among those that it has: it was never released."""
    asked = _asked(case, lines)
    if asked.package not in ("torch", "tensorflow") or asked.version is None:
        return False
    versions = {it.version for it in case.knowledge.all_releases(asked.framework or "")}
    version = Version(asked.version.public)
    return bool(versions) and version not in versions and min(versions) < version < max(versions)


def _around(case: Case, lines: Lines) -> tuple[list[Version], list[Version]]:
    asked = _asked(case, lines)
    versions = sorted({it.version for it in case.knowledge.all_releases(asked.framework or "") if it.source.is_wheel})
    if asked.version is None:
        return [], []
    version = asked.version
    return [it for it in versions if it < version][-2:], [it for it in versions if it > version][:2]


def releases_around(case: Case, lines: Lines) -> tuple[str, ...]:
    """The releases next to the version."""
    below, above = _around(case, lines)
    return tuple(map(str, (*below, *above)))


def release_below(case: Case, lines: Lines) -> str | None:
    """The release next to the version, an older one if there is any."""
    below, above = _around(case, lines)
    return next((str(it) for it in (*below[::-1], *above)), None)


def mac_list(case: Case, lines: Lines) -> bool:
    """Whether a list of torch ends with the last release for macOS on Intel, as no Python's list elsewhere does.

    When that was the newest release every list ended with it, but then the version that is requested is no newer one.
    """
    asked = _asked(case, lines)
    if asked.package != "torch" or not asked.listed or asked.listed[-1] != _LAST_INTEL_MAC:
        return False
    newer = asked.version is not None and asked.version > _LAST_INTEL_MAC
    return case.platform in (None, Platform.OSX_64) and (newer or not _inferred_pythons(case, asked))


def other_systems(case: Case, lines: Lines) -> tuple[str, ...]:
    """The systems that have wheels of the version, if the one of the case has none."""
    asked = _asked(case, lines)
    if _wheels_of(case, asked):
        return ()
    return tuple(name for platform, name in _SYSTEMS.items() if _wheels_of(case, asked, platform))


def this_system(case: Case, _lines: Lines) -> str | None:
    """The system of the case in words."""
    return None if case.platform is None else _SYSTEMS[case.platform]


def newest_here(case: Case, lines: Lines) -> str | None:
    """The newest release of the framework itself with a wheel for the platform."""
    asked = _asked(case, lines)
    every = case.knowledge.all_releases(asked.framework or "", case.platform or Platform.LINUX_64)
    own = [it.version for it in every if it.source.is_wheel]
    return str(max(own)) if own and asked.package in (asked.framework, "torch") else None


def arm_release(case: Case, lines: Lines) -> Release | None:
    """The first release of a package for CUDA with a wheel for ARM on pip's index, if the requested one has none."""
    package = asked_package(case, lines) or ""
    every = case.knowledge.all_releases(_FRAMEWORK_OF.get(package, ""), Platform.LINUX_AARCH64)
    having = (it for it in every if it.source is Source.PYPI and it.package == package)
    missing = _is_for_cuda(package) and not case.jetson and not _wheels_of(case, _asked(case, lines))
    return min(having, key=lambda it: it.version, default=None) if missing else None


def tensorflow_gpu_gone(case: Case, lines: Lines) -> bool:
    """Whether it is a tensorflow-gpu after the last one that had code."""
    asked = _asked(case, lines)
    last = _LAST_TENSORFLOW_GPU.get(case.platform or Platform.LINUX_64, _LAST_ON_LINUX)
    return asked.package == "tensorflow-gpu" and asked.version is not None and asked.version > last


# ---------------------------------------------------------------------------------------------- the tags of a wheel


_TAG = re.compile(r"-(?P<python>(?:cp|py|pp)\d+(?:\.(?:cp|py)\d+)*)-(?P<abi>[\w.]+)-(?P<platform>[\w.]+)\.whl$")
_UNICODE = {"cp26m": "narrow", "cp27m": "narrow", "cp26mu": "wide", "cp27mu": "wide"}
"""The ABIs of Python 2: m has 2 bytes for a character, mu 4 (PEP 513)."""


def _tags(lines: Lines) -> re.Match[str] | None:
    return _TAG.search(merged(lines).get("file", ""))


def wheel_tag(_case: Case, lines: Lines) -> str | None:
    """The Python tag of a wheel: cp310."""
    match = _tags(lines)
    return None if match is None else match["python"]


def wheel_python(case: Case, lines: Lines) -> str | None:
    """The only Python that it is for; of a package, the newest that has a wheel of it."""
    tag = wheel_tag(case, lines)
    if tag is not None:
        return f"{tag[2]}.{tag[3:]}" if re.fullmatch(r"cp\d{2,3}", tag) else None
    pythons = _pythons_of(_wheels_of(case, _asked(case, lines)))
    return pythons[-1] if pythons else None


def wheel_system(_case: Case, lines: Lines) -> str | None:
    """The platform of a wheel: Linux on x86_64."""
    match = _tags(lines)
    if match is None:
        return None
    words = (
        ("macosx", "macOS"),
        ("win_amd64", "Windows on x86_64"),
        ("win32", "32-bit Windows"),
        ("aarch64", "Linux on ARM (aarch64)"),
        ("x86_64", "Linux on x86_64"),
    )
    return next((name for part, name in words if part in match["platform"]), match["platform"])


def wheel_is_foreign(case: Case, lines: Lines) -> bool:
    """Whether it is not for the system that the text shows, beyond the name of the wheel itself."""
    match, platform, file = _tags(lines), case.platform, merged(lines).get("file", "")
    facts = ("platform", "macos", "windows", "linux", "aarch64", "wsl")
    beside = any(file not in it.line for fact in facts for it in case.clues.get(fact, ()))
    if match is None or platform is None or match["platform"] == "any" or not (_is_given(case) or beside):
        return False
    tag = match["platform"]
    system = "win" if tag.startswith("win") else "osx" if tag.startswith("macosx") else "linux"
    return not platform.value.startswith(system) or ("aarch64" in tag) != (platform is Platform.LINUX_AARCH64)


def _is_given(case: Case) -> bool:
    return case.given.platform is not None or case.given.host is not None


def unicode_width(_case: Case, lines: Lines) -> str | None:
    """How wide a Python 2 has to be for a wheel for Linux: narrow or wide."""
    match = _tags(lines)
    return None if match is None or "linux" not in match["platform"] else _UNICODE.get(match["abi"])


def wheel_abi(_case: Case, lines: Lines) -> str | None:
    """The ABI tag of a wheel: cp27mu."""
    match = _tags(lines)
    return None if match is None else match["abi"]


def other_unicode_abi(case: Case, lines: Lines) -> str | None:
    """The ABI of the Python 2 of the other width."""
    abi, width = wheel_abi(case, lines) or "", unicode_width(case, lines)
    return None if width is None else f"{abi}u" if width == "narrow" else abi.removesuffix("u")


def other_unicode_file(case: Case, lines: Lines) -> str | None:
    """The wheel for it."""
    other = other_unicode_abi(case, lines)
    return other and merged(lines)["file"].replace(wheel_abi(case, lines) or "", other)


def manylinux_tag(_case: Case, lines: Lines) -> str | None:
    """The manylinux tag of a wheel."""
    match = _tags(lines)
    return match["platform"].partition(".")[0] if match is not None and "manylinux" in match["platform"] else None


def manylinux_glibc(case: Case, lines: Lines) -> str | None:
    """The glibc that it stands for: 2.31."""
    match = re.match(r"manylinux_(\d+)_(\d+)", manylinux_tag(case, lines) or "")
    return None if match is None else f"{match[1]}.{match[2]}"


# ---------------------------------------------------------------------------------------------- who excludes whom


class _Conflict(NamedTuple):
    """Two requirements that exclude each other, the user's own the second."""

    one: _Need
    other: _Need


class _Need(NamedTuple):
    """A requirement as a resolver prints it: whose it is (None: the user's), the package, and the versions."""

    who: str | None
    package: str
    versions: SpecifierSet
    text: str


_NAME = r"[A-Za-z][\w.-]*(?:\[[\w,.-]+\])?(?:\{[^{}]*\})?"
_NEED = re.compile(
    rf"(?:(?P<who>{_NAME}(?:(?:[ =]{{1,2}}|[<>~]=?)\(?\d[\w.+*]*\)?)?) (?:depends on|requires) (?:both )?"
    r"|(?:the )?(?:user requested|you require) )"
    rf"(?P<package>{_NAME}) ?\(?(?P<versions>[=<>!~^]{{0,2}} ?\d[\w.*,<>=!~+-]*)",
    re.IGNORECASE,
)


def _needs(case: Case) -> tuple[_Need, ...]:
    """The requirements that a resolver names as the reason, of GPU packages."""
    found = []
    for text in case.every("conflict"):
        match = _NEED.match(re.sub(r"[\s│]+", " ", text))
        package = "" if match is None else re.sub(r"[\[{].*", "", match["package"])
        if match is None or not is_of_gpus(package):
            continue
        versions = match["versions"].replace(" ", "").rstrip(".,")
        versions = versions if re.match(r"[<>!~^]|==", versions) else f"=={versions.lstrip('=')}"
        try:
            specifier = SpecifierSet(versions)
        except InvalidSpecifier:
            continue
        who = None if match["who"] in (None, "project", "workspace") else _plain(match["who"])
        found.append(_Need(who, normalized(package), specifier, f"{package}{versions}"))
    return tuple(found)


def _plain(who: str) -> str:
    """``torchvision 0.4.0`` of ``torchvision (0.4.0)``."""
    return re.sub(r"\{.*\}|[()]", "", who).replace("==", " ")


def _exclude(one: _Need, other: _Need) -> bool:
    """Whether no version meets both: one pins what the other does not allow."""
    pins = [(need, of) for need, of in ((one, other), (other, one)) if _pinned(need) is not None]
    return one.package == other.package and any(
        not of.versions.contains(_pinned(need) or "", prereleases=True) for need, of in pins
    )


def _pinned(need: _Need) -> str | None:
    only, *more = need.versions
    return only.version if not more and only.operator == "==" and "*" not in only.version else None


def conflict(case: Case, _lines: Lines) -> _Conflict | None:
    """The first two requirements that exclude each other; of a package before the user's own."""
    needs = sorted(_needs(case), key=lambda it: it.who is None)
    pairs = ((one, other) for place, one in enumerate(needs) for other in needs[place + 1 :])
    return next((_Conflict(*pair) for pair in pairs if pair[0].who != pair[1].who and _exclude(*pair)), None)


def conflicts(case: Case, lines: Lines) -> tuple[str, ...]:
    """Everything that is named as excluding something else, of GPU packages."""
    needs = [f"{it.get('who') or 'the framework'} requires {it.get('need')}" for it in lines if it.get("need")]
    named = [it.rstrip(".,") for it in case.every("conflict") if _names_gpus(it)]
    others = dict.fromkeys(it for it in named if not any(_same(it, other) for other in needs))
    return (*needs, *others)[:8]


def _same(one: str, other: str) -> bool:
    return one.rsplit(maxsplit=1)[-1] == other.rsplit(maxsplit=1)[-1]


def _names_gpus(text: str) -> bool:
    return any(is_of_gpus(word) for word in re.findall(r"[A-Za-z][\w-]*", text))


def conflict_of_gpus(case: Case, lines: Lines) -> bool:
    """Whether requirements of GPU packages exclude each other, and no line only says what packages require."""
    needs = [re.split(r"[ =<>~!]", it.get("need") or "")[0] for it in lines if it.get("need")]
    excludes = len(needs) != len(set(needs)) or any("conflict" in it.line.lower() for it in lines)
    plain = any(not it.get("need") for it in lines)
    return (plain or excludes) and (
        bool(conflicts(case, lines)) or any(_names_gpus(it.get("what") or "") for it in lines)
    )


def version_is_missing(case: Case, _lines: Lines) -> bool:
    """Whether uv says of a GPU package that the index has no such version, or not even the package."""
    found = (it for it in case.of("uv-no-version") if it.get("package") or it.get("absent"))
    return any(is_of_gpus(it.get("package") or it.get("absent") or "") or it.get("absent") for it in found)


def pins_of_torch(case: Case, lines: Lines) -> bool:
    """Whether torch's wheels and packages of NVIDIA's are among what excludes each other."""
    text = " ".join(conflicts(case, lines))
    return "nvidia" in text and ("torch" in text or case.framework == "pytorch")


# ---------------------------------------------------------------------------------------------- installed packages


def dependents(_case: Case, lines: Lines) -> tuple[str, ...]:
    """The packages that no longer match the one that was replaced, if they or that one are for GPUs."""
    of_gpus = is_of_gpus(merged(lines).get("found", ""))
    named = [(it.get("package") or "", it.get("version")) for it in lines]
    return tuple(dict.fromkeys(f"{name} {version}" for name, version in named if of_gpus or is_of_gpus(name)))


def companion_needed(case: Case, lines: Lines) -> str | None:
    """The companion that belongs to the installed torch: torchvision 0.17.1."""
    fields = merged(lines)
    name = normalized(fields.get("package", ""))
    version = companions_of(case, parsed_version(fields.get("found_version"))).get(name)
    return version and f"{name} {version}"
