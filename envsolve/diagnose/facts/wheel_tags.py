"""Facts on the tags in the name of a wheel: the Python, the ABI and the platform that it is for."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.shared.requested import pythons_of, requested, wheels_of
from envsolve.model.host import Platform

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


def wheel_glibc(_case: Case, lines: Lines) -> str | None:
    """The glibc that the wheels for this processor need, if that of the system is older: 2.28."""
    fields = merged(lines)
    here = re.fullmatch(r"manylinux_2_(\d+)_(\w+)", fields.get("tag") or "")
    if here is None:
        return None
    minors = [int(it) for it in re.findall(rf"manylinux_2_(\d+)_{here[2]}\b", fields.get("tags") or "")]
    return f"2.{min(minors)}" if minors and min(minors) > int(here[1]) else None


def wheels_are_here(case: Case, lines: Lines) -> bool:
    """Whether the matrix has wheels of the version for the platform of the case."""
    return bool(wheels_of(case, requested(case, lines)))
