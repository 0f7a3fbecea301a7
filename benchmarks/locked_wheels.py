"""Whether the wheels that envsolve locks run on the GPUs of the request, by a reader that shares no code with it.

    .venv-test/bin/python -m benchmarks.locked_wheels SCRATCH [--requests 300] [--seed 1] [--bytes 10e9] [--json FILE]

Random requests name packages with CUDA code, GPUs, a driver and frameworks. envsolve locks each of them as someone
types it, with ``--source pypi`` from the default index (settings of pip do not count). Every compiled wheel of a lock
is downloaded, once by its digest, and read by :mod:`benchmarks.wheel_witness`. Nothing is installed or run.

Faults:

- *no code*: the wheel has kernels, and for a GPU of the request neither machine code nor PTX that its driver compiles.
- *library*: a library of the wheel needs (DT_NEEDED) a library of CUDA that no wheel of the lock has. One that is there
  for each CUDA or framework, as in dgl, counts only if all of its forms lack one. NCCL and its like (:data:`_EXTRAS`)
  count where the library has kernels: else it is a module that is imported by those who want it.
- *opens*: a library has the name of a CUDA library among its texts, and no wheel of the lock has that major of it.
- *driver*: the CUDA runtime that a wheel needs, or has linked in, is of a newer major than the driver's CUDA.

*Partly* is what is not a fault, as it may not be needed: a library of which less than half of the fat binaries run, and
what is wrong with packages that do without their libraries (:data:`OPTIONAL`, or as a note of envsolve says). What a
note says the machine has to bring is not missing.

Not judged are NVIDIA's own libraries (:data:`OWN_KERNELS`): their kernels are made at run time or kept in containers of
their own. They count as what brings libraries. What does not fit into ``--bytes`` is not judged either, and listed.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shlex
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lock_tables import row
from benchmarks.lock_tools import compile_all, run
from benchmarks.wheel_witness import FAILS, Capability, Library, Store, Wheel

GPUS: dict[str, Capability] = {
    "GTX 980": (5, 2),
    "Tesla P100-PCIE-16GB": (6, 0),
    "GTX 1080 Ti": (6, 1),
    "Tesla V100-SXM2-16GB": (7, 0),
    "Tesla T4": (7, 5),
    "NVIDIA A100-SXM4-40GB": (8, 0),
    "RTX 3090": (8, 6),
    "RTX 4090": (8, 9),
    "NVIDIA H100 PCIe": (9, 0),
    "NVIDIA B200": (10, 0),
    "NVIDIA B300": (10, 3),
    "RTX 5090": (12, 0),
}
DRIVERS = {
    "470.256.02": (7, 4),
    "525.147.05": (8, 0),
    "535.183.01": (8, 2),
    "550.54.15": (8, 4),
    "570.195.03": (8, 7),
    "580.95.05": (9, 0),
}
"""The newest PTX that each driver compiles (NVIDIA, PTX ISA, release notes): that of CUDA 11.4 to 13.0."""
FIRST_DRIVERS = {(8, 9): "525.147.05", (9, 0): "525.147.05", (10, 0): "570.195.03", (10, 3): "580.95.05",
                 (12, 0): "570.195.03"}  # fmt: skip
"""The first of these drivers that knows a GPU; older ones than all of them know the rest."""
FRAMEWORKS = ("pytorch", "jax", "tensorflow", "onnxruntime")
PACKAGES: dict[str, tuple[str, ...]] = {
    "xformers": ("0.0.28.post3", "0.0.30", "0.0.33"),
    "vllm": ("0.6.6", "0.10.0", "0.19.1"),
    "sglang-kernel": ("0.4.1", "0.4.5"),
    "faster-whisper": ("1.0.3", "1.1.1"),
    "ctranslate2": ("3.24.0", "4.5.0"),
    "torchvision": ("0.16.2", "0.20.1", "0.25.0"),
    "torchaudio": ("2.1.2", "2.5.1", "2.11.0"),
    "torchcodec": ("0.2.1", "0.7.0", "0.11.0"),
    "torchao": ("0.7.0", "0.13.0"),
    "bitsandbytes": ("0.43.3", "0.45.5", "0.48.2"),
    "cupy-cuda12x": ("12.3.0", "13.6.0"),
    "cudf-cu12": ("25.6.0", "25.12.0"),
    "cuml-cu12": ("25.10.0", "26.2.0"),
    "faiss-gpu-cu12": ("1.10.0", "1.12.0"),
    "spconv-cu120": ("2.3.6",),
    "warp-lang": ("1.4.2", "1.10.1"),
    "transformer-engine-cu12": ("1.13.0", "2.8.0"),
    "nvidia-dali-cuda120": ("1.35.0", "1.53.0"),
    "xgboost": ("1.7.6", "2.1.4", "3.0.5"),
    "lightgbm": ("4.3.0",),
    "catboost": ("1.2.5", "1.2.8"),
    "onnxruntime-genai-cuda": ("0.6.0", "0.9.0"),
    "k2": (),
    "gsplat": ("1.4.0",),
    "numba-cuda": ("0.18.1",),
    "auto-gptq": ("0.7.1",),
    "flashinfer-python": ("0.7.0",),
    "lmdeploy": ("0.9.0",),
    "deepspeed": (),
}
"""The packages that requests name, and older releases that a fifth of them pin."""
OWN_KERNELS = re.compile(
    r"nvidia-(?!dali|modelopt).*|cuda-.*|cutensor.*|cusparselt.*|tensorrt.*|nvtx|cuquantum.*|custatevec.*"
)
"""Packages of NVIDIA's libraries, by name."""
_SONAME_MAJORS = re.compile(
    r"lib(?:cudart|cublas|cublasLt|nvblas|nvrtc|nvrtc-builtins|cufft|cufftw|curand|cusolver|cusolverMg|cusparse|nvJitLink"
    r"|nvjpeg|npp\w+|cupti|cudnn\w*|nccl|cusparseLt|nvshmem_host|cutensor|cufile)\.so\.[\d.]+"
)
"""CUDA libraries that an environment has to bring: the driver's own (libcuda, libnvidia-ml) come with the driver."""
_EXTRAS = re.compile(r"lib(?:nccl|cutensor|cusparseLt|nvshmem_host|cufile|cupti)\.so.*")
_OPENED = re.compile(r"lib(?:cudart|cublas|cublasLt|nvrtc|cudnn)\.so\.\d+(?:\.\d+)?")
"""What is opened at run time and cannot be done without: other names may be tried and missed."""
OPTIONAL = {
    "torchao": "torchao/__init__.py goes on without a library that does not load",
    "nccl-extensions": "flashinfer/moe_ep, which alone uses it, goes on without it",
}
_BITSANDBYTES = re.compile(r".*libbitsandbytes_cuda(\d+)\.so")
_MACHINE = re.compile(r"note: (\S+) (\S+) does not install CUDA: the machine needs")
_LOSS = re.compile(r"note: (\S+) (\S+) loads the libraries of CUDA \S+ without")
_RUNTIME = re.compile(r"libcudart[-.\w]*\.so\.(\d+)")
NO_CODE, LIBRARY, OPENS, DRIVER, PARTLY = KINDS = ("no code", "library", "opens", "driver", "partly")
_STEM = re.compile(r"[-.].*")
_DIGITS = re.compile(r"\d+")
_OF_PTX = 4
"""PTX 7 came with CUDA 11, 8 with 12 and 9 with 13."""
_SECONDS = 240
_PINNED = 0.2
_HALF = 2
Finding = tuple[str, str, str]
"""The GPU or "all", the kind and the reason of a fault."""


class Draw(NamedTuple):
    """One random request."""

    number: int
    frameworks: tuple[str, ...]
    packages: tuple[str, ...]
    gpus: tuple[str, ...]
    driver: str | None

    @property
    def arguments(self) -> list[str]:
        """What is typed after ``envsolve``."""
        named = [part for it in self.frameworks for part in ("-f", it)]
        named += [*self.packages, "--source", "pypi", "--platform", "linux-64"]
        named += [part for it in self.gpus for part in ("--gpu", it)]
        return named + ([] if self.driver is None else ["--driver", self.driver])

    def __str__(self) -> str:
        return shlex.join(self.arguments)


class Answer(NamedTuple):
    """What envsolve did: exit status, seconds, what it said, and whether a lock is there."""

    status: int
    seconds: float
    said: str


class Fault(NamedTuple):
    """What is wrong with a wheel of a lock. ``kind`` is one of those above, or ``partly``."""

    number: int
    request: str
    package: str
    version: str
    gpu: str
    kind: str
    why: str


def draws(seed: int, count: int) -> Iterator[Draw]:
    """``count`` random requests, the same for a seed; a GPU comes with a driver that knows it, or none."""
    dice = random.Random(seed)  # noqa: S311 - the same requests each time
    order = list(DRIVERS)
    for number in range(count):
        frameworks = tuple(dice.sample(FRAMEWORKS, dice.choices((1, 2), (3, 1))[0]))
        names = dice.sample(list(PACKAGES), dice.choices((1, 2, 3), (2, 2, 1))[0])
        packages = tuple(_perhaps_pinned(dice, it) for it in names)
        gpus = tuple(dice.sample(list(GPUS), dice.choices((1, 2), (6, 1))[0]))
        first = max(order.index(FIRST_DRIVERS.get(GPUS[it], order[0])) for it in gpus)
        yield Draw(number, frameworks, packages, gpus, dice.choice([None, *order[first:]]))


def _perhaps_pinned(dice: random.Random, name: str) -> str:
    return f"{name}=={dice.choice(PACKAGES[name])}" if PACKAGES[name] and dice.random() < _PINNED else name


class Locks:
    """The locks of requests, kept in ``directory``; a run goes on where another one ended."""

    def __init__(self, envsolve: Path, directory: Path) -> None:
        self._envsolve, self._directory = envsolve, directory
        directory.mkdir(parents=True, exist_ok=True)

    def answer(self, draw: Draw) -> tuple[Answer, Path]:
        """What envsolve did about ``draw``, and where its lock is if the status is 0."""
        lock, kept = self._directory / f"pylock.{draw.number}.toml", self._directory / f"{draw.number}.json"
        if kept.exists():
            return Answer(**json.loads(kept.read_text("utf-8"))), lock
        lock.unlink(missing_ok=True)
        command = [str(self._envsolve), *draw.arguments, "--format", "pylock", "-o", str(lock), "--no-progress"]
        done = run(command, self._directory, _SECONDS)
        answer = Answer(done.status, round(done.seconds, 1), done.complaint)
        kept.write_text(json.dumps(answer._asdict()), encoding="utf-8")
        print(draw.number, *answer[:2], draw, file=sys.stderr, flush=True)
        return answer, lock


class LockedWheel(NamedTuple):
    """A package of a lock, and the file that an installer takes, as pylock.toml has it."""

    name: str
    version: str
    file: dict[str, Any]


class Judge:
    """Judges locks by the wheels in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.judged: set[str] = set()
        """The digests of the wheels that were read."""
        self.with_kernels: set[str] = set()
        self.disagree: set[str] = set()
        """Libraries of which cuobjdump says something else."""
        self.fails: set[str] = set()
        self.own: set[str] = set()
        self.loose: set[str] = set()

    def faults(self, draw: Draw, lock: Path, said: str) -> Iterator[Fault]:
        """What is wrong with a lock, and what runs partly; ``said`` is what envsolve said about it."""
        read: list[tuple[LockedWheel, Wheel]] = []
        provided: set[str] = set()
        locked = list(read_lock(lock))
        for it in locked:
            listed = self._store.names(it.file)
            provided.update(listed.provides)
            if OWN_KERNELS.fullmatch(it.name):
                self.own.add(it.name)
            elif listed.provides and (wheel := self._store.read(it.file)) is not None:  # pure tags may hold libraries
                self._count(it, wheel)
                read.append((it, wheel))
        from_machine, lossy = ({m[1] for m in it.finditer(said)} for it in (_MACHINE, _LOSS))
        torch = next((it for it in locked if it.name == "torch"), None)
        for it, wheel in read:
            cuda = self._cuda_of(torch) if it.name == "bitsandbytes" and torch is not None else None
            for gpu, kind, why in self._of_wheel(draw, wheel, provided, cuda):
                if kind in (LIBRARY, OPENS) and it.name in from_machine:
                    continue
                shown = PARTLY if it.name in OPTIONAL or it.name in lossy else kind
                yield Fault(draw.number, str(draw), it.name, it.version, gpu, shown, why)

    def _cuda_of(self, torch: LockedWheel) -> str:
        """The CUDA of a wheel of PyTorch; empty for one for the CPU."""
        found = re.search(r"^cuda[^=]*= '([\d.]+)'", self._store.text(torch.file, "torch/version.py"), re.MULTILINE)
        return found[1] if found else ""

    def _count(self, locked: LockedWheel, wheel: Wheel) -> None:
        digest = locked.file["hashes"]["sha256"]
        self.judged.add(digest)
        if any(it.modules for it in wheel.libraries):
            self.with_kernels.add(digest)
        for it in (it for it in wheel.libraries if it.disagrees):
            where = self.fails if it.disagrees == FAILS else self.disagree
            where.add(f"{locked.name} {locked.version}: {it.name}: {it.disagrees}")
        if wheel.loose:
            self.loose.add(f"{locked.name} {locked.version}: {wheel.loose} kernels in files of their own")

    def _of_wheel(self, draw: Draw, wheel: Wheel, provided: set[str], cuda: str | None) -> Iterator[Finding]:
        ptx = None if draw.driver is None else DRIVERS[draw.driver]
        if cuda is not None:
            every, wheel = wheel, _for_cuda(wheel, cuda)
            if not wheel.libraries:
                yield (
                    "all",
                    LIBRARY,
                    f"it has {', '.join(it.name for it in every.libraries)}, and PyTorch is of CUDA {cuda}",
                )
        for gpu in draw.gpus:
            yield from _code(wheel, gpu, ptx)
        yield from _libraries(wheel, provided)
        if ptx is not None:
            yield from _driver(wheel, ptx[0] + _OF_PTX)


def _code(wheel: Wheel, gpu: str, ptx: Capability | None) -> Iterator[Finding]:
    """What has no code for a GPU."""
    shares = [(it, *it.share(GPUS[gpu], ptx)) for it in wheel.libraries if it.modules]
    if shares and not any(runs for _, runs, _ in shares):
        yield gpu, NO_CODE, "; ".join(f"{it.name} has {it.targets}" for it, *_ in shares[:3])
        return
    for it, runs, total in shares:
        if runs * _HALF < total:
            yield gpu, PARTLY, f"{it.name}: {runs} of {total} fat binaries run; it has {it.targets}"


def _libraries(wheel: Wheel, provided: set[str]) -> Iterator[Finding]:
    """What needs or opens CUDA libraries that are not there."""
    forms: dict[str, list[tuple[Library, list[str]]]] = {}
    for it in wheel.libraries:
        lacks = [need for need in it.needs if _SONAME_MAJORS.fullmatch(need) and need not in provided]
        forms.setdefault(_DIGITS.sub("#", it.name), []).append((it, lacks))
    for of_one in forms.values():
        library, lacks = of_one[-1]
        if all(them for _, them in of_one):
            extras = all(_EXTRAS.fullmatch(it) for it in lacks) and not library.modules
            yield "all", PARTLY if extras else LIBRARY, f"{library.name} needs {', '.join(lacks)}"
    named = {it for library in wheel.libraries for it in library.opens if _OPENED.fullmatch(it)}
    settled = {_STEM.sub("", it) for library in wheel.libraries for it in library.needs}
    settled |= {_STEM.sub("", it) for it in wheel.provides}  # bundled, with its old name left in the file
    for stem in sorted({_STEM.sub("", it) for it in named} - settled):
        names = sorted(it for it in named if _STEM.sub("", it) == stem)
        if not any(file == it or file.startswith(f"{it}.") for it in names for file in provided):
            there = sorted(it for it in provided if _STEM.sub("", it) == stem)
            yield "all", OPENS, f"{', '.join(names)}; the lock has {', '.join(there) or 'none'}"


def _driver(wheel: Wheel, newest: int) -> Iterator[Finding]:
    """What needs a newer driver: by the CUDA majors that its libraries need, where each form needs a newer one."""
    for it in wheel.libraries:
        if it.runtime is not None and it.runtime > newest:
            yield "all", DRIVER, f"{it.name} has a runtime of CUDA {it.runtime} linked in, the driver has {newest}"
    majors = {int(m[1]) for it in wheel.libraries for need in it.needs if (m := _RUNTIME.match(need))}
    if majors and min(majors) > newest:
        yield "all", DRIVER, f"it needs libcudart.so.{min(majors)}, the driver has CUDA {newest}"


def _for_cuda(wheel: Wheel, cuda: str) -> Wheel:
    """What bitsandbytes loads: the library for the CUDA of PyTorch, or else one of the same major."""
    of = {it: m[1] for it in wheel.libraries if (m := _BITSANDBYTES.fullmatch(it.name))}
    exact = [it for it, digits in of.items() if digits == cuda.replace(".", "")]
    of_major = [it for it, digits in of.items() if digits[:2] == cuda.partition(".")[0]]
    return wheel._replace(libraries=tuple(exact or of_major))


def read_lock(lock: Path) -> Iterator[LockedWheel]:
    """The packages of a pylock.toml with a wheel: the first that it has of each."""
    for it in tomllib.loads(lock.read_text("utf-8"))["packages"]:
        if wheels := it.get("wheels"):
            yield LockedWheel(it["name"], it["version"], wheels[0])


def tables(
    answers: Sequence[tuple[Draw, Answer]], faults: Sequence[Fault], judge: Judge, store: Store
) -> Iterator[str]:
    """The Markdown of a run: the counts, each fault, and what was not judged."""
    counts = Counter(answer.status for _, answer in answers)
    kinds = Counter(it.kind for it in faults)
    wrong = {it.number for it in faults if it.kind != PARTLY}
    figures: list[tuple[str, object]] = [
        ("requests", len(answers)),
        ("locks", counts[0]),
        ("refused (exit 1)", counts[1]),
        ("no answer, or another exit", len(answers) - counts[0] - counts[1]),
        ("locks with a fault", len(wrong)),
        *((f"faults: {kind}", kinds[kind]) for kind in KINDS),
        ("wheels read", len(judge.judged)),
        ("of which have kernels", len(judge.with_kernels)),
        ("libraries that cuobjdump reads otherwise", len(judge.disagree)),
        ("libraries that cuobjdump does not read", len(judge.fails)),
        ("GB of wheels kept", f"{store.taken / 1e9:.1f}"),
        ("wheels not judged, for the cap", len(store.left_out)),
        ("packages not judged, NVIDIA's own", len(judge.own)),
    ]
    yield from (row(["", "count"]), "|---|---|", *(row(list(it)) for it in figures), "")
    yield from (row(["request", "package", "GPU", "fault", "why"]), "|---" * 5 + "|")
    for it in faults:
        yield row([it.number, f"{it.package} {it.version}", it.gpu, it.kind, it.why])
    yield ""
    for number in sorted({it.number for it in faults}):
        yield f"{number}: {next(it.request for it in faults if it.number == number)}"
    yield from (f"not judged, for the cap: {name}, {size / 1e6:.0f} MB" for name, size in store.left_out.items())
    yield from (f"not judged: {it}" for it in sorted(judge.loose))
    yield from (f"cuobjdump reads otherwise: {it}" for it in sorted(judge.disagree))
    yield f"not judged, NVIDIA's own: {', '.join(sorted(judge.own))}"


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scratch", type=Path, help="where locks and wheels are kept")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bytes", type=float, default=10e9, help="how much of wheels is downloaded")
    parser.add_argument("--at-once", type=int, default=2, help="how many locks are made at the same time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the faults are written as JSON lines as well")
    parser.add_argument("--cuobjdump", type=Path, help="NVIDIA's program, with which the reader is compared")
    parser.add_argument("--envsolve", type=Path, default=Path(sys.executable).parent / "envsolve")
    return parser.parse_args()


def main() -> None:
    """Draw, lock, judge, and print the tables."""
    arguments = options()
    envsolve, scratch = arguments.envsolve.absolute(), arguments.scratch.absolute()
    compile_all(envsolve)
    locks = Locks(envsolve, scratch / f"seed-{arguments.seed}")
    drawn = list(draws(arguments.seed, arguments.requests))
    with ThreadPoolExecutor(arguments.at_once) as pool:
        answers = list(zip(drawn, pool.map(locks.answer, drawn), strict=True))
    store = Store(scratch, arguments.bytes, arguments.cuobjdump)
    judge = Judge(store)
    faults: list[Fault] = []
    for draw, (answer, lock) in answers:
        found = list(judge.faults(draw, lock, answer.said)) if answer.status == 0 else []
        for it in found:
            print("  ".join(map(str, it)), file=sys.stderr, flush=True)
        faults += found
    if arguments.json is not None:
        arguments.json.write_text("".join(json.dumps(it._asdict()) + "\n" for it in faults), encoding="utf-8")
    print("\n".join(tables([(draw, answer) for draw, (answer, _) in answers], faults, judge, store)))


if __name__ == "__main__":
    main()
