"""What is wrong with a lock of a real project on a machine, by rules alone: nothing is run on a GPU.

WRONG, each with its reason:

1. The framework of the project is not in the lock or is a build for the CPU, or a framework in the lock has no code for
   the GPU or needs a newer driver, or its cuDNN has no code for the GPU: by the compatibility matrix.
2. Versions that do not run together: the pairs that ``wrong_together.json`` of the projects names, and those of
   ``packages.toml`` of the matrix (GPUs that a package has code for, CUDA that it loads, its PyTorch, NumPy 1 against
   NumPy 2). Libraries that no package brings may be missing where the tool says that the machine needs them.
3. uv, given the requirements of the project and all pins of the lock, says that they contradict each other, or that
   more packages are needed, for the Python and the platform of the lock. A package may be missing where the tool says
   that another one installs the same module. What is built once the framework is installed, as the tool says, is left
   out.
4. A pin without a wheel for this Python and platform, though there is one for another Python: it would be compiled.

STALE: of a package that the project names, a newer release had been out for 18 months, and uv finds a lock with such a
release that is not WRONG on this machine, for some Python for which the project names the same packages, and that makes
no other of them that old. Pins of the project (``==``) are never stale.

REFUSED: no lock though one exists, by ``judged.jsonl`` where it speaks of the project on the machine. Elsewhere none
exists where no build of the framework runs on the machine, or where uv finds no lock that is not WRONG, for any Python.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from benchmarks.lock_tools import KILLED, Run, pins_in, run
from envsolve.app.request.targets import target_of
from envsolve.app.solve.builds import Filters, find_builds
from envsolve.app.status.locked_stack import locked_stack
from envsolve.errors import UnsolvableError
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import ASSUMED_GLIBC, Platform
from envsolve.model.names import normalized
from envsolve.model.release import Release, Source
from envsolve.model.request import Request
from envsolve.model.versions import DriverVersion

STALE_AFTER = timedelta(days=548)
LOOK_SECONDS = 30
"""For how long uv is let look for one lock; what it has not found by then does not count."""
UV_PYTHON = "3.12"
"""What is requested from uv, which has no opinion of its own."""
PYTHONS = ("3.13", "3.12", "3.11", "3.10")
"""Where a lock is looked for, and wheels."""
UV_PLATFORMS = {
    Platform.LINUX_64: f"x86_64-manylinux_{str(ASSUMED_GLIBC).replace('.', '_')}",
    Platform.WIN_64: "x86_64-pc-windows-msvc",
}
"""What uv gets as the platform: on Linux the glibc that envsolve assumes, so that both have the same wheels."""
UV_PACKAGES = {
    "pytorch": "torch",
    "tensorflow": "tensorflow[and-cuda]",
    "jax": "jax[cuda12]",
    "cupy": "cupy-cuda12x",
    "onnxruntime": "onnxruntime-gpu",
    "paddlepaddle": "paddlepaddle-gpu",
}
"""What someone who knows the framework requests from uv."""
_MET = re.compile(r"requires ([^ ]+), and [^ ]+ in this lock installs the same module")
"""How envsolve says that a requirement is met by a package of another name."""
_AFTERWARDS = re.compile(r"the build of ([^ ]+) [^ ]+ imports .* first, then this lock with --no-build-isolation")
"""How it says that a package is built once the framework is installed: before that uv cannot read its metadata."""


class Machine(NamedTuple):
    """A GPU and a driver to judge locks by."""

    gpu: str
    driver: str
    platform: Platform = Platform.LINUX_64


class Project(NamedTuple):
    """The requirements of a project, and the framework that it is for."""

    name: str
    framework: str
    file: Path

    @classmethod
    def read(cls, file: Path) -> Project:
        """The project of a file whose first line is ``# FRAMEWORK, where it is from``."""
        first = file.read_text(encoding="utf-8").partition("\n")[0]
        return cls(file.stem, first.removeprefix("# ").partition(",")[0], file)

    def named(self, python: str, platform: Platform) -> dict[str, Requirement]:
        """The requirements that count for ``python`` on ``platform``, by the name of the package."""
        windows = platform.is_windows
        values = {
            "python_version": python,
            "python_full_version": f"{python}.0",
            "sys_platform": "win32" if windows else "linux",
            "platform_system": "Windows" if windows else "Linux",
            "platform_machine": "AMD64" if windows else "x86_64",
            "os_name": "nt" if windows else "posix",
        }
        found = {}
        for line in self.file.read_text(encoding="utf-8").splitlines():
            try:
                need = Requirement(line.partition("#")[0].strip())
            except InvalidRequirement:
                continue
            if need.marker is None or need.marker.evaluate({**values, "extra": ""}):
                found[normalized(need.name)] = need
        return found


class Uv:
    """uv, with more ``options`` if need be; ``scratch`` keeps its cache and what it writes."""

    def __init__(
        self, executable: Path, python: Path, scratch: Path, seconds: float, options: Sequence[str] = ()
    ) -> None:
        self._start = [str(executable), "pip", "compile", "-q", "--no-config", "--python", str(python), *options]
        self._scratch, self._seconds = scratch, seconds

    def compile(
        self, inputs: Sequence[Path | str], python: str, platform: Platform, output: Path, *options: str
    ) -> Run:
        """Lock ``inputs``, files or lines of requirements, into ``output``, which is not there before."""
        lines = self._scratch / "lines.in"
        lines.write_text("".join(f"{it}\n" for it in inputs if isinstance(it, str)), encoding="utf-8")
        files = [str(it) for it in inputs if isinstance(it, Path)]
        command = [*self._start, "--python-version", python, "--python-platform", UV_PLATFORMS[platform], *options]
        output.unlink(missing_ok=True)
        return run([*command, *files, str(lines), "-o", str(output)], self._scratch, self._seconds)

    def newest(self, name: str, requirements: str, python: str, platform: Platform, before: str) -> Version | None:
        """The newest release that a requirement admits of those ``before`` a day; None where there was none."""
        output = self._scratch / "newest.txt"
        options = ("--no-deps", "--exclude-newer", before)
        self.compile([requirements], python, platform, output, *options)
        version = pins_in(output).get(name)
        return None if version is None else Version(version)

    def files(
        self, inputs: Sequence[Path | str], python: str, platform: Platform, *options: str
    ) -> tuple[Run, dict[str, bool]]:
        """The packages that ``inputs`` lead to, and whether each has a wheel for ``python`` on ``platform``."""
        output = self._scratch / "pylock.files.toml"
        done = self.compile(inputs, python, platform, output, "--format", "pylock.toml", *options)
        packages = tomllib.loads(output.read_text("utf-8")).get("packages", []) if output.exists() else []
        return done, {it["name"]: bool(it.get("wheels")) for it in packages}


class Judge:
    """Judges locks of projects by the matrix, by uv and by ``directory``, which has the projects."""

    def __init__(self, directory: Path, matrix: Matrix, uv: Uv, scratch: Path, today: datetime | None = None) -> None:
        self._matrix, self._uv, self._scratch = matrix, uv, scratch
        self._pairs = json.loads((directory / "wrong_together.json").read_text("utf-8"))
        judged = directory / "judged.jsonl"
        self.judged = [json.loads(row) for row in judged.read_text("utf-8").splitlines()] if judged.exists() else []
        self._before = ((today or datetime.now(UTC)) - STALE_AFTER).strftime("%Y-%m-%d")
        self._newest, self._solution = cache(uv.newest), cache(self._solve)
        self._metadata = cache(lambda *given: tuple(self._of_metadata(*given)))

    def faults(
        self, project: Project, machine: Machine, lock: Path, said: str = "", python: str | None = None
    ) -> list[str]:
        """Why ``lock`` does not run on ``machine``; ``said`` is what the tool said as it wrote it.

        ``python`` is what the lock is for, where it does not say so itself.
        """
        pins = tuple(pins_in(lock).items())
        known = self.known_faults(project, machine, lock, said)
        python = python or self.python_of(machine, lock)
        met, afterwards = frozenset(_MET.findall(said)), frozenset(_AFTERWARDS.findall(said))
        return [*known, *self._metadata(project, machine.platform, pins, python, met, afterwards)]

    def known_faults(self, project: Project, machine: Machine, lock: Path, said: str = "") -> list[str]:
        """Those of the faults that need no index."""
        on_gpu, pairs = self._on_gpu(project, machine, lock), self._pairs_in(pins_in(lock), said)
        return [*on_gpu, *pairs, *self._of_builds(project, machine, lock)]

    def stale(self, project: Project, machine: Machine, lock: Path) -> Iterator[str]:
        """The packages that ``project`` names and that are much older in ``lock`` than they have to be."""
        pins = {name: Version(it) for name, it in pins_in(lock).items()}
        named = project.named(self.python_of(machine, lock), machine.platform)
        old = {name: need for name, need in named.items() if self._is_old(name, need, pins, machine)}
        for name in old:
            found = self._solution(project, machine, f"{name}>{pins[name].public}", name)
            if found is None or project.named(found[0], machine.platform).keys() != named.keys():
                continue
            instead = {it: Version(version) for it, version in found[1].items() if it in pins}
            others = (it for it in instead.keys() & named.keys() - old.keys() if instead[it] < pins[it])
            if not any(self._is_old(it, named[it], instead, machine) for it in others):
                yield f"{name} {pins[name]}, {instead[name]} was possible on Python {found[0]}"

    def _is_old(self, name: str, need: Requirement, pins: Mapping[str, Version], machine: Machine) -> bool:
        """Whether ``need`` admits a release that had been out for so long and is newer than the one in ``pins``."""
        if name not in pins or any(it.operator.startswith("==") for it in need.specifier):
            return False
        newest = self._newest(name, f"{name}{need.specifier}", UV_PYTHON, machine.platform, self._before)
        return newest is not None and newest > pins[name]

    def exists(self, project: Project, target: str, machine: Machine) -> str:
        """The lock that ``project`` could have on ``machine``, which the projects call ``target``; "" for none."""
        known = [it for it in self.judged if (it["project"], it["target"]) == (project.name, target)]
        for it in known:
            if it["verdict"] in ("GOOD", "STALE", "REFUSED-WRONG"):
                return str(it["why"] or f"{it['tool']} has {project.framework} {it['framework']}")
        if any(it["verdict"] == "REFUSED-RIGHT" for it in known) or not self._builds(
            project.framework, machine, on_gpu=True
        ):
            return ""
        found = self._solution(project, machine)
        return "" if found is None else f"uv on Python {found[0]}"

    def python_of(self, machine: Machine, lock: Path) -> str:
        """The Python that a lock is for: it says so itself, or is uv's."""
        held = locked_stack(lock, machine.platform, self._matrix)
        return UV_PYTHON if held is None or held.python is None else held.python

    def _on_gpu(self, project: Project, machine: Machine, lock: Path) -> Iterator[str]:
        held = locked_stack(lock, machine.platform, self._matrix)
        releases = {} if held is None else held.releases
        if project.framework not in releases:
            yield f"{project.framework} is not in the lock"
        elif not any(row.cuda for row in releases[project.framework]):
            yield f"{project.framework} is a build for the CPU, or one that the matrix does not know"
        for framework, rows in releases.items():
            for_gpu = [row for row in rows if row.cuda]
            if for_gpu and not any(row in self._builds(framework, machine, on_gpu=True) for row in for_gpu):
                yield f"{for_gpu[0].label} does not run on {machine.gpu} with driver {machine.driver}"
        if held is not None and held.cudnn in self._unfit_cudnn(machine):
            yield f"cuDNN {held.cudnn} has no code for {machine.gpu}"

    def version_of(self, project: Project, machine: Machine, lock: Path) -> str | None:
        """The version of the project's framework in ``lock``."""
        held = locked_stack(lock, machine.platform, self._matrix) if lock.exists() else None
        rows = () if held is None else held.releases.get(project.framework, ())
        return str(rows[0].version) if rows else None

    def _pairs_in(self, pins: Mapping[str, str], said: str) -> Iterator[str]:
        """The pairs of ``wrong_together.json`` in ``pins``, but where the machine is ``said`` to need the rest."""
        for pair in self._pairs:
            held = all(name in pins and _lies_in(pins[name], versions) for name, versions in pair["when"].items())
            rest = pair.get("unless", ())
            is_said = rest and all(re.search(f"{name} .* the machine needs ", said) for name in pair["when"])
            if held and not is_said and not any(name in pins for name in rest):
                yield pair["why"]

    def _of_builds(self, project: Project, machine: Machine, lock: Path) -> Iterator[str]:
        pins, held = pins_in(lock), locked_stack(lock, machine.platform, self._matrix)
        rows = () if held is None else held.releases.get(project.framework, ())
        cuda = next((row.cuda for row in rows if row.cuda is not None), None)
        for name, version in pins.items():
            for facts in self._matrix.build_facts(name, machine.platform):
                if not facts.covers(version) or (facts.beside and (held is None or facts.beside not in held.releases)):
                    continue
                if not facts.loss and facts.without_code_for([self._capability(machine)], cuda) is not None:
                    yield f"{name} {version} has no code for {machine.gpu}"
                wanted = str(facts.cuda).removeprefix("==").removesuffix(".*")
                if cuda and not facts.loss and not facts.go_with(cuda) and f"nvidia-cublas-cu{wanted}" not in pins:
                    yield f"{name} {version} loads the libraries of {facts.cuda_text}, {project.framework} is of {cuda}"
                for need in (*facts.requires, *facts.constraints):
                    other = pins.get(need.name)
                    if (other is None and need in facts.requires) or (other and not _lies_in(other, need.specifier)):
                        yield f"{name} {version} does not run without {need}, and {need.name} is {other}"

    def _of_metadata(
        self,
        project: Project,
        platform: Platform,
        held: Sequence[tuple[str, str]],
        python: str,
        met: frozenset[str],
        afterwards: frozenset[str],
    ) -> Iterator[str]:
        pins = {name: version for name, version in held if name not in afterwards}
        left_out = self._scratch / "left_out.in"
        left_out.write_text("".join(f"{it}\n" for it in afterwards), encoding="utf-8")
        requirements = [project.file, *(f"{it}=={pins[it]}" for it in pins)]
        done, packages = self._uv.files(requirements, python, platform, "--excludes", str(left_out))
        if done.status == KILLED:
            return  # it had no time to say anything
        if done.status:
            yield f"uv: {' '.join(done.complaint.split())[:400]}"
            return
        if missing := packages.keys() - dict(held).keys() - met:
            yield f"not in the lock: {', '.join(sorted(missing))}"
        source = {name for name, has_wheel in packages.items() if not has_wheel and name in pins}
        for other in PYTHONS:
            requirements = [f"{name}=={pins[name]}" for name in sorted(source)]
            there = self._uv.files(requirements, other, platform, "--no-deps")[1] if requirements else {}
            for name in [name for name, has_wheel in there.items() if has_wheel]:
                yield f"{name} {pins[name]} has a wheel for Python {other} and none for {python}"
                source.discard(name)

    def _builds(self, framework: str, machine: Machine, *, on_gpu: bool) -> list[Release]:
        """The builds of a framework for GPUs on the default index: all, or those that run."""
        filters = Filters((framework,), sources=(Source.PYPI,), platforms=(machine.platform,))
        if on_gpu:
            filters = filters._replace(gpus=(machine.gpu,), driver=DriverVersion.parse(machine.driver))
        try:
            found = find_builds(filters, self._matrix, {}).builds
        except UnsolvableError:
            return []
        return [it.release for it in found if it.release.cuda]

    def _capability(self, machine: Machine) -> ComputeCapability:
        (gpu,) = target_of(
            Request((), gpus=(machine.gpu,), platforms=(machine.platform,)), self._matrix, {}
        ).problem.gpus
        return gpu

    def _unfit_cudnn(self, machine: Machine) -> set[Version]:
        """The releases of cuDNN that have no code for the GPU, for whichever CUDA."""
        gpu = self._capability(machine)
        known = self._matrix.cudnn
        return {it.version for it in known} - {it.version for it in known if it.serves(gpu, machine.platform)}

    def _solve(
        self, project: Project, machine: Machine, more: str = "", old: str = ""
    ) -> tuple[str, dict[str, str]] | None:
        """The Python and the versions of a lock that uv finds and that is not wrong; of ``old``, old releases alone."""
        bounds, output = self._scratch / "bounds.txt", self._scratch / "solution.txt"
        running = {(it.package, it.version) for it in self._builds(project.framework, machine, on_gpu=True)}
        known = {(it.package, it.version) for it in self._builds(project.framework, machine, on_gpu=False)}
        lines = [f"{package}!={version}" for package, version in sorted(known - running)]
        lines += [f"nvidia-cudnn-cu{cuda}!={it}.*" for it in self._unfit_cudnn(machine) for cuda in (12, 13)]
        bounds.write_text("".join(f"{it}\n" for it in lines), encoding="utf-8")
        options = ["--constraints", str(bounds)]
        options += ["--exclude-newer-package", f"{old}={self._before}"] if old else []
        requirements = [project.file, UV_PACKAGES[project.framework], *([more] if more else [])]
        old_numpy = self._scratch / "numpy.txt"
        old_numpy.write_text("numpy<2\n", encoding="utf-8")
        wheels = ("--only-binary", ":all:")
        for way in (wheels, (*wheels, "--constraints", str(old_numpy)), ()):
            for python in PYTHONS:
                done = self._uv.compile(requirements, python, machine.platform, output, *options, *way)
                if done.status == 0 and not self.faults(project, machine, output, python=python):
                    return python, pins_in(output)
        return None


def _lies_in(version: str, versions: str) -> bool:
    return SpecifierSet(versions).contains(version, prereleases=True)
