"""``--format apptainer``: a self-contained definition file for Apptainer and Singularity, for the same image.

The hashed requirements are here-documents in ``%post``. The builder scans the file section by section and refuses a
section of 64 KiB or more (github.com/apptainer/apptainer, pkg/build/types/parser/deffile.go: bufio.Scanner). So a long
lock has several ``%post`` sections, which the builder joins. A line that begins with ``%`` would start another section,
but here every line begins with ``#``, a name or an option. Outside of comments ``{{ NAME }}`` would be a build argument
(internal/pkg/build/args/reader.go), but no pin has braces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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

_END = "REQUIREMENTS"
"""The line that ends a part of the requirements."""
ONLY_LINUX = "Apptainer runs only on Linux (on Windows, in WSL2)"
"""Why images are only for Linux."""
_DOCUMENTS = HereDocuments(
    "a definition file",
    r"""
    ^[ \t]*cat[ \t]+>>?[ \t]*\S*requirements\S*[ \t]+
    <<-?[ \t]*(["']?)(?P<end>\w+)\1
    """,
)
_LONGEST_PART = 48 * 1024
"""Bytes of requirements in one section."""
_LOGIN = "/mnt"
"""An existing directory that the base image does not use. A bind mount in %post needs one (sylabs/singularity#2766)."""


def write(lock: Lock, solution: Solution | None = None) -> str:
    """Return the content of the file, byte for byte the same for the same lock.

    ``solution`` is the stack that the lock was made for. Raises UnsolvableError if no base image fits, or if the wheels
    bring no CUDA. Raises OutsideError like :func:`envsolve.lockfile.requirements_txt.write`. Raises UsageError for a
    lock that is not for Linux, or that has packages from this machine.
    """
    return image_text(lock, solution, "apptainer", _lines, read)


read = _DOCUMENTS.read
requirements_in = _DOCUMENTS.requirements_in
document_in = _DOCUMENTS.document_in


def _lines(lock: Lock, solution: Solution | None, base: Base) -> Iterator[str]:
    yield from image_header(lock, solution, base, _how_to_use(lock))
    yield "Bootstrap: docker"
    yield f"From: python:{minor(lock)}-slim-{base.debian}"
    for part in _parts(lines_of_pins(lock)):
        yield ""
        yield "%post"
        yield f'cat >> {REQUIREMENTS} <<"{_END}"'
        yield from part
        yield _END
    yield ""
    yield "%post"
    yield from _installation(lock)
    yield ""
    yield "%environment"
    yield "    # The home directory and the variables of the host are there too: these would add or replace packages."
    yield "    export PYTHONNOUSERSITE=1"
    yield "    unset PYTHONPATH PYTHONHOME"
    labels = labels_of(lock) if has_gpu(lock) else {}
    if labels:
        yield ""
        yield "%labels"
        yield from (f"    {name} {value}" for name, value in labels.items())
    yield ""
    yield "%runscript"
    yield '    exec python "$@"'


def _parts(lines: Iterable[str]) -> Iterator[list[str]]:
    """``lines`` in parts that each fit into a section; one empty part for no lines."""
    part: list[str] = []
    size = 0
    for line in lines:
        length = len(line.encode()) + 1
        if part and size + length > _LONGEST_PART:
            yield part
            part, size = [], 0
        part.append(line)
        size += length
    yield part


def _how_to_use(lock: Lock) -> Iterator[str]:
    nv = " --nv" if has_gpu(lock) else ""
    machine = MACHINES[Platform(lock.platform)]
    yield f"# Build:  apptainer build NAME.sif THIS_FILE  (on {machine}; or singularity in place of apptainer)"
    if may_want_login(lock):
        yield f"#   if an index needs a login, add --bind DIRECTORY:{_LOGIN}: its file netrc is read and not stored"
    yield f"# Run:    apptainer run{nv} NAME.sif"
    if nv:
        yield "#   --nv adds the driver of the host; CUDA is in the wheels, not in the base"
    yield f"# Test:   apptainer exec{nv} {_proof(lock)}"
    yield f"#   {REMARK}"
    yield "# Extend: Bootstrap: localimage and From: NAME.sif in your own file, because envsolve overwrites this one."
    if calls_compiler(lock):
        yield COMPILER_REMARK
        yield "#   apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev, in %post of your file"


def _proof(lock: Lock) -> str:
    """Run kernels in the image's environment, with an envsolve that is not part of it: /tmp is the host's."""
    proves = f"envsolve validate --python {PYTHON}"
    if python_of(lock)[:2] < RUNS_ENVSOLVE:
        own = ".".join(map(str, RUNS_ENVSOLVE))
        return (
            f'--bind "$(command -v uv)":/opt/uv NAME.sif /opt/uv tool run --python {own} --from {REQUIREMENT} {proves}'
        )
    made = f'd=$(mktemp -d) && trap "rm -rf $d" EXIT && {PYTHON} -m venv $d'
    return f"NAME.sif sh -c '{made} && $d/bin/pip install -q $0 && $d/bin/{proves}' {REQUIREMENT}"


def _installation(lock: Lock) -> Iterator[str]:
    if not wheels_alone(lock):
        yield f"    {BUILDS_REMARK}"
    login = f"NETRC={_LOGIN}/netrc " if may_want_login(lock) else ""
    yield f"    {login}{pip_install(lock, ' --no-cache-dir')}"
