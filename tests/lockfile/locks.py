"""Python locks to write: a stack for an RTX 3090 with plain packages, and locks that hypothesis draws."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from envsolve.app.request.command import recorded_options
from envsolve.app.solve.solving import stacks_of
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.lock import Lock, Made
from envsolve.lockfile.stack import stack_of
from envsolve.matrix import Matrix
from envsolve.model.host import Platform
from envsolve.model.package import PackageFile, Pin
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request, parse_versions
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver

INDEX = "https://index.example.org/simple"
CUDA_INDEX = "https://cuda.example.org/whl/cu130"
FILES = "https://files.example.org/packages"
MARKERS = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "python_full_version": "3.11.7",
    "python_version": "3.11",
    "sys_platform": "linux",
}
"""The values of markers on the machine that the locks are for."""


def file(name: str, digit: str = "a", **more: object) -> PackageFile:
    """A file of an index with a sha256 of one digit throughout."""
    return PackageFile(name, f"{FILES}/{name}", (("sha256", digit * 64),))._replace(**more)  # type: ignore[arg-type]


PINS = (
    Pin(
        "torch",
        "2.14.1+cu130",
        (file("torch-2.14.1+cu130-cp311-cp311-manylinux_2_28_x86_64.whl", "1", size=812_000_000),),
        CUDA_INDEX,
        via=("-r requirements.in",),
        because=("pytorch 2.14.1 (pytorch, cu130) holds code for 8.6",),
        requires=("numpy", "filelock"),
        requires_python=">=3.10",
    ),
    Pin(
        "numpy",
        "2.3.5",
        (
            file(
                "numpy-2.3.5-cp311-cp311-manylinux_2_27_x86_64.whl",
                "2",
                size=16_900_000,
                upload_time="2025-11-16T22:49:02.146210Z",
            ),
            file(
                "numpy-2.3.5.tar.gz",
                "3",
                hashes=(("md5", "0" * 32), ("sha512", "4" * 128), ("sha256", "3" * 64)),
                upload_time="2025-11-16T23:52:49+01:00",
            ),
        ),
        INDEX,
        via=("torch", "-r requirements.in"),
        requires_python=">=3.11",
    ),
    Pin("filelock", "3.20.0", (file("filelock-3.20.0-py3-none-any.whl", "5"),), INDEX, via=("torch",)),
    Pin(
        "own-kernels",
        "0.4",
        (file("own_kernels-0.4-py3-none-any.whl", "6"),),
        None,
        via=("-r requirements.in",),
    ),
)


def rtx_3090(matrix: Matrix) -> Lock:
    """A lock of PyTorch for one GPU, beside other packages."""
    answer = rtx_3090_answer(matrix)
    requested = ("torch==2.14.1", "numpy", "own-kernels @ https://files.example.org/packages/own_kernels.whl")
    lock = plain(command=answer.command, request=requested, notes=("a note",), exclude_newer=None)
    assert lock.made is not None
    made = lock.made._replace(matrix_date="2026-11-01")
    return lock._replace(made=made, stack=stack_of(answer.solution, answer.hosts, lock.versions))


def rtx_3090_answer(matrix: Matrix) -> Answer:
    """The stack of that lock."""
    requested = FrameworkRequest("pytorch", parse_versions("==2.14.1"))
    request = Request(
        (requested,),
        gpus=("RTX 3090",),
        driver=DriverVersion.parse("580.65.06"),
        platforms=(Platform.LINUX_64,),
        python=parse_versions("3.11"),
        sources=(Source.PYTORCH,),
    )
    targets, solutions, _ = stacks_of(request, matrix, {}, Solver(matrix))
    command = "envsolve -f pytorch==2.14.1 --gpu 'RTX 3090' --driver 580.65.06 --source pytorch"
    return Answer(solutions[0], targets[0].hosts, command, "2026-11-01", "VERSION", options=recorded_options(request))


def plain(
    pins: Iterable[Pin] = PINS,
    *,
    command: str = "envsolve lock numpy",
    request: tuple[str, ...] = ("numpy",),
    notes: tuple[str, ...] = (),
    exclude_newer: str | None = "2026-10-01T00:00:00Z",
    **more: object,
) -> Lock:
    """A lock with no framework in its request."""
    made = Made("VERSION", command, request, notes=notes, exclude_newer=exclude_newer)
    lock = Lock(tuple(pins), "linux-64", "3.11.7", "2.35", made=made, default_index=INDEX, indexes=(CUDA_INDEX,))
    return lock._replace(**more)  # type: ignore[arg-type]


TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "\n--index-url https://evil.example.org/",
        "a\r\nevil==1.0",
        'a"\n[tool.evil]\nx = "',
        "a \\",
        "\\",
        "#",
        "\u2028evil==1",
        "\x85evil==1",
        "\udcff",
        "# [tool.envsolve]",
    ]
)
"""Text in a sentence or a name that an attacker may use to start another line."""
_NAMES = st.lists(st.text("abz09", min_size=1, max_size=3), min_size=1, max_size=3).map("-".join)
_VERSIONS = st.sampled_from(["0.1", "1.0rc1", "2.14.1+cu130", "2025.11.12", "1!3.0.post1", "0.4.dev3"])
_DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
_PATHS = st.text(max_size=12).filter(lambda path: "t" not in path)  # behind a folder t a channel has its token


@st.composite
def _pins(draw: st.DrawFn, name: str, texts: st.SearchStrategy[str]) -> Pin:
    version = draw(_VERSIONS)
    wheels = draw(st.lists(st.sampled_from(["py3", "cp311", "cp310", "py2.py3"]), min_size=1, max_size=3, unique=True))
    stem = f"{name.replace('-', '_')}-{version}"
    index = draw(st.sampled_from([INDEX, CUDA_INDEX, None]))
    folders = st.just("own") if index is None else _PATHS
    names = [f"{stem}-{tag}-none-any.whl" for tag in wheels] + [f"{stem}.tar.gz"] * draw(st.integers(0, 1))
    files = tuple(
        PackageFile(
            file_name,
            f"{FILES}/{draw(folders)}/{file_name}",
            (("sha256", draw(_DIGESTS)), *draw(st.sampled_from([(), (("md5", "0" * 32),)]))),
            draw(st.none() | st.integers(0, 10**9)),
            draw(st.none() | st.sampled_from(["2025-02-30T00:00:00Z", "2025-11-16T22:49:02.146210Z"])),
        )
        for file_name in names
    )
    sentences = st.lists(texts, max_size=3).map(tuple)
    return Pin(
        name,
        version,
        files[:1] if index is None else files,
        index,
        draw(sentences),
        draw(sentences),
        draw(st.lists(_NAMES, max_size=2, unique=True).map(tuple)),
        draw(st.sampled_from([None, ">=3.10", ">=2.7.*"])),
        marker=draw(st.sampled_from(["", "sys_platform == 'linux'"])),
    )


@st.composite
def locks(draw: st.DrawFn, texts: st.SearchStrategy[str] = TEXTS) -> Lock:
    """Locks with valid pins, and with any of ``texts`` in text fields."""
    names = draw(st.lists(_NAMES, max_size=4, unique=True))
    pins = [draw(_pins(name, texts)) for name in names]
    drawn = draw(st.lists(texts, max_size=3).map(tuple))
    return plain(pins, command=draw(texts), request=drawn, notes=drawn, default_is_plain=draw(st.booleans()))
