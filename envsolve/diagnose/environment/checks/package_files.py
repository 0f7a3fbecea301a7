"""Files of packages that differ from their RECORD: gone, not those that were installed, or written by two packages.

Which of two packages' files is there depends on the order of installation. Compiled modules name the Python that they
are for (PEP 3149, PEP 425).
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from envsolve.boundary.display import listed
from envsolve.diagnose.environment.altered import Altered, judged_packages
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.metadata import LIBRARY, Package, Row

_UNUSED = {"test", "tests"}
"""Folders that are often removed to make images smaller."""
_COMMON = {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmarks", "scripts", "tools"}
"""Folders that many packages install among the modules by mistake, and that no one imports."""
_SHOWN = 4
_TAGGED = re.compile(r"(?P<stem>.+?)\.(?:cpython-|cp)(?P<tag>3\d+t?)-[\w-]+\.(?:so|pyd)\Z")


def missing_files(scene: Scene) -> Iterator[Finding]:
    """Packages of the GPU stack whose modules or libraries are gone."""
    for package in judged_packages(scene.packages):
        counted = [row.path for row in scene.packages.record(package) or () if _counts(row.path)]
        lost = [path for path in counted if not os.path.lexists(os.path.join(package.location, path))]  # noqa: PTH118
        if lost:
            yield _gone(package.name, package.version, lost, len(counted), package.location, scene)
    yield from _missing_of_conda(scene)


def overwritten_files(scene: Scene) -> Iterator[Finding]:
    """Libraries of the GPU stack that another package, or someone, has overwritten."""
    damaged = {
        line.partition(": ")[0] for it in scene.static.findings if it.id == "library-damaged" for line in it.evidence
    }
    found: dict[tuple[str, str | None], list[Altered]] = {}
    for altered in scene.altered:
        if str(Path(altered.package.location, altered.path)) in damaged:
            continue
        if altered.winner is None or not is_known_pair(scene, altered.package.name, altered.winner.name):
            winner = altered.winner.name if altered.winner else None
            found.setdefault((altered.package.name, winner), []).append(altered)
    for files in found.values():
        by = files[0].winner
        yield scene.finding(
            "file-overwritten",
            map(seen, files),
            about=files[0].package,
            severity=Severity.ERROR if by else None,
            files=listed(PurePosixPath(altered.path).name for altered in files),
            broken=[files[0].package.name] if by is None else (),
            other=None if by is None else by.label,
            other_name=None if by is None else by.name,
        )


def _counts(path: str) -> bool:
    """Whether programs need the file."""
    if LIBRARY.search(path):
        return True
    return path.endswith(".py") and not _UNUSED.intersection(PurePosixPath(path).parts)


def _missing_of_conda(scene: Scene) -> Iterator[Finding]:
    for package in scene.conda.packages:
        if not is_of_gpu_stacks(package.name):
            continue
        libraries = [it for it in package.files if LIBRARY.search(it) and component_of(it) is not None]
        lost = [it for it in libraries if not os.path.lexists(scene.inventory.prefix / it)]
        if lost:
            yield _gone(
                package.name, package.version, lost, len(libraries), scene.inventory.prefix, scene, by_conda=True
            )


def _gone(
    name: str, version: str, lost: list[str], count: int, place: Path, scene: Scene, *, by_conda: bool = False
) -> Finding:
    starts = [path for path in lost if path.endswith("/__init__.py") and path.count("/") == 1]
    worst = len(lost) * 2 > count or bool(starts)
    return scene.finding(
        "package-files-missing",
        (f"missing: {place}/{path}" for path in lost),
        about=name,
        severity=Severity.ERROR if worst else Severity.WARNING,
        broken=() if by_conda else [name],
        package=name,
        version=version,
        lost=len(lost),
        count=count,
        files=listed(PurePosixPath(path).name for path in lost),
        in_conda_package=by_conda,
    )


def two_distributions(scene: Scene) -> Iterator[Finding]:
    """Distributions of one framework or one NVIDIA library that have written the same files."""
    for packages, what, files in scene.packages.known_pairs:
        names = {package.name for package in packages}
        won = {it.winner.label: it for it in scene.altered if it.winner and {it.package.name, it.winner.name} <= names}
        yield scene.finding(
            "two-distributions",
            (
                *(f"both own {file}" for file in files[:_SHOWN]),
                *(f"{Path(it.path).name} is that of {winner}: {seen(it)}" for winner, it in won.items()),
            ),
            owners=tuple(package.label for package in packages),
            owned=what,
            owners_typed=" ".join(package.name for package in packages),
        )


def shared_files(scene: Scene) -> Iterator[Finding]:
    """Other packages that have written different files to the same path."""
    pairs: dict[tuple[str, ...], list[str]] = defaultdict(list)
    packages: dict[tuple[str, ...], list[Package]] = {}
    for (_, path), claims in scene.packages.claims.items():
        if _matters(path) and _differ(claims):
            names = tuple(sorted({package.name for package, _ in claims}))
            pairs[names].append(path)
            packages[names] = [package for package, _ in claims]
    for names, paths in pairs.items():
        if not is_known_pair(scene, *names):
            yield scene.finding(
                "shared-files",
                (f"both own {path}" for path in islice(sorted(paths), _SHOWN)),
                owners=tuple(package.label for package in packages[names]),
                owners_typed=" ".join(package.name for package in packages[names]),
                files=listed(PurePosixPath(path).name for path in sorted(paths)),
                outside=not any(map(is_of_gpu_stacks, names)),
            )


def is_known_pair(scene: Scene, *names: str) -> bool:
    """Whether these packages are known to have the same files, like two builds of one framework."""
    return any(set(names) <= {package.name for package in packages} for packages, *_ in scene.packages.known_pairs)


def seen(altered: Altered) -> str:
    """The file as it is, and as its package installed it."""
    file = Path(altered.package.location, altered.path)
    if altered.size != altered.row.size:
        return f"{file} has {altered.size} bytes, its RECORD says {altered.row.size}"
    return f"{file} has another sha256 than its RECORD says"


def _matters(path: str) -> bool:
    if PurePosixPath(path).parts[0] in _COMMON:
        return False
    return path.endswith(".py") or LIBRARY.search(path) is not None


def _differ(claims: tuple[tuple[Package, Row], ...]) -> bool:
    """Whether the packages installed different files; if the RECORDs do not say, they are taken as equal."""
    digests = {row.sha256 for _, row in claims}
    return len(digests) > 1 and None not in digests


def modules_of_another_python(scene: Scene) -> Iterator[Finding]:
    """Packages whose compiled modules are all for another Python; a wheel may contain each for several."""
    here = "".join(scene.inventory.python.split(".")[:2])
    if not here or not scene.inventory.takes_usual_wheels:
        return
    found: dict[str, dict[Package, str]] = {}
    for package in scene.packages.by_name.values():
        modules: dict[str, dict[str, str]] = {}
        for row in scene.packages.record(package) or ():
            match = _TAGGED.match(row.path)
            if match is not None:
                modules.setdefault(match["stem"], {})[match["tag"]] = row.path
        for tags in (it for it in modules.values() if here not in it):
            tag, path = max(tags.items())
            found.setdefault(tag, {}).setdefault(package, path)
    for tag, packages in found.items():
        yield scene.finding(
            "extension-of-other-python",
            (str(package.location / path) for package, path in packages.items()),
            about="python",
            broken=[it.name for it in packages],
            package=next(iter(packages)).name,
            packages=listed(it.name for it in packages),
            pins=" ".join(f"{it.name}=={it.version}" for it in packages),
            module_python=f"3.{tag[1:]}",
            python=".".join(scene.inventory.python.split(".")[:2]),
        )
