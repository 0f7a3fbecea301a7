"""Facts on what is beneath or beside the stack: C and C++ library, NumPy, processors, broken releases, own files."""

from __future__ import annotations

import posixpath
import re
import sys

from envsolve.diagnose.case import Case, Lines, Sighting, merged
from envsolve.diagnose.facts.shared.gpu_packages import about_gpus, package_of

_GLIBC = {
    "2.17": ("CentOS 7", "centos:7"),
    "2.27": ("Ubuntu 18.04", "ubuntu:18.04"),
    "2.28": ("Debian 10, RHEL 8, AlmaLinux 8", "almalinux:8"),
    "2.31": ("Ubuntu 20.04, Debian 11", "ubuntu:20.04"),
    "2.34": ("RHEL 9, AlmaLinux 9", "almalinux:9"),
    "2.35": ("Ubuntu 22.04", "ubuntu:22.04"),
    "2.36": ("Debian 12", "debian:12"),
    "2.39": ("Ubuntu 24.04, RHEL 10", "ubuntu:24.04"),
    "2.41": ("Debian 13", "debian:13"),
}
"""The glibc of distributions (glibc wiki, release timeline; the distributions' own package lists)."""
_STANDARD = sys.stdlib_module_names | {"distutils", "imp", "asyncore", "cgi", "telnetlib", "pipes", "uu", "crypt"}
"""Python's own modules, those that new Pythons leave out included."""


# ---------------------------------------------------------------------------------------------- C and C++ library


def c_library(case: Case, lines: Lines) -> str | None:
    """Which library is too old, glibc or libstdc++; None for a program that is none of Python or CUDA."""
    it = lines[0]
    by = it.get("by") or ""
    ours = it.get("conda") or re.search(r"(?:site|dist)-packages|\.cpython-|\.abi3\.so|singularity\.d/libs", by)
    of_import = not by and re.search(r"\b(?:Import|OS)Error: ", it.line)
    if not ours and not of_import and not about_gpus(case, package_of(by)):
        return None
    return "glibc" if (it.get("version") or "GLIBC_").startswith("GLIBC_") else "libstdc++"


def _newest(lines: Lines) -> Sighting:
    return max(lines, key=lambda it: tuple(map(int, re.findall(r"\d+", _needed(it)))))


def _needed(it: Sighting) -> str:
    return it.get("version") or it.get("least") or it.get("least_missing") or "0"


def c_version(_case: Case, lines: Lines) -> str | None:
    """The newest version that is needed: GLIBC_2.32, GLIBCXX_3.4.30."""
    version = _needed(_newest(lines))
    return version if "_" in version else f"GLIBC_{version}"


def glibc_needed(case: Case, lines: Lines) -> str:
    """Its number."""
    return (c_version(case, lines) or "").partition("_")[2]


def c_by(_case: Case, lines: Lines) -> str | None:
    """The file that needs it."""
    return _newest(lines).get("by")


def c_package(_case: Case, lines: Lines) -> str | None:
    """The conda package that needs it."""
    return _newest(lines).get("conda")


def glibc_installed(_case: Case, lines: Lines) -> str | None:
    """The glibc of the system."""
    return _newest(lines).get("have")


def _having(case: Case, lines: Lines) -> list[tuple[str, tuple[str, str]]]:
    least = _key(glibc_needed(case, lines))
    return [(text, names) for text, names in _GLIBC.items() if _key(text) >= least]


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def glibc_distributions(case: Case, lines: Lines) -> str | None:
    """The first distributions that have it."""
    return "; ".join(f"{names[0]} ({text})" for text, names in _having(case, lines)[:3]) or None


# ---------------------------------------------------------------------------------------------- NumPy


def numpy_is_older(_case: Case, lines: Lines) -> bool:
    """Whether the installed NumPy is older than the one that a module was built with."""
    fields = merged(lines)
    built, have = fields.get("built"), fields.get("have")
    by_interface = bool(built and have) and int(built or "0", 16) > int(have or "0", 16)
    sizes = int(fields.get("expected", 0)), int(fields.get("got", 10**6))
    # of 96 bytes is the dtype of NumPy 1.20 and newer, of 88 that of NumPy 2 and of 1.19
    return by_interface or (sizes[0] > sizes[1] and sizes != (96, 88))


# ---------------------------------------------------------------------------------------------- processors


def tls_library(_case: Case, lines: Lines) -> str | None:
    """A library that needs static TLS when none is left, by its path; ``slots`` if no library is named."""
    file = lines[0].get("library")
    return posixpath.normpath(file) if file else "slots" if lines[0].get("slots") else None


def tls_package(case: Case, lines: Lines) -> str | None:
    """The package that it comes with."""
    site = re.search(r"/(?:site|dist)-packages/(?P<folder>[\w.-]+)/", tls_library(case, lines) or "")
    return None if site is None else site["folder"].removesuffix(".libs").replace("_", "-")


def tls_module(case: Case, lines: Lines) -> str | None:
    """What is imported of that package."""
    others = {"scikit-learn": "sklearn", "pillow": "PIL"}
    package = tls_package(case, lines)
    if package is None or package.lower().startswith("opencv-"):
        return package and "cv2"
    return others.get(package.lower(), package.replace("-", "_"))


# ---------------------------------------------------------------------------------------------- files of one's own


def module_is_pythons(_case: Case, lines: Lines) -> bool:
    """Whether it is one of Python's own."""
    return merged(lines).get("module") in _STANDARD
