"""Which companion belongs to which PyTorch, as the matrix has it: torchvision 0.19.1 to torch 2.4.1."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.model.release import Release
from envsolve.model.versions import parsed_version

_COMPANIONS = ("torchvision", "torchaudio")


def belongs(case: Case, companion: str | None, told: str | None = None, torch_told: str | None = None) -> str | None:
    """A sentence on the torch that an installed companion belongs to, and on the one that belongs to this torch.

    ``told`` and ``torch_told`` are their versions where a message names them, else those of the case count.
    """
    if companion not in (*_COMPANIONS, "triton"):
        return None
    words = []
    version = parsed_version(told or case.packages.get(companion))
    torches = _torches(case, companion, version) if version is not None else []
    torch = parsed_version(torch_told or case.version_of("pytorch"))
    if version is not None and torches:
        words.append(f"{companion} {version.public} belongs to torch {_span(torches)}.")
    if torch is not None and Version(torch.public) in torches:
        return f"By their numbers torch {torch.public} and {companion} {version} belong together."
    fitting = companions_of(case, torch).get(companion) if torch is not None else None
    if torch is not None and fitting is not None:
        words.append(f"To torch {torch.public} belongs {companion} {fitting}.")
    return " ".join(words) or None


def companions_of(case: Case, torch: Version | None) -> dict[str, str]:
    """The versions of companions that belong to a release of torch, by their names."""
    if torch is None:
        return {}
    for release in case.knowledge.releases("pytorch", torch.public, case.platform):
        if release.companions:
            return {name: text.removeprefix("==") for name, text in release.companions}
    return {}


def reinstall_command(case: Case, told: str | None = None) -> str | None:
    """Pip's command for torch and what belongs to it, from the folder of the build that is there."""
    torch = parsed_version(told or case.version_of("pytorch"))
    companions = companions_of(case, torch)
    if torch is None or not companions:
        return None
    names = [f"torch=={torch.public}"]
    names += [f"{name}=={companions[name]}" for name in _COMPANIONS if _is_exact(companions.get(name))]
    build = torch.local or _folder(case)
    index = f" --index-url https://download.pytorch.org/whl/{build}" if build else ""
    return f"pip install --force-reinstall {' '.join(names)}{index}"


def _folder(case: Case) -> str | None:
    return f"cu{case.built_cuda.major}{case.built_cuda.minor}" if case.told("built_cuda") and case.built_cuda else None


def _is_exact(text: str | None) -> bool:
    return text is not None and text[0].isdigit()


def _torches(case: Case, companion: str, version: Version) -> list[Version]:
    """The releases of torch that a version of a companion belongs to, in order."""
    found = {
        release.version
        for release, specifier in _pairs(case, companion)
        if SpecifierSet(specifier).contains(version.public)
    }
    return sorted(found)


def _pairs(case: Case, companion: str) -> Iterator[tuple[Release, str]]:
    for release in case.knowledge.all_releases("pytorch", case.platform):
        for name, specifier in release.companions:
            if name == companion:
                yield release, specifier


def _span(versions: list[Version]) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
