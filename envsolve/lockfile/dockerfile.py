"""``--format dockerfile``: an image that holds a Python lock, whole in one file and without a CUDA of its own.

The hashed requirements stand in the file as a here-document, which BuildKit knows (Dockerfile syntax 1.4 and newer,
docs.docker.com/reference/dockerfile, Here-Documents): nothing is copied from a build context. Its name is quoted, so
that nothing in it is expanded. What a new envsolve or matrix changes stands in comments, labels and variables, which
build no layer again. What the image leaves to its host is the driver (docs/containers.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envsolve.boundary.display import one_line
from envsolve.boundary.files import FileError
from envsolve.errors import Hint, UnsolvableError
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.facts import commented, facts_of
from envsolve.lockfile.formats import require_platforms
from envsolve.lockfile.header import lock_header
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.remarks import needs_library_path, use_remarks
from envsolve.lockfile.requirements_txt import index_options, lines_of_pins, read_lines
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from envsolve.model.release import PYTORCH_INDEX, Release
from envsolve.model.versions import LibcVersion

SYNTAX = "# syntax=docker/dockerfile:1"
"""The first line: a builder older than here-documents fetches one that knows them."""
END = "REQUIREMENTS"
"""The line that ends the requirements."""
_HERE_DOCUMENT = r"""
    ^[ \t]*(?i:COPY)\s+(?:--\S+\s+)*   # --chown and the like
    <<-?(["']?)(?P<end>\w+)\1\s+\S*requirements\S*[ \t]*\r?\n
    (?P<body>.*?)
    ^\t*(?P=end)[ \t\r]*$
"""
_REQUIREMENTS = "/opt/requirements.txt"
_PYTHON = "/usr/local/bin/python"
"""Where the image named python has its own."""
_USER = 1000
_MACHINES = {Platform.LINUX_64: "linux/amd64", Platform.LINUX_AARCH64: "linux/arm64"}
"""Docker's names of the platforms that NVIDIA's container toolkit gives a driver to."""
_RUNS_ENVSOLVE = (3, 11)
"""The oldest Python that envsolve itself runs in."""
_TRITON = "triton"
"""It calls a C compiler when it runs, under whatever name it is packaged: "Failed to find C compiler"
(github.com/pytorch/pytorch/issues/116696, triton-lang/triton, python/triton/runtime/build.py)."""


class _Base(NamedTuple):
    """A release of Debian that the image named python is built on, and its glibc."""

    debian: str
    glibc: LibcVersion


_BUSTER = _Base("buster", LibcVersion(2, 28))
_BULLSEYE = _Base("bullseye", LibcVersion(2, 31))
_BOOKWORM = _Base("bookworm", LibcVersion(2, 36))
_TRIXIE = _Base("trixie", LibcVersion(2, 41))
"""The glibc of each: github.com/mayeut/pep600_compliance."""
_LAST_BASES = {(3, 5): (_BUSTER,), (3, 6): (_BULLSEYE,), (3, 7): (_BOOKWORM,), (3, 8): (_BOOKWORM,)}
"""The newest base that was built for a Python until its end (github.com/docker-library/python, commits fd17739 of
2020-08, d162396 of 2021-12, 9a7a540 of 2023-06 and 4babb0e of 2024-09)."""
_FIRST_WITH_BOTH = (3, 9)
_BASES = (_BOOKWORM, _TRIXIE)
"""What there is for every newer Python (the same, commits cd33ad0 of 2025-09 and 4f07059 of 2026-06). The older goes
first: from glibc 2.41 on no library is loaded that requires an executable stack, as those of PyTorch, JAX and
CTranslate2 did (lists.gnu.org/archive/html/info-gnu/2025-01/msg00014.html, github.com/OpenNMT/CTranslate2/issues/1849,
github.com/conda-forge/pytorch-cpu-feedstock/issues/350)."""


def write(lock: Lock, answer: Answer | None = None) -> str:
    """The content of the file, the same bytes for the same lock; ``answer`` has the stack that shaped it.

    Raises UnsolvableError where no base image does, or where the wheels bring no CUDA; OutsideError as
    :func:`envsolve.lockfile.requirements_txt.write`, UsageError for a lock that is not for Linux.
    """
    if lock.interpreter is not None:
        require_platforms([lock.interpreter.platform], "dockerfile")
    releases = () if answer is None else tuple(choice.release for choice in answer.solution.choices)
    if answer is not None:
        _require_own_cuda(answer)
    return "\n".join(_lines(lock.with_digest("dockerfile"), answer, _base_of(lock, releases))) + "\n"


def read(text: str) -> Lock:
    """The lock in a Dockerfile that holds requirements as a here-document.

    Raises FileError where it holds none, and as :func:`envsolve.lockfile.requirements_txt.read`.
    """
    requirements = requirements_in(text)
    if requirements is None:
        raise FileError("it is a Dockerfile without requirements from envsolve")
    return read_lines(requirements, text)


def requirements_in(text: str) -> str | None:
    """The requirements that a Dockerfile holds as a here-document; None where it holds none."""
    found = _here_document(text)
    return None if found is None else found["body"]


def instructions_in(text: str) -> tuple[str, ...]:
    """The lines of the instructions in a Dockerfile, but for the requirements and comments."""
    found = _here_document(text)
    around = text if found is None else text[: found.start("body")] + text[found.end("body") :]
    lines = (line.strip() for line in around.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


def _here_document(text: str) -> re.Match[str] | None:
    return re.search(_HERE_DOCUMENT, text, re.VERBOSE | re.MULTILINE | re.DOTALL)


def _lines(lock: Lock, answer: Answer | None, base: _Base) -> Iterator[str]:
    yield SYNTAX
    yield from lock_header(lock)
    if answer is not None:
        yield from use_remarks(answer)
    yield "#"
    yield from _how_to_use(lock)
    yield from commented(facts_of(lock))
    yield ""
    yield f"# Python {_minor(lock)} on Debian {base.debian}, glibc {base.glibc}. This tag may get another image."
    yield "# For a fixed image, write python@sha256:... (docs/containers.md)."
    yield f"FROM python:{_minor(lock)}-slim-{base.debian}"
    yield ""
    yield f"RUN useradd --create-home --uid {_USER} user"
    yield ""
    yield f'COPY <<"{END}" {_REQUIREMENTS}'
    yield from lines_of_pins(lock)
    yield END
    yield ""
    yield from _installation(lock)
    yield ""
    yield from _settings(lock)
    yield f"USER {_USER}"
    yield "WORKDIR /home/user"
    yield 'CMD ["python"]'


def _how_to_use(lock: Lock) -> Iterator[str]:
    gpus = " --gpus all" if _has_gpu(lock) else ""
    yield f"# Build:  docker build --platform {_machine(lock)} -t NAME - < THIS_FILE  (BuildKit; sends no other file)"
    if _may_want_login(lock):
        yield "#   if an index needs a login, add --secret id=netrc,src=$HOME/.netrc, which no layer stores"
    yield f"# Run:    docker run --rm -it{gpus} NAME"
    if gpus:
        yield "#   the driver is the host's, through NVIDIA's container toolkit; CUDA is in the wheels, not in the base"
    yield f"# Prove:  docker run --rm{gpus} {_proof(lock)}"
    yield "# Extend: FROM NAME in your own Dockerfile, because envsolve overwrites this one. A .dockerignore next to it"
    yield "#   excludes files that the image does not need (.git, .venv, data, checkpoints)."
    if any(_TRITON in pin.name.split("-") for pin in lock.pins):
        yield "#   Triton, and so torch.compile, calls a C compiler, which this image does not have:"
        yield "#   USER root, RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev, USER user"


def _proof(lock: Lock) -> str:
    """Kernels run in the image's environment, by an envsolve that is no part of it."""
    proves = f"envsolve validate --python {_PYTHON}"
    if _python(lock)[:2] < _RUNS_ENVSOLVE:
        own = ".".join(map(str, _RUNS_ENVSOLVE))
        return f'-v "$(command -v uv)":/tmp/uv NAME /tmp/uv tool run --python {own} {proves}'
    return f"NAME sh -c '{_PYTHON} -m venv /tmp/v && /tmp/v/bin/pip install -q envsolve && /tmp/v/bin/{proves}'"


def _may_want_login(lock: Lock) -> bool:
    return any(PYTORCH_INDEX not in option for option in index_options(lock))


def _installation(lock: Lock) -> Iterator[str]:
    """The cache of pip is a mount of the builder: no layer holds it, and no other build fetches the same again."""
    pins = lock.pins
    wheels_alone = all(any(file.is_wheel for file in pin.files) for pin in pins)
    if not wheels_alone:
        yield "# Some of these have no wheel, so pip builds them. Many need a compiler, which this image does not have."
    yield "RUN --mount=type=cache,target=/root/.cache/pip \\"
    if _may_want_login(lock):
        yield "    --mount=type=secret,id=netrc,target=/root/.netrc \\"
    only = " --only-binary :all:" if wheels_alone else ""
    yield f"    pip install --require-hashes --no-deps{only} -r {_REQUIREMENTS}"


def _settings(lock: Lock) -> Iterator[str]:
    """What NVIDIA's container toolkit reads, and what requests a GPU that no driver of the image could serve.

    There is no NVIDIA_REQUIRE_DRIVER: the toolkit compares semantic versions, and 580.65.06 is none
    (github.com/NVIDIA/nvidia-container-toolkit, internal/requirements/constraints/property.go).
    """
    if not _has_gpu(lock):
        return
    facts = facts_of(lock)
    labels = [f'envsolve.{key.replace("_", "-")}="{facts[key]}"' for key in ("minimum_driver", "cuda") if key in facts]
    if labels:
        yield f"LABEL {' '.join(labels)}"
    yield "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def _has_gpu(lock: Lock) -> bool:
    """Whether a GPU is made use of, by the stack or, in a lock that another tool made, by NVIDIA's wheels."""
    facts = facts_of(lock)
    return "cuda" in facts or (not facts and any(pin.name.startswith("nvidia-") for pin in lock.pins))


def _machine(lock: Lock) -> str:
    return _MACHINES[Platform(lock.platform)]


def _python(lock: Lock) -> tuple[int, int, int]:
    assert lock.interpreter is not None  # else there is no image for it
    return lock.interpreter.python


def _minor(lock: Lock) -> str:
    return ".".join(map(str, _python(lock)[:2]))


def _require_own_cuda(answer: Answer) -> None:
    """Raise UnsolvableError for a wheel that takes CUDA from the system, of which the image has none."""
    if not needs_library_path(answer.solution):
        return
    labels = " and ".join(choice.release.label for choice in answer.solution.choices)
    raise UnsolvableError(
        "no-cuda-in-image",
        f"{labels} has no CUDA libraries in its wheels, and neither has the image",
        ("it would run only on the CPU, or not start",),
        (
            Hint("lock and install conda packages, which include CUDA: --format explicit"),
            Hint("use a newer release with CUDA in its wheels"),
        ),
    )


def _base_of(lock: Lock, releases: Sequence[Release]) -> _Base:
    """The first base whose glibc every pinned package can be loaded with."""
    if lock.interpreter is None:
        hint = Hint("lock the requirements for one: envsolve --python 3.12 -r FILE --format dockerfile")
        raise UnsolvableError("no-base-image", "the lock does not record its Python version", hints=(hint,))
    python = _python(lock)
    bases = _LAST_BASES.get(python[:2], _BASES if python[:2] >= _FIRST_WITH_BOTH else ())
    if not bases:
        message = f"no known image of Python {_minor(lock)} has a pip that installs the wheels of this lock"
        raise UnsolvableError("no-base-image", message, hints=(Hint("choose another Python, 3.5 or newer"),))
    found = next((base for base in bases if _too_new(lock, releases, base) is None), None)
    if found is not None:
        return found
    newest = bases[-1]
    raise UnsolvableError(
        "no-base-image",
        f"{_too_new(lock, releases, newest)} needs a newer glibc than an image of Python {_minor(lock)} has",
        (f"the newest is python:{_minor(lock)}-slim-{newest.debian}, which has glibc {newest.glibc}",),
        (Hint("give the GPU and the driver of the target, so that the glibc of this machine is not used"),),
    )


def _too_new(lock: Lock, releases: Sequence[Release], base: _Base) -> str | None:
    """What cannot be installed or loaded with the glibc of ``base``; None where everything can."""
    for release in releases:
        if release.glibc is not None and release.glibc > base.glibc:
            return release.label
    if lock.glibc is not None and LibcVersion.parse(lock.glibc) <= base.glibc:
        return None
    ranks = Ranks(Interpreter(_python(lock), Platform(lock.platform), base.glibc))

    def fits(pin: Pin) -> bool:
        return any(not file.is_wheel or ranks.of_wheel(file.name) is not None for file in pin.files)

    pins = (pin for pin in lock.pins if not pin.marker)  # whether the others are installed is not known here
    return next((one_line(f"{pin.name} {pin.version}") for pin in pins if not fits(pin)), None)
