"""Rules on wheels whose tags do not fit: another Python, platform, width of pointers or of Unicode, an old pip."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.named import is_of_gpus, known
from envsolve.diagnose.rules.wheels import asked_for, interpreter_of, pythons_of, span, wheels_of
from envsolve.model.host import Platform
from envsolve.model.names import normalized

_TAG = re.compile(r"-(?P<python>(?:cp|py|pp)\d+(?:\.(?:cp|py)\d+)*)-(?P<abi>[\w.]+)-(?P<platform>[\w.]+)\.whl$")


def wheel_tags(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Wheels whose tags do not fit: by the file's name, or as uv and Poetry tell it; each package once."""
    seen: set[str] = set()
    for it in sightings:
        package = normalized((it.get("package") or (it.get("file") or "").split("-")[0]).replace("_", "-"))
        if package in seen or not (is_of_gpus(package) or case.told("pytorch_index")):
            continue
        seen.add(package)
        rest = tuple(other for other in sightings if package in (normalized(other.get("package") or ""), package))
        file = it.get("file")
        yield Diagnosis(tuple(_of_file(case, file)) if file else (_of_tag(case, package, merged(rest)),), rest)


def _of_file(case: Case, file: str) -> Iterator[Cause]:
    """What a wheel's name tells that does not fit: for certain where the text tells of the system, else what may be."""
    match = _TAG.search(file)
    if match is None:
        yield Cause("wheel-tags-differ", {"file": file})
        return
    tag, platform = match["python"], match["platform"]
    wheel_python = f"{tag[2]}.{tag[3:]}" if re.fullmatch(r"cp\d{2,3}", tag) else None
    python = interpreter_of(case)
    same = python is not None and python == wheel_python
    fields = known(
        file=file,
        wheel_tag=tag,
        wheel_python=wheel_python,
        wheel_platform=_platform_words(platform),
        interpreter=None if same else python,
    )
    if wheel_python and python and not same:
        yield Cause("wheel-of-other-python", fields)
    elif _told_beside(case, file) and _is_foreign(case, platform):
        yield Cause("wheel-of-other-platform", fields)
    else:
        unlike = tuple(_unlike(match["abi"], platform, fields))
        differ = Cause("wheel-tags-differ", {**fields, **known(same_python=python if same else None)})
        yield from (*unlike, differ) if same else (differ, *unlike)


_UNICODE = {"cp26m": "narrow", "cp27m": "narrow", "cp26mu": "wide", "cp27mu": "wide"}
"""The ABIs of Python 2: m has 2 bytes for a character, mu 4 (PEP 513)."""


def _unlike(abi: str, platform: str, fields: Mapping[str, str]) -> Iterator[Cause]:
    """How a Python of the wheel's own version may differ from the one that it is for."""
    width = _UNICODE.get(abi)
    if width is not None and "linux" in platform:
        other = abi + "u" if width == "narrow" else abi.removesuffix("u")
        words = {
            "abi": abi,
            "other_abi": other,
            "unicode_width": width,
            "other_file": fields["file"].replace(abi, other),
        }
        yield Cause("wheel-of-other-unicode", {**fields, **words})
    if "win_amd64" in platform:
        yield Cause("wheel-for-64-bit", dict(fields))
    if "manylinux" in platform and width is None:
        yield Cause("wheel-of-newer-pip", {**fields, "many": platform.split(".", maxsplit=1)[0]})


def _platform_words(tag: str) -> str:
    """A platform tag in words."""
    words = (
        ("win_amd64", "Windows on x86_64"),
        ("win32", "32-bit Windows"),
        ("aarch64", "Linux on ARM (aarch64)"),
        ("linux_x86_64", "Linux on x86_64"),
        ("x86_64", "Linux on x86_64"),
    )
    if tag.startswith("macosx"):
        return f"macOS ({tag})"
    return next((f"{name} ({tag})" for part, name in words if part in tag), tag)


def _told_beside(case: Case, file: str) -> bool:
    """Whether more tells of the system than the name of the wheel itself."""
    clues = (
        it for fact in ("platform", "macos", "windows", "linux", "aarch64", "wsl") for it in case.clues.get(fact, ())
    )
    return case.given.platform is not None or case.given.host is not None or any(file not in it.line for it in clues)


def _is_foreign(case: Case, tag: str) -> bool:
    """Whether a platform tag plainly is not of the platform that the text tells of."""
    platform = case.platform
    if platform is None or tag == "any":
        return False
    system = "win" if tag.startswith("win") else "osx" if tag.startswith("macosx") else "linux"
    return not platform.value.startswith(system) or ("aarch64" in tag) != (platform is Platform.LINUX_AARCH64)


def _of_tag(case: Case, package: str, fields: dict[str, str]) -> Cause:
    version = fields.get("version") or fields.get("specifier", "").lstrip("=<>~! ")
    asked = asked_for(package, f"=={version}" if version else "", None)
    pythons = pythons_of(wheels_of(case, asked))
    tags = fields.get("tags")
    more = known(
        package=package,
        asked_version=version or "",
        tag=fields.get("tag"),
        tags=tags and tags.strip(" .`").replace("`", ""),
        pythons=span(pythons) if pythons else None,
        wheel_python=pythons[-1] if pythons else None,
        **_platform_fields(fields.get("tag") or ""),
    )
    kind = fields.get("kind", "")
    if not kind and package.startswith("nvidia-"):
        return Cause("nvidia-wheels-elsewhere", more)
    if kind == "platform":
        return Cause("wheel-of-other-platform", more)
    return Cause("wheel-of-other-python" if kind else "wheel-tags-differ", more)


def _platform_fields(tag: str) -> dict[str, str]:
    return known(musl="Alpine Linux" if "musllinux" in tag else None, mac="macOS" if tag.startswith("macosx") else None)


RULES: Mapping[str, Rule] = {"wheel-tags": wheel_tags}
