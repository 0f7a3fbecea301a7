"""Locks of conda packages to write: two stacks and a plain one from real records, and locks that hypothesis draws."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

from envsolve.app.solve.solving import stacks_of
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.conda_specs import conda_specs, environment_name
from envsolve.lockfile.lock import Lock, Made, RequestedSpec
from envsolve.lockfile.pip_specs import pip_specs
from envsolve.lockfile.remarks import usage_remarks
from envsolve.lockfile.stack import stack_of
from envsolve.lockfile.yaml_document import is_null
from envsolve.matrix import Matrix
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.package import Pin
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request, parse_versions
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from tests.lockfile.locks import CUDA_INDEX, INDEX, TEXTS, file, locks

CHANNEL = "https://conda.anaconda.org/conda-forge"
RECORDS = Path(__file__).parent / "recorded" / "conda_packages.json"
"""Records of conda-forge as its repodata has them; of some packages they need there is none."""
_UNIX = "noarch/ca-certificates-2025.8.3-hb"
_WINDOWS = "noarch/ca-certificates-2025.8.3-h4"
LINUX_MACHINE = (
    VirtualPackage("__archspec", "1", "x86_64"),
    VirtualPackage("__cuda", "12.2"),
    VirtualPackage("__glibc", "2.35"),
    VirtualPackage("__linux", "6.1"),
    VirtualPackage("__unix", "0"),
)
DEV = RequestedSpec("pytest", "-r dev.txt", category="dev")
DOCS = RequestedSpec("packaging >=24", category="docs")
WHEELS = (
    Pin(
        "tensorflow",
        "2.10.1",
        (file("tensorflow-2.10.1-cp310-cp310-win_amd64.whl", "1"),),
        INDEX,
        because=("tensorflow 2.10.1 is the last with a GPU build for Windows",),
        requires=("protobuf", "numpy"),
    ),
    Pin("numpy", "1.26.4", (file("numpy-1.26.4-cp310-cp310-win_amd64.whl", "2"),), INDEX, via=("tensorflow",)),
    Pin("own-kernels", "0.4+cu112", (file("own_kernels-0.4+cu112-py3-none-any.whl", "3"),), CUDA_INDEX),
)


def package(name: str, subdir: str = "", *, channel: str = CHANNEL) -> CondaPackage:
    """A recorded package by its name, and by its platform if there are several."""
    record = next(it for it in _records() if it["name"] == name and str(it["file"]).startswith(subdir))
    return CondaPackage(
        name=name,
        version=str(record["version"]),
        build=str(record["build"]),
        subdir=str(record["file"]).partition("/")[0],
        url=f"{channel}/{record['file']}",
        md5=str(record["md5"]),
        sha256=str(record["sha256"]),
        size=record["size"],  # type: ignore[arg-type]  # as recorded
        build_number=record["build_number"],  # type: ignore[arg-type]  # as recorded
        depends=tuple(record["depends"]),  # type: ignore[arg-type]  # as recorded
        constrains=tuple(record["constrains"]),  # type: ignore[arg-type]  # as recorded
        channel=channel,
    )


def _records() -> list[dict[str, object]]:
    records: list[dict[str, object]] = json.loads(RECORDS.read_text(encoding="utf-8"))
    return records


def linux_stack(matrix: Matrix) -> Lock:
    """TensorFlow for an RTX 3090, from conda-forge, with packages for development."""
    names = ("tensorflow", "cudnn", "cuda-version", "python_abi", "bzip2", "openssl", "tzdata", "pip")
    others = ("libprotobuf", "libabseil", "pytest", "iniconfig", "packaging")
    locked = [*map(package, (*names, *others)), package("python", "linux-64"), package("ca-certificates", _UNIX)]
    request = _request(Platform.LINUX_64, "RTX 3090", "535.183.01")
    answer = answer_to(request, matrix)
    requested = (*_requested(answer), DEV, DOCS)
    conda = tuple(sorted(locked, key=lambda it: it.name))
    lock = Lock((), "linux-64", "3.12.11", "2.35", conda=conda, requested=requested, virtual_packages=LINUX_MACHINE)
    return _around(answer, lock)


def windows_stack(matrix: Matrix) -> Lock:
    """TensorFlow for Windows, with a wheel that uses conda's CUDA."""
    locked = [package("python", "win-64"), package("ucrt"), package("tzdata"), package("ca-certificates", _WINDOWS)]
    answer = answer_to(_request(Platform.WIN_64, "8.6", "566.36"), matrix)
    virtual = (VirtualPackage("__cuda", "12.7"), VirtualPackage("__win", "0"))
    conda = tuple(sorted(locked, key=lambda it: it.name))
    lock = Lock(WHEELS, "win-64", "3.10.18", conda=conda, requested=_requested(answer), virtual_packages=virtual)
    return _around(answer, lock)


def two_platforms(matrix: Matrix) -> tuple[Lock, ...]:
    """Both stacks, which one file can hold."""
    command = "envsolve -f tensorflow --gpu 8.6 --platform linux-64 --platform win-64 -r dev.txt --format conda-lock"
    return tuple(
        lock._replace(
            made=Made("VERSION", command, tuple(it.spec for it in lock.requested), "2026-11-20"),
            channels=("conda-forge",),
            sources=("dev.txt",),
            default_index=INDEX,
            variables=(("TF_FORCE_GPU_ALLOW_GROWTH", "true"),),
        )
        for lock in (linux_stack(matrix), windows_stack(matrix))
    )


def plain(
    *conda: CondaPackage,
    pip: tuple[Pin, ...] = (),
    requested: tuple[RequestedSpec, ...] = (),
    command: str = "envsolve lock openssl",
    **more: object,
) -> Lock:
    """A lock with no framework in its request."""
    made = Made("VERSION", command, tuple(it.spec for it in requested))
    lock = Lock(
        pip, "linux-64", made=made, default_index=INDEX, conda=conda, channels=("conda-forge",), requested=requested
    )
    return lock._replace(**more)  # type: ignore[arg-type]


def answer_to(request: Request, matrix: Matrix) -> Answer:
    """The stack for the one platform of ``request``, as the command line receives it."""
    targets, solutions, _ = stacks_of(request, matrix, {}, Solver(matrix))
    return Answer(solutions[0], targets[0].hosts, "envsolve", "2026-11-20", "VERSION")


def _around(answer: Answer, lock: Lock) -> Lock:
    return lock._replace(
        stack=stack_of(answer.solution, answer.hosts, lock.versions),
        environment=environment_name(answer.solution),
        remarks=tuple(usage_remarks(answer.solution)),
    )


def _request(platform: Platform, gpu: str, driver: str) -> Request:
    requested = FrameworkRequest("tensorflow", parse_versions(">=2"))
    sources = (Source.CONDA_FORGE, Source.PYPI)
    driver_version = DriverVersion.parse(driver)
    return Request((requested,), gpus=(gpu,), driver=driver_version, platforms=(platform,), sources=sources)


def _requested(answer: Answer) -> tuple[RequestedSpec, ...]:
    wheels = pip_specs(answer.solution)
    return (
        *(RequestedSpec(spec, reason) for spec, reason in conda_specs(answer.solution)),
        *(RequestedSpec(spec, reason, by_pip=True) for spec, reason in wheels),
    )


_WORDS = st.text("abz09._", min_size=1, max_size=6).filter(lambda text: text[0] not in "._")
_VERSIONS = st.sampled_from(["3.10", "1e3", "0x10", "2025a", "1!2.0", "12_30", "1.0.0rc1", "0777", "1_0"])
_CHECKSUMS = st.binary(min_size=16, max_size=16).map(bytes.hex) | st.sampled_from(["1" * 32, "0" * 31 + "e"])


@st.composite
def _packages(
    draw: st.DrawFn, name: str, texts: st.SearchStrategy[str], folders: st.SearchStrategy[str]
) -> CondaPackage:
    version, build = draw(_VERSIONS), draw(_WORDS)
    return CondaPackage(
        name,
        version,
        build,
        "linux-64",
        f"{CHANNEL}/linux-64/{draw(folders)}{name}-{version}-{build}.conda",
        md5=draw(_CHECKSUMS),
        depends=tuple(draw(st.lists(_WORDS | texts, max_size=3))),
        channel=CHANNEL,
    )


_FOLDERS = st.text(st.characters(exclude_characters="#"), max_size=8)


@st.composite
def conda_locks(draw: st.DrawFn) -> Lock:
    """Locks of valid packages with any text in text fields."""
    names = draw(st.lists(_WORDS, max_size=4, unique=True))
    texts = st.tuples(TEXTS, TEXTS)
    requested = tuple(RequestedSpec(spec, reason, draw(TEXTS)) for spec, reason in draw(st.lists(texts, max_size=3)))
    return plain(
        *(draw(_packages(name, TEXTS, _FOLDERS)) for name in names),
        requested=requested,
        command=draw(TEXTS),
        channels=tuple(draw(st.lists(TEXTS, min_size=1, max_size=2, unique=True))),
        sources=tuple(draw(st.lists(TEXTS, max_size=2))),
        variables=tuple(draw(st.lists(texts, max_size=2, unique_by=lambda it: it[0]))),
    )


@st.composite
def usual_conda_locks(draw: st.DrawFn, sentences: st.SearchStrategy[str]) -> Lock:
    """Locks with packages like on channels and indexes: names as in CEP 26, with wheels."""
    names = draw(st.lists(_WORDS, max_size=4, unique=True))
    date, version = st.sampled_from([None, "2026-11-20"]), st.just("VERSION")
    request = st.lists(sentences, max_size=2).map(tuple)
    options = st.dictionaries(_WORDS, request).map(lambda it: tuple(it.items()))
    made = draw(
        st.none()
        | st.builds(
            Made, version, sentences, request, date, st.booleans(), date, st.just(()), options=options, evidence=options
        )
    )
    beside = draw(locks(sentences))
    pins = (pin._replace(files=tuple(file(it.name, hashes=it.hashes) for it in pin.files)) for pin in beside.pins)
    return beside._replace(
        pins=tuple(pins),
        made=made,
        conda=tuple(sorted(draw(_packages(name, _WORDS, st.just(""))) for name in names)),
        channels=draw(st.lists(st.sampled_from(["conda-forge", "https://example.org/own"]), min_size=1).map(tuple)),
        sources=draw(st.lists(sentences.filter(lambda it: not is_null(it)), max_size=2).map(tuple)),
        variables=draw(st.dictionaries(st.sampled_from(["A", "B_1"]), sentences).map(lambda it: tuple(it.items()))),
        virtual_packages=draw(st.sampled_from([(), LINUX_MACHINE])),
        exported_from=draw(st.sampled_from([None, "pixi.lock"])),
    )
