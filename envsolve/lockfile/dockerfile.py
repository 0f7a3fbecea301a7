"""``--format dockerfile``: a self-contained image with a Python lock, and with no CUDA except that of its wheels.

The hashed requirements are a here-document in the file, which BuildKit supports (Dockerfile syntax 1.4 and newer,
docs.docker.com/reference/dockerfile, Here-Documents). Nothing is copied from a build context. The delimiter is quoted,
so that nothing in the document is expanded. Whatever changes with a new envsolve or matrix is in comments, labels and
variables, which rebuild no layer. The driver is left to the host (docs/containers.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.lockfile.image import (
    BUILDS_REMARK,
    COMPILER_REMARK,
    MACHINES,
    PYTHON,
    REQUIREMENTS,
    RUNS_ENVSOLVE,
    Base,
    HereDocuments,
    calls_compiler,
    has_gpu,
    image_header,
    image_text,
    labels_of,
    may_want_login,
    minor,
    pip_install,
    python_of,
    wheels_alone,
)
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.requirements_txt import lines_of_pins
from envsolve.model.host import Platform
from envsolve.model.installing_envsolve import REMARK, REQUIREMENT
from envsolve.model.solution import Solution

SYNTAX = "# syntax=docker/dockerfile:1"
"""The first line. A builder without here-documents fetches a frontend that supports them."""
END = "REQUIREMENTS"
"""The line that ends the requirements."""
ONLY_LINUX = "NVIDIA's container toolkit supports only Linux containers (on Windows, in WSL2)"
"""Why images are only for Linux."""
_DOCUMENTS = HereDocuments(
    "a Dockerfile",
    r"""
    ^[ \t]*(?i:COPY)\s+(?:--\S+\s+)*   # --chown and the like
    <<-?(["']?)(?P<end>\w+)\1\s+\S*requirements\S*
    """,
)
_USER = 1000


def write(lock: Lock, solution: Solution | None = None) -> str:
    """Return the content of the file, byte for byte the same for the same lock.

    ``solution`` is the stack that the lock was made for. Raises UnsolvableError if no base image fits, or if the wheels
    bring no CUDA. Raises OutsideError like :func:`envsolve.lockfile.requirements_txt.write`. Raises UsageError for a
    lock that is not for Linux, or that has packages from this machine.
    """
    return image_text(lock, solution, "dockerfile", _lines, read)


read = _DOCUMENTS.read
requirements_in = _DOCUMENTS.requirements_in
document_in = _DOCUMENTS.document_in


def _lines(lock: Lock, solution: Solution | None, base: Base) -> Iterator[str]:
    yield SYNTAX
    yield from image_header(lock, solution, base, _how_to_use(lock))
    yield f"FROM python:{minor(lock)}-slim-{base.debian}"
    yield ""
    yield f"RUN useradd --create-home --uid {_USER} user"
    yield ""
    yield f'COPY <<"{END}" {REQUIREMENTS}'
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
    gpus = " --gpus all" if has_gpu(lock) else ""
    yield f"# Build:  docker build --platform {_machine(lock)} -t NAME - < THIS_FILE  (BuildKit; sends no other file)"
    if may_want_login(lock):
        yield "#   if an index needs a login, add --secret id=netrc,src=$HOME/.netrc, which no layer stores"
    yield f"# Run:    docker run --rm -it{gpus} NAME"
    if gpus:
        yield "#   the driver is the host's, through NVIDIA's container toolkit; CUDA is in the wheels, not in the base"
    yield f"# Test:   docker run --rm{gpus} {_proof(lock)}"
    yield f"#   {REMARK}"
    yield "# Extend: FROM NAME in your own Dockerfile, because envsolve overwrites this one. A .dockerignore next to it"
    yield "#   excludes files that the image does not need (.git, .venv, data, checkpoints)."
    if calls_compiler(lock):
        yield COMPILER_REMARK
        yield "#   USER root, RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev, USER user"


def _proof(lock: Lock) -> str:
    """Run kernels in the image's environment, with an envsolve that is not part of it."""
    proves = f"envsolve validate --python {PYTHON}"
    if python_of(lock)[:2] < RUNS_ENVSOLVE:
        own = ".".join(map(str, RUNS_ENVSOLVE))
        return f'-v "$(command -v uv)":/tmp/uv NAME /tmp/uv tool run --python {own} --from {REQUIREMENT} {proves}'
    return f"NAME sh -c '{PYTHON} -m venv /tmp/v && /tmp/v/bin/pip install -q $0 && /tmp/v/bin/{proves}' {REQUIREMENT}"


def _installation(lock: Lock) -> Iterator[str]:
    """Install with pip's cache as a mount of the builder, so that no layer contains it and builds share it."""
    if not wheels_alone(lock):
        yield BUILDS_REMARK
    yield "RUN --mount=type=cache,target=/root/.cache/pip \\"
    if may_want_login(lock):
        yield "    --mount=type=secret,id=netrc,target=/root/.netrc \\"
    yield f"    {pip_install(lock)}"


def _settings(lock: Lock) -> Iterator[str]:
    """The labels of an image for a GPU, and the variables that make NVIDIA's container toolkit provide GPUs.

    There is no NVIDIA_REQUIRE_DRIVER, because the toolkit compares semantic versions, and 580.65.06 is not one
    (github.com/NVIDIA/nvidia-container-toolkit, internal/requirements/constraints/property.go).
    """
    if not has_gpu(lock):
        return
    labels = [f'{name}="{value}"' for name, value in labels_of(lock).items()]
    if labels:
        yield f"LABEL {' '.join(labels)}"
    yield "ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility"


def _machine(lock: Lock) -> str:
    return MACHINES[Platform(lock.platform)]
