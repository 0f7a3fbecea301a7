"""Code for the GPUs in frameworks whose libraries validation does not reach: in a prefix, or as the matrix has it.

The wheels' own libraries are scanned by :mod:`envsolve.validation.static.coverage`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.reading import is_file
from envsolve.diagnose.environment.scene import Scene
from envsolve.model.capability import ComputeCapability, DeviceCode
from envsolve.model.finding import Finding
from envsolve.validation.static.coverage import Codes, listed


def code_for_gpus(scene: Scene) -> Iterator[Finding]:
    """Frameworks without code for a GPU of this machine."""
    if not scene.has_gpu:
        return
    codes = Codes()
    for build in scene.builds:
        if any(_holds_code(it, codes) for it in build.framework.files(*build.framework.libraries.code)):
            continue
        known = _known_code(build, scene, codes)
        for gpu in scene.host.capabilities if known is not None else ():
            assert known is not None
            code, sources = known
            if code.runs_as(gpu) is None:
                yield scene.finding(
                    "no-code-for-gpu",
                    seen(gpu, build.label, [listed(code)], scene),
                    about=build,
                    sources=sources,
                    capability=gpu,
                    path=build.label,
                    covered=listed(code),
                )


def _holds_code(file: Path, codes: Codes) -> bool:
    code = codes.of(file) if is_file(file) else DeviceCode(())
    return bool(code.sass or code.ptx)


def _known_code(build: Build, scene: Scene, codes: Codes) -> tuple[DeviceCode, tuple[str, ...]] | None:
    """The code of a build: of its file in the prefix, else by the rows of the matrix where they agree, and these."""
    for name in build.framework.framework.conda_code:
        file = scene.inventory.prefix / name
        if _holds_code(file, codes):
            return codes.of(file), ()
    known = {release.code for release in build.releases if release.cuda is not None}
    code = known.pop() if len(known) == 1 else DeviceCode(())
    if not (code.sass or code.ptx) or build.cuda_version is None:
        return None
    return code, (build.releases[0].reference,)


def seen(gpu: ComputeCapability, label: str, codes: Iterable[str], scene: Scene) -> tuple[str, ...]:
    """What matters where a build has no code for a GPU: that GPU, and what the build has."""
    names = dict.fromkeys(it.name or "a GPU" for it in scene.host.gpus if it.compute_capability == gpu)
    code = "; ".join(dict.fromkeys(codes))
    return f"GPU: {' and '.join(names)} ({gpu})", f"{label}: {code}"
