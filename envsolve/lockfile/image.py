"""Common parts of the image formats: the base image, requirements on the wheels, and how to test the image.

An image contains a Python lock, and no CUDA except that of its wheels. The driver is left to the host
(docs/containers.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from envsolve.boundary.display import one_line
from envsolve.boundary.files import FileError
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.lockfile.facts import commented, facts_of
from envsolve.lockfile.formats import require_linux_for_image
from envsolve.lockfile.header import lock_header
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.remarks import needs_library_path, usage_remarks
from envsolve.lockfile.requirements_txt import index_options, read_lines
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from envsolve.model.reference import is_path
from envsolve.model.release import PYTORCH_INDEX, Release
from envsolve.model.solution import Solution
from envsolve.model.versions import LibcVersion

REQUIREMENTS = "/opt/requirements.txt"
"""The path in the image of the requirements that it was built from."""
PYTHON = "/usr/local/bin/python"
"""The path of Python in the image named python."""
MACHINES = {Platform.LINUX_64: "linux/amd64", Platform.LINUX_AARCH64: "linux/arm64"}
"""Docker's names of the platforms that images exist for."""
RUNS_ENVSOLVE = (3, 11)
"""The oldest Python that envsolve itself supports."""
_TRITON = "triton"
"""It calls a C compiler at run time, under whatever name it is packaged: "Failed to find C compiler"
(github.com/pytorch/pytorch/issues/116696, triton-lang/triton, python/triton/runtime/build.py)."""
BUILDS_REMARK = (
    "# Some of these have no wheel, so pip builds them. Many need a compiler, which this image does not have."
)
COMPILER_REMARK = "#   Triton, and so torch.compile, calls a C compiler, which this image does not have:"


class HereDocuments:
    """How the files of one image format contain requirements: as here-documents, each opened by an instruction.

    ``kind`` is the name of such a file in messages. ``opening`` is a verbose regular expression for the lines that open
    a here-document, with the group ``end``.
    """

    def __init__(self, kind: str, opening: str) -> None:
        body = r"[ \t]*\r?\n (?P<body>.*?) ^\t*(?P=end)[ \t\r]*$"
        self._kind, self._found = kind, re.compile(opening + body, re.VERBOSE | re.MULTILINE | re.DOTALL)

    def read(self, text: str) -> Lock:
        """Return the lock in a file. Raises FileError if it has none, and like reading requirements."""
        requirements = self.requirements_in(text)
        if requirements is None:
            raise FileError(f"it is {self._kind} without requirements from envsolve")
        return read_lines(requirements, text)

    def requirements_in(self, text: str) -> str | None:
        """Return the requirements in the here-documents of a file, or None if it has none."""
        bodies = [found["body"] for found in self._found.finditer(text)]
        return "".join(bodies) if bodies else None

    def document_in(self, text: str) -> tuple[str, ...]:
        """Return the lines of a file, without the requirements and comments."""
        around, at = "", 0
        for found in self._found.finditer(text):
            around += text[at : found.start("body")]
            at = found.end("body")
        lines = (line.strip() for line in (around + text[at:]).splitlines())
        return tuple(line for line in lines if line and not line.startswith("#"))


class Base(NamedTuple):
    """A Debian release that the image named python is based on, and its glibc."""

    debian: str
    glibc: LibcVersion


_BUSTER = Base("buster", LibcVersion(2, 28))
_BULLSEYE = Base("bullseye", LibcVersion(2, 31))
_BOOKWORM = Base("bookworm", LibcVersion(2, 36))
_TRIXIE = Base("trixie", LibcVersion(2, 41))
"""The glibc of each: github.com/mayeut/pep600_compliance."""
_LAST_BASES = {(3, 5): (_BUSTER,), (3, 6): (_BULLSEYE,), (3, 7): (_BOOKWORM,), (3, 8): (_BOOKWORM,)}
"""The newest base that was built for a Python until its end (github.com/docker-library/python, commits fd17739 of
2020-08, d162396 of 2021-12, 9a7a540 of 2023-06 and 4babb0e of 2024-09)."""
_FIRST_WITH_BOTH = (3, 9)
_BASES = (_BOOKWORM, _TRIXIE)
"""The bases for every newer Python (the same, commits cd33ad0 of 2025-09 and 4f07059 of 2026-06). The older one is
first, because from glibc 2.41 on libraries that require an executable stack are not loaded, and PyTorch, JAX and
CTranslate2 had such libraries (lists.gnu.org/archive/html/info-gnu/2025-01/msg00014.html,
github.com/OpenNMT/CTranslate2/issues/1849, github.com/conda-forge/pytorch-cpu-feedstock/issues/350)."""


Lines = Callable[[Lock, Solution | None, Base], Iterator[str]]
"""Yields the lines of a file of one image format."""


def image_text(
    lock: Lock, solution: Solution | None, format_name: str, lines: Lines, read: Callable[[str], Lock]
) -> str:
    """Return the content of the file of an image with ``lock``, with the errors of :func:`_base_for`."""
    base = _base_for(lock, solution, format_name)

    def text_of(lock: Lock) -> str:
        return "\n".join(lines(lock, solution, base)) + "\n"

    return text_of(lock.with_digest(text_of, read))


def image_header(lock: Lock, solution: Solution | None, base: Base, how_to_use: Iterable[str]) -> Iterator[str]:
    """Yield the comments above the base image: the header of the lock, how to use the image, and what its base is."""
    yield from lock_header(lock)
    if solution is not None:
        yield from usage_remarks(solution)
    yield "#"
    yield from how_to_use
    yield from commented(facts_of(lock))
    yield ""
    yield f"# Python {minor(lock)} on Debian {base.debian}, glibc {base.glibc}. This tag may get another image."
    yield "# For a fixed image, write python@sha256:... (docs/containers.md)."


def _base_for(lock: Lock, solution: Solution | None, format_name: str) -> Base:
    """Return the base of an image with ``lock``. ``solution`` is the stack that the lock was made for.

    Raises UsageError for a lock that is not for Linux, or that has packages from this machine. Raises UnsolvableError
    if no base has what the packages need, or if the wheels bring no CUDA.
    """
    if lock.interpreter is not None:
        require_linux_for_image([lock.interpreter.platform], format_name)
    _require_remote(lock)
    releases = () if solution is None else tuple(choice.release for choice in solution.choices)
    if solution is not None:
        _require_own_cuda(solution)
    return _base_of(lock, releases, format_name)


def python_of(lock: Lock) -> tuple[int, int, int]:
    """Return the Python version of ``lock``."""
    assert lock.interpreter is not None  # locks without one have no image
    return lock.interpreter.python


def minor(lock: Lock) -> str:
    """Return the Python minor of the image, as in the tags of its base."""
    return ".".join(map(str, python_of(lock)[:2]))


def has_gpu(lock: Lock) -> bool:
    """Whether a GPU is used: by the stack, or in another tool's lock by NVIDIA's wheels."""
    facts = facts_of(lock)
    return "cuda" in facts or (not facts and any(pin.name.startswith("nvidia-") for pin in lock.pins))


def labels_of(lock: Lock) -> dict[str, str]:
    """Return the labels of an image for a GPU: the lowest driver and CUDA, if known."""
    facts = facts_of(lock)
    return {f"envsolve.{key.replace('_', '-')}": str(facts[key]) for key in ("minimum_driver", "cuda") if key in facts}


def may_want_login(lock: Lock) -> bool:
    """Whether an index may require a login. PyTorch's does not."""
    return any(PYTORCH_INDEX not in option for option in index_options(lock))


def wheels_alone(lock: Lock) -> bool:
    """Whether every package has a wheel, so that nothing is built."""
    return all(any(file.is_wheel for file in pin.files) for pin in lock.pins)


def calls_compiler(lock: Lock) -> bool:
    """Whether a package calls a C compiler at run time."""
    return any(_TRITON in pin.name.split("-") for pin in lock.pins)


def pip_install(lock: Lock, options: str = "") -> str:
    """Return the command that installs the requirements in the image, with more ``options`` for pip."""
    only = " --only-binary :all:" if wheels_alone(lock) else ""
    return f"pip install{options} --require-hashes --no-deps{only} -r {REQUIREMENTS}"


def _require_remote(lock: Lock) -> None:
    """Raise UsageError for a package from a directory of this machine, which the image builder cannot read."""
    for pin in lock.pins:
        place = pin.files[0].url if pin.index_url is None else pin.index_url or lock.default_index
        if place.startswith("file:") or is_path(place):
            raise UsageError(
                "local-package-in-image",
                f"an image cannot have {pin.name}, which is from a folder of this machine",
                (without_secrets(place),),
                (Hint("serve the folder over HTTP, and use its URL"),),
            )


def _require_own_cuda(solution: Solution) -> None:
    """Raise UnsolvableError for a wheel that uses the system's CUDA, which an image does not have."""
    if not needs_library_path(solution):
        return
    labels = " and ".join(choice.release.label for choice in solution.choices)
    raise UnsolvableError(
        "no-cuda-in-image",
        f"{labels} has no CUDA libraries in its wheels, and neither has the image",
        ("it would run only on the CPU, or not start",),
        (
            Hint("lock and install conda packages, which include CUDA: --format explicit"),
            Hint("use a newer release with CUDA in its wheels"),
        ),
    )


def _base_of(lock: Lock, releases: Sequence[Release], format_name: str) -> Base:
    """The first base with a glibc that every pinned package can be loaded with."""
    if lock.interpreter is None:
        hint = Hint(f"lock the requirements for one: envsolve --python 3.12 -r FILE --format {format_name}")
        raise UnsolvableError("no-base-image", "the lock does not record its Python version", hints=(hint,))
    python = python_of(lock)
    bases = _LAST_BASES.get(python[:2], _BASES if python[:2] >= _FIRST_WITH_BOTH else ())
    if not bases:
        message = f"no known image of Python {minor(lock)} has a pip that installs the wheels of this lock"
        raise UnsolvableError("no-base-image", message, hints=(Hint("choose another Python, 3.5 or newer"),))
    found = next((base for base in bases if _too_new(lock, releases, base) is None), None)
    if found is not None:
        return found
    newest = bases[-1]
    raise UnsolvableError(
        "no-base-image",
        f"{_too_new(lock, releases, newest)} needs a newer glibc than an image of Python {minor(lock)} has",
        (f"the newest is python:{minor(lock)}-slim-{newest.debian}, which has glibc {newest.glibc}",),
        (Hint("give the GPU and the driver of the target, so that the glibc of this machine is not used"),),
    )


def _too_new(lock: Lock, releases: Sequence[Release], base: Base) -> str | None:
    """What cannot be installed or loaded with the glibc of ``base``, or None if everything can."""
    for release in releases:
        if release.glibc is not None and release.glibc > base.glibc:
            return release.label
    if lock.glibc is not None and LibcVersion.parse(lock.glibc) <= base.glibc:
        return None
    ranks = Ranks(Interpreter(python_of(lock), Platform(lock.platform), base.glibc))

    def fits(pin: Pin) -> bool:
        return any(not file.is_wheel or ranks.of_wheel(file.name) is not None for file in pin.files)

    pins = (pin for pin in lock.pins if not pin.marker)  # pins with markers may not be installed
    return next((one_line(f"{pin.name} {pin.version}") for pin in pins if not fits(pin)), None)
