"""Facts on requirements that exclude each other, by the words of pip, uv, Poetry and conda."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.shared.gpu_packages import is_of_gpus
from envsolve.model.names import normalized

_NAME = r"[A-Za-z][\w.-]*(?:\[[\w,.-]+\])?(?:\{[^{}]*\})?"
_VERSIONS = r"(?:(?:[ =]{1,2}|[<>~]=?)\(?\d[\w.+*]*\)?(?:,[<>=!~]{1,2}\d[\w.+*]*)*)?"
_NEED = re.compile(
    rf"(?:(?P<who>{_NAME}{_VERSIONS}) (?:depends on|requires) (?:both )?"
    r"|(?:the )?(?:user requested|you require) )"
    rf"(?P<package>{_NAME}) ?\(?(?P<versions>[=<>!~^]{{0,2}} ?\d[\w.*,<>=!~+-]*)",
    re.IGNORECASE,
)


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


def _needs(case: Case) -> tuple[_Need, ...]:
    """The requirements that a resolver names as the reason."""
    found = []
    for text in case.every("conflict"):
        match = _NEED.match(re.sub(r"[\s│]+", " ", text))
        if match is None:
            continue
        package = re.sub(r"[\[{].*", "", match["package"])
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


def conflict(case: Case, _lines: Lines) -> _Conflict | None:
    """The first two requirements of a GPU stack that exclude each other; of a package before the user's own."""
    needs = sorted(_needs(case), key=lambda it: it.who is None)
    pairs = ((one, other) for place, one in enumerate(needs) for other in needs[place + 1 :])
    return next((_Conflict(*pair) for pair in pairs if _exclude(*pair)), None)


def _exclude(one: _Need, other: _Need) -> bool:
    """Whether no version of a package meets both, and the package or one that requires it is for GPUs."""
    differ = one.package == other.package and one.who != other.who
    of_gpus = any(map(_names_gpus, (one.package, one.who or "", other.who or "")))
    return differ and of_gpus and (one.versions & other.versions).is_unsatisfiable()


def conflicts(case: Case, lines: Lines) -> tuple[str, ...]:
    """Everything that is named as excluding something else, of GPU packages."""
    needs = [f"{it.get('who') or 'the framework'} requires {it.get('need')}" for it in lines if it.get("need")]
    named = [it.rstrip(".,") for it in case.every("conflict") if _names_gpus(it)]
    wanted = {it.rsplit(maxsplit=1)[-1] for it in needs}
    others = dict.fromkeys(it for it in named if it.rsplit(maxsplit=1)[-1] not in wanted)
    return (*needs, *others)[:8]


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


def conflict_subject(case: Case, lines: Lines) -> str | None:
    """What a line of pip on a replaced package is about: the package that requires several such, else the replaced."""
    asks = lines[0].get("package")
    several = sum(it.get("package") == asks for it in case.of("pip-conflict")) > 1
    return asks if several else lines[0].get("found")


def unmet(_case: Case, lines: Lines) -> _Unmet | None:
    """The requirements of one package that no longer hold, if they are several."""
    needs = tuple(dict.fromkeys(need for it in lines if (need := it.get("need"))))
    found = tuple(dict.fromkeys(f"{it.get('found')} {it.get('found_version')}" for it in lines))
    if len(needs) == 1 or len({it.get("package") for it in lines}) > 1:
        return None
    first = needs[:_MOST_NEEDS]
    return _Unmet(first, found[:_MOST_NEEDS], " ".join(f'"{it}"' for it in first))


_MOST_NEEDS = 4
"""Of one package: pip takes the others with the package itself."""


class _Unmet(NamedTuple):
    """Requirements, the installed packages that do not meet them, and the requirements as pip takes them."""

    needs: tuple[str, ...]
    found: tuple[str, ...]
    typed: str


def dependents(_case: Case, lines: Lines) -> tuple[str, ...]:
    """The packages that no longer match the one that was replaced, if they or that one are for GPUs."""
    of_gpus = any(is_of_gpus(it.get("found") or "") for it in lines)
    named = [(it.get("package") or "", it.get("version")) for it in lines]
    return tuple(dict.fromkeys(f"{name} {version}" for name, version in named if of_gpus or is_of_gpus(name)))
