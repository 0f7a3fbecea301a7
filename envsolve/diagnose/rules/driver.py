"""Rules on the driver's version: what it is, what it runs, and what was asked of it.

Two numbers decide. A driver runs machine code of every minor version of its CUDA major, from CUDA 11 on (minor-version
compatibility), and compiles PTX only up to the CUDA that it supports in full. So error 35 from a driver for CUDA 12.8
means a runtime of CUDA 13, while unsupported PTX may be of 12.9. And a driver ends: each GPU has a last branch.
Source: NVIDIA, CUDA Compatibility; the numbers are those of the matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion

Fields = dict[str, str]

_FIRST_WITH_MINOR_COMPATIBILITY = 11
_FIRST_NUMBER = re.compile(r"\d+")
_PTX = {
    "6.0": "9.0",
    "6.1": "9.1",
    "6.2": "9.2",
    "6.3": "10.0",
    "6.4": "10.1",
    "6.5": "10.2",
    **{f"7.{minor}": f"11.{minor}" for minor in range(9)},
    **{f"8.{minor}": f"12.{minor}" for minor in range(6)},
    "8.6": "12.7",
    "8.7": "12.8",
    "8.8": "12.9",
    **{f"9.{minor}": f"13.{minor}" for minor in range(5)},
}
"""The CUDA that came with each version of PTX: docs.nvidia.com/cuda/parallel-thread-execution, release notes."""


class Ability(NamedTuple):
    """What a driver can do: the CUDA that it supports in full, and the newest whose machine code it runs."""

    full: CudaVersion
    newest: CudaVersion


# what the case tells of the driver


def ability(case: Case) -> Ability | None:
    """What the case's driver can do, judged by its own number first: an image with cuda-compat tells another CUDA."""
    full = case.driver_cuda
    if case.driver is not None:
        full = case.knowledge.cuda_of(case.driver) or full
    return None if full is None else _ability(case, full)


def _ability(case: Case, full: CudaVersion) -> Ability:
    known = [it.version for it in case.knowledge.matrix.cuda.toolkits]
    return Ability(full, max((it for it in known if _runs(full, it)), default=full))


def _runs(full: CudaVersion, cuda: CudaVersion) -> bool:
    """Whether a driver that supports ``full`` runs machine code of ``cuda``."""
    same = cuda.major == full.major and full.major >= _FIRST_WITH_MINOR_COMPATIBILITY
    return same or cuda <= full


def windows_numbers(case: Case) -> bool:
    """Whether the driver's number is one of Windows: there and in WSL."""
    return case.windows or case.wsl


def floor_of(case: Case, cuda: CudaVersion) -> str:
    """The oldest driver that runs ``cuda``; on Linux, where nothing says that it is Windows."""
    floor = case.knowledge.driver_floor(cuda, windows=windows_numbers(case))
    return "" if floor is None else str(floor)


def full_of(case: Case, cuda: CudaVersion) -> str:
    """The oldest driver that supports ``cuda`` in full, likewise."""
    full = case.knowledge.full_driver(cuda, windows=windows_numbers(case))
    return "" if full is None else str(full)


def driver_is(case: Case, can: Ability | None) -> str:
    """A sentence on the driver; empty where nothing is known of it."""
    if can is None:
        return "" if case.driver is None else f"The driver is {case.driver}, of a branch from before CUDA 9.0."
    runs = f"it supports CUDA {can.full} in full and runs builds for CUDA {can.newest} and older"
    if case.driver is not None:
        own = case.knowledge.cuda_of(case.driver)
        if own is not None and own.major > can.full.major:
            return (
                f"The text is of a driver for CUDA {can.full}, and driver {case.driver}, which is told beside it, "
                f"supports CUDA {own}: the program met another driver, before an update, on another machine, or as an "
                "old libcuda on the loader's path or in a container."
            )
        return f"The driver is {case.driver}: {runs}."
    branches = [str(it.branch) for it in case.knowledge.matrix.cuda.branches if it.cuda == can.full]
    if not branches:
        return f"As for the driver, {runs}."
    return f"That is a driver of branch R{' or R'.join(sorted(branches))}: {runs}."


def life(case: Case, capability: ComputeCapability | None) -> tuple[str, int | None, int | None]:
    """Generation, first and last driver branch of a GPU."""
    known = None if capability is None else case.knowledge.matrix.cuda.life_of(capability)
    return ("", None, None) if known is None else (known.name, known.first_branch, known.last_branch)


def too_new_for_gpu(case: Case) -> bool:
    """Whether the driver's branch came after the last that supports the GPU."""
    last = life(case, case.capability)[2]
    return (
        case.driver is not None and last is not None and case.driver.parts[0] >= case.knowledge.matrix.cuda.after(last)
    )


def too_old_for_gpu(case: Case) -> bool:
    """Whether the driver's branch is older than the GPU."""
    first = life(case, case.capability)[1]
    return case.driver is not None and first is not None and case.driver.parts[0] < first


def gpu_fields(case: Case) -> Fields:
    """What sentences on the GPU's life with drivers speak of."""
    name, first, last = life(case, case.capability)
    found: Fields = {}
    if name:
        found["generation"] = f" ({name}, compute capability {case.capability})"
        found["gpu_words"] = f", here {case.gpus[0] if case.gpus else name} with compute capability {case.capability}"
    if first is not None:
        found["first"] = str(first)
    if last is not None:
        found["legacy"] = str(last)
    span = None if case.capability is None else case.knowledge.cuda_for(case.capability)
    if span is not None and span[1] is not None:
        found["gpu_cuda"] = f"The newest CUDA for this GPU is {span[1]}: take builds for CUDA {span[1]} or older."
    return found


# what was asked of the driver


def _default_build(case: Case) -> Release | None:
    """The build of the framework's version that pip takes by itself, where several are and none was told."""
    return next((it for it in case.releases() if it.source is Source.PYPI and it.cuda is not None), None)


class Wanted(NamedTuple):
    """The CUDA that was asked of the driver, and a sentence on how that is known."""

    cuda: CudaVersion
    sentence: str


def _wanted(case: Case, full: CudaVersion, runtime: CudaVersion | None) -> Wanted | None:
    """What ``full`` does not run: told, of the build, of its default, or by the rule that majors are kept."""
    title = TITLES.get(case.framework or "", "The program")
    version = case.version_of(case.framework)
    known = f"{title} {version}" if version else title
    default = _default_build(case)
    candidates = (
        (runtime, "The CUDA runtime that was loaded is"),
        (case.built_cuda, f"{known} was built for"),
        (None if default is None else default.cuda, f"The build of {known} that pip installs by itself is for"),
        (case.toolkit, "The CUDA on the machine is"),
    )
    for cuda, sentence in candidates:
        if cuda is not None and not _runs(full, cuda):
            return Wanted(cuda, f"{sentence} CUDA {cuda}, which needs driver {floor_of(case, cuda)} or newer.")
    return _next_major(case, full)


def _next_major(case: Case, full: CudaVersion) -> Wanted | None:
    """The next CUDA major: what a refused runtime must be of, as a driver runs all of its own."""
    first = CudaVersion(full.major + 1, 0)
    if full.major < _FIRST_WITH_MINOR_COMPATIBILITY or not floor_of(case, first):
        return None
    return Wanted(
        first,
        f"A driver runs builds for every CUDA {full.major}, so this one is for CUDA {first.major} or newer, "
        f"which needs driver {floor_of(case, first)} or newer.",
    )


def floors(case: Case) -> str:
    """Which driver each CUDA needs, for want of anything better."""
    known = {"CUDA 10.2": "10.2", "CUDA 11": "11.8", "CUDA 12": "12.9", "CUDA 13": "13.0"}
    listed = ", ".join(f"{name} driver {floor_of(case, CudaVersion.parse(cuda))}" for name, cuda in known.items())
    return f"Builds need, or a newer one: {listed}{' (on Windows)' if windows_numbers(case) else ' (on Linux)'}."


def _instead(case: Case, can: Ability) -> str:
    """Builds that a driver runs: of the framework's version, else its newest release that has one."""
    limit = f"CUDA {can.newest} or older"
    name = case.framework
    if name is None:
        return limit
    same = [it for it in case.releases() if it.cuda is not None and _runs(can.full, it.cuda)]
    fitting = same or [
        it for it in case.knowledge.all_releases(name, case.platform) if it.cuda and _runs(can.full, it.cuda)
    ]
    if not fitting:
        return limit
    newest = max(it.version for it in fitting)
    builds = sorted({it.build for it in fitting if it.version == newest and it.build})
    title = TITLES.get(name, name)
    has = "has them" if same else "is the newest that has one"
    return f"{limit}; {title} {newest} {has} ({', '.join(builds)})" if builds else f"{limit}; {title} {newest} {has}"


def _update(case: Case, wanted: Wanted | None) -> Fields:
    """What to say of updating, which no GPU survives beyond its last branch."""
    _, _, last = life(case, case.capability)
    floor = "" if wanted is None else floor_of(case, wanted.cuda)
    if last is not None and floor and int(floor.partition(".")[0]) > last:
        gpu = case.gpus[0] if case.gpus else "This GPU"
        return {
            "gpu_limit": f"{gpu} has no driver newer than branch R{last}, so an update cannot help: only a build for "
            "an older CUDA does."
        }
    ends = f", of branch R{last} at most: it is the last for this GPU" if last is not None else ""
    return {
        "update": f"Update the NVIDIA driver to {floor} or newer{ends}."
        if floor
        else f"Update the NVIDIA driver{ends}."
    }


def too_old(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A driver older than the CUDA runtime: proven by its own number, else one of several causes of error 35."""
    number = next((it.fields["cuda"] for it in sightings if it.get("cuda")), None)
    told = None if number is None else CudaVersion.from_driver_api(int(number))
    if number is not None and told is None:
        yield Diagnosis((Cause("driver-not-nvidia", {"number": number}),), sightings)
        return
    can = ability(case) if told is None else _ability(case, told)
    runtime = next((it.fields["runtime"] for it in sightings if it.get("runtime")), None)
    wanted = None if can is None else _wanted(case, can.full, _number(runtime))
    cause = _too_old(case, can, wanted, number)
    if told is not None:
        yield Diagnosis((cause,), sightings)
        return
    yield Diagnosis(tuple(_of_error_35(case, can, cause)), sightings)


def _too_old(case: Case, can: Ability | None, wanted: Wanted | None, number: str | None) -> Cause:
    fields: Fields = {"driver_is": driver_is(case, can), **_update(case, wanted)}
    if number is not None and can is not None:
        fields |= {"number": number, "found": f"CUDA {can.full}"}
    fields["needs"] = wanted.sentence if wanted is not None else _needs(case)
    if can is not None:
        fields["instead"] = _instead(case, can)
    remedy = None if can is None or case.driver is not None else Remedy(cuda=f"<={can.newest}")
    return Cause("driver-too-old", fields, remedy)


def _needs(case: Case) -> str:
    """What is needed where nothing is known of the driver."""
    if case.built_cuda is None and case.toolkit is not None:
        floor = floor_of(case, case.toolkit)
        return (
            f"The CUDA on the machine is {case.toolkit}, which came with driver {floor} or a newer one: such a driver "
            f"runs builds for CUDA {case.toolkit}, so the build is for a newer CUDA than that. Take its build for CUDA "
            f"{case.toolkit} or older, or a newer driver. {floors(case)}"
        )
    if case.built_cuda is None:
        return floors(case)
    named = f"{TITLES.get(case.framework or '', 'The program')} {case.version_of(case.framework) or ''}".strip()
    return (
        f"{named} was built for CUDA {case.built_cuda}, which needs driver {floor_of(case, case.built_cuda)} or newer."
    )


def _of_error_35(case: Case, can: Ability | None, too_old_: Cause) -> Iterator[Cause]:
    """The causes of error 35, which the runtime also gives where it finds no driver at all."""
    absent = tuple(_absent(case))
    asked = [it for it in (case.built_cuda, case.toolkit) if it is not None]
    if case.saw("wsl-1", "windows-without-gpu-for-wsl") or _mac(case):
        yield from absent
    elif can is None:
        yield from (*absent, too_old_) if case.saw("amd-gpu") else (too_old_, *absent)
    elif proven_too_old(case) is not None or any(not _runs(can.full, it) for it in asked):
        yield too_old_
    elif case.built_cuda is not None or case.wsl or _may_be_container(case):
        yield from filter(None, (*absent, _newer_runtime(case, can)))
    elif asked:
        yield from filter(None, (_newer_runtime(case, can), *absent))
    else:
        yield from (too_old_, *absent)


def _may_be_container(case: Case) -> bool:
    """Whether the program runs in a container, as told, or as it does on such a system."""
    return case.container or case.saw("container-system")


def _newer_runtime(case: Case, can: Ability) -> Cause | None:
    """A runtime of the next CUDA major, where there is one."""
    following = CudaVersion(can.full.major + 1, 0)
    if not floor_of(case, following):
        return None
    fields: Fields = {
        "driver_is": driver_is(case, can),
        "next": str(following),
        "next_major": str(following.major),
        "next_floor": floor_of(case, following),
        "major": str(can.full.major),
    }
    if case.framework is not None and case.built_cuda is None:
        name = f"{TITLES.get(case.framework, case.framework)} {case.version_of(case.framework) or ''}".strip()
        fields["suspect"] = name
        fields["instead"] = _instead(case, can)
    return Cause("newer-cuda-runtime-loaded", fields, Remedy(cuda=f"<={can.newest}"))


def _mac(case: Case) -> bool:
    return case.platform in (Platform.OSX_64, Platform.OSX_ARM64)


def _absent(case: Case) -> Iterator[Cause]:
    """Why there may be no driver at all."""
    if case.saw("wsl-1"):
        seen = case.of("wsl-1")
        yield Cause("wsl-1", seen[0].fields, evidence=tuple(it.line for it in seen))
    elif case.saw("windows-without-gpu-for-wsl"):
        yield windows_too_old(case)
    elif _mac(case):
        yield Cause("no-cuda-on-macos")
    elif case.wsl:
        yield Cause("wsl-driver-not-reached")
    elif _may_be_container(case):
        yield Cause("container-without-gpu")
        if case.driver is None:
            yield Cause("driver-library-missing")
    elif case.driver is not None:
        yield Cause("container-without-gpu")
    else:
        yield Cause("driver-library-missing")


def windows_too_old(case: Case) -> Cause:
    """A Windows that has no GPU for WSL, by its build or version."""
    seen = case.of("windows-without-gpu-for-wsl")
    told = {name: value for it in reversed(seen) for name, value in it.fields.items()}
    build = told.get("build") or told.get("build_of_version") or told.get("version", "")
    return Cause("windows-too-old-for-wsl", {"build": build}, evidence=tuple(it.line for it in seen))


def _number(text: str | None) -> CudaVersion | None:
    return None if text is None else CudaVersion.from_driver_api(int(text))


# images, conda


def too_old_for_image(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What a container image asks of the host's driver: in full, though minor-version compatibility would do."""
    fields: Fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    if "what" not in fields and "wanted_driver" not in fields:
        return
    text = fields.pop("wanted", "") if fields.get("what") != "cuda" else fields.get("wanted", "")
    wanted = _cuda(fields.get("image") or (text if fields.get("what") == "cuda" else ""))
    if fields.get("what") not in (None, "cuda"):
        fields["condition"] = f"{fields['what']} {fields.get('operator', '')} {text}".strip()
    can = ability(case)
    fields["driver_is"] = driver_is(case, can)
    if wanted is not None:
        fields |= {
            "wanted": str(wanted),
            "full": full_of(case, wanted),
            "full_windows": _windows_full(case, wanted),
            "minor": _minor_words(case, wanted),
        }
        if not windows_numbers(case):
            fields["full"] = str(case.knowledge.full_driver(wanted) or "")
        fields["full_linux"] = str(case.knowledge.full_driver(wanted) or "")
    elif "wanted_driver" in fields:
        fields["full"] = fields["wanted_driver"]
    if can is not None:
        fields["older_image"] = f" (CUDA {can.full} or older)"
    yield Diagnosis((Cause("driver-too-old-for-image", fields),), sightings)


def _windows_full(case: Case, cuda: CudaVersion) -> str:
    full = case.knowledge.full_driver(cuda, windows=True)
    return "" if full is None else str(full)


def _minor_words(case: Case, wanted: CudaVersion) -> str:
    """That the check can be switched off, where the driver would run the image all the same."""
    floor = case.knowledge.driver_floor(wanted, windows=windows_numbers(case))
    if floor is None or wanted.major < _FIRST_WITH_MINOR_COMPATIBILITY:
        return ""
    can = ability(case)
    if can is not None and not _runs(can.full, wanted):
        return ""
    return (
        f"A driver of {floor} or newer runs machine code for every CUDA {wanted.major} (minor-version compatibility): "
        "then `docker run -e NVIDIA_DISABLE_REQUIRE=1` skips the check; only PTX needs the newer driver."
    )


def conda_cuda(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What conda says of its virtual package of the driver: lower than asked, missing, or only mentioned."""
    wanted = max((it for it in map(_cuda, _values(sightings, "wanted")) if it is not None), default=None)
    found = next((it for it in map(_cuda, _values(sightings, "found")) if it is not None), None)
    if found is None and (can := ability(case)) is not None:
        found = can.full
    fields: Fields = {}
    if wanted is not None:
        floor = floor_of(case, wanted)
        fields |= {
            "wanted": str(wanted),
            "wanted_words": f" {wanted} or higher",
            "floor": floor,
            "floor_windows": str(case.knowledge.driver_floor(wanted, windows=True) or ""),
            "floor_words": f"CUDA {wanted} needs driver {floor} or newer.",
        }
    if found is not None:
        fields["found"] = str(found)
    too_low = Cause("conda-cuda-too-low", fields, Remedy(cuda=None if found is None else f"<={found}"))
    if found is None:
        yield Diagnosis((Cause("conda-cuda-missing", fields),), sightings)
    elif wanted is None:
        yield Diagnosis((Cause("conda-conflict-not-driver", fields), too_low), sightings)
    elif wanted > found:
        yield Diagnosis((too_low,), sightings)
    else:
        yield Diagnosis((Cause("conda-conflict-not-driver", fields),), sightings)


def _values(sightings: tuple[Sighting, ...], name: str) -> Iterator[str]:
    yield from (value for it in sightings if (value := it.get(name)) is not None)


def _cuda(text: str | None) -> CudaVersion | None:
    if not text:
        return None
    try:
        return CudaVersion.parse(text if "." in text else f"{text}.0")
    except ValueError:
        return None


# PTX and calls


def ptx_too_new(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """PTX that the driver's compiler does not read, by the versions of PTX where they are told."""
    fields: Fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    made, reads = _PTX.get(fields.get("made", "")), _PTX.get(fields.get("reads", ""))
    can = ability(case)
    if can is None and reads is not None:
        can = _ability(case, CudaVersion.parse(reads))
    source = _cuda(made) or next(
        (it for it in (case.built_cuda, case.toolkit) if it is not None and (can is None or it > can.full)), None
    )
    if made is not None and reads is not None:
        fields |= {"ptx": fields["made"], "made": f"CUDA {made}", "reads_cuda": f"CUDA {reads}"}
    else:
        fields.pop("reads", None)
    fields |= {"driver_is": driver_is(case, can), "toolkits": "cudatoolkit or cuda-version"}
    if case.driver is None and fields.get("reads"):
        fields["driver_is"] = ""
    if source is not None:
        fields |= {"from": str(source), "full": full_of(case, source), "or_newer": " or newer"}
        fields["full_words"] = f"CUDA {source} is supported in full from driver {full_of(case, source)} on."
    elif can is not None:
        fields["full_words"] = f"So it is of a CUDA newer than {can.full}."
    if can is not None:
        fields["limit"] = f"CUDA {can.full}"
    if case.capability is not None:
        fields["sm"] = f" (sm_{case.capability.major}{case.capability.minor})"
    remedy = None if can is None or case.driver is not None else Remedy(cuda=f"<={can.full}")
    yield Diagnosis((Cause("ptx-too-new", fields, remedy),), sightings)


def older_than_ptx_compiler(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """XLA compiles one by one where the driver is older than its compiler: slower, nothing else."""
    fields: Fields = {**sightings[0].fields}
    made = _cuda(fields.get("made"))
    if made is not None:
        fields["full"] = full_of(case, made)
    yield Diagnosis((Cause("driver-older-than-ptx-compiler", fields),), sightings)


def too_old_for_call(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A call that the kernel module does not know."""
    yield Diagnosis((Cause("driver-too-old-for-call", {"driver_is": driver_is(case, ability(case))}),), sightings)


# drivers and GPUs


def branch_ended(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The kernel module's own words: this GPU is left to an older branch."""
    told: Fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    if "gpu" in told:
        told["gpu"] = told["gpu"].removeprefix("NVIDIA ").strip()
    if not told.get("legacy") and not too_new_for_gpu(case):
        return
    yield Diagnosis((Cause("driver-too-new-for-gpu", {**gpu_fields(case), **told}),), sightings)


def not_supported_by_module(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The wrong variant of the kernel modules, or a driver release that does not know the GPU."""
    fields: Fields = {**gpu_fields(case), **{name: value for it in sightings for name, value in it.fields.items()}}
    known = case.knowledge.matrix.pci_ids.get(fields.get("pci", "").casefold())
    if known is not None:
        name, capability = known
        fields |= {"gpu": name, "gpu_words": f": it is a {name}, compute capability {capability}"}
    if "needs_open" in fields:
        yield Diagnosis((Cause("open-modules-needed", fields),), sightings)
    elif "driver" not in fields:
        yield Diagnosis((Cause("open-modules-on-old-gpu", fields),), sightings)
    elif too_new_for_gpu(case):
        yield Diagnosis((Cause("driver-too-new-for-gpu", fields),), sightings)
    elif too_old_for_gpu(case):
        yield Diagnosis((Cause("driver-too-old-for-gpu", fields),), sightings)
    else:
        yield Diagnosis((Cause("driver-too-old-for-gpu", fields), Cause("driver-too-new-for-gpu", fields)), sightings)


def newer_than_program(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A program that refuses drivers newer than itself, or older than it wants."""
    fields: Fields = {**sightings[0].fields}
    found, wants = _cuda(fields.get("found")), _FIRST_NUMBER.search(fields.get("wants", ""))
    if found is not None and wants is not None and found.major < int(wants[0]):
        least = CudaVersion(int(wants[0]), 0)
        can = _ability(case, found)
        needs = f"{fields['program']} wants a driver for {fields['wants']}: {floor_of(case, least)} or newer."
        yield Diagnosis((_too_old(case, can, Wanted(least, needs), None),), sightings)
        return
    if found is not None:
        fields["major"] = str(found.major)
        span = None if case.capability is None else case.knowledge.cuda_for(case.capability)
        if span is not None and span[1] is not None and span[1] < found:
            fields["gpu_needs"] = (
                f"The GPU has compute capability {case.capability}, for which CUDA {span[1]} is the last: it cannot "
                f"use a CUDA {found.major} toolkit."
            )
    yield Diagnosis((Cause("driver-newer-than-program", fields),), sightings)


def proven_too_old(case: Case) -> Cause | None:
    """That the driver is too old for the build, where the versions of both are told; else None."""
    can = ability(case)
    default = _default_build(case)
    built = case.built_cuda or (default.cuda if default is not None else case.toolkit)
    if can is None or case.driver is None or built is None or _runs(can.full, built):
        return None
    return _too_old(case, can, _wanted(case, can.full, None), None)


def presumably_too_old(case: Case, can: Ability) -> Cause:
    """That the driver is too old, where it is as old as this and the CUDA of the build is not told."""
    return _too_old(case, can, _wanted(case, can.full, None), None)


def unavailable(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A framework that says only that there is no CUDA: told of the driver where the versions prove it."""
    cause = proven_too_old(case)
    if cause is not None and case.framework is not None and not case.saw("driver-too-old"):
        yield Diagnosis((cause,), sightings)


RULES: Mapping[str, Rule] = {
    "driver-too-old": too_old,
    "driver-too-old-for-image": too_old_for_image,
    "conda-cuda": conda_cuda,
    "ptx-too-new": ptx_too_new,
    "driver-older-than-ptx-compiler": older_than_ptx_compiler,
    "driver-too-old-for-call": too_old_for_call,
    "driver-branch-ended": branch_ended,
    "gpu-not-supported-by-module": not_supported_by_module,
    "driver-newer-than-program": newer_than_program,
    "cuda-unavailable": unavailable,
}
