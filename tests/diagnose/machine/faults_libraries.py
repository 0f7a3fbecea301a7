"""Faults of library paths, of the loader's cache and of library files, each with the findings that it gives."""

from __future__ import annotations

from envsolve.model.finding import Severity
from tests.diagnose.machine.recorded import (
    CACHED,
    MULTIARCH,
    TOOLKIT,
    Case,
    library,
)

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
CUDART = "srv/cuda-11.8/lib64/libcudart.so.11.8.89"
LIBRARY_PATH = {"LD_LIBRARY_PATH": "/srv/cuda-11.8/lib64"}

LIBRARIES: dict[str, tuple[Case, dict[str, Severity]]] = {
    "an empty entry": (
        Case(environ={"LD_LIBRARY_PATH": ":/usr/lib"}),
        {"library-path-empty-entry": WARNING},
    ),
    "a relative entry": (Case(environ={"LD_LIBRARY_PATH": "lib"}), {"library-path-empty-entry": WARNING}),
    "an empty variable": (Case(environ={"LD_LIBRARY_PATH": ""}), {}),
    "a toolkit on the library path": (
        Case({CUDART: library("libcudart")}, environ=LIBRARY_PATH),
        {"cuda-on-library-path": WARNING},
    ),
    "an environment on the library path": (
        Case(
            {"opt/conda/lib/libcudart.so.12": library("libcudart")},
            environ={"CONDA_PREFIX": "/opt/conda", "LD_LIBRARY_PATH": "/opt/conda/lib"},
        ),
        {},
    ),
    "another environment on the library path": (
        Case(
            {"opt/conda2/lib/libcudart.so.12": library("libcudart")},
            environ={"CONDA_PREFIX": "/opt/conda", "LD_LIBRARY_PATH": "/opt/conda2/lib"},
        ),
        {"cuda-on-library-path": WARNING},
    ),
    "a directory of CUDA that is gone": (
        Case(environ=LIBRARY_PATH),
        {"library-path-missing-directory": INFO},
    ),
    "the directory for compatibility of an image of CUDA": (
        Case(environ={"LD_LIBRARY_PATH": "/usr/local/cuda/compat/lib"}),
        {},
    ),
    "a directory of libraries on PATH": (
        Case({CUDART: library("libcudart")}, environ={"PATH": "/usr/bin:/srv/cuda-11.8/lib64"}),
        {"libraries-on-program-path": WARNING},
    ),
    "a toolkit in the cache": (
        Case({}, cached=(*CACHED.items(), ("libcudart.so.12", f"/{TOOLKIT}/lib64/libcudart.so.12"))),
        {"cuda-in-loader-cache": INFO},
    ),
    "two copies in the cache": (
        Case(
            {"opt/a/libcudnn.so.9": library("a"), "opt/b/libcudnn.so.9": library("b")},
            cached=(
                *CACHED.items(),
                ("libcudnn.so.9", "/opt/a/libcudnn.so.9"),
                ("libcudnn.so.9", "/opt/b/libcudnn.so.9"),
            ),
        ),
        {"cuda-in-loader-cache": WARNING},
    ),
    "a broken link in a toolkit": (
        Case({f"{TOOLKIT}/lib64/libcudnn.so.9@": "libcudnn.so.9.1.0"}),
        {"library-link-broken": WARNING},
    ),
    "a broken link of the driver that nobody asks for": (
        Case({f"{MULTIARCH}/libnvidia-encode.so.1@": "libnvidia-encode.so.570.86.10"}),
        {"library-link-broken": WARNING},
    ),
    "a link that leads in a circle": (
        Case({f"{TOOLKIT}/lib64/libcudnn.so.9@": "libcudnn.so.9"}),
        {"library-link-broken": WARNING},
    ),
    "an empty library in a toolkit": (
        Case({f"{TOOLKIT}/lib64/libcudnn.so.9": ""}),
        {"library-empty": WARNING},
    ),
    "an empty library where the loader looks": (
        Case({f"{MULTIARCH}/libcudnn.so.9": ""}),
        {"library-empty": ERROR},
    ),
    "a placeholder where the loader looks": (
        Case({f"{MULTIARCH}/libcudnn.so.9": "version https://git-lfs.github.com/spec/v1\n"}),
        {"library-damaged": ERROR},
    ),
    "a truncated library where the loader looks": (
        Case({f"{MULTIARCH}/libcudnn.so.9": library("libcudnn")[:-40]}),
        {"library-damaged": ERROR},
    ),
    "a text in the place of a library, in a directory of LD_LIBRARY_PATH": (
        Case({"opt/mine/libcudart.so.12": "hello\n"}, environ={"LD_LIBRARY_PATH": "/opt/mine"}),
        {"library-damaged": ERROR, "cuda-on-library-path": WARNING},
    ),
    "a library for another processor in a toolkit": (
        Case({f"{TOOLKIT}/lib64/libcudnn.so.9": library(other=True)}),
        {"library-for-other-machine": WARNING},
    ),
    "libraries of 32 bits where they belong": (Case({"usr/lib/libcudart.so.9": library(other=True)}), {}),
}
