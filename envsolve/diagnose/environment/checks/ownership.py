"""Files that two packages have written: which one is there depends on the order of installation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path, PurePosixPath

from envsolve.diagnose.environment.altered import Altered
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import LIBRARY, Package
from envsolve.diagnose.environment.record import Row
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.words import listed
from envsolve.model.finding import Finding

_COMMON = {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmarks", "scripts", "tools"}
"""Folders that many packages install among the modules by mistake, and that no one imports."""
_SHOWN = 4


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
