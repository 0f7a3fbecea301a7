"""Rules on a driver that is too old for a build: what was asked of it, and what it runs instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.driver_ability import (
    FIRST_WITH_MINOR_COMPATIBILITY,
    Ability,
    ability,
    ability_for,
    cuda_beside,
    driver_is,
    floor_of,
    life,
    runs,
    too_old_for_gpu,
    windows_numbers,
)
from envsolve.diagnose.rules.driver_absent import may_be_container, no_driver, on_mac
from envsolve.diagnose.rules.roots import Fields
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion


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
        if cuda is not None and not runs(full, cuda):
            return Wanted(cuda, f"{sentence} CUDA {cuda}, which needs driver {floor_of(case, cuda)} or newer.")
    return _next_major(case, full)


def _next_major(case: Case, full: CudaVersion) -> Wanted | None:
    """The next CUDA major: what a refused runtime must be of, as a driver runs all of its own."""
    first = CudaVersion(full.major + 1, 0)
    if full.major < FIRST_WITH_MINOR_COMPATIBILITY or not floor_of(case, first):
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
    """Builds that a driver runs: of the framework's version, else its newest release that has one.

    Where the GPU is known the solver names the release, which goes by the GPU and by more sources than one, too.
    """
    limit = f"CUDA {can.newest} or older"
    name = case.framework
    if name is None or case.capabilities:
        return limit
    same = [it for it in case.releases() if it.cuda is not None and runs(can.full, it.cuda)]
    fitting = same or [
        it for it in case.knowledge.all_releases(name, case.platform) if it.cuda and runs(can.full, it.cuda)
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
    _, first, last = life(case, case.capability)
    floor = "" if wanted is None else floor_of(case, wanted.cuda)
    gpu = case.gpus[0] if case.gpus else "This GPU"
    if too_old_for_gpu(case):
        return {
            "gpu_limit": f"{gpu} needs a driver of branch R{first} or newer, so no build for an older CUDA helps.",
            "update": f"Update the NVIDIA driver to {_newer(floor, first)} or newer.",
        }
    if last is not None and floor and int(floor.partition(".")[0]) > last:
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


def _newer(floor: str, first: int | None) -> str:
    """The driver that serves build and GPU: ``floor``, or the first branch of the GPU where that is newer."""
    branch = int(floor.partition(".")[0] or 0)
    return floor if first is None or branch >= first else f"branch R{first}"


def too_old(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A driver older than the CUDA runtime: proven by its own number, else one of several causes of error 35."""
    number = next((it.fields["cuda"] for it in sightings if it.get("cuda")), None)
    told = None if number is None else CudaVersion.from_driver_api(int(number))
    if number is not None and told is None:
        yield Diagnosis((Cause("driver-not-nvidia", {"number": number}),), sightings)
        return
    can = ability(case) if told is None else ability_for(case, told)
    runtime = next((it.fields["runtime"] for it in sightings if it.get("runtime")), None)
    wanted = None if can is None else _wanted(case, can.full, _number(runtime))
    cause = cause_of(case, can, wanted, number)
    if case.framework is None and any(it.get("pytorch") for it in sightings):
        cause = _of_pytorch(cause)
    if told is not None:
        yield Diagnosis((cause,), sightings)
        return
    yield Diagnosis(tuple(_of_error_35(case, can, cause)), sightings)


def cause_of(case: Case, can: Ability | None, wanted: Wanted | None, number: str | None) -> Cause:
    """The driver that is too old for what was asked; ``number`` is how the text writes the driver's CUDA."""
    fields: Fields = {"driver_is": driver_is(case, can), **_update(case, wanted)}
    if number is not None and can is not None:
        fields |= {"number": number, "found": f"CUDA {can.full}"}
    fields["needs"] = wanted.sentence if wanted is not None else _needs(case)
    beside = None if can is None else cuda_beside(case, can)
    if beside is not None and wanted is not None and runs(beside, wanted.cuda) and "gpu_limit" not in fields:
        fields["update"] = _meeting_the_newer(case)
    elif can is not None and not too_old_for_gpu(case):
        fields["instead"] = _instead(case, can)
    remedy = None if can is None or case.driver is not None else Remedy(cuda=f"<={can.newest}")
    return Cause("driver-too-old", fields, remedy)


def _meeting_the_newer(case: Case) -> str:
    """What to say where the driver that is told beside the text is new enough."""
    library = "" if case.windows else ", and take a folder with an old libcuda off the loader's path"
    return (
        f"Driver {case.driver} runs such builds, so have the program meet it: restart the machine, or the container, "
        f"after an update{library}."
    )


def _of_pytorch(cause: Cause) -> Cause:
    """The same of PyTorch, which alone says it in these words."""
    remedy = (cause.remedy or Remedy())._replace(frameworks=("pytorch",))
    return cause._replace(fields={**cause.fields, "framework": TITLES["pytorch"], "name": "pytorch"}, remedy=remedy)


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
    absent = tuple(no_driver(case))
    asked = [it for it in (case.built_cuda, case.toolkit) if it is not None]
    if case.saw("wsl-1", "windows-without-gpu-for-wsl") or on_mac(case):
        yield from absent
    elif can is None:
        yield from (*absent, too_old_) if case.saw("amd-gpu") else (too_old_, *absent)
    elif proven_too_old(case) is not None or any(not runs(can.full, it) for it in asked):
        yield too_old_
    elif case.built_cuda is not None or case.wsl or may_be_container(case):
        yield from filter(None, (*absent, _newer_runtime(case, can)))
    elif asked:
        yield from filter(None, (_newer_runtime(case, can), *absent))
    else:
        yield from (too_old_, *absent)


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


def _number(text: str | None) -> CudaVersion | None:
    return None if text is None else CudaVersion.from_driver_api(int(text))


def proven_too_old(case: Case) -> Cause | None:
    """That the driver is too old for the build, where the versions of both are told; else None."""
    can = ability(case)
    default = _default_build(case)
    built = case.built_cuda or (default.cuda if default is not None else case.toolkit)
    if can is None or case.driver is None or built is None or runs(can.full, built):
        return None
    return cause_of(case, can, _wanted(case, can.full, None), None)


def presumably_too_old(case: Case, can: Ability) -> Cause:
    """That the driver is too old, where it is as old as this and the CUDA of the build is not told."""
    return cause_of(case, can, _wanted(case, can.full, None), None)


def unavailable(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A framework that says only that there is no CUDA: told of the driver where the versions prove it."""
    cause = proven_too_old(case)
    if cause is not None and case.framework is not None and not case.saw("driver-too-old"):
        yield Diagnosis((cause,), sightings)


RULES: Mapping[str, Rule] = {
    "driver-too-old": too_old,
    "cuda-unavailable": unavailable,
}
