"""The driver's CUDA library: whether the loader comes to one, and whether that is the driver's own."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.machine.findings import of_driver
from envsolve.diagnose.machine.seen import gpus_seen, looked_in, misplaced_libraries
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.loader import CUDA_LIBRARY
from envsolve.host.wsl import WSL_LIBRARIES
from envsolve.model.finding import Finding, Severity

_MISSING = "driver-library-missing"
_STUB = "stub-driver-library"
_NIX = "/run/opengl-driver/lib"


def check_library(survey: Survey) -> Iterator[Finding]:
    """A driver whose CUDA library the loader does not come to."""
    if survey.platform.is_windows:
        yield from _on_windows(survey)
    elif survey.is_linux and survey.libcuda is None:
        yield from _not_found(survey)


def check_damage(survey: Survey) -> Iterator[Finding]:
    """A file in the place of the CUDA library that is none: the search ends there."""
    found = survey.libcuda
    if found is not None and found.damage is not None:
        yield of_driver(survey, "driver-library-unusable", f"{found.real} {found.damage.detail}.", (str(found),))


def check_stubs(survey: Survey) -> Iterator[Finding]:
    """The toolkit's stub in front of the driver's library, or in reach of programs that ask for ``libcuda.so``."""
    if not survey.is_linux:
        return
    found = survey.libcuda
    if found is not None and "/stubs/" in found.real:
        yield of_driver(survey, _STUB, f"The loader takes {found}.", (str(found),))
        return
    for directory in survey.library_directories:
        stub = f"{directory}/libcuda.so"
        if "stubs" in (survey.files.real(stub) or "").split("/"):
            yield of_driver(survey, _STUB, "", (stub,), Severity.WARNING)._replace(
                title="The CUDA toolkit's stub is on LD_LIBRARY_PATH",
                cause="LD_LIBRARY_PATH contains the toolkit's stub of libcuda, a file to link programs with that does "
                f"nothing. {CUDA_LIBRARY} is not found there, but libcuda.so is, which cuDNN 8 loads.",
            )
            return


def _on_windows(survey: Survey) -> Iterator[Finding]:
    system = survey.environ.get("SystemRoot") or survey.environ.get("WINDIR") or r"C:\Windows"
    library = survey.files.join(system, "System32", "nvcuda.dll")
    if survey.host.gpus and not survey.libcuda_works and not survey.files.is_file(library):
        yield of_driver(survey, _MISSING, f"{library} is not there.", gpus_seen(survey))


def _not_found(survey: Survey) -> Iterator[Finding]:
    misplaced = misplaced_libraries(survey)
    if misplaced and survey.is_wsl:
        yield _not_linked_in_wsl(survey, misplaced)
    elif misplaced:
        yield _off_path(survey, misplaced)
    elif survey.module_is_loaded and survey.container is None and not survey.libcuda_works:
        yield _part_missing(survey)


def _off_path(survey: Survey, misplaced: list[str]) -> Finding:
    directory = survey.files.parent(misplaced[0])
    nix = directory == _NIX
    whose = " Programs of Nix know that directory; wheels of the Python index do not." if nix else ""
    return Finding(
        _MISSING,
        f"The loader does not find {CUDA_LIBRARY}",
        Severity.WARNING if nix else Severity.ERROR,
        f"The driver's {CUDA_LIBRARY} is in {directory}, where the loader does not look by itself.{whose}",
        f"Put {directory} on LD_LIBRARY_PATH, or into a file of /etc/ld.so.conf.d and run ldconfig.",
        (f"export LD_LIBRARY_PATH={directory}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",),
        (*misplaced, f"looked in {looked_in(survey)}"),
    )


def _not_linked_in_wsl(survey: Survey, misplaced: list[str]) -> Finding:
    return Finding(
        "wsl-driver-not-reached",
        f"The loader does not find {CUDA_LIBRARY} of Windows",
        Severity.ERROR,
        f"Windows' {CUDA_LIBRARY} is in /{WSL_LIBRARIES}, and the loader does not find it: WSL writes "
        "/etc/ld.so.conf.d/ld.wsl.conf for that when it starts, unless /etc/wsl.conf has `ldconfig = false`.",
        f"Restart WSL (`wsl.exe --shutdown` in Windows), or put /{WSL_LIBRARIES} on LD_LIBRARY_PATH.",
        (f"export LD_LIBRARY_PATH=/{WSL_LIBRARIES}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}",),
        (*misplaced, f"looked in {looked_in(survey)}"),
    )


def _part_missing(survey: Survey) -> Finding:
    version = f" {survey.module_version}" if survey.module_version is not None else ""
    evidence = (f"kernel module{version}", f"looked in {looked_in(survey)}")
    finding = of_driver(survey, _MISSING, "", evidence)._replace(
        cause=f"The kernel module{version} is loaded, and the loader finds no {CUDA_LIBRARY}. The driver's part for "
        "computing is not installed, or is where the loader does not look."
    )
    if survey.l4t is not None:
        return finding
    return finding._replace(
        fix="Install the driver's libraries for computing, in the very version of the kernel module (on Ubuntu "
        "libnvidia-compute, on Debian libcuda1, on Fedora xorg-x11-drv-nvidia-cuda-libs)."
    )
