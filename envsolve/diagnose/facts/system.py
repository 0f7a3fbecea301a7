"""Facts on what is beneath or beside the stack: C and C++ library, NumPy, processors, broken releases, own files."""

from __future__ import annotations

import posixpath
import re
import sys
from typing import NamedTuple

from envsolve.diagnose.case import Case, Lines, Sighting, merged
from envsolve.diagnose.facts.shared.gpu_packages import about_gpus, package_of
from envsolve.model.host import Platform
from envsolve.model.release import KnownBad
from envsolve.model.versions import parsed_version

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
_GCC = {
    "GLIBCXX_3.4.21": "5", "GLIBCXX_3.4.22": "6", "GLIBCXX_3.4.24": "7", "GLIBCXX_3.4.25": "8", "GLIBCXX_3.4.26": "9",
    "GLIBCXX_3.4.28": "9.3", "GLIBCXX_3.4.29": "11", "GLIBCXX_3.4.30": "12", "GLIBCXX_3.4.31": "13.1",
    "GLIBCXX_3.4.32": "13.2", "GLIBCXX_3.4.33": "14", "CXXABI_1.3.9": "5", "CXXABI_1.3.11": "7", "CXXABI_1.3.13": "11",
    "CXXABI_1.3.14": "13", "CXXABI_1.3.15": "14",
}  # fmt: skip
"""The gcc whose libstdc++ first has a version (libstdc++ manual, ABI policy)."""
_NUMPY = {
    "0xd": "NumPy 1.16 to 1.19", "0xe": "NumPy 1.20 or 1.21", "0xf": "NumPy 1.22", "0x10": "NumPy 1.23 or 1.24",
    "0x11": "NumPy 1.25 or 1.26", "0x12": "NumPy 2.0", "0x13": "NumPy 2.1 or 2.2", "0x14": "NumPy 2.3",
}  # fmt: skip
"""The NumPy of each number of its C interface (numpy/_core/meson.build)."""
_NUMPY_2 = 0x12
_FRAMEWORKS = frozenset(
    {
        "torch", "torchvision", "torchaudio", "tensorflow", "keras", "jax", "jaxlib", "flax", "onnx", "onnxruntime",
        "cupy", "paddle", "numpy", "triton", "transformers", "diffusers", "bitsandbytes", "xformers", "numba",
        "tensorrt", "vllm", "deepspeed",
    }
)  # fmt: skip
"""Modules that no working project has a file of the same name as."""
_LIBRARIES = _FRAMEWORKS | {
    "scipy", "pandas", "sklearn", "PIL", "cv2", "accelerate", "datasets", "tokenizers", "safetensors", "peft", "timm",
    "einops", "matplotlib", "tensorboard", "google", "packaging", "yaml", "requests", "tqdm", "sympy", "networkx",
    "fsspec", "filelock", "jinja2", "six",
}  # fmt: skip
"""Libraries that frameworks and programs beside them import, by the names of their modules."""
_STANDARD = sys.stdlib_module_names | {"distutils", "imp", "asyncore", "cgi", "telnetlib", "pipes", "uu", "crypt"}
"""Python's own modules, those that new Pythons leave out included."""


# ---------------------------------------------------------------------------------------------- C and C++ library


def c_library(case: Case, lines: Lines) -> str | None:
    """Which library is too old, glibc or libstdc++; None for a program that is none of Python or CUDA."""
    it = lines[0]
    by = it.get("by") or ""
    ours = it.get("conda") or re.search(r"(?:site|dist)-packages|\.cpython-|\.abi3\.so|singularity\.d/libs", by)
    if not ours and not about_gpus(case, package_of(by)):
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


def glibc_image(case: Case, lines: Lines) -> str | None:
    """A container image of the first of them."""
    return next((names[1] for _, names in _having(case, lines)), None)


def gcc_needed(case: Case, lines: Lines) -> str | None:
    """The gcc whose libstdc++ first has the version."""
    return _GCC.get(c_version(case, lines) or "")


# ---------------------------------------------------------------------------------------------- NumPy


def _interface(text: str | None) -> str | None:
    return None if text is None else hex(int(text, 16))


def built_numpy(_case: Case, lines: Lines) -> str | None:
    """The NumPy that a module was built with, by the number of its C interface."""
    return _NUMPY.get(_interface(merged(lines).get("built")) or "")


def have_numpy(_case: Case, lines: Lines) -> str | None:
    """The installed NumPy, by the number of its C interface."""
    return _NUMPY.get(_interface(merged(lines).get("have")) or "")


def numpy_is_older(_case: Case, lines: Lines) -> bool:
    """Whether the installed NumPy is older than the one that a module was built with."""
    fields = merged(lines)
    built, have = fields.get("built"), fields.get("have")
    by_interface = bool(built and have) and int(built or "0", 16) > int(have or "0", 16)
    return by_interface or int(fields.get("expected", 0)) > int(fields.get("got", 10**6))


def built_for_numpy_2(_case: Case, lines: Lines) -> bool:
    """Whether a module was built with NumPy 2."""
    return int(merged(lines).get("built", "0"), 16) >= _NUMPY_2


def numpy_pin(_case: Case, lines: Lines) -> str:
    """The NumPy that old modules work with."""
    fields = merged(lines)
    if limit := fields.get("limit"):
        return f"numpy<={limit}.*".replace("<=2.1.*", "<2.2")
    return "numpy<1.24" if "alias" in fields else "numpy<2"


def installed_numpy(case: Case, lines: Lines) -> str | None:
    """The version of the installed NumPy."""
    return merged(lines).get("numpy") or case.packages.get("numpy")


# ---------------------------------------------------------------------------------------------- processors


def names_avx(_case: Case, lines: Lines) -> bool:
    """Whether the text is of what happens on x86 processors alone; all else is a signal, or its number."""
    return not {"tensorflow", "windows"}.isdisjoint(merged(lines))


def is_x86(case: Case, _lines: Lines) -> bool:
    """Whether the processor is known to be x86, by more than that it runs Linux."""
    named = case.given.platform is not None or case.given.host is not None or case.clue("platform") is not None
    return named or case.windows or any("x86_64" in clue.line for clue in case.clues.get("linux", ()))


def tls_library(_case: Case, lines: Lines) -> str | None:
    """A library that needs static TLS when none is left, by its path; ``slots`` if no library is named."""
    file = lines[0].get("library")
    return posixpath.normpath(file) if file else "slots" if lines[0].get("slots") else None


def tls_name(case: Case, lines: Lines) -> str:
    """Its name."""
    return posixpath.basename(tls_library(case, lines) or "")


def tls_path(case: Case, lines: Lines) -> str | None:
    """Its path, if the text has all of it."""
    path = tls_library(case, lines) or ""
    return path if posixpath.isabs(path) else None


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


def on_arm(case: Case, lines: Lines) -> bool:
    """Whether it happened on a processor of ARM."""
    arm = case.jetson or case.platform is Platform.LINUX_AARCH64
    return arm or any("aarch64" in (it.get("library") or "") for it in lines)


# ---------------------------------------------------------------------------------------------- broken releases


class _Broken(NamedTuple):
    """A broken release: the words by which the matrix's row of it is found."""

    framework: str
    platform: Platform
    words: str


def _broken(lines: Lines) -> _Broken:
    if any(it.get("hint") for it in lines):
        return _Broken("pytorch", Platform.WIN_64, "fbgemm.dll")
    return _Broken("jax", Platform.LINUX_64, "a flag of XLA is defined twice")


def _row(case: Case, lines: Lines) -> KnownBad | None:
    broken = _broken(lines)
    rows = case.knowledge.matrix.framework(broken.framework, broken.platform).known_bad
    return next((it for it in rows if broken.words in it.reason), None)


def broken_reason(case: Case, lines: Lines) -> str | None:
    """Why the matrix knows a release to be broken."""
    row = _row(case, lines)
    return None if row is None else row.reason


def broken_beside(case: Case, lines: Lines) -> str | None:
    """Another version of it in the text."""
    row, name = _row(case, lines), _broken(lines).framework
    version = parsed_version(case.version_of(name))
    other = row is not None and version is not None and not row.versions.contains(version.public)
    return f"{name} {version.public}" if version is not None and other else None


def broken_newer(case: Case, lines: Lines) -> str | None:
    """The releases after it, as a requirement."""
    row = _row(case, lines)
    newer = [] if row is None else [f">{it.version}" for it in row.versions if it.operator == "=="]
    return f"{_broken(lines).framework}{','.join(newer)}" if row is not None else None


def broken_platform(_case: Case, lines: Lines) -> str:
    """The platform on which it is broken."""
    return _broken(lines).platform.value


# ---------------------------------------------------------------------------------------------- files of one's own


def shadowed_module(case: Case, lines: Lines) -> str | None:
    """A module of a library, or of Python where the text is of GPUs, that is imported from elsewhere."""
    module = lines[0].get("module") or ""
    return module if module in _LIBRARIES or (module in _STANDARD and about_gpus(case)) else None


def module_is_pythons(_case: Case, lines: Lines) -> bool:
    """Whether it is one of Python's own."""
    return merged(lines).get("module") in _STANDARD


def framework_script(_case: Case, lines: Lines) -> bool:
    """Whether a script has the name of a framework."""
    return lines[0].get("module") in _FRAMEWORKS
