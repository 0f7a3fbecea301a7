"""The driver's CUDA library: whether the loader finds one, and whether it is the driver's own."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding, Severity

_NIX = "/run/opengl-driver/lib"


def check_library(survey: Survey) -> Iterator[Finding]:
    """A driver whose CUDA library the loader does not find."""
    if survey.platform.is_windows:
        yield from _on_windows(survey)
    elif survey.is_linux and survey.libcuda is None:
        yield from _not_found(survey)


def check_damage(survey: Survey) -> Iterator[Finding]:
    """A file in place of the CUDA library that is no library: the search ends there."""
    found = survey.libcuda
    if found is not None and found.damage is not None:
        yield survey.finding("driver-library-unusable", (str(found),), path=found.real, detail=found.damage.detail)


def check_stubs(survey: Survey) -> Iterator[Finding]:
    """The toolkit's stub before the driver's library, or found by programs that need ``libcuda.so``."""
    if not survey.is_linux:
        return
    found = survey.libcuda
    if found is not None and "/stubs/" in found.real:
        yield survey.finding("stub-driver-library", (str(found),), stub_path=str(found))
        return
    for directory in survey.library_directories:
        stub = f"{directory}/libcuda.so"
        if "stubs" in (survey.files.real(stub) or "").split("/"):
            yield survey.finding("stub-on-library-path", (stub,))
            return


def _on_windows(survey: Survey) -> Iterator[Finding]:
    system = survey.environ.get("SystemRoot") or survey.environ.get("WINDIR") or r"C:\Windows"
    library = survey.files.join(system, "System32", "nvcuda.dll")
    if survey.host.gpus and not survey.libcuda_works and not survey.files.is_file(library):
        yield survey.finding("driver-library-missing", survey.gpus_seen, path=library)


def _not_found(survey: Survey) -> Iterator[Finding]:
    misplaced = survey.misplaced_libraries
    looked_in = f"looked in {survey.looked_in}"
    if misplaced and survey.is_wsl:
        yield survey.finding("wsl-driver-not-reached", (*misplaced, looked_in))
    elif misplaced:
        directory = survey.files.parent(misplaced[0])
        nix = directory == _NIX
        severity = Severity.WARNING if nix else None
        evidence = (*misplaced, looked_in)
        yield survey.finding("driver-library-off-path", evidence, severity=severity, directory=directory, nix=nix)
    elif survey.module_is_loaded and survey.container is None and not survey.libcuda_works:
        version = survey.module_version
        evidence = ("kernel module" if version is None else f"kernel module {version}", looked_in)
        yield survey.finding("driver-without-compute", evidence, module_version=version)
