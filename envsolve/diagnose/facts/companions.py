"""Which companion belongs to which PyTorch, as the matrix has it: torchvision 0.19.1 to torch 2.4.1."""

from __future__ import annotations

import re

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.model.release import Release
from envsolve.model.versions import parsed_version

COMPANIONS = ("torchvision", "torchaudio", "triton")


def companions_of(case: Case, torch: Version | None) -> dict[str, str]:
    """The versions of companions that belong to a release of torch, by their names."""
    if torch is None:
        return {}
    for release in case.knowledge.releases("pytorch", torch.public, case.platform):
        if release.companions:
            return {name: text.removeprefix("==") for name, text in release.companions}
    return {}


def torches_of(case: Case, companion: str, version: Version) -> list[Version]:
    """The releases of torch that a version of a companion belongs to, in order."""
    found = {
        release.version
        for release in case.knowledge.all_releases("pytorch", case.platform)
        for name, specifier in release.companions
        if name == companion and SpecifierSet(specifier).contains(version.public)
    }
    return sorted(found)


def torch_command(release: Release, *, again: bool = False) -> str:
    """Pip's command for a wheel of torch and what belongs to it; ``again`` where another build of it is installed."""
    companions = dict(release.companions)
    others = [
        f"{it}{companions[it]}" for it in ("torchvision", "torchaudio") if companions.get(it, "").startswith("==")
    ]
    index = f"https://download.pytorch.org/whl/{release.build}"
    forced = "--force-reinstall " if again else ""
    return f"pip install {forced}{' '.join((f'torch=={release.version}', *others))} --index-url {index}"


def reinstall_command(case: Case, version: str | None = None) -> str | None:
    """Pip's command for torch and what belongs to it, from the folder of the build that is there."""
    torch = parsed_version(version or case.version_of("pytorch"))
    companions = companions_of(case, torch)
    if torch is None or not companions or torch.is_prerelease:
        return None
    names = [f"torch=={torch.public}"]
    exact = {name: companions.get(name, "") for name in ("torchvision", "torchaudio")}
    names += [f"{name}=={version}" for name, version in exact.items() if version[:1].isdigit()]
    build = folder_of(torch) or _folder(case)
    index = f" --index-url https://download.pytorch.org/whl/{build}" if build else ""
    return f"pip install --force-reinstall {' '.join(names)}{index}"


def folder_of(torch: Version | None) -> str | None:
    """The folder of PyTorch's index with a build, by its local version: cu126; None for builds of others."""
    local = None if torch is None else torch.local
    return local if local is not None and re.fullmatch(r"cu\d{2,3}|cpu", local) else None


def _folder(case: Case) -> str | None:
    return f"cu{case.built_cuda.major}{case.built_cuda.minor}" if case.clue("built_cuda") and case.built_cuda else None
