"""Rules on pip, uv and Poetry: why there is no wheel (Python, platform, index, version), and who excludes whom.

Installers say the same of every package. Only GPU frameworks and what is built for CUDA are spoken of here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules import conda, wheel_tags
from envsolve.diagnose.rules.belonging import belongs, reinstall_command
from envsolve.diagnose.rules.named import about_gpus, is_of_gpus, known, listed
from envsolve.diagnose.rules.systems import never_for, no_wheel, system_fields
from envsolve.diagnose.rules.wheels import (
    Asked,
    asked_for,
    inferred_pythons,
    interpreter_of,
    neighbours,
    pythons_of,
    span,
    wheels_of,
)
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.release import Release, Source

_TENSORRT_PART = re.compile(r"tensorrt(-cu1\d)?-(libs|bindings)")
_CUDA_BUILD = re.compile(r"cu\d{2,3}")


def no_matching(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Packages that pip finds no version of, each once, by the line that tells most."""
    by_package: dict[str, list[Sighting]] = {}
    for it in sightings:
        by_package.setdefault(normalized(it.get("package") or ""), []).append(it)
    for package, found in by_package.items():
        told = next((it for it in found if it.get("versions") is not None), found[0])
        pinned_by_words = f"=={told.get('pinned')}" if told.get("pinned") else ""
        asked = asked_for(package, told.get("specifier") or pinned_by_words, told.get("versions"))
        if is_of_gpus(package):
            pinned = package.startswith("nvidia-") and any("(from torch" in it.line for it in found)
            if pinned and asked.version is not None and _on_linux(case):
                yield Diagnosis((_lost(case, package, str(asked.version)),), tuple(found))
                continue
            yield Diagnosis(tuple(_causes(case, asked)), tuple(found))
        elif case.told("pytorch_index") is not None:
            yield Diagnosis((Cause("not-on-this-index", {"package": package}),), tuple(found))


def _causes(case: Case, asked: Asked) -> Iterator[Cause]:
    """Why there is no wheel, the likeliest first."""
    local = asked.version.local if asked.version is not None else None
    if local is not None and asked.package == "jaxlib":
        explanation = "jax-without-cuda-on-windows" if case.windows else "jax-wheel-needs-page"
        yield Cause(explanation, {"asked_version": str(asked.version)})
        return
    if _TENSORRT_PART.fullmatch(asked.package) and not asked.listed:
        version = None if asked.version is None else str(asked.version)
        yield Cause("tensorrt-libs-elsewhere", known(package=asked.package, asked_version=version))
        return
    nowhere = never_for(case, asked)
    if nowhere is not None:
        yield nowhere
        return
    wheels = wheels_of(case, asked)
    folder = _never_a_folder(case, asked)
    if folder is not None:
        yield _never_built(case, asked, _builds(case, asked), folder)
    elif local is not None and asked.framework == "pytorch":
        yield from _of_pytorch_index(case, asked, wheels, local)
    elif not asked.listed and (case.jetson or case.platform is Platform.LINUX_AARCH64):
        yield no_wheel(case, asked, wheels)
    elif asked.listed or (asked.listed is None and wheels):
        yield _of_python(case, asked, wheels)
    else:
        yield no_wheel(case, asked, wheels)


def _on_linux(case: Case) -> bool:
    """Whether it is the Linux for which NVIDIA's wheels are, on PyTorch's index, which alone has lost some."""
    return case.told("pytorch_index") is not None and case.platform in (None, Platform.LINUX_64)


def _lost(case: Case, package: str, version: str | None, conflicts: str | None = None) -> Cause:
    """A package of NVIDIA's that a wheel pins, and that the index does not have."""
    fields = known(lost=package, lost_version=version, index=case.told("pytorch_index"), conflicts=conflicts)
    return Cause("index-lacks-pinned-package", fields)


def _builds(case: Case, asked: Asked) -> list[str]:
    """The builds of a version on PyTorch's index, on whatever platform."""
    every = (it for platform in Platform for it in wheels_of(case, asked, platform))
    return sorted({it.build for it in every if it.source is Source.PYTORCH})


def _never_a_folder(case: Case, asked: Asked) -> str | None:
    """The folder of PyTorch's index that is asked and has nothing, where the version was not built for its CUDA."""
    folder = case.told("pytorch_index") or ""
    if asked.framework != "pytorch" or asked.listed or asked.version is None or asked.version.local:
        return None
    builds = _builds(case, asked)
    return folder if builds and folder not in builds and _CUDA_BUILD.fullmatch(folder) else None


def _of_pytorch_index(case: Case, asked: Asked, wheels: Sequence[Release], local: str) -> Iterator[Cause]:
    """A version with +cuXXX: never built so, not on the index that is asked, or not for this Python."""
    assert asked.version is not None
    public = Version(asked.version.public)
    builds = _builds(case, asked)
    if builds and local not in builds:
        yield _never_built(case, asked, builds, local)
        return
    named = any(it.local for it in asked.listed or ())
    same = [it for it in asked.listed or () if Version(it.public) == public]
    if named and same:
        yield _never_built(case, asked, [it.local for it in same if it.local], local)
        return
    needs_index = Cause("cuda-wheel-needs-index", _index_fields(asked, local))
    if named or (asked.listed is not None and not same):
        yield _of_python(case, asked, wheels) if asked.listed else no_wheel(case, asked, wheels)
        if not named:
            yield needs_index
        return
    yield needs_index
    if wheels:
        yield _of_python(case, asked, wheels)


def _index_fields(asked: Asked, local: str) -> dict[str, str]:
    return known(
        package=asked.package,
        asked_version=str(asked.version),
        build=local,
        requirement=f"{asked.package}=={asked.version}",
    )


def _never_built(case: Case, asked: Asked, builds: Sequence[str], local: str) -> Cause:
    assert asked.version is not None
    cuda = [it for it in builds if _CUDA_BUILD.fullmatch(it)]
    wanted = int(local[2:]) if _CUDA_BUILD.fullmatch(local) else 0
    nearest = min(cuda, key=lambda it: abs(int(it[2:]) - wanted), default="cpu")
    having = sorted(
        {
            it.version
            for it in case.knowledge.all_releases("pytorch")
            if it.source is Source.PYTORCH and it.build == local
        }
    )
    fields = known(
        package=asked.package,
        asked_version=str(asked.version),
        public=asked.version.public,
        build=local,
        builds=listed(builds),
        nearest=nearest,
        requirement=f"{asked.package}=={asked.version.public}",
        releases=f"torch {span([str(it) for it in having])}" if having else None,
    )
    return Cause("cuda-build-never-published", fields, Remedy(frameworks=(f"pytorch=={asked.version.public}",)))


def _of_python(case: Case, asked: Asked, wheels: Sequence[Release]) -> Cause:
    """No wheel for this Python, as told or as the list shows; a version that nobody knows is told as such."""
    python = interpreter_of(case)
    pythons = pythons_of(wheels)
    shown = inferred_pythons(case, asked)
    if _intel_mac(case, asked, shown):
        return Cause("wheel-of-other-platform", _mac_fields(asked))
    elsewhere = _platforms_of(case, asked) if not wheels else ()
    if elsewhere:
        return Cause("wheel-of-other-platform", _elsewhere_fields(case, asked, elsewhere))
    if asked.version is not None and asked.framework is not None and not wheels and _is_between(case, asked):
        return _not_published(case, asked)
    fits = python is not None and python in pythons
    fields = known(
        package=asked.package,
        asked_version=None if asked.version is None else str(asked.version),
        pythons=span(pythons) if pythons else None,
        interpreter=None if fits else python,
        unknown_python="this Python" if python is None else None,
        inferred=f"Python {' or '.join(shown)}" if shown and python is None else None,
        best_python=pythons[-1] if pythons else None,
        **_listed_fields(asked),
        **neighbours(case, asked, pythons),
    )
    remedy = None
    if asked.framework is not None and asked.version is not None and asked.package in ("torch", "tensorflow", "jax"):
        remedy = Remedy(frameworks=(f"{asked.framework}=={asked.version.public}",))
    return Cause("no-wheel-for-python", fields, remedy)


def _listed_fields(asked: Asked) -> dict[str, str]:
    if not asked.listed:
        return {}
    return {"lowest": asked.listed[0].public, "highest": asked.listed[-1].public}


_SYSTEMS = {
    Platform.LINUX_64: "Linux on x86_64",
    Platform.LINUX_AARCH64: "Linux on ARM (aarch64)",
    Platform.WIN_64: "Windows",
    Platform.OSX_64: "macOS on Intel (x86_64)",
    Platform.OSX_ARM64: "macOS on Apple silicon",
}


def _platforms_of(case: Case, asked: Asked) -> tuple[Platform, ...]:
    """The platforms that have wheels of the version, where it has none for the platform of the case."""
    return tuple(it for it in Platform if wheels_of(case, asked, it))


def _elsewhere_fields(case: Case, asked: Asked, platforms: Sequence[Platform]) -> dict[str, str]:
    here = case.platform or Platform.LINUX_64
    own = [it.version for it in case.knowledge.all_releases(asked.framework or "", here) if it.source.is_wheel]
    same = asked.package in (asked.framework, "torch")
    return known(
        package=asked.package,
        asked_version=str(asked.version),
        tag="as pip's list shows" if case.platform is None else _SYSTEMS[here],
        tags=listed(_SYSTEMS[it] for it in platforms),
        newest_here=str(max(own)) if own and same else None,
        intel_mac="macOS on Intel" if here is Platform.OSX_64 and asked.package == "torch" else None,
    )


def _is_between(case: Case, asked: Asked) -> bool:
    """Whether a version that the matrix does not have lies among those that it has: it was never released."""
    assert asked.version is not None
    if asked.package not in ("torch", "tensorflow"):
        return False
    versions = {it.version for it in case.knowledge.all_releases(asked.framework or "")}
    return bool(versions) and asked.version not in versions and min(versions) < asked.version < max(versions)


def _not_published(case: Case, asked: Asked) -> Cause:
    assert asked.version is not None
    versions = sorted({it.version for it in case.knowledge.all_releases(asked.framework or "") if it.source.is_wheel})
    below = [it for it in versions if it < asked.version][-2:]
    above = [it for it in versions if it > asked.version][:2]
    fields = known(
        package=asked.package,
        asked_version=str(asked.version),
        releases=listed(map(str, (*below, *above))),
        nearest=f"{asked.package}=={below[-1] if below else above[0]}",
    )
    return Cause("version-not-published", fields)


_LAST_INTEL_MAC = Version("2.2.2")


def _intel_mac(case: Case, asked: Asked, shown: Sequence[str]) -> bool:
    """Whether a list of torch ends with the last release for macOS on Intel, as no Python's list elsewhere does.

    When that was the newest release every list ended with it, but then nobody asked for a newer one.
    """
    if asked.package != "torch" or not asked.listed or asked.listed[-1] != _LAST_INTEL_MAC:
        return False
    newer = asked.version is not None and asked.version > _LAST_INTEL_MAC
    return case.platform in (None, Platform.OSX_64) and (newer or not shown)


def _mac_fields(asked: Asked) -> dict[str, str]:
    version = None if asked.version is None else str(asked.version)
    return known(package=asked.package, asked_version=version, tag="macOS on Intel", intel_mac="macOS on Intel")


def uv_no_version(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Versions that uv finds nowhere: with +cuXXX it is the index, else the version."""
    for it in sightings:
        package = normalized(it.get("package") or it.get("listed") or it.get("absent") or "")
        if it.get("absent") and (not is_of_gpus(package)) and case.told("pytorch_index"):
            yield Diagnosis((Cause("not-on-this-index", {"package": package}),), (it,))
        elif is_of_gpus(package) and it.get("package"):
            asked = asked_for(package, it.get("specifier") or "", None)
            if asked.version is not None:
                wheels = wheels_of(case, asked)
                local, nowhere = asked.version.local, never_for(case, asked)
                if nowhere is not None:
                    yield Diagnosis((nowhere,), (it,))
                elif local is not None and asked.framework == "pytorch":
                    yield Diagnosis(tuple(_of_pytorch_index(case, asked, wheels, local)), (it,))
                elif not wheels and _platforms_of(case, asked):
                    fields = _elsewhere_fields(case, asked, _platforms_of(case, asked))
                    yield Diagnosis((Cause("wheel-of-other-platform", fields),), (it,))
                elif not wheels and asked.framework is not None and _is_between(case, asked):
                    yield Diagnosis((_not_published(case, asked),), (it,))


def requires_python(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Packages that refuse this Python; the versions that pip only left out count where nothing else is told."""
    named = tuple(it for it in sightings if it.get("wanted"))
    if named:
        fields = merged(named)
        if about_gpus(case, fields.get("package")) and is_of_gpus(fields.get("package") or "torch"):
            yield Diagnosis((Cause("requires-other-python", fields),), named)
    elif about_gpus(case) and not case.saw("no-matching-distribution"):
        return


def hash_mismatch(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Files of GPU packages whose hash is not the expected one."""
    fields = merged(sightings)
    package = fields.get("package") or fields.get("conda_package")
    if is_of_gpus(package) if package else about_gpus(case):
        yield Diagnosis(
            (Cause("download-corrupt", known(package=package, asked_version=fields.get("version"))),), sightings
        )


def requirements_conflict(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Requirements that exclude each other, where they are of GPU packages."""
    if case.saw("wheel-tags", "uv-no-version", "requires-python"):
        return
    lost = next((it for it in sightings if it.get("lost")), None)
    if lost is not None and case.platform in (None, Platform.LINUX_64):
        every = listed([it for it in case.every("conflict") if _names_gpus(it)][:8])
        yield Diagnosis((_lost(case, lost.get("lost") or "", lost.get("lost_version"), every),), sightings)
        return
    told = [f"{it.get('who') or 'the framework'} requires {it.get('need')}" for it in sightings if it.get("need")]
    strong = [it for it in sightings if not it.get("need")]
    conflicts = [it for it in case.every("conflict") if _names_gpus(it)]
    if not strong and not _excludes(sightings):
        return
    if not (told or conflicts or any(_names_gpus(it.get("what") or "") for it in sightings)):
        return
    every = listed([*told, *(it for it in conflicts if not any(_same(it, other) for other in told))][:8])
    pins = None
    if "nvidia" in every and ("torch" in every or case.framework == "pytorch"):
        pins = "The torch wheel pins each nvidia package to the release that it was built with."
    yield Diagnosis((Cause("requirements-conflict", known(conflicts=every, torch_pins=pins)),), sightings)


def _same(one: str, other: str) -> bool:
    return one.rsplit(maxsplit=1)[-1] == other.rsplit(maxsplit=1)[-1]


def _excludes(sightings: tuple[Sighting, ...]) -> bool:
    """Whether requirements of nvidia packages in a report are of one package with different versions."""
    needs = [re.split(r"[ =<>~!]", it.get("need") or "")[0] for it in sightings if it.get("need")]
    return len(needs) != len(set(needs)) or any("conflict" in it.line.lower() for it in sightings)


def _names_gpus(text: str) -> bool:
    return any(is_of_gpus(word) for word in re.findall(r"[A-Za-z][\w-]*", text))


def pip_conflict(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What pip says of installed packages that no longer match: those of which one is for GPUs."""
    for it in sightings:
        package, found = normalized(it.get("package") or ""), normalized(it.get("found") or "")
        if not (is_of_gpus(package) and (is_of_gpus(found) or found in ("numpy", "protobuf"))):
            continue
        torch = it.get("found_version") if found == "torch" else None
        fields = known(
            torch_words="torch" if torch else None,
            belongs=belongs(case, package, it.get("version"), torch) if torch else None,
            command=reinstall_command(case, torch) if torch and package in ("torchvision", "torchaudio") else None,
        )
        yield Diagnosis((Cause("installed-conflict", {**it.fields, **fields}),), (it,))


def placeholder(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Packages that only raise an error: what they stand for."""
    if any((it.get("package") or "").startswith("tensorflow") for it in sightings):
        yield Diagnosis((Cause("tensorflow-gpu-removed", {}, Remedy(frameworks=("tensorflow",))),), sightings)
        return
    remedy = Remedy(frameworks=("pytorch",))
    if any(it.get("placeholder") or "tools.nnwrap" in it.line or "version=" in it.line for it in sightings):
        yield Diagnosis((no_wheel(case, asked_for("torch", "", None), ()),), sightings)
        return
    yield Diagnosis((Cause("placeholder-package", system_fields(case), remedy),), sightings)


RULES: Mapping[str, Rule] = {
    "no-matching-distribution": no_matching,
    "uv-no-version": uv_no_version,
    "requires-python": requires_python,
    "hash-mismatch": hash_mismatch,
    "requirements-conflict": requirements_conflict,
    "pip-conflict": pip_conflict,
    "placeholder-package": placeholder,
    **conda.RULES,
    **wheel_tags.RULES,
}
