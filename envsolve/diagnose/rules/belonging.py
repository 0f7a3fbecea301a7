"""A sentence on which companion belongs to which PyTorch, for the rules on installers."""

from __future__ import annotations

from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.diagnose.facts.companions import COMPANIONS, companions_of, reinstall_command, torches_of
from envsolve.model.versions import parsed_version

__all__ = ["belongs", "reinstall_command"]


def belongs(case: Case, companion: str | None, told: str | None = None, torch_told: str | None = None) -> str | None:
    """A sentence on the torch that an installed companion belongs to, and on the one that belongs to this torch.

    ``told`` and ``torch_told`` are their versions where a message names them, else those of the case count.
    """
    if companion not in COMPANIONS:
        return None
    words = []
    version = parsed_version(told or case.packages.get(companion))
    torches = torches_of(case, companion, version) if version is not None else []
    torch = parsed_version(torch_told or case.version_of("pytorch"))
    if version is not None and torches:
        span = str(torches[0]) if len(torches) == 1 else f"{torches[0]} to {torches[-1]}"
        words.append(f"{companion} {version.public} belongs to torch {span}.")
    if torch is not None and Version(torch.public) in torches:
        return f"By their numbers torch {torch.public} and {companion} {version} belong together."
    fitting = companions_of(case, torch).get(companion) if torch is not None else None
    if torch is not None and fitting is not None:
        words.append(f"To torch {torch.public} belongs {companion} {fitting}.")
    return " ".join(words) or None
