"""Facts on the driver: what it can do, what was asked of it, and which GPUs it is for.

Two numbers decide. A driver runs machine code of every minor version of its CUDA major, from CUDA 11 on (minor-version
compatibility), and compiles PTX only up to the CUDA that it supports in full. So error 35 from a driver for CUDA 12.8
means a runtime of CUDA 13, while unsupported PTX may be of 12.9. And a driver ends: each GPU has a last branch.
Source: NVIDIA, CUDA Compatibility; the numbers are those of the matrix.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts import parts
from envsolve.diagnose.facts.shared.gpu_code import cuda_of_ptx
from envsolve.model.capability import ComputeCapability
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion, DriverVersion, parsed_cuda

_FIRST_WITH_MINOR_COMPATIBILITY = 11
"""The first CUDA major whose minor versions a driver runs all."""


def _runs(full: CudaVersion, cuda: CudaVersion) -> bool:
    """Whether a driver that supports ``full`` runs machine code of ``cuda``."""
    same = cuda.major == full.major and full.major >= _FIRST_WITH_MINOR_COMPATIBILITY
    return same or cuda <= full


def _floor(case: Case, cuda: CudaVersion | None) -> DriverVersion | None:
    """The oldest driver that runs ``cuda``; on Linux, where nothing says that it is Windows."""
    return None if cuda is None else parts.least_driver(case, cuda)


# ---------------------------------------------------------------------------------------------- what it can do


def _named_cuda(lines: Lines) -> CudaVersion | None:
    """The CUDA of the driver in the lines themselves, which counts before what is known otherwise."""
    symptom, fields = lines[0].symptom if lines else "", merged(lines)
    if symptom == "driver-too-old" and "cuda" in fields:
        return CudaVersion.from_driver_api(int(fields["cuda"]))
    return parsed_cuda(fields.get("found")) if symptom == "driver-newer-than-program" else None


def driver_full(case: Case, lines: Lines) -> CudaVersion | None:
    """The newest CUDA that the driver supports in full, by its own number before an image's nvidia-smi."""
    if (named := _named_cuda(lines)) is not None:
        return named
    of_driver = None if case.driver is None else case.knowledge.cuda_of(case.driver)
    found = of_driver or case.driver_cuda
    if found is None and lines and lines[0].symptom == "ptx-too-new":
        return cuda_of_ptx(merged(lines).get("reads"))
    return found


def driver_newest(case: Case, lines: Lines) -> CudaVersion | None:
    """The newest CUDA whose machine code the driver runs."""
    full = driver_full(case, lines)
    if full is None:
        return None
    return max((it.version for it in case.knowledge.matrix.cuda.toolkits if _runs(full, it.version)), default=full)


def driver_beside(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA of the driver as known otherwise, if the text is of another, older one."""
    full = driver_full(case, lines)
    own = None if case.driver is None else case.knowledge.cuda_of(case.driver)
    return own if own is not None and full is not None and own.major > full.major else None


# ---------------------------------------------------------------------------------------------- GPUs


def _by_pci(case: Case, lines: Lines) -> tuple[str, ComputeCapability] | None:
    return case.knowledge.matrix.pci_ids.get(merged(lines).get("pci", "").casefold())


def the_gpu(case: Case, lines: Lines) -> str | None:
    """The name of the GPU, also by the PCI number or in the words of the kernel module."""
    if (known := _by_pci(case, lines)) is not None:
        return known[0]
    name = merged(lines).get("gpu", "").removeprefix("NVIDIA ").strip()
    return name or (case.gpus[0] if case.gpus else None)


def the_capability(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of that GPU."""
    known = _by_pci(case, lines)
    return case.capability if known is None else known[1]


# ---------------------------------------------------------------------------------------------- what was asked of it


class _Wanted(NamedTuple):
    """The CUDA that was asked of the driver, known by the runtime, build, default, toolkit, program or major."""

    cuda: CudaVersion
    by: str


def _default_build(case: Case) -> Release | None:
    """The build of the framework's version that pip takes by itself, if there are several and none was named."""
    return next((it for it in case.releases() if it.source is Source.PYPI and it.cuda is not None), None)


def driver_wanted(case: Case, lines: Lines) -> _Wanted | None:
    """What the driver does not run: as named, of the build, of its default, or by the rule that majors are kept."""
    full, fields = driver_full(case, lines), merged(lines)
    if full is None:
        return None
    if lines and lines[0].symptom == "driver-newer-than-program":
        number = re.search(r"\d+", fields.get("wants", ""))
        return None if number is None else _Wanted(CudaVersion(int(number[0]), 0), "program")
    default = _default_build(case)
    runtime = fields.get("runtime")
    candidates = (
        (None if runtime is None else CudaVersion.from_driver_api(int(runtime)), "runtime"),
        (case.built_cuda, "build"),
        (None if default is None else default.cuda, "default"),
        (case.toolkit, "toolkit"),
    )
    for cuda, by in candidates:
        if cuda is not None and not _runs(full, cuda):
            return _Wanted(cuda, by)
    following = next_cuda(case, lines)
    old = full.major < _FIRST_WITH_MINOR_COMPATIBILITY
    return None if old or following is None else _Wanted(following, "major")


def driver_floors(case: Case, _lines: Lines) -> tuple[str, ...]:
    """Which driver each CUDA needs."""
    known = {"CUDA 10.2": "10.2", "CUDA 11": "11.8", "CUDA 12": "12.9", "CUDA 13": "13.0"}
    return tuple(f"driver {_floor(case, CudaVersion.parse(cuda))} for {name}" for name, cuda in known.items())


def proven_too_old(case: Case, lines: Lines) -> bool:
    """Whether the versions of driver and build are known, and the driver does not run the build."""
    full, default = driver_full(case, lines), _default_build(case)
    built = case.built_cuda or (default.cuda if default is not None else case.toolkit)
    return full is not None and case.driver is not None and built is not None and not _runs(full, built)


def no_cuda_number(_case: Case, lines: Lines) -> str | None:
    """The number of a CUDA version that is none: another library stands in for the driver."""
    number = merged(lines).get("cuda")
    return number if number is not None and CudaVersion.from_driver_api(int(number)) is None else None


def next_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The next CUDA major, where there is one: what a refused runtime must be of, as a driver runs all of its own."""
    full = driver_full(case, lines)
    following = None if full is None else CudaVersion(full.major + 1, 0)
    return following if _floor(case, following) is not None else None


# ---------------------------------------------------------------------------------------------- PTX and images


def program_needs_newer(case: Case, lines: Lines) -> bool:
    """Whether a program that names the CUDA of the driver wants a newer one."""
    named, wanted = _named_cuda(lines), driver_wanted(case, lines)
    return named is not None and wanted is not None and named.major < wanted.cuda.major


def ptx_source(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA that the PTX comes from."""
    full = driver_full(case, lines)
    made = cuda_of_ptx(merged(lines).get("made"))
    known = (it for it in (case.built_cuda, case.toolkit) if it is not None and (full is None or it > full))
    return made or next(known, None)


def image_cuda(_case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA that a container image asks of the host's driver."""
    fields = merged(lines)
    return parsed_cuda(fields.get("image") or (fields.get("wanted") if fields.get("what") == "cuda" else None))


def image_driver(case: Case, lines: Lines) -> DriverVersion | None:
    """The oldest driver for Linux that supports it in full."""
    cuda = image_cuda(case, lines)
    return None if cuda is None else case.knowledge.full_driver(cuda)


def image_driver_windows(case: Case, lines: Lines) -> DriverVersion | None:
    """The oldest driver for Windows that supports it in full."""
    cuda = image_cuda(case, lines)
    return None if cuda is None else case.knowledge.full_driver(cuda, windows=True)


def image_floor(case: Case, lines: Lines) -> DriverVersion | None:
    """The oldest driver that runs the image's machine code, where this one may be such a driver."""
    cuda, full = image_cuda(case, lines), driver_full(case, lines)
    if cuda is None or cuda.major < _FIRST_WITH_MINOR_COMPATIBILITY or (full is not None and not _runs(full, cuda)):
        return None
    return _floor(case, cuda)


# ---------------------------------------------------------------------------------------------- conda's __cuda


def conda_wanted(_case: Case, lines: Lines) -> CudaVersion | None:
    """The __cuda that packages need."""
    found = (parsed_cuda(it.get("wanted")) for it in lines)
    return max((it for it in found if it is not None), default=None)


def conda_found(case: Case, lines: Lines) -> CudaVersion | None:
    """The __cuda that conda found."""
    found = (parsed_cuda(it.get("found")) for it in lines)
    return next((it for it in found if it is not None), None) or driver_full(case, lines)


# ---------------------------------------------------------------------------------------------- two versions


def kernel_version(case: Case, lines: Lines) -> str | None:
    """The version of the loaded kernel module."""
    fields = merged((*lines, *case.of("driver-packages")))
    if "kernel" in fields or (library := library_version(case, lines)) is None:
        return fields.get("kernel")
    # NVML leaves the third number out: 535.129 of 535.129.03
    return next((it for it in case.every("driver") if not f"{it}.".startswith(f"{library}.")), None)


def library_version(case: Case, lines: Lines) -> str | None:
    """The version of the driver's libraries."""
    fields = merged((*lines, *case.of("driver-packages")))
    return fields.get("library") or fields.get("package")


def mismatch_inside_container(case: Case, lines: Lines) -> bool:
    """Whether it was said inside a container: not by what starts one or by a kernel, nor of a host that was updated."""
    starts = re.compile(r"nvidia-container|runc|OCI runtime|hook #|(?:update|updating).{0,40}\bhost\b", re.IGNORECASE)
    plain = (it for it in lines if it.get("by_driver"))
    return case.container and all(not (starts.search(it.line) or it.get("kernel")) for it in plain)


def smi_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA that nvidia-smi shows, where it is newer than the driver's own."""
    full, seen = driver_full(case, lines), case.driver_cuda
    return seen if case.driver is not None and full is not None and seen is not None and seen > full else None


def compat_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA of the image or build for which the driver is too old."""
    full = driver_full(case, lines)
    known = (it for it in (case.built_cuda, case.toolkit) if it is not None and full is not None and it > full)
    return smi_cuda(case, lines) or next(known, None)
