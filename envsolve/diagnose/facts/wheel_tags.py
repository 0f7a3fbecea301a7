"""Facts on the tags in the name of a wheel: the Python, the ABI and the platform that it is for."""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.shared.requested import pythons_of, requested, wheels_of
from envsolve.model.host import Platform
from envsolve.model.release import Source

_TAG = re.compile(r"-(?P<python>(?:cp|py|pp)\d+(?:\.(?:cp|py)\d+)*)-(?P<abi>[\w.]+)-(?P<platform>[\w.]+)\.whl$")


def _tags(lines: Lines) -> re.Match[str] | None:
    return _TAG.search(merged(lines).get("file", ""))


def wheel_python(case: Case, lines: Lines) -> str | None:
    """The only Python that it is for; of a package, the newest that has a wheel of it."""
    match = _tags(lines)
    if match is not None:
        tag = match["python"]
        return f"{tag[2]}.{tag[3:]}" if re.fullmatch(r"cp\d{2,3}", tag) else None
    pythons = pythons_of(wheels_of(case, requested(case, lines)))
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
    given = case.given.platform is not None or case.given.host is not None
    beside = any(file not in it.line for fact in facts for it in case.clues.get(fact, ()))
    if match is None or platform is None or match["platform"] == "any" or not (given or beside):
        return False
    tag = match["platform"]
    system = "win" if tag.startswith("win") else "osx" if tag.startswith("macosx") else "linux"
    return not platform.value.startswith(system) or ("aarch64" in tag) != (platform is Platform.LINUX_AARCH64)


class _OtherUnicode(NamedTuple):
    """The wheel for a Python 2 of the other width: its ABI and its file, with the width that the wheel is for."""

    width: str
    abi: str
    file: str


def other_unicode(_case: Case, lines: Lines) -> _OtherUnicode | None:
    """The same for a wheel for Linux whose ABI has a width: m has 2 bytes for a character, mu 4 (PEP 513)."""
    match = _tags(lines)
    abi = re.fullmatch(r"(cp2[67]m)(u?)", "" if match is None or "linux" not in match["platform"] else match["abi"])
    if abi is None:
        return None
    other = abi[1] if abi[2] else f"{abi[1]}u"
    return _OtherUnicode("wide" if abi[2] else "narrow", other, merged(lines)["file"].replace(abi[0], other))


def manylinux_glibc(_case: Case, lines: Lines) -> str | None:
    """The glibc that a manylinux tag stands for: 2.31."""
    match = re.search(r"manylinux_(\d+)_(\d+)", merged(lines).get("file", ""))
    return None if match is None else f"{match[1]}.{match[2]}"


def wheel_glibc(_case: Case, lines: Lines) -> str | None:
    """The glibc that the wheels for this processor need, if that of the system is older: 2.28."""
    fields = merged(lines)
    here = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", fields.get("tag") or "")
    if here is None:
        return None
    minors = [int(it) for it in re.findall(rf"manylinux_2_(\d+)_{here[2]}\b", fields.get("tags") or "")]
    return f"2.{min(minors)}" if minors and min(minors) > int(here[1]) else None


def builds_are_here(case: Case, lines: Lines) -> bool:
    """Whether the build that the version names, such as cu128, is among those wheels."""
    return any(it.build == _build(case, lines) for it in wheels_of(case, requested(case, lines)))


def other_builds(case: Case, lines: Lines) -> str | None:
    """The builds for CUDA of that version which the platform has instead: cu126 and cu129."""
    wheels = wheels_of(case, requested(case, lines))
    found = {it.build for it in wheels if it.source is Source.PYTORCH and it.cuda is not None}
    return " and ".join(sorted(found)) if _build(case, lines) not in found and found else None


def _build(case: Case, lines: Lines) -> str | None:
    version = requested(case, lines).version
    return None if version is None else version.local


def wheels_are_here(case: Case, lines: Lines) -> bool:
    """Whether the matrix has wheels of the version for the platform of the case."""
    return bool(wheels_of(case, requested(case, lines)))
