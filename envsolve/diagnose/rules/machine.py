"""Rules on the machine: a driver in trouble, GPUs that a process does not see, containers and WSL.

Many of these follow from one another: a driver of two versions finds no device, and says so in three ways. What is
nearer to the root is told, and what follows from it is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules import driver, rule_named
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion

Fields = dict[str, str]

_NUMBERS = {
    3: "driver-not-initialized",
    10: "invalid-device",
    30: "driver-unknown-error",
    34: "stub-driver-library",
    35: "driver-too-old",
    36: "driver-too-old-for-call",
    38: "no-device",
    46: "gpu-unavailable",
    100: "no-device",
    101: "invalid-device",
    200: "invalid-kernel-image",
    214: "gpu-ecc-error",
    221: "ptx-compiler-missing",
    222: "ptx-too-new",
    303: "driver-library-missing",
    304: "driver-refused-by-system",
    500: "wsl-container-library",
    800: "container-lost-gpu",
    802: "fabric-manager-not-ready",
    803: "driver-version-mismatch",
    804: "forward-compatibility-unsupported",
    805: "mps-in-trouble",
    806: "mps-in-trouble",
    807: "mps-in-trouble",
    999: "driver-unknown-error",
}
"""The symptom of each number of cuda.h and driver_types.h, with 10, 30 and 38 as the runtime counted before CUDA 10.1.

303 is TensorFlow's and JAX's, for a libcuda that does not load; 800 as Ollama meets it in containers.
"""

_ROOTS = (
    "driver-version-mismatch",
    "driver-branch-ended",
    "gpu-not-supported-by-module",
    "kernel-module-refused",
    "kernel-module-missing",
    "nouveau-has-gpu",
    "gpu-lost",
    "gpu-init-failed",
    "wsl-gpu-blocked",
    "wsl-without-adapter",
    "wsl-container-library",
    "container-runtime-failed",
    "container-lost-gpu",
    "kubernetes-runtime",
    "device-files-denied",
)
"""Why a driver is not loaded or reached."""
_ABOVE_NO_DEVICE = (
    *_ROOTS,
    "no-devices-found",
    "driver-library-missing",
    "libcuda-not-found-by-cudnn",
    "forward-compatibility-unsupported",
    "fabric-manager-not-ready",
    "stub-driver-library",
    "driver-unknown-error",
    "image-without-driver",
    "forked-cuda",
)
"""Why no device is found."""


def _seen(case: Case) -> frozenset[str]:
    """Every symptom of the text, those told by number included."""
    numbered = (_NUMBERS.get(int(it.fields["number"])) for it in case.of("cuda-error-number"))
    return frozenset((*(it.symptom for it in case.sightings), *(it for it in numbered if it is not None)))


def _explained(case: Case, symptoms: tuple[str, ...]) -> bool:
    return not _seen(case).isdisjoint(symptoms)


def _fields(sightings: tuple[Sighting, ...]) -> Fields:
    """The fields of all sightings, of each the first."""
    return {name: value for it in reversed(sightings) for name, value in it.fields.items()}


def _with(case: Case, explanation: str, symptom: str, fields: Fields | None = None) -> Cause:
    """A cause that lines of another symptom speak for, which hold fields for it."""
    seen = case.of(symptom)
    return Cause(explanation, {**_fields(seen), **(fields or {})}, evidence=tuple(it.line for it in seen))


def numbered(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Errors told by number, each as its symptom, where no words tell the same."""
    groups: dict[str, list[Sighting]] = {}
    for it in sightings:
        symptom = _NUMBERS.get(int(it.fields["number"]))
        if symptom is not None and not case.saw(symptom):
            groups.setdefault(symptom, []).append(it)
    for symptom, found in groups.items():
        rule = rule_named(symptom)
        seen = tuple(it._replace(fields={}) for it in found)
        if rule is not None:
            yield from rule(case, seen)
        else:
            yield Diagnosis((Cause(symptom),), seen)


# two versions, forward compatibility


def version_mismatch(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Kernel module and libraries of two versions: an update without a restart, or a library from elsewhere."""
    told = _fields(sightings)
    if "nvml" not in told and "forward-compatibility-unsupported" in _seen(case):
        return
    fields = _versions(case, told)
    mismatch = Cause("driver-version-mismatch", fields, evidence=tuple(it.line for it in case.of("driver-packages")))
    compat = Cause("stale-compat-library", {**fields, **_limits(case, fields), **driver.gpu_fields(case)})
    if "nvml" in told:
        causes: tuple[Cause, ...] = (mismatch,)
    elif case.container or _library_is_of_newer_branch(fields):
        causes = (compat, mismatch)
    else:
        causes = (mismatch, compat)
    yield Diagnosis(causes, sightings)


def _versions(case: Case, told: Mapping[str, str]) -> Fields:
    """The versions of kernel module and libraries, as far as they are told."""
    packages = _fields(case.of("driver-packages"))
    fields: Fields = {name: told[name] for name in ("kernel", "library") if name in told}
    if "library" not in fields and "package" in packages:
        fields["library"] = packages["package"]
    others = [it for it in case.every("driver") if it != fields.get("library")]
    if "library" in fields and "kernel" not in fields and others:
        fields["kernel"] = others[0]
    if "kernel" in fields and "library" in fields:
        if _older(fields["library"], fields["kernel"]):
            fields["how"] = (
                "Here the library is the older of the two: the driver was updated, and a library of the former one is "
                "still found first (left by a runfile installation, another package, an image, or on LD_LIBRARY_PATH)."
            )
            fields["mend"] = (
                f"Remove the libraries of {fields['library']} (ldconfig -p | grep libcuda shows where they lie; a "
                "runfile installation goes with nvidia-uninstall); a restart alone does not help."
            )
        fields["versions"] = f"The kernel module is {fields['kernel']}, the driver's libraries are {fields['library']}."
    return fields


def _older(one: str, other: str) -> bool:
    """Whether a driver version is of an older branch than another one."""
    return int(one.partition(".")[0]) < int(other.partition(".")[0])


def _library_is_of_newer_branch(fields: Mapping[str, str]) -> bool:
    """Whether the library is of a newer branch than the module: the way of a forward-compatibility package."""
    kernel, library = fields.get("kernel", ""), fields.get("library", "")
    return bool(kernel and library) and int(library.partition(".")[0]) > int(kernel.partition(".")[0])


def _limits(case: Case, fields: Mapping[str, str]) -> Fields:
    """The CUDA that the kernel module's own driver supports, and that no newer one may be for the GPU."""
    found: Fields = {}
    try:
        kernel = DriverVersion.parse(fields.get("kernel", ""))
    except ValueError:
        return found
    cuda = case.knowledge.cuda_of(kernel)
    if cuda is not None:
        found["limit"] = f" (CUDA {cuda} or older)"
        found["kernel_words"] = f" {kernel}"
    last = driver.life(case, case.capability)[2]
    found["ends"] = "" if last is None else f" (R{last} is the last branch for this GPU)"
    return found


def compat_unsupported(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 804: a forward-compatibility library on a GPU that has none; or a driver updated without a restart."""
    if any(it.get("nvml") for it in case.of("driver-version-mismatch")):
        return
    can = driver.ability(case)
    fields: Fields = {"driver_is": driver.driver_is(case, can), **driver.gpu_fields(case)}
    shown = case.driver_cuda
    asked = next((it for it in (case.built_cuda, case.toolkit) if it is not None and can and it > can.full), None)
    if can is not None and case.driver is not None:
        fields["native"] = str(can.full)
        if shown is not None and shown > can.full:
            fields["shown"] = str(shown)
            asked = shown
    if asked is not None:
        fields |= {"image": f"The image is for CUDA {asked}.", "full": f" to {driver.full_of(case, asked)} or newer"}
    versions = _versions(case, _fields(case.of("driver-version-mismatch")))
    causes = [Cause("forward-compatibility-unsupported", fields)]
    if not case.container and "shown" not in fields:
        causes.insert(0 if case.saw("bare-metal") else 1, Cause("driver-version-mismatch", versions))
    yield Diagnosis(tuple(causes), (*sightings, *case.of("driver-version-mismatch")))


# a driver that does not start


def fabric_manager(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 802: NVSwitch without its manager, which is of the driver's version."""
    fields: Fields = {}
    if case.driver is not None:
        fields["package"] = f" (package nvidia-fabricmanager-{case.driver.parts[0]}, version {case.driver})"
    yield Diagnosis((Cause("fabric-manager-not-ready", fields),), sightings)


_LXC = re.compile(r"\b(?:lx[cd]|incus|proxmox)\b", re.IGNORECASE)


def unknown_error(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """CUDA's unknown error at the start: nvidia_uvm, in its various troubles."""
    if _explained(case, ("driver-version-mismatch", "gpu-lost", "container-runtime-failed", "container-lost-gpu")):
        return
    uvm, container = Cause("driver-unknown-error"), Cause("container-without-uvm")
    if case.windows or case.wsl:
        causes: tuple[Cause, ...] = (Cause("driver-restart-windows"), uvm)
    elif case.container or any(_LXC.search(it.line) for it in sightings):
        causes = (container, uvm)
    else:
        causes = (uvm, container)
    yield Diagnosis(causes, sightings)


_LEAST_MAJOR = 11
"""The CUDA major of the drivers that builds of the last years need at the least."""


def _old_driver(case: Case) -> Cause | None:
    """A driver from before CUDA 11, where nothing tells for which CUDA the build is."""
    can = driver.ability(case)
    if case.driver is None or can is None or can.full.major >= _LEAST_MAJOR or case.built_cuda is not None:
        return None
    return driver.presumably_too_old(case, can)


_AT_START = re.compile(r"driver initialization failed|cuInit|NOT_INITIALIZED|cudaGetDeviceCount", re.IGNORECASE)


def not_initialized(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 3: of the driver itself when it is started, else mostly of a forked process."""
    if _explained(case, ("forked-cuda", "driver-version-mismatch")):
        return
    itself, forked = Cause("driver-not-initialized"), Cause("forked-cuda")
    too_old = driver.proven_too_old(case)
    if not any(_AT_START.search(it.line) for it in sightings):
        causes: tuple[Cause, ...] = (forked, itself)
    else:
        causes = (itself, forked) if too_old is None else (too_old, itself)
        if too_old is None and (old := _old_driver(case)) is not None:
            causes = (old, itself, forked)
    yield Diagnosis(causes, sightings)


def not_loaded(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A driver that is installed and not loaded."""
    if _explained(case, _ROOTS):
        return
    if not _plainly_not_loaded(case):
        if not _explained(case, ("driver-library-missing", "driver-too-old", "no-device")):
            yield Diagnosis(tuple(_no_library(case, {})), sightings)
        return
    yield Diagnosis(tuple(_of_not_loaded(case)), sightings)


def _plainly_not_loaded(case: Case) -> bool:
    """Whether somebody says so who has tried; TensorFlow says it of every container and WSL, which lack a file."""
    return any("does not appear" not in it.line for it in case.of("driver-not-loaded"))


def _of_not_loaded(case: Case) -> Iterator[Cause]:
    fields = driver.gpu_fields(case)
    if case.saw("gpu-before-fermi"):
        yield _with(case, "gpu-too-old-for-cuda", "gpu-before-fermi")
        return
    if driver.too_new_for_gpu(case):
        yield Cause("driver-too-new-for-gpu", fields)
    elif driver.too_old_for_gpu(case):
        yield Cause("driver-too-old-for-gpu", fields)
    if case.wsl:
        yield Cause("wsl-driver-not-reached")
    elif case.saw("colab"):
        yield _no_gpu_allocated(case)
    yield Cause("kernel-module-not-loaded")


def module_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """No module for the running kernel; in WSL there is none, and none is needed."""
    fields = _fields(sightings)
    if "directory" in fields:
        fields["directory_words"] = f" ({fields['directory']})"
    missing = Cause("kernel-module-missing", fields)
    yield Diagnosis((Cause("wsl-driver-not-reached"), missing) if case.wsl else (missing,), sightings)


def init_failed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU that the module found and could not start."""
    if _explained(case, ("gpu-not-supported-by-module", "driver-branch-ended", "gpu-lost")):
        return
    yield Diagnosis(tuple(_of_dead_gpu(case, "gpu-init-failed", _fields(sightings))), sightings)


def no_devices_found(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """nvidia-smi without a GPU."""
    if _explained(case, (*_ROOTS, "driver-not-loaded", "driver-library-missing")):
        return
    fields: Fields = {"driver_is": driver.driver_is(case, driver.ability(case))}
    yield Diagnosis(tuple(_of_dead_gpu(case, "no-devices-found", fields)), sightings)


_FIRST_WITH_OPEN_MODULES_ONLY = 10
"""The major of the compute capability of Blackwell."""


def _of_dead_gpu(case: Case, last: str, fields: Fields) -> Iterator[Cause]:
    fields = {**driver.gpu_fields(case), **fields}
    if driver.too_new_for_gpu(case):
        yield Cause("driver-too-new-for-gpu", fields)
    elif driver.too_old_for_gpu(case):
        yield Cause("driver-too-old-for-gpu", fields)
    elif case.capability is not None and case.capability.major >= _FIRST_WITH_OPEN_MODULES_ONLY and not case.wsl:
        yield Cause("open-modules-needed", fields)
    if case.wsl:
        yield Cause("wsl-driver-not-reached")
    yield Cause(last, fields)


def lost(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU off the bus; in WSL handles are refused for one in TCC mode, and of several it is seldom the hardware."""
    cause = Cause("gpu-lost", _fields(sightings))
    if case.wsl:
        yield Diagnosis((_with(case, "wsl-tcc-mode", "tcc-mode"), cause), sightings)
        return
    handle_only = all("device handle" in it.line.casefold() for it in sightings)
    others: tuple[Cause, ...] = (Cause("container-lost-gpu"),) if case.container and handle_only else ()
    if len({it.get("bus") for it in sightings}) > 1 and case.saw("no-devices-found"):
        others = (*others, Cause("wsl-tcc-mode"))
    yield Diagnosis((cause, *others), sightings)


_HARDWARE_XIDS = {
    "48": "an ECC error of two bits",
    "62": "a halt of the internal microcontroller",
    "63": "an event of row remapping",
    "64": "a failure of row remapping",
    "74": "an error of NVLink",
    "92": "a high rate of ECC errors",
    "94": "a contained ECC error",
    "95": "an uncontained ECC error",
    "110": "a security fault",
    "140": "an unrecovered ECC error",
}
_GSP_XIDS = ("119", "120")


def xid(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Xid errors of hardware and GSP; those of programs are told by what the programs say, 79 as a lost GPU."""
    for number in dict.fromkeys(it.get("xid") for it in sightings):
        seen = tuple(it for it in sightings if it.get("xid") == number)
        if number in _GSP_XIDS:
            yield Diagnosis((Cause("gsp-timeout", seen[0].fields),), seen)
        elif number in _HARDWARE_XIDS:
            fields = {**seen[0].fields, "meaning": _HARDWARE_XIDS[number]}
            yield Diagnosis((Cause("gpu-hardware-error", fields),), seen)


def unavailable(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 46: held alone by another process, or stuck."""
    if case.saw("exclusive-mode"):
        yield Diagnosis((_with(case, "gpu-unavailable", "exclusive-mode"),), sightings)
        return
    held, stuck = Cause("gpu-unavailable"), Cause("gpu-stuck")
    yield Diagnosis((stuck, held) if case.wsl or case.windows else (held, stuck), sightings)


# no driver's library, no device


def library_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """No libcuda, or no NVML: the driver is not there, or not for this process."""
    if _explained(case, ("kubernetes-runtime", "container-runtime-failed", "wsl-gpu-blocked", "amd-gpu")):
        return
    fields = _fields(sightings)
    yield Diagnosis(tuple(_no_library(case, fields)), sightings)


def _no_library(case: Case, fields: Fields) -> Iterator[Cause]:
    """Why there is no driver's library, by what is known of the machine."""
    absent, container = Cause("driver-library-missing", fields), Cause("container-without-gpu", fields)
    if case.platform in (Platform.OSX_64, Platform.OSX_ARM64):
        yield Cause("no-cuda-on-macos")
    elif case.saw("wsl-1"):
        yield _with(case, "wsl-1", "wsl-1")
    elif case.wsl:
        yield from _windows_too_old(case)
        yield Cause("wsl-driver-not-reached")
        yield absent
    elif case.jetson:
        yield Cause("jetson-device-files")
        yield container
    elif case.container or case.saw("image-without-driver"):
        yield container
        yield absent
    elif case.driver is not None:
        yield Cause("driver-hidden-from-process", fields)
        yield container
    else:
        yield from (_no_gpu_allocated(case),) if case.saw("slurm", "colab") else ()
        yield absent
        yield container


def _windows_too_old(case: Case) -> Iterator[Cause]:
    if case.saw("windows-without-gpu-for-wsl"):
        yield driver.windows_too_old(case)


def _no_gpu_allocated(case: Case) -> Cause:
    """A job or a notebook without a GPU."""
    if case.saw("slurm"):
        return _with(case, "no-gpu-allocated", "slurm", {"place": "a job of Slurm that asked for none (--gres=gpu)"})
    if case.saw("colab"):
        service = _fields(case.of("colab")).get("service", "colab").capitalize()
        return _with(case, "no-gpu-allocated", "colab", {"place": f"a notebook of {service} without a GPU runtime"})
    return Cause("no-gpu-allocated")


_RAY = re.compile(r"\bray::|\(ray\b|RayWorker|raylet|\bray\.exceptions", re.IGNORECASE)


def no_device(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A driver that answers and finds no GPU."""
    if _explained(case, _ABOVE_NO_DEVICE) or _plainly_not_loaded(case):
        return
    yield Diagnosis(tuple(_of_no_device(case, sightings))[:4], sightings)


def _of_no_device(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Cause]:
    fields: Fields = {"driver_is": driver.driver_is(case, driver.ability(case)), **driver.gpu_fields(case)}
    hidden, allocated = Cause("gpus-hidden"), _no_gpu_allocated(case)
    none = Cause("no-device", fields)
    if case.saw("gpus-hidden"):
        yield from (_hidden(case), none)
    elif (case.told("available") or "").casefold() == "true":
        yield from (hidden, none)
    elif driver.too_new_for_gpu(case):
        yield Cause("driver-too-new-for-gpu", fields)
        yield none
    elif case.wsl:
        yield from _windows_too_old(case)
        yield from (none, Cause("wsl-driver-not-reached"), hidden)
    elif case.jetson:
        yield from (Cause("jetson-device-files"), none)
    elif case.saw("slurm", "colab"):
        yield from (allocated, hidden, none)
    elif case.container:
        yield from (Cause("container-without-gpu"), hidden, none)
    elif any(_RAY.search(it.line) for it in sightings):
        yield from (hidden, allocated, none)
    elif case.saw("driver-not-loaded"):
        yield from (Cause("kernel-module-not-loaded", fields), Cause("container-without-gpu"), hidden)
    else:
        yield from (hidden, none, allocated)


def invalid_device(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU number that is not there; with MIG a process has one device whatever it counts."""
    wrong = Cause("invalid-device", _fields(sightings))
    if case.saw("mig-devices"):
        yield Diagnosis((_with(case, "mig-one-device", "mig-devices"), wrong), sightings)
    elif any("device <" in it.line for it in sightings):
        yield Diagnosis((wrong, Cause("mig-one-device")), sightings)
    else:
        yield Diagnosis((wrong,), sightings)


def _hidden(case: Case) -> Cause:
    seen = case.of("gpus-hidden")
    value = (seen[0].get("value") or "").strip("'\" ") or "empty"
    return Cause("gpus-hidden", {"value": value}, evidence=tuple(it.line for it in seen))


def hidden(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """GPUs hidden by a variable: told of its own only beside another trouble; with no device it is its cause."""
    if case.saw("driver-too-old", "cuda-unavailable") and "no-device" not in _seen(case):
        yield Diagnosis((_hidden(case),), sightings)


# containers, WSL


def runtime_failed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """nvidia-container-cli by its own words; what other symptoms tell of the same line is theirs."""
    told = _fields(sightings)
    said = told.get("reason", "").casefold()
    if _explained(case, ("wsl-without-adapter", "driver-version-mismatch", "device-files-denied", "libdxcore-missing")):
        return
    explanation = next((name for words, name in _REASONS if re.search(words, said)), "container-runtime-failed")
    if told.get("stage") == "ldcache":
        explanation = "container-ldconfig"
    fields: Fields = {"stage": told.get("stage", ""), "reason": _cut(told.get("reason", ""))}
    causes = [Cause(explanation, fields)]
    if case.saw("snap-docker") and explanation in ("container-host-driver", "container-runtime-failed"):
        causes.insert(0, _with(case, "snap-docker", "snap-docker"))
    elif explanation == "container-host-driver" and (case.wsl or case.windows):
        causes.insert(0, Cause("wsl-driver-not-reached"))
    yield Diagnosis(tuple(causes), sightings)


_REASONS = (
    ("cgroup|device rules|bpf_", "container-cgroup"),
    ("file exists", "container-file-exists"),
    ("unknown device", "container-device-unknown"),
    ("driver not loaded|load library failed|driver error|cuda error|nvml error|driver rpc", "container-host-driver"),
)
_LONGEST_REASON = 160


def _cut(reason: str) -> str:
    """The reason without what the runtime wraps around it."""
    text = re.split(r'\\+n|\\+"|: unknown\b(?! device)|", ', reason)[0].strip(" .\\\"'")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def dxcore(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """WSL's library that a sandbox hides."""
    missing = Cause("libdxcore-missing")
    if case.saw("snap-docker"):
        yield Diagnosis((_with(case, "snap-docker", "snap-docker"), missing), sightings)
    elif not _explained(case, ("wsl-without-adapter",)):
        yield Diagnosis((missing,), sightings)


def toolkit_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Docker without NVIDIA's runtime, or with a part of it."""
    told = _fields(sightings)
    if case.windows and not case.wsl and not told:
        yield Diagnosis((Cause("container-on-windows"), Cause("container-toolkit-missing")), sightings)
        return
    fields: Fields = {}
    if "runtime" in told:
        fields["missing"] = "The runtime nvidia is not registered in Docker's daemon.json."
    if "cdi" in told:
        fields["missing"] = "Docker 29 looks for GPUs by CDI and finds no specification of a GPU vendor."
    if name := told.get("program") or told.get("hook"):
        fields["missing"] = f"The program {name} is not there: the toolkit's packages are missing, old or incomplete."
    toolkit = Cause("container-toolkit-missing", fields)
    snap = (_with(case, "snap-docker", "snap-docker"),) if case.saw("snap-docker") else ()
    yield Diagnosis((*snap, toolkit), sightings)


def cdi_unknown(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A CDI device without a specification."""
    told = _fields(sightings)
    device = (told.get("device") or told.get("file") or "").rstrip(":.,\"'")
    yield Diagnosis((Cause("cdi-device-unknown", {"device": device} if device else {}),), sightings)


def image_without_driver(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What images and apptainer say at their start."""
    nv = tuple(it for it in sightings if "nv files" in it.line.casefold())
    others = tuple(it for it in sightings if it not in nv)
    if nv:
        yield Diagnosis((Cause("apptainer-without-driver"),), nv)
    if others:
        yield Diagnosis((Cause("container-without-gpu"),), others)


def capability_missing(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A part of the driver that the container did not ask for."""
    told = _fields(sightings)
    library = told.get("library") or told.get("other", "")
    graphics = re.search(r"optix|GLX|EGL", library, re.IGNORECASE)
    fields: Fields = {"library": library, "capability": "graphics" if graphics else "video"}
    yield Diagnosis((Cause("driver-capability-missing", fields),), sightings)


def wsl_blocked(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NVML in WSL: the mode of the GPU in Windows, or Windows itself."""
    tcc, blocked = _with(case, "wsl-tcc-mode", "tcc-mode"), Cause("wsl-gpu-blocked")
    if case.saw("tcc-mode"):
        yield Diagnosis((tcc,), sightings)
    elif case.saw("windows-without-gpu-for-wsl"):
        yield Diagnosis((*_windows_too_old(case), blocked), sightings)
    else:
        yield Diagnosis((blocked, tcc), sightings)


def lost_gpu(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NVML's unknown error, of containers mostly; error 800 only where it happened in one."""
    by_number = all(it.symptom == "cuda-error-number" for it in sightings)
    if by_number and not case.container:
        return
    causes = (Cause("container-lost-gpu"),)
    yield Diagnosis(causes if case.container else (*causes, Cause("gpu-stuck")), sightings)


def told_elsewhere(_case: Case, _sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Facts that other rules take into account, and that mean nothing alone."""
    yield from ()


RULES: Mapping[str, Rule] = {
    "cuda-error-number": numbered,
    "driver-version-mismatch": version_mismatch,
    "forward-compatibility-unsupported": compat_unsupported,
    "fabric-manager-not-ready": fabric_manager,
    "driver-unknown-error": unknown_error,
    "driver-not-initialized": not_initialized,
    "driver-not-loaded": not_loaded,
    "kernel-module-missing": module_missing,
    "gpu-init-failed": init_failed,
    "no-devices-found": no_devices_found,
    "gpu-lost": lost,
    "gpu-xid": xid,
    "gpu-unavailable": unavailable,
    "driver-library-missing": library_missing,
    "no-device": no_device,
    "invalid-device": invalid_device,
    "gpus-hidden": hidden,
    "container-runtime-failed": runtime_failed,
    "container-toolkit-missing": toolkit_missing,
    "libdxcore-missing": dxcore,
    "snap-docker": told_elsewhere,
    "mig-devices": told_elsewhere,
    "container-system": told_elsewhere,
    "bare-metal": told_elsewhere,
    "cdi-device-unknown": cdi_unknown,
    "image-without-driver": image_without_driver,
    "driver-capability-missing": capability_missing,
    "wsl-gpu-blocked": wsl_blocked,
    "container-lost-gpu": lost_gpu,
    "driver-packages": told_elsewhere,
    "exclusive-mode": told_elsewhere,
    "gpu-before-fermi": told_elsewhere,
    "slurm": told_elsewhere,
    "colab": told_elsewhere,
    "tcc-mode": told_elsewhere,
    "wsl-1": told_elsewhere,
    "windows-without-gpu-for-wsl": told_elsewhere,
}
