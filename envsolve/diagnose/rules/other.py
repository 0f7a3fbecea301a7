"""Rules on what is beneath or beside the stack: C and C++ library, NumPy, broken releases, and what is no mismatch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.named import about_gpus, known, package_of
from envsolve.matrix.load import FrameworkTable
from envsolve.model.host import Platform
from envsolve.model.release import KnownBad
from envsolve.model.versions import parsed_version

GLIBC = {
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

GCC_OF = {
    "GLIBCXX_3.4.21": "5", "GLIBCXX_3.4.22": "6", "GLIBCXX_3.4.24": "7", "GLIBCXX_3.4.25": "8", "GLIBCXX_3.4.26": "9",
    "GLIBCXX_3.4.28": "9.3", "GLIBCXX_3.4.29": "11", "GLIBCXX_3.4.30": "12", "GLIBCXX_3.4.31": "13.1",
    "GLIBCXX_3.4.32": "13.2", "GLIBCXX_3.4.33": "14", "CXXABI_1.3.9": "5", "CXXABI_1.3.11": "7", "CXXABI_1.3.13": "11",
    "CXXABI_1.3.14": "13", "CXXABI_1.3.15": "14",
}  # fmt: skip
"""The gcc whose libstdc++ first has a version (libstdc++ manual, ABI policy)."""

NUMPY_OF_INTERFACE = {
    "0xd": "NumPy 1.16 to 1.19", "0xe": "NumPy 1.20 or 1.21", "0xf": "NumPy 1.22", "0x10": "NumPy 1.23 or 1.24",
    "0x11": "NumPy 1.25 or 1.26", "0x12": "NumPy 2.0", "0x13": "NumPy 2.1 or 2.2", "0x14": "NumPy 2.3",
}  # fmt: skip
"""The NumPy of each number of its C interface (numpy/_core/meson.build)."""

_NUMPY_2 = 0x12
_OF_PYTHON = re.compile(r"(?:site|dist)-packages|\.cpython-|\.abi3\.so")


def c_library(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Glibc and libstdc++ that are too old: for packages of Python, and for what is built for CUDA."""
    of_ours = tuple(it for it in sightings if _is_ours(case, it))
    for explanation in ("glibc-too-old", "libstdcxx-too-old"):
        found = tuple(it for it in of_ours if _library_of(it) == explanation)
        if found:
            newest = max(found, key=_number)
            fields = _c_fields(newest) if explanation == "glibc-too-old" else _cxx_fields(newest)
            yield Diagnosis((Cause(explanation, fields),), found)


def _is_ours(case: Case, sighting: Sighting) -> bool:
    by = sighting.get("by") or ""
    return bool(sighting.get("conda") or _OF_PYTHON.search(by)) or about_gpus(case, package_of(by))


def _library_of(sighting: Sighting) -> str:
    version = sighting.get("version") or "GLIBC_"
    return "glibc-too-old" if version.startswith("GLIBC_") else "libstdcxx-too-old"


def _number(sighting: Sighting) -> tuple[int, ...]:
    text = sighting.get("version") or sighting.get("least") or sighting.get("least_missing") or "0"
    return tuple(map(int, re.findall(r"\d+", text)))


def _c_fields(sighting: Sighting) -> dict[str, str]:
    version = sighting.get("version") or f"GLIBC_{sighting.get('least') or sighting.get('least_missing')}"
    number = version.partition("_")[2]
    having = [(text, names) for text, names in GLIBC.items() if _key(text) >= _key(number)]
    have = sighting.get("have")
    return known(
        by=sighting.get("by"),
        number=number,
        version_needed=f"{version}, which {sighting.get('by') or sighting.get('conda') or 'the package'} needs",
        package=sighting.get("conda"),
        system_glibc=f", {have}" if have else None,
        distributions="; ".join(f"{names[0]} ({text})" for text, names in having[:3]),
        distribution=having[0][1][1] if having else None,
    )


def _cxx_fields(sighting: Sighting) -> dict[str, str]:
    version = sighting.get("version") or ""
    gcc = GCC_OF.get(version)
    return known(by=sighting.get("by"), version_needed=version, gcc=gcc, gcc_words=gcc and f" (of gcc {gcc} or newer)")


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def numpy_interface(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NumPy of another generation than a compiled package was built for; in words of others only beside frameworks."""
    fields = merged(sightings)
    whole = any("compiled using numpy 1.x" in it.line.lower() for it in sightings)
    if not whole and not about_gpus(case, "numba" if fields.get("limit") else None):
        return
    built, have = _interface(fields.get("built")), _interface(fields.get("have"))
    older = (built and have and int(built, 16) > int(have, 16)) or int(fields.get("expected", 0)) > int(
        fields.get("got", 10**6)
    )
    if older or fields.get("direction") == "greater":
        words = known(
            built_numpy=NUMPY_OF_INTERFACE.get(built or ""),
            have_numpy=NUMPY_OF_INTERFACE.get(have or ""),
            pin="numpy>=2" if built and int(built, 16) >= _NUMPY_2 else None,
        )
        yield Diagnosis((Cause("numpy-too-old", {**fields, **words}),), sightings)
        return
    limit = fields.get("limit")
    pin = f"numpy<={limit}.*" if limit else "numpy<1.24" if "alias" in fields else "numpy<2"
    numpy = fields.get("numpy") or case.packages.get("numpy")
    pin = pin.replace("<=2.1.*", "<2.2")
    yield Diagnosis((Cause("numpy-mismatch", {**fields, **known(numpy=numpy, pin=pin)}),), sightings)


def _interface(text: str | None) -> str | None:
    return None if text is None else hex(int(text, 16))


def protobuf_interface(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Protobuf that is newer or older than generated code."""
    fields = merged(sightings)
    if "older" in fields or "gencode" in fields:
        if about_gpus(case):
            yield Diagnosis((Cause("protobuf-too-old", fields),), sightings)
    elif "newer" in fields:
        if about_gpus(case):
            yield Diagnosis((Cause("protobuf-newer-than-tensorflow", fields),), sightings)
    elif "before_4" in fields and not any("cannot" in it.line for it in sightings):
        yield Diagnosis((Cause("protobuf-generations-differ", fields),), sightings)
    else:
        yield Diagnosis((Cause("protobuf-mismatch", fields),), sightings)


def processor(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Processors without AVX, and Pythons for another processor."""
    fields = merged(sightings)
    if "have" in fields:
        yield Diagnosis((Cause("library-of-other-processor", fields),), sightings)
    elif "library" in fields:
        yield Diagnosis((Cause("python-of-other-processor", fields),), sightings)
    elif not _NAME_AVX & {*fields} and (case.jetson or case.platform is Platform.LINUX_AARCH64):
        yield Diagnosis((Cause("openblas-core-type"),), sightings)
    elif not _NAME_AVX & {*fields} and not _is_x86(case):
        yield Diagnosis((Cause("processor-without-avx", fields), Cause("openblas-core-type")), sightings)
    elif "windows" not in fields or about_gpus(case):
        yield Diagnosis((Cause("processor-without-avx", fields),), sightings)


_NAME_AVX = frozenset({"tensorflow", "windows"})
"""Fields of what happens on processors of x86 alone; all else is a signal, or its number."""


def _is_x86(case: Case) -> bool:
    """Whether the processor is told to be one of x86, by more than that it runs Linux."""
    told = case.given.platform is not None or case.given.host is not None or case.told("platform") is not None
    return told or case.windows or any("x86_64" in clue.line for clue in case.clues.get("linux", ()))


class _Broken(NamedTuple):
    """A broken release: the words by which the matrix's row of it is found, and what to take in its place."""

    framework: str
    platform: Platform
    words: str
    title: str
    replacement: str

    def row(self, table: FrameworkTable) -> KnownBad | None:
        return next((it for it in table.known_bad if self.words in it.reason), None)


_WITHOUT_OPENMP = _Broken(
    "pytorch",
    Platform.WIN_64,
    "fbgemm.dll",
    "PyTorch 2.4.0 for Windows",
    "Upgrade to PyTorch 2.4.1 or newer, or go back to 2.3.1: pip install 'torch==2.4.1' with its torchvision 0.19.1.",
)
_FLAG_TWICE = _Broken(
    "jax",
    Platform.LINUX_64,
    "a flag of XLA is defined twice",
    "jaxlib 0.6.2 of conda-forge for CUDA",
    "Take jaxlib 0.7.0 (build 201 or later) or newer from conda-forge, or 0.6.1 and older.",
)


def broken_release(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Releases that the matrix knows to fail, by what they then say."""
    broken = _WITHOUT_OPENMP if any(it.get("hint") for it in sightings) else _FLAG_TWICE
    row = broken.row(case.knowledge.matrix.framework(broken.framework, broken.platform))
    if row is None:
        return
    version = parsed_version(case.version_of(broken.framework))
    words = row.reason
    if version is not None and not row.versions.contains(version.public):
        words += f" The text tells of {broken.framework} {version.public}, where the same file is missing."
    fields = {"title_of": broken.title, "reason": words, "replacement": broken.replacement}
    remedy = Remedy(frameworks=(f"{broken.framework}{_other_than(row)}",), platform=broken.platform.value)
    yield Diagnosis((Cause("known-broken-release", fields, remedy),), sightings)


def _other_than(row: KnownBad) -> str:
    return ",".join(f">{it.version}" for it in row.versions if it.operator == "==")


RULES: Mapping[str, Rule] = {
    "c-library": c_library,
    "numpy-interface": numpy_interface,
    "protobuf-interface": protobuf_interface,
    "processor": processor,
    "broken-release": broken_release,
}
