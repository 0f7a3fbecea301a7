"""Rules on builds without CUDA: who installed a CPU build decides what to do, and the system decides who it was.

Windows, macOS and Arm get CPU wheels from the Python index by themselves; on x86-64 Linux somebody asked for one. A
Jetson needs NVIDIA's builds, a GPU of AMD none of these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.gpu_code import first_told
from envsolve.diagnose.rules.builds_places import arm_fields, jetson_words, on_arm, on_macos, only_amd
from envsolve.diagnose.rules.code_reach import built_with, listed, taking
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source

_ASKS_FOR_NVIDIA = re.compile(r"nvidia|cuda|gpu", re.IGNORECASE)
_GFX = re.compile(r"(?<!\w)gfx(?:9|1[01])\w{2,3}")
# PyTorch


def cpu_build(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A PyTorch without CUDA, and where it came from."""
    if only_amd(case) or not _matters(case, sightings):
        return
    certain = any(it.get(field) for it in sightings for field in _NAMES_OF_CPU)
    if on_macos(case) or any(it.get("apple") for it in sightings):
        causes = [Cause("macos-without-cuda", case.fields_of("pytorch"))]
    elif case.jetson:
        causes = [Cause("jetson-build-needed", {**jetson_words(case), **case.fields_of("pytorch")})]
    elif on_arm(case):
        causes = [Cause("aarch64-cpu-build", arm_fields(case, "pytorch"))]
    else:
        causes = [Cause("cpu-build", cpu_fields(case))]
        if any(_asks(it) for it in sightings) and not (certain and case.gpus):
            causes.append(Cause("cpu-only-on-purpose"))
            if case.platform is None and not certain:
                causes.append(Cause("macos-without-cuda", case.fields_of("pytorch")))
    yield Diagnosis(tuple(causes), sightings)


_NAMES_OF_CPU = ("local", "build_string", "cpuonly", "none")
"""Groups that name the build itself, and not only what it lacks."""


def _asks(sighting: Sighting) -> bool:
    """Whether a line is an error of a program that asked for CUDA."""
    return not any(sighting.get(field) for field in (*_NAMES_OF_CPU, "not_found"))


def _matters(case: Case, sightings: Sequence[Sighting]) -> bool:
    """Whether the GPU was wanted: a version with +cpu is in every report of a machine that has none."""
    asked = any(_asks(it) or it.get("none") for it in sightings)
    said = any(not it.get("collected") for it in case.of("cuda-not-available"))
    return asked or said or bool(case.gpus) or case.driver is not None


def cpu_fields(case: Case) -> dict[str, str]:
    """Fields on a CPU build of PyTorch: why it was installed, and how to install another."""
    fields = {
        "why_cpu": _why_cpu(case),
        "how_cuda": _how_cuda(case),
        **case.fields_of("pytorch"),
        "uv_words": "With uv or Poetry, see that [tool.uv.sources] sends this platform to the CUDA index: a marker "
        "such as sys_platform == 'linux' leaves Windows to the CPU wheel, and these tables are not part of a "
        "published package, so that uv tool install and pip need the index on the command line (--index-url or "
        "--torch-backend=auto).",
    }
    if case.version_of("pytorch") is None:
        fields["unversioned"] = (
            "The installed build has no CUDA in it (CPU-only): no driver, no CUDA toolkit and no setting makes it use "
            "a GPU."
        )
    return fields


_WINDOWS = (
    "On Windows the default index holds only the CPU wheel of PyTorch: pip install torch, a requirements file or "
    "another package that asks for torch brings it, and puts it over a CUDA build that was there."
)
_LINUX = (
    "On x86-64 Linux the default wheel is a CUDA build, so a CPU build comes from an index of CPU wheels "
    "(download.pytorch.org/whl/cpu), from a source or marker for the CPU in uv or Poetry, or from conda."
)
_CONDA = (
    "conda takes the CPU build (build string cpu, package cpuonly) where cpuonly is installed, where it sees no "
    "NVIDIA driver (no __cuda in conda info), or where no CUDA build fits the Python and the other packages."
)


def _why_cpu(case: Case) -> str:
    asked = _asked_of_conda(case)
    if asked:
        return asked
    conda = any(it.get(field) for it in case.of("cpu-build") for field in ("build_string", "cpuonly"))
    if conda or case.told("conda") is not None:
        return f"{_CONDA} {_WINDOWS}" if case.windows else _CONDA
    if case.windows:
        return _WINDOWS
    return _LINUX if case.platform is Platform.LINUX_64 else f"{_WINDOWS} {_LINUX} {_CONDA}"


def _how_cuda(case: Case) -> str:
    """The commands for a CUDA build; of the installed version, where it has one."""
    version = (case.version_of("pytorch") or "").partition("+")[0]
    builds = case.knowledge.releases("pytorch", version, case.platform)
    wheels = [it for it in builds if it.cuda is not None and it.source is Source.PYTORCH]
    wheels = [it for it in wheels if case.capability is None or it.code.runs_as(case.capability) is not None]
    wheels = [it for it in wheels if _driver_runs(case, it)] or wheels
    words = "pip uninstall -y torch torchvision torchaudio, then install from PyTorch's index for a CUDA version: "
    conda = (
        " With conda: remove cpuonly and ask for the CUDA build (pytorch=*=*cuda*, or pytorch-cuda=12.4 with -c "
        "pytorch -c nvidia)."
    )
    if wheels:
        return f"{words}{taking(wheels[0])} (there is {listed(dict.fromkeys(it.build for it in wheels))}).{conda}"
    return (
        f"{words}`pip install torch torchvision torchaudio --index-url https://download.pytorch.org/whl/cu126` (cu126 "
        f"for GPUs up to 9.0, old ones included; cu128 or newer for RTX 50).{conda}"
    )


def _driver_runs(case: Case, release: Release) -> bool:
    """Whether the driver that is told, if any, runs a build."""
    floor = None if release.cuda is None else case.knowledge.driver_floor(release.cuda, windows=case.windows)
    return case.driver is None or floor is None or case.driver.meets(floor)


def _asked_of_conda(case: Case) -> str:
    """Where conda was asked for a CUDA that the version has no build for."""
    asked = first_told(case.of("conda-asks-for-cuda"), "asked")
    version = (case.version_of("pytorch") or "").partition("+")[0]
    builds = [it for it in case.knowledge.releases("pytorch", version, case.platform) if it.cuda is not None]
    of_channel = sorted({it.cuda for it in builds if it.source is Source.PYTORCH_CHANNEL and it.cuda is not None})
    if asked is None or not of_channel or any(str(it) == asked for it in of_channel):
        return ""
    return (
        f"conda was asked for CUDA {asked}: PyTorch's channel has PyTorch {version} for CUDA {listed(of_channel)} and "
        f"none for {asked}, so conda took the CPU build. Ask for CUDA {of_channel[-1]}, or for a PyTorch that has a "
        f"build for {asked}."
    )


# what PyTorch says of the GPU


_GOES_ON = re.compile(r"CUDA is not available", re.IGNORECASE)


def not_available(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """No CUDA for PyTorch: a build without it, or a driver that does not serve the build."""
    if case.saw("cpu-build", "no-code-for-gpu") or only_amd(case):
        return
    collected = all(it.get("collected") for it in sightings)
    if on_macos(case):
        if not collected:
            yield Diagnosis((Cause("macos-without-cuda", case.fields_of("pytorch")),), sightings)
        return
    if case.jetson:
        yield Diagnosis((Cause("jetson-build-needed", {**jetson_words(case), **case.fields_of("pytorch")}),), sightings)
        return
    if collected and not case.gpus and case.driver is None:
        return  # a machine without a GPU, where it is as it should be
    if _driver_is_older(case):
        return  # what the rules on drivers tell
    if case.framework is None and all(_GOES_ON.search(it.line) for it in sightings):
        return  # a program that says only that it goes on without CUDA
    yield Diagnosis(tuple(_not_available_causes(case)), sightings)


def _not_available_causes(case: Case) -> Iterator[Cause]:
    told = case.told("built_cuda") is not None or "+cu" in (case.version_of("pytorch") or "")
    with_cuda = built_with(case, "pytorch") if told or case.platform is Platform.LINUX_64 else {}
    invisible = Cause("gpu-not-visible", {**case.fields_of("pytorch"), **with_cuda})
    if on_arm(case) and not told:
        yield Cause("aarch64-cpu-build", arm_fields(case, "pytorch"))
        yield invisible
    elif told:
        yield invisible
    elif case.platform is Platform.LINUX_64:
        yield invisible
        yield Cause("cpu-build", cpu_fields(case))
    else:
        yield Cause("cpu-build", cpu_fields(case))
        yield invisible
        if case.platform is None:
            yield Cause("aarch64-cpu-build", arm_fields(case, "pytorch"))


def _driver_is_older(case: Case) -> bool:
    """Whether the driver is below the floor of the build's CUDA."""
    cuda = case.cuda_of("pytorch")
    floor = None if cuda is None else case.knowledge.driver_floor(cuda, windows=case.windows)
    return floor is not None and case.driver is not None and not case.driver.meets(floor)


# extensions


def extension_without_cuda(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """An extension of PyTorch without kernels for CUDA."""
    fields = {key: it for key in ("library", "operator") if (it := first_told(sightings, key)) and it != "_C"}
    yield Diagnosis((Cause("extension-without-cuda", fields),), sightings)


# other vendors


def amd(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU of AMD: told where it failed by itself, or where something asks it for CUDA."""
    own = [it for it in sightings if not any(it.get(field) for field in ("card", "gfx", "rocm", "vendor"))]
    others = [
        it for it in case.sightings if it.symptom != "amd-gpu" and _ASKS_FOR_NVIDIA.search(f"{it.symptom} {it.line}")
    ]
    in_line = any(re.search(r"no NVIDIA driver|CUDA error|NVIDIA GPU", it.line, re.IGNORECASE) for it in sightings)
    if not own and (case.gpus or case.driver is not None or not (others or in_line)):
        return
    fields: dict[str, str] = {"amd_what": "What failed is AMD's software (ROCm, HIP), and not CUDA."}
    if first_told(sightings, "zluda", "zluda_path"):
        fields["amd_what"] = "ZLUDA, which lets CUDA programs run on AMD GPUs, is what runs here in CUDA's place."
    elif first_told(sightings, "rocm"):
        fields["amd_what"] = (
            "Builds for AMD (ROCm) were installed or asked for, and what runs asks for an NVIDIA GPU and its driver: "
            "it is a CUDA build, of another environment than the one that was installed into, or put over the ROCm "
            "build by a package that asks for torch."
        )
    elif not own:
        fields["amd_what"] = "The machine has an AMD GPU, and the build asks for an NVIDIA GPU and its driver."
    card = first_told(sightings, "card")
    if card is not None:
        fields["card_words"] = f" ({card.strip()})"
    gfx = listed(dict.fromkeys(found for it in sightings for found in _GFX.findall(it.line)))
    if gfx:
        fields["gfx_words"] = (
            f"The card's architecture is {gfx}: a ROCm build without code for it fails with an invalid or missing "
            "kernel image; HSA_OVERRIDE_GFX_VERSION can make a related architecture's code load on Linux."
        )
    else:
        fields["gfx_words"] = _gfx_of_card(card)
    yield Diagnosis((Cause("amd-gpu", fields),), sightings)


_RDNA2 = re.compile(r"RX ?-?6[4-7]\d0", re.IGNORECASE)
_RDNA3 = re.compile(r"RX ?-?7[678]\d0", re.IGNORECASE)


def _gfx_of_card(card: str | None) -> str:
    """What is known of a card's architecture in builds for ROCm."""
    words = "Each AMD card has an architecture number (gfx...), for which the ROCm build must have code"
    if card is not None and _RDNA2.search(card):
        return (
            f"{words}: the RX 6400 to 6700 are gfx1031 to gfx1034, which are in few ROCm builds, and code for gfx1030 "
            "runs on them: export HSA_OVERRIDE_GFX_VERSION=10.3.0 (Linux)."
        )
    if card is not None and _RDNA3.search(card):
        return (
            f"{words}: the RX 7600 to 7800 are gfx1101 and gfx1102; where a ROCm build has gfx1100 only, export "
            "HSA_OVERRIDE_GFX_VERSION=11.0.0 (Linux)."
        )
    return f"{words}."


RULES: Mapping[str, Rule] = {
    "cpu-build": cpu_build,
    "cuda-not-available": not_available,
    "extension-without-cuda": extension_without_cuda,
    "amd-gpu": amd,
}
