"""Reads wheels that the matrix does not know before they are locked: their kernels and CUDA libraries.

The facts that are read count like rows of the matrix. If a wheel does not suit the stack, the search tries another
release of the package or another CUDA build of the framework.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.lock_evidence import Origin
from envsolve.app.packages.stack_wheels import bounds_of
from envsolve.app.request.command import way_out
from envsolve.index.one_index import Shelf
from envsolve.index.store import store_at
from envsolve.lockfile.lock import Lock
from envsolve.matrix.load import Matrix
from envsolve.matrix.torch_symbols import FRAMEWORK
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import ComputeCapability
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.note import Note
from envsolve.model.package import PackageFile, Pin
from envsolve.model.request import Audit, Request
from envsolve.model.solution import Solution
from envsolve.model.versions import CudaVersion
from envsolve.resolve.closure.resolve import Progress
from envsolve.resolve.closure.unknown_builds import is_about_cuda, is_unknown

if TYPE_CHECKING:
    from envsolve.app.packages.wheel_facts import WheelReader
    from envsolve.binary.package_facts import PackageFacts
    from envsolve.model.host import Platform

BUDGET = 64_000_000
"""The bytes of compressed libraries that are read from one wheel by default."""
_LARGER_BUDGET = 256_000_000
"""The same if no known release suits."""
ALL = 4_000_000_000
"""More than any wheel has: the libraries of PyTorch have 3 GB."""
_LARGE = 20_000_000
"""Wheels of at least this many bytes are read even if nothing connects them with CUDA, as kernels for several GPUs are
large."""
_MOST_UNSUITABLE = 8
"""After this many unsuitable releases of a package, one per series, all older ones are assumed to be like them. Until
then, an older release may be for another CUDA or other GPUs."""
_FEW = 4
_PURE = "-any.whl"


class WheelAudit:
    """Reads the wheels of one answer after another until one suits. ``reader`` is called if there are any."""

    def __init__(self, request: Request, reader: Callable[[], WheelReader], progress: Progress | None) -> None:
        self._request, self._reader, self._progress = request, reader, progress
        self._read: set[tuple[str, str]] = set()
        self._unread: dict[tuple[str, str], int] = {}
        self._modules: dict[tuple[str, str], tuple[tuple[str, int], ...]] = {}
        self._like: dict[tuple[str, str], Version] = {}
        self._unsuitable: Counter[str] = Counter()
        self._is_for_gpu = False

    def facts_of(self, pins: Sequence[Pin], solution: Solution | None, matrix: Matrix) -> tuple[BuildFacts, ...]:
        """New facts read from the wheels of ``pins``; none if neither a GPU nor PyTorch is involved."""
        mode = self._request.packages.audit
        if solution is None:
            return ()
        if solution.toolkit is None and not any(it.release.framework == FRAMEWORK for it in solution.choices):
            return ()
        self._is_for_gpu, platform = solution.toolkit is not None, solution.problem.platform
        known = partial(matrix.build_facts, platform=platform)
        unread = (it for it in pins if (it.name, it.version) not in self._read)
        new = [it for it in unread if is_unknown(it.name, it.version, known(it.name))]
        gpus, cuda = solution.problem.gpus, solution.toolkit and solution.toolkit.version
        extents = {
            pin: extent
            for pin in new
            if (extent := _extent_of(pin, mode, list(filter(_have_code, known(pin.name))), gpus, cuda)) is not None
        }
        if not extents:
            return ()
        self._read.update((pin.name, pin.version) for pin in extents)
        if mode is Audit.OFF:
            self._unread |= {(pin.name, pin.version): pin.files[0].size or 0 for pin in extents}
            return ()
        from envsolve.app.packages.wheel_facts import Reading

        readings = [Reading(pin.files[0], *extent) for pin, extent in extents.items()]
        found = self._reader().read(readings, partial(self._report, len(pins)))
        return tuple(self._known(zip(extents, found, strict=True), matrix, platform))

    def learned(self, pins: Sequence[Pin], solution: Solution | None, matrix: Matrix) -> tuple[Matrix, bool]:
        """``matrix`` with facts about ``pins``, and whether these suit. If not, another answer must be searched for."""
        read = self.facts_of(pins, solution, matrix)
        if not read or solution is None:
            return matrix, True
        known = matrix.with_builds(read)
        if not self._do_not_suit(read, pins, solution, known):
            return known, True
        return known.with_builds(self._older_like(read)), False

    def _do_not_suit(
        self, facts: Iterable[BuildFacts], pins: Sequence[Pin], solution: Solution, matrix: Matrix
    ) -> bool:
        """Whether ``facts``, which ``matrix`` includes, rule out a package of ``pins``."""
        versions = {pin.name: pin.version for pin in pins}
        bounds = bounds_of(solution, matrix)
        out: set[str] = set()
        found = False
        for it in facts:
            version = versions[it.package]
            if not all(limit.admits(version) for limit in bounds.of(it.package)):
                out.add(it.package)
            found = found or any(it.unmet(versions))
        self._unsuitable.update(out)
        return found or bool(out)

    def _older_like(self, facts: Iterable[BuildFacts]) -> Iterator[BuildFacts]:
        """``facts`` for older releases too: those of the same series or, if many releases were unsuitable, all.

        No older release was compiled for a newer PyTorch. A build with a label is no evidence for builds with other
        labels.
        """
        for it in facts:
            version = str(it.versions).removeprefix("==")
            if Version(version).local:
                continue
            evidence = it.evidence[0]
            inferred = f"{evidence.reference}; older releases are taken to be like it"
            every = it._replace(versions=SpecifierSet(f"<{version}"), evidence=(evidence._replace(reference=inferred),))
            older = every._replace(versions=SpecifierSet(f"<{version},=={_series(Version(version))}.*"))
            own = tuple(need for need in it.requires if not need.because)
            of_torch = [need for need in it.requires if need.because and "<" in need.specifier]
            newest = tuple(need._replace(specifier=_upper_part(need.specifier)) for need in of_torch)
            unsuitable = self._unsuitable[it.package]
            if unsuitable:
                yield (every if unsuitable >= _MOST_UNSUITABLE else older)._replace(requires=(*own, *newest))
            if newest:
                yield every._replace(cuda=None, code=None, linked_cuda=None, ptx_cuda=None, requires=newest)

    def notes(self, pins: Iterable[Pin]) -> Iterator[Note]:
        """Notes on libraries of ``pins`` that were not read, and on packages that overwrite each other's files."""
        pins = tuple(pins)
        yield from self._of_shared_modules(pins)
        if self._request.packages.audit is Audit.OFF:
            return
        unread = {f"{it.name} {it.version}": self._unread.get((it.name, it.version)) for it in pins}
        sizes = {name: size for name, size in sorted(unread.items()) if size is not None}
        if sizes:
            names = list(sizes)
            shown = ", ".join(names[:_FEW]) + (f" and {len(names) - _FEW} more" if len(names) > _FEW else "")
            size = sum(sizes.values()) / 1e6
            text = f"not verified for this GPU: {size:,.0f} MB of libraries in {shown} were not read"
            full = self._request._replace(packages=self._request.packages._replace(audit=Audit.FULL))
            hint = way_out(text, full, self._request)
            yield Note("not-verified", hint.text, hint.command).about(count=len(names))

    def _of_shared_modules(self, pins: Iterable[Pin]) -> Iterator[Note]:
        by_module: dict[str, dict[str, int]] = {}
        for it in pins:
            for module, checksum in self._modules.get((it.name, it.version), ()):
                by_module.setdefault(module, {})[f"{it.name} {it.version}"] = checksum
        for module, owners in by_module.items():
            if len(set(owners.values())) > 1:
                text = f"{' and '.join(owners)} install different files of the module {module}: the last one wins"
                yield Note("same-module", text).about(module=module)

    def origins(self, pins: Iterable[Pin]) -> dict[str, str]:
        """The origin of the facts about GPUs and CUDA for those of ``pins`` that were examined."""
        found: dict[str, str] = {}
        for pin in pins if self._is_for_gpu else ():
            key = pin.name, pin.version
            if key in self._read:
                found[pin.name] = Origin.UNREAD if key in self._unread else Origin.WHEEL
            if key in self._like:
                found[pin.name] = f"{Origin.INFERRED} as in {self._like[key]}"
        return found

    def _report(self, count: int, file: str) -> None:
        if self._progress is not None:
            self._progress(count, f"reading {file}")

    def _known(
        self, found: Iterable[tuple[Pin, PackageFacts | None]], matrix: Matrix, platform: Platform
    ) -> Iterator[BuildFacts]:
        for pin, facts in found:
            if self._is_for_gpu and (facts is None or facts.unread):
                self._unread[pin.name, pin.version] = (pin.files[0].size or 0) if facts is None else facts.unread
                yield from self._like_the_next(pin, matrix.build_facts(pin.name, platform))
            if facts is not None:
                self._modules[pin.name, pin.version] = facts.modules
            read = facts and _facts_of(pin, facts, matrix, platform)
            if read is not None:
                yield read

    def _like_the_next(self, pin: Pin, known: Sequence[BuildFacts]) -> Iterator[BuildFacts]:
        """For a release that was not read, the facts of the next newer release that was, or else of the newest one."""
        oldest = {first for it in known if it.are_about_cuda and (first := _first_of(it)) is not None}
        newer = [it for it in oldest if it > Version(pin.version)]
        next_one = min(newer) if newer else max(oldest, default=None)
        if next_one is not None:
            self._like[pin.name, pin.version] = next_one
        named = {need.name for it in known if it.covers(pin.version) for need in it.requires}
        for it in known:
            if next_one is not None and _first_of(it) == next_one:
                inferred = f"{it.evidence[0].reference}; {pin.name} {pin.version} is taken to be like it"
                evidence = (it.evidence[0]._replace(reference=inferred),)
                requires = tuple(need for need in it.requires if need.name not in named)
                versions = SpecifierSet(f"=={Version(pin.version)}")
                yield it._replace(versions=versions, requires=requires, evidence=evidence)


def _facts_of(pin: Pin, facts: PackageFacts, matrix: Matrix, platform: Platform) -> BuildFacts | None:
    """The facts read from the wheel of ``pin``, as facts about its builds."""
    torch = matrix.torch_for(facts.torch, platform)
    return facts.build_facts(pin.name, pin.version, pin.requires, evidence_of(pin.files[0]), torch)


def _upper_part(specifier: str) -> str:
    return next(it for it in specifier.split(",") if it.startswith("<"))


def _series(version: Version) -> str:
    """The series that a release belongs to: ``1.12`` for 1.12.3, ``0.0.34`` for 0.0.34."""
    zeros = next((index for index, part in enumerate(version.release) if part), 0)
    return ".".join(map(str, version.release[: max(2, zeros + 1)]))


def _first_of(facts: BuildFacts) -> Version | None:
    """The oldest version that ``facts`` name; None if they are about all versions up to some version."""
    named = [Version(it.version.removesuffix(".*")) for it in facts.versions if it.operator in (">=", "==")]
    return max(named, default=None)


def _have_code(facts: BuildFacts) -> bool:
    return facts.code is not None


def _extent_of(
    pin: Pin, mode: Audit, known: Sequence[BuildFacts], gpus: Sequence[ComputeCapability], cuda: CudaVersion | None
) -> tuple[int, bool] | None:
    """How much of the wheel to read: the limit in bytes, and whether to read only libraries with CUDA in their path.

    None if the wheel is not read. ``known`` are the facts about releases with kernels: if none of these suits, only a
    release that was not read yet can be an answer.
    """
    file = pin.files[0]
    if not file.is_wheel or not file.is_archive or (file.name.endswith(_PURE) and not known):
        return None
    if mode is Audit.FULL:
        return ALL, False
    if known and all(it.without_code_for(gpus, cuda) is not None for it in known):
        return _LARGER_BUDGET, False
    if known or is_about_cuda(pin.name, pin.requires):
        return BUDGET, False
    return (BUDGET, True) if (file.size or 0) >= _LARGE else None


def read_before(matrix: Matrix, pins: Iterable[Pin], shelf: Shelf) -> dict[Pin, PackageFacts]:
    """Cached facts about the wheels of ``pins`` that ``matrix`` does not know. Queries no index."""
    from envsolve.app.packages.wheel_facts import known_facts

    found = {}
    for pin in pins:
        if pin.files and pin.version and is_unknown(pin.name, pin.version, matrix.build_facts(pin.name)):
            facts = next((it for file in pin.files if (it := known_facts(shelf, file)) is not None), None)
            if facts is not None:
                found[pin] = facts
    return found


def read_for(lock: Lock, matrix: Matrix, environ: Mapping[str, str]) -> dict[Pin, PackageFacts]:
    """Cached facts about the wheels of ``lock``; none if it was made without reading wheels."""
    if lock.made is not None and lock.made.option("audit") == (Audit.OFF,):
        return {}
    return read_before(matrix, lock.pins, store_at(None, environ))


def with_read(matrix: Matrix, read: Mapping[Pin, PackageFacts], platform: Platform) -> Matrix:
    """``matrix`` with facts read from wheels for ``platform``."""
    read_facts = (_facts_of(pin, facts, matrix, platform) for pin, facts in read.items())
    found = [it for it in read_facts if it is not None]
    return matrix.with_builds(found) if found else matrix


def evidence_of(file: PackageFile) -> Evidence:
    """The evidence for facts that were read from a wheel."""
    reference = f"{file.name}: fat binaries, names of CUDA libraries and symbols of PyTorch, read for this lock"
    return Evidence(EvidenceKind.WHEEL, reference, "", dict(file.hashes).get("sha256"))
