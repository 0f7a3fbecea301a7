"""Looking into the matrix: an overview, and the builds of one framework in the shape of the JSON contract."""

from __future__ import annotations

from packaging.version import Version

from envsolve.app.solving import framework_request
from envsolve.errors import UnsolvableError
from envsolve.matrix.load import Matrix
from envsolve.model.release import Release, Toolkit
from envsolve.model.versions import CudaVersion


def overview(matrix: Matrix) -> list[dict[str, object]]:
    """One entry per framework: its oldest and newest version and how many builds are known."""
    rows: list[dict[str, object]] = []
    for name in matrix.framework_names:
        versions = [release.version for release in matrix.framework(name, None).releases]
        rows.append(
            {
                "framework": name,
                "oldest": str(min(versions)),
                "newest": str(max(versions)),
                "builds": len(versions),
            }
        )
    return rows


def releases_of(text: str, matrix: Matrix) -> list[dict[str, object]]:
    """Every build that ``text`` (``tensorflow`` or ``tensorflow==2.10.*``) names, newest first.

    Raises UsageError for an unknown framework and UnsolvableError where no known build is meant.
    """
    asked = framework_request(text, matrix)
    table = matrix.framework(asked.framework, None)
    toolkits = {toolkit.version: toolkit for toolkit in matrix.cuda.toolkits}
    found = [release for release in table.releases if release.lies_in(asked.specifier)]
    if not found:
        raise UnsolvableError("no-such-release", f"the matrix holds no build of {asked}")
    found.sort(key=lambda release: (_reversed(release.version), release.source, release.platform, release.build))
    return [_row(release, toolkits) for release in found]


def _row(release: Release, toolkits: dict[CudaVersion, Toolkit]) -> dict[str, object]:
    toolkit = toolkits.get(release.cuda) if release.cuda is not None else None
    windows = release.platform.is_windows
    full = toolkit.full(windows=windows) if toolkit is not None else None
    return {
        "framework": release.framework,
        "version": str(release.version),
        "source": release.source.value,
        "platform": release.platform.value,
        "build": release.build,
        "package": release.package,
        "pythons": list(release.pythons),
        "cuda": None if release.cuda is None else str(release.cuda),
        "cudnn": None if release.cudnn is None else str(release.cudnn),
        "compute_capabilities": [str(target) for target in release.code.sass],
        "ptx": [str(target) for target in release.code.ptx],
        "minimum_driver": None if toolkit is None else str(toolkit.floor(windows=windows)),
        "full_driver": None if full is None else str(full),
        "evidence": [{"kind": item.kind.value, "reference": item.reference} for item in release.evidence],
        "inferred": list(release.inferred),
    }


def _reversed(version: Version) -> tuple[int, ...]:
    return tuple(-part for part in (*version.release, 0, 0, 0, 0)[:4])
