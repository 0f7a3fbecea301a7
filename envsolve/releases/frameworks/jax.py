"""JAX: the extras of jax require jaxlib and the CUDA plugin; the plugin's libraries have CUDA, cuDNN and architectures.

A GPU install is three wheels of one build: jaxlib, jax-cudaNN-plugin and jax-cudaNN-pjrt. The plugin's ``_versions.so``
has the versions it was compiled with, its small kernels (``_linalg.so``, ``_prng.so``) the architectures.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.binary.fat_binary import scan_fat_binaries
from envsolve.matrix.load import Matrix
from envsolve.releases.constants import constants
from envsolve.releases.reader import (
    Observation,
    OpenWheel,
    Read,
    Reader,
    ReadRow,
    Value,
    evidence_of,
    first,
    requirements_of,
)
from envsolve.releases.requirements import CudaReleases, extras, header, requirements, specifier_text
from envsolve.releases.wheels import Listing, WheelFile, glibc_of, pythons_of

_CUDA_MAJORS = ("12", "13")
_PLATFORMS = ("linux-64", "linux-aarch64")
_KERNELS = re.compile(r"/_(linalg|prng)\.so$")
_FIRST_LONG_CUDNN = 9


class _Extra(NamedTuple):
    """The requirements of one extra of jax."""

    name: str
    jaxlib: SpecifierSet
    plugin: Requirement
    cuda: tuple[Requirement, ...]


class JaxReader(Reader):
    """Reads jax, jaxlib and the CUDA plugins. ``matrix`` has the existing CUDA and cuDNN versions.

    Of the numbers in a plugin only those of existing versions count. So ``edition`` changes with the known versions.
    """

    name = "jax"
    framework = "jax"
    oldest = Version("0.3.0")
    releases_of = ("jax",)
    beside = ("jaxlib", *(f"jax-cuda{major}-{part}" for major in _CUDA_MAJORS for part in ("plugin", "pjrt")))

    def __init__(self, cuda_releases: CudaReleases, matrix: Matrix) -> None:
        super().__init__(cuda_releases)
        self._cuda = {1000 * it.version.major + 10 * it.version.minor: str(it.version) for it in matrix.cuda.toolkits}
        self._cudnn = dict(_cudnn_number(release.version) for release in matrix.cudnn)
        self.edition = f"jax-2-{_digest([*self._cuda.values(), *self._cudnn.values()])}"

    def observe(self, wheel: OpenWheel) -> Observation:
        """Return the requirements of any of the wheels, and versions and architectures of a plugin."""
        metadata = wheel.text(".dist-info/METADATA") or ""
        seen = requirements_of(wheel) | {"requires_python": header(metadata, "Requires-Python")}
        versions = wheel.find("/_versions.so") if wheel.file.project.endswith("-plugin") else None
        if versions is None:
            return seen
        found = constants(wheel.content(versions), aarch64=wheel.file.platform == "linux-aarch64")
        major = wheel.file.project.removeprefix("jax-cuda").removesuffix("-plugin")
        seen["cuda"] = [text for number, text in self._cuda.items() if number in found and text.startswith(f"{major}.")]
        seen["cudnn"] = sorted({text for number, text in self._cudnn.items() if number in found}, key=Version)
        scans = [scan_fat_binaries(wheel.chunks(name)) for name in wheel.members if _KERNELS.search(name)]
        seen["sass"] = _agreed([scan.sass for scan in scans])
        seen["ptx"] = _agreed([scan.ptx for scan in scans])
        return seen

    def rows(self, version: Version, listing: Listing, read: Read) -> Iterator[ReadRow]:
        """Yield CPU rows for every platform of jaxlib, and GPU rows for every extra whose wheels exist."""
        wheel = listing.wheels("jax", version)[0]
        seen = read(wheel)
        yield from self._cpu_rows(wheel, seen, listing)
        for major in _CUDA_MAJORS:
            extra = _extra(f"cuda{major}", seen)
            if extra is not None:
                rows = (self._gpu_row(extra, platform, (wheel, seen), listing, read) for platform in _PLATFORMS)
                yield from (row for row in rows if row is not None)

    def _cpu_rows(self, wheel: WheelFile, seen: Observation, listing: Listing) -> Iterator[ReadRow]:
        base = _requirement_on(requirements(seen["requires"]), "jaxlib")
        wanted = base or _requirement_on(requirements(seen["requires"], extra="cpu"), "jaxlib")
        jaxlib = None if wanted is None else _newest(listing, "jaxlib", wanted.specifier)
        if jaxlib is None:
            return
        for platform in listing.platforms("jaxlib", jaxlib):
            wheels = listing.wheels("jaxlib", jaxlib, platform)
            values = _common(wheel, seen, platform, "cpu", [wheels])
            values["extras"] = None if base else ["cpu"]
            if values["pythons"]:
                yield ReadRow(values, {}, (evidence_of(wheel, seen),))

    def _gpu_row(
        self, extra: _Extra, platform: str, jax: tuple[WheelFile, Observation], listing: Listing, read: Read
    ) -> ReadRow | None:
        """The row of one extra on one platform, or None if one of its three wheels is missing."""
        plugin_name = str(canonicalize_name(extra.plugin.name))
        pjrt_name = plugin_name.replace("-plugin", "-pjrt")
        jaxlib = _newest(listing, "jaxlib", extra.jaxlib)
        plugin = _newest(listing, plugin_name, extra.plugin.specifier, platform, also=pjrt_name)
        if jaxlib is None or plugin is None:
            return None
        parts = [listing.wheels(name, it, platform) for name, it in (("jaxlib", jaxlib), (plugin_name, plugin))]
        pjrt = listing.wheels(pjrt_name, plugin, platform)
        if not all(parts):
            return None
        file = parts[1][0]
        observed = read(file)
        values = _common(*jax, platform, extra.name, parts)
        values["glibc"] = max((it for it in (values["glibc"], glibc_of(pjrt)) if isinstance(it, str)), key=Version)
        required = [
            *extra.cuda,
            *(it for name in _own_extras(observed) for it in requirements(observed["requires"], extra=name)),
        ]
        values |= self._cuda_values(observed, required, extra.name)
        evidence = (evidence_of(*jax), evidence_of(file, observed))
        return ReadRow(values, {}, evidence) if values["pythons"] else None

    def _cuda_values(self, observed: Observation, required: list[Requirement], extra: str) -> dict[str, Value]:
        cudnn = next((it for it in required if it.name.startswith("nvidia-cudnn")), None)
        values: dict[str, Value] = {"extras": [extra], "cuda_libraries": "dependencies"}
        for fact in ("cuda", "cudnn"):
            if len(observed.get(fact, ())) == 1:
                values[fact] = first(observed, fact)
        if observed.get("sass"):
            values |= {"sass": observed["sass"], "ptx": observed["ptx"]}
        admitted = self._cuda_releases.admitted(required)
        if admitted is not None:
            values["cuda_requires"] = admitted
        if cudnn is not None:
            values["cudnn_package"] = str(canonicalize_name(cudnn.name))
            values["cudnn_requires"] = specifier_text(cudnn.specifier)
        return values


def _common(
    wheel: WheelFile, seen: Observation, platform: str, build: str, parts: list[list[WheelFile]]
) -> dict[str, Value]:
    """The fields of any row. Pythons are those that every part has wheels for and that jax admits."""
    admitted = SpecifierSet(first(seen, "requires_python") or "")
    shared = [set(pythons_of(part)) for part in parts]
    pythons = [python for python in pythons_of(parts[0]) if all(python in one for one in shared)]
    floors = [floor for part in parts if (floor := glibc_of(part)) is not None]
    return {
        "version": str(wheel.version),
        "source": "pypi",
        "platform": platform,
        "build": build,
        "package": "jax",
        "pythons": [python for python in pythons if admitted.contains(f"{python}.99")],
        "glibc": max(floors, key=Version, default=None),
    }


def _extra(name: str, seen: Observation) -> _Extra | None:
    """The requirements of an extra, or None if it has no plugin (before 0.4.23 jaxlib itself was the CUDA build)."""
    required = requirements(seen["requires"], extra=name)
    plugin = _requirement_on(required, f"jax-{name}-plugin")
    if plugin is None:
        return None
    specifiers = [it.specifier for it in (*requirements(seen["requires"]), *required) if it.name == "jaxlib"]
    jaxlib = SpecifierSet(",".join(str(specifier) for specifier in specifiers))
    return _Extra(name, jaxlib, plugin, tuple(it for it in required if it.name.startswith("nvidia-")))


def _own_extras(observed: Observation) -> list[str]:
    """The extra of the plugin with the CUDA libraries: ``with-cuda``, formerly ``with-cuda12``."""
    return [name for name in extras(observed["requires"]) if name.startswith("with-cuda")]


def _requirement_on(required: list[Requirement], name: str) -> Requirement | None:
    return next((it for it in required if canonicalize_name(it.name) == name), None)


def _newest(
    listing: Listing, project: str, specifier: SpecifierSet, platform: str | None = None, *, also: str | None = None
) -> Version | None:
    """The newest version in ``specifier`` with wheels for ``platform`` of it and of ``also``."""
    return next(
        (
            version
            for version in listing.versions(project)
            if specifier.contains(version)
            and (platform is None or listing.wheels(project, version, platform))
            and (also is None or listing.wheels(also, version, platform))
        ),
        None,
    )


def _digest(versions: list[str]) -> str:
    return hashlib.sha256(" ".join(versions).encode()).hexdigest()[:8]


def _agreed(lists: list[tuple[str, ...]]) -> list[str]:
    """The code in all kernels; empty if they differ, because then one library does not represent the plugin."""
    return list(lists[0]) if lists and all(one == lists[0] for one in lists) else []


def _cudnn_number(version: Version) -> tuple[int, str]:
    """A cuDNN version as in ``CUDNN_VERSION``, 8904 for 8.9.4 and from 9 on 90101 for 9.1.1, and as in the matrix."""
    major, minor, patch = (*version.release, 0, 0)[:3]
    return (10000 if major >= _FIRST_LONG_CUDNN else 1000) * major + 100 * minor + patch, f"{major}.{minor}.{patch}"
